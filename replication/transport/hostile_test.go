package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) contain(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), s)
}

func logTo(l *lines) func(*Options) {
	return func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(l, nil))
		o.HandshakeTimeout = 200 * time.Millisecond
	}
}

// stranger is a client of the contract with nothing of ours between.
func stranger(t *testing.T, addr string) pb.PeerClient {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(100<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return pb.NewPeerClient(cc)
}

func goodHello() *pb.PeerHello {
	one := &pb.PeerVersions{Min: 1, Max: 1}
	return &pb.PeerHello{Protocol: one, LogFormat: one, Group: testGroup[:], From: 1, To: 2, Address: "stranger:1", Incarnation: 99}
}

func frameOf(m *raftpb.Message) []byte {
	var e encoder
	e.message(m)
	return bytes.Join(e.finish(), nil)
}

// What a stranger may send on the streams, and how each ends.
func TestHostileStreams(t *testing.T) {
	b := startNode(t, 2, nil)
	hello := func(h *pb.PeerHello) *pb.PeerControlRequest {
		return &pb.PeerControlRequest{Kind: &pb.PeerControlRequest_Hello{Hello: h}}
	}
	change := func(f func(h *pb.PeerHello)) *pb.PeerControlRequest {
		h := goodHello()
		f(h)
		return hello(h)
	}
	frame := func(b []byte) *pb.PeerControlRequest {
		return &pb.PeerControlRequest{Kind: &pb.PeerControlRequest_Frame{Frame: b}}
	}
	good := hello(goodHello())
	for _, test := range []struct {
		name string
		send []*pb.PeerControlRequest
		want string
	}{
		{"no hello", []*pb.PeerControlRequest{frame([]byte("x"))}, "the caller did not say who it is"},
		{"empty hello", []*pb.PeerControlRequest{hello(&pb.PeerHello{})}, "the hello has protocol versions 0 to 0"},
		{"group id", []*pb.PeerControlRequest{change(func(h *pb.PeerHello) { h.Group = []byte("short") })}, "the hello has a group id of 5 bytes"},
		{"log versions", []*pb.PeerControlRequest{change(func(h *pb.PeerHello) { h.LogFormat = &pb.PeerVersions{Min: 3, Max: 2} })},
			"the hello has log format versions 3 to 2"},
		{"long address", []*pb.PeerControlRequest{change(func(h *pb.PeerHello) { h.Address = strings.Repeat("x", 1000) })},
			"the hello has an address of 1000 bytes"},
		{"no member id", []*pb.PeerControlRequest{change(func(h *pb.PeerHello) { h.From = 0 })}, "node stranger:1 has no member id and wants control"},
		{"no group", []*pb.PeerControlRequest{change(func(h *pb.PeerHello) { h.From, h.Group = 0, nil })}, "node stranger:1 belongs to no group and wants control"},
		{"member without group", []*pb.PeerControlRequest{change(func(h *pb.PeerHello) { h.Group = nil })}, "the hello has member id 1 and no group"},
		{"second hello", []*pb.PeerControlRequest{good, good}, "malformed frame: a second hello"},
		{"empty frame", []*pb.PeerControlRequest{good, frame(nil)}, "malformed frame: an empty frame"},
		{"garbage", []*pb.PeerControlRequest{good, frame([]byte("\xff\xff\xff\xff"))}, "member 1: transport: malformed frame:"},
		{"other sender", []*pb.PeerControlRequest{good, frame(frameOf(heartbeat(3, 2, 1)))}, "member 1 sent member 2 a message from 3 to 2"},
		{"other receiver", []*pb.PeerControlRequest{good, frame(frameOf(heartbeat(1, 4, 1)))}, "member 1 sent member 2 a message from 1 to 4"},
		{"long frame", []*pb.PeerControlRequest{good, frame(make([]byte, maxControlFrame+1))}, "524289 bytes, at most 524288 are allowed"},
		{"long message", []*pb.PeerControlRequest{good, frame(make([]byte, maxMessage+1))}, "received message larger than max"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stream, err := stranger(t, b.net.Addr()).Control(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range test.send {
				if err := stream.Send(m); err != nil {
					break // Recv says why
				}
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Fatalf("ended by %q, want %q", err, test.want)
			}
		})
	}
	if len(b.received) != 0 {
		t.Fatalf("received %v", b.received)
	}
}

func TestHostileEntries(t *testing.T) {
	b := startNode(t, 2, nil)
	for want, m := range map[string]*pb.PeerEntriesRequest{
		"71303169 bytes, at most 71303168": {Kind: &pb.PeerEntriesRequest_Frame{Frame: []byte("x")}, More: MaxFrame},
		"4294967295 more bytes of a frame": {Kind: &pb.PeerEntriesRequest_Frame{Frame: []byte("x")}, More: 1<<32 - 1},
	} {
		stream, err := stranger(t, b.net.Addr()).Entries(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: goodHello()}})
		_ = stream.Send(m)
		for err == nil {
			_, err = stream.Recv()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("ended by %q, want %q", err, want)
		}
	}
}

