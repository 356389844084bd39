package simnettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/replication/transport"
)

var group = transport.GroupID{7}

// host is a Handler that keeps what it hears.
type host struct {
	env         env.Env
	id          uint64
	net         *Node
	commits     []uint64 // of the heartbeats that came
	appends     []uint64 // the indexes of the appends
	connected   map[uint64]int
	reached     map[uint64]int
	refused     map[uint64]int
	gone        map[uint64]int
	unreachable map[uint64]int
	rejected    map[uint64]string
	work        time.Duration // of Answer
}

func addr(id uint64) string { return fmt.Sprintf("n%d", id) }

func join(n *Network, id uint64, change func(*Config)) *host {
	h := &host{env: n.env, id: id, connected: map[uint64]int{}, reached: map[uint64]int{}, refused: map[uint64]int{}, gone: map[uint64]int{}, unreachable: map[uint64]int{},
		rejected: map[uint64]string{}}
	c := Config{Addr: addr(id), Identity: transport.Identity{Group: group, Member: id}, Build: "test"}
	if change != nil {
		change(&c)
	}
	var err error
	if h.net, err = n.Listen(c, h); err != nil {
		panic(err)
	}
	return h
}

func (h *host) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	for _, m := range msgs {
		if m.GetFrom() != from || m.GetTo() != h.id {
			panic("wrong receiver")
		}
		if m.GetType() == raftpb.MsgApp {
			h.appends = append(h.appends, m.GetIndex())
		} else {
			h.commits = append(h.commits, m.GetCommit())
		}
	}
}
func (h *host) ReportUnreachable(id uint64)                      { h.unreachable[id]++ }
func (h *host) ReportGone(id, incarnation uint64)                { h.gone[id]++ }
func (h *host) ReportRefused(id uint64)                          { h.refused[id]++ }
func (h *host) ReportConnected(id uint64)                        { h.connected[id]++ }
func (h *host) ReportReached(id uint64)                          { h.reached[id]++ }
func (h *host) ReportRejected(id uint64, r *transport.Rejection) { h.rejected[id] = r.Text }
func (h *host) Answer(ctx context.Context, kind string, p []byte) ([]byte, error) {
	if h.work > 0 {
		env.Sleep(h.env, h.work)
	}
	if kind == "fail" {
		return nil, &transport.Failure{Code: 4, Text: "four"}
	}
	return append([]byte(fmt.Sprintf("%d:", transport.CallerFrom(ctx).Member)), p...), nil
}

// Bulk sends 100 chunks of 100 kB from the one that the payload names on.
func (h *host) Bulk(_ context.Context, _ string, p []byte, w transport.BulkWriter) error {
	for i := p[0]; i < 100; i++ {
		if err := w.Send(bytes.Repeat([]byte{i}, 100_000)); err != nil {
			return err
		}
	}
	return nil
}

func beat(from, to, commit uint64) []*raftpb.Message {
	return []*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: new(from), To: new(to), Term: new(uint64(1)), Commit: new(commit)}}
}

func app(from, to, index uint64) []*raftpb.Message {
	return []*raftpb.Message{{Type: raftpb.MsgApp.Enum(), From: new(from), To: new(to), Term: new(uint64(1)), Index: new(index)}}
}

// pair runs a test with two connected nodes.
func pair(t *testing.T, seed uint64, opts Options, run func(sim *simenv.Sim, n *Network, a, b *host)) {
	t.Helper()
	sim := simenv.New(seed)
	sim.StepLimit = 2_000_000
	sim.Run(func() {
		n := New(sim, opts)
		a, b := join(n, 1, nil), join(n, 2, nil)
		a.net.SetPeers([]transport.Peer{{ID: 1, Addr: addr(1)}, {ID: 2, Addr: addr(2)}})
		b.net.AddPeer(1, addr(1))
		env.Sleep(sim, 20*time.Millisecond)
		if a.connected[2] != 1 || b.connected[1] != 1 || a.reached[2] != 1 || b.reached[1] != 1 {
			t.Fatalf("seed %d: not connected: %+v", seed, a.net.Status())
		}
		run(sim, n, a, b)
	})
}

