package types

import (
	"fmt"
	"strconv"
)

// Kind is a column's SQL type. The numbers are stored in the catalogue.
type Kind uint8

// The kinds. New ones are added at the end.
const (
	KindNull Kind = iota // the type of a bare NULL; no column has it
	KindTinyInt
	KindSmallInt
	KindMediumInt
	KindInt
	KindBigInt
	KindDecimal
	KindFloat
	KindDouble
	KindBit
	KindDate
	KindTime
	KindDateTime
	KindTimestamp
	KindYear
	KindChar
	KindVarChar
	KindTinyText
	KindText
	KindMediumText
	KindLongText
	KindBinary
	KindVarBinary
	KindTinyBlob
	KindBlob
	KindMediumBlob
	KindLongBlob
	KindEnum
	KindSet
	KindJSON
	kindEnd
)

var kindNames = [kindEnd]string{
	"null", "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit",
	"date", "time", "datetime", "timestamp", "year", "char", "varchar", "tinytext", "text", "mediumtext",
	"longtext", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "enum", "set", "json",
}

// String returns the type's name in lower case, as in information_schema.
func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Limits of types, as in MySQL.
const (
	MaxDecimalPrecision = 65
	MaxDecimalScale     = 30
	MaxFSP              = 6
	MaxBitLength        = 64
	MaxCharLength       = 255   // CHAR and BINARY
	MaxVarLength        = 65535 // VARCHAR in characters, VARBINARY in bytes
	MaxEnumMembers      = 65535
	MaxSetMembers       = 64
	MaxMemberBytes      = 1020 // 255 characters of four bytes
)

// Type describes a column's type, or that of an expression's result. It is
// immutable once in use and is passed by pointer only to save copying.
type Type struct {
	Kind      Kind
	Unsigned  bool // integers, DECIMAL, FLOAT, DOUBLE
	ZeroFill  bool // integers; text is padded to Length digits
	NotNull   bool // never NULL: the key form has no NULL marker
	Precision uint8
	// Precision: decimal digits of DECIMAL, 1 to 65; of FLOAT(M,D) and
	// DOUBLE(M,D), where 0 means that no digits were declared.
	Scale uint8 // digits after the point: DECIMAL 0 to 30, FLOAT(M,D), DOUBLE(M,D)
	FSP   uint8 // fractional digits of seconds, 0 to 6: TIME, DATETIME, TIMESTAMP
	// Length is in characters for CHAR and VARCHAR, in bytes for BINARY and
	// VARBINARY, in bits for BIT; of integers it is the display width or 0. TEXT
	// and BLOB kinds have 0: their limit follows from the kind.
	Length    uint32
	Collation CollationID // CHAR, VARCHAR, TEXT, ENUM, SET; CollationBinary for BINARY, BLOB and JSON
	Members   []string    // ENUM and SET: in the character set of Collation
}

// Class is how a value is held in memory: the tag of a [Value] and the layout
// of a [Vector].
type Class uint8

// The classes. ENUM, SET, BIT and YEAR are unsigned integers: member number,
// bit mask, bits, and the year itself.
const (
	ClassNull Class = iota
	ClassInt
	ClassUint
	ClassFloat     // FLOAT: a float32
	ClassDouble    // a float64
	ClassDecimal   // a decimal.Decimal
	ClassBytes     // strings of characters or bytes
	ClassDate      // packed as DateTime, with a zero time
	ClassDateTime  // DateTime
	ClassTimestamp // Timestamp
	ClassTime      // Duration
	ClassJSON      // the binary JSON document
	classEnd
)

var classNames = [classEnd]string{"null", "int", "uint", "float", "double", "decimal", "bytes",
	"date", "datetime", "timestamp", "time", "json"}

func (c Class) String() string {
	if c < classEnd {
		return classNames[c]
	}
	return "class(" + strconv.Itoa(int(c)) + ")"
}

// Class returns the class of the type's values.
func (t *Type) Class() Class {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindMediumInt, KindInt, KindBigInt:
		if t.Unsigned {
			return ClassUint
		}
		return ClassInt
	case KindDecimal:
		return ClassDecimal
	case KindFloat:
		return ClassFloat
	case KindDouble:
		return ClassDouble
	case KindBit, KindYear, KindEnum, KindSet:
		return ClassUint
	case KindDate:
		return ClassDate
	case KindTime:
		return ClassTime
	case KindDateTime:
		return ClassDateTime
	case KindTimestamp:
		return ClassTimestamp
	case KindJSON:
		return ClassJSON
	case KindNull:
		return ClassNull
	}
	return ClassBytes
}

// IsInteger reports whether the kind is one of TINYINT to BIGINT.
func (t *Type) IsInteger() bool { return t.Kind >= KindTinyInt && t.Kind <= KindBigInt }

