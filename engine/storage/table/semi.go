package table

import (
	"bytes"
	"errors"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// A semi-consistent read looks, before it waits for a row that someone else has
// locked, at the row's last committed version, and passes it over if the statement
// does not want that. See [Range.Wanted].

// asking is what a semi-consistent read needs.
type asking struct {
	batch  *types.Batch
	insist []byte // the entry that is wanted, and so waited for
}

// asks reports whether the scan asks for the entry before it waits.
func (s *Scanner) asks(key []byte) bool {
	return s.r.Wanted != nil && s.r.Policy == lock.Block && !s.point && !s.gaps() && !bytes.Equal(s.asking.insist, key)
}

// policyFor is the policy with which to lock the entry, or its row.
func (s *Scanner) policyFor(key []byte) lock.Policy {
	if s.asks(key) {
		return lock.SkipLocked
	}
	return s.r.Policy
}

// passOver is called where the entry that the scan is at, or its row, is locked by
// someone else. It passes the entry over if the statement does not want the row, and
// makes the scan come to it again otherwise, to wait for it.
//
// REQUIRES: w.rm is open with the cursor on the entry; it is closed.
func (s *Scanner) passOver(key []byte) error {
	w := s.w
	var view trx.View // keeps the undo of whoever is active now, and off-page values
	w.e.Trx.OpenSnapshot(&view)
	defer w.e.Trx.CloseSnapshot(&view)
	row, entry, known, err := s.lastCommitted(key, &view.Snapshot)
	w.release()
	if err != nil {
		return err
	}
	wanted := !known // of what is not known
	if known && row.Val != nil {
		if wanted, err = s.ask(row); err != nil {
			return err
		}
	}
	if wanted {
		s.asking.insist = append(s.asking.insist[:0], key...)
		return nil
	}
	if entry != 0 {
		w.trx.AddDependence(entry)
	}
	s.advance(key)
	s.refuse()
	return nil
}

// lastCommitted returns a copy of the last version of the entry's row that is
// committed, or in doubt: then entry is the place in the log on which it depends. The
// row has no value if there is none with this entry. known is false if that cannot be
// told.
//
// REQUIRES: as passOver; snap is open, and the newest.
func (s *Scanner) lastCommitted(key []byte, snap *trx.Snapshot) (row record.Row, entry uint64, known bool, err error) {
	w, c := s.w, &s.w.look
	rowKey := key
	if s.r.Index != 0 {
		if rowKey, err = record.ClusteredKey(key, c.Value()); err != nil {
			return row, 0, false, err
		}
		s.row = append(s.row[:0], rowKey...)
		c, rowKey = &w.inner, s.row
		c.Reset()
		c.Init(s.t.trees[0], w.rm)
		exact, err := c.SeekLeaf(rowKey, mtr.S)
		if err != nil || !exact {
			return row, 0, false, err
		}
	}
	value, flags := c.Value(), c.Flags()
	for n := 0; ; n++ {
		writer, err := writerOf(value)
		if err != nil {
			return row, 0, false, err
		}
		var entry uint64
		settled := writer == w.trx.ID() || w.e.Trx.Visible(snap, writer)
		if !settled {
			settled, entry = w.e.Trx.Settled(writer)
		}
		if settled {
			if flags&record.FlagDeleted == 0 {
				w.old = append(w.old[:0], value...)
				row, err = s.rowOfEntry(key, rowKey, w.old)
			}
			return row, entry, err == nil, err
		}
		var exists bool
		value, flags, exists, err = w.older(value, n&1)
		if err != nil || !exists {
			return row, 0, err == nil, err
		}
	}
}

// rowOfEntry is the version of a row, or none if it does not have the entry.
func (s *Scanner) rowOfEntry(key, rowKey, version []byte) (record.Row, error) {
	row, err := s.t.Schema.Row(rowKey, version)
	if err != nil || s.r.Index == 0 {
		return row, err
	}
	w := s.w
	w.sec2, _, _, err = w.appendEntry(w.sec2[:0], s.t, s.key, row)
	switch {
	case errors.Is(err, record.ErrKeyTooLong):
		return record.Row{}, nil // older than the index, which could not have taken it
	case err != nil || !bytes.Equal(w.sec2, key):
		return record.Row{}, err
	}
	return row, nil
}

// ask asks the statement whether it wants the row. A row whose off-page values are
// gone, since a newer version failed to be committed, is wanted: the lock tells.
func (s *Scanner) ask(row record.Row) (wanted bool, err error) {
	if s.asking.batch == nil {
		var kinds []*types.Type
		for _, c := range s.r.Columns {
			kinds = append(kinds, &s.t.Schema.Columns[c].Type)
		}
		s.asking.batch = types.NewBatch(kinds)
	}
	b := s.asking.batch
	b.Reset()
	if err := s.w.loadLong(s.t, row, s.r.Columns); err != nil {
		return true, nil
	}
	if err := s.w.appendLoaded(row, s.r.Columns, b); err != nil {
		return false, err
	}
	return s.r.Wanted(b)
}