// awaitEnd waits until a connection is closed by the other side.
func awaitEnd(t *testing.T, what string, conn net.Conn) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection stays", what)
	}
}

// A connection that does not say who it is in time is closed, at whatever stage.
func TestSilentNewcomers(t *testing.T) {
	var log lines
	b := startNode(t, 2, logTo(&log))
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, say := range map[string]string{"nothing": "", "HTTP/2": preface, "garbage": strings.Repeat("\xfe", 5000), "TLS": "\x16\x03\x01\x02\x00\x01"} {
		conn, err := net.Dial("tcp", b.net.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, say)
		awaitEnd(t, name, conn)
		conn.Close()
	}
	b.waitFor("a word in the log", func() bool { return log.contain("did not say who it is in time") })
	stream, err := stranger(t, b.net.Addr()).Control(context.Background())
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil {
		t.Error("a stream without a hello stays")
	}
	b.waitFor("no connections left", func() bool {
		b.net.lis.mu.Lock()
		defer b.net.lis.mu.Unlock()
		return len(b.net.lis.conns) == 0 && len(b.net.lis.newcomers) == 0
	})
}

// Connections without end neither hold more than their limit nor keep a member out.
func TestFloodOfConnections(t *testing.T) {
	b := startNode(t, 2, func(o *Options) { o.MaxNewcomers, o.MaxConnections = 10, 20 })
	var conns []net.Conn
	for range 100 {
		conn, err := net.Dial("tcp", b.net.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	b.waitFor("limit", func() bool {
		b.net.lis.mu.Lock()
		defer b.net.lis.mu.Unlock()
		return len(b.net.lis.conns) <= 11
	})
	awaitEnd(t, "the first", conns[0])
	a := startNode(t, 1, nil)
	acquaint(t, a, b)
}

// A handler that takes nothing makes the sender's queue fill up: the sender drops
// and says so, both stay within their limits, and control goes on.
func TestFloodOfMessages(t *testing.T) {
	b := newNode(t, 2)
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	defer release()
	var err error
	b.net, err = New(testOptions(2), gated{b, gate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		release()
		b.net.Close()
	})
	a := startNode(t, 1, func(o *Options) { o.EntriesQueue = Limit{100, 4 << 20} })
	acquaint(t, a, b)
	data := make([]byte, 100<<10)
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range uint64(600) {
		a.net.Send([]*raftpb.Message{appendMsg(1, 2, i, data)})
		time.Sleep(20 * time.Microsecond)
	}
	s := a.net.Status()[0]
	if s.QueuedBytes > 4<<20 || s.Dropped == 0 || !s.Connected {
		t.Errorf("status %+v", s)
	}
	a.waitFor("unreachable", func() bool { return a.unreachable[2] > 0 })
	runtime.GC()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+40<<20 {
		t.Errorf("%d MiB more on the heap", (after.HeapAlloc-before.HeapAlloc)>>20)
	}
	a.net.Send([]*raftpb.Message{heartbeat(1, 2, 7)})
	b.waitFor("heartbeat", func() bool { return len(b.received) == 1 && b.received[0].GetCommit() == 7 })
	release()
	b.waitFor("appends", func() bool { return uint64(len(b.received)) >= 601-s.Dropped })
}

// gated is a Handler that takes appends only when the gate is open.
type gated struct {
	*node
	gate chan struct{}
}

func (g gated) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	if msgs[0].GetType() == raftpb.MsgApp {
		<-g.gate
	}
	g.node.Receive(from, incarnation, msgs)
}

// proxy passes bytes on until it is told to stall: the connections stay, and
// nothing comes through.
type proxy struct {
	lis   net.Listener
	to    string
	stall chan struct{}
}

func startProxy(t *testing.T, to string) *proxy {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{lis, to, make(chan struct{})}
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			in, err := lis.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { in.Close() })
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			t.Cleanup(func() { out.Close() })
			go p.pass(in, out)
			go p.pass(out, in)
		}
	}()
	return p
}

