package lock

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/env"
)

// TestModesAgreeWithRules compares the tables of modes with InnoDB's rules.
func TestModesAgreeWithRules(t *testing.T) {
	for a := range modeCount {
		for b := range modeCount {
			if a.IsTable() == b.IsTable() && a.Conflicts(b) != mustWait(a, b, false) {
				t.Errorf("%v against %v: %v", a, b, a.Conflicts(b))
			}
			if a.IsTable() != b.IsTable() && (a.Conflicts(b) || a.Covers(b)) {
				t.Errorf("%v and %v are of different kinds", a, b)
			}
			if a.Covers(b) && !(a.IsTable() && b.IsTable()) && b != InsertIntention {
				for c := range modeCount {
					if mustWait(c, b, false) && !mustWait(c, a, false) {
						t.Errorf("%v covers %v but does not keep %v out", a, b, c)
					}
				}
			}
		}
	}
}

// model is the lock table in order of arrival, told simply: one list of locks.
type model struct {
	locks []modelLock
	rc    [8]bool
}

type modelLock struct {
	owner   int
	index   uint64
	key     string
	mode    Mode
	granted bool
}

func (m *model) same(l modelLock) (all []*modelLock) {
	for i := range m.locks {
		k := &m.locks[i]
		if k.index == l.index && k.key == l.key && k.mode.IsTable() == l.mode.IsTable() {
			all = append(all, k)
		}
	}
	return all
}

// blocked: a granted lock of another, or one that waits since before, unless the
// latter waits for a lock of the same owner.
func (m *model) blocked(l modelLock) bool {
	sup := l.key == "" && !l.mode.IsTable()
	all := m.same(l)
	for _, k := range all {
		if k.owner != l.owner && k.granted && mustWait(l.mode, k.mode, sup) {
			return true
		}
	}
	for _, k := range all {
		if *k == l {
			return false
		}
		if k.granted || k.owner == l.owner || !mustWait(l.mode, k.mode, sup) {
			continue
		}
		bypass := l.mode != InsertIntention && slices.ContainsFunc(all, func(g *modelLock) bool {
			return g.owner == l.owner && g.granted && mustWait(k.mode, g.mode, sup)
		})
		if !bypass {
			return true
		}
	}
	return false
}

func (m *model) holds(l modelLock) bool {
	return slices.ContainsFunc(m.locks, func(k modelLock) bool {
		return k.owner == l.owner && k.granted && k.index == l.index && k.key == l.key && k.mode.Covers(l.mode)
	})
}

func (m *model) acquire(l modelLock) Result {
	l.granted = false
	if m.holds(l) {
		return Held
	}
	if m.blocked(l) {
		m.locks = append(m.locks, l)
		return MustWait
	}
	if l.mode != InsertIntention {
		l.granted = true
		m.locks = append(m.locks, l)
	}
	return Granted
}

// remove takes locks out and grants what that allows, one after the other.
func (m *model) remove(out func(modelLock) bool) {
	m.locks = slices.DeleteFunc(m.locks, out)
	for i := 0; i < len(m.locks); i++ {
		if l := m.locks[i]; !l.granted && !m.blocked(l) {
			m.locks[i].granted = true
			i = -1
		}
	}
}

func (m *model) inherit(from, to modelLock, removed bool) {
	all := m.same(from)
	slices.SortStableFunc(all, func(a, b *modelLock) int { return compareBool(b.granted, a.granted) })
	for _, k := range all {
		l := modelLock{owner: k.owner, index: to.index, key: to.key, mode: k.mode.gap(), granted: true}
		switch {
		case k.mode == InsertIntention:
			continue
		case removed && m.rc[k.owner] && l.mode == GapX:
			continue
		case !removed && (k.mode == RecordS || k.mode == RecordX):
			continue
		case m.holds(l):
			continue
		}
		m.locks = append(m.locks, l)
	}
}

func (m *model) describe() []string {
	var lines []string
	for _, l := range m.locks {
		lines = append(lines, fmt.Sprintf("%d %v %d %q %v %v", l.owner+1, l.mode.IsTable(), l.index, l.key,
			l.mode.name(l.key == "" && !l.mode.IsTable()), l.granted))
	}
	slices.Sort(lines)
	return lines
}

