package expr

import (
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// byteBitsMax is the longest binary string that BIT_AND, BIT_OR and BIT_XOR take.
const byteBitsMax = 511

var errBitSizes = sqlerr.New(sqlerr.InvalidBitwiseOperandsSize)

// prepareByteBits: binary strings give one of their length.
func (a *Aggregate) prepareByteBits(arg Node) error {
	n := arg.Type().MaxBytes()
	if n > byteBitsMax {
		return sqlerr.New(sqlerr.InvalidBitwiseAggregateOperandsSize, byteBitsMax)
	}
	a.t, a.make = textType(uint64(n), types.CollationBinary), newByteBits
	a.t.NotNull = true
	return nil
}

// byteBits is BIT_AND, BIT_OR and BIT_XOR of binary strings.
type byteBits struct {
	op      func(a, b byte) byte
	neutral byte
	length  int // of the result of a group without values
	bits    [][]byte
	bytes   int64
}

func newByteBits(a *Aggregate) States {
	s := &byteBits{length: int(a.args[0].Type().MaxBytes())}
	switch a.name {
	case "bit_and":
		s.op, s.neutral = func(a, b byte) byte { return a & b }, 0xff
	case "bit_or":
		s.op = func(a, b byte) byte { return a | b }
	default:
		s.op = func(a, b byte) byte { return a ^ b }
	}
	return s
}

func (s *byteBits) Grow(n int)         { s.bits = extendStates(s.bits, n) }
func (s *byteBits) MemoryBytes() int64 { return int64(24*cap(s.bits)) + s.bytes }

func (s *byteBits) Reset() {
	clear(s.bits)
	s.bits, s.bytes = s.bits[:0], 0
}

func (s *byteBits) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	for i := range n {
		if in[0].IsNull(i) {
			continue
		}
		if err := s.add(groupAt(groups, i), in[0].BytesAt(i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *byteBits) add(g uint32, b []byte) error {
	bits := s.bits[g]
	if bits == nil {
		s.bits[g] = append(make([]byte, 0, max(len(b), 1)), b...) // never nil
		s.bytes += int64(len(b))
		return nil
	}
	if len(bits) != len(b) {
		return errBitSizes
	}
	for i, c := range b {
		bits[i] = s.op(bits[i], c)
	}
	return nil
}

func (s *byteBits) Merge(_ *Context, groups []uint32, other States) error {
	for i, b := range other.(*byteBits).bits {
		if b == nil {
			continue
		}
		if err := s.add(groups[i], b); err != nil {
			return err
		}
	}
	return nil
}

func (s *byteBits) Append(x *Context, out *types.Vector, from, to int) error {
	for _, b := range s.bits[from:to] {
		if b == nil {
			b = x.Scratch()
			for range s.length {
				b = append(b, s.neutral)
			}
			b = x.Keep(b)
		}
		out.AppendBytes(b)
	}
	return nil
}
