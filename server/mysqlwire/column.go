package mysqlwire

import (
	"encoding/binary"
	"math"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/types"
)

// fieldType is the protocol's number of a type.
type fieldType byte

const (
	fieldTiny       fieldType = 0x01
	fieldShort      fieldType = 0x02
	fieldLong       fieldType = 0x03
	fieldFloat      fieldType = 0x04
	fieldDouble     fieldType = 0x05
	fieldNull       fieldType = 0x06
	fieldTimestamp  fieldType = 0x07
	fieldLongLong   fieldType = 0x08
	fieldInt24      fieldType = 0x09
	fieldDate       fieldType = 0x0a
	fieldTime       fieldType = 0x0b
	fieldDateTime   fieldType = 0x0c
	fieldYear       fieldType = 0x0d
	fieldVarChar    fieldType = 0x0f
	fieldBit        fieldType = 0x10
	fieldJSON       fieldType = 0xf5
	fieldNewDecimal fieldType = 0xf6
	fieldEnum       fieldType = 0xf7
	fieldSet        fieldType = 0xf8
	fieldTinyBlob   fieldType = 0xf9
	fieldMediumBlob fieldType = 0xfa
	fieldLongBlob   fieldType = 0xfb
	fieldBlob       fieldType = 0xfc
	fieldVarString  fieldType = 0xfd
	fieldString     fieldType = 0xfe
)

// Flags of a column definition.
const (
	flagNotNull       = 1
	flagPrimaryKey    = 2
	flagUniqueKey     = 4
	flagMultipleKey   = 8
	flagBlob          = 16
	flagUnsigned      = 32
	flagZeroFill      = 64
	flagBinary        = 128
	flagEnum          = 256
	flagAutoIncrement = 512
	flagTimestamp     = 1024
	flagSet           = 2048
	flagNoDefault     = 4096
	flagOnUpdateNow   = 8192
)

// fieldTypes says by which type of the protocol a kind travels.
var fieldTypes = [...]fieldType{
	types.KindNull:       fieldNull,
	types.KindTinyInt:    fieldTiny,
	types.KindSmallInt:   fieldShort,
	types.KindMediumInt:  fieldInt24,
	types.KindInt:        fieldLong,
	types.KindBigInt:     fieldLongLong,
	types.KindDecimal:    fieldNewDecimal,
	types.KindFloat:      fieldFloat,
	types.KindDouble:     fieldDouble,
	types.KindBit:        fieldBit,
	types.KindDate:       fieldDate,
	types.KindTime:       fieldTime,
	types.KindDateTime:   fieldDateTime,
	types.KindTimestamp:  fieldTimestamp,
	types.KindYear:       fieldYear,
	types.KindChar:       fieldString,
	types.KindVarChar:    fieldVarString,
	types.KindTinyText:   fieldBlob,
	types.KindText:       fieldBlob,
	types.KindMediumText: fieldBlob,
	types.KindLongText:   fieldBlob,
	types.KindBinary:     fieldString,
	types.KindVarBinary:  fieldVarString,
	types.KindTinyBlob:   fieldBlob,
	types.KindBlob:       fieldBlob,
	types.KindMediumBlob: fieldBlob,
	types.KindLongBlob:   fieldBlob,
	types.KindEnum:       fieldString,
	types.KindSet:        fieldString,
	types.KindJSON:       fieldJSON,
}

// isCharacters reports whether values are text in a character set.
func isCharacters(t *types.Type) bool {
	return t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet
}

// appendColumn appends a column definition. results is the collation that text is
// converted to, or 0.
func appendColumn(b []byte, c *session.ResultColumn, results types.CollationID) []byte {
	b = append(b, 3, 'd', 'e', 'f')
	for _, name := range [...]string{c.Schema, c.Table, c.OrgTable, c.Name, c.OrgName} {
		b = appendString(b, nameIn(results, cutName(name)))
	}
	b = append(b, 0x0c)
	collation := types.CollationBinary
	if isCharacters(c.Type) {
		if collation = c.Type.Collation; results != 0 && collation != types.CollationBinary {
			collation = results
		}
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(collation))
	length := columnLength(c.Type, collation)
	if c.OrgName == "" {
		length = expressionLength(c.Type, length)
	}
	b = binary.LittleEndian.AppendUint32(b, length)
	b = append(b, byte(fieldTypes[c.Type.Kind]))
	b = binary.LittleEndian.AppendUint16(b, columnFlags(c))
	decimals := columnDecimals(c.Type)
	if c.OrgName == "" && (isString(c.Type) || c.Type.Kind == types.KindJSON) {
		decimals = 31 // of an expression
	}
	return append(b, decimals, 0, 0)
}

func isString(t *types.Type) bool { return t.IsText() || t.IsBlob() }

// maxColumnName is the length to which the name of a column of a result is cut, as MySQL does: that of an expression is its text.
const maxColumnName = 256

