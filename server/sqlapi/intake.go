package sqlapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// pipe is a call as gRPC's transport has it, whose messages come in pieces: RecvMsg would keep a message of any length
// before anybody is asked.
type pipe interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// intake receives the messages of a call, whose memory is counted as it comes.
type intake struct {
	d    *Door
	conn *connection // nil: it is not known
	link interface {
		Context() context.Context
		RecvMsg(m any) error
	}
	pipe pipe // nil: RecvMsg takes messages, as of tests
	most func() int64
}

// intake begins to receive from a call messages of at most so many bytes.
func (d *Door) intake(l link, most func() int64) *intake {
	in := &intake{d: d, conn: connectionOf(l.Context()), link: l, most: most}
	if _, ok := l.(grpc.ServerStream); ok {
		in.pipe, _ = grpc.ServerTransportStreamFromContext(l.Context()).(pipe)
	}
	return in
}

const (
	// shortMessage is the length of messages that are read at once: no more than gRPC takes of a call that nobody reads.
	shortMessage = 64 << 10
	// longPiece is the most of a message that its memory is counted for before it is there.
	longPiece = 2 << 20
	// refusedHead is how much is kept of a message that there is no room for: session and request come first.
	refusedHead = 64
	packedHead  = 4 << 10 // of a message that is compressed, for as much
)

// refused is the error for a message that there was no memory for. It has been passed over: a stream may go on.
type refused struct {
	err              *sqlerr.Error
	session, request uint64 // of it; 0: they are not known
}

func (e *refused) Error() string { return e.err.Error() }
func (e *refused) Unwrap() error { return e.err }

func errNoRoom(n int64) *sqlerr.Error {
	return errPending(fmt.Sprintf("There is no memory for a message of %d bytes: others of this connection, or of this node, are on their "+
		"way or wait. Try again later, send less at a time, or give the statements of the node more (temptable_max_ram)", n))
}

var errStalled = sqlerr.Newf(sqlerr.NetReadInterrupted, "The call was ended: the rest of a message has not come for %d seconds", int(stallMax))

// receive receives a message. Errors: io.EOF after the last, refused, those of gRPC.
func (in *intake) receive(m proto.Message) error {
	if in.pipe == nil {
		return in.link.RecvMsg(m)
	}
	var header [5]byte
	if err := in.pipe.ReadMessageHeader(header[:]); err != nil {
		return broken(err)
	}
	n, most := int64(binary.BigEndian.Uint32(header[1:])), in.most()
	if n > most {
		return errLong(n, most)
	}
	unpack, err := in.compressor(header[0])
	if err != nil {
		return err
	}
	if n <= shortMessage && unpack == nil {
		data, err := in.pipe.Read(int(n))
		if err != nil {
			return brokenOff(err)
		}
		buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buf.Free()
		defer data.Free()
		return in.decode(buf.ReadOnlyData(), m)
	}
	held := int64(0)
	defer func() { in.d.memory.take(in.conn, -held) }()
	hold := func(n int64) bool {
		ok := in.d.memory.await(in.conn, n, in.link.Context().Done())
		if ok {
			held += n
		}
		return ok
	}
	data, err := in.long(n, unpack, hold)
	if err == nil && unpack != nil {
		data, err = unpacked(unpack, data, most, hold)
	}
	if err != nil {
		return err
	}
	if len(data) > shortMessage && !hold(weigh(data, m.ProtoReflect().Descriptor(), 0)) {
		return refusing(data, n)
	}
	return in.decode(data, m)
}

func (in *intake) decode(data []byte, m proto.Message) error {
	if err := proto.Unmarshal(data, m); err != nil {
		return status.Errorf(codes.Internal, "the message is none of the contract: %v", err)
	}
	return nil
}

// long reads a message, for which hold makes room piece by piece if it is long.
func (in *intake) long(n int64, unpack encoding.Compressor, hold func(n int64) bool) ([]byte, error) {
	var data []byte
	for int64(len(data)) < n {
		next := min(n-int64(len(data)), max(int64(len(data)), shortMessage), longPiece)
		if n > shortMessage && !hold(next) {
			return nil, in.pass(data, n, unpack)
		}
		piece, err := in.piece(int(next))
		if err != nil {
			return nil, err
		}
		if cap(data)-len(data) < int(next) {
			// By a quarter, that a long one is not copied for each piece; so much more than is counted there may be.
			data = grown(data, int(min(n-int64(len(data)), max(next, int64(len(data)/4)))))
		}
		for _, b := range piece {
			data = append(data, b.ReadOnlyData()...)
		}
		piece.Free()
	}
	return data, nil
}

// grown has room for just n bytes more: append makes more of it than is held.
func grown(b []byte, n int) []byte { return append(make([]byte, 0, len(b)+n), b...) }

