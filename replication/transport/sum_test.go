package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// newestHello is the hello of a program that sends checksums.
func newestHello() *pb.PeerHello {
	h := goodHello()
	h.Protocol = &pb.PeerVersions{Min: ProtocolMin, Max: ProtocolMax}
	return h
}

// examples are messages of every method, and into what each is read.
func examples() map[any]func() any {
	welcome := &pb.PeerWelcome{Protocol: ProtocolMax, Member: 2, Build: "b"}
	frame := func() any { return &inFrame{must: true} }
	return map[any]func() any{
		&outFrame{pieces: [][]byte{[]byte("abc"), bytes.Repeat([]byte("d"), 700), []byte("e")}, length: 704, more: 300}: frame,
		&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: newestHello()}}:                                frame,
		&pb.PeerControlResponse{Welcome: welcome, Received: &pb.PeerReceived{Requests: 7}}:                              func() any { return &pb.PeerControlResponse{} },
		&pb.PeerAskRequest{Hello: newestHello(), Kind: "k", Payload: []byte("question")}:                                func() any { return &pb.PeerAskRequest{} },
		&pb.PeerAskResponse{Welcome: welcome, Result: &pb.PeerAskResponse_Payload{Payload: []byte("answer")}}:           func() any { return &pb.PeerAskResponse{} },
		&pb.PeerBulkRequest{Hello: newestHello(), Kind: "k"}:                                                            func() any { return &pb.PeerBulkRequest{} },
		&pb.PeerBulkResponse{Welcome: welcome}:                                                                          func() any { return &pb.PeerBulkResponse{} },
	}
}

// No message is read in which one bit is another: the checksum tells, or that it is gone.
func TestEveryBitIsSummed(t *testing.T) {
	for m, into := range examples() {
		out, err := codec.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		sent := out.Materialize()
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(sent)}, into()); err != nil {
			t.Fatalf("%T: %v", m, err)
		}
		damaged := 0
		for bit := range 8 * len(sent) {
			b := bytes.Clone(sent)
			b[bit/8] ^= 1 << (bit % 8)
			err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, into())
			if err == nil {
				t.Errorf("%T: nobody notices that bit %d of byte %d is another, of %x", m, bit%8, bit/8, sent)
			}
			if isDamaged(err) {
				damaged++
			}
		}
		if damaged < 6*len(sent) { // the others are no message at all
			t.Errorf("%T: of %d bits %d are taken for damage", m, 8*len(sent), damaged)
		}
	}
}

// Programs from before checksums skip the field, and their messages are read without.
func TestSumsAreAnExtension(t *testing.T) {
	request := &pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Frame{Frame: []byte("abcdef")}, More: 300}
	for _, m := range []any{&outFrame{pieces: [][]byte{[]byte("abc"), []byte("def")}, length: 6, more: 300}, request} {
		out, err := codec.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var read pb.PeerEntriesRequest
		err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(out.Materialize(), &read)
		if err != nil || !proto.Equal(&read, request) {
			t.Errorf("protobuf reads %v, %v", &read, err)
		}
		var in inFrame // which read frames before there were checksums
		if err := in.unmarshal(out.Materialize()); err != nil || string(in.frame) != "abcdef" || in.more != 300 {
			t.Errorf("it is read as %+v, %v", in, err)
		}
	}
	// What looks like the field within a frame is none.
	tail := seal(nil, nil)
	request.Kind = &pb.PeerEntriesRequest_Frame{Frame: append([]byte("xyz"), tail...)}
	for m, into := range map[proto.Message]any{
		request: &inFrame{},
		&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: goodHello()}}: &inFrame{},
		&pb.PeerAskRequest{Hello: goodHello(), Payload: tail}:                          &pb.PeerAskRequest{},
		&pb.PeerBulkResponse{Welcome: &pb.PeerWelcome{Protocol: 2}}:                    &pb.PeerBulkResponse{},
	} {
		b, err := proto.Marshal(m)
		if err == nil {
			err = codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, into)
		}
		if err != nil {
			t.Errorf("%v of an older program: %v", m, err)
		}
	}
}

