package simgroup

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/replication/group"
)

// settle waits until the group works again and all its members have the same.
func (w *world) settle() {
	w.heal()
	if !w.within(60*time.Second, func() bool { return w.leader() != nil }) {
		w.failf("nobody leads after everything was mended: %s\n%s", w.standing(), stacks("replication/group.("))
		return
	}
	var number, index uint64
	reached := w.within(90*time.Second, func() bool {
		l := w.leader()
		if l == nil {
			return false
		}
		s := l.node.Status()
		number, index = s.Number, s.Applied
		if !w.allJoined(l.node.Members()) {
			return false
		}
		for _, m := range l.node.Members() {
			n := w.find(m.ID)
			if n == nil { // it lost its disk, and has yet to join as another
				return false
			}
			if n.node == nil {
				if n.gone { // added without ever having been started
					_ = l.node.Remove(m.ID)
				}
				return false
			}
			if s := n.node.Status(); s.Number < number || s.Applied+3 < index {
				return false
			}
		}
		return true
	})
	if !reached {
		w.failf("not all members have reached transaction %d: %s", number, w.standing())
	}
}

// allJoined reports whether all nodes that look for the group by themselves are in it.
func (w *world) allJoined(members []group.Member) bool {
	for _, n := range w.made {
		in := slices.ContainsFunc(members, func(m group.Member) bool { return m.ID == n.id })
		if n.node != nil && errors.Is(n.node.Err(), group.ErrRemoved) {
			n.gone = true // who asked for it did not hear that it was done
		}
		if w.plan != nil && !n.gone && !in {
			if n.inDoubt() {
				continue // an operator empties its directory (docs/operations-group.md)
			}
			return false
		}
	}
	return true
}

// inDoubt reports whether a node was told that it left the group by fewer members than the
// majority it needs for certainty, because some of those that it knows have left, too.
func (n *node) inDoubt() bool {
	if n.node == nil {
		return false
	}
	_, err := n.node.ReadPoint(group.ReadOptions{})
	return errors.Is(err, group.ErrMaybeRemoved)
}

func (w *world) standing() string {
	out := ""
	for _, n := range w.made {
		switch {
		case n.gone:
		case n.node == nil:
			out += fmt.Sprintf("\n  node %d is down", n.id)
		default:
			out += fmt.Sprintf("\n  %+v", n.node.Status())
			if p, ok := n.node.Progress(); ok {
				out += fmt.Sprintf(" getting %+v", p)
			}
			if fs := n.node.Followers(); fs != nil {
				out += fmt.Sprintf(" leads %+v", fs)
			}
		}
	}
	return out
}

