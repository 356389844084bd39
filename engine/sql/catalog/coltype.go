package catalog

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// columnType makes a column's type from what was written. collation is the table's.
// given says that a character set or collation was named for the column.
func (d *definer) columnType(name string, c *ast.ColumnType, collation types.CollationID) (t types.Type, given bool, err error) {
	t = types.Type{Kind: c.Kind}
	switch {
	case c.Kind >= types.KindTinyInt && c.Kind <= types.KindBigInt:
		return d.integerType(name, c)
	case c.Kind == types.KindDecimal || c.Kind == types.KindFloat || c.Kind == types.KindDouble:
		t, err = numberType(name, c)
		return t, false, err
	case c.Kind == types.KindBit:
		t.Length = uint32(max(c.Length, 1))
		if c.Length > types.MaxBitLength {
			return t, false, sqlerr.New(sqlerr.TooBigDisplayWidth, name, types.MaxBitLength)
		}
		if c.Length == 0 {
			return t, false, sqlerr.New(sqlerr.InvalidFieldSize, name)
		}
	case c.Kind == types.KindYear:
		if c.Length == 2 {
			return t, false, sqlerr.New(sqlerr.InvalidYearColumnLength)
		}
	case c.Kind == types.KindTime || c.Kind == types.KindDateTime || c.Kind == types.KindTimestamp:
		if c.Length > types.MaxFSP {
			return t, false, sqlerr.New(sqlerr.TooBigPrecision, c.Length, name, types.MaxFSP)
		}
		t.FSP = uint8(max(c.Length, 0))
	case c.Kind == types.KindJSON:
		t.Collation = types.CollationBinary
	case c.Kind >= types.KindBinary && c.Kind <= types.KindLongBlob:
		t.Collation = types.CollationBinary
		err = d.stringLength(name, c, &t)
	case c.Kind >= types.KindChar:
		return d.textType(name, c, collation)
	}
	return t, false, err
}

// displayWidths are the widest texts of TINYINT to BIGINT: unsigned, signed.
var displayWidths = [...][2]uint32{{3, 4}, {5, 6}, {8, 9}, {10, 11}, {20, 20}}

// integerType makes the type of an integer. A display width is kept where it means
// something: with ZEROFILL, and in TINYINT(1), by which clients know booleans.
func (d *definer) integerType(name string, c *ast.ColumnType) (types.Type, bool, error) {
	t := types.Type{Kind: c.Kind, Unsigned: c.Unsigned || c.ZeroFill, ZeroFill: c.ZeroFill}
	switch {
	case c.Length > 255:
		return t, false, sqlerr.New(sqlerr.TooBigDisplayWidth, name, 255)
	case t.ZeroFill && c.Length > 0:
		t.Length = uint32(c.Length)
	case t.ZeroFill:
		t.Length = displayWidths[c.Kind-types.KindTinyInt][0]
	case c.Kind == types.KindTinyInt && c.Length == 1 && !t.Unsigned:
		t.Length = 1
	case c.Length > 0:
		d.warn(sqlerr.Newf(sqlerr.WarnDeprecatedSyntaxNoReplacement, "Integer display width is deprecated and will "+
			"be removed in a future release."))
	}
	return t, false, nil
}

// numberType makes the type of DECIMAL, FLOAT and DOUBLE.
func numberType(name string, c *ast.ColumnType) (types.Type, error) {
	t := types.Type{Kind: c.Kind, Unsigned: c.Unsigned || c.ZeroFill, ZeroFill: c.ZeroFill}
	m, s := c.Length, c.Decimals
	if t.Kind == types.KindDecimal {
		if m == ast.Unspecified || m == 0 {
			m = 10
		}
		s = max(s, 0)
		switch {
		case s > types.MaxDecimalScale:
			return t, sqlerr.New(sqlerr.TooBigScale, s, name, types.MaxDecimalScale)
		case m > types.MaxDecimalPrecision:
			return t, sqlerr.New(sqlerr.TooBigPrecision, m, name, types.MaxDecimalPrecision)
		case s > m:
			return t, mustHold(name)
		}
		t.Precision, t.Scale = uint8(m), uint8(s)
		return t, nil
	}
	if s == ast.Unspecified { // FLOAT(p) chooses the kind
		if m > 53 {
			return t, sqlerr.New(sqlerr.WrongFieldSpec, name)
		}
		if t.Kind == types.KindFloat && m > 24 {
			t.Kind = types.KindDouble
		}
		return t, nil
	}
	switch {
	case s > 30:
		return t, sqlerr.New(sqlerr.TooBigScale, s, name, 30)
	case m > 255:
		return t, sqlerr.New(sqlerr.TooBigDisplayWidth, name, 255)
	case s > m:
		return t, mustHold(name)
	}
	t.Precision, t.Scale = uint8(m), uint8(s)
	return t, nil
}

func mustHold(name string) error {
	return sqlerr.New(sqlerr.MBiggerThanD, name)
}

// textType makes the type of characters, ENUM and SET.
func (d *definer) textType(name string, c *ast.ColumnType, collation types.CollationID) (t types.Type, given bool, err error) {
	t = types.Type{Kind: c.Kind, Collation: collation}
	if c.Charset != "" || c.Collate != "" {
		given = true
		if t.Collation, err = Collation(c.Charset, c.Collate, collation); err != nil {
			return t, given, err
		}
	}
	if c.Binary {
		given = true
		t.Collation = binaryOf(t.Collation)
	}
	if t.Collation == types.CollationBinary && t.Kind != types.KindEnum && t.Kind != types.KindSet {
		t.Kind += types.KindBinary - types.KindChar // CHAR CHARACTER SET binary is BINARY
		given = false
	}
	if t.Kind == types.KindEnum || t.Kind == types.KindSet {
		if t.Collation == types.CollationBinary {
			t.Collation = types.CollationUTF8MB4Bin
		}
		return t, given, d.members(name, c, &t)
	}
	return t, given, d.stringLength(name, c, &t)
}

