package ast

import (
	"strings"

	past "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// query converts what gives rows.
func (c *converter) query(n past.ResultSetNode) Query {
	switch n := n.(type) {
	case *past.SelectStmt:
		return c.selectStmt(n)
	case *past.SetOprStmt:
		return c.setOpr(n)
	case *past.SubqueryExpr:
		return c.query(n.Query)
	}
	c.refuse()
	return &Select{}
}

func (c *converter) selectStmt(n *past.SelectStmt) Query {
	switch n.Kind {
	case past.SelectStmtKindValues:
		return c.values(n)
	case past.SelectStmtKindTable:
		s := &Select{With: c.with(n.With), Items: []SelectItem{{Star: true}}}
		c.tail(n, s)
		return s
	}
	s := &Select{With: c.with(n.With), Distinct: n.Distinct}
	if o := n.SelectStmtOpts; o != nil {
		s.Options = selectOptions(o)
	}
	if n.Fields != nil {
		s.Items = make([]SelectItem, len(n.Fields.Fields))
		for i, f := range n.Fields.Fields {
			c.item(&s.Items[i], f)
		}
	}
	c.tail(n, s)
	return s
}

// tail converts what follows the items.
func (c *converter) tail(n *past.SelectStmt, s *Select) {
	if n.From != nil {
		s.From = c.from(n.From)
	}
	s.Where = c.opt(n.Where)
	if n.GroupBy != nil {
		s.GroupBy = c.order(n.GroupBy.Items)
		for _, item := range n.GroupBy.Items {
			if !item.NullOrder {
				c.refuse() // ASC and DESC are no more
			}
		}
		s.Rollup = n.GroupBy.Rollup
	}
	if n.Having != nil {
		s.Having = c.expr(n.Having.Expr)
	}
	for i := range n.WindowSpecs {
		s.Windows = append(s.Windows, c.window(&n.WindowSpecs[i]))
	}
	s.OrderBy = c.orderBy(n.OrderBy)
	s.Limit = c.limit(n.Limit)
	s.Lock = c.lock(n.LockInfo)
	if n.SelectIntoOpt != nil {
		c.fail(sqlerr.New(sqlerr.MisplacedInto))
	}
}

func selectOptions(o *past.SelectStmtOpts) (out SelectOptions) {
	for _, f := range [...]struct {
		on   bool
		flag SelectOptions
	}{
		{o.StraightJoin, SelectStraightJoin},
		{o.Priority == mysql.HighPriority, SelectHighPriority},
		{o.SQLSmallResult, SelectSmallResult},
		{o.SQLBigResult, SelectBigResult},
		{o.SQLBufferResult, SelectBufferResult},
		{!o.SQLCache, SelectNoCache},
		{o.CalcFoundRows, SelectCalcFoundRows},
	} {
		if f.on {
			out |= f.flag
		}
	}
	return out
}

func (c *converter) item(out *SelectItem, f *past.SelectField) {
	if f.WildCard != nil {
		out.Star, out.Schema, out.Table = true, f.WildCard.Schema.O, f.WildCard.Table.O
		return
	}
	out.Expr = c.expr(f.Expr)
	out.Alias = strings.ToValidUTF8(f.AsName.O, "?")
	if out.Alias != "" {
		return
	}
	out.Text = strings.ToValidUTF8(c.itemText(f), "?")
}

// itemText returns an item as written.
func (c *converter) itemText(f *past.SelectField) string {
	if v, ok := f.Expr.(*valueNode); ok {
		if s, ok := v.value.(string); ok {
			if v.first > 1 {
				s = s[:v.first-1]
			}
			return s // a string's name is its value
		}
	}
	if _, ok := f.Expr.(*paramNode); ok {
		return "?" // the grammar finds no text if a word follows at once
	}
	start, end := c.at(f.Offset), c.at(f.Offset+len(f.OriginalText()))
	if start < 0 || end > len(c.sql) {
		return f.OriginalText()
	}
	return trimItem(c.sql[start:end])
}

// trimItem cuts spaces and comments off the end of an item.
func trimItem(s string) string {
	for {
		s = strings.TrimRight(s, " \t\n\v\f\r;")
		if !strings.HasSuffix(s, "*/") {
			return s
		}
		i := strings.LastIndex(s, "/*")
		if i < 0 {
			return strings.TrimSuffix(s, "*/")
		}
		s = s[:i]
	}
}

func (c *converter) values(n *past.SelectStmt) Query {
	v := &Values{With: c.with(n.With), OrderBy: c.orderBy(n.OrderBy), Limit: c.limit(n.Limit)}
	for _, row := range n.Lists {
		v.Rows = append(v.Rows, c.exprs(row.Values))
	}
	return v
}

// setOpr converts a list of queries with operators before each but the first.
func (c *converter) setOpr(n *past.SetOprStmt) Query {
	q := c.setOprList(n.SelectList.Selects)
	if n.OrderBy == nil && n.Limit == nil && n.With == nil {
		return q
	}
	s := withoutClauses(q)
	s.With = c.with(n.With)
	s.OrderBy = c.orderBy(n.OrderBy)
	s.Limit = c.limit(n.Limit)
	return s
}

// withoutClauses returns a query as a set operation that may get clauses: those that it has itself come before.
func withoutClauses(q Query) *SetOp {
	s, ok := q.(*SetOp)
	if !ok || s.With != nil || s.OrderBy != nil || s.Limit != nil {
		s = &SetOp{Op: SetNone, Left: q}
	}
	return s
}

// setOprList builds a tree: INTERSECT binds closer than UNION and EXCEPT, which
// associate to the left.
func (c *converter) setOprList(nodes []past.Node) Query {
	var left Query
	var pending *SetOp // the operator whose right side may still be taken by INTERSECT
	for i, node := range nodes {
		q, op := c.setOprItem(node)
		if i == 0 {
			left = q
			continue
		}
		s := &SetOp{}
		switch op {
		case past.Union, past.UnionAll:
			s.Op, s.All = SetUnion, op == past.UnionAll
		case past.Except, past.ExceptAll:
			s.Op, s.All = SetExcept, op == past.ExceptAll
		case past.Intersect, past.IntersectAll:
			s.Op, s.All = SetIntersect, op == past.IntersectAll
			if pending != nil {
				s.Left, s.Right = pending.Right, q
				pending.Right = s
				continue
			}
		}
		s.Left, s.Right = left, q
		left = s
		if s.Op != SetIntersect {
			pending = s
		}
	}
	return left
}

// setOprItem converts one query of a list.
func (c *converter) setOprItem(node past.Node) (Query, past.SetOprType) {
	var after *past.SetOprType
	var q Query
	switch n := node.(type) {
	case *past.SelectStmt:
		after = n.AfterSetOperator
		q = c.selectStmt(n)
	case *past.SetOprSelectList:
		after = n.AfterSetOperator
		q = c.setOprList(n.Selects)
		if n.With != nil || n.OrderBy != nil || n.Limit != nil {
			q = c.wrapped(n, q)
		}
	case *past.SetOprStmt:
		q = c.setOpr(n)
	default:
		c.refuse()
		q = &Select{}
	}
	if after == nil {
		return q, past.Union
	}
	return q, *after
}

// wrapped gives a bracketed list its own clauses.
func (c *converter) wrapped(n *past.SetOprSelectList, q Query) Query {
	if sel, is := q.(*Select); is && n.OrderBy == nil && n.Limit == nil {
		if sel.With == nil {
			sel.With = c.with(n.With)
		}
		return sel
	}
	s := withoutClauses(q)
	s.With = c.with(n.With)
	s.OrderBy = c.orderBy(n.OrderBy)
	s.Limit = c.limit(n.Limit)
	return s
}

func (c *converter) with(n *past.WithClause) *With {
	if n == nil {
		return nil
	}
	w := &With{Recursive: n.IsRecursive, Tables: make([]CommonTable, len(n.CTEs))}
	for i, t := range n.CTEs {
		w.Tables[i] = CommonTable{Name: t.Name.O, Columns: names(t.ColNameList), Query: c.query(t.Query.Query)}
	}
	return w
}

func names(list []past.CIStr) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.O
	}
	return out
}

