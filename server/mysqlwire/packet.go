package mysqlwire

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/triremedb/trireme/engine/sqlerr"
)

const (
	headerSize = 4
	// maxChunk is the longest payload of one packet on the wire. A longer one is split;
	// a chunk of exactly this length is followed by another, possibly empty.
	maxChunk = 1<<24 - 1

	readBuffer  = 4 << 10  // what a connection keeps for reading
	keepBuffer  = 64 << 10 // buffers beyond this are given up after a while
	maxBuffer   = 1 << 20  // and beyond this at once: a connection may be idle for hours
	flushBuffer = 16 << 10 // results leave in pieces of about this size
	// shrinkAfter is after how many small packets a large buffer is given up.
	shrinkAfter = 64
)

// Errors that end a connection after they were told to the client.
var (
	errOutOfOrder = sqlerr.New(sqlerr.NetPacketsOutOfOrder)
	errTooLarge   = sqlerr.New(sqlerr.NetPacketTooLarge)
	errMalformed  = sqlerr.New(sqlerr.MalformedPacket)
)

// packetReader cuts the stream of a client into packets and puts those that were split
// together again.
//
// Its memory is bounded by the longest packet allowed, and grows only as bytes come in:
// a header that promises much costs nothing.
type packetReader struct {
	src io.Reader
	buf []byte // buf[start:end] is received and not consumed
	// start and end never pass len(buf).
	start, end int
	small      int // packets in a row that would have fitted the small buffer

	seq *uint8 // number of the next packet
	// frames is set with compression: they are numbered, packets go on from their number.
	frames *frames
	max    int64 // longest payload
	// waits is told when the rest of a packet, or of what consists of several, is waited for; nil: nobody minds.
	waits func(bool)
	// more: what is waited for is not a new command.
	more bool
	// hold accounts for long payloads, and held is what was; nil: nobody does.
	hold func(delta int64) error
	held int64
}

// next returns the payload of the next packet. It is valid until the next call. Errors:
// of the stream (io.EOF only between packets), or a *sqlerr.Error.
func (r *packetReader) next() ([]byte, error) {
	r.shrink()
	keeps := int64(0)
	if len(r.buf) > maxBuffer {
		keeps = int64(len(r.buf))
	}
	if r.held > keeps {
		_ = r.hold(keeps - r.held) // what is given back is never refused
		r.held = keeps
	}
	p, err := r.whole()
	if r.frames != nil {
		*r.seq = r.frames.seq
	}
	return p, err
}

func (r *packetReader) whole() ([]byte, error) {
	n, err := r.header(true)
	if more := r.more; !more {
		r.more = true
		defer func() { r.more = false }()
	}
	if err != nil {
		return nil, err
	}
	if n < maxChunk {
		p, err := r.take(n)
		return p, r.pass(nil, n, err)
	}
	// The whole payload is put together apart: chunks have headers between them.
	var whole []byte
	for {
		if int64(len(whole)+n) > r.max {
			return nil, errTooLarge
		}
		err := r.room(n)
		if err == nil {
			var chunk []byte
			if chunk, err = r.take(n); err == nil {
				whole = append(whole, chunk...)
			}
		}
		if err != nil {
			return nil, r.pass(whole, n, err)
		}
		if n < maxChunk {
			return whole, nil
		}
		if n, err = r.header(false); err != nil {
			return nil, err
		}
	}
}

