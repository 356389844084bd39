package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// boolType is the type of truth values.
var boolType = types.Type{Kind: types.KindBigInt, Length: 1}

// maxText is the length of text whose limit is not known.
const maxText = 1<<32 - 1

// isString reports whether values are ClassBytes.
func isString(t *types.Type) bool { return t.IsText() || t.IsBlob() }

// isNumber reports whether values are numbers in any context; BIT and YEAR are, the
// members of ENUM and SET are text first.
func isNumber(t *types.Type) bool {
	return t.Kind >= types.KindTinyInt && t.Kind <= types.KindBit || t.Kind == types.KindYear
}

// textType is the type of text of at most length characters, or of bytes if the
// collation is binary.
func textType(length uint64, id types.CollationID) types.Type {
	t := types.Type{Kind: types.KindVarChar, Length: uint32(min(length, types.MaxVarLength)), Collation: id}
	width := uint64(4)
	if c := types.CollationByID(id); c != nil {
		width = uint64(c.Charset().MaxLen())
	}
	size := length * width
	binary := id == types.CollationBinary
	switch {
	case size <= types.MaxVarLength && binary:
		t.Kind = types.KindVarBinary
	case size <= types.MaxVarLength:
	case size < 1<<24 && binary:
		t.Kind, t.Length = types.KindMediumBlob, 0
	case size < 1<<24:
		t.Kind, t.Length = types.KindMediumText, 0
	case binary:
		t.Kind, t.Length = types.KindLongBlob, 0
	default:
		t.Kind, t.Length = types.KindLongText, 0
	}
	return t
}

// lengthOf bounds the number of characters of a node's values as text.
func lengthOf(n Node) uint64 {
	t := n.Type()
	if v, ok := Literal(n); ok && !v.IsNull() && !t.IsLong() {
		if isString(t) {
			return min(textLength(t), uint64(t.Charset().Count(v.Bytes())))
		}
		return uint64(len(types.AppendText(nil, v, t, nil)))
	}
	return textLength(t)
}

// textLength bounds the number of characters of a value of type t as text.
func textLength(t *types.Type) uint64 {
	switch t.Kind {
	case types.KindNull:
		return 0
	case types.KindTinyInt:
		return 4
	case types.KindSmallInt:
		return 6
	case types.KindMediumInt:
		return 9
	case types.KindInt:
		return 11
	case types.KindBigInt:
		if t.Length > 0 {
			return uint64(max(t.Length, 1)) + 1
		}
		return 20
	case types.KindDecimal:
		return uint64(t.Precision) + 2
	case types.KindFloat:
		return 12
	case types.KindDouble:
		return 22
	case types.KindBit:
		return uint64(t.Length+7) / 8
	case types.KindDate:
		return 10
	case types.KindTime:
		return 10 + fspLength(t)
	case types.KindDateTime, types.KindTimestamp:
		return 19 + fspLength(t)
	case types.KindYear:
		return 4
	case types.KindChar, types.KindVarChar, types.KindBinary, types.KindVarBinary:
		return uint64(t.Length)
	case types.KindEnum, types.KindSet:
		return membersLength(t)
	case types.KindTinyText, types.KindTinyBlob:
		return 1<<8 - 1
	case types.KindText, types.KindBlob:
		return 1<<16 - 1
	case types.KindMediumText, types.KindMediumBlob:
		return 1<<24 - 1
	}
	return maxText
}

func fspLength(t *types.Type) uint64 {
	if t.FSP == 0 {
		return 0
	}
	return uint64(t.FSP) + 1
}

func membersLength(t *types.Type) uint64 {
	var longest, all uint64
	for _, m := range t.Members {
		n := uint64(t.Charset().Count([]byte(m)))
		longest = max(longest, n)
		all += n + 1
	}
	if t.Kind == types.KindEnum || all == 0 {
		return longest
	}
	return all - 1
}

// ResultOf is a function whose result is always of type t.
func ResultOf(t types.Type) func(*Binder, *Call) (types.Type, error) {
	return func(*Binder, *Call) (types.Type, error) { return t, nil }
}

// Results of one type each.
var (
	ResultInt    = ResultOf(types.Type{Kind: types.KindBigInt})
	ResultUint   = ResultOf(types.Type{Kind: types.KindBigInt, Unsigned: true})
	ResultBool   = ResultOf(boolType)
	ResultDouble = ResultOf(types.Type{Kind: types.KindDouble})
	ResultDate   = ResultOf(types.Type{Kind: types.KindDate})
	ResultJSON   = ResultOf(types.Type{Kind: types.KindJSON, Collation: types.CollationBinary})
)

// ResultDateTime is a DATETIME(fsp).
func ResultDateTime(fsp uint8) func(*Binder, *Call) (types.Type, error) {
	return ResultOf(types.Type{Kind: types.KindDateTime, FSP: fsp})
}

// ResultTime is a TIME(fsp).
func ResultTime(fsp uint8) func(*Binder, *Call) (types.Type, error) {
	return ResultOf(types.Type{Kind: types.KindTime, FSP: fsp})
}

// ResultText is text of at most length characters in the collation of the ArgText
// arguments: bytes if that is binary.
func ResultText(length uint64) func(*Binder, *Call) (types.Type, error) {
	return func(_ *Binder, c *Call) (types.Type, error) { return textType(length, c.Collation), nil }
}

// ResultTextSum is ResultText with the lengths of all ArgText arguments together.
func ResultTextSum(_ *Binder, c *Call) (types.Type, error) {
	var n uint64
	for i, a := range c.Args {
		if c.arg(i) == ArgText {
			n += lengthOf(a)
		}
	}
	return textType(n, c.Collation), nil
}

// ResultTextLike is ResultText with the length of argument i.
func ResultTextLike(i int) func(*Binder, *Call) (types.Type, error) {
	return func(_ *Binder, c *Call) (types.Type, error) {
		return textType(lengthOf(c.Args[i]), c.Collation), nil
	}
}

// ResultASCII is text of at most length ASCII characters, in the connection's
// collation: hexadecimal digits, names, formatted numbers.
func ResultASCII(length uint64) func(*Binder, *Call) (types.Type, error) {
	return func(b *Binder, _ *Call) (types.Type, error) { return textType(length, b.collation()), nil }
}

// ResultUTF8 is text in utf8mb4 that does not depend on the connection.
func ResultUTF8(length uint64) func(*Binder, *Call) (types.Type, error) {
	return ResultOf(textType(length, types.CollationUTF8MB40900AI))
}

// resultJSONText is text that tells of a document: it compares character by character.
func resultJSONText(length uint64) func(*Binder, *Call) (types.Type, error) {
	return ResultOf(textType(length, types.CollationUTF8MB4Bin))
}

// ResultBytes is a binary string of at most length bytes.
func ResultBytes(length uint64) func(*Binder, *Call) (types.Type, error) {
	return ResultOf(textType(length, types.CollationBinary))
}

// ResultLike is the type of argument i.
func ResultLike(i int) func(*Binder, *Call) (types.Type, error) {
	return func(_ *Binder, c *Call) (types.Type, error) { return *c.Args[i].Type(), nil }
}

func boolValue(b bool) types.Value {
	if b {
		return types.NewInt(1)
	}
	return types.NewInt(0)
}
