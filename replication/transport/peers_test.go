package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/e2e/servers/ports"
)

var testGroup = GroupID{1, 2, 3}

// node is a Handler that keeps what it hears.
type node struct {
	t    testing.TB
	id   uint64
	net  *Peers
	hold chan struct{} // Receive waits for it, if set

	mu          sync.Mutex
	received    []*raftpb.Message
	connected   map[uint64]int
	reached     map[uint64]int
	refused     map[uint64]int
	ended       []uint64 // incarnations
	senders     []uint64 // incarnations, one for each call of Receive
	unreachable map[uint64]int
	rejected    map[uint64]*Rejection
	answer      func(ctx context.Context, kind string, payload []byte) ([]byte, error)
	bulk        func(ctx context.Context, kind string, payload []byte, w BulkWriter) error
}

func newNode(t testing.TB, id uint64) *node {
	return &node{t: t, id: id, connected: map[uint64]int{}, reached: map[uint64]int{}, refused: map[uint64]int{}, unreachable: map[uint64]int{},
		rejected: map[uint64]*Rejection{}}
}

// patience is how long anything may take that has to happen in the end: the machine that
// tests run on may stand still for a while.
const patience = 2 * time.Minute

// testOptions are those of a member on loopback.
func testOptions(id uint64) Options {
	return Options{
		Listen: "127.0.0.1:0", Identity: Identity{testGroup, id}, LogFormat: Versions{1, 1},
		Build: fmt.Sprintf("test-%d", id), AllowPlaintext: true,
		LinkTimeout: patience, HandshakeTimeout: patience, DialTimeout: patience, AskTimeout: patience,
	}
}

// startNode runs a node until the test ends.
func startNode(t testing.TB, id uint64, change func(*Options)) *node {
	t.Helper()
	n := newNode(t, id)
	opts := testOptions(id)
	if change != nil {
		change(&opts)
	}
	var err error
	if n.net, err = New(opts, n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.net.Close() })
	return n
}

// acquaint makes nodes peers of each other and waits until they are connected.
func acquaint(t testing.TB, nodes ...*node) {
	t.Helper()
	var peers []Peer
	for _, n := range nodes {
		peers = append(peers, Peer{n.id, n.net.Addr()})
	}
	for _, n := range nodes {
		n.net.SetPeers(peers)
	}
	for _, n := range nodes {
		for _, p := range peers {
			if p.ID != n.id {
				n.waitFor("connection", func() bool { return n.connected[p.ID] > 0 && n.reached[p.ID] > 0 })
			}
		}
	}
}

func (n *node) waitFor(what string, cond func() bool) {
	n.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		n.mu.Lock()
		ok := cond()
		n.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("node %d: waited in vain for: %s; status %+v", n.id, what, n.net.Status())
		}
		time.Sleep(time.Millisecond)
	}
}

func (n *node) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	if n.hold != nil {
		<-n.hold
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.received = append(n.received, msgs...)
	n.senders = append(n.senders, incarnation)
}

func (n *node) ReportGone(_, incarnation uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, incarnation)
}

func (n *node) count(m map[uint64]int, id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m[id]++
}

// times is how often something was reported of a peer.
func (n *node) times(m map[uint64]int, id uint64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return m[id]
}

func (n *node) ReportUnreachable(id uint64) { n.count(n.unreachable, id) }
func (n *node) ReportRefused(id uint64)     { n.count(n.refused, id) }
func (n *node) ReportConnected(id uint64)   { n.count(n.connected, id) }
func (n *node) ReportReached(id uint64)     { n.count(n.reached, id) }

func (n *node) ReportRejected(id uint64, r *Rejection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rejected[id] = r
}

func (n *node) Answer(ctx context.Context, kind string, payload []byte) ([]byte, error) {
	if n.answer == nil {
		return nil, errors.New("nothing to say")
	}
	return n.answer(ctx, kind, payload)
}

func (n *node) Bulk(ctx context.Context, kind string, payload []byte, w BulkWriter) error {
	if n.bulk == nil {
		return errors.New("nothing to send")
	}
	return n.bulk(ctx, kind, payload, w)
}

func heartbeat(from, to, commit uint64) *raftpb.Message {
	return &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(from), To: new(to), Term: new(uint64(1)), Commit: new(commit)}
}

func appendMsg(from, to, index uint64, data ...[]byte) *raftpb.Message {
	m := &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(from), To: new(to), Term: new(uint64(1)), Index: new(index), LogTerm: new(uint64(1))}
	for i, d := range data {
		m.Entries = append(m.Entries, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: new(uint64(1)), Index: new(index + 1 + uint64(i)), Data: d})
	}
	return m
}