func describe(t *Table) []string {
	var lines []string
	for _, l := range t.Snapshot(0).Locks {
		lines = append(lines, fmt.Sprintf("%d %v %d %q %v %v", l.Trx, l.Table, l.Index, l.Key, l.Mode, l.Granted))
	}
	slices.Sort(lines)
	return lines
}

// TestModel runs random requests against the table and the model, in order of
// arrival, where both must agree on every lock; with weights the order differs,
// but the invariants hold.
func TestModel(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		t.Run(fmt.Sprintf("fifo=%v", fifo), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { runModel(rt, fifo) })
		})
	}
}

func runModel(rt *rapid.T, fifo bool) {
	const owners = 5
	table := New(Options{Env: env.Real(), Shards: 1 << rapid.IntRange(0, 3).Draw(rt, "shards"), FIFO: fifo})
	keys := []string{"a", "b", ""}
	var m model
	var own [owners]Owner
	for i := range own {
		m.rc[i] = rapid.Bool().Draw(rt, "rc")
		table.Begin(&own[i], uint64(i+1), TxnOptions{ReadCommitted: m.rc[i]})
	}
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		i := rapid.IntRange(0, owners-1).Draw(rt, "owner")
		o := &own[i]
		switch op := rapid.IntRange(0, 11).Draw(rt, "op"); {
		case op <= 6: // acquire
			if o.wait.lock != nil {
				continue
			}
			l := modelLock{owner: i, index: uint64(rapid.IntRange(1, 2).Draw(rt, "index"))}
			l.mode = Mode(rapid.IntRange(0, int(modeCount)-1).Draw(rt, "mode"))
			if !l.mode.IsTable() {
				l.key = rapid.SampledFrom(keys).Draw(rt, "key")
				if l.key == "" && (l.mode == RecordS || l.mode == RecordX) {
					continue
				}
			}
			got, err := table.Acquire(o, Request{Index: l.index, Key: []byte(l.key), Mode: l.mode})
			if l.key == "" && !l.mode.IsTable() {
				l.mode = l.mode.onSupremum()
			}
			if want := m.acquire(l); err != nil || fifo && got != want {
				rt.Fatalf("%d asks for %v on %d %q: %v, %v, want %v", i+1, l.mode, l.index, l.key, got, err, want)
			}
		case op == 7:
			table.ReleaseAll(o, 0)
			m.remove(func(l modelLock) bool { return l.owner == i })
			table.Begin(o, uint64(i+1), TxnOptions{ReadCommitted: m.rc[i]})
		case op == 8:
			table.Cancel(o)
			m.remove(func(l modelLock) bool { return l.owner == i && !l.granted })
		case op == 9 && o.wait.lock == nil:
			table.ReleaseAutoInc(o)
			m.remove(func(l modelLock) bool { return l.owner == i && l.mode == TableAutoInc })
		case op == 10: // the entry "b" goes, and its successor is the supremum
			table.InheritOnRemove(nil, 1, []byte("b"), Supremum)
			m.inherit(modelLock{index: 1, key: "b", mode: RecordS}, modelLock{index: 1}, true)
			m.remove(func(l modelLock) bool { return l.index == 1 && l.key == "b" && !l.mode.IsTable() })
		case op == 11: // "a" comes before "b"
			table.InheritOnRemove(nil, 1, []byte("a"), []byte("b"))
			m.inherit(modelLock{index: 1, key: "a", mode: RecordS}, modelLock{index: 1, key: "b"}, true)
			m.remove(func(l modelLock) bool { return l.index == 1 && l.key == "a" && !l.mode.IsTable() })
			table.InheritOnInsert(nil, 1, []byte("a"), []byte("b"))
			m.inherit(modelLock{index: 1, key: "b", mode: RecordS}, modelLock{index: 1, key: "a"}, false)
		}
		if err := table.check(); err != nil {
			rt.Fatal(err)
		}
		if got, want := describe(table), m.describe(); fifo && !slices.Equal(got, want) {
			rt.Fatalf("got\n%v\nwant\n%v", lines(got), lines(want))
		}
	}
	for i := range own {
		table.ReleaseAll(&own[i], 0)
	}
	if len(table.Snapshot(0).Locks) != 0 || table.Memory() != 0 || table.Stats().WaitsNow != 0 {
		rt.Fatal("locks are left")
	}
}

func lines(s []string) string {
	var b bytes.Buffer
	for _, l := range s {
		b.WriteString(l + "\n")
	}
	return b.String()
}
