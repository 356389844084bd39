package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// Tree writes a plan as EXPLAIN FORMAT=TREE shows it: a line for each operator, its
// inputs below it. note, if not nil, adds to a line what a run has measured.
func Tree(root Node, note func(Node) string) string {
	w := &treeWriter{note: note, seen: map[int]bool{}}
	w.node(root, 0)
	return w.b.String()
}

// treeWriter writes plans. Nesting is bounded by that of statements.
type treeWriter struct {
	b    strings.Builder
	note func(Node) string
	seen map[int]bool // shared tables that have been written
}

func (w *treeWriter) line(depth int, n Node, text string) {
	w.b.WriteString(strings.Repeat("    ", depth))
	w.b.WriteString("-> ")
	w.b.WriteString(text)
	if n != nil {
		est := n.Estimate()
		fmt.Fprintf(&w.b, "  (cost=%s rows=%s)", figure(est.Cost), figure(est.Rows))
		if w.note != nil {
			w.b.WriteString(w.note(n))
		}
	}
	w.b.WriteByte('\n')
}

// figure writes an estimate with three digits.
func figure(f float64) string {
	if f < 1000 {
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	return strconv.FormatFloat(f, 'f', 0, 64)
}

// node writes an operator, its subqueries and its inputs.
func (w *treeWriter) node(n Node, depth int) {
	if m, ok := n.(*Materialize); ok && w.seen[m.ID] {
		w.line(depth, n, "Scan on "+m.alias())
		return
	} else if ok {
		w.seen[m.ID] = true
	}
	w.line(depth, n, describe(n))
	for _, c := range n.Children() {
		w.node(c, depth+1)
	}
	if j, ok := n.(*IndexLookupJoin); ok {
		w.line(depth+1, nil, describeLookup(j))
	}
	for _, s := range subqueriesOf(n) {
		kind := "run only once"
		if len(s.Slots) > 0 {
			kind = "dependent"
		}
		w.line(depth+1, nil, fmt.Sprintf("Select #%d (subquery; %s)", s.Number+2, kind))
		w.node(s.Root, depth+2)
	}
}

func (m *Materialize) alias() string {
	if len(m.Cols) > 0 && m.Cols[0].Table != "" && m.Cols[0].Table != m.Name {
		return m.Cols[0].Table + " (" + m.Name + ")"
	}
	return m.Name
}

// subqueriesOf lists the subqueries in an operator's own expressions, each once.
func subqueriesOf(n Node) []*Subquery {
	var list []*Subquery
	for _, e := range Expressions(n) {
		expr.Walk(e, func(e expr.Node) bool {
			if s, ok := e.(*Subquery); ok {
				for _, o := range list {
					if o.Number == s.Number {
						return true
					}
				}
				list = append(list, s)
			}
			return true
		})
	}
	return list
}

// describe is an operator's line.
func describe(n Node) string {
	switch n := n.(type) {
	case *PointGet:
		return describePoint(n)
	case *TableScan:
		return describeScan(n)
	case *VirtualScan:
		return withFilter("Table scan on "+n.Alias, n.Filter)
	case *Values:
		return describeValues(n)
	case *JSONTableScan:
		return "Table function json_table on " + n.Alias + " (" + text(n.Doc) + ")"
	case *Filter:
		return "Filter: " + text(n.Predicate)
	case *Project:
		return "Project: " + texts(n.Exprs)
	case *Limit:
		return "Limit: " + limitText(n.Count, n.Offset)
	case *Sort:
		return "Sort: " + keysText(n.Keys)
	case *TopN:
		return "Top-N sort: " + keysText(n.Keys) + ", limit " + limitText(n.Count, n.Offset)
	case *HashAggregate:
		s := aggregateText("Hash aggregate", n.Groups, n.Aggregates)
		if n.Rollup {
			s += ", with rollup"
		}
		return s
	case *StreamAggregate:
		if len(n.Groups) == 0 {
			return aggregateText("Aggregate", nil, n.Aggregates)
		}
		return aggregateText("Group aggregate", n.Groups, n.Aggregates)
	case *Window:
		return describeWindow(n)
	case *Distinct:
		return "Distinct"
	case *SetOperation:
		return describeSet(n)
	case *Materialize:
		s := "Materialize " + n.alias()
		if len(n.Slots) > 0 {
			s += " (again when " + strconv.Itoa(len(n.Slots)) + " outer values change)"
		}
		return s
	case *RecursiveCTE:
		if n.Distinct {
			return "Repeat until no new rows (distinct)"
		}
		return "Repeat until no new rows"
	case *WorkTable:
		return "Scan new rows on " + tableOf(n.Cols)
	}
	return describeJoin(n)
}

func describeJoin(n Node) string {
	switch n := n.(type) {
	case *NestedLoopJoin:
		s := "Nested loop " + n.Kind.String() + " join"
		if len(n.Bindings) > 0 {
			list := make([]string, len(n.Bindings))
			for i, b := range n.Bindings {
				list[i] = text(b.Expr)
			}
			s += " (run for each " + strings.Join(list, ", ") + ")"
		}
		return withCondition(s, n.Condition)
	case *HashJoin:
		list := make([]string, len(n.LeftKeys))
		for i := range n.LeftKeys {
			op := " = "
			if n.NullSafe != nil && n.NullSafe[i] {
				op = " <=> "
			}
			list[i] = text(n.LeftKeys[i]) + op + text(n.RightKeys[i])
		}
		s := title(n.Kind.String()) + " hash join (" + strings.Join(list, ", ") + ")"
		if n.BuildLeft {
			s += " (hash of the left side)"
		}
		return withCondition(s, n.Condition)
	case *IndexLookupJoin:
		return withCondition("Lookup "+n.Kind.String()+" join", n.Condition)
	}
	return fmt.Sprintf("%T", n)
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func withFilter(s string, f expr.Node) string {
	if f == nil {
		return s
	}
	return s + ", filter: " + text(f)
}

func withCondition(s string, c expr.Node) string {
	if c == nil {
		return s
	}
	return s + ", condition: " + text(c)
}

func describePoint(n *PointGet) string {
	s := "Single-row read on " + n.Table.Alias + " using " + n.Table.Def.Indexes[n.Index].Name +
		" (" + keyText(n.Table, n.Index, n.Key) + ")"
	return withFilter(s+lockText(n.Lock), n.Filter)
}

// keyText writes part = value for the first parts of an index.
func keyText(t *Table, index int, key []KeyValue) string {
	list := make([]string, len(key))
	for i, k := range key {
		op := " = "
		if k.NullSafe {
			op = " <=> "
		}
		list[i] = partName(t, index, i) + op + text(k.Expr)
	}
	return strings.Join(list, ", ")
}

func partName(t *Table, index, part int) string {
	return t.Def.Columns[t.Keys.Keys[index].Parts[part].Column].Name
}

func lockText(l *Lock) string {
	if l == nil {
		return ""
	}
	return " (locking: " + l.Mode.String() + ")"
}

func describeScan(n *TableScan) string {
	t, a := n.Table, n.Access
	ix := &t.Def.Indexes[a.Index]
	s := "Table scan on " + t.Alias
	switch {
	case a.Spans != nil:
		s = "Index range scan on " + t.Alias + " using " + ix.Name + " over " + spansText(t, a)
	case a.Index != 0 || n.Ordered:
		s = "Index scan on " + t.Alias + " using " + ix.Name
	}
	if a.Covering {
		s = strings.Replace(s, "Index", "Covering index", 1)
	}
	if n.Backward {
		s += " (reverse)"
	}
	return withFilter(s+lockText(n.Lock), n.Filter)
}

func spansText(t *Table, a *Access) string {
	var list []string
	for i := range a.Spans {
		if i == 10 && len(a.Spans) > 11 {
			list = append(list, fmt.Sprintf("(%d more)", len(a.Spans)-i))
			break
		}
		list = append(list, "("+spanText(t, a.Index, &a.Spans[i])+")")
	}
	return strings.Join(list, " OR ")
}

func spanText(t *Table, index int, s *Span) string {
	var list []string
	for i, points := range s.Points {
		name := partName(t, index, i)
		if len(points) == 1 {
			list = append(list, keyPoint(name, points[0]))
			continue
		}
		var values []string
		for n, v := range points {
			if n == 10 {
				values = append(values, "..")
				break
			}
			values = append(values, text(v.Expr))
		}
		list = append(list, name+" IN ("+strings.Join(values, ", ")+")")
	}
	if iv := s.Interval; iv != nil {
		list = append(list, intervalText(partName(t, index, len(s.Points)), iv))
	}
	return strings.Join(list, ", ")
}

func keyPoint(name string, v KeyValue) string {
	if c, ok := v.Expr.(*expr.Const); ok && v.NullSafe && c.Literal().IsNull() {
		return name + " IS NULL"
	}
	if v.NullSafe {
		return name + " <=> " + text(v.Expr)
	}
	return name + " = " + text(v.Expr)
}

func intervalText(name string, iv *Interval) string {
	if iv.Like != nil {
		return name + " LIKE " + text(iv.Like)
	}
	var list []string
	if iv.Low.Expr != nil {
		list = append(list, name+map[bool]string{true: " > ", false: " >= "}[iv.LowOpen]+text(iv.Low.Expr))
	}
	if iv.High.Expr != nil {
		list = append(list, name+map[bool]string{true: " < ", false: " <= "}[iv.HighOpen]+text(iv.High.Expr))
	}
	if len(list) == 0 {
		return name + " IS NOT NULL"
	}
	return strings.Join(list, " AND ")
}

func describeValues(n *Values) string {
	switch {
	case len(n.Rows) == 0:
		return "Zero rows (no condition can be true)"
	case len(n.Cols) == 0:
		return "Rows fetched before execution"
	}
	return fmt.Sprintf("Values: %d rows", len(n.Rows))
}

func describeSet(n *SetOperation) string {
	all := ""
	if n.All {
		all = " all"
	}
	switch n.Kind {
	case Except:
		return "Except" + all
	case Intersect:
		return "Intersect" + all
	}
	return "Append"
}

func describeLookup(n *IndexLookupJoin) string {
	t := n.Table
	s := "Index lookup on " + t.Alias
	if n.Unique {
		s = "Single-row index lookup on " + t.Alias
	}
	if n.Covering {
		s = "Covering " + strings.ToLower(s[:1]) + s[1:]
	}
	s += " using " + t.Def.Indexes[n.Index].Name + " (" + keyText(t, n.Index, n.Key) + ")"
	return withFilter(s+lockText(n.Lock), n.Filter)
}

func tableOf(cols []Column) string {
	if len(cols) > 0 {
		return cols[0].Table
	}
	return ""
}

func text(n expr.Node) string { return strings.ReplaceAll(expr.Text(n), "`", "") }

func texts(list []expr.Node) string {
	s := make([]string, len(list))
	for i, n := range list {
		s[i] = text(n)
	}
	return strings.Join(s, ", ")
}

func keysText(keys []SortKey) string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = text(k.Expr)
		if k.Desc {
			s[i] += " DESC"
		}
	}
	return strings.Join(s, ", ")
}

