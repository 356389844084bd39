package types

import "encoding/binary"

// The catalogue's form of a type:
//
//	version 1 | kind | flags | precision | scale | fsp
//	uvarint length | uvarint collation | uvarint number of members
//	each member: uvarint length, bytes
//
// It is self-delimiting, and each type has exactly one form.
const typeVersion = 1

const (
	typeUnsigned = 1 << iota
	typeZeroFill
	typeNotNull
	typeFlags = 1<<iota - 1
)

// AppendType appends the catalogue's form of t.
func AppendType(dst []byte, t *Type) []byte {
	flags := byte(0)
	if t.Unsigned {
		flags |= typeUnsigned
	}
	if t.ZeroFill {
		flags |= typeZeroFill
	}
	if t.NotNull {
		flags |= typeNotNull
	}
	dst = append(dst, typeVersion, byte(t.Kind), flags, t.Precision, t.Scale, t.FSP)
	dst = binary.AppendUvarint(dst, uint64(t.Length))
	dst = binary.AppendUvarint(dst, uint64(t.Collation))
	dst = binary.AppendUvarint(dst, uint64(len(t.Members)))
	for _, m := range t.Members {
		dst = binary.AppendUvarint(dst, uint64(len(m)))
		dst = append(dst, m...)
	}
	return dst
}

// DecodeType reads the type that b begins with and returns the rest. The type
// passes [Type.Validate]. The error is a [CorruptError].
func DecodeType(b []byte) (t Type, rest []byte, err error) {
	bad := func(reason string) (Type, []byte, error) {
		return Type{}, b, &CorruptError{What: "type", Reason: reason}
	}
	if len(b) < 6 {
		return bad("too short")
	}
	if b[0] != typeVersion {
		return bad("unknown version")
	}
	flags := b[2]
	if flags&^typeFlags != 0 {
		return bad("unknown flags")
	}
	t = Type{Kind: Kind(b[1]), Unsigned: flags&typeUnsigned != 0, ZeroFill: flags&typeZeroFill != 0,
		NotNull: flags&typeNotNull != 0, Precision: b[3], Scale: b[4], FSP: b[5]}
	d := typeDecoder{b: b[6:]}
	t.Length = uint32(d.uvarint(1<<32 - 1))
	t.Collation = CollationID(d.uvarint(maxCollations - 1))
	if n := d.uvarint(MaxEnumMembers); n > 0 && n <= uint64(len(d.b)) {
		t.Members = make([]string, n)
		for i := range t.Members {
			t.Members[i] = d.string()
		}
	} else if n > 0 {
		d.bad = true
	}
	if d.bad {
		return bad("malformed length or text")
	}
	if err := t.Validate(); err != nil {
		return bad(err.Error())
	}
	return t, d.b, nil
}

// typeDecoder reads until the first error, which sticks.
type typeDecoder struct {
	b   []byte
	bad bool
}

func (d *typeDecoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	shortest := n == 1 || n > 1 && d.b[n-1] != 0
	if n <= 0 || v > limit || !shortest {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *typeDecoder) string() string {
	n := d.uvarint(MaxMemberBytes)
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
