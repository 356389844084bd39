package provision

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ChunkWriter takes what is sent. Send waits while the reader is behind and does not
// keep the chunk, which has at most MaxChunk bytes. Abort ends the stream, also a Send that waits. Any task may
// call it, more than once.
type ChunkWriter interface {
	Send(chunk []byte) error
	Abort()
}

// ChunkReader gives what was sent, in its order. Next returns a chunk that is valid
// until the next call, and io.EOF at the end.
type ChunkReader interface {
	Next() ([]byte, error)
	Close() error
}

// MaxChunk is the longest chunk in bytes.
const MaxChunk = 1 << 20

// An answer is a sequence of frames:
//
//	offset size field
//	0      4    length of the body
//	4      1    type
//	5      3    0
//	8      4    CRC32C of the eight bytes before and of the body
//	12          body
//
// Chunks cut it anywhere. The last frame is frameEnd or frameError.
const frameHeader = 12

type frameType uint8

const (
	frameManifest frameType = 1 + iota
	frameSchema
	frameTable      // an entry of the list of tables
	frameDefinition // of a table, before its rows
	framePart       // of rows
	frameEnd
	frameError
	frameApplied // the index of the entry up to which the log is applied, before the state
	frameTypes
)

func (t frameType) String() string {
	if t == 0 || t >= frameTypes {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return [...]string{"manifest", "schema", "table", "definition", "part", "end", "error", "applied"}[t-1]
}

// maxFrame is the longest body of each type in bytes.
func maxFrame(t frameType) int {
	switch t {
	case frameManifest:
		return maxMembership + 1024
	case frameSchema, frameDefinition:
		return 32 << 20
	case framePart:
		return maxPart + maxPart/64 + 1<<16
	}
	return 1 << 16
}

// maxPart is the most bytes of rows in a part. Before splitFormat a part held whole rows, so no longer one can be
// sent to a receiver that knows nothing newer. Since then rows that take more than longRows parts are split.
const maxPart = 80 << 20

const longRows = 4

// A part that is not split is one that every receiver takes.
const _ uint = maxPart - longRows*maxPartSize

// keptBuffer is up to what size a buffer is kept for the next part, in bytes.
const keptBuffer = 8 << 20

// errDamaged says that a frame did not arrive as it was sent.
var errDamaged = errors.New("provision: damaged part")

// errCut says that a stream ended before the answer did.
var errCut = errors.New("provision: the donor's stream ended too early")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frameWriter sends frames. Its buffer begins with room for the header.
type frameWriter struct {
	w    ChunkWriter
	buf  []byte
	sent int64
	pace func(n int) // waits as long as the rate demands
}

// begin returns the buffer to append a body to.
func (f *frameWriter) begin() []byte { return append(f.buf[:0], make([]byte, frameHeader)...) }

// send sends what begin returned, with a body.
func (f *frameWriter) send(t frameType, b []byte) error {
	if f.buf = b[:0]; cap(b) > keptBuffer {
		f.buf = nil
	}
	n := len(b) - frameHeader
	if n > maxFrame(t) {
		return fmt.Errorf("provision: a frame of %d bytes, at most %d are possible (%v)", n, maxFrame(t), t)
	}
	binary.LittleEndian.PutUint32(b, uint32(n))
	b[4] = byte(t)
	binary.LittleEndian.PutUint32(b[8:], frameSum(b[:8], b[frameHeader:]))
	for len(b) > 0 {
		chunk := b[:min(len(b), MaxChunk)]
		if f.pace != nil {
			f.pace(len(chunk))
		}
		if err := f.w.Send(chunk); err != nil {
			return &streamError{err}
		}
		f.sent += int64(len(chunk))
		b = b[len(chunk):]
	}
	return nil
}

func frameSum(header, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, body)
}

// streamError is an error of the stream, not of what it carries.
type streamError struct{ err error }

func (e *streamError) Error() string { return "provision: stream: " + e.err.Error() }
func (e *streamError) Unwrap() error { return e.err }

// frameReader reads frames.
type frameReader struct {
	r     ChunkReader
	rest  []byte // of the last chunk
	buf   []byte
	noted func(n int) // is told of every chunk
}

// next returns the next frame, valid until the next call. Errors: *streamError,
// errCut, errDamaged.
func (f *frameReader) next() (t frameType, body []byte, err error) {
	head, err := f.read(frameHeader)
	if err != nil {
		return 0, nil, err
	}
	var h [frameHeader]byte
	copy(h[:], head)
	n := int(binary.LittleEndian.Uint32(h[:]))
	t = frameType(h[4])
	if t == 0 || t >= frameTypes || h[5]|h[6]|h[7] != 0 || n > maxFrame(t) {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes, %v", errDamaged, n, t)
	}
	if body, err = f.read(n); err != nil {
		return 0, nil, err
	}
	if want, got := binary.LittleEndian.Uint32(h[8:]), frameSum(h[:8], body); want != got {
		return 0, nil, fmt.Errorf("%w: checksum %#08x instead of %#08x (%v, %d bytes)", errDamaged, got, want, t, n)
	}
	return t, body, nil
}

// read returns the next n bytes: of the chunk if it has them all.
func (f *frameReader) read(n int) ([]byte, error) {
	if len(f.rest) == 0 && n > 0 {
		if err := f.chunk(); err != nil {
			return nil, err
		}
	}
	if n <= len(f.rest) {
		b := f.rest[:n:n]
		f.rest = f.rest[n:]
		return b, nil
	}
	f.buf = f.buf[:0]
	for {
		k := min(n-len(f.buf), len(f.rest))
		f.buf = append(f.buf, f.rest[:k]...)
		f.rest = f.rest[k:]
		if len(f.buf) == n {
			return f.buf, nil
		}
		if err := f.chunk(); err != nil {
			return nil, err
		}
	}
}

func (f *frameReader) chunk() error {
	b, err := f.r.Next()
	if err == io.EOF {
		return errCut
	}
	if err != nil {
		return &streamError{err}
	}
	if f.noted != nil {
		f.noted(len(b))
	}
	f.rest = b
	return nil
}