// A reader of bulk that takes nothing loses its stream.
func TestBulkReaderStandsStill(t *testing.T) {
	pair(t, 1, Options{BulkWindow: 1 << 20}, func(sim *simenv.Sim, _ *Network, a, b *host) {
		r, err := a.net.OpenBulk(context.Background(), transport.Call{To: 2, Payload: []byte{0}})
		if err != nil {
			t.Fatal(err)
		}
		env.Sleep(sim, 29*time.Second)
		if len(b.net.calls) != 1 {
			t.Errorf("%d streams are served after 29 s", len(b.net.calls))
		}
		env.Sleep(sim, 4*time.Second)
		if _, err := r.Next(); err == nil || len(b.net.calls) != 0 {
			t.Errorf("%d streams are served after 33 s, and the reader hears %v", len(b.net.calls), err)
		}
	})
}

func TestOrder(t *testing.T) {
	for seed := range uint64(20) {
		pair(t, seed, Options{}, func(sim *simenv.Sim, _ *Network, a, b *host) {
			for i := range uint64(100) {
				a.net.Send(append(beat(1, 2, i), app(1, 2, i)...))
				env.Sleep(sim, time.Duration(sim.Uint64()%100_000))
			}
			env.Sleep(sim, time.Second)
			if len(b.commits) != 100 || !slices.IsSorted(b.commits) || len(b.appends) != 100 || !slices.IsSorted(b.appends) {
				t.Errorf("seed %d: heartbeats %v, appends %v", seed, b.commits, b.appends)
			}
		})
	}
}

func TestFaultsOfMessages(t *testing.T) {
	pair(t, 1, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		n.SetFaults(addr(1), addr(2), Faults{Loss: 200, Duplicate: 200, Reorder: 200})
		for i := range uint64(1000) {
			a.net.Send(beat(1, 2, i))
			env.Sleep(sim, 100*time.Microsecond)
		}
		env.Sleep(sim, time.Second)
		if slices.IsSorted(b.commits) {
			t.Error("nothing was overtaken")
		}
		slices.Sort(b.commits)
		all := len(b.commits)
		distinct := len(slices.Compact(b.commits))
		if distinct > 900 || distinct < 700 || all-distinct < 50 {
			t.Errorf("%d arrived, %d of them distinct", all, distinct)
		}
		n.SetFaults(addr(1), addr(2), Faults{Reset: 1000})
		a.net.Send(beat(1, 2, 1))
		env.Sleep(sim, 50*time.Millisecond)
		if a.unreachable[2] == 0 || a.connected[2] != 2 || b.reached[1] != 2 {
			t.Errorf("after a reset: unreachable %d, connected %d, reached %d", a.unreachable[2], a.connected[2], b.reached[1])
		}
	})
}

// A short cut delays messages, a long one loses the connection with them.
func TestCut(t *testing.T) {
	pair(t, 3, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		n.Cut(addr(1), addr(2))
		a.net.Send(beat(1, 2, 1))
		b.net.Send(beat(2, 1, 5)) // the other way still works
		env.Sleep(sim, time.Second)
		if len(b.commits) != 0 || len(a.commits) != 1 {
			t.Fatalf("heartbeats %v and %v", a.commits, b.commits)
		}
		n.Heal(addr(1), addr(2))
		env.Sleep(sim, 10*time.Millisecond)
		if len(b.commits) != 1 || a.unreachable[2] != 0 {
			t.Fatalf("after a short cut: %v, unreachable %d", b.commits, a.unreachable[2])
		}
		n.Partition([]string{addr(1)}, []string{addr(2)})
		a.net.Send(beat(1, 2, 2))
		env.Sleep(sim, 3*time.Second)
		if a.unreachable[2] == 0 || b.unreachable[1] == 0 || a.refused[2] != 0 {
			t.Fatalf("unreachable %v and %v, refused %v", a.unreachable, b.unreachable, a.refused)
		}
		a.net.Send(beat(1, 2, 3))
		n.HealAll()
		env.Sleep(sim, 2*time.Second)
		a.net.Send(beat(1, 2, 4))
		env.Sleep(sim, time.Second)
		if fmt.Sprint(b.commits) != "[1 4]" {
			t.Fatalf("heartbeats %v", b.commits)
		}
	})
}

func TestCrashIsRefused(t *testing.T) {
	pair(t, 4, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		b.net.Crash()
		env.Sleep(sim, 5*time.Millisecond)
		if a.unreachable[2] != 1 || a.refused[2] == 0 {
			t.Fatalf("unreachable %v, refused %v", a.unreachable, a.refused)
		}
		env.Sleep(sim, time.Second)
		if a.refused[2] < 15 {
			t.Fatalf("refused %d times in a second", a.refused[2])
		}
		b = join(n, 2, nil)
		b.net.AddPeer(1, addr(1))
		env.Sleep(sim, time.Second)
		if a.connected[2] != 2 || b.connected[1] != 1 {
			t.Fatalf("connected %v and %v", a.connected, b.connected)
		}
	})
}

