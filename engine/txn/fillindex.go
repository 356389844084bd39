package txn

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/table"
)

// FillIndex puts what an index lacks into it that AddIndex has added, beside changes of
// the table by other sessions if the transaction that added it is committed. It changes
// nothing that is logged: each member fills the index itself, at the latest when the
// log publishes it. It may be called again after an error.
//
// stop, if not nil, is asked now and then whether to give up. Errors: what it returns,
// *table.DuplicateError, record.ErrExternal (rows keep too little of long values: only a new
// table can have the index), those of locks and of space, the reason of Manager.Suspend.
func (s *Session) FillIndex(o *Table, index uint64, stop func() error) (entries int64, err error) {
	t, err := s.enterToWrite(true)
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
		entries, err = fillPosition(t.Worker, o.tbl, index, t.Schema, opt)
	}
	return entries, s.leave(err)
}

// fillIndex completes an index that the log is about to publish.
//
// REQUIRES: as of ApplySchema.
func fillIndex(w *table.Worker, c *dict.Catalog, id, index uint64) error {
	h, err := c.OpenTableByID(w.Trx(), id)
	if err != nil {
		return err
	}
	defer h.Release()
	_, err = fillPosition(w, h.Table(), index, true, table.LoadOptions{})
	return err
}

// fillPosition fills the index of that number. alone says that nobody else changes rows
// of the table.
func fillPosition(w *table.Worker, t *table.Table, index uint64, alone bool, opt table.LoadOptions) (int64, error) {
	for i, k := range t.Schema.Keys {
		if k.ID == index {
			if !k.Building {
				return 0, nil
			}
			return w.FillIndex(t, i, alone, opt)
		}
	}
	return 0, errors.New("txn: the table has no index of that number")
}
