package simgroup

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// In a mixed life all founders run a program at first that knows the first format of the
// log alone, and are upgraded one by one. In a plain one nobody is traced.

// oldProgram is what a program before traces knows.
var oldProgram = transport.Versions{Min: entry.FirstVersion, Max: entry.FirstVersion}

// knows is what the node's program knows.
func (n *node) knows() transport.Versions {
	if n.old {
		return oldProgram
	}
	return group.LogFormat
}

// speaks are the versions of the protocol that the machine's program speaks.
func (n *node) speaks() (v transport.Versions) {
	if n.old {
		v = transport.Versions{Min: 1, Max: 1}
	}
	return v
}

// mixed reports whether the group begins with an older program.
func (w *world) mixed() bool { return !w.opt.Plain && w.opt.Seed%3 == 1 }

// traceOf is what an operation is part of: two of three are.
func (w *world) traceOf(id uint64) (c trace.Context) {
	if !w.opt.Plain && id%3 != 0 {
		binary.BigEndian.PutUint64(c.Trace[:], ^id)
		binary.BigEndian.PutUint64(c.Trace[8:], id)
		binary.BigEndian.PutUint64(c.Span[:], ^id)
	}
	return c
}

// upgrade starts a node anew with the newer program.
func (w *world) upgrade(n *node, how haltKind) {
	n.old = false
	w.within(time.Minute, func() bool { return !n.busy })
	n.halt(how)
	n.restart()
}

// wipe puts an empty disk into a machine, which gets the newer program, since the group may
// not let the older one in any more.
func (n *node) wipe(seed uint64) {
	n.id, n.fs, n.shown, n.old = 0, simfile.New(n.env, seed), 0, false
}

// recorder takes the spans of a machine.
type recorder struct{ n *node }

// applied is what a span tells.
type applied struct {
	node, number uint64
	parent       trace.Context
}

// Begin implements [trace.Recorder].
func (r recorder) Begin(trace.Context, string) trace.Context { return trace.Context{} }

// Child implements [trace.Recorder].
func (r recorder) Child(parent trace.Context) trace.Context {
	r.n.w.drawn++
	binary.BigEndian.PutUint64(parent.Span[:], r.n.w.drawn)
	return parent
}

// Record implements [trace.Recorder].
func (r recorder) Record(s *trace.Span) {
	a := applied{node: r.n.id, parent: trace.Context{Trace: s.Trace, Span: s.Parent}}
	for _, at := range s.Attributes {
		switch {
		case at.Key == "trireme.transaction":
			a.number = uint64(at.Number)
		case at.Key == "trireme.member" && uint64(at.Number) != r.n.id && r.n.id != 0:
			r.n.w.failf("node %d: a span of member %d", r.n.id, at.Number)
		}
	}
	r.n.w.spans = append(r.n.w.spans, a)
}

// checkTraces demands that what the logs have is what the clients gave, that files of the
// first format have none, and that spans of applied transactions are of those in the log.
func (w *world) checkTraces(nodes []*node) {
	inLog := map[uint64]trace.Context{}
	known := map[uint64]bool{}
	for _, n := range nodes {
		def, err := n.definition()
		if err == nil {
			var layout *event.Layout
			if layout, err = event.NewLayout(def, event.Options{}); err == nil {
				err = w.readTraces(n.node.Log(), layout, inLog, known)
			}
		}
		if err != nil {
			w.failf("node %d: traces in the log: %v", n.id, err)
			return
		}
	}
	for _, a := range w.spans {
		if known[a.number] && inLog[a.number] != a.parent {
			w.failf("node %d: transaction %d was applied as part of %v, which has %v in the log", a.node, a.number, a.parent, inLog[a.number])
		}
	}
	w.traced = len(inLog)
}

// madeBefore is how many entries may wait to be written when a newer file begins.
const madeBefore = 16

// readTraces notes which transactions of a log are part of what.
func (w *world) readTraces(l *log.Log, layout *event.Layout, inLog map[uint64]trace.Context, known map[uint64]bool) error {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	before := uint8(entry.TraceVersion)
	if w.mixed() {
		before = entry.FirstVersion
	}
	newer := uint64(0) // first index of the first file of the newest version
	for _, f := range l.Files() {
		if f.Version != before {
			newer = f.FirstIndex
		}
		if f.Version < before && before == entry.TraceVersion {
			return fmt.Errorf("%s has version %d behind one of version %d", f.Name, f.Version, before)
		}
		for i := f.FirstIndex; i <= min(f.LastIndex, l.Committed()); {
			entries, err := l.Read(i, f.LastIndex+1, 1<<20)
			if err != nil {
				return err
			}
			for _, e := range entries {
				i = e.Index + 1
				err := eachTxn(l, z, &e, func(t *entry.Txn) error {
					known[t.Number] = true
					if t.Trace.Valid() {
						inLog[t.Number] = t.Trace
					}
					id, found, err := opOf(layout, t.Events)
					if err != nil || !found {
						return err
					}
					want := w.traceOf(id)
					// The first entries of the first newer file may have been made when it was not there; a large
					// transaction among them has a file of its own.
					unsure := (f.Version != before || newer != 0 && e.Index < newer+madeBefore) && !t.Trace.Valid()
					if f.Version < entry.TraceVersion {
						want = trace.Context{}
					}
					if t.Trace != want && !unsure {
						return fmt.Errorf("transaction %d in %s, of version %d, is part of %v, not of %v", t.Number, f.Name, f.Version, t.Trace, want)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
		}
		before = f.Version
	}
	return nil
}

// eachTxn calls fn for the transactions of an entry of l.
func eachTxn(l *log.Log, z *zstd.Decoder, e *log.Entry, fn func(*entry.Txn) error) error {
	if e.Type != log.Normal || len(e.Data) == 0 {
		return nil
	}
	env, stored, err := entry.Parse(e.Data)
	if err == nil && env.Kind == entry.Large && env.Term == e.Term {
		return largeTxn(l, z, e.Index, &env, stored, fn)
	}
	if err != nil || env.Kind != entry.Transactions || env.Term != e.Term {
		return err
	}
	if stored, err = env.Unpack(z, stored, nil); err != nil {
		return err
	}
	r := entry.NewReader(&env, stored)
	var t entry.Txn
	for {
		more, err := r.Next(&t)
		if err != nil || !more {
			return err
		}
		if err := fn(&t); err != nil {
			return err
		}
	}
}

// largeTxn calls fn for a large transaction, with all its events.
func largeTxn(l *log.Log, z *zstd.Decoder, index uint64, env *entry.Envelope, stored []byte, fn func(*entry.Txn) error) error {
	want, t, err := entry.ParseLarge(env, stored)
	if err != nil {
		return err
	}
	f, err := l.OpenBody(index)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	for r := body.NewReader(f, &want, z); ; {
		_, events, err := r.Next()
		if err == io.EOF {
			return fn(&t)
		}
		if err != nil {
			return err
		}
		t.Events = append(t.Events, events...)
	}
}