func TestMessagesArriveInOrder(t *testing.T) {
	a, b := startNode(t, 1, nil), startNode(t, 2, nil)
	acquaint(t, a, b)
	const count = 2000
	for i := range uint64(count) {
		a.net.Send([]*raftpb.Message{heartbeat(1, 2, i), appendMsg(1, 2, i, []byte("x"), bytes.Repeat([]byte{byte(i)}, int(i)))})
	}
	defer func() {
		if t.Failed() {
			t.Logf("sender: %+v, unreachable %d", a.net.Status(), a.times(a.unreachable, 2))
		}
	}()
	b.waitFor("messages", func() bool { return len(b.received) == 2*count })
	var beats, appends uint64
	for _, m := range b.received {
		switch m.GetType() {
		case raftpb.MsgHeartbeat:
			if m.GetCommit() != beats || m.GetFrom() != 1 || m.GetTo() != 2 {
				t.Fatalf("heartbeat %d is %v", beats, m)
			}
			beats++
		case raftpb.MsgApp:
			e := m.GetEntries()
			if m.GetIndex() != appends || len(e) != 2 || e[1].GetIndex() != appends+2 ||
				!bytes.Equal(e[1].GetData(), bytes.Repeat([]byte{byte(appends)}, int(appends))) {
				t.Fatalf("append %d is wrong: index %d", appends, m.GetIndex())
			}
			appends++
		}
	}
}

// An entry of the greatest length crosses, in pieces.
func TestGreatestEntry(t *testing.T) {
	a, b := startNode(t, 1, func(o *Options) { o.EntriesQueue.Bytes = 80 << 20 }), startNode(t, 2, nil)
	acquaint(t, a, b)
	data := make([]byte, 65<<20+40)
	for i := range data {
		data[i] = byte(i * 7 >> 8)
	}
	a.net.Send([]*raftpb.Message{appendMsg(1, 2, 5, data), appendMsg(1, 2, 6, []byte("after"))})
	b.waitFor("messages", func() bool { return len(b.received) == 2 })
	if !bytes.Equal(b.received[0].GetEntries()[0].GetData(), data) || string(b.received[1].GetEntries()[0].GetData()) != "after" {
		t.Fatal("the entries changed on their way")
	}
}

func TestAsk(t *testing.T) {
	a, b := startNode(t, 1, nil), startNode(t, 2, nil)
	b.answer = func(ctx context.Context, kind string, payload []byte) ([]byte, error) {
		switch kind {
		case "echo":
			return append([]byte(fmt.Sprintf("%d:", CallerFrom(ctx).Member)), payload...), nil
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		case "coded":
			return nil, fmt.Errorf("wrapped: %w", &Failure{Code: 7, Text: "seven"})
		case "long":
			return make([]byte, MaxAsk+1), nil
		}
		return nil, errors.New("unknown kind " + kind)
	}
	acquaint(t, a, b)
	ctx := context.Background()
	for _, to := range []Call{{To: 2}, {Addr: b.net.Addr()}, {To: 2, Addr: b.net.Addr()}} {
		to.Kind, to.Payload = "echo", bytes.Repeat([]byte("p"), MaxAsk-2)
		got, err := a.net.Ask(ctx, to)
		if err != nil || string(got) != "1:"+string(to.Payload) {
			t.Fatalf("%v answers %d bytes, %v", &to, len(got), err)
		}
	}
	var f *Failure
	if _, err := a.net.Ask(ctx, Call{To: 2, Kind: "coded"}); !errors.As(err, &f) || f.Code != 7 || f.Text != "seven" {
		t.Fatalf("coded failure is %v", err)
	}
	if _, err := a.net.Ask(ctx, Call{To: 2, Kind: "?"}); !errors.As(err, &f) || f.Text != "unknown kind ?" {
		t.Fatalf("failure is %v", err)
	}
	if _, err := a.net.Ask(ctx, Call{To: 2, Kind: "long"}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Fatalf("long answer: %v", err)
	}
	if _, err := a.net.Ask(ctx, Call{To: 2, Kind: "slow", Timeout: 20 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Fatalf("slow answer: %v", err)
	}
	if _, err := a.net.Ask(ctx, Call{To: 3, Kind: "echo"}); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("unknown member: %v", err)
	}
	if _, err := a.net.Ask(ctx, Call{To: 2, Payload: make([]byte, MaxAsk+1)}); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("long question: %v", err)
	}
}

// A node without a group may ask, and nothing else.
func TestAskWithoutGroup(t *testing.T) {
	a := startNode(t, 0, func(o *Options) { o.Identity = Identity{} })
	b := startNode(t, 2, nil)
	b.answer = func(ctx context.Context, kind string, _ []byte) ([]byte, error) {
		c := CallerFrom(ctx)
		return []byte(fmt.Sprintf("%d %s %s", c.Member, c.Group, c.Addr)), nil
	}
	got, err := a.net.Ask(context.Background(), Call{Addr: b.net.Addr(), Kind: "who"})
	if err != nil || string(got) != "0 none "+a.net.Addr() {
		t.Fatalf("answer %q, %v", got, err)
	}
	if _, err = a.net.OpenBulk(context.Background(), Call{Addr: b.net.Addr()}); err == nil || !strings.Contains(err.Error(), "belongs to no group and wants bulk") {
		t.Fatalf("bulk: %v", err)
	}
	if err := a.net.SetIdentity(Identity{testGroup, 1}); err != nil {
		t.Fatal(err)
	}
	if err := a.net.SetIdentity(Identity{testGroup, 3}); err == nil {
		t.Fatal("the identity changed")
	}
	a.id = 1
	acquaint(t, a, b)
}

