package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/expr"
)

// ExplainRow is a line of the traditional EXPLAIN. Empty text and negative numbers are
// NULL.
type ExplainRow struct {
	ID           int // 0: NULL
	SelectType   string
	Table        string
	Partitions   string
	Type         string
	PossibleKeys string
	Key          string
	KeyLen       string
	Ref          string
	Rows         int64
	Filtered     float64
	Extra        string
}

// Rows gives the traditional EXPLAIN of a plan: a line for each table that is read, in
// the order of reading.
func Rows(q *Query) []ExplainRow {
	w := &rowWriter{}
	w.query(q.Root, "SIMPLE", true)
	for i := range w.rows {
		// A query with parts of its own is not simple.
		if r := &w.rows[i]; r.SelectType == "SIMPLE" && w.parts > 1 {
			r.SelectType = "PRIMARY"
		}
	}
	return w.rows
}

// rowWriter collects lines. parts counts the queries within the query.
type rowWriter struct {
	rows  []ExplainRow
	parts int
	extra []string // of the next table: what is done with its rows above
	seen  map[int]bool
	kind  string
	id    int
}

// query adds the lines of a query or a part of one.
func (w *rowWriter) query(n Node, kind string, top bool) {
	w.parts++
	id, was := w.id, w.kind
	w.id, w.kind = w.parts, kind
	w.node(n)
	if !top {
		w.id, w.kind = id, was
	}
}

func (w *rowWriter) node(n Node) {
	switch n := n.(type) {
	case *Sort, *TopN:
		w.extra = append(w.extra, "Using filesort")
	case *HashAggregate, *Distinct:
		w.extra = append(w.extra, "Using temporary")
	case *Window:
		if n.buffers() {
			w.extra = append(w.extra, "Using temporary")
		}
	case *Filter:
		w.extra = append(w.extra, "Using where")
	case *SetOperation:
		w.set(n)
		return
	case *Materialize:
		w.materialize(n)
		return
	case *PointGet, *TableScan, *VirtualScan, *Values, *WorkTable, *JSONTableScan:
		w.leaf(n)
	}
	for _, c := range n.Children() {
		w.node(c)
	}
	if j, ok := n.(*IndexLookupJoin); ok {
		w.leaf(j)
	}
	for _, s := range subqueriesOf(n) {
		kind := "SUBQUERY"
		if len(s.Slots) > 0 {
			kind = "DEPENDENT SUBQUERY"
		}
		w.query(s.Root, kind, false)
	}
}

func (w *rowWriter) set(n *SetOperation) {
	word := map[SetKind]string{Union: "UNION", Except: "EXCEPT", Intersect: "INTERSECT"}[n.Kind]
	first := w.parts
	for i, in := range n.Inputs {
		if i == 0 {
			w.node(in)
			continue
		}
		w.query(in, word, false)
	}
	w.rows = append(w.rows, ExplainRow{
		SelectType: word + " RESULT", Table: fmt.Sprintf("<%s%d,%d>", strings.ToLower(word), first, w.parts), Type: "ALL", Rows: -1,
		Extra: "Using temporary",
	})
}

func (w *rowWriter) materialize(n *Materialize) {
	w.leaf(n)
	if w.seen[n.ID] {
		return
	}
	if w.seen == nil {
		w.seen = map[int]bool{}
	}
	w.seen[n.ID] = true
	w.query(n.Input, "DERIVED", false)
}

// add adds the line of a table.
func (w *rowWriter) add(n Node, r ExplainRow, extra []string) {
	r.ID, r.SelectType = w.id, w.kind
	est := n.Estimate()
	if r.Rows == 0 {
		r.Rows = int64(math.Ceil(est.Rows))
	}
	if r.Filtered == 0 {
		r.Filtered = 100
	}
	extra = append(extra, w.extra...)
	var once []string
	for _, e := range extra {
		if !strings.Contains(strings.Join(once, "; "), e) {
			once = append(once, e)
		}
	}
	r.Extra = strings.Join(once, "; ")
	w.extra = nil
	w.rows = append(w.rows, r)
}

func (w *rowWriter) leaf(n Node) {
	if v, ok := n.(*Values); ok {
		w.rows = append(w.rows, ExplainRow{ID: w.id, SelectType: w.kind, Rows: -1, Extra: noTables(v)})
		return
	}
	r, extra := tableRow(n)
	w.add(n, r, extra)
}

// noTables says why a query reads no table.
func noTables(n *Values) string {
	if len(n.Rows) == 0 {
		return "Impossible WHERE"
	}
	return "No tables used"
}