// header consumes a header and returns the length that it promises.
func (r *packetReader) header(first bool) (int, error) {
	if err := r.fill(headerSize); err != nil {
		if !first && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	h := r.buf[r.start : r.start+headerSize]
	n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
	if h[3] != *r.seq && r.frames == nil {
		*r.seq = h[3] + 1
		return 0, errOutOfOrder
	}
	*r.seq++
	r.start += headerSize
	if int64(n) > r.max {
		return 0, errTooLarge
	}
	return n, nil
}

func (r *packetReader) take(n int) ([]byte, error) {
	if err := r.fill(n); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	p := r.buf[r.start : r.start+n : r.start+n]
	r.start += n
	return p, nil
}

// fill sees to it that n bytes are there. It returns io.EOF only if none is.
func (r *packetReader) fill(n int) error {
	for r.end-r.start < n {
		if r.start > 0 {
			copy(r.buf, r.buf[r.start:r.end])
			r.end -= r.start
			r.start = 0
		}
		if r.end == len(r.buf) {
			// By doubling, not to what was promised.
			more := max(readBuffer, min(len(r.buf), n-len(r.buf)+headerSize))
			if len(r.buf)+more > maxBuffer {
				if err := r.room(more); err != nil {
					return err
				}
			}
			r.buf = append(r.buf, make([]byte, more)...)
		}
		m, err := r.read()
		r.end += m
		if r.end-r.start >= n {
			return nil
		}
		if err == io.EOF && r.end > r.start {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noRoom is the error for a payload that there is no memory for. It has been passed over: the connection may go on.
type noRoom struct {
	err     error
	command command // if the payload is one
}

func (e *noRoom) Error() string { return e.err.Error() }
func (e *noRoom) Unwrap() error { return e.err }

// room accounts for n bytes more of a long payload. Error: noRoom.
func (r *packetReader) room(n int) error {
	if r.hold == nil {
		return nil
	}
	if err := r.hold(int64(n)); err != nil {
		return &noRoom{err: err}
	}
	r.held += int64(n)
	return nil
}

// pass consumes the rest of a payload for which there is no room, after what is taken, of whose next chunk n bytes
// are to come. It returns err, or that of the stream.
func (r *packetReader) pass(taken []byte, n int, err error) error {
	if err == nil {
		return nil
	}
	var refused *noRoom
	if !errors.As(err, &refused) {
		return err
	}
	if len(taken) == 0 {
		if err := r.fill(1); err != nil {
			return io.ErrUnexpectedEOF
		}
		taken = r.buf[r.start:]
	}
	refused.command = command(taken[0])
	for {
		for left := n; left > 0; {
			if err := r.fill(1); err != nil {
				return io.ErrUnexpectedEOF
			}
			k := min(left, r.end-r.start)
			r.start, left = r.start+k, left-k
		}
		if n < maxChunk {
			return err
		}
		var e error
		if n, e = r.header(false); e != nil {
			return e
		}
	}
}

func (r *packetReader) read() (int, error) {
	if r.waits == nil || !r.more && r.end == r.start {
		return r.src.Read(r.buf[r.end:])
	}
	r.waits(true)
	defer r.waits(false)
	return r.src.Read(r.buf[r.end:])
}

// shrink gives up a large buffer that was not needed for a while.
func (r *packetReader) shrink() {
	rest := r.buf[r.start:r.end]
	switch {
	case len(r.buf) > maxBuffer && len(rest) <= keepBuffer:
	case r.end > keepBuffer || len(r.buf) <= keepBuffer:
		r.small = 0
		return
	default:
		if r.small++; r.small < shrinkAfter {
			return
		}
	}
	r.buf = make([]byte, max(readBuffer, len(rest)))
	r.start, r.end = 0, copy(r.buf, rest)
}

// buffered reports whether bytes of the client are waiting.
func (r *packetReader) buffered() int { return r.end - r.start }

// packetWriter gathers packets and sends them in as few pieces as possible: a small
// result is one write.
type packetWriter struct {
	dst  io.Writer
	buf  []byte
	head int // offset of the header of the packet that is being made
	seq  *uint8
	err  error // of dst; stays
}

// begin starts a packet: its payload is what is appended to buf up to end.
func (w *packetWriter) begin() {
	w.head = len(w.buf)
	w.buf = append(w.buf, 0, 0, 0, 0)
}

// end completes the packet.
func (w *packetWriter) end() {
	n := len(w.buf) - w.head - headerSize
	if n < maxChunk {
		w.putHeader(w.head, n)
		return
	}
	w.split(n)
}

// drop takes back the packet that was begun.
func (w *packetWriter) drop() { w.buf = w.buf[:w.head] }

func (w *packetWriter) putHeader(at, n int) {
	binary.LittleEndian.PutUint32(w.buf[at:], uint32(n)|uint32(*w.seq)<<24)
	*w.seq++
}

// split puts headers between the chunks of a long payload, the last chunk first moved.
func (w *packetWriter) split(n int) {
	chunks := n/maxChunk + 1
	w.buf = slices.Grow(w.buf, (chunks-1)*headerSize)
	w.buf = w.buf[:len(w.buf)+(chunks-1)*headerSize]
	base := w.head + headerSize
	for i := chunks - 1; i > 0; i-- {
		from := base + i*maxChunk
		size := min(maxChunk, n-i*maxChunk)
		copy(w.buf[from+i*headerSize:], w.buf[from:from+size])
	}
	for i := range chunks {
		w.putHeader(w.head+i*(maxChunk+headerSize), min(maxChunk, n-i*maxChunk))
	}
}

// endRow completes a packet and sends what has gathered if it is much.
func (w *packetWriter) endRow() error {
	w.end()
	if len(w.buf) >= flushBuffer {
		return w.flush()
	}
	return nil
}

// flush sends everything.
func (w *packetWriter) flush() error {
	if w.err != nil {
		return w.err
	}
	if len(w.buf) == 0 {
		return nil
	}
	_, w.err = w.dst.Write(w.buf)
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return w.err
}
