package transport

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/triremedb/trireme/internal/process"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// The two streams' requests are encoded here, so that a frame's pieces go out and
// come in without a copy that protobuf would make. The bytes are those of
// PeerControlRequest and PeerEntriesRequest, and the checksum with which every message ends.

// Numbers of the fields in both requests.
const (
	fieldHello = 1
	fieldFrame = 2
	fieldMore  = 3
)

// maxMessage is the longest message of gRPC: a question, an answer or a chunk with
// what is around it.
const maxMessage = 1<<20 + 16<<10

// pieceSize is the most of a frame in one message of gRPC.
const pieceSize = 512 << 10

// outFrame is a request with a piece of a frame.
type outFrame struct {
	pieces [][]byte
	length int
	more   int
}

// inFrame is a request that came in.
type inFrame struct {
	hello *pb.PeerHello
	frame []byte
	more  int
	must  bool // it must have a checksum: the hello said so
}

// wireCodec is gRPC's codec for these two, and protobuf's for everything else, with a checksum behind either.
type wireCodec struct{ encoding.CodecV2 }

var codec = wireCodec{encoding.GetCodecV2(proto.Name)}

func (c wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*outFrame)
	if !ok {
		out, err := c.CodecV2.Marshal(v)
		if err != nil {
			return nil, err
		}
		return append(out, mem.SliceBuffer(seal(make([]byte, 0, sumSize), out))), nil
	}
	head := make([]byte, 0, 32) // with room for the checksum
	if f.more > 0 {
		head = protowire.AppendTag(head, fieldMore, protowire.VarintType)
		head = protowire.AppendVarint(head, uint64(f.more))
	}
	head = protowire.AppendTag(head, fieldFrame, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(f.length))
	out := make(mem.BufferSlice, 0, 2+len(f.pieces))
	out = append(out, mem.SliceBuffer(head))
	for _, p := range f.pieces {
		out = append(out, mem.SliceBuffer(p))
	}
	return append(out, mem.SliceBuffer(seal(head[len(head):], out))), nil
}

func (c wireCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*inFrame)
	return c.decode(data, v, ok && f.must)
}

func (f *inFrame) unmarshal(b []byte) error {
	*f = inFrame{must: f.must}
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch {
		case number == fieldMore && typ == protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			if v > MaxFrame {
				return malformed("%d more bytes of a frame, at most %d are allowed", v, MaxFrame)
			}
			f.more, b = int(v), b[n:]
		case (number == fieldFrame || number == fieldHello) && typ == protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
			if number == fieldFrame {
				f.frame = v
				continue
			}
			f.hello = &pb.PeerHello{}
			if err := protoUnmarshal(v, f.hello); err != nil {
				return err
			}
		default:
			if n = protowire.ConsumeFieldValue(number, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			b = b[n:]
		}
	}
	return nil
}

// split cuts a frame's pieces into requests of at most pieceSize.
func split(pieces [][]byte) []outFrame {
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	if total <= pieceSize {
		return []outFrame{{pieces: pieces, length: total}}
	}
	var out []outFrame
	var f outFrame
	for _, p := range pieces {
		for len(p) > 0 {
			n := min(len(p), pieceSize-f.length)
			f.pieces = append(f.pieces, p[:n])
			f.length += n
			p = p[n:]
			if f.length == pieceSize {
				total -= f.length
				f.more = total
				out = append(out, f)
				f = outFrame{}
			}
		}
	}
	if f.length > 0 {
		out = append(out, f)
	}
	return out
}

// assembler puts the pieces of frames together.
type assembler struct {
	frame []byte // what has come of a long frame
	more  int    // what is still to come
	limit int    // of a frame
}

