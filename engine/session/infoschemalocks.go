package session

import (
	"encoding/hex"
	"fmt"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/record"
)

// dataLocksMax is how many locks are listed at most.
const dataLocksMax = 10_000

// lockedIndex names what a lock is on.
type lockedIndex struct{ schema, table, index string }

// lockNames finds the names of tables and indexes by number.
func lockNames(eng *storage.Engine) (tables, indexes map[uint64]lockedIndex, err error) {
	tables, indexes = map[uint64]lockedIndex{}, map[uint64]lockedIndex{}
	err = eng.Catalog.Tables(nil, func(d *record.Table) error {
		tables[d.ID] = lockedIndex{d.Schema, d.Name, ""}
		for i := range d.Indexes {
			indexes[d.Indexes[i].ID] = lockedIndex{d.Schema, d.Name, d.Indexes[i].Name}
		}
		return nil
	})
	return tables, indexes, err
}

// lockID names a lock.
func lockID(trx uint64, table bool, index uint64, key []byte) string {
	if table {
		return fmt.Sprintf("%d:%d", trx, index)
	}
	return cutText(fmt.Sprintf("%d:%d:%x", trx, index, key), 128)
}

func rowsDataLocks(q *virtualRows) error {
	if err := q.mayWatch("data_locks"); err != nil {
		return err
	}
	tables, indexes, err := lockNames(q.s.eng)
	if err != nil {
		return err
	}
	for _, l := range q.s.eng.Locks.Snapshot(dataLocksMax).Locks {
		kind, on := "RECORD", indexes[l.Index]
		var data any
		switch {
		case l.Table:
			kind, on = "TABLE", tables[l.Index]
		case l.Key == nil:
			data = "supremum pseudo-record"
		default:
			data = cutText("0x"+hex.EncodeToString(l.Key), 8192)
			if l.Range {
				data = cutText(fmt.Sprintf("0x%x .. 0x%x", l.Key, l.End), 8192)
			}
		}
		status := "WAITING"
		if l.Granted {
			status = "GRANTED"
		}
		q.row("INNODB", lockID(l.Trx, l.Table, l.Index, l.Key), l.Trx, nil, nil, on.schema, on.table, nil, nil, orNull(on.index), 0, kind, l.Mode, status, data)
	}
	return nil
}

func rowsDataLockWaits(q *virtualRows) error {
	if err := q.mayWatch("data_lock_waits"); err != nil {
		return err
	}
	for _, w := range q.s.eng.Locks.Snapshot(dataLocksMax).Waits {
		q.row("INNODB", lockID(w.Requesting, w.Table, w.Index, w.Key), w.Requesting, nil, nil, 0, lockID(w.Blocking, w.Table, w.Index, w.Key), w.Blocking, nil, nil, 0)
	}
	return nil
}
