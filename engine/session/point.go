package session

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// scanPoint reads the row with a key of a unique secondary index. With wantKey it returns
// the row's clustered key, which is valid until the scan is used again.
func (s *Session) scanPoint(o *txn.Table, g *plan.PointGet, key []byte, wantKey bool, b *types.Batch) (rowKey []byte, found bool, err error) {
	r := table.Range{Index: g.Index, Low: key, High: key, Columns: g.Fetch, Keys: wantKey}
	if g.Lock != nil {
		r.Locking, r.Lock, r.Policy = true, g.Lock.Mode, g.Lock.Policy
	}
	scan := s.scan()
	defer s.giveScan(scan)
	if err := scan.Start(o, r); err != nil {
		return nil, false, err
	}
	for more := true; more && b.Len() == 0; {
		if more, err = scan.Next(b); err != nil {
			return nil, false, err
		}
	}
	if b.Len() == 0 {
		return nil, false, nil
	}
	if wantKey {
		rowKey = append(s.work.rowKey[:0], scan.Key(0)...)
		s.work.rowKey = rowKey
	}
	return rowKey, true, nil
}

// intoVars receives the row of SELECT .. INTO.
type intoVars struct {
	rowKeeper
	names []string
}

// intoOf is the INTO of a query, or nil.
func intoOf(c *compiled) *ast.Into {
	switch q := c.kind.(type) {
	case *ast.Select:
		return q.Into
	case *ast.SetOp:
		return q.Into
	case *ast.Values:
		return q.Into
	}
	return nil
}

// intoVariables returns where a query's row goes, nil if it goes to the client.
func (s *Session) intoVariables(c *compiled) (*intoVars, error) {
	into := intoOf(c)
	if into == nil {
		return nil, nil
	}
	if len(into.Vars) != len(c.columns) {
		return nil, sqlerr.New(sqlerr.WrongNumberOfColumnsInSelect)
	}
	return &intoVars{names: into.Vars, rowKeeper: rowKeeper{limit: 2, cols: c.columns}}, nil
}

// storeInto sets the variables.
func (s *Session) storeInto(v *intoVars) (Outcome, error) {
	var out Outcome
	switch len(v.rows) {
	case 0:
		s.diag.warn(sqlerr.New(sqlerr.SPFetchNoData))
		return out, nil
	case 1:
	default:
		return out, sqlerr.New(sqlerr.TooManyRows)
	}
	for i, name := range v.names {
		if err := s.setUserVariable(name, v.rows[0][i], v.cols[i].Type); err != nil {
			return out, err
		}
	}
	out.AffectedRows = 1
	return out, nil
}