// piece reads n bytes. A client that does not send them keeps what has been counted for it no longer than stallMax.
func (in *intake) piece(n int) (mem.BufferSlice, error) {
	type got struct {
		data mem.BufferSlice
		err  error
	}
	came := make(chan got, 1)
	go func() { // which ends with the call
		data, err := in.pipe.Read(n)
		came <- got{data, err}
	}()
	late := time.NewTimer(stallMax * time.Second)
	defer late.Stop()
	select {
	case g := <-came:
		return g.data, brokenOff(g.err)
	case <-late.C:
		return nil, errStalled
	}
}

// pass reads the rest of a message and drops it.
func (in *intake) pass(data []byte, n int64, unpack encoding.Compressor) error {
	keep := refusedHead
	if unpack != nil {
		keep = packedHead
	}
	head := data[:min(len(data), keep)]
	for left := n - int64(len(data)); left > 0; {
		next := min(left, shortMessage)
		piece, err := in.piece(int(next))
		if err != nil {
			return err
		}
		for _, b := range piece {
			if more := keep - len(head); more > 0 {
				head = append(head, b.ReadOnlyData()[:min(more, b.Len())]...)
			}
		}
		piece.Free()
		left -= next
	}
	if unpack != nil {
		head = unpackedHead(unpack, head)
	}
	return refusing(head, n)
}

// unpackedHead is how the message begins of which this is a part.
func unpackedHead(c encoding.Compressor, head []byte) []byte {
	r, err := c.Decompress(bytes.NewReader(head))
	if err != nil {
		return nil
	}
	out := make([]byte, refusedHead)
	n, _ := io.ReadFull(r, out) // until the part ends
	return out[:n]
}

// refusing is the error for a message that begins so.
func refusing(head []byte, n int64) error {
	e := &refused{err: errNoRoom(n)}
	for range 2 { // SqlSessionsRequest.session and request, in other messages something else
		number, kind, k := protowire.ConsumeTag(head)
		if k < 0 || kind != protowire.VarintType {
			break
		}
		v, j := protowire.ConsumeVarint(head[k:])
		if j < 0 {
			break
		}
		switch head = head[k+j:]; number {
		case 1:
			e.session = v
		case 2:
			e.request = v
		}
	}
	return e
}

// compressor is what unpacks a message by its header's first byte; nil: it is not packed.
func (in *intake) compressor(format byte) (encoding.Compressor, error) {
	name := in.pipe.RecvCompress()
	switch {
	case format == 0:
		return nil, nil
	case format != 1 || name == "" || name == encoding.Identity:
		return nil, status.Errorf(codes.Internal, "a message of the form %d without a compression", format)
	}
	c := encoding.GetCompressor(name)
	if c == nil {
		return nil, status.Errorf(codes.Unimplemented, "messages compressed by %q are not understood: send them as they are", name)
	}
	return c, nil
}

// unpacked unpacks a message, for which hold makes room piece by piece if it is long.
func unpacked(c encoding.Compressor, data []byte, most int64, hold func(n int64) bool) ([]byte, error) {
	r, err := c.Decompress(bytes.NewReader(data))
	if err != nil {
		return nil, status.Errorf(codes.Internal, "a message cannot be unpacked: %v", err)
	}
	var out []byte
	for {
		if len(out) == cap(out) {
			more := max(cap(out), shortMessage)
			if out != nil && !hold(int64(more)) {
				return nil, refusing(out, int64(len(out)+more))
			}
			out = grown(out, more)
		}
		n, err := r.Read(out[len(out):cap(out)])
		if out = out[:len(out)+n]; int64(len(out)) > most {
			return nil, errLong(int64(len(out)), most)
		}
		switch {
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, status.Errorf(codes.Internal, "a message cannot be unpacked: %v", err)
		}
	}
}

// weigh is about how much memory a message takes, by its encoding: a value of two bytes may become a hundred.
func weigh(b []byte, of protoreflect.MessageDescriptor, depth int) int64 {
	const message, field, deepest = 96, 24, 16
	n := int64(message)
	for len(b) > 0 {
		number, kind, k := protowire.ConsumeTag(b)
		if k < 0 {
			break
		}
		j := protowire.ConsumeFieldValue(number, kind, b[k:])
		if j < 0 {
			break
		}
		value := b[k : k+j]
		b = b[k+j:]
		n += field
		if kind != protowire.BytesType {
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		if f := of.Fields().ByNumber(number); f != nil && f.Message() != nil && depth < deepest {
			n += weigh(content, f.Message(), depth+1)
		} else {
			n += int64(len(content))
		}
	}
	return min(n, math.MaxInt64/4)
}

func errLong(n, most int64) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.NetPacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes: the message has %d bytes, %d are allowed", n, most)
}

// brokenOff is broken within a message, where the end of the client's data is not the end of a stream.
func brokenOff(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return broken(err)
}

// broken is an error of gRPC's transport as one of gRPC.
func broken(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case err == io.ErrUnexpectedEOF:
		return status.Error(codes.Internal, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}
