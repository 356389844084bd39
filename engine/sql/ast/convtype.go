package ast

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/charset"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	ptypes "github.com/pingcap/tidb/pkg/parser/types"

	"github.com/triremedb/trireme/engine/types"
)

func charType() ColumnType {
	return ColumnType{Kind: types.KindChar, Length: Unspecified, Decimals: Unspecified}
}

var kinds = map[byte]types.Kind{
	mysql.TypeTiny: types.KindTinyInt, mysql.TypeShort: types.KindSmallInt, mysql.TypeInt24: types.KindMediumInt,
	mysql.TypeLong: types.KindInt, mysql.TypeLonglong: types.KindBigInt,
	mysql.TypeFloat: types.KindFloat, mysql.TypeDouble: types.KindDouble, mysql.TypeNewDecimal: types.KindDecimal,
	mysql.TypeBit: types.KindBit, mysql.TypeDate: types.KindDate, mysql.TypeDuration: types.KindTime,
	mysql.TypeDatetime: types.KindDateTime, mysql.TypeTimestamp: types.KindTimestamp, mysql.TypeYear: types.KindYear,
	mysql.TypeString: types.KindChar, mysql.TypeVarchar: types.KindVarChar, mysql.TypeVarString: types.KindVarChar,
	mysql.TypeTinyBlob: types.KindTinyText, mysql.TypeBlob: types.KindText,
	mysql.TypeMediumBlob: types.KindMediumText, mysql.TypeLongBlob: types.KindLongText,
	mysql.TypeEnum: types.KindEnum, mysql.TypeSet: types.KindSet, mysql.TypeJSON: types.KindJSON,
}

// bytesKinds are the kinds of bytes for those of characters.
var bytesKinds = map[types.Kind]types.Kind{
	types.KindChar: types.KindBinary, types.KindVarChar: types.KindVarBinary,
	types.KindTinyText: types.KindTinyBlob, types.KindText: types.KindBlob,
	types.KindMediumText: types.KindMediumBlob, types.KindLongText: types.KindLongBlob,
}

// columnType converts the type of a column.
func (c *converter) columnType(t *ptypes.FieldType) ColumnType {
	k, ok := kinds[t.GetType()]
	if !ok {
		c.refuse()
	}
	out := ColumnType{Kind: k, Length: t.GetFlen(), Decimals: t.GetDecimal(),
		Unsigned: mysql.HasUnsignedFlag(t.GetFlag()) || mysql.HasZerofillFlag(t.GetFlag()),
		ZeroFill: mysql.HasZerofillFlag(t.GetFlag()),
	}
	switch k {
	case types.KindTime, types.KindDateTime, types.KindTimestamp:
		out.Length, out.Decimals = t.GetDecimal(), Unspecified
	case types.KindDate, types.KindJSON:
		out.Length, out.Decimals = Unspecified, Unspecified
	case types.KindEnum, types.KindSet:
		out.Length = Unspecified
		out.Members = append([]string{}, t.GetElems()...)
		c.characters(&out, t)
	case types.KindChar, types.KindVarChar, types.KindTinyText, types.KindText, types.KindMediumText, types.KindLongText:
		c.characters(&out, t)
	}
	return out
}

// characters converts what concerns the characters of a string type.
func (c *converter) characters(out *ColumnType, t *ptypes.FieldType) {
	out.Decimals = Unspecified
	if t.GetCharset() == charset.CharsetBin {
		if k, ok := bytesKinds[out.Kind]; ok {
			out.Kind = k
			return
		}
	}
	out.Charset = strings.ToLower(t.GetCharset())
	out.Binary = mysql.HasBinaryFlag(t.GetFlag())
}

// castType converts the type of CAST, in which the grammar has filled in defaults.
func (c *converter) castType(t *ptypes.FieldType, explicitCharset bool) ColumnType {
	k, ok := kinds[t.GetType()]
	if !ok {
		c.refuse()
	}
	out := ColumnType{Kind: k, Length: Unspecified, Decimals: Unspecified}
	switch k {
	case types.KindBigInt:
		out.Unsigned = mysql.HasUnsignedFlag(t.GetFlag())
	case types.KindDecimal:
		out.Length, out.Decimals = t.GetFlen(), t.GetDecimal()
	case types.KindTime, types.KindDateTime:
		if t.GetDecimal() > 0 {
			out.Length = t.GetDecimal()
		}
	case types.KindChar, types.KindVarChar:
		out.Kind = types.KindChar
		if t.GetFlen() != ptypes.UnspecifiedLength {
			out.Length = t.GetFlen()
		}
		switch {
		case t.GetCharset() == charset.CharsetBin:
			out.Kind = types.KindBinary
		case explicitCharset:
			out.Charset = strings.ToLower(t.GetCharset())
		}
	}
	return out
}
