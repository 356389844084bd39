package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/expr"
)

// Explained is what EXPLAIN FORMAT=JSON tells besides the plan.
type Explained struct {
	Kind string // of the statement: select, insert, replace, update, delete
	Text string // the statement
	Into string // the table that an INSERT or REPLACE writes to
	// Measured adds what a run has measured of an operator; nil: nothing was run.
	Measured func(Node) Measured
}

// Measured is what a run has measured of an operator.
type Measured struct {
	Loops       int64
	Rows        float64 // of a loop
	First, Last float64 // milliseconds until the first and the last row of a loop
}

// JSONTree writes a plan as version 2 of MySQL's JSON has it: an object for each operator, its inputs in it. root is nil for an INSERT
// of rows that are given.
func JSONTree(root Node, e Explained) string {
	w := &jsonTree{measured: e.Measured, seen: map[int]bool{}}
	var tree jsonObject
	switch {
	case e.Into != "":
		tree.add("operation", title(e.Kind)+" into "+e.Into).add("table_name", e.Into)
		if root == nil {
			tree.add("access_type", "insert_values")
			break
		}
		tree.add("access_type", "insert_from_select").add("inputs", []jsonObject{w.node(root)})
	default:
		tree = w.node(root)
	}
	var o jsonObject
	o.add("query", e.Text).add("query_plan", tree).add("query_type", e.Kind).add("json_schema_version", "2.0")
	return o.text()
}

// jsonTree makes the objects of JSONTree. Nesting is bounded by that of statements.
type jsonTree struct {
	measured func(Node) Measured
	seen     map[int]bool // shared tables that have been written
}

func (w *jsonTree) node(n Node) jsonObject {
	var o jsonObject
	var inputs []jsonObject
	shared := false
	if m, ok := n.(*Materialize); ok {
		shared, w.seen[m.ID] = w.seen[m.ID], true
	}
	if shared {
		o.add("operation", "Scan on "+n.(*Materialize).alias()).add("table_name", n.(*Materialize).alias()).add("access_type", "table")
	} else {
		o.add("operation", describe(n))
		o = append(o, operatorFields(n)...)
		for _, c := range n.Children() {
			inputs = append(inputs, w.node(c))
		}
		if j, ok := n.(*IndexLookupJoin); ok {
			inputs = append(inputs, lookupFields(j))
		}
	}
	w.figures(n, &o)
	var selected []jsonObject
	for _, s := range subqueriesOf(n) {
		q := w.subquery(n, s)
		if _, ok := n.(*Project); ok {
			selected = append(selected, q)
		} else {
			inputs = append(inputs, q)
		}
	}
	if selected != nil {
		o.add("inputs_from_select_list", selected)
	}
	if inputs != nil {
		o.add("inputs", inputs)
	}
	return o
}

func (w *jsonTree) subquery(of Node, s *Subquery) jsonObject {
	place, kind := "condition", "run only once"
	if _, ok := of.(*Project); ok {
		place = "projection"
	}
	if len(s.Slots) > 0 {
		kind = "dependent"
	}
	var o jsonObject
	o.add("heading", fmt.Sprintf("Select #%d (subquery in %s; %s)", s.Number+2, place, kind)).add("subquery", true)
	if len(s.Slots) > 0 {
		o.add("dependent", true)
	} else {
		o.add("cacheable", true)
	}
	o.add("subquery_location", place)
	return append(o, w.node(s.Root)...)
}

// figures adds what is expected of an operator, and what was measured.
func (w *jsonTree) figures(n Node, o *jsonObject) {
	est := n.Estimate()
	o.add("estimated_rows", est.Rows).add("estimated_total_cost", est.Cost)
	if w.measured == nil {
		return
	}
	m := w.measured(n)
	if o.add("actual_loops", m.Loops); m.Loops > 0 {
		o.add("actual_rows", m.Rows).add("actual_first_row_ms", m.First).add("actual_last_row_ms", m.Last)
	}
}