// Who says that it sends checksums has to; who does not is heard.
func TestSumsAreAskedFor(t *testing.T) {
	log := &lines{}
	n := startNode(t, 2, logTo(log))
	n.answer = func(context.Context, string, []byte) ([]byte, error) { return []byte("answer"), nil }
	ctx := context.Background()
	for _, test := range []struct {
		hello *pb.PeerHello
		taken bool
	}{{goodHello(), true}, {newestHello(), false}} {
		got, err := stranger(t, n.net.Addr()).Ask(ctx, &pb.PeerAskRequest{Hello: test.hello})
		if (err == nil) != test.taken || test.taken && string(got.GetPayload()) != "answer" {
			t.Errorf("%v: the question: %v, %v", test.hello.Protocol, got, err)
		}
		stream, err := stranger(t, n.net.Addr()).Entries(ctx)
		if err == nil {
			err = stream.Send(&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: test.hello}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err = stream.Recv(); (err == nil) != test.taken || err != nil && !isDamaged(err) {
			t.Errorf("%v: the stream: %v", test.hello.Protocol, err)
		}
	}
	n.waitFor("both to be counted, and the log to say what to do", func() bool {
		return n.net.Damaged() == 2 && log.contain("memory and the network cards")
	})
}

// A first message with its checksum promises those of the others.
func TestSumsDoNotEnd(t *testing.T) {
	in := inFrame{must: true}
	b, err := proto.Marshal(&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Frame{Frame: []byte("frame")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &in); !errors.Is(err, errDamaged) || in.frame != nil {
		t.Errorf("a frame without a checksum is read as %+v, %v", in, err)
	}
	a := startNode(t, 1, nil)
	c := &clientConn{Conn: &net.TCPConn{}, who: "b:1"}
	welcomed := clientCodec{codec, a.net, c}
	first, err := codec.Marshal(&pb.PeerEntriesResponse{Welcome: &pb.PeerWelcome{Protocol: ProtocolMax}})
	if err == nil {
		err = welcomed.Unmarshal(first, &pb.PeerEntriesResponse{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := welcomed.Unmarshal(mem.BufferSlice{}, &pb.PeerEntriesResponse{}); !errors.Is(err, errDamaged) || !errors.Is(c.reason(nil), errDamaged) {
		t.Errorf("a sign of life without a checksum: %v, and the connection says %v", err, c.reason(nil))
	}
}

// mark is what flips look for, so that they meet what messages hold and not what HTTP/2 has around it.
var mark = []byte("one bit of this.")

// flips damages what travels on the connections that a listener accepts: a bit of some of the marks.
type flips struct {
	net.Listener

	mu      sync.Mutex
	rng     *rand.Rand
	left    int
	in, out int // how many there were, of requests and of answers
}

func (f *flips) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &flippedConn{c, f}, nil
}

func (f *flips) damage(b []byte, count *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := bytes.Index(b, mark); at >= 0 && f.left > 0 && f.rng.IntN(5) == 0 {
		b[at+f.rng.IntN(len(mark))] ^= 1 << f.rng.IntN(8)
		f.left--
		*count++
	}
}

func (f *flips) counts() (in, out, left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.in, f.out, f.left
}

type flippedConn struct {
	net.Conn
	f *flips
}

func (c *flippedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.f.damage(b[:max(n, 0)], &c.f.in)
	return n, err
}

func (c *flippedConn) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	c.f.damage(b, &c.f.out)
	return c.Conn.Write(b)
}

// Nothing is delivered of which a bit was flipped between two nodes, whatever carries it; each connection that damages
// something is made anew, and everything goes on.
func TestFlippedBits(t *testing.T) {
	log := &lines{}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &flips{Listener: lis, rng: rand.New(rand.NewPCG(3, 4)), left: 300}
	logged := func(o *Options) { o.Logger, o.LinkTimeout = slog.New(slog.NewTextHandler(log, nil)), 2*time.Second }
	a := startNode(t, 1, logged)
	b := startNode(t, 2, func(o *Options) { logged(o); o.Listener = f })
	short, long := bytes.Repeat(mark, 3), bytes.Repeat(mark, 1000)
	b.answer = func(_ context.Context, _ string, payload []byte) ([]byte, error) {
		if !bytes.Equal(payload, long) {
			t.Errorf("a question came as %q", payload)
		}
		return long, nil
	}
	b.bulk = func(_ context.Context, _ string, payload []byte, w BulkWriter) error {
		if !bytes.Equal(payload, short) {
			t.Errorf("a request came as %q", payload)
		}
		for range 5 {
			if err := w.Send(long); err != nil {
				return err
			}
		}
		return nil
	}
	acquaint(t, a, b)
	beat := heartbeat(1, 2, 9)
	beat.Context = short
	send := func(i uint64) {
		a.net.Send([]*raftpb.Message{beat, appendMsg(1, 2, i, short, long)})
		got, err := a.net.Ask(context.Background(), Call{To: 2, Payload: long, Timeout: 5 * time.Second})
		if err == nil && !bytes.Equal(got, long) {
			t.Errorf("an answer came as %q", got)
		}
		if i%8 != 0 {
			return
		}
		r, err := a.net.OpenBulk(context.Background(), Call{To: 2, Payload: short})
		if err != nil {
			return
		}
		defer r.Close()
		got, _ = io.ReadAll(ToReader(r))
		if !bytes.Equal(got, bytes.Repeat(mark, len(got)/len(mark))) {
			t.Errorf("bulk came as %q", got)
		}
	}
	i := uint64(0)
	for until := time.Now().Add(patience); time.Now().Before(until); i++ {
		if send(i); t.Failed() {
			return
		}
		if _, _, left := f.counts(); left == 0 {
			break
		}
	}
	b.waitFor("the next append", func() bool {
		a.net.Send([]*raftpb.Message{appendMsg(1, 2, i, short)})
		return len(b.received) > 0 && b.received[len(b.received)-1].GetIndex() == i
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.received {
		if m.GetType() == raftpb.MsgHeartbeat && !bytes.Equal(m.GetContext(), short) {
			t.Errorf("a heartbeat came with %q", m.GetContext())
		}
		for k, e := range m.GetEntries() {
			if !bytes.Equal(e.GetData(), [][]byte{short, long}[k]) {
				t.Errorf("an entry came as %q", e.GetData())
			}
		}
	}
	in, out, left := f.counts()
	t.Logf("flips: %d of requests, %d of answers; found by %d and %d; %d messages came", in, out, b.net.Damaged(), a.net.Damaged(), len(b.received))
	if left > 0 || b.net.Damaged() == 0 || a.net.Damaged() == 0 || int(a.net.Damaged()+b.net.Damaged()) > in+out {
		t.Errorf("%d and %d flips, %d to come; %d and %d were found", in, out, left, b.net.Damaged(), a.net.Damaged())
	}
	for _, want := range []string{"peer=1", "address=" + a.net.Addr(), "to=" + b.net.Addr(), "memory and the network cards"} {
		if !log.contain(want) {
			t.Errorf("the log says nothing of %q", want)
		}
	}
}
