package temptable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/types"
)

// ErrCorrupt: a temporary file does not hold what was written to it.
var ErrCorrupt = errors.New("temptable: temporary file is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A block of a temporary file is a batch of rows:
//
//	offset size field
//	0      4    CRC32C of the rest, begun with the block's offset in the file
//	4      4    number of rows
//	8           columns, see appendVector

const blockHeader = 8

// Extent is where a block of rows lies in its file.
type Extent struct {
	at   int64
	size uint32
}

// Spill is a temporary file of blocks of rows.
type Spill struct {
	cfg *Config
	f   file.File
	end int64
	buf []byte
	mem charge // of buf
}

// NewSpill opens a temporary file. Without a file system the error is 3170.
func NewSpill(cfg *Config, what string) (*Spill, error) {
	if cfg.FS == nil {
		return nil, cfg.Memory.Exceeded(what)
	}
	if err := cfg.FS.MkdirAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("temptable: %w", err)
	}
	name := path.Join(cfg.Dir, fmt.Sprintf("sql-%016x", cfg.Env.Uint64()))
	f, err := cfg.FS.Open(name, file.OpenOptions{Exclusive: true})
	if err != nil {
		return nil, fmt.Errorf("temptable: %w", err)
	}
	if err := cfg.FS.Remove(name); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("temptable: %w", err)
	}
	return &Spill{cfg: cfg, f: f, mem: charge{a: cfg.Memory}}, nil
}

// Close gives the file back. It may be called more than once, and on nil.
func (s *Spill) Close() error {
	if s == nil || s.f == nil {
		return nil
	}
	f := s.f
	s.f, s.buf = nil, nil
	s.mem.set(0)
	err := f.Close()
	s.cfg.Disk.give(s.end)
	s.end = 0
	return err
}

// Write writes all rows of a batch as one block. Errors: 1114 (see [DiskShare]), file.ErrNoSpace and others of the file.
func (s *Spill) Write(b *types.Batch) (Extent, error) {
	buf := append(s.buf[:0], make([]byte, blockHeader)...)
	binary.LittleEndian.PutUint32(buf[4:], uint32(b.Len()))
	for c := range b.Vecs {
		buf = appendVector(buf, &b.Vecs[c])
	}
	binary.LittleEndian.PutUint32(buf, blockSum(s.end, buf[4:]))
	s.buf = buf
	s.mem.set(int64(cap(buf)))
	if err := s.cfg.Disk.take(int64(len(buf))); err != nil {
		return Extent{}, err
	}
	if _, err := s.f.WriteAt(buf, s.end); err != nil {
		s.cfg.Disk.give(int64(len(buf)))
		return Extent{}, fmt.Errorf("temptable: writing rows: %w", err)
	}
	x := Extent{s.end, uint32(len(buf))}
	s.end += int64(len(buf))
	s.cfg.Memory.spilled += int64(len(buf))
	return x, nil
}

// Read replaces the rows of a batch by those of a block, which has the same columns.
func (s *Spill) Read(x Extent, b *types.Batch) error {
	if cap(s.buf) < int(x.size) {
		s.buf = make([]byte, x.size)
		s.mem.set(int64(x.size))
	}
	buf := s.buf[:x.size]
	if _, err := s.f.ReadAt(buf, x.at); err != nil {
		return fmt.Errorf("temptable: reading rows: %w", err)
	}
	if len(buf) < blockHeader || binary.LittleEndian.Uint32(buf) != blockSum(x.at, buf[4:]) {
		return ErrCorrupt
	}
	n := int(binary.LittleEndian.Uint32(buf[4:]))
	rest := buf[blockHeader:]
	b.Reset()
	for c := range b.Vecs {
		var err error
		if rest, err = readVector(rest, &b.Vecs[c], n); err != nil {
			return err
		}
	}
	b.SetLen(n)
	return nil
}

func blockSum(at int64, b []byte) uint32 {
	var head [8]byte
	binary.LittleEndian.PutUint64(head[:], uint64(at))
	return crc32.Update(crc32.Update(0, castagnoli, head[:]), castagnoli, b)
}

// appendVector appends the values of a column: a byte that is 1 if there are NULLs,
// then their bitmap; then 8 bytes for each value of a fixed size, 4 bytes of length and
// the bytes for each other one (of wide decimals, their text).
func appendVector(dst []byte, v *types.Vector) []byte {
	if v.HasNulls() {
		dst = append(dst, 1)
		for _, w := range v.Nulls() {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	} else {
		dst = append(dst, 0)
	}
	switch kindOf(v.Type()) {
	case kindInt:
		for _, x := range v.Int64s() {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
		}
	case kindUint:
		for _, x := range v.Uint64s() {
			dst = binary.LittleEndian.AppendUint64(dst, x)
		}
	case kindFloat:
		for _, x := range v.Float64s() {
			dst = binary.LittleEndian.AppendUint64(dst, floatBits(x))
		}
	case kindDecimal:
		for i := range v.Decimals() {
			at := len(dst)
			dst = append(dst, 0, 0, 0, 0)
			if !v.IsNull(i) {
				dst = v.Decimals()[i].AppendText(dst)
			}
			binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		}
	case kindBytes, kindText, kindJSON:
		for i := range v.Len() {
			s := v.BytesAt(i)
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
			dst = append(dst, s...)
		}
	}
	return dst
}

// readVector is the inverse of appendVector for n values; it returns the rest.
func readVector(b []byte, v *types.Vector, n int) ([]byte, error) {
	if len(b) < 1 {
		return nil, ErrCorrupt
	}
	hasNulls := b[0] == 1
	b = b[1:]
	nulls := b
	if hasNulls {
		size := (n + 63) / 64 * 8
		if len(b) < size {
			return nil, ErrCorrupt
		}
		nulls, b = b[:size], b[size:]
	}
	isNull := func(i int) bool {
		return hasNulls && nulls[i>>3]>>(i&7)&1 != 0
	}
	kind := kindOf(v.Type())
	if kind == kindNull {
		for range n {
			v.AppendNull()
		}
		return b, nil
	}
	if !kind.fixed() {
		return readLong(b, v, n, kind, isNull)
	}
	if len(b) < 8*n {
		return nil, ErrCorrupt
	}
	v.Resize(n)
	switch kind {
	case kindInt:
		for i, dst := 0, v.Int64s(); i < n; i++ {
			dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	case kindUint:
		for i, dst := 0, v.Uint64s(); i < n; i++ {
			dst[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	case kindFloat:
		for i, dst := 0, v.Float64s(); i < n; i++ {
			dst[i] = bitsFloat(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	for i := 0; hasNulls && i < n; i++ {
		if isNull(i) {
			v.SetNull(i)
		}
	}
	return b[8*n:], nil
}

// readLong is readVector for values with a length.
func readLong(b []byte, v *types.Vector, n int, kind kind, isNull func(int) bool) ([]byte, error) {
	for i := range n {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
			return nil, ErrCorrupt
		}
		s := b[4 : 4+binary.LittleEndian.Uint32(b)]
		b = b[4+len(s):]
		switch {
		case isNull(i):
			v.AppendNull()
		case kind == kindDecimal:
			d, err := parseDecimal(s)
			if err != nil {
				return nil, err
			}
			v.AppendDecimal(d)
		default:
			v.AppendBytes(s)
		}
	}
	return b, nil
}