// A host that is gone does not refuse.
func TestHostDown(t *testing.T) {
	pair(t, 5, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		n.SetHostDown(addr(2), true)
		b.net.Crash()
		env.Sleep(sim, 10*time.Second)
		if a.unreachable[2] == 0 || a.refused[2] != 0 {
			t.Fatalf("unreachable %v, refused %v", a.unreachable, a.refused)
		}
		n.SetHostDown(addr(2), false)
		env.Sleep(sim, 2*time.Second)
		if a.refused[2] == 0 {
			t.Fatal("a host without its process did not refuse")
		}
	})
}

func TestStrangersAreRejected(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Identity.Group = transport.GroupID{8} }, "node n3 belongs to group 08000000-"},
		{func(c *Config) { c.Protocol = transport.Versions{Min: 9, Max: 9} }, "speaks version 9 of the protocol"},
		{func(c *Config) { c.LogFormat = transport.Versions{Min: 9, Max: 9} }, "knows version 9 of the log's format"},
		{func(c *Config) { c.Identity.Member = 2 }, "member 2 is at n2; node n3 claims the same member id"},
		{func(c *Config) { c.Identity.Member = 1 }, "node n1 is member 1; node n3 claims the same member id"},
	} {
		pair(t, 6, Options{}, func(sim *simenv.Sim, n *Network, a, _ *host) {
			c := join(n, 3, test.change)
			c.net.add(transport.Peer{ID: 1, Addr: addr(1)})
			env.Sleep(sim, time.Second)
			if !strings.Contains(c.rejected[1], test.want) {
				t.Errorf("rejected by %q, want %q", c.rejected[1], test.want)
			}
		})
	}
	pair(t, 6, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		a.net.RemovePeer(2)
		env.Sleep(sim, time.Second)
		if want := "member 2 (n2) was removed from the group"; b.rejected[1] != want || b.unreachable[1] == 0 {
			t.Errorf("rejected by %q, want %q", b.rejected[1], want)
		}
	})
}

func TestAsk(t *testing.T) {
	ctx := context.Background()
	pair(t, 7, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		got, err := a.net.Ask(ctx, transport.Call{To: 2, Payload: []byte("x")})
		if err != nil || string(got) != "1:x" {
			t.Fatalf("answer %q, %v", got, err)
		}
		var f *transport.Failure
		if _, err := a.net.Ask(ctx, transport.Call{Addr: "n2", Kind: "fail"}); !errors.As(err, &f) || f.Code != 4 {
			t.Fatalf("failure %v", err)
		}
		if _, err := a.net.Ask(ctx, transport.Call{Addr: "n9"}); !errors.Is(err, transport.ErrUnreachable) {
			t.Fatalf("nobody: %v", err)
		}
		b.work = time.Second
		canceled, cancel := context.WithCancel(ctx)
		sim.Go("cancel", func() {
			env.Sleep(sim, 100*time.Millisecond)
			cancel()
		})
		if _, err := a.net.Ask(canceled, transport.Call{To: 2}); !errors.Is(err, context.Canceled) {
			t.Fatalf("canceled: %v", err)
		}
		start := sim.Monotonic()
		if _, err := a.net.Ask(ctx, transport.Call{To: 2, Timeout: 300 * time.Millisecond}); !errors.Is(err, transport.ErrTimeout) || sim.Monotonic()-start > 310*time.Millisecond {
			t.Fatalf("slow: %v after %v", err, sim.Monotonic()-start)
		}
		sim.Go("crash", func() {
			env.Sleep(sim, 100*time.Millisecond)
			b.net.Crash()
		})
		if _, err := a.net.Ask(ctx, transport.Call{To: 2}); !errors.Is(err, transport.ErrUnreachable) {
			t.Fatalf("crash: %v", err)
		}
	})
	pair(t, 7, Options{}, func(sim *simenv.Sim, n *Network, a, b *host) {
		n.Cut(addr(2), addr(1))
		if _, err := a.net.Ask(ctx, transport.Call{To: 2, Timeout: time.Second}); !errors.Is(err, transport.ErrUnreachable) && !errors.Is(err, transport.ErrTimeout) {
			t.Fatalf("cut: %v", err)
		}
	})
}

