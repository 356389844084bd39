package json

import "fmt"

// An Op is what a Diff does.
type Op uint8

// The operations, with the numbers of the binlog.
const (
	OpReplace Op = 0 // the value at Path by Value
	OpInsert  Op = 1 // Value at Path: a new member, or an element before the one there (at the end if beyond it)
	OpRemove  Op = 2 // the value at Path
)

var opNames = [...]string{"REPLACE", "INSERT", "REMOVE"}

func (op Op) String() string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return fmt.Sprintf("Op(%d)", uint8(op))
}

// A Diff is one logical change of a document, as partial update row events carry it.
type Diff struct {
	Op    Op
	Path  *Path  // names one place
	Value []byte // a document; nil for OpRemove
}

// AppendDiff appends the binlog form: operation, path with its length before it, and value with its length before it unless
// the operation is OpRemove. Lengths are MySQL's packed integers.
func AppendDiff(dst []byte, d Diff) []byte {
	path := d.Path.appendTo(nil)
	dst = append(dst, byte(d.Op))
	dst = append(appendPacked(dst, uint64(len(path))), path...)
	if d.Op == OpRemove {
		return dst
	}
	dst = appendPacked(dst, uint64(len(d.Value)))
	return append(dst, d.Value...)
}

// DecodeDiff decodes the first diff in b; Value aliases b. Errors are *types.CorruptError.
func DecodeDiff(b []byte) (d Diff, rest []byte, err error) {
	if len(b) == 0 || b[0] > byte(OpRemove) {
		return d, nil, corrupt("unknown operation of a diff")
	}
	d.Op = Op(b[0])
	path, b, ok := cutPacked(b[1:])
	if !ok {
		return d, nil, corrupt("path of a diff is cut off")
	}
	if d.Path, err = ParsePath(path); err != nil || d.Path.multi {
		return d, nil, corrupt("path %q of a diff", path)
	}
	if d.Op == OpRemove {
		return d, b, nil
	}
	if d.Value, b, ok = cutPacked(b); !ok {
		return d, nil, corrupt("value of a diff is cut off")
	}
	if len(d.Value) == 0 {
		return d, nil, corrupt("diff without a value")
	}
	if err := Validate(d.Value); err != nil {
		return d, nil, err
	}
	return d, b, nil
}

// appendPacked appends MySQL's packed integer: one byte below 251, else a marker and 2, 3 or 8 bytes.
func appendPacked(dst []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(dst, byte(n))
	case n < 1<<16:
		return le.AppendUint16(append(dst, 252), uint16(n))
	case n < 1<<24:
		return append(dst, 253, byte(n), byte(n>>8), byte(n>>16))
	}
	return le.AppendUint64(append(dst, 254), n)
}

// cutPacked cuts off bytes that follow their length.
func cutPacked(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] == 251 || b[0] == 255 {
		return nil, nil, false
	}
	var n uint64
	width := 0
	switch b[0] {
	case 252:
		width = 2
	case 253:
		width = 3
	case 254:
		width = 8
	default:
		n = uint64(b[0])
	}
	if b = b[1:]; len(b) < width {
		return nil, nil, false
	}
	for i := range width {
		n |= uint64(b[i]) << (8 * i)
	}
	if b = b[width:]; n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}
