package dict

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// CheckSnapshot says whether the open table is what its name stands for as of the snapshot.
// [table.ErrTableChanged] (1412) if not:
//
//   - The table did not exist then, or had another name. A rebuild fills its table under
//     a hidden name and renames it at the end: until then the copy lacks rows, and has old
//     ones, which the table of that time has.
//   - One of its indexes was not complete then, or did not exist. It knows nothing of older
//     versions. Or it had been dropped, and has not been kept since.
//   - One of its columns has the name of a column that was dropped later, or renamed.
//   - The definition that is open was older than the snapshot. On a node that applies the log
//     nobody keeps definitions from changing while tables are open.
//
// The catalogue's rows have versions as all rows do: the answer is the same on each member, and
// after a restart. It costs no more than three loads as long as the definition is the newest
// one, is not older than the snapshot, and nobody is changing any definition.
//
// REQUIRES: snap is open, and was before CheckSnapshot was called.
func (c *Catalog) CheckSnapshot(h *Handle, snap *trx.Snapshot) error {
	// In this order: a change is pending before its commit can be seen, and the handle is
	// stale before it is pending no longer.
	settled := c.pendings.Load() == 0 && h.Current()
	if since := h.seen.Load(); settled && since != 0 && since <= snap.CSN {
		return nil
	}
	r, err := c.reader()
	if err != nil {
		return err
	}
	defer c.done(r)
	then, err := r.definition(snap, h.id)
	switch {
	case errors.Is(err, table.ErrNoTable):
		return table.ErrTableChanged
	case err != nil:
		return err
	case !readableAsOf(h.table.Schema.Table, then):
		return table.ErrTableChanged
	}
	return nil
}

// readableAsOf reports whether rows of a table with an open definition can be read for a time
// when it had another.
func readableAsOf(open, then *record.Table) bool {
	if open.Schema != then.Schema || open.Name != then.Name || open.RowVersion < then.RowVersion {
		return false
	}
	for i := range open.Indexes {
		ix := &open.Indexes[i]
		if was := indexWithID(then, ix.ID); !ix.Building && (was == nil || was.Building) {
			return false
		}
	}
	return open.Version == then.Version || sameNames(open, then)
}

// sameNames reports whether no column has the name of another one of that time.
func sameNames(open, then *record.Table) bool {
	ids := make(map[string]uint32, len(then.Columns))
	for i := range then.Columns {
		if c := &then.Columns[i]; c.DroppedIn == 0 {
			ids[Fold(c.Name)] = c.ID
		}
	}
	for i := range open.Columns {
		c := &open.Columns[i]
		if id, was := ids[Fold(c.Name)]; was && c.DroppedIn == 0 && id != c.ID {
			return false
		}
	}
	return true
}