// operatorFields are the fields that tell programs what describe tells people.
func operatorFields(n Node) (o jsonObject) {
	switch n := n.(type) {
	case *PointGet:
		o.add("access_type", "index").add("index_access_type", "index_lookup")
		o.table(n.Table, n.Index, len(n.Key)).add("lookup_condition", keyText(n.Table, n.Index, n.Key))
		o.condition(n.Filter)
	case *TableScan:
		scanFields(n, &o)
	case *VirtualScan:
		o.add("access_type", "table").add("table_name", n.Alias).add("schema_name", n.Source.Def.Schema)
		o.condition(n.Filter)
	case *JSONTableScan:
		o.add("access_type", "materialized_table_function").add("table_name", n.Alias)
	case *WorkTable:
		o.add("access_type", "scan_new_records").add("table_name", tableOf(n.Cols))
	case *Materialize:
		o.add("access_type", "materialize").add("table_name", n.alias())
	case *Values:
		if len(n.Rows) == 0 {
			o.add("access_type", "zero_rows").add("zero_rows_cause", noTables(n))
		} else {
			o.add("access_type", "rows_fetched_before_execution")
		}
	case *Filter:
		o.add("access_type", "filter").condition(n.Predicate)
	case *Project:
		o.add("access_type", "stream")
	case *Limit:
		o.add("access_type", "limit").limit(n.Count, n.Offset)
	case *Sort:
		o.add("access_type", "sort").add("sort_fields", sortFields(n.Keys))
	case *TopN:
		o.add("access_type", "sort").add("sort_fields", sortFields(n.Keys)).limit(n.Count, n.Offset)
	case *HashAggregate:
		o.add("access_type", "temp_table_aggregate").aggregate(n.Groups, n.Aggregates)
	case *StreamAggregate:
		o.add("access_type", "aggregate").aggregate(n.Groups, n.Aggregates)
	case *Window:
		o.add("access_type", "window").add("buffering", n.buffers()).add("functions", windowCalls(n, true))
	case *Distinct:
		o.add("access_type", "remove_duplicates")
	case *SetOperation:
		o.add("access_type", map[SetKind]string{Union: "append", Except: "except", Intersect: "intersect"}[n.Kind])
	case *RecursiveCTE:
		o.add("access_type", "materialize").add("recursive", true).add("deduplication", n.Distinct)
	default:
		joinFields(n, &o)
	}
	return o
}

func scanFields(n *TableScan, o *jsonObject) {
	a := n.Access
	switch {
	case a.Spans != nil:
		var ranges []string
		for i := range a.Spans {
			ranges = append(ranges, "("+spanText(n.Table, a.Index, &a.Spans[i])+")")
		}
		o.add("access_type", "index").add("index_access_type", "index_range_scan").add("ranges", ranges)
		o.table(n.Table, a.Index, usedParts(a)).add("covering", a.Covering)
	case a.Index != 0 || n.Ordered:
		o.add("access_type", "index").add("index_access_type", "index_scan").table(n.Table, a.Index, 0).add("covering", a.Covering)
	default:
		o.add("access_type", "table").add("table_name", n.Table.Alias).add("schema_name", n.Table.Def.Schema)
	}
	if n.Backward {
		o.add("reverse", true)
	}
	o.columns(n.Table, n.Fetch).condition(n.Filter)
}

func lookupFields(n *IndexLookupJoin) (o jsonObject) {
	o.add("operation", describeLookup(n)).add("access_type", "index").add("index_access_type", "index_lookup")
	o.table(n.Table, n.Index, len(n.Key)).add("covering", n.Covering).add("lookup_condition", keyText(n.Table, n.Index, n.Key))
	o.columns(n.Table, n.Fetch).condition(n.Filter).add("estimated_rows", n.Reads)
	return o
}

func joinFields(n Node, o *jsonObject) {
	o.add("access_type", "join")
	switch n := n.(type) {
	case *NestedLoopJoin:
		o.add("join_type", n.Kind.String()+" join").add("join_algorithm", "nested_loop").condition(n.Condition)
	case *HashJoin:
		conditions := []string{}
		for i := range n.LeftKeys {
			conditions = append(conditions, "("+text(n.LeftKeys[i])+" = "+text(n.RightKeys[i])+")")
		}
		o.add("join_type", n.Kind.String()+" join").add("join_algorithm", "hash").add("hash_condition", conditions).condition(n.Condition)
	case *IndexLookupJoin:
		o.add("join_type", n.Kind.String()+" join").add("join_algorithm", "batch_key_access").condition(n.Condition)
	}
}