func limitText(count, offset expr.Node) string {
	s := "all"
	if count != nil {
		s = text(count)
	}
	if offset != nil {
		s += " offset " + text(offset)
	}
	return s
}

func aggregateText(name string, groups []expr.Node, aggs []Aggregate) string {
	var list []string
	if len(groups) > 0 {
		list = append(list, "by "+texts(groups))
	}
	for i := range aggs {
		list = append(list, aggs[i].Text)
	}
	return name + ": " + strings.Join(list, ", ")
}

// Text makes an outer column readable in plans.
func (o *Outer) Text() string { return o.Name }

// Text names a subquery in plans.
func (s *Subquery) Text() string {
	ref := fmt.Sprintf("(select #%d)", s.Number+2)
	switch s.Kind {
	case ExistsSubquery:
		return "exists" + ref
	case ScalarSubquery:
		return ref
	}
	left := texts(s.Operands)
	if len(s.Operands) > 1 {
		left = "(" + left + ")"
	}
	word := map[SubqueryKind]string{AnySubquery: " any ", AllSubquery: " all ", RowSubquery: " row "}[s.Kind]
	if s.Equal {
		word = " in "
	}
	return "<" + left + word + ref + ">"
}

// Expressions lists an operator's own expressions.
func Expressions(n Node) []expr.Node {
	var list []expr.Node
	add := func(more ...expr.Node) {
		for _, e := range more {
			if e != nil {
				list = append(list, e)
			}
		}
	}
	keys := func(values []KeyValue) {
		for _, v := range values {
			add(v.Expr)
		}
	}
	switch n := n.(type) {
	case *PointGet:
		keys(n.Key)
		add(n.Filter)
	case *TableScan:
		for i := range n.Access.Spans {
			s := &n.Access.Spans[i]
			for _, points := range s.Points {
				keys(points)
			}
			if s.Interval != nil {
				add(s.Interval.Low.Expr, s.Interval.High.Expr, s.Interval.Like)
			}
		}
		add(n.Filter)
	case *VirtualScan:
		add(n.Filter)
	case *JSONTableScan:
		add(n.Doc)
	case *Values:
		for _, row := range n.Rows {
			add(row...)
		}
	case *Filter:
		add(n.Predicate)
	case *Project:
		add(n.Exprs...)
	case *Sort:
		add(sortExprs(n.Keys)...)
	case *TopN:
		add(sortExprs(n.Keys)...)
	case *HashAggregate:
		add(append(aggregateInputs(n.Aggregates), n.Groups...)...)
	case *StreamAggregate:
		add(append(aggregateInputs(n.Aggregates), n.Groups...)...)
	case *Window:
		for i := range n.Calls {
			c := &n.Calls[i]
			add(c.Count, c.Frame.Start.Offset, c.Frame.End.Offset)
		}
	case *NestedLoopJoin:
		add(n.Condition)
	case *HashJoin:
		add(n.LeftKeys...)
		add(n.RightKeys...)
		add(n.Condition)
	case *IndexLookupJoin:
		keys(n.Key)
		add(n.Filter, n.Condition)
	}
	return list
}

func sortExprs(keys []SortKey) []expr.Node {
	list := make([]expr.Node, len(keys))
	for i := range keys {
		list[i] = keys[i].Expr
	}
	return list
}

func aggregateInputs(aggs []Aggregate) []expr.Node {
	var list []expr.Node
	for i := range aggs {
		list = append(list, aggs[i].Call.Inputs()...)
	}
	return list
}

// keyLen is EXPLAIN's key_len: the bytes of the parts of an index that are used.
func keyLen(t *Table, index, parts int) int {
	n := 0
	for _, part := range t.Keys.Keys[index].Parts[:parts] {
		switch part.Type.Class() {
		case types.ClassBytes:
			chars := int(part.Type.Length)
			if part.Prefix > 0 {
				chars = part.Prefix
			}
			n += chars * part.Type.Charset().MaxLen()
			if part.Type.Kind != types.KindChar && part.Type.Kind != types.KindBinary {
				n += 2
			}
		default:
			size, _ := types.FixedSize(part.Type)
			n += size
		}
		if !part.Type.NotNull {
			n++
		}
	}
	return n
}