func columnNames(list []*past.ColumnName) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Name.O
	}
	return out
}

func (c *converter) orderBy(n *past.OrderByClause) []OrderItem {
	if n == nil {
		return nil
	}
	return c.order(n.Items)
}

func (c *converter) order(items []*past.ByItem) []OrderItem {
	out := make([]OrderItem, len(items))
	for i, item := range items {
		out[i] = OrderItem{Expr: c.expr(item.Expr), Desc: item.Desc}
	}
	return out
}

func (c *converter) limit(n *past.Limit) *Limit {
	if n == nil {
		return nil
	}
	return &Limit{Count: c.opt(n.Count), Offset: c.opt(n.Offset)}
}

func (c *converter) lock(n *past.SelectLockInfo) *Lock {
	if n == nil || n.LockType == past.SelectLockNone {
		return nil
	}
	l := &Lock{}
	switch n.LockType {
	case past.SelectLockForShare, past.SelectLockForShareNoWait, past.SelectLockForShareSkipLocked:
		l.Strength = LockShare
	case past.SelectLockForUpdateWaitN:
		c.refuse()
	}
	switch n.LockType {
	case past.SelectLockForUpdateNoWait, past.SelectLockForShareNoWait:
		l.Wait = LockNoWait
	case past.SelectLockForUpdateSkipLocked, past.SelectLockForShareSkipLocked:
		l.Wait = LockSkipLocked
	}
	for _, t := range n.Tables {
		l.Of = append(l.Of, c.tableName(t))
	}
	return l
}

