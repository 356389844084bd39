package lock

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/env"
)

// TestRangesChangeNothing runs random transactions against two tables, one of which
// keeps locks on ranges of keys. Both must give the same answers, and the same
// transactions must hold and wait for the same.
func TestRangesChangeNothing(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		t.Run(fmt.Sprintf("fifo=%v", fifo), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { newTwins(rt, fifo).run() })
		})
	}
}

const twinOwners = 4

// twins are the two tables and what is above them: entries with writers. Index 1 is a
// clustered one, whose entries are locked by their writers; index 2 is a secondary one.
type twins struct {
	rt     *rapid.T
	fifo   bool
	tables [2]*Table // without ranges, with ranges
	own    [2][twinOwners]Owner
	rc     [twinOwners]bool
	keys   [3][]string
	writer map[string]int // of index 1
	new    map[string]bool
	back   map[string]int // entries of index 1 whose changes were taken back last by whom
}

func newTwins(rt *rapid.T, fifo bool) *twins {
	m := &twins{rt: rt, fifo: fifo, writer: map[string]int{}, new: map[string]bool{}, back: map[string]int{}}
	shards := 1 << rapid.IntRange(0, 3).Draw(rt, "shards")
	for n := range m.tables {
		m.tables[n] = New(Options{Env: env.Real(), Shards: shards, FIFO: fifo, RangesFrom: 2*n - 1})
	}
	for i := range m.rc {
		m.rc[i] = rapid.Bool().Draw(rt, "rc")
		m.begin(i)
	}
	for x := 1; x <= 2; x++ {
		for k := byte('b'); k < 'z'; k += 3 {
			m.keys[x] = append(m.keys[x], string(k))
		}
	}
	return m
}

func (m *twins) begin(i int) {
	for n, t := range m.tables {
		t.Begin(&m.own[n][i], uint64(i+1), TxnOptions{ReadCommitted: m.rc[i]})
	}
}

func (m *twins) waits(i int) bool { return m.own[0][i].wait.lock != nil }

// both runs an operation on either table, which must answer the same.
func (m *twins) both(what string, op func(t *Table, o *Owner, n int) string, i int) string {
	a := op(m.tables[0], &m.own[0][i], 0)
	b := op(m.tables[1], &m.own[1][i], 1)
	m.rt.Logf("%d: %s -> %s", i+1, what, b)
	if a != b && !(a == "granted <nil>" && b == "held <nil>" && m.tookBack(what, i)) {
		m.rt.Fatalf("%s by %d: %s without ranges, %s with", what, i+1, a, b)
	}
	return b
}

// tookBack reports whether a request is for an entry whose change its owner has taken back: of
// the lock that the change was, and the locks that were asked for beside it, ranges make one, which
// may be held as a whole, where single locks hold its parts.
func (m *twins) tookBack(what string, i int) bool {
	for key, by := range m.back {
		if by == i && strings.Contains(what, fmt.Sprintf(" on 1 %q in ", key)) {
			return true
		}
	}
	return false
}

// at finds the place of a key among the entries.
func (m *twins) at(x int, key string) (at int, exact bool) {
	return slices.BinarySearch(m.keys[x], key)
}

func (m *twins) successor(x, at int) []byte {
	if at >= len(m.keys[x]) {
		return Supremum
	}
	return []byte(m.keys[x][at])
}

// area is what is known of the entry at a place: all that is free, or less.
func (m *twins) area(x, at, how int) Area {
	key := m.keys[x][at]
	a := Area{Known: true, From: []byte(key), To: []byte(key + "\x00")}
	if how&1 != 0 && at > 0 {
		a.From = []byte(m.keys[x][at-1] + "\x00")
	} else if how&1 != 0 {
		a.From = nil
	}
	if how&2 != 0 {
		a.To = m.successor(x, at+1)
	}
	return a
}

// lock asks for a lock on the entry at a place, as a table does.
func (m *twins) lock(i, x, at int, mode Mode, policy Policy, how int) string {
	if at == len(m.keys[x]) {
		if mode == RecordS || mode == RecordX {
			return "granted"
		}
		return m.ask(i, x, Request{Index: uint64(x), Mode: mode, Policy: policy}, Hint{})
	}
	key := m.keys[x][at]
	r := Request{Index: uint64(x), Key: []byte(key), Mode: mode, Policy: policy}
	var hint Hint
	if how >= 0 {
		hint.Area = m.area(x, at, how)
	}
	h, ok := m.writer[key]
	switch {
	case x != 1 || !ok:
	case h == i && (mode == RecordS || mode == RecordX):
		return "held"
	case h == i && mode.OnRecord():
		hint.Written = true
	case h != i:
		for n, t := range m.tables {
			if got, _ := t.ConvertImplicit(&m.own[n][h], uint64(h+1), 1, r.Key); got != ImplicitHeld {
				m.rt.Fatalf("%q of %d is not held implicitly: %v", key, h+1, got)
			}
		}
	}
	return m.ask(i, x, r, hint)
}

