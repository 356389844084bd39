package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// StateHash is SHA-256 over all replicated tables as of a CSN, the catalogue's
// included, in the order of their numbers: for each its number and its table hash
// (table.Worker.Hash). It is equal on all members whose data is that of the same
// CSN. Errors: trx.ErrSnapshotTooOld, trx.ErrSnapshotInFuture, those of reading.
func (e *Engine) StateHash(csn uint64) ([sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	t := e.Trx.Begin(trx.Options{})
	defer e.Trx.End(t)
	if err := t.SnapshotAt(csn); err != nil {
		return sum, err
	}
	w := e.Tables.NewWorker()
	w.Use(t)
	h := sha256.New()
	add := func(tbl *table.Table) error {
		th, err := w.Hash(tbl, t.Snapshot(), nil)
		if err != nil {
			return err
		}
		h.Write(binary.LittleEndian.AppendUint64(nil, tbl.ID()))
		h.Write(th.Sum[:])
		return nil
	}
	for _, tbl := range e.Catalog.SystemTables() {
		if dict.IsReplicated(tbl.ID()) {
			if err := add(tbl); err != nil {
				return sum, err
			}
		}
	}
	var ids []uint64
	err := e.Catalog.Tables(t.Snapshot(), func(def *record.Table) error {
		ids = append(ids, def.ID)
		return nil
	})
	if err != nil {
		return sum, err
	}
	slices.Sort(ids)
	for _, id := range ids {
		tbl, err := e.Catalog.TableAt(t.Snapshot(), id)
		if err == nil {
			err = add(tbl)
		}
		if err != nil {
			return sum, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
