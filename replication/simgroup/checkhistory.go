package simgroup

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// contents is what a member has, besides what state hashes and audits compare.
type contents struct {
	ops       map[uint64]string // notes by ids
	balances  map[int64]int64
	lists     map[int][]int
	registers map[int64]int64 // values
	rows      map[string]map[int64]types.Value
	orphan    string
}

// contents reads the tables of a member in one snapshot.
func (w *world) contents(n *node) (*contents, error) {
	s, err := n.node.NewSession()
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		return nil, err
	}
	c := &contents{ops: map[uint64]string{}, balances: map[int64]int64{}, lists: map[int][]int{},
		registers: map[int64]int64{},
		rows:      map[string]map[int64]types.Value{}}
	each := func(name string, columns []int, row func([]types.Value)) {
		var rows [][]types.Value
		if err == nil {
			rows, err = rowsOf(s, name, columns...)
		}
		for _, r := range rows {
			row(r)
		}
	}
	each("ops", []int{0, 1}, func(r []types.Value) { c.ops[uint64(r[0].Int())] = string(r[1].Bytes()) })
	each("accounts", []int{0, 1}, func(r []types.Value) { c.balances[r[0].Int()] = r[1].Int() })
	if w.opt.Plain {
		return c, err
	}
	each("lists", []int{0, 1}, func(r []types.Value) {
		list, bad := parseList(r[1].Bytes())
		if bad != nil {
			w.failf("node %d: list %d: %v", n.id, r[0].Int(), bad)
		}
		c.lists[int(r[0].Int())] = list
	})
	each("registers", []int{0, 1}, func(r []types.Value) { c.registers[r[0].Int()] = r[1].Int() })
	var parents, children [][]types.Value
	for _, name := range []string{"docs", "parents", "children"} {
		c.rows[name] = map[int64]types.Value{}
		columns := []int{0, 1}
		if name == "parents" {
			columns = columns[:1]
		}
		each(name, columns, func(r []types.Value) {
			c.rows[name][r[0].Int()] = r[len(r)-1]
			switch name {
			case "parents":
				parents = append(parents, r)
			case "children":
				children = append(children, r)
			}
		})
	}
	c.orphan = orphanOf(parents, children)
	return c, err
}

// checkHistory compares what all members have, and their logs, with what clients were told.
func (w *world) checkHistory(nodes []*node) {
	w.checkOrder()
	for i, n := range nodes {
		c, err := w.contents(n)
		if err != nil {
			w.failf("node %d: reading its tables: %v", n.id, err)
			return
		}
		w.checkOps(n, c)
		if w.problem != "" {
			return
		}
		w.checkEffects(n, c)
		w.checkLog(n)
		if !w.opt.Plain {
			w.checkDefinitions(n)
		}
		if i == 0 {
			w.checkLists(c)
			w.checkRegisters(c)
		}
	}
}

// checkOrder demands that what was acknowledged before an operation began has a lower number.
func (w *world) checkOrder() {
	type event struct {
		at int64
		o  *op
	}
	var events []event
	for _, o := range w.history.ops {
		if o.outcome == committed {
			events = append(events, event{o.began, o}, event{o.ended, o})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return int(a.at - b.at) })
	var last *op
	before := map[*op]*op{}
	for _, e := range events {
		switch o := e.o; {
		case e.at == o.began:
			before[o] = last
		case before[o] != nil && before[o].number >= o.number:
			w.failf("operation %x was acknowledged as transaction %d, and %x, which had been acknowledged before it began, as %d",
				o.id, o.number, before[o].id, before[o].number)
			return
		case last == nil || last.number < o.number:
			last = o
		}
	}
}

// checkOps looks for every operation in a member's table, and finds out which try of each took
// place.
func (w *world) checkOps(n *node, c *contents) {
	for _, o := range w.history.ops {
		note, there := c.ops[o.id]
		switch {
		case o.outcome == committed && !there:
			w.failf("node %d: operation %x was acknowledged as transaction %d and is lost", n.id, o.id, o.number)
		case o.outcome == refused && there:
			w.failf("node %d: operation %x was refused and is there", n.id, o.id)
		}
		delete(c.ops, o.id)
		if !there {
			continue
		}
		o.there = nil
		for _, y := range o.tries {
			if y.note == note {
				o.there = y
			}
		}
		if o.there == nil {
			w.failf("node %d: operation %x has left %q, which none of its %d tries wrote", n.id, o.id, note,
				len(o.tries))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.ops)) {
		w.failf("node %d: there is operation %x, %q, which nobody made", n.id, id, c.ops[id])
	}
}