// check compares the members with each other and with what clients know.
func (w *world) check() {
	for _, n := range w.made {
		if n.node != nil && n.node.Err() != nil && !errors.Is(n.node.Err(), group.ErrRemoved) {
			w.failf("node %d has failed: %v", n.id, n.node.Err())
		}
	}
	if w.problem != "" {
		return
	}
	var nodes []*node
	w.within(10*time.Second, func() bool { return w.leader() != nil })
	for _, m := range w.members() {
		if n := w.find(m.ID); n != nil && n.node != nil {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) < 2 {
		w.failf("%d members are there to be checked: %s", len(nodes), w.standing())
		return
	}
	w.checkBodies(nodes)
	w.checkHashes(nodes)
	w.checkFiles(nodes)
	w.checkIndexes(nodes)
	w.checkHistory(nodes)
	w.checkTraces(nodes)
}

// checkBodies demands that nothing of a large transaction is left where none runs.
func (w *world) checkBodies(nodes []*node) {
	for _, n := range nodes {
		var left int
		if !w.within(15*time.Second, func() bool {
			s, err := n.node.Stats()
			left = len(s.Bodies.Streams) + s.Bodies.Fetching
			return err == nil && left == 0
		}) {
			s, _ := n.node.Stats()
			w.failf("node %d: %d bodies of large transactions are left: %+v", n.id, left, s.Bodies)
		}
	}
}

// checkHashes demands equal state hashes where all members have applied the same. Settings have no number: a member may have all
// transactions and not the last of them, for as long as a stall that has begun lasts.
func (w *world) checkHashes(nodes []*node) {
	var want [32]byte
	if !w.within(time.Minute, func() bool {
		at := nodes[0].node.Status().Applied
		return !slices.ContainsFunc(nodes, func(n *node) bool { return n.node.Status().Applied != at })
	}) {
		w.failf("members stay at different entries: %s", w.standing())
		return
	}
	for i, n := range nodes {
		e, err := n.node.Engine()
		if err != nil {
			w.failf("node %d: %v", n.id, err)
			return
		}
		number := e.Trx.LastCommitted()
		got, err := e.StateHash(number)
		if err != nil {
			w.failf("node %d: state hash at %d: %v", n.id, number, err)
			return
		}
		if i == 0 {
			want = got
		} else if got != want {
			w.failf("node %d and node %d differ at transaction %d", nodes[0].id, n.id, number)
		}
	}
}

// checkFiles demands that closed files of one number are equal wherever they are.
func (w *world) checkFiles(nodes []*node) {
	type sum struct {
		node uint64
		hash [32]byte
	}
	seen := map[string]sum{}
	for _, n := range nodes {
		l := n.node.Log()
		if l == nil {
			continue
		}
		for _, f := range l.Files() {
			if !f.Closed {
				continue
			}
			h, err := l.HashFile(f.Number)
			if err != nil && l.Files()[0].Number > f.Number {
				continue // purged while others were read
			}
			if err != nil {
				w.failf("node %d: %s: %v", n.id, f.Name, err)
				return
			}
			other, found := seen[f.Name]
			if found && other.hash != h {
				w.failf("%s differs on node %d and node %d", f.Name, other.node, n.id)
			}
			if !found {
				seen[f.Name] = sum{n.id, h}
			}
		}
	}
}

// ReadLog returns which operations are in a log, by the transactions that they were
// committed as, and the first transaction that the log has. An operation is a row of
// the given table, by the value of its first column; one that is there twice is an
// error.
func ReadLog(l *log.Log, def *record.Table) (numbers map[uint64]uint64, from uint64, err error) {
	numbers = map[uint64]uint64{}
	layout, err := event.NewLayout(def, event.Options{})
	if err != nil {
		return nil, 0, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, 0, err
	}
	defer z.Close()
	start, err := l.StartAt(l.FirstIndex() - 1)
	if err != nil {
		return nil, 0, err
	}
	for i := l.FirstIndex(); i <= l.Committed(); {
		entries, err := l.Read(i, l.Committed()+1, 1<<20)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range entries {
			if err := readEntry(l, z, layout, &e, numbers); err != nil {
				return nil, 0, fmt.Errorf("entry %d: %w", e.Index, err)
			}
		}
		i += uint64(len(entries))
	}
	return numbers, start.Number + 1, nil
}

func readEntry(l *log.Log, z *zstd.Decoder, layout *event.Layout, e *log.Entry, numbers map[uint64]uint64) error {
	return eachTxn(l, z, e, func(t *entry.Txn) error {
		id, found, err := opOf(layout, t.Events)
		if err != nil || !found {
			return err
		}
		if was, twice := numbers[id]; twice {
			return fmt.Errorf("operation %x is transaction %d and %d", id, was, t.Number)
		}
		numbers[id] = t.Number
		return nil
	})
}

// opOf returns the operation that a transaction recorded.
func opOf(layout *event.Layout, events []byte) (id uint64, found bool, err error) {
	r := event.NewReader(events)
	var e event.Event
	var rows event.RowReader
	for {
		more, err := r.Next(&e)
		if err != nil || !more {
			return id, found, err
		}
		if e.Type != event.TypeWriteRows {
			continue
		}
		if table, err := e.TableID(); err != nil || table != layout.Table().ID {
			continue
		}
		if err := layout.Read(&e, &rows); err != nil {
			return 0, false, err
		}
		for {
			more, err := rows.Next()
			if err != nil {
				return 0, false, err
			}
			if !more {
				break
			}
			id, found = uint64(rows.After[0].Int()), true
		}
	}
}

// definition is that of the table of operations.
func (n *node) definition() (*record.Table, error) {
	e, err := n.node.Engine()
	if err != nil {
		return nil, err
	}
	h, err := e.Catalog.OpenTable(nil, "bank", "ops")
	if err != nil {
		return nil, err
	}
	defer h.Release()
	return h.Table().Schema.Table, nil
}