// cutName is the part of a name that is told: each of thousands of columns tells that of its table, too.
func cutName(name string) string { return types.CutUTF8(name, maxColumnName) }

// nameIn is a name in the character set of results.
func nameIn(results types.CollationID, name string) string {
	c := types.CollationByID(results)
	if c == nil || c.Charset().IsUTF8() || c.Charset() == types.CharsetBinary {
		return name
	}
	out, _ := types.Convert(nil, []byte(name), types.CharsetUTF8MB4, c.Charset())
	return string(out)
}

// columnLength is how long the text of a value may be, in bytes.
func columnLength(t *types.Type, collation types.CollationID) uint32 {
	signed := uint32(1)
	if t.Unsigned {
		signed = 0
	}
	digits := func(n uint32) uint32 {
		if t.Length > 0 {
			return t.Length
		}
		return n + signed
	}
	fraction := uint32(0)
	if t.FSP > 0 {
		fraction = 1 + uint32(t.FSP)
	}
	switch t.Kind {
	case types.KindTinyInt:
		return digits(3)
	case types.KindSmallInt:
		return digits(5)
	case types.KindMediumInt:
		return digits(8)
	case types.KindInt:
		return digits(10)
	case types.KindBigInt:
		return max(digits(19), t.Length)
	case types.KindDecimal:
		n := uint32(t.Precision) + signed
		if t.Scale > 0 {
			n++
		}
		return n
	case types.KindFloat:
		return 12
	case types.KindDouble:
		return 22
	case types.KindBit:
		return t.Length
	case types.KindDate, types.KindTime:
		return 10 + fraction
	case types.KindDateTime, types.KindTimestamp:
		return 19 + fraction
	case types.KindYear:
		return 4
	case types.KindJSON:
		return math.MaxUint32
	case types.KindEnum, types.KindSet:
		return membersLength(t, collation)
	}
	if !t.IsText() {
		return uint32(min(t.MaxBytes(), math.MaxUint32))
	}
	width := int64(charWidth(collation))
	if t.IsLong() {
		return uint32(min(t.MaxBytes()*width, math.MaxUint32))
	}
	return uint32(min(int64(t.Length)*width, math.MaxUint32))
}

// expressionLength is the length of an expression's values, where it is not that of a column of the type.
func expressionLength(t *types.Type, length uint32) uint32 {
	switch {
	case t.Kind == types.KindBigInt && t.Length == 0:
		return 21
	case t.Kind == types.KindDouble && t.Precision == 0, t.Kind == types.KindFloat && t.Precision == 0:
		return 23
	}
	return length
}

func charWidth(id types.CollationID) int {
	if c := types.CollationByID(id); c != nil {
		return c.Charset().MaxLen()
	}
	return 1
}

func membersLength(t *types.Type, collation types.CollationID) uint32 {
	longest, all := 0, 0
	for _, m := range t.Members {
		n := t.Charset().Count([]byte(m))
		longest = max(longest, n)
		all += n + 1
	}
	if t.Kind == types.KindSet {
		longest = max(0, all-1)
	}
	return uint32(longest * charWidth(collation))
}

func columnFlags(c *session.ResultColumn) uint16 {
	var f uint16
	t := c.Type
	add := func(cond bool, flag uint16) {
		if cond {
			f |= flag
		}
	}
	add(t.NotNull, flagNotNull)
	add(c.Flags&session.PrimaryKey != 0, flagPrimaryKey)
	add(c.Flags&session.UniqueKey != 0, flagUniqueKey)
	add(c.Flags&session.MultipleKey != 0, flagMultipleKey)
	add(t.IsLong(), flagBlob)
	add(t.Unsigned || t.Kind == types.KindYear || t.Kind == types.KindBit, flagUnsigned)
	add(t.ZeroFill || t.Kind == types.KindYear, flagZeroFill)
	add(t.IsBlob() || t.IsTemporal() || t.Kind == types.KindJSON, flagBinary)
	add(c.OrgName == "" && !isString(t), flagBinary) // of an expression
	add(isCharacters(t) && (t.Collation == types.CollationUTF8MB40900B || t.Collation == t.Charset().BinaryCollation()), flagBinary)
	add(t.Kind == types.KindEnum, flagEnum)
	add(t.Kind == types.KindSet, flagSet)
	add(t.Kind == types.KindTimestamp, flagTimestamp)
	add(c.Flags&session.AutoIncrement != 0, flagAutoIncrement)
	add(c.Flags&session.NoDefault != 0, flagNoDefault)
	add(c.Flags&session.OnUpdateNow != 0, flagOnUpdateNow)
	return f
}

// columnDecimals is the number of digits after the point; 31 says that it varies.
func columnDecimals(t *types.Type) byte {
	switch t.Kind {
	case types.KindDecimal:
		return t.Scale
	case types.KindFloat, types.KindDouble:
		if t.Precision == 0 {
			return 31
		}
		return t.Scale
	case types.KindTime, types.KindDateTime, types.KindTimestamp:
		return t.FSP
	}
	return 0
}
