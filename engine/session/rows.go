package session

import (
	"context"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// rowWriter passes rows on to the client's writer: after what they depend on is committed.
type rowWriter struct {
	s   *Session
	ctx context.Context
	w   ResultWriter
	// locked says that the rows were read under locks, of which some may have been
	// released early.
	locked bool
	rows   uint64
	sent   bool // Columns was called
}

// begin prepares for a statement.
func (r *rowWriter) begin(ctx context.Context, w ResultWriter) {
	r.ctx, r.w, r.locked, r.rows, r.sent = ctx, w, false, 0, false
}

// columns begins a row set.
func (r *rowWriter) columns(cols []ResultColumn) error {
	r.sent = true
	if err := r.w.Columns(cols); err != nil {
		return &writerError{err}
	}
	return nil
}

// batch sends rows.
func (r *rowWriter) batch(b *types.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := r.settle(); err != nil {
		return err
	}
	r.rows += uint64(b.Len())
	if err := r.w.Rows(b); err != nil {
		return &writerError{err}
	}
	return nil
}

// settle waits until what the rows depend on is committed.
func (r *rowWriter) settle() error {
	s := r.s
	if !s.trx.active || !r.locked && !s.trx.wrote {
		return nil
	}
	if err := s.txn.Settle(r.ctx); err != nil {
		return s.lost(err)
	}
	return nil
}

// sendRows sends a whole row set, of statements whose rows are made up.
func (s *Session) sendRows(cols []ResultColumn, b *types.Batch) error {
	if err := s.out.columns(cols); err != nil {
		return err
	}
	return s.out.batch(b)
}

// resultColumns are the columns of a plan as clients are told of them.
func resultColumns(cols []plan.Column) []ResultColumn {
	list := make([]ResultColumn, len(cols))
	for i, c := range cols {
		list[i] = ResultColumn{Schema: c.Schema, Table: c.Table, OrgTable: c.OrgTable, Name: c.Name, OrgName: c.OrgName, Type: c.Type,
			Flags: ColumnFlags(c.Flags), Narrow: c.Narrow}
	}
	return list
}

// textColumn is a column of made-up rows.
func textColumn(name string, length uint32) ResultColumn {
	return ResultColumn{Name: name, Type: &types.Type{Kind: types.KindVarChar, Length: length, Collation: types.CollationUTF8MB40900AI}}
}

// columnTypes are the types of result columns, for types.NewBatch.
func columnTypes(cols []ResultColumn) []*types.Type {
	list := make([]*types.Type, len(cols))
	for i := range cols {
		list[i] = cols[i].Type
	}
	return list
}
