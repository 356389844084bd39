package mysqlwire

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// With compression, packets travel in frames:
//
//	3 bytes   length of what follows the header
//	1 byte    number of the frame
//	3 bytes   length once decompressed; 0: it is not compressed
//
// Frames and packets begin and end independently of each other.
const (
	frameHeader = 7
	maxFrame    = 1<<24 - 1
	// worthCompressing is MySQL's limit below which frames are sent as they are.
	worthCompressing = 50
)

type algorithm uint8

const (
	noCompression algorithm = iota
	zlibCompression
	zstdCompression
)

// frames is a stream under compression. The reading and the writing half belong to one
// task.
type frames struct {
	rw        io.ReadWriter
	algorithm algorithm
	level     int
	seq       uint8 // of the next frame, either way

	header [frameHeader]byte
	// waits is as of packetReader: the rest of a frame is waited for.
	waits func(bool)

	plain []byte // decompressed and not read yet
	in    []byte // frame as received
	store []byte // memory of plain
	out   []byte

	// hold accounts for what has come of long frames: a client may send many megabytes in one after a statement that takes long. A
	// header that promises much costs nothing. came is what the present frame takes, and held what of it is accounted for. nil: nobody does.
	hold       func(delta int64) error
	came, held int64
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.plain) == 0 {
		if f.plain = nil; cap(f.store) > maxBuffer {
			f.store = nil
		}
		if cap(f.in) > maxBuffer {
			f.in = nil
		}
		f.keep(0)
		if err := f.frame(); err != nil {
			f.keep(0)
			return 0, err
		}
	}
	n := copy(p, f.plain)
	f.plain = f.plain[n:]
	return n, nil
}

// frame receives one frame.
func (f *frames) frame() error {
	h := f.header[:]
	n, err := f.rw.Read(h)
	if err != nil && n == 0 {
		return err
	}
	rest := restReader{f}
	if _, err := io.ReadFull(rest, h[n:]); err != nil {
		return unexpected(err)
	}
	length := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
	raw := int(h[4]) | int(h[5])<<8 | int(h[6])<<16
	if h[3] != f.seq {
		return errOutOfOrder
	}
	f.seq++
	if f.in, err = readGrowing(rest, f.in[:0], length, f.count); err != nil {
		return err
	}
	if raw == 0 {
		f.plain = f.in
		return nil
	}
	if err := f.count(raw); err != nil {
		return err
	}
	f.store, err = f.decompress(f.store[:0], f.in, raw)
	if err != nil || len(f.store) != raw {
		return errMalformed
	}
	f.plain = f.store
	if cap(f.in) > keepBuffer {
		f.in = nil
		f.keep(int64(raw))
	}
	return nil
}

// count counts n bytes more of a frame, from maxBuffer on.
func (f *frames) count(n int) error {
	if f.came += int64(n); f.came <= maxBuffer || f.hold == nil {
		return nil
	}
	if err := f.hold(f.came - f.held); err != nil {
		return err
	}
	f.held = f.came
	return nil
}

// keep gives back what is accounted for beyond so many bytes of the frame.
func (f *frames) keep(n int64) {
	if f.came = n; f.held > n {
		_ = f.hold(n - f.held) // what is given back is never refused
		f.held = n
	}
}

// restReader reads the rest of a frame.
type restReader struct{ f *frames }

func (r restReader) Read(p []byte) (int, error) {
	if r.f.waits != nil {
		r.f.waits(true)
		defer r.f.waits(false)
	}
	return r.f.rw.Read(p)
}

// unexpected is the error of an end that comes too early.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readGrowing appends n bytes of r to dst, whose memory grows as they come. count, if there is one, is asked before it grows. Errors: of r,
// and of count.
func readGrowing(r io.Reader, dst []byte, n int, count func(n int) error) ([]byte, error) {
	for n > 0 {
		piece := min(n, max(readBuffer, len(dst)))
		if count != nil {
			if err := count(piece); err != nil {
				return dst[:0], err
			}
		}
		at := len(dst)
		dst = append(dst, make([]byte, piece)...)
		if _, err := io.ReadFull(r, dst[at:]); err != nil {
			return dst[:0], unexpected(err)
		}
		n -= piece
	}
	return dst, nil
}

// Write implements io.Writer: p goes out in frames.
func (f *frames) Write(p []byte) (int, error) {
	f.out = f.out[:0]
	total := len(p)
	for len(p) > 0 {
		if len(f.out) > 0 {
			if _, err := f.rw.Write(f.out); err != nil {
				return 0, err
			}
			f.out = f.out[:0]
		}
		piece := p[:min(len(p), maxFrame)]
		p = p[len(piece):]
		at := len(f.out)
		f.out = append(f.out, make([]byte, frameHeader)...)
		raw := 0
		if len(piece) >= worthCompressing {
			raw = len(piece)
			f.out = f.compress(f.out, piece)
		}
		if n := len(f.out) - at - frameHeader; raw == 0 || n >= raw {
			raw = 0
			f.out = append(f.out[:at+frameHeader], piece...)
		}
		n := len(f.out) - at - frameHeader
		copy(f.out[at:], []byte{byte(n), byte(n >> 8), byte(n >> 16), f.seq,
			byte(raw), byte(raw >> 8), byte(raw >> 16)})
		f.seq++
	}
	_, err := f.rw.Write(f.out)
	if cap(f.out) > keepBuffer {
		f.out = nil
	}
	if err != nil {
		return 0, err
	}
	return total, nil
}

var zlibWriters = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(io.Discard, zlib.DefaultCompression)
	return w
}}

var zlibReaders sync.Pool

// zstdCoders serve all connections: their methods may be called by many tasks.
var zstdCoders = sync.OnceValue(func() *struct {
	enc [2]*zstd.Encoder // fastest, default
	dec *zstd.Decoder
} {
	c := new(struct {
		enc [2]*zstd.Encoder
		dec *zstd.Decoder
	})
	// The options are constants: no error can come of them.
	c.enc[0], _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	c.enc[1], _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
	c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxFrame+1))
	return c
})

func (f *frames) compress(dst, src []byte) []byte {
	if f.algorithm == zstdCompression {
		c := zstdCoders()
		if f.level <= 3 {
			return c.enc[0].EncodeAll(src, dst)
		}
		return c.enc[1].EncodeAll(src, dst)
	}
	buf := bytes.NewBuffer(dst)
	w := zlibWriters.Get().(*zlib.Writer)
	w.Reset(buf)
	_, _ = w.Write(src) // into memory: it does not fail
	_ = w.Close()
	zlibWriters.Put(w)
	return buf.Bytes()
}

// decompress appends what src stands for to dst, and stops soon after raw bytes.
func (f *frames) decompress(dst, src []byte, raw int) ([]byte, error) {
	if f.algorithm == zstdCompression {
		var h zstd.Header
		if err := h.Decode(src); err != nil || h.HasFCS && h.FrameContentSize != uint64(raw) {
			return dst, errMalformed
		}
		return zstdCoders().dec.DecodeAll(src, dst)
	}
	r, _ := zlibReaders.Get().(io.ReadCloser)
	var err error
	if r == nil {
		r, err = zlib.NewReader(bytes.NewReader(src))
	} else {
		err = r.(zlib.Resetter).Reset(bytes.NewReader(src), nil)
	}
	if err != nil {
		return dst, err
	}
	defer zlibReaders.Put(r)
	dst, err = readGrowing(r, dst, raw, nil)
	if err != nil {
		return dst, err
	}
	var one [1]byte
	if n, _ := r.Read(one[:]); n > 0 {
		return dst, errMalformed
	}
	return dst, nil
}