// IsText reports whether values are characters with a collation: CHAR, VARCHAR
// and TEXT kinds. ENUM and SET are not: they are numbers.
func (t *Type) IsText() bool { return t.Kind >= KindChar && t.Kind <= KindLongText }

// IsBlob reports whether values are bytes: BINARY, VARBINARY and BLOB kinds.
func (t *Type) IsBlob() bool { return t.Kind >= KindBinary && t.Kind <= KindLongBlob }

// IsLong reports whether values may be too long for a record: TEXT, BLOB, JSON.
func (t *Type) IsLong() bool {
	return t.Kind >= KindTinyText && t.Kind <= KindLongText ||
		t.Kind >= KindTinyBlob && t.Kind <= KindLongBlob || t.Kind == KindJSON
}

// IsTemporal reports whether the kind is DATE, TIME, DATETIME or TIMESTAMP.
func (t *Type) IsTemporal() bool { return t.Kind >= KindDate && t.Kind <= KindTimestamp }

// Charset returns the character set of the type's strings.
func (t *Type) Charset() Charset {
	if c := CollationByID(t.Collation); c != nil {
		return c.Charset()
	}
	return CharsetBinary
}

// MaxBytes returns the largest number of bytes a string value may have, and 0
// for types that are not strings.
func (t *Type) MaxBytes() int64 {
	switch t.Kind {
	case KindChar, KindVarChar:
		return int64(t.Length) * int64(t.Charset().MaxLen())
	case KindBinary, KindVarBinary:
		return int64(t.Length)
	case KindTinyText, KindTinyBlob:
		return 1<<8 - 1
	case KindText, KindBlob:
		return 1<<16 - 1
	case KindMediumText, KindMediumBlob:
		return 1<<24 - 1
	case KindLongText, KindLongBlob, KindJSON:
		return 1<<32 - 1
	}
	return 0
}

// ShortDecimal reports whether every value of a DECIMAL type fits an int64
// times 10^-Scale. Vectors of such types hold integers.
func (t *Type) ShortDecimal() bool { return t.Kind == KindDecimal && t.Precision <= 18 }

// Equal reports whether the types are the same in every field.
func (t *Type) Equal(o *Type) bool {
	if t.Kind != o.Kind || t.Unsigned != o.Unsigned || t.ZeroFill != o.ZeroFill || t.NotNull != o.NotNull ||
		t.Precision != o.Precision || t.Scale != o.Scale || t.FSP != o.FSP || t.Length != o.Length ||
		t.Collation != o.Collation || len(t.Members) != len(o.Members) {
		return false
	}
	for i, m := range t.Members {
		if m != o.Members[i] {
			return false
		}
	}
	return true
}

// Validate says whether the type is one that a column may have. Encodings and
// vectors require a valid type.
func (t *Type) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("type %s: %s", t.Kind, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Kind == KindNull || t.Kind >= kindEnd:
		return bad("not a column type")
	case t.Kind == KindDecimal && (t.Precision < 1 || t.Precision > MaxDecimalPrecision):
		return bad("precision %d", t.Precision)
	case t.Kind == KindDecimal && (t.Scale > MaxDecimalScale || t.Scale > t.Precision):
		return bad("scale %d of precision %d", t.Scale, t.Precision)
	case (t.Kind == KindFloat || t.Kind == KindDouble) && t.Precision > 0 && t.Scale > min(t.Precision, 30):
		return bad("scale %d of precision %d", t.Scale, t.Precision)
	case t.FSP > MaxFSP:
		return bad("fractional seconds precision %d", t.FSP)
	case t.Kind == KindBit && (t.Length < 1 || t.Length > MaxBitLength):
		return bad("length %d", t.Length)
	case (t.Kind == KindChar || t.Kind == KindBinary) && t.Length > MaxCharLength:
		return bad("length %d", t.Length)
	case (t.Kind == KindVarChar || t.Kind == KindVarBinary) && t.Length > MaxVarLength:
		return bad("length %d", t.Length)
	case (t.IsText() || t.Kind == KindEnum || t.Kind == KindSet) && CollationByID(t.Collation) == nil:
		return bad("unknown collation %d", t.Collation)
	}
	return t.validateMembers()
}

func (t *Type) validateMembers() error {
	limit := 0
	switch t.Kind {
	case KindEnum:
		limit = MaxEnumMembers
	case KindSet:
		limit = MaxSetMembers
	}
	n := len(t.Members)
	if n > limit || n == 0 && limit > 0 {
		return fmt.Errorf("type %s: %d members", t.Kind, n)
	}
	for i, m := range t.Members {
		if len(m) > MaxMemberBytes {
			return fmt.Errorf("type %s: member %d is too long", t.Kind, i+1)
		}
	}
	return nil
}