func (m *twins) ask(i, x int, r Request, hint Hint) string {
	return m.both(fmt.Sprintf("%v on %d %q in [%q, %q)", r.Mode, x, r.Key, hint.Area.From, hint.Area.To), func(t *Table, o *Owner, n int) string {
		hint := hint
		if n == 0 {
			hint.Area = Area{}
		}
		if !hint.Area.Known && !hint.Written {
			res, err := t.Acquire(o, r)
			return fmt.Sprint(res, err)
		}
		res, err := t.AcquireHinted(o, r, &hint)
		return fmt.Sprint(res, err)
	}, i)
}

func (m *twins) run() {
	for range rapid.IntRange(1, 60).Draw(m.rt, "steps") {
		i := rapid.IntRange(0, twinOwners-1).Draw(m.rt, "owner")
		x := rapid.IntRange(1, 2).Draw(m.rt, "index")
		op := rapid.IntRange(0, 9).Draw(m.rt, "op")
		switch {
		case op >= 8:
			m.end(i, op == 9)
		case m.waits(i):
		case op <= 2:
			m.scan(i, x)
		case op == 3:
			at := rapid.IntRange(0, len(m.keys[x])).Draw(m.rt, "at")
			mode := Mode(rapid.IntRange(int(RecordS), int(InsertIntention)).Draw(m.rt, "mode"))
			m.lock(i, x, at, mode, Policy(rapid.IntRange(0, 2).Draw(m.rt, "policy")), -1)
		case op == 4:
			m.insert(i, x)
		case op == 5:
			m.write(i)
		case op == 6:
			m.purge(x)
		case op == 7:
			m.undo(i)
		}
		m.compare()
	}
	for i := range twinOwners {
		m.end(i, false)
	}
	for _, t := range m.tables {
		if len(t.Snapshot(0).Locks) != 0 || t.Memory() != 0 || t.Stats().WaitsNow != 0 || t.Stats().Ranges != 0 {
			m.rt.Fatal("locks are left")
		}
	}
}

// scan locks some entries in order, up or down, and may unlock those that are new.
func (m *twins) scan(i, x int) {
	at := rapid.IntRange(0, len(m.keys[x])-1).Draw(m.rt, "from")
	step := rapid.SampledFrom([]int{1, -1}).Draw(m.rt, "step")
	mode := rapid.SampledFrom([]Mode{RecordS, RecordX, NextKeyS, NextKeyX}).Draw(m.rt, "mode")
	if m.rc[i] && gapModes.has(mode) {
		mode -= NextKeyS - RecordS
	}
	policy := Policy(rapid.IntRange(0, 2).Draw(m.rt, "policy"))
	refuse := rapid.IntRange(0, 3).Draw(m.rt, "refuse")
	for range rapid.IntRange(1, 12).Draw(m.rt, "n") {
		if at < 0 || at >= len(m.keys[x]) {
			return
		}
		how := rapid.IntRange(0, 3).Draw(m.rt, "how")
		got := m.lock(i, x, at, mode, policy, how)
		if got == fmt.Sprint(MustWait, nil) {
			return
		}
		h, ok := m.writer[m.keys[x][at]]
		if got == fmt.Sprint(Granted, nil) && refuse == 0 && !gapModes.has(mode) && (x != 1 || !ok || h != i) {
			m.both("unlock", func(t *Table, o *Owner, n int) string {
				return fmt.Sprint(t.Unlock(o, uint64(x), []byte(m.keys[x][at]), mode, m.area(x, at, how)))
			}, i)
		}
		at += step
	}
}

func (m *twins) insert(i, x int) {
	key := string(rapid.ByteRange('a', 'z').Draw(m.rt, "new"))
	at, exact := m.at(x, key)
	if exact {
		return
	}
	m.rt.Logf("%d: insert %d %q", i+1, x, key)
	next := m.successor(x, at)
	if m.ask(i, x, Request{Index: uint64(x), Key: next, Mode: InsertIntention}, Hint{}) != fmt.Sprint(Granted, nil) {
		return
	}
	m.keys[x] = slices.Insert(m.keys[x], at, key)
	for n, t := range m.tables {
		inserter := &m.own[n][i]
		if x == 2 {
			inserter = nil
		}
		t.InheritOnInsert(inserter, uint64(x), []byte(key), next)
	}
	if x == 1 {
		m.writer[key], m.new[key] = i, true
	}
}