// read reads bulk from chunk on and returns the next chunk to ask for.
func read(t *testing.T, a *host, from byte) (byte, error) {
	r, err := a.net.OpenBulk(context.Background(), transport.Call{To: 2, Payload: []byte{from}})
	if err != nil {
		return from, err
	}
	defer r.Close()
	for {
		c, err := r.Next()
		if err != nil {
			return from, err
		}
		if len(c) != 100_000 || c[0] != from {
			t.Fatalf("chunk %d is %d bytes of %d", from, len(c), c[0])
		}
		from++
	}
}

func TestBulk(t *testing.T) {
	pair(t, 8, Options{Faults: Faults{BytesPerSecond: 10_000_000}}, func(sim *simenv.Sim, n *Network, a, b *host) {
		start := sim.Monotonic()
		got, err := read(t, a, 0)
		if took := sim.Monotonic() - start; got != 100 || err != io.EOF || took < time.Second || took > 1200*time.Millisecond {
			t.Fatalf("%d chunks, %v, after %v", got, err, took)
		}
		sim.Go("cut", func() {
			env.Sleep(sim, 500*time.Millisecond)
			n.Cut(addr(2), addr(1))
			env.Sleep(sim, time.Second)
			n.HealAll()
			env.Sleep(sim, time.Millisecond)
			n.CutBoth(addr(2), addr(1))
		})
		got, err = read(t, a, 0)
		if got < 80 || got > 95 || !errors.Is(err, transport.ErrUnreachable) {
			t.Fatalf("cut: %d chunks, %v", got, err)
		}
		env.Sleep(sim, 10*time.Second)
		if b.net.serving != 0 {
			t.Fatal("the writer still writes")
		}
		n.HealAll()
		if got, err = read(t, a, got); got != 100 || err != io.EOF {
			t.Fatalf("resumed: %d chunks, %v", got, err)
		}
		sim.Go("crash", func() {
			env.Sleep(sim, 500*time.Millisecond)
			b.net.Crash()
		})
		if got, err = read(t, a, 0); got == 100 || !errors.Is(err, transport.ErrUnreachable) {
			t.Fatalf("crash: %d chunks, %v", got, err)
		}
	})
}

// Breaking connections at random ends every stream early, and still everything
// arrives in the end.
func TestBulkResumes(t *testing.T) {
	for seed := range uint64(10) {
		pair(t, seed, Options{Faults: Faults{Break: 50}}, func(sim *simenv.Sim, n *Network, a, _ *host) {
			at, err, cuts := byte(0), error(nil), 0
			for ; err != io.EOF; cuts++ {
				if at, err = read(t, a, at); err != io.EOF && !errors.Is(err, transport.ErrUnreachable) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if at != 100 || cuts < 2 {
				t.Errorf("seed %d: %d chunks after %d cuts", seed, at, cuts)
			}
		})
	}
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) uint64 {
		sim := simenv.New(seed)
		sim.Run(func() {
			n := New(sim, Options{Faults: Faults{Loss: 20, Duplicate: 20, Reorder: 20, Reset: 10, Break: 100}})
			var hosts []*host
			var peers []transport.Peer
			for id := uint64(1); id <= 5; id++ {
				hosts = append(hosts, join(n, id, nil))
				peers = append(peers, transport.Peer{ID: id, Addr: addr(id)})
			}
			for _, h := range hosts {
				h.net.SetPeers(peers)
			}
			for range 300 {
				from, to := sim.Uint64()%5, sim.Uint64()%5
				switch sim.Uint64() % 10 {
				case 0:
					n.Cut(addr(from+1), addr(to+1))
				case 1:
					n.HealAll()
				case 2:
					sim.Go("ask", func() { _, _ = hosts[from].net.Ask(context.Background(), transport.Call{To: to + 1}) })
				case 3:
					hosts[from].net.Crash()
					hosts[from] = join(n, from+1, nil)
					hosts[from].net.SetPeers(peers)
				default:
					hosts[from].net.Send(append(beat(from+1, to+1, 1), app(from+1, to+1, 1)...))
				}
				env.Sleep(sim, time.Duration(sim.Uint64()%20_000_000))
			}
			for _, h := range hosts {
				sim.Trace(fmt.Sprint(h.commits, h.appends, h.connected, h.refused, h.unreachable))
				h.net.Close()
			}
		})
		return sim.TraceHash()
	}
	for seed := range uint64(10) {
		if a, b := run(seed), run(seed); a != b {
			t.Errorf("seed %d: %x and %x", seed, a, b)
		}
	}
}
