package provision

import (
	"encoding/binary"
	"errors"
)

// What is sent and stored is made of shortest uvarints, and of bytes with their length
// before them.

// ErrMalformed says that a message or a file of this package is not what it should be.
var ErrMalformed = errors.New("provision: malformed")

func appendUints(dst []byte, values ...uint64) []byte {
	for _, v := range values {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// decoder reads until the first error, which sticks. What it returns aliases b.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = ErrMalformed
	}
	d.b = nil
}

func (d *decoder) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if d.err != nil || n <= 0 || n > 1 && d.b[n-1] == 0 || v > limit {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint64() uint64 { return d.uint(^uint64(0)) }

func (d *decoder) bool() bool { return d.uint(1) == 1 }

func (d *decoder) take(n int) []byte {
	if d.err != nil || n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) bytes(limit int) []byte { return d.take(int(d.uint(uint64(limit)))) }

func (d *decoder) string(limit int) string { return string(d.bytes(limit)) }

// rest is everything that was not read.
func (d *decoder) rest() []byte {
	b := d.b
	d.b = nil
	return b
}

// end demands that everything was read.
func (d *decoder) end() error {
	if len(d.b) > 0 {
		d.fail()
	}
	return d.err
}
