package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// contextOf is the trace context that the insert of a row gives.
func contextOf(id int) (c trace.Context) {
	binary.BigEndian.PutUint64(c.Trace[:], uint64(id)+1)
	binary.BigEndian.PutUint64(c.Span[:], uint64(id)+1)
	return c
}

// insertTraced inserts a row as part of a trace.
func insertTraced(t *testing.T, n *group.Node, id int) uint64 {
	t.Helper()
	return do(t, n, func(s *txn.Session) error {
		o, err := s.Open("shop", "fruit")
		if err == nil {
			err = s.Insert(o, []types.Value{types.NewInt(int64(id)), types.NewString(strings.Repeat(fmt.Sprint(id), 20))}, false)
		}
		s.Trace(contextOf(id))
		return err
	})
}

// tracesIn returns the contexts in a log by the numbers of the transactions, and the format
// versions of its files.
func tracesIn(t *testing.T, l *log.Log) (contexts map[uint64]trace.Context, versions []uint8) {
	t.Helper()
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	contexts = map[uint64]trace.Context{}
	for _, f := range l.Files() {
		versions = append(versions, f.Version)
		for i := f.FirstIndex; i <= f.LastIndex; i++ {
			entries, err := l.Read(i, i+1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if e := entries[0]; e.Type != log.Normal || len(e.Data) == 0 {
				continue
			}
			envelope, body, err := entry.Parse(entries[0].Data)
			if err != nil || envelope.Kind != entry.Transactions {
				continue
			}
			if body, err = envelope.Unpack(z, body, nil); err != nil {
				t.Fatal(err)
			}
			r := entry.NewReader(&envelope, body)
			var x entry.Txn
			for more := true; more; {
				if more, err = r.Next(&x); err != nil {
					t.Fatal(err)
				}
				if more && x.Trace.Valid() {
					contexts[x.Number] = x.Trace
					if f.Version < entry.TraceVersion {
						t.Errorf("%s has version %d, and transaction %d a trace", f.Name, f.Version, x.Number)
					}
				}
			}
		}
	}
	return contexts, versions
}

// spans keeps the spans of a member.
type spans struct {
	mu    sync.Mutex
	drawn uint64
	all   map[uint64]*trace.Span // by the transaction's number
}

func (s *spans) Begin(trace.Context, string) trace.Context { return trace.Context{} }

func (s *spans) Child(parent trace.Context) trace.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn++
	binary.LittleEndian.PutUint64(parent.Span[:], s.drawn)
	return parent
}

func (s *spans) Record(x *trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range x.Attributes {
		if a.Key == "trireme.transaction" {
			s.all[uint64(a.Number)] = x
		}
	}
}

// of waits for the span of a transaction that is applied; it comes right after that.
func (s *spans) of(number uint64) *trace.Span {
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		x := s.all[number]
		s.mu.Unlock()
		if x != nil || time.Now().After(until) {
			return x
		}
	}
}

func (s *spans) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

var firstFormat = transport.Versions{Min: entry.FirstVersion, Max: entry.FirstVersion}

// transportOf opens the transport of a program that knows these versions.
func transportOf(addr string, known transport.Versions) func(transport.Identity, transport.Handler) (transport.Transport, error) {
	return func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
		return transport.New(transport.Options{Listen: addr, Identity: id, AllowPlaintext: true, LogFormat: known, Build: "old"}, h)
	}
}

// A group of an older program is upgraded node by node. Its log takes the newer format, and
// traces begin to travel, when all know it; from then on the older program is refused, and
// told why.
func TestUpgrade(t *testing.T) {
	r := closedRig(t, 3)
	old := []bool{true, true, true}
	traced := []*spans{{all: map[uint64]*trace.Span{}}, {all: map[uint64]*trace.Span{}}, {all: map[uint64]*trace.Span{}}}
	start := func(i int) {
		r.options = func(o *group.Options) {
			o.LogFileSize, o.LogPreallocate, o.Trace = 8192, -1, traced[i]
			o.ElectionTicks = 60 // nobody but who is stopped loses the lead, however busy the machine
			if old[i] {
				o.LogFormat, o.Transport = firstFormat, transportOf(r.addrs[i], firstFormat)
			}
		}
		r.start(i)
	}
	for i := range 3 {
		start(i)
	}
	createFruit(t, r.nodes[r.leader()])
	id := 0
	load := func() (last uint64) {
		for range 150 { // some files
			last = insertTraced(t, r.nodes[r.leader()], id)
			id++
		}
		r.equal(last)
		return last
	}
	load()
	for i := range 3 {
		for _, n := range r.nodes {
			if contexts, versions := tracesIn(t, n.Log()); len(contexts) != 0 || len(versions) < 3 || versions[len(versions)-1] != 1 {
				t.Fatalf("with %d nodes that are upgraded: %d traces in files of versions %v", i, len(contexts), versions)
			}
		}
		r.stop(i)
		old[i] = false
		start(i)
		if i < 2 {
			load()
		}
	}
	upgraded := uint64(0)
	for until := time.Now().Add(time.Minute); upgraded == 0; {
		last := load()
		leader := r.nodes[r.leader()]
		if tail := leader.Log().Tail(); tail.Version == entry.FileVersion {
			upgraded = last
		} else if time.Now().After(until) {
			t.Fatalf("the log stays with version %d", tail.Version)
		}
	}
	leader := r.leader()
	before := traced[leader].count()
	last := load()
	if traced[leader].count() != before {
		t.Errorf("the leader, which has not applied its own transactions, has spans of that")
	}
	for i, n := range r.nodes {
		contexts, _ := tracesIn(t, n.Log())
		for number := upgraded + 1; number <= last; number++ {
			c := contexts[number]
			if !c.Valid() {
				t.Fatalf("node %d: transaction %d has no trace", i+1, number)
			}
			if i == leader {
				continue
			}
			if s := traced[i].of(number); s == nil || s.Trace != c.Trace || s.Parent != c.Span {
				t.Fatalf("node %d: transaction %d, which is part of %v, has the span %+v", i+1, number, c, s)
			}
		}
	}

	// The older program does not open the log any more, and is not let in without one.
	i := (leader + 1) % 3
	r.stop(i)
	o := group.Options{Env: env.Real(), FS: file.OS(r.dirs[i]), LogFormat: firstFormat, Transport: transportOf(r.addrs[i], firstFormat)}
	if n, err := group.Open(o); !errors.Is(err, log.ErrNewerFormat) || !strings.Contains(err.Error(), "upgrade this node") {
		t.Errorf("the older program opens the log: %v", err)
		if err == nil {
			_ = n.Close()
		}
	}
	tr, err := transportOf("127.0.0.1:0", firstFormat)(transport.Identity{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close() }()
	want := "upgrade " + tr.Addr()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := discovery.Probe(context.Background(), tr, r.addrs[leader], time.Second)
		var refused *transport.Rejection
		if errors.As(err, &refused) && refused.Reason == transport.ReasonLogFormatVersion && strings.HasSuffix(refused.Text, want) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the older program is let in, or hears %v", err)
		}
	}
	start(i)
	r.equal(load())
}

// A new group's log has the newest format from its first file on.
func TestNewGroupFormat(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1)
	n := r.nodes[r.leader()]
	createFruit(t, n)
	number := insertTraced(t, n, 1)
	contexts, versions := tracesIn(t, n.Log())
	if len(versions) != 1 || versions[0] != entry.FileVersion || len(contexts) != 1 || contexts[number] != contextOf(1) {
		t.Errorf("%v in files of versions %v", contexts, versions)
	}
}