func (p *proxy) pass(from, to net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		select {
		case <-p.stall:
			return
		default:
		}
		if err != nil {
			to.Close()
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			from.Close()
			return
		}
	}
}

// A connection over which nothing comes any more is given up, and says why; nobody
// takes that for a dead process.
func TestDeadLink(t *testing.T) {
	short := func(o *Options) { o.LinkTimeout, o.HandshakeTimeout = 300*time.Millisecond, 300*time.Millisecond }
	a, b := startNode(t, 1, short), startNode(t, 2, short)
	p := startProxy(t, b.net.Addr())
	a.net.AddPeer(2, p.lis.Addr().String())
	a.waitFor("connection", func() bool { return a.connected[2] > 0 })
	r := make(chan error, 1)
	b.bulk = func(_ context.Context, _ string, _ []byte, w BulkWriter) error {
		for {
			if err := w.Send([]byte("x")); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	bulk, err := a.net.OpenBulk(context.Background(), Call{To: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer bulk.Close()
	go func() {
		for {
			if _, err := bulk.Next(); err != nil {
				r <- err
				return
			}
		}
	}()
	// Signs of life keep it beyond the limit, but while the machine stands still.
	ups, downs := -1, -1
	a.waitFor("a link that stays", func() bool {
		if ups == a.connected[2] && downs == a.unreachable[2] {
			return true
		}
		ups, downs = a.connected[2], a.unreachable[2]
		a.mu.Unlock()
		time.Sleep(700 * time.Millisecond)
		a.mu.Lock()
		return false
	})
	close(p.stall)
	a.waitFor("unreachable", func() bool { return a.unreachable[2] > downs })
	if err := <-r; !strings.Contains(err.Error(), "no sign of life from the peer") {
		t.Errorf("bulk ended by %v", err)
	}
	a.waitFor("failed attempt", func() bool {
		err := a.net.Status()[0].Err
		return err != nil && strings.Contains(err.Error(), "did not answer the handshake in 300ms")
	})
	if a.times(a.refused, 2) != 0 {
		t.Error("a dead link counts as a dead process")
	}
}

// A reader of bulk that takes nothing does not keep the writer for ever, nor does one whose stream the writer gives up.
func TestBulkReaderStandsStill(t *testing.T) {
	for _, aborts := range []bool{false, true} {
		a := startNode(t, 1, nil)
		b := startNode(t, 2, func(o *Options) {
			if o.BulkStall = 300 * time.Millisecond; aborts {
				o.BulkStall = time.Hour
			}
		})
		ended := make(chan error, 1)
		b.bulk = func(_ context.Context, _ string, _ []byte, w BulkWriter) (err error) {
			if aborts {
				defer time.AfterFunc(500*time.Millisecond, w.Abort).Stop()
			}
			for err == nil {
				err = w.Send(make([]byte, MaxChunk))
			}
			ended <- err
			return err
		}
		acquaint(t, a, b)
		r, err := a.net.OpenBulk(context.Background(), Call{To: 2})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, errGone) || strings.Contains(err.Error(), "nothing for 300ms") == aborts {
				t.Errorf("aborts: %t: the writer hears %v", aborts, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("aborts: %t: it writes on", aborts)
		}
		r.Close()
	}
}

// Limits on calls: how many are answered at a time, and how many streams are served.
func TestLimitsOfCalls(t *testing.T) {
	a := startNode(t, 1, nil)
	b := startNode(t, 2, func(o *Options) { o.MaxAsks, o.MaxBulksEach = 1, 2 })
	inside := make(chan struct{}, 10)
	b.answer = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.bulk = func(ctx context.Context, _ string, _ []byte, _ BulkWriter) error {
		<-ctx.Done()
		return ctx.Err()
	}
	acquaint(t, a, b)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = a.net.Ask(ctx, Call{To: 2}) }()
	<-inside
	want := "answers 1 questions already"
	if _, err := a.net.Ask(ctx, Call{To: 2}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("second question: %v, want %q", err, want)
	}
	for range 2 {
		r, err := a.net.OpenBulk(ctx, Call{To: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
	}
	want = "member 1 has 2 bulk streams from node " + b.net.Addr() + " already"
	if _, err := a.net.OpenBulk(ctx, Call{To: 2}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("third stream: %v, want %q", err, want)
	}
	cancel()
}
