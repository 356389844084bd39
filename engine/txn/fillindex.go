package txn

import (
	"errors"
	"slices"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
)

// FillIndex puts what an index lacks into it that AddIndex has added, beside changes of
// the table by other sessions if the transaction that added it is committed. It changes
// nothing that is logged: each member fills the index itself (CompleteIndex). It may be called
// again after an error.
//
// stop, if not nil, is asked now and then whether to give up. Errors: what it returns,
// *table.DuplicateError, record.ErrKeyTooLong, those of locks and of space, the reason of
// Manager.Suspend.
func (s *Session) FillIndex(o *Table, index uint64, stop func() error) (entries int64, err error) {
	t, err := s.enterToWrite(nil, true)
	if err != nil {
		return 0, err
	}
	if err = t.mayWrite(o); err == nil {
		opt := table.LoadOptions{Stop: func() error {
			if err := s.m.Suspended(); err != nil || stop == nil {
				return err
			}
			return stop()
		}}
		var i int
		if i, err = position(o.tbl, index); err == nil && o.tbl.Schema.Keys[i].Building {
			entries, err = t.Worker.FillIndex(o.tbl, i, t.Schema, opt)
		}
	}
	return entries, s.leave(err)
}

// CompleteIndex is FillIndex on a member that applies the log: of an index of a table, both by
// number, whose AddIndex is committed. alone says that nobody else applies changes
// meanwhile. It may be called again after an error. Errors: what stop returns, table.ErrNoTable, and those of FillIndex but duplicates.
//
// REQUIRES: worker.Applying, and the worker has a transaction; nobody changes the table's definition meanwhile.
func CompleteIndex(w *table.Worker, c *dict.Catalog, id, index uint64, alone bool, stop func() error) error {
	h, err := c.OpenTableByID(w.Trx(), id)
	if err != nil {
		return err
	}
	defer h.Release()
	i, err := position(h.Table(), index)
	if err != nil {
		return err
	}
	if !h.Table().Schema.Keys[i].Building {
		return errors.New("txn: the index is not being built")
	}
	_, err = w.FillIndex(h.Table(), i, alone, table.LoadOptions{Stop: stop})
	return err
}

// position is that of the index of a number among the table's keys.
func position(t *table.Table, index uint64) (int, error) {
	i := slices.IndexFunc(t.Schema.Keys, func(k *record.KeySchema) bool { return k.ID == index })
	if i < 0 {
		return 0, errors.New("txn: the table has no index of that number")
	}
	return i, nil
}