func TestBulk(t *testing.T) {
	a, b := startNode(t, 1, nil), startNode(t, 2, nil)
	data := make([]byte, 20<<20)
	for i := range data {
		data[i] = byte(i * 31 >> 6)
	}
	b.bulk = func(ctx context.Context, kind string, payload []byte, w BulkWriter) error {
		if kind == "fail" {
			if err := w.Send([]byte("first")); err != nil {
				return err
			}
			return &Failure{Code: 3, Text: "the file is gone"}
		}
		var from int
		fmt.Sscan(string(payload), &from)
		for chunk := range slices.Chunk(data[from:], 100_000) {
			if err := w.Send(chunk); err != nil {
				return err
			}
		}
		return nil
	}
	acquaint(t, a, b)
	r, err := a.net.OpenBulk(context.Background(), Call{To: 2, Kind: "data", Payload: []byte("12345")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(ToReader(r))
	if err != nil || !bytes.Equal(got, data[12345:]) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	r.Close()
	r, err = a.net.OpenBulk(context.Background(), Call{To: 2, Kind: "fail"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if first, err := r.Next(); err != nil || string(first) != "first" {
		t.Fatalf("%q, %v", first, err)
	}
	var f *Failure
	if _, err := r.Next(); !errors.As(err, &f) || f.Code != 3 || f.Text != "the file is gone" {
		t.Fatalf("failure is %v", err)
	}
}

// A peer whose process is gone is reported at once: not when a pause is over.
func TestRefusedAtOnce(t *testing.T) {
	a := startNode(t, 1, func(o *Options) { o.RetryFast, o.RetryMin, o.RetryMax = 1, time.Hour, time.Hour })
	b := startNode(t, 2, nil)
	acquaint(t, a, b)
	time.Sleep(1100 * time.Millisecond) // a connection that stood a while
	b.net.Close()
	a.waitFor("refused", func() bool { return a.refused[2] > 0 })
}

// A peer whose process is gone is reported, and again when it is back.
func TestRefusedAndBack(t *testing.T) {
	port, err := ports.Free() // one that stays free
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	a, b := startNode(t, 1, nil), startNode(t, 2, func(o *Options) { o.Listen = addr })
	acquaint(t, a, b)
	b.net.Close()
	a.waitFor("refused again", func() bool { return a.refused[2] > 5 })
	a.net.Send([]*raftpb.Message{heartbeat(1, 2, 1)})
	a.waitFor("unreachable", func() bool { return a.unreachable[2] > 0 })
	before := a.times(a.connected, 2)
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b = startNode(t, 2, func(o *Options) { o.Listener = lis })
	b.net.SetPeers([]Peer{{1, a.net.Addr()}})
	a.waitFor("connection", func() bool { return a.connected[2] > before })
	a.net.Send([]*raftpb.Message{heartbeat(1, 2, 77)})
	b.waitFor("message", func() bool { return len(b.received) == 1 && b.received[0].GetCommit() == 77 })
}

// TestAnswersToStrangers: a member that is far behind does not know yet who leads the
// group, and where. Its answers must reach the leader all the same.
func TestAnswersToStrangers(t *testing.T) {
	a, b := startNode(t, 1, nil), startNode(t, 2, nil)
	b.net.Send([]*raftpb.Message{heartbeat(2, 1, 5)})
	b.waitFor("unreachable", func() bool { return b.unreachable[1] == 1 })
	a.net.SetPeers([]Peer{{2, b.net.Addr()}})
	a.waitFor("connection", func() bool { return a.connected[2] > 0 })
	a.net.Send([]*raftpb.Message{heartbeat(1, 2, 77)})
	b.waitFor("message", func() bool { return len(b.received) == 1 })
	b.net.Send([]*raftpb.Message{heartbeat(2, 1, 78)}) // makes it connect, and may be lost
	b.waitFor("connection", func() bool { return b.connected[1] > 0 })
	b.net.Send([]*raftpb.Message{heartbeat(2, 1, 79)})
	a.waitFor("answer", func() bool { return len(a.received) > 0 })

	// Who has left is forgotten when the next stranger is answered.
	c := startNode(t, 3, nil)
	c.net.SetPeers([]Peer{{2, b.net.Addr()}})
	c.waitFor("connection", func() bool { return c.connected[2] > 0 })
	a.net.RemovePeer(2)
	b.waitFor("end of the visit", func() bool { return b.net.door.Forgotten(1) })
	b.net.Send([]*raftpb.Message{heartbeat(2, 3, 80)})
	b.waitFor("connection", func() bool { return b.connected[3] > 0 })
	if s := b.net.Status(); len(s) != 1 || s[0].ID != 3 {
		t.Errorf("peers %+v", s)
	}
}