// stringLength checks and sets the length of CHAR to LONGBLOB. TEXT(n) and BLOB(n) become
// the smallest kind that holds so much.
func (d *definer) stringLength(name string, c *ast.ColumnType, t *types.Type) error {
	width := t.Charset().MaxLen()
	text := t.Kind < types.KindBinary
	switch t.Kind {
	case types.KindChar, types.KindBinary:
		if c.Length > types.MaxCharLength {
			return sqlerr.New(sqlerr.TooBigFieldLength, name, types.MaxCharLength)
		}
		t.Length = 1
		if c.Length >= 0 {
			t.Length = uint32(c.Length)
		}
	case types.KindVarChar, types.KindVarBinary:
		if limit := types.MaxVarLength / width; c.Length > limit {
			if d.env.Strict {
				return sqlerr.New(sqlerr.TooBigFieldLength, name, limit)
			}
			t.Kind = longKind(int64(c.Length)*int64(width), text)
			from, to := "VARCHAR", "TEXT"
			if !text {
				from, to = "VARBINARY", "BLOB"
			}
			d.note(sqlerr.New(sqlerr.AutoConvert, name, from, to))
			return nil
		}
		t.Length = uint32(max(c.Length, 0))
	case types.KindText, types.KindBlob:
		if c.Length > 0 {
			t.Kind = longKind(int64(c.Length)*int64(width), text)
		}
	}
	return nil
}

// longKind is the smallest TEXT or BLOB kind that holds so many bytes.
func longKind(bytes int64, text bool) types.Kind {
	kinds := [...]types.Kind{types.KindTinyBlob, types.KindBlob, types.KindMediumBlob, types.KindLongBlob}
	if text {
		kinds = [...]types.Kind{types.KindTinyText, types.KindText, types.KindMediumText, types.KindLongText}
	}
	for _, k := range kinds[:3] {
		if t := (types.Type{Kind: k}); bytes <= t.MaxBytes() {
			return k
		}
	}
	return kinds[3]
}

// members checks and sets the members of ENUM and SET, in the column's character set.
func (d *definer) members(name string, c *ast.ColumnType, t *types.Type) error {
	kind, word := types.MaxEnumMembers, "ENUM"
	if t.Kind == types.KindSet {
		kind, word = types.MaxSetMembers, "SET"
	}
	if len(c.Members) > kind {
		return sqlerr.New(sqlerr.TooBigSet, name)
	}
	coll := types.CollationByID(t.Collation)
	seen := map[string]bool{}
	for _, m := range c.Members {
		m = strings.TrimRight(m, " ")
		if t.Kind == types.KindSet && strings.Contains(m, ",") {
			return sqlerr.New(sqlerr.IllegalValueForType, "set", m)
		}
		out, bad := types.Convert(nil, []byte(m), types.CharsetUTF8MB4, coll.Charset())
		if bad >= 0 || len(out) > types.MaxMemberBytes {
			return sqlerr.New(sqlerr.TooBigFieldLength, name, 255)
		}
		key := string(coll.AppendSortKey(nil, out))
		if seen[key] {
			if d.env.Strict {
				return sqlerr.New(sqlerr.DuplicatedValueInType, name, m, word)
			}
			d.note(sqlerr.New(sqlerr.DuplicatedValueInType, name, m, word))
		}
		seen[key] = true
		t.Members = append(t.Members, string(out))
	}
	return nil
}

// TypeText is a type as MySQL 8 writes it: the column Type of SHOW COLUMNS.
func TypeText(t *types.Type) string { return string(appendType(nil, t)) }

func appendType(dst []byte, t *types.Type) []byte {
	dst = append(dst, t.Kind.String()...)
	switch {
	case t.IsInteger():
		if t.ZeroFill || t.Kind == types.KindTinyInt && t.Length == 1 && !t.Unsigned {
			dst = appendLength(dst, int(t.Length), -1)
		}
	case t.Kind == types.KindDecimal, (t.Kind == types.KindFloat || t.Kind == types.KindDouble) && t.Precision > 0:
		dst = appendLength(dst, int(t.Precision), int(t.Scale))
	case t.Kind == types.KindBit, t.Kind == types.KindChar, t.Kind == types.KindVarChar, t.Kind == types.KindBinary, t.Kind == types.KindVarBinary:
		dst = appendLength(dst, int(t.Length), -1)
	case t.FSP > 0:
		dst = appendLength(dst, int(t.FSP), -1)
	case t.Kind == types.KindEnum || t.Kind == types.KindSet:
		cs := t.Charset()
		for i, m := range t.Members {
			sep := byte(',')
			if i == 0 {
				sep = '('
			}
			text, _ := types.Convert(nil, []byte(m), cs, types.CharsetUTF8MB4)
			dst = appendQuoted(append(dst, sep), string(text))
		}
		dst = append(dst, ')')
	}
	if t.Unsigned && t.Kind != types.KindYear {
		dst = append(dst, " unsigned"...)
	}
	if t.ZeroFill {
		dst = append(dst, " zerofill"...)
	}
	return dst
}

// FreeColumnType is the type of a column that belongs to no table: of JSON_TABLE. Text without a character set has the collation.
func FreeColumnType(name string, c *ast.ColumnType, collation types.CollationID) (types.Type, error) {
	d := &definer{env: &Env{}} // what does not fit a table becomes what does
	t, _, err := d.columnType(name, c, collation)
	return t, err
}