// write changes an entry of index 1 that i has locked.
func (m *twins) write(i int) {
	at := rapid.IntRange(0, len(m.keys[1])-1).Draw(m.rt, "at")
	key := m.keys[1][at]
	if h, ok := m.writer[key]; ok && (h != i || m.new[key]) {
		return // what locks on a new entry become when it is taken back depends on who has looked
	} else if !ok && !m.tables[0].Holds(&m.own[0][i], 1, []byte(key), RecordX) {
		return
	}
	m.rt.Logf("%d: write %q", i+1, key)
	m.writer[key] = i
	if m.tables[1].Wrote(&m.own[1][i], 1, []byte(key)) {
		m.tables[1].DropAlone(&m.own[1][i], 1, []byte(key), m.area(1, at, 3))
	}
}

func (m *twins) remove(i, x, at int) {
	key := m.keys[x][at]
	next := m.successor(x, at+1)
	m.rt.Logf("%d: remove %d %q", i+1, x, key)
	for n, t := range m.tables {
		var inserter *Owner
		if i >= 0 {
			inserter = &m.own[n][i]
		}
		t.InheritOnRemove(inserter, uint64(x), []byte(key), next)
	}
	m.keys[x] = slices.Delete(m.keys[x], at, at+1)
}

func (m *twins) purge(x int) {
	if len(m.keys[x]) < 4 {
		return
	}
	at := rapid.IntRange(0, len(m.keys[x])-1).Draw(m.rt, "at")
	if _, ok := m.writer[m.keys[x][at]]; x == 1 && ok {
		return
	}
	m.remove(-1, x, at)
}

// undo takes all changes of i back, which goes on.
func (m *twins) undo(i int) {
	for at := len(m.keys[1]) - 1; at >= 0; at-- {
		key := m.keys[1][at]
		if h, ok := m.writer[key]; !ok || h != i {
			continue
		}
		delete(m.writer, key)
		if m.new[key] {
			delete(m.new, key)
			m.remove(i, 1, at)
			continue
		}
		m.rt.Logf("%d: take back %q", i+1, key)
		m.back[key] = i
		m.tables[1].Keep(&m.own[1][i], 1, []byte(key), m.area(1, at, 3))
	}
}

// end commits a transaction, or withdraws its request, and begins the next one.
func (m *twins) end(i int, cancel bool) {
	if cancel {
		m.both("cancel", func(t *Table, o *Owner, n int) string { t.Cancel(o); return "" }, i)
		return
	}
	for key, by := range m.back {
		if by == i {
			delete(m.back, key)
		}
	}
	m.both("release", func(t *Table, o *Owner, n int) string { t.ReleaseAll(o, 0); return "" }, i)
	for key, h := range m.writer {
		if h == i {
			delete(m.writer, key)
			delete(m.new, key)
		}
	}
	m.begin(i)
}

// compare asks who holds what, and who waits.
func (m *twins) compare() {
	for n, t := range m.tables {
		if err := t.check(); err != nil {
			m.rt.Fatalf("table %d: %v", n, err)
		}
	}
	if !m.fifo {
		return
	}
	var got [2]bytes.Buffer
	for n, t := range m.tables {
		for _, l := range t.Snapshot(0).Locks {
			if !l.Granted {
				fmt.Fprintf(&got[n], "%d waits for %s on %d %q\n", l.Trx, l.Mode, l.Index, l.Key)
			}
		}
		for i := range twinOwners {
			m.holds(&got[n], n, t, i)
		}
	}
	if a, b := got[0].String(), got[1].String(); a != b {
		m.rt.Fatalf("without ranges\n%swith ranges\n%s", a, b)
	}
}

func (m *twins) holds(to *bytes.Buffer, n int, t *Table, i int) {
	for x := 1; x <= 2; x++ {
		for at := 0; at <= len(m.keys[x]); at++ {
			key := m.successor(x, at)
			for _, mode := range []Mode{GapS, GapX, RecordS, RecordX} {
				h, ok := m.writer[string(key)]
				implicit := x == 1 && ok && h == i
				switch {
				case len(key) == 0 && mode.OnRecord():
				case implicit && mode.OnRecord() || t.Holds(&m.own[n][i], uint64(x), key, mode):
					fmt.Fprintf(to, "%d holds %s on %d %q\n", i+1, mode, x, key)
				}
			}
		}
	}
}