// add takes a request and returns the frame that it completes, if it does.
func (a *assembler) add(f *inFrame) ([]byte, error) {
	switch {
	case f.hello != nil:
		return nil, malformed("a second hello")
	case len(f.frame) == 0:
		return nil, malformed("an empty frame")
	case len(f.frame)+f.more > a.limit:
		return nil, malformed("%d bytes, at most %d are allowed", len(f.frame)+f.more, a.limit)
	case a.frame == nil && f.more == 0:
		return f.frame, nil
	case a.frame == nil:
		a.frame = make([]byte, 0, len(f.frame)+f.more)
	case len(f.frame)+f.more != a.more:
		return nil, malformed("a piece of %d bytes with %d to come where %d were announced", len(f.frame), f.more, a.more)
	}
	a.frame, a.more = append(a.frame, f.frame...), f.more
	if a.more > 0 {
		return nil, nil
	}
	frame := a.frame
	a.frame = nil
	return frame, nil
}

func toGroup(b []byte) (g GroupID, err error) {
	if len(b) != 0 && copy(g[:], b) != len(b) || len(b) != 0 && len(b) != len(g) {
		return g, fmt.Errorf("a group id of %d bytes", len(b))
	}
	return g, nil
}

func fromGroup(g GroupID) []byte {
	if g == (GroupID{}) {
		return nil
	}
	return g[:]
}

func processToWire(id process.Identity) *pb.PeerProcess {
	if id == (process.Identity{}) {
		return nil
	}
	return &pb.PeerProcess{Pid: id.PID, Fd: id.Descriptor, Token: id.Token[:]}
}

// processFromWire reads a process's identity. One that makes no sense is none: the process
// cannot be watched, and nothing else hangs on it.
func processFromWire(p *pb.PeerProcess) process.Identity {
	if len(p.GetToken()) != len(process.Identity{}.Token) {
		return process.Identity{}
	}
	return process.Identity{PID: p.GetPid(), Descriptor: p.GetFd(), Token: [16]byte(p.GetToken())}
}

func helloToWire(h *Hello) *pb.PeerHello {
	return &pb.PeerHello{
		Protocol:  &pb.PeerVersions{Min: h.Protocol.Min, Max: h.Protocol.Max},
		LogFormat: &pb.PeerVersions{Min: h.LogFormat.Min, Max: h.LogFormat.Max},
		Group:     fromGroup(h.Group), From: h.Member, To: h.To,
		Address: h.Addr, Build: h.Build, Incarnation: h.Incarnation, Process: processToWire(h.Process),
	}
}

func helloFromWire(h *pb.PeerHello) (Hello, *Rejection) {
	if h == nil {
		return Hello{}, rejectf(ReasonMalformed, "the caller did not say who it is")
	}
	group, err := toGroup(h.GetGroup())
	if err != nil {
		return Hello{}, rejectf(ReasonMalformed, "the hello has %v", err)
	}
	return Hello{
		Protocol:  Versions{h.GetProtocol().GetMin(), h.GetProtocol().GetMax()},
		LogFormat: Versions{h.GetLogFormat().GetMin(), h.GetLogFormat().GetMax()},
		Identity:  Identity{group, h.GetFrom()}, To: h.GetTo(),
		Addr: h.GetAddress(), Build: h.GetBuild(), Incarnation: h.GetIncarnation(), Process: processFromWire(h.GetProcess()),
	}, nil
}

func welcomeToWire(w *Welcome) *pb.PeerWelcome {
	return &pb.PeerWelcome{
		Protocol: w.Protocol, LogFormat: w.LogFormat, Group: fromGroup(w.Group), Member: w.Member,
		Build: w.Build, Incarnation: w.Incarnation, Process: processToWire(w.Process),
	}
}

func welcomeFromWire(w *pb.PeerWelcome) (Welcome, *Rejection) {
	if w == nil {
		return Welcome{}, rejectf(ReasonMalformed, "the node did not say who it is")
	}
	group, err := toGroup(w.GetGroup())
	if err != nil {
		return Welcome{}, rejectf(ReasonMalformed, "the welcome has %v", err)
	}
	return Welcome{
		Protocol: w.GetProtocol(), LogFormat: w.GetLogFormat(), Identity: Identity{group, w.GetMember()},
		Build: w.GetBuild(), Incarnation: w.GetIncarnation(), Process: processFromWire(w.GetProcess()),
	}, nil
}
