package dict

import (
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// TableAt opens a table in its definition as of the snapshot, to read what that sees:
// also if the table has been changed, renamed or dropped since. The table is the
// caller's alone and not in the cache; its counters are those that commits have
// raised so far. Error: table.ErrNoTable if the snapshot knows no such table.
//
// REQUIRES: the snapshot stays open as long as the table is used: it keeps the files
// of what was dropped after it.
func (c *Catalog) TableAt(snap *trx.Snapshot, id uint64) (*table.Table, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	def, err := r.definition(snap, id)
	if err != nil {
		return nil, err
	}
	at, err := r.physical(r.latest(0), id)
	if err != nil {
		return nil, err
	}
	s, err := c.prepare(def)
	if err != nil {
		return nil, err
	}
	return c.e.Open(s, at)
}
