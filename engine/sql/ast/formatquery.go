package ast

func (f *formatter) query(q Query) {
	switch q := q.(type) {
	case *Select:
		f.selectQuery(q)
	case *SetOp:
		f.setOp(q)
	case *Values:
		f.with(q.With)
		f.s("values ")
		f.list(len(q.Rows), func(i int) { f.s("row"); f.args(q.Rows[i]) })
		f.orderBy(q.OrderBy)
		f.limit(q.Limit)
		f.into(q.Into)
	}
}

var optionWords = [...]string{
	"straight_join ", "high_priority ", "sql_small_result ", "sql_big_result ", "sql_buffer_result ", "sql_no_cache ",
	"sql_calc_found_rows ",
}

func (f *formatter) selectQuery(s *Select) {
	f.with(s.With)
	f.s("select ")
	f.hints(s.Hints)
	f.opt(s.Distinct, "distinct ")
	for i, w := range optionWords {
		f.opt(s.Options&(1<<i) != 0, w)
	}
	f.list(len(s.Items), func(i int) { f.item(&s.Items[i]) })
	if s.From != nil {
		f.s(" from ")
		f.tableExpr(s.From)
	} else if s.Where != nil || s.GroupBy != nil {
		f.s(" from dual")
	}
	f.where(s.Where)
	if s.GroupBy != nil {
		f.s(" group by ")
		f.order(s.GroupBy)
		f.opt(s.Rollup, " with rollup")
	}
	if s.Having != nil {
		f.s(" having ")
		f.expr(s.Having)
	}
	for i := range s.Windows {
		if i == 0 {
			f.s(" window ")
		} else {
			f.s(",")
		}
		f.name(s.Windows[i].Name)
		f.s(" as ")
		f.window(&s.Windows[i])
	}
	f.orderBy(s.OrderBy)
	f.limit(s.Limit)
	f.lock(s.Lock)
	f.into(s.Into)
}

func (f *formatter) hints(list []Hint) {
	if len(list) == 0 {
		return
	}
	f.s("/*+ ")
	for _, h := range list {
		if h.Bad {
			f.s(h.Args, " ")
			continue
		}
		f.s(h.Name, "(", h.Args, ") ")
	}
	f.s("*/ ")
}

func (f *formatter) item(i *SelectItem) {
	if i.Star {
		if i.Schema != "" {
			f.name(i.Schema)
			f.s(".")
		}
		if i.Table != "" {
			f.name(i.Table)
			f.s(".")
		}
		f.s("*")
		return
	}
	f.expr(i.Expr)
	alias := i.Alias
	if _, ok := i.Expr.(*ColumnRef); !ok && alias == "" {
		alias = i.Text
	}
	if alias != "" {
		f.s(" AS ")
		f.name(alias)
	}
}

func (f *formatter) setOp(s *SetOp) {
	f.with(s.With)
	if l, ok := s.Left.(*SetOp); ok && l.Right != nil && l.With == nil && l.OrderBy == nil && l.Limit == nil &&
		l.Lock == nil && (s.Op != SetIntersect || l.Op == SetIntersect) {
		f.setOp(l) // associates to the left without brackets
	} else {
		f.operand(s.Left)
	}
	if s.Right != nil {
		f.s([...]string{"", " union ", " except ", " intersect "}[s.Op])
		f.opt(s.All, "all ")
		f.operand(s.Right)
	}
	f.orderBy(s.OrderBy)
	f.limit(s.Limit)
	f.lock(s.Lock)
	f.into(s.Into)
}

// operand writes one side of a set operation, always in brackets.
func (f *formatter) operand(q Query) {
	f.s("(")
	f.query(q)
	f.s(")")
}

func (f *formatter) with(w *With) {
	if w == nil {
		return
	}
	f.s("with ")
	f.opt(w.Recursive, "recursive ")
	f.list(len(w.Tables), func(i int) {
		t := &w.Tables[i]
		f.name(t.Name)
		if t.Columns != nil {
			f.s(" ")
			f.names(t.Columns)
		}
		f.s(" as ")
		f.subquery(t.Query)
	})
	f.s(" ")
}

func (f *formatter) where(e Expr) {
	if e != nil {
		f.s(" where ")
		f.expr(e)
	}
}

func (f *formatter) orderBy(list []OrderItem) {
	if list != nil {
		f.s(" order by ")
		f.order(list)
	}
}

func (f *formatter) order(list []OrderItem) {
	f.list(len(list), func(i int) {
		f.expr(list[i].Expr)
		f.opt(list[i].Desc, " desc")
	})
}

func (f *formatter) limit(l *Limit) {
	if l == nil {
		return
	}
	f.s(" limit ")
	if o, ok := l.Offset.(*Param); ok && len(f.params) == 0 {
		if c, ok := l.Count.(*Param); ok && o.Index < c.Index {
			f.expr(o) // the order of parameters is that of the text
			f.s(",")
			f.expr(c)
			return
		}
	}
	f.expr(l.Count)
	if l.Offset != nil {
		f.s(" offset ")
		f.expr(l.Offset)
	}
}

func (f *formatter) lock(l *Lock) {
	if l == nil {
		return
	}
	if l.Strength == LockShare {
		f.s(" for share")
	} else {
		f.s(" for update")
	}
	if l.Of != nil {
		f.s(" of ")
		f.tables(l.Of)
	}
	f.s([...]string{"", " nowait", " skip locked"}[l.Wait])
}

func (f *formatter) table(t TableName) {
	if t.Schema != "" {
		f.name(t.Schema)
		f.s(".")
	}
	f.name(t.Name)
}

func (f *formatter) tables(list []TableName) {
	f.list(len(list), func(i int) { f.table(list[i]) })
}

func (f *formatter) tableExpr(t TableExpr) {
	switch t := t.(type) {
	case *TableRef:
		f.tableRef(t)
	case *Derived:
		f.opt(t.Lateral, "lateral ")
		f.subquery(t.Query)
		f.s(" ")
		f.name(t.Alias)
		if t.Columns != nil {
			f.s(" ")
			f.names(t.Columns)
		}
	case *JSONTable:
		f.jsonTable(t)
	case *Join:
		f.join(t)
	}
}

func (f *formatter) tableRef(t *TableRef) {
	f.table(t.TableName)
	if t.Partitions != nil {
		f.s(" partition ")
		f.names(t.Partitions)
	}
	if t.Alias != "" {
		f.s(" ")
		f.name(t.Alias)
	}
	for _, h := range t.Hints {
		f.s([...]string{" use", " force", " ignore"}[h.Kind], " index ")
		f.s([...]string{"", "for join ", "for order by ", "for group by "}[h.Scope])
		f.names(h.Indexes)
	}
}

func (f *formatter) join(j *Join) {
	f.s("(")
	f.tableExpr(j.Left)
	f.opt(j.Natural, " natural")
	switch {
	case j.Straight:
		f.s(" straight_join ")
	case j.Kind == JoinLeft:
		f.s(" left join ")
	case j.Kind == JoinRight:
		f.s(" right join ")
	default:
		f.s(" join ")
	}
	f.tableExpr(j.Right)
	if j.On != nil {
		f.s(" on ")
		f.expr(j.On)
	}
	if j.Using != nil {
		f.s(" using ")
		f.names(j.Using)
	}
	f.s(")")
}
