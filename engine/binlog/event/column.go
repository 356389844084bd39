package event

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// MySQL's column types as table maps name them.
const (
	mysqlTiny       = 1
	mysqlShort      = 2
	mysqlLong       = 3
	mysqlFloat      = 4
	mysqlDouble     = 5
	mysqlLongLong   = 8
	mysqlInt24      = 9
	mysqlDate       = 10
	mysqlYear       = 13
	mysqlVarchar    = 15
	mysqlBit        = 16
	mysqlTimestamp2 = 17
	mysqlDateTime2  = 18
	mysqlTime2      = 19
	mysqlJSON       = 245
	mysqlNewDecimal = 246
	mysqlEnum       = 247
	mysqlSet        = 248
	mysqlBlob       = 252
	mysqlString     = 254
)

// form is how a column's values are written in rows.
type form uint8

const (
	formInt    form = iota // size bytes, least first
	formUint               // the same; ENUM and SET too
	formFloat              // IEEE bits, least byte first
	formDouble             // the same
	formDate               // year*512 + month*32 + day, 3 bytes, least first
	formStored             // as rows of the engine keep it, which is MySQL's form
	formBytes              // length in size bytes, bytes
	formJSON               // the same; the engine's documents are MySQL's binary JSON
)

// column is one column of a table's events.
type column struct {
	position int // in record.Table.Columns
	t        *types.Type
	name     string
	limit    uint64 // of formBytes and formJSON: the greatest length; of ENUM and SET: the greatest number
	code     uint8
	form     form
	size     uint8 // of the value, or of its length
	metaSize uint8
	meta     [2]byte
	hidden   bool // or invisible
	long     bool // left out of noblob images
}

// newColumn works out how a type is written.
func newColumn(t *types.Type) (column, error) {
	c := column{t: t, long: t.IsLong()}
	fixed, _ := types.FixedSize(t)
	c.size = uint8(fixed)
	switch t.Kind {
	case types.KindTinyInt, types.KindSmallInt, types.KindMediumInt, types.KindInt, types.KindBigInt:
		c.code = [...]uint8{mysqlTiny, mysqlShort, mysqlInt24, mysqlLong, mysqlLongLong}[t.Kind-types.KindTinyInt]
		if t.Unsigned {
			c.form = formUint
			c.limit = math.MaxUint64
		}
	case types.KindDecimal:
		c.code, c.form = mysqlNewDecimal, formStored
		c.setMeta(t.Precision, t.Scale)
	case types.KindFloat:
		c.code, c.form = mysqlFloat, formFloat
		c.setMeta(c.size)
	case types.KindDouble:
		c.code, c.form = mysqlDouble, formDouble
		c.setMeta(c.size)
	case types.KindBit:
		c.code, c.form = mysqlBit, formStored
		c.setMeta(uint8(t.Length%8), uint8(t.Length/8))
	case types.KindDate:
		c.code, c.form = mysqlDate, formDate
	case types.KindYear:
		c.code, c.form = mysqlYear, formStored
	case types.KindTime, types.KindDateTime, types.KindTimestamp:
		c.code = [...]uint8{mysqlTime2, mysqlDateTime2, mysqlTimestamp2}[t.Kind-types.KindTime]
		c.form = formStored
		c.setMeta(t.FSP)
	case types.KindEnum:
		c.code, c.form, c.limit = mysqlString, formUint, uint64(len(t.Members))
		c.setMeta(mysqlEnum, c.size)
	case types.KindSet:
		c.code, c.form, c.limit = mysqlString, formUint, uint64(1)<<len(t.Members)-1
		c.setMeta(mysqlSet, c.size)
	default:
		return c.string()
	}
	return c, nil
}

// string completes newColumn for strings and JSON.
func (c column) string() (column, error) {
	limit := uint64(c.t.MaxBytes())
	c.form, c.limit, c.size = formBytes, limit, lengthSize(limit)
	switch k := c.t.Kind; {
	case k == types.KindChar || k == types.KindBinary:
		// Lengths have up to ten bits; the upper two hide, inverted, in the type.
		c.code = mysqlString
		c.setMeta(mysqlString^uint8(limit>>4&0x30), uint8(limit))
	case (k == types.KindVarChar || k == types.KindVarBinary) && limit <= math.MaxUint16:
		c.code = mysqlVarchar
		c.setMeta(uint8(limit), uint8(limit>>8))
	case k == types.KindVarChar:
		// Longer than any of MySQL's: it would have made it a MEDIUMTEXT.
		c.code = mysqlBlob
		c.setMeta(c.size)
	case c.t.IsText() || c.t.IsBlob():
		c.code = mysqlBlob
		c.setMeta(c.size)
	case k == types.KindJSON:
		c.code, c.form = mysqlJSON, formJSON
		c.setMeta(c.size)
	default:
		return c, fmt.Errorf("binlog event: no form for type %s", k)
	}
	return c, nil
}