func (c *converter) from(n *past.TableRefsClause) TableExpr { return c.tableExpr(n.TableRefs) }

func (c *converter) tableExpr(n past.ResultSetNode) TableExpr {
	switch n := n.(type) {
	case *past.Join:
		return c.join(n)
	case *past.TableSource:
		return c.tableSource(n)
	case *past.TableName:
		return c.tableRef(n)
	}
	c.refuse()
	return &TableRef{}
}

func (c *converter) join(n *past.Join) TableExpr {
	left := c.tableExpr(n.Left)
	if n.Right == nil {
		return left
	}
	j := &Join{Left: left, Right: c.tableExpr(n.Right), Natural: n.NaturalJoin, Straight: n.StraightJoin}
	switch n.Tp {
	case past.LeftJoin:
		j.Kind = JoinLeft
	case past.RightJoin:
		j.Kind = JoinRight
	}
	if n.On != nil {
		j.On = c.expr(n.On.Expr)
	}
	if len(n.Using) > 0 {
		j.Using = columnNames(n.Using)
	}
	return j
}

func (c *converter) tableSource(n *past.TableSource) TableExpr {
	switch s := n.Source.(type) {
	case *past.TableName:
		t := c.tableRef(s)
		t.Alias = n.AsName.O
		return t
	case *past.SelectStmt, *past.SetOprStmt:
		if t := c.jsonTable(n); t != nil {
			return t
		}
		d := &Derived{Query: c.query(n.Source), Alias: n.AsName.O, Columns: names(n.ColumnNames), Lateral: n.Lateral}
		if d.Alias == "" {
			c.fail(sqlerr.New(sqlerr.DerivedMustHaveAlias))
		}
		c.columnsFor(d)
		return d
	}
	return c.tableExpr(n.Source)
}

func (c *converter) tableRef(n *past.TableName) *TableRef {
	t := &TableRef{TableName: c.tableName(n), Partitions: names(n.PartitionNames)}
	for _, h := range n.IndexHints {
		hint := IndexHint{Indexes: names(h.IndexNames)}
		switch h.HintType {
		case past.HintForce:
			hint.Kind = HintForce
		case past.HintIgnore:
			hint.Kind = HintIgnore
		case past.HintUse:
		default:
			c.refuse()
		}
		switch h.HintScope {
		case past.HintForJoin:
			hint.Scope = HintForJoin
		case past.HintForOrderBy:
			hint.Scope = HintForOrderBy
		case past.HintForGroupBy:
			hint.Scope = HintForGroupBy
		}
		t.Hints = append(t.Hints, hint)
	}
	return t
}

// tableName converts a name with no clauses but those that tableRef converts.
func (c *converter) tableName(n *past.TableName) TableName {
	if n.TableSample != nil || n.AsOf != nil {
		c.refuse()
	}
	return TableName{Schema: n.Schema.O, Name: n.Name.O}
}

func (c *converter) tableNames(list []*past.TableName) []TableName {
	out := make([]TableName, len(list))
	for i, n := range list {
		out[i] = c.tableName(n)
	}
	return out
}
