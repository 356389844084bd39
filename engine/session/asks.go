package session

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// ask is what a statement needs on a table, or on a column of it, to be looked at. It is asked before the table is opened:
// who may not use a table neither holds its definition, behind whose next change others would wait, nor learns
// whether it exists or what columns it has.
type ask struct {
	schema, table string
	need          priv.Mask
	any           bool   // one of need is enough
	command       string // of the message of any
}

// mayOpen asks for what a statement needs; of its own temporary tables a session may do anything. Error: 1142.
func (s *Session) mayOpen(list []ask) error {
	a := s.privileges()
	if a == everything {
		return nil
	}
	for i := range list {
		k := &list[i]
		if s.isTemporary(k.schema, k.table) {
			continue
		}
		if a.Global(k.need) {
			continue
		}
		if k.any {
			if err := a.AnyTable(k.schema, k.table, k.need, k.command); err != nil {
				return err
			}
			continue
		}
		if err := a.Some(k.schema, k.table, k.need); err != nil {
			return err
		}
	}
	return nil
}

// asksOf lists what a statement needs on the tables it names; names without a schema are of the one given.
func asksOf(st ast.Statement, schema string) []ask {
	w := &askList{schema: schema}
	switch st := st.(type) {
	case *ast.Insert:
		need := priv.Insert
		if st.Replace {
			need |= priv.Delete
		}
		if len(st.OnDuplicate) > 0 {
			need |= priv.Update
		}
		w.add(st.Table, need, false, "")
		w.walk(st, nil)
	case *ast.Update:
		hidden := w.with(st.With, nil)
		rest := *st
		if one, ok := st.Table.(*ast.TableRef); ok {
			w.target(one, hidden, priv.Update, false, "")
		} else {
			w.tables(st.Table, hidden, priv.Select|priv.Update, true, "SELECT")
		}
		rest.With, rest.Table = nil, nil
		w.walk(&rest, hidden)
	case *ast.Delete:
		hidden := w.with(st.With, nil)
		rest := *st
		rest.With = nil
		if one, ok := st.From.(*ast.TableRef); ok && st.Targets == nil {
			w.target(one, hidden, priv.Delete, false, "")
			rest.From = nil
		} else {
			w.deleted(st, hidden)
		}
		w.walk(&rest, hidden)
	default:
		w.walk(st, nil)
	}
	return w.list
}

// askList gathers asks.
type askList struct {
	schema string
	list   []ask
}

func (w *askList) add(t ast.TableName, need priv.Mask, any bool, command string) {
	if t.Schema == "" {
		t.Schema = w.schema
	}
	if t.Schema == "" {
		return // error 1046 is to come
	}
	a := ask{t.Schema, t.Name, need, any, command}
	if !slices.Contains(w.list, a) {
		w.list = append(w.list, a)
	}
}

// target adds a table that is not one of WITH.
func (w *askList) target(t *ast.TableRef, hidden []string, need priv.Mask, any bool, command string) {
	if t.Schema != "" || !slices.Contains(hidden, t.Name) {
		w.add(t.TableName, need, any, command)
	}
}

// tables adds the tables of a join, and what its derived tables and conditions read.
func (w *askList) tables(t ast.TableExpr, hidden []string, need priv.Mask, any bool, command string) {
	switch t := t.(type) {
	case *ast.TableRef:
		w.target(t, hidden, need, any, command)
	case *ast.Join:
		w.tables(t.Left, hidden, need, any, command)
		w.tables(t.Right, hidden, need, any, command)
		if t.On != nil {
			w.walk(t.On, hidden)
		}
	default:
		w.walk(t, hidden)
	}
}

// deleted adds the targets of a DELETE of several tables, which have the names or aliases of those it reads.
func (w *askList) deleted(st *ast.Delete, hidden []string) {
	inspect(st.From, func(n ast.Node) bool {
		t, ok := n.(*ast.TableRef)
		if !ok {
			_, query := n.(ast.Query)
			return !query
		}
		for _, target := range st.Targets {
			named := t.Alias != "" && target.Schema == "" && target.Name == t.Alias
			if named || t.Alias == "" && target.Name == t.Name && (target.Schema == "" || t.Schema == "" || target.Schema == t.Schema) {
				w.target(t, hidden, priv.Delete, false, "")
			}
		}
		return true
	})
}

// with adds what the tables of a WITH clause read, and returns the names that stand for them and those of around.
func (w *askList) with(with *ast.With, hidden []string) []string {
	if with == nil {
		return hidden
	}
	hidden = slices.Clone(hidden)
	for i := range with.Tables {
		t := &with.Tables[i]
		if with.Recursive {
			hidden = append(hidden, t.Name)
		}
		w.walk(t.Query, hidden)
		hidden = append(hidden, t.Name)
	}
	return hidden
}

// walk adds the tables that are read below a node, but those of hidden, which a WITH clause has made.
func (w *askList) walk(n ast.Node, hidden []string) {
	inspect(n, func(n ast.Node) bool {
		switch q := n.(type) {
		case *ast.TableRef:
			w.target(q, hidden, priv.Select, false, "")
		case *ast.Select:
			if q.With != nil {
				rest := *q
				rest.With = nil
				w.walk(&rest, w.with(q.With, hidden))
				return false
			}
		case *ast.SetOp:
			if q.With != nil {
				rest := *q
				rest.With = nil
				w.walk(&rest, w.with(q.With, hidden))
				return false
			}
		case *ast.Values:
			if q.With != nil {
				rest := *q
				rest.With = nil
				w.walk(&rest, w.with(q.With, hidden))
				return false
			}
		}
		return true
	})
}
