package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/expr"
)

// JSONBlock writes a plan as version 1 of MySQL's JSON has it, which draws plans in most tools: a block for each query, in it what is
// done with rows, and the tables in the order of reading.
func JSONBlock(root Node, e Explained) string {
	w := &blockWriter{change: map[string]string{"update": "update", "delete": "delete"}[e.Kind]}
	var o jsonObject
	switch {
	case e.Into == "":
		o = w.block(root)
	default:
		var target, from jsonObject
		target.add(e.Kind, true).add("table_name", e.Into).add("access_type", "ALL")
		o.add("select_id", int64(1)).add("table", target)
		if root != nil {
			w.blocks++
			from = w.inner(root)
			o.add("insert_from", from)
		}
	}
	var doc jsonObject
	return doc.add("query_block", o).text()
}

// blockWriter makes the objects of JSONBlock.
type blockWriter struct {
	blocks int
	change string // what is done with the first table's rows; empty: nothing
	seen   map[int]bool
}

// block is a query's object.
func (w *blockWriter) block(n Node) (o jsonObject) {
	w.blocks++
	o.add("select_id", int64(w.blocks))
	inner := w.inner(n)
	if inner[0].name != "message" {
		var cost jsonObject
		o.add("cost_info", *cost.add("query_cost", figure2(n.Estimate().Cost)))
	}
	return append(o, inner...)
}

