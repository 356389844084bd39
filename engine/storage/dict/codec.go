package dict

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/triremedb/trireme/engine/storage/record"
)

// The catalogue's blobs begin with a version byte; numbers are shortest uvarints,
// strings and lists have their length before them. Each value has exactly one
// form, so that the same definition is the same bytes on all members.
const codecVersion = 1

var (
	errCodecVersion = errors.New("unknown version of the encoding")
	errCodecShort   = errors.New("encoding is cut short or malformed")
	errCodecTail    = errors.New("bytes behind the end of the encoding")
)

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// decoder reads until the first error, which sticks.
type decoder struct {
	b   []byte
	err error
}

func newDecoder(b []byte) *decoder {
	d := &decoder{b: b}
	switch {
	case len(b) == 0:
		d.err = errCodecShort
	case b[0] != codecVersion:
		d.err = errCodecVersion
	default:
		d.b = b[1:]
	}
	return d
}

func (d *decoder) uint(limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 1 && d.b[n-1] == 0 || v > limit {
		d.err = errCodecShort
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads the length of a list whose elements take at least one byte each.
func (d *decoder) count() int { return int(d.uint(uint64(len(d.b)))) }

func (d *decoder) bool() bool { return d.uint(1) == 1 }

func (d *decoder) string() string {
	n := d.count()
	if d.err != nil || n > len(d.b) {
		d.err = cmpErr(d.err, errCodecShort)
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errCodecTail
	}
	return d.err
}

// encodeOptions gives attributes their only form, sorted by name.
func encodeOptions(options map[string]string) []byte {
	names := make([]string, 0, len(options))
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	dst := binary.AppendUvarint([]byte{codecVersion}, uint64(len(names)))
	for _, name := range names {
		dst = appendString(appendString(dst, name), options[name])
	}
	return dst
}

func decodeOptions(b []byte) (map[string]string, error) {
	d := newDecoder(b)
	n := d.count()
	if n == 0 {
		return nil, d.end()
	}
	options := make(map[string]string)
	last := ""
	for i := 0; i < n && d.err == nil; i++ {
		name, value := d.string(), d.string()
		if i > 0 && name <= last {
			d.err = cmpErr(d.err, errCodecShort)
		}
		last = name
		options[name] = value
	}
	return options, d.end()
}

func encodeParts(parts []record.Part) []byte {
	dst := binary.AppendUvarint([]byte{codecVersion}, uint64(len(parts)))
	for _, p := range parts {
		dst = binary.AppendUvarint(dst, uint64(p.Column))
		dst = append(dst, boolByte(p.Desc))
		dst = binary.AppendUvarint(dst, uint64(p.Prefix))
	}
	return dst
}

func decodeParts(b []byte) ([]record.Part, error) {
	d := newDecoder(b)
	n := d.count()
	var parts []record.Part
	for i := 0; i < n && d.err == nil; i++ {
		parts = append(parts, record.Part{Column: uint32(d.uint(1<<32 - 1)), Desc: d.bool(), Prefix: uint32(d.uint(1<<32 - 1))})
	}
	return parts, d.end()
}

func encodeReference(fk *record.ForeignKey) []byte {
	dst := binary.AppendUvarint([]byte{codecVersion}, uint64(len(fk.Columns)))
	for _, c := range fk.Columns {
		dst = binary.AppendUvarint(dst, uint64(c))
	}
	dst = binary.AppendUvarint(dst, uint64(len(fk.RefColumns)))
	for _, name := range fk.RefColumns {
		dst = appendString(dst, name)
	}
	return dst
}

func decodeReference(b []byte, fk *record.ForeignKey) error {
	d := newDecoder(b)
	n := d.count()
	for i := 0; i < n && d.err == nil; i++ {
		fk.Columns = append(fk.Columns, uint32(d.uint(1<<32-1)))
	}
	n = d.count()
	for i := 0; i < n && d.err == nil; i++ {
		fk.RefColumns = append(fk.RefColumns, d.string())
	}
	return d.end()
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
