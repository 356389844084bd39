package transport

import (
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Every message between nodes, of every method and in both directions, ends with the CRC-32C of all bytes before it,
// as a field that no message of the contract has: TCP takes one of 65,536 damaged segments for sound, and what a middlebox
// or a network card's memory does to a segment it may checksum anew. Nothing of a message is used before its checksum
// was compared.
//
// Programs of older versions of the protocol skip the field, and send none. A message without it is taken as long as
// nobody has said on the connection that there is one: otherwise a bit in the field's tag would switch the checksum off.
const (
	// fieldSum is the highest number with a tag of two bytes.
	fieldSum = 2047
	// sumSize is the length of the field.
	sumSize = 2 + 4
	// protocolSums is the version of the protocol from which every message has a checksum.
	protocolSums = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged says that a message is not the one that was sent.
var errDamaged = errors.New("a message between nodes was damaged on its way: its checksum is another, or is gone")

// damageAdvice is what the log says to the operator.
const damageAdvice = "see to the memory and the network cards of both machines (dmesg, ethtool -S), and to what is between them: " +
	"docs/operations-group.md, A message between members is damaged"

// isDamaged recognises errDamaged also where gRPC has kept no more of it than its text.
func isDamaged(err error) bool {
	return err != nil && strings.Contains(err.Error(), errDamaged.Error())
}

// seal returns the field that follows a message of these bytes, in b.
func seal(b []byte, message mem.BufferSlice) []byte {
	sum := uint32(0)
	for _, piece := range message {
		sum = crc32.Update(sum, castagnoli, piece.ReadOnlyData())
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, fieldSum, protowire.Fixed32Type), sum)
}

// unseal takes the checksum off a message, which must be true if there is one. What is no message is left to who reads it.
func unseal(b []byte) (message []byte, sealed bool, err error) {
	for rest := b; len(rest) > 0; {
		number, typ, n := protowire.ConsumeField(rest)
		if n < 0 {
			break
		}
		if number == fieldSum {
			message = b[:len(b)-len(rest)]
			sum, k := protowire.ConsumeFixed32(rest[min(len(rest), sumSize-4):])
			if typ != protowire.Fixed32Type || n != len(rest) || n != sumSize || k < 0 || sum != crc32.Checksum(message, castagnoli) {
				return nil, false, errDamaged
			}
			return message, true, nil
		}
		rest = rest[n:]
	}
	return b, false, nil
}

// announces reports whether a message says that all on its connection have a checksum.
func announces(v any) bool {
	switch m := v.(type) {
	case *inFrame:
		return m.hello.GetProtocol().GetMax() >= protocolSums
	case interface{ GetHello() *pb.PeerHello }:
		return m.GetHello().GetProtocol().GetMax() >= protocolSums
	case interface{ GetWelcome() *pb.PeerWelcome }:
		return m.GetWelcome().GetProtocol() >= protocolSums
	}
	return false
}

// decode reads a message, which must have a checksum if it says so itself or must is set.
func (c wireCodec) decode(data mem.BufferSlice, v any, must bool) error {
	var b []byte
	f, isFrame := v.(*inFrame)
	if isFrame {
		// A copy of our own: the frame stays with the log's cache, gRPC's buffers do not.
		b = data.Materialize()
	} else {
		buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buf.Free()
		b = buf.ReadOnlyData()
	}
	message, sealed, err := unseal(b)
	switch {
	case err != nil:
		return err
	case must && !sealed:
		return errDamaged
	case isFrame:
		err = f.unmarshal(message)
	default:
		err = protoUnmarshal(message, v.(proto.Message))
	}
	if err == nil && !sealed && announces(v) {
		return errDamaged
	}
	return err
}

// clientCodec is the codec of one dialed connection.
type clientCodec struct {
	wireCodec
	p    *Peers
	conn *clientConn
}

func (c clientCodec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.decode(data, v, c.conn.sums.Load())
	switch {
	case errors.Is(err, errDamaged):
		c.p.noteDamage("to", c.conn.who)
		c.conn.fail(err)
	case err == nil && announces(v):
		c.conn.sums.Store(true)
	}
	return err
}

// Damaged is how many messages of other nodes were damaged on their way.
func (p *Peers) Damaged() uint64 { return p.damaged.Load() }

func (p *Peers) noteDamage(who ...any) {
	p.damaged.Add(1)
	p.lis.log.warn("a message of another node was damaged on its way: its connection is closed, and made anew",
		append(who, "advice", damageAdvice)...)
}

// noteRequest looks at the end of an attempt to read a request.
func (p *Peers) noteRequest(ctx context.Context, err error) {
	if conn := connOf(ctx); isDamaged(err) && conn != nil {
		who := []any{"from", conn.raw.RemoteAddr().String()}
		if h := conn.caller.Load(); h != nil {
			who = append(who, "peer", h.Member, "address", h.Addr)
		}
		p.noteDamage(who...)
	}
}

// contract is the service that gRPC serves, with an eye on what was damaged, which gRPC tells no method of: of a stream it
// ends the stream, and the caller the connection; of a call the connection is closed here.
func (p *Peers) contract() *grpc.ServiceDesc {
	d := pb.Peer_ServiceDesc
	d.Methods, d.Streams = slices.Clone(d.Methods), slices.Clone(d.Streams)
	for i := range d.Methods {
		handle := d.Methods[i].Handler
		d.Methods[i].Handler = func(srv any, ctx context.Context, read func(any) error, with grpc.UnaryServerInterceptor) (any, error) {
			return handle(srv, ctx, func(v any) error {
				err := read(v)
				if p.noteRequest(ctx, err); isDamaged(err) {
					connOf(ctx).Close()
				}
				return err
			}, with)
		}
	}
	for i := range d.Streams {
		handle := d.Streams[i].Handler
		d.Streams[i].Handler = func(srv any, s grpc.ServerStream) error { return handle(srv, &requests{s, p}) }
	}
	return &d
}

// requests are those of a stream.
type requests struct {
	grpc.ServerStream
	p *Peers
}

func (r *requests) RecvMsg(v any) error {
	err := r.ServerStream.RecvMsg(v)
	r.p.noteRequest(r.Context(), err)
	return err
}