func figure2(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// inner is what a block has in it from an operator on down.
func (w *blockWriter) inner(n Node) (o jsonObject) {
	subqueries := "having_subqueries"
	switch n := n.(type) {
	case *Project:
		o, subqueries = w.inner(n.Input), "select_list_subqueries"
	case *Limit:
		o = w.inner(n.Input)
	case *Filter:
		o = w.inner(n.Input)
	case *Sort, *TopN:
		var sorted jsonObject
		sorted.add("using_filesort", true)
		o.add("ordering_operation", append(sorted, w.inner(n.Children()[0])...))
		subqueries = "order_by_subqueries"
	case *HashAggregate:
		var grouped jsonObject
		grouped.add("using_temporary_table", true).add("using_filesort", false)
		o.add("grouping_operation", append(grouped, w.inner(n.Input)...))
		subqueries = "group_by_subqueries"
	case *StreamAggregate:
		if o = w.inner(n.Input); len(n.Groups) > 0 {
			var grouped jsonObject
			grouped.add("using_filesort", false)
			o = jsonObject{{"grouping_operation", append(grouped, o...)}}
		}
	case *Distinct:
		var once jsonObject
		once.add("using_temporary_table", true).add("using_filesort", false)
		o.add("duplicates_removal", append(once, w.inner(n.Input)...))
	case *Window:
		var window, all jsonObject
		window.add("name", "<unnamed window>").add("functions", windowCalls(n, false))
		all.add("windows", []jsonObject{window})
		o.add("windowing", append(all, w.inner(n.Input)...))
	case *SetOperation:
		o = w.set(n)
	case *Values:
		o.add("message", noTables(n))
	default:
		return w.tables(n)
	}
	return w.withSubqueries(o, subqueries, n)
}

// set is the object of a UNION, EXCEPT or INTERSECT.
func (w *blockWriter) set(n *SetOperation) jsonObject {
	word := map[SetKind]string{Union: "union", Except: "except", Intersect: "intersect"}[n.Kind]
	var o, result jsonObject
	first := w.blocks
	list := make([]jsonObject, len(n.Inputs))
	for i, in := range n.Inputs {
		if i == 0 {
			w.blocks-- // the first one has the number of the whole
		}
		list[i] = w.part(w.block(in), false)
	}
	result.add("using_temporary_table", !n.All || n.Kind != Union).add("table_name", fmt.Sprintf("<%s%d,%d>", word, first, w.blocks))
	result.add("access_type", "ALL").add("query_specifications", list)
	return *o.add(word+"_result", result)
}

func (w *blockWriter) part(block jsonObject, dependent bool) (o jsonObject) {
	o.add("dependent", dependent).add("cacheable", !dependent).add("query_block", block)
	return o
}

// withSubqueries adds the subqueries in an operator's own expressions.
func (w *blockWriter) withSubqueries(o jsonObject, name string, n Node) jsonObject {
	var list []jsonObject
	for _, s := range subqueriesOf(n) {
		list = append(list, w.part(w.block(s.Root), len(s.Slots) > 0))
	}
	if list != nil {
		o.add(name, list)
	}
	return o
}

// tables is the table of a query, or those of its joins.
func (w *blockWriter) tables(n Node) (o jsonObject) {
	list := w.join(n, nil)
	if len(list) == 1 {
		return list[0]
	}
	o.add("nested_loop", list)
	return o
}

// join appends the tables below an operator, in the order of reading.
func (w *blockWriter) join(n Node, list []jsonObject) []jsonObject {
	var condition expr.Node
	buffer := ""
	first := len(list)
	switch n := n.(type) {
	case *NestedLoopJoin:
		list = w.join(n.Right, w.join(n.Left, list))
		condition = n.Condition
	case *HashJoin:
		list = w.join(n.Right, w.join(n.Left, list))
		condition, buffer = n.Condition, "hash join"
	case *IndexLookupJoin:
		list = w.join(n.Left, list)
		list = append(list, w.table(n, n.Filter))
		condition = n.Condition
	case *PointGet:
		return append(list, w.table(n, n.Filter))
	case *TableScan:
		return append(list, w.table(n, n.Filter))
	case *VirtualScan:
		return append(list, w.table(n, n.Filter))
	case *JSONTableScan, *WorkTable, *Materialize:
		return append(list, w.table(n, nil))
	case *Filter:
		list = w.join(n.Input, list)
		condition = n.Predicate
	case *RecursiveCTE:
		var o jsonObject
		o.add("recursive", true).add("query_specifications", []jsonObject{w.part(w.block(n.Seed), false), w.part(w.block(n.Recursive), true)})
		return append(list, o)
	default:
		var o jsonObject // a query below a join
		return append(list, *o.add("query_block", w.block(n)))
	}
	last := &list[len(list)-1]
	if t, ok := (*last)[0].value.(jsonObject); ok && len(list) > first && (*last)[0].name == "table" {
		if buffer != "" {
			t.add("using_join_buffer", buffer)
		}
		t.attach(condition)
		(*last)[0].value = w.withSubqueries(t, "attached_subqueries", n)
	}
	return list
}

// attach adds a condition to a table's.
func (o *jsonObject) attach(c expr.Node) {
	if c == nil {
		return
	}
	for i := range *o {
		if f := &(*o)[i]; f.name == "attached_condition" {
			f.value = "(" + f.value.(string) + " and " + text(c) + ")"
			return
		}
	}
	o.add("attached_condition", text(c))
}

// table is the object of an operator that reads a table.
func (w *blockWriter) table(n Node, filter expr.Node) (o jsonObject) {
	r, extra := tableRow(n)
	var t jsonObject
	if w.change != "" {
		t.add(w.change, true)
		w.change = ""
	}
	t.add("table_name", r.Table).add("access_type", r.Type)
	words := func(name, list string) {
		if list != "" {
			t.add(name, strings.Split(list, ","))
		}
	}
	words("possible_keys", r.PossibleKeys)
	if r.Key != "" {
		t.add("key", r.Key).add("used_key_parts", usedKeyParts(n)).add("key_length", r.KeyLen)
	}
	words("ref", r.Ref)
	est := n.Estimate()
	reads := float64(r.Rows)
	if reads == 0 {
		reads = math.Ceil(est.Rows)
	}
	if r.Filtered == 0 {
		r.Filtered = 100
	}
	t.add("rows_examined_per_scan", int64(reads)).add("rows_produced_per_join", int64(math.Ceil(est.Rows))).add("filtered", figure2(r.Filtered))
	for _, e := range extra {
		switch e {
		case "Using index", "Backward index scan", "Not exists", "FirstMatch":
			t.add(strings.ReplaceAll(strings.ToLower(e), " ", "_"), true)
		}
	}
	var cost jsonObject
	t.add("cost_info", *cost.add("prefix_cost", figure2(est.Cost)))
	switch n := n.(type) {
	case *TableScan:
		t.columns(n.Table, n.Fetch)
	case *PointGet:
		t.columns(n.Table, n.Fetch)
	case *IndexLookupJoin:
		t.columns(n.Table, n.Fetch)
	case *Materialize:
		if !w.seen[n.ID] {
			if w.seen == nil {
				w.seen = map[int]bool{}
			}
			w.seen[n.ID] = true
			var from jsonObject
			from.add("using_temporary_table", true)
			t.add("materialized_from_subquery", append(from, w.part(w.block(n.Input), len(n.Slots) > 0)...))
		}
	}
	t.attach(filter)
	if _, join := n.(*IndexLookupJoin); !join { // a join's are added with its condition
		t = w.withSubqueries(t, "attached_subqueries", n)
	}
	return *o.add("table", t)
}

// usedKeyParts names the parts of its index that an operator uses.
func usedKeyParts(n Node) []string {
	switch n := n.(type) {
	case *PointGet:
		return keyParts(n.Table, n.Index, len(n.Key))
	case *IndexLookupJoin:
		return keyParts(n.Table, n.Index, len(n.Key))
	case *TableScan:
		if n.Access.Spans != nil {
			return keyParts(n.Table, n.Access.Index, usedParts(n.Access))
		}
		return keyParts(n.Table, n.Access.Index, len(n.Table.Keys.Keys[n.Access.Index].Parts))
	}
	return nil
}