// tableRow is the line of an operator that reads a table, as far as the operator alone tells it.
func tableRow(n Node) (r ExplainRow, extra []string) {
	switch n := n.(type) {
	case *PointGet:
		return ExplainRow{
			Table: n.Table.Alias, Type: "const", PossibleKeys: strings.Join(n.PossibleKeys, ","), Key: n.Table.Def.Indexes[n.Index].Name,
			KeyLen: strconv.Itoa(keyLen(n.Table, n.Index, len(n.Key))), Ref: refText(n.Key), Rows: 1,
		}, whereText(n.Filter)
	case *TableScan:
		return scanRow(n)
	case *IndexLookupJoin:
		return lookupRow(n)
	case *VirtualScan:
		return ExplainRow{Table: n.Alias, Type: "ALL"}, whereText(n.Filter)
	case *JSONTableScan:
		return ExplainRow{Table: n.Alias, Type: "ALL"}, []string{"Table function: json_table"}
	case *WorkTable:
		return ExplainRow{Table: tableOf(n.Cols), Type: "ALL"}, []string{"Recursive"}
	case *Materialize:
		return ExplainRow{Table: n.alias(), Type: "ALL"}, nil
	}
	return r, nil
}

func whereText(f expr.Node) []string {
	if f == nil {
		return nil
	}
	return []string{"Using where"}
}

// ScansAll reports whether a plan reads all of a table or of an index, in any part of it.
func ScansAll(n Node) bool {
	if s, ok := n.(*TableScan); ok && s.Access.Spans == nil {
		return true
	}
	for _, c := range n.Children() {
		if ScansAll(c) {
			return true
		}
	}
	for _, s := range subqueriesOf(n) {
		if ScansAll(s.Root) {
			return true
		}
	}
	return false
}

func scanRow(n *TableScan) (r ExplainRow, extra []string) {
	a := n.Access
	r = ExplainRow{Table: n.Table.Alias, Type: "ALL", PossibleKeys: strings.Join(n.PossibleKeys, ",")}
	extra = whereText(n.Filter)
	if a.Covering {
		extra = append(extra, "Using index")
	}
	if n.Backward {
		extra = append(extra, "Backward index scan")
	}
	switch {
	case a.Spans != nil:
		r.Type = "range"
		if s := &a.Spans[0]; len(a.Spans) == 1 && s.Interval == nil && onePoint(s) {
			r.Type = "ref"
			var key []KeyValue
			for _, p := range s.Points {
				key = append(key, p[0])
			}
			r.Ref = refText(key)
		} else if a.Index != 0 && !a.Covering {
			extra = append([]string{"Using index condition"}, extra...)
		}
		r.KeyLen = strconv.Itoa(keyLen(n.Table, a.Index, usedParts(a)))
		r.Key = n.Table.Def.Indexes[a.Index].Name
	case a.Index != 0 || n.Ordered:
		r.Type, r.Key = "index", n.Table.Def.Indexes[a.Index].Name
		r.KeyLen = strconv.Itoa(keyLen(n.Table, a.Index, len(n.Table.Keys.Keys[a.Index].Parts)))
	}
	r.Rows = int64(math.Ceil(n.Reads))
	if n.Reads > 0 {
		r.Filtered = math.Min(100, 100*n.Est.Rows/n.Reads)
	}
	return r, extra
}

// usedParts is how many parts of its index a range scan uses.
func usedParts(a *Access) int {
	parts := 0
	for i := range a.Spans {
		parts = max(parts, len(a.Spans[i].Points)+b2i(a.Spans[i].Interval != nil))
	}
	return parts
}

func onePoint(s *Span) bool {
	for _, p := range s.Points {
		if len(p) != 1 {
			return false
		}
	}
	return len(s.Points) > 0
}

func lookupRow(n *IndexLookupJoin) (r ExplainRow, extra []string) {
	r = ExplainRow{
		Table: n.Table.Alias, Type: "ref", PossibleKeys: strings.Join(n.PossibleKeys, ","), Key: n.Table.Def.Indexes[n.Index].Name,
		KeyLen: strconv.Itoa(keyLen(n.Table, n.Index, len(n.Key))), Ref: refText(n.Key), Rows: int64(math.Ceil(math.Max(1, n.Reads))),
	}
	if n.Unique {
		r.Type = "eq_ref"
	}
	extra = whereText(n.Filter)
	if n.Covering {
		extra = append(extra, "Using index")
	}
	switch n.Kind {
	case SemiJoin:
		extra = append(extra, "FirstMatch")
	case AntiJoin, LeftJoin:
		if n.Kind == AntiJoin {
			extra = append(extra, "Not exists")
		}
	}
	return r, extra
}

// refText is EXPLAIN's ref: columns by name, all else const.
func refText(key []KeyValue) string {
	list := make([]string, len(key))
	for i, k := range key {
		list[i] = "const"
		if c, ok := k.Expr.(*expr.Column); ok {
			list[i] = c.Name()
		} else if o, ok := k.Expr.(*Outer); ok {
			list[i] = o.Name
		} else if !expr.IsConst(k.Expr) {
			list[i] = "func"
		}
	}
	return strings.Join(list, ",")
}