func (c *column) setMeta(meta ...uint8) { c.metaSize = uint8(copy(c.meta[:], meta)) }

// lengthSize is how many bytes the length of a string takes that may have limit bytes.
func lengthSize(limit uint64) uint8 {
	size := uint8(1)
	for limit > 255 {
		limit >>= 8
		size++
	}
	return size
}

// append appends a value that is not NULL.
func (c *column) append(dst []byte, v types.Value) ([]byte, error) {
	switch c.form {
	case formInt, formUint:
		return appendLE(dst, v.Uint(), int(c.size)), nil
	case formFloat:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v.Float())), nil
	case formDouble:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Double())), nil
	case formDate:
		year, month, day := v.DateTime().Date()
		return appendLE(dst, uint64(year<<9|month<<5|day), 3), nil
	case formStored:
		return types.AppendStored(dst, v, c.t), nil
	}
	s := v.Bytes()
	if uint64(len(s)) > c.limit {
		return dst, fmt.Errorf("binlog event: value of %d bytes for column %s, which takes %d", len(s), c.name, c.limit)
	}
	if len(dst)+len(s) > MaxEvent {
		return dst, ErrTooLarge
	}
	return append(appendLE(dst, uint64(len(s)), int(c.size)), s...), nil
}

// cut reads a value from the start of b.
func (c *column) cut(b []byte) (v types.Value, rest []byte, err error) {
	n := int(c.size)
	if len(b) < n {
		return v, nil, c.corrupt("is cut off")
	}
	switch c.form {
	case formInt:
		shift := 64 - 8*n
		return types.NewInt(int64(readLE(b[:n])) << shift >> shift), b[n:], nil
	case formUint:
		u := readLE(b[:n])
		if u > c.limit {
			return v, nil, c.corrupt("is out of range")
		}
		return types.NewUint(u), b[n:], nil
	case formFloat:
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		if f-f != 0 {
			return v, nil, c.corrupt("is not a number")
		}
		return types.NewFloat(f), b[n:], nil
	case formDouble:
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if f-f != 0 {
			return v, nil, c.corrupt("is not a number")
		}
		return types.NewDouble(f), b[n:], nil
	case formDate:
		u := int(readLE(b[:n]))
		year, month, day := u>>9, u>>5&15, u&31
		if year > 9999 || month > 12 {
			return v, nil, c.corrupt("is out of range")
		}
		return types.NewDate(types.MakeDateTime(year, month, day, 0, 0, 0, 0)), b[n:], nil
	case formStored:
		v, err = types.DecodeStored(b[:n:n], c.t)
		if err != nil {
			return v, nil, c.corrupt("is malformed")
		}
		return v, b[n:], nil
	}
	return c.cutString(b)
}

func (c *column) cutString(b []byte) (v types.Value, rest []byte, err error) {
	length := readLE(b[:c.size])
	b = b[c.size:]
	switch {
	case length > c.limit:
		return v, nil, c.corrupt("is too long")
	case length > uint64(len(b)):
		return v, nil, c.corrupt("is cut off")
	}
	s, rest := b[:length:length], b[length:]
	switch {
	case c.form == formJSON:
		return types.NewJSON(s), rest, nil
	case c.t.Kind == types.KindBinary && length < c.limit:
		// MySQL leaves out trailing zeros. We write them.
		s = append(make([]byte, 0, c.limit), s...)
		s = s[:c.limit]
	}
	return types.NewBytes(s), rest, nil
}

func (c *column) corrupt(reason string) error {
	return corrupt("value of column %s (%v) %s", c.name, c.t.Kind, reason)
}

// Identical reports whether two values of one column have the same bytes, so that an
// update from one to the other changes nothing. Collations have no say.
func Identical(a, b types.Value) bool {
	if a.Class() != b.Class() {
		return false
	}
	switch a.Class() {
	case types.ClassNull:
		return true
	case types.ClassBytes, types.ClassJSON:
		return string(a.Bytes()) == string(b.Bytes())
	case types.ClassDecimal:
		return decimal.Compare(a.Decimal(), b.Decimal()) == 0 // of one scale once stored
	}
	return a.Uint() == b.Uint()
}
