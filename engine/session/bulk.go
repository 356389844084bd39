package session

import (
	"context"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// bulkMin is the least length of a text in bytes for which it is worth a look whether it inserts
// many rows of literals.
const bulkMin = 512

// runBulk runs a text that inserts many rows of literals, by way of the plan cache and
// without a tree of them. done is false for all others.
func (s *Session) runBulk(ctx context.Context, sql string, w ResultWriter) (done bool, err error) {
	b := &s.work.bulk
	if len(sql) < bulkMin || !b.Find(sql, s.mode) {
		return false, nil
	}
	defer func() {
		b.Release()
		clear(s.work.rowValues) // they alias the text
	}()
	if c := types.CollationByID(s.x.Collation); c == nil || c.Charset() != types.CharsetUTF8MB4 {
		return false, nil // strings have to be converted, or are no text
	}
	key := b.AppendKey(append(s.appendPlanKey(s.work.key[:0]), 0xff)) // which no other key goes on with
	s.work.key = key
	s.buf.Literals = s.buf.Literals[:0]
	c, known := s.m.plans.get(key)
	if known && c == nil {
		return false, nil
	}
	s.work.rows = b
	defer func() { s.work.rows = nil }()
	if known {
		return true, s.runKnown(ctx, c, key, w)
	}
	list, err := ast.Parse(b.Statement(), s.mode)
	if err != nil || len(list) != 1 || list[0].Params() != b.Width {
		return false, nil // the text as it is will say why
	}
	st, ok := list[0].(*ast.Insert)
	if !ok || len(st.Rows) != 1 {
		return false, nil
	}
	params := make([]*types.Type, b.Width)
	for i := range params {
		params[i] = s.textParam()
	}
	err = s.runFirst(ctx, st, params, string(key), w)
	if err == errRecompile {
		return false, nil
	}
	return true, err
}

// bulkAuto reports whether each of the rows takes a new AUTO_INCREMENT value.
func (p *insertPlan) bulkAuto(b *ast.Bulk) bool {
	for i, pos := range p.positions {
		if pos == p.info.auto {
			return b.AllNull(i)
		}
	}
	return p.info.auto >= 0
}

// literals adds rows of literals. The plan has one row: a parameter for each of their
// values, or nothing where the column has its default all the same.
func (n *inserter) literals(b *ast.Bulk) error {
	s := n.s
	values := n.p.rows[0]
	m := s.x.Mark()
	n.startGroup()
	for i := range b.Rows {
		if n.fresh() {
			b.Reuse()
		}
		row := n.next(m)
		list := b.Next(s.work.rowValues[:0])
		s.work.rowValues = list
		if err := n.put(row, n.store(values, list, row)); err != nil {
			return err
		}
		if i%groupRows == 0 {
			if err := s.interrupted(); err != nil {
				return err
			}
		}
	}
	return n.addGroup()
}

// store makes a row of literals.
func (n *inserter) store(values []insertValue, list, row []types.Value) error {
	s, p := n.s, n.p
	for i := range list {
		x, pos := &list[i], p.positions[i]
		if values[i].node != nil && p.info.types[pos].Takes(x) {
			row[pos] = *x
			continue
		}
		var err error
		switch {
		case values[i].node == nil:
			row[pos], err = s.rowDefault(p.info, pos, row)
		case x.Class() == types.ClassBytes:
			row[pos], err = s.toColumn(p.info, pos, *x, s.textParam(), n.lenient)
		default:
			row[pos], err = s.toColumn(p.info, pos, *x, nil, n.lenient)
		}
		if err != nil {
			return err
		}
	}
	return n.defaults(row, false)
}
