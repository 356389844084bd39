package session

import (
	"context"
	"strconv"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// createView is CREATE VIEW and ALTER VIEW. A view is a table without rows, with the
// columns of its query.
func (s *Session) createView(ctx context.Context, st *ast.CreateView) error {
	schema, name, err := s.tableName(st.View)
	if err != nil {
		return err
	}
	if err := catalog.CheckName(name, sqlerr.WrongTableName); err != nil {
		return err
	}
	need := priv.CreateView
	if st.OrReplace || st.Alter {
		need |= priv.Drop
	}
	if err := s.privileges().Table(schema, name, need, "CREATE VIEW"); err != nil {
		return err
	}
	if err := s.mayOpen(asksOf(st.Query, s.schema)); err != nil {
		return err
	}
	of, err := s.definers()
	if err == nil {
		err = of.mayName(s, st)
	}
	if err != nil {
		return err
	}
	return s.inTransaction(ctx, func() error {
		if err := s.txn.LockDefinitions(txn.Name{Schema: schema, Table: name}); err != nil {
			return err
		}
		old, err := s.definition(schema, name)
		switch {
		case err != nil:
			return err
		case old != nil && !catalog.IsView(old) && (st.OrReplace || st.Alter):
			return sqlerr.New(sqlerr.WrongObject, schema, name, "VIEW")
		case old != nil && !st.OrReplace && !st.Alter:
			return sqlerr.New(sqlerr.TableExistsError, name)
		case old == nil && st.Alter:
			return sqlerr.New(sqlerr.NoSuchTable, schema, name)
		}
		if st.Alter { // what it does not say stays as it is
			if st, err = altered(s, of, st, old); err != nil {
				return err
			}
		}
		def, err := s.viewDefinition(schema, name, st)
		if err != nil {
			return err
		}
		if old != nil {
			if _, err := s.txn.DropTable(schema, name, nil); err != nil {
				return err
			}
		}
		catalog.SetTimes(def, s.x.Now.UnixMicro(), 0)
		_, err = s.txn.CreateTable(def, s.textOf(st))
		return err
	})
}

// altered is ALTER VIEW with what it does not say: the definer of the view as it is.
func altered(s *Session, of definers, st *ast.CreateView, old *record.Table) (*ast.CreateView, error) {
	v, _ := catalog.ViewOf(old)
	if st.Definer != nil {
		return st, nil
	}
	next := *st
	next.Definer = &ast.User{Name: v.Definer.Name, Host: v.Definer.Host}
	return &next, of.mayName(s, &next)
}

// definers are the accounts among which a view has its definer, and what the session may do. They are got before a
// definition is locked: they may have to be read, and who writes them may wait for the lock.
type definers struct {
	by  *priv.Active
	set *priv.Set // nil: there are no accounts
}

func (s *Session) definers() (definers, error) {
	k, err := s.m.accounts()
	if err != nil {
		return definers{}, err
	}
	return definers{s.privileges(), k.set}, nil
}

// mayName checks that a view may have the definer that a statement names. Error: 1227.
func (d definers) mayName(s *Session, st *ast.CreateView) error {
	if st.Definer == nil || st.Definer.Current {
		return nil
	}
	id, err := s.userID(*st.Definer)
	if err != nil || id == s.accountID() {
		return err
	}
	if err := d.by.Needs(priv.Super, "SET_ANY_DEFINER"); err != nil || d.set == nil {
		return err
	}
	if d.set.Account(id) == nil {
		if err := d.by.Needs(priv.Super, priv.OrphanDefiner); err != nil {
			return err
		}
		s.note(sqlerr.New(sqlerr.NoSuchUser, id.Text()))
	}
	return d.mayTouch(id)
}

// mayTouch checks that the session may have a hand in what an account defines. Error: 1227.
func (d definers) mayTouch(definer priv.ID) error {
	if d.set != nil && !d.by.SystemUser() && d.set.SystemDefiner(definer) {
		return d.by.Needs(0, priv.SystemUser)
	}
	return nil
}

// viewDefinition makes the table that stands for a view.
func (s *Session) viewDefinition(schema, name string, st *ast.CreateView) (*record.Table, error) {
	s.trx.multi = true
	c := &compiled{kind: st.Query, asks: asksOf(st.Query, s.schema)}
	l := &schemaCatalog{s: s, c: c}
	q, err := plan.Select(s.planEnv(l, nil), st.Query)
	if err != nil {
		return nil, s.hideColumns(c, err)
	}
	if l.temporary != "" {
		return nil, sqlerr.New(sqlerr.ViewSelectTmpTable, l.temporary)
	}
	if err := s.mayRun(q.Uses, "SELECT", st.Query); err != nil {
		return nil, err
	}
	for _, u := range q.Uses {
		if u.Schema == schema && u.Table == name {
			return nil, sqlerr.New(sqlerr.NoSuchTable, schema, name) // it would read itself
		}
	}
	def := &record.Table{Schema: schema, Name: name, Collation: types.CollationUTF8MB40900AI, NextColumn: 1}
	if len(st.Columns) > 0 && len(st.Columns) != len(q.Columns) {
		return nil, sqlerr.New(sqlerr.ViewWrongList)
	}
	seen := map[string]bool{}
	for i := range q.Columns {
		col := record.Column{ID: def.NextColumn, Name: q.Columns[i].Name, Type: columnTypeOf(q.Columns[i].Type), AddedIn: record.FirstRowVersion}
		if len(st.Columns) > 0 {
			col.Name = st.Columns[i]
		}
		col.Name = viewColumnName(col.Name, i)
		if err := catalog.CheckName(col.Name, sqlerr.WrongColumnName); err != nil {
			return nil, err
		}
		if seen[foldName(col.Name)] {
			return nil, sqlerr.New(sqlerr.DupFieldName, col.Name)
		}
		seen[foldName(col.Name)] = true
		def.NextColumn++
		def.Columns = append(def.Columns, col)
	}
	definer := ast.User{Name: s.info.AccountUser, Host: s.info.AccountHost}
	if definer.Name == "" && definer.Host == "" {
		definer = ast.User{Name: s.info.User, Host: s.info.Host}
	}
	if st.Definer != nil && !st.Definer.Current {
		definer = *st.Definer
	}
	if st.CheckOption != "" && !s.isUpdatable(st.Query, s.schema, st.Algorithm == "TEMPTABLE", viewsDeep) {
		return nil, sqlerr.New(sqlerr.ViewNonUpdCheck, schema, name)
	}
	catalog.SetView(def, catalog.View{Query: ast.Format(expandStars(st.Query, q.Columns)), Named: len(st.Columns) > 0, Schema: s.schema, Definer: definer,
		Invoker: st.Invoker, Algorithm: st.Algorithm, CheckOption: st.CheckOption, Client: "utf8mb4", Connection: collationText(s.x.Collation)})
	return def, nil
}

// viewColumnName is the name of a view's column. Names of expressions that could be none
// are replaced, as MySQL does.
func viewColumnName(name string, i int) string {
	if name == "" || len(name) > 64 || name[len(name)-1] == ' ' {
		return "Name_exp_" + strconv.Itoa(i+1)
	}
	return name
}

// qualified is the text of a query in which tables that are named without a schema have one.
func qualified(text, schema string) string {
	list, err := ast.Parse(text, ast.ModeAllowInvalidDates)
	if err != nil || len(list) != 1 {
		return text
	}
	common := map[string]bool{}
	inspect(list[0], func(n ast.Node) bool {
		var with *ast.With
		switch n := n.(type) {
		case *ast.Select:
			with = n.With
		case *ast.SetOp:
			with = n.With
		case *ast.Values:
			with = n.With
		}
		if with != nil {
			for _, t := range with.Tables {
				common[foldName(t.Name)] = true
			}
		}
		return true
	})
	inspect(list[0], func(n ast.Node) bool {
		if t, ok := n.(*ast.TableRef); ok && t.Schema == "" && !common[foldName(t.Name)] {
			t.Schema = schema
		}
		return true
	})
	return ast.Format(list[0])
}

func collationText(id types.CollationID) string {
	if c := types.CollationByID(id); c != nil {
		return c.Name()
	}
	return ""
}

// expandStars writes the columns of a query out, so that a view keeps its columns when
// tables get more. In a set operation stars stay.
func expandStars(q ast.Query, columns []plan.Column) ast.Query {
	sel, ok := q.(*ast.Select)
	if !ok {
		return q
	}
	stars := 0
	for i := range sel.Items {
		if sel.Items[i].Star {
			stars++
		}
	}
	if stars == 0 {
		return q
	}
	free := len(columns) - (len(sel.Items) - stars) // columns that stars stand for
	var items []ast.SelectItem
	at := 0
	for i := range sel.Items {
		it := sel.Items[i]
		if !it.Star {
			items = append(items, it)
			at++
			continue
		}
		stars--
		n := free
		switch {
		case it.Table == "" && stars > 0:
			return q // which columns are whose cannot be told
		case stars > 0:
			for n = 0; n < free && columns[at+n].Table == it.Table; {
				n++
			}
		}
		for _, c := range columns[at : at+n] {
			items = append(items, ast.SelectItem{Expr: &ast.ColumnRef{Table: c.Table, Name: c.OrgName}, Alias: c.Name, Text: c.Name})
			if c.OrgName == "" {
				items[len(items)-1].Expr = &ast.ColumnRef{Table: c.Table, Name: c.Name}
			}
		}
		at, free = at+n, free-n
	}
	out := *sel
	out.Items = items
	return &out
}

// dropViews is DROP VIEW.
func (s *Session) dropViews(ctx context.Context, st *ast.DropView) error {
	of, err := s.definers()
	if err != nil {
		return err
	}
	return s.inTransaction(ctx, func() error {
		var names []txn.Name
		for _, v := range st.Views {
			schema, name, err := s.tableName(v)
			if err != nil {
				return err
			}
			if err := s.privileges().Table(schema, name, priv.Drop, "DROP"); err != nil {
				return err
			}
			names = append(names, txn.Name{Schema: schema, Table: name})
		}
		if err := s.txn.LockDefinitions(names...); err != nil {
			return err
		}
		var missing []string
		for _, n := range names {
			schema, name := n.Schema, n.Table
			def, err := s.definition(schema, name)
			switch {
			case err != nil:
				return err
			case def == nil:
				missing = append(missing, schema+"."+name)
				continue
			case !catalog.IsView(def):
				return sqlerr.New(sqlerr.WrongObject, schema, name, "VIEW")
			}
			v, _ := catalog.ViewOf(def)
			if err := of.mayTouch(priv.NewID(v.Definer.Name, v.Definer.Host)); err != nil {
				return err
			}
			text := s.logged("DROP VIEW " + catalog.QuoteName(schema) + "." + catalog.QuoteName(name))
			if _, err := s.txn.DropTable(schema, name, text); err != nil {
				return err
			}
		}
		for _, m := range missing {
			e := sqlerr.New(sqlerr.BadTableError, m)
			if !st.IfExists {
				return e
			}
			s.note(e)
		}
		return nil
	})
}