// jsonObject is an object whose fields keep their order.
type jsonObject []jsonField

type jsonField struct {
	name  string
	value any // string, bool, int64, float64, []string, jsonObject, []jsonObject
}

func (o *jsonObject) add(name string, value any) *jsonObject {
	*o = append(*o, jsonField{name, value})
	return o
}

// table adds an index of a table, of which so many parts are used.
func (o *jsonObject) table(t *Table, index, parts int) *jsonObject {
	o.add("table_name", t.Alias).add("schema_name", t.Def.Schema).add("index_name", t.Def.Indexes[index].Name)
	if parts > 0 {
		o.add("key_columns", keyParts(t, index, parts))
	}
	return o
}

func keyParts(t *Table, index, parts int) []string {
	list := make([]string, parts)
	for i := range list {
		list[i] = partName(t, index, i)
	}
	return list
}

// columns adds which columns of a table are read.
func (o *jsonObject) columns(t *Table, fetch []int) *jsonObject {
	list := []string{}
	for _, pos := range fetch {
		if c := &t.Def.Columns[pos]; !c.Hidden {
			list = append(list, c.Name)
		}
	}
	return o.add("used_columns", list)
}

func (o *jsonObject) condition(c expr.Node) *jsonObject {
	if c != nil {
		o.add("condition", text(c))
	}
	return o
}

// limit adds a limit and its offset, as numbers where they are constant.
func (o *jsonObject) limit(count, offset expr.Node) {
	number := func(n expr.Node) any {
		s := text(n)
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			return v
		}
		return s
	}
	if count != nil {
		o.add("limit", number(count))
	}
	if offset == nil {
		o.add("limit_offset", int64(0))
	} else {
		o.add("limit_offset", number(offset))
	}
}

func (o *jsonObject) aggregate(groups []expr.Node, aggs []Aggregate) {
	functions := []string{}
	for i := range aggs {
		functions = append(functions, aggs[i].Text)
	}
	if o.add("functions", functions); len(groups) > 0 {
		o.add("group_by", true)
	}
}

func sortFields(keys []SortKey) []string {
	list := make([]string, len(keys))
	for i := range keys {
		list[i] = keysText(keys[i : i+1])
	}
	return list
}

// windowCalls lists the functions of a window, by their text or their name.
func windowCalls(n *Window, text bool) []string {
	list := make([]string, len(n.Calls))
	for i := range n.Calls {
		list[i] = n.Calls[i].Text
		if name, _, ok := strings.Cut(list[i], "("); ok && !text {
			list[i] = name
		}
	}
	return list
}

// text writes the object, two spaces further in for each level.
func (o jsonObject) text() string {
	var b strings.Builder
	o.write(&b, 0)
	return b.String()
}

// deepestIndent bounds how far in a line begins, so that plans of thousands of levels take room that grows with them, not with their
// square.
const deepestIndent = 100

func newLine(b *strings.Builder, depth int) {
	b.WriteByte('\n')
	for range min(depth, deepestIndent) {
		b.WriteString("  ")
	}
}

func (o jsonObject) write(b *strings.Builder, depth int) {
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		newLine(b, depth+1)
		writeString(b, f.name)
		b.WriteString(": ")
		writeValue(b, f.value, depth+1)
	}
	newLine(b, depth)
	b.WriteByte('}')
}

func writeValue(b *strings.Builder, v any, depth int) {
	switch v := v.(type) {
	case string:
		writeString(b, v)
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(jsonNumber(v))
	case []string:
		writeList(b, len(v), depth, func(i int) { writeString(b, v[i]) })
	case jsonObject:
		v.write(b, depth)
	case []jsonObject:
		writeList(b, len(v), depth, func(i int) { v[i].write(b, depth+1) })
	}
}

func writeList(b *strings.Builder, n, depth int, item func(i int)) {
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		newLine(b, depth+1)
		item(i)
	}
	if n > 0 {
		newLine(b, depth)
	}
	b.WriteByte(']')
}

// jsonNumber writes an estimate: as MySQL does, so that it reads as no integer.
func jsonNumber(f float64) string {
	s := strconv.FormatFloat(f, 'g', 6, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < ' ':
			fmt.Fprintf(b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
