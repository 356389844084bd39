package body

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// keptBuffer is how much memory a reader keeps from one frame for the next.
const keptBuffer = 8 << 20

// Reader reads the frames of a body in their order, in memory for one frame.
type Reader struct {
	r    io.ReaderAt
	want entry.LargeBody
	x    Index
	z    *zstd.Decoder

	payload, events []byte
}

// NewReader reads the body that lies in r, a file's bytes, as it is described. z unpacks
// frames; nil: Next only verifies.
func NewReader(r io.ReaderAt, want *entry.LargeBody, z *zstd.Decoder) *Reader {
	return &Reader{r: r, want: *want, z: z}
}

// NewDecoder returns what unpacks frames.
func NewDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(FrameMax))
}

// Next returns the next frame and its events, which are valid until the next call; io.EOF
// behind the last one, when the whole body was what is described. Errors: ErrCorrupt, and
// the file's.
func (r *Reader) Next() (f Frame, events []byte, err error) {
	at := r.x.Stored()
	if at == r.want.Stored {
		if err := r.x.Matches(&r.want); err != nil {
			return f, nil, err
		}
		return f, nil, io.EOF
	}
	var b [HeaderSize]byte
	if err := r.read(b[:], at); err != nil {
		return f, nil, err
	}
	h, err := ParseHeader(b[:])
	if err == nil && at+h.Size() > r.want.Stored {
		err = fmt.Errorf("%w: a frame of %d bytes at %d, the body has %d", ErrCorrupt, h.Size(), at, r.want.Stored)
	}
	if err != nil {
		return f, nil, err
	}
	if r.payload = room(r.payload, int(h.Stored)); err == nil {
		err = r.read(r.payload, at+HeaderSize)
	}
	if err == nil {
		err = h.Verify(r.x.Chain(), r.payload)
	}
	if err != nil {
		return f, nil, fmt.Errorf("frame %d: %w", r.x.Len(), err)
	}
	f = r.x.Add(h, 0)
	if r.z == nil {
		return f, nil, nil
	}
	if cap(r.events) > keptBuffer {
		r.events = nil
	}
	if events, err = h.Unpack(r.z, r.payload, r.events); err != nil {
		return f, nil, fmt.Errorf("frame %d: %w", f.Number, err)
	}
	if h.Codec != entry.Plain {
		r.events = events
	}
	return f, events, nil
}

func (r *Reader) read(b []byte, at int64) error {
	_, err := r.r.ReadAt(b, int64(r.want.Offset)+at)
	if err == io.EOF {
		err = fmt.Errorf("%w: the file ends within the body", ErrCorrupt)
	}
	return err
}

// room returns n bytes, those of b if they suffice.
func room(b []byte, n int) []byte {
	if cap(b) < n || cap(b) > keptBuffer && n < keptBuffer {
		return make([]byte, n)
	}
	return b[:n]
}

// Verify reads a whole body and checks it. Errors: ErrCorrupt, and the file's.
func Verify(r io.ReaderAt, want *entry.LargeBody) error {
	for b := NewReader(r, want, nil); ; {
		if _, _, err := b.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
