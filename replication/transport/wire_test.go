package transport

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// The bytes on the wire are those that protobuf would write.
func TestWireIsTheContract(t *testing.T) {
	out, err := codec.Marshal(&outFrame{pieces: [][]byte{[]byte("abc"), []byte("def")}, length: 6, more: 300})
	if err != nil {
		t.Fatal(err)
	}
	var req pb.PeerEntriesRequest
	if err := proto.Unmarshal(out.Materialize(), &req); err != nil || string(req.GetFrame()) != "abcdef" || req.GetMore() != 300 {
		t.Fatalf("%v, %v", &req, err)
	}
	hello := &pb.PeerHello{From: 7, Address: "a:1"}
	for _, m := range []proto.Message{
		&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Frame{Frame: []byte("xyz")}, More: 5},
		&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: hello}},
		&pb.PeerControlRequest{Kind: &pb.PeerControlRequest_Hello{Hello: hello}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var in inFrame
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &in); err != nil {
			t.Fatal(err)
		}
		if in.hello != nil && !proto.Equal(in.hello, hello) || in.hello == nil && (string(in.frame) != "xyz" || in.more != 5) {
			t.Errorf("%v is read as %+v", m, in)
		}
	}
}

// Frames cut into requests come together again.
func TestSplitAndAssemble(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a := assembler{limit: MaxFrame}
	for _, length := range []int{1, 100, pieceSize - 1, pieceSize, pieceSize + 1, 2 * pieceSize, 3*pieceSize + 17} {
		frame := make([]byte, length)
		for i := range frame {
			frame[i] = byte(rng.Uint32())
		}
		var pieces [][]byte
		for rest := frame; len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(length))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		var got []byte
		for _, f := range split(pieces) {
			if got != nil || f.length > pieceSize {
				t.Fatalf("length %d: a request of %d bytes", length, f.length)
			}
			var err error
			if got, err = a.add(&inFrame{frame: slices.Concat(f.pieces...), more: f.more}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, frame) {
			t.Fatalf("length %d comes out with %d", length, len(got))
		}
	}
}

func TestAssemblerRefuses(t *testing.T) {
	b := make([]byte, 10)
	for want, requests := range map[string][]*inFrame{
		"a second hello":   {{hello: &pb.PeerHello{}}},
		"an empty frame":   {{}},
		"101 bytes":        {{frame: b, more: 91}},
		"10 bytes with 20": {{frame: b, more: 25}, {frame: b, more: 20}},
		"10 bytes with 0":  {{frame: b, more: 25}, {frame: b}},
		"10 bytes with 5":  {{frame: b, more: 10}, {frame: b, more: 5}},
	} {
		a := assembler{limit: 100}
		var err error
		for _, r := range requests {
			_, err = a.add(r)
		}
		if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, m := range []proto.Message{
		&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Frame{Frame: []byte("xyz")}, More: 5},
		&pb.PeerEntriesRequest{Kind: &pb.PeerEntriesRequest_Hello{Hello: &pb.PeerHello{Group: testGroup[:]}}},
	} {
		b, _ := proto.Marshal(m)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in inFrame
		if in.unmarshal(b) != nil {
			return
		}
		var req pb.PeerEntriesRequest
		if err := proto.Unmarshal(b, &req); err != nil {
			return // ours is more lenient with what it skips
		}
		if req.GetKind() != nil && in.hello == nil && !bytes.Equal(req.GetFrame(), in.frame) {
			t.Fatalf("protobuf reads %v, we read %+v", &req, &in)
		}
		_, _ = helloFromWire(in.hello)
		a := assembler{limit: 1 << 10}
		_, _ = a.add(&in)
	})
}

func TestErrorsCross(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, err := range []error{
		&Rejection{ReasonOtherGroup, "other"}, &Failure{9, "nine"}, &Failure{0, long}, &Rejection{ReasonRemoved, long},
	} {
		got := fromStatus(toStatus(err))
		switch want := err.(type) {
		case *Rejection:
			var r *Rejection
			if !errors.As(got, &r) || r.Reason != want.Reason || r.Text != clip(want.Text) {
				t.Errorf("%v becomes %v", err, got)
			}
		case *Failure:
			var f *Failure
			if !errors.As(got, &f) || f.Code != want.Code || f.Text != clip(want.Text) {
				t.Errorf("%v becomes %v", err, got)
			}
		}
	}
	for err, code := range map[error]codes.Code{
		malformed("x"): codes.InvalidArgument, ErrTooLarge: codes.ResourceExhausted, io.ErrUnexpectedEOF: codes.Unavailable,
	} {
		if got := toStatus(err); status.Code(got) != code || !errors.Is(fromStatus(got), ErrUnreachable) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