// checkEffects demands that a member's rows are those that the operations which took place leave.
func (w *world) checkEffects(n *node, c *contents) {
	balances := map[int64]int64{}
	for i := range int64(accounts) {
		balances[i] = opening
	}
	rows := map[rowOf]bool{}
	for _, o := range w.history.ops {
		if o.there == nil {
			continue
		}
		for _, l := range o.there.legs {
			balances[l.account] += l.amount
		}
		for _, r := range o.there.made {
			if _, gone := rows[r]; !gone {
				rows[r] = true
			}
		}
		for _, r := range o.there.gone {
			rows[r] = false
		}
	}
	for i := range int64(accounts) {
		if balances[i] != c.balances[i] {
			w.failf("node %d: account %d has %d, by the operations that took place %d", n.id, i, c.balances[i],
				balances[i])
		}
	}
	if len(c.balances) != accounts {
		w.failf("node %d: %d accounts, there were %d", n.id, len(c.balances), accounts)
	}
	byName := func(a, b rowOf) int { return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.id, b.id)) }
	for _, r := range slices.SortedFunc(maps.Keys(rows), byName) {
		want := rows[r]
		value, there := c.rows[r.table][r.id]
		switch {
		case there != want:
			w.failf("node %d: row %d of %s is there: %v, by the operations that took place: %v", n.id, r.id, r.table,
				there, want)
		case there && r.table == "docs" && !bytes.Equal(value.Bytes(), document(r.id)):
			w.failf("node %d: document %d has other contents", n.id, r.id)
		}
	}
	for _, name := range []string{"docs", "parents", "children"} {
		for _, id := range slices.Sorted(maps.Keys(c.rows[name])) {
			if !rows[rowOf{name, id}] {
				w.failf("node %d: row %d of %s was made by nobody", n.id, id, name)
			}
		}
	}
	if c.orphan != "" {
		w.failf("node %d: %s", n.id, c.orphan)
	}
}

// checkLog demands that a member's log has the operations that it should have, with the numbers
// that were acknowledged, and no others.
func (w *world) checkLog(n *node) {
	def, err := n.definition()
	if err != nil {
		w.failf("node %d: %v", n.id, err)
		return
	}
	numbers, from, err := ReadLog(n.node.Log(), def)
	if err != nil {
		w.failf("node %d: reading the log: %v", n.id, err)
		return
	}
	for _, o := range w.history.ops {
		number, logged := numbers[o.id]
		switch {
		case logged && o.there == nil:
			w.failf("node %d: operation %x is transaction %d in the log, and not in the table", n.id, o.id, number)
		case logged && o.outcome == committed && number != o.number:
			w.failf("node %d: operation %x was acknowledged as transaction %d and is %d in the log", n.id, o.id,
				o.number, number)
		case !logged && o.outcome == committed && o.number >= from:
			w.failf("node %d: operation %x was acknowledged as transaction %d and is not in the log, which begins with %d",
				n.id, o.id, o.number, from)
		}
		if logged {
			o.number = number
		}
	}
}

// checkLists judges what was read of lists and appended to them.
func (w *world) checkLists(c *contents) {
	var txns []*history.Txn
	writers := map[int]*op{}
	for _, o := range w.history.ops {
		for _, y := range o.tries {
			if len(y.lists) == 0 {
				continue
			}
			x := &history.Txn{Name: fmt.Sprintf("operation %x", o.id), Ops: y.lists, Outcome: history.Aborted,
				Begin: y.began, End: o.ended, Stale: y.stale}
			switch {
			case o.there == y && o.outcome == committed:
				x.Outcome = history.Committed
			case o.there == y:
				x.Outcome = history.Unknown
			}
			txns = append(txns, x)
			for _, op := range y.lists {
				if op.Append {
					writers[op.Value] = o
				}
			}
		}
	}
	txns = append(txns, w.history.looks...)
	for _, s := range w.history.snaps {
		txns = append(txns, s.txn)
	}
	for _, a := range history.Check(txns, c.lists, history.RepeatableRead) {
		w.failf("lists: %v", a)
	}
	for _, s := range w.history.snaps {
		for _, op := range s.txn.Ops {
			w.checkSnapshot(s, &op, c.lists[op.Key], writers)
		}
	}
}

// checkSnapshot demands that a snapshot has of a list what was committed up to its number, and
// no more.
func (w *world) checkSnapshot(s *snap, op *history.Op, final []int, writers map[int]*op) {
	for i, value := range final {
		o := writers[value]
		if o == nil || o.number == 0 {
			continue
		}
		if sees, should := i < len(op.Read), o.number <= s.snapshot; sees != should {
			w.failf("%s, at transaction %d: it sees operation %x, which is transaction %d: %v", s.txn.Name,
				s.snapshot, o.id, o.number, sees)
		}
	}
}
