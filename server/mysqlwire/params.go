package mysqlwire

import (
	"math"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Types of parameters, few on purpose: plans are cached by them. Integers of all widths
// are BIGINT.
var (
	paramNull     = &types.Type{Kind: types.KindNull}
	paramInt      = &types.Type{Kind: types.KindBigInt}
	paramUint     = &types.Type{Kind: types.KindBigInt, Unsigned: true}
	paramFloat    = &types.Type{Kind: types.KindFloat}
	paramDouble   = &types.Type{Kind: types.KindDouble}
	paramDate     = &types.Type{Kind: types.KindDate}
	paramDateTime = &types.Type{Kind: types.KindDateTime, FSP: 6}
	paramTime     = &types.Type{Kind: types.KindTime, FSP: 6}
	// Text is in the session's character set, which the session knows.
	paramText     = &types.Type{Kind: types.KindVarChar, Length: 65535 / 4, Collation: defaultCollation}
	paramLongText = &types.Type{Kind: types.KindLongText, Collation: defaultCollation}
	paramBlob     = &types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
	paramDecimals = func() (all [types.MaxDecimalScale + 1]*types.Type) {
		for i := range all {
			all[i] = &types.Type{Kind: types.KindDecimal, Precision: types.MaxDecimalPrecision, Scale: uint8(i)}
		}
		return all
	}()
)

var errArguments = sqlerr.New(sqlerr.WrongArguments, "mysqld_stmt_execute")

// declared is the type of a parameter as the client declared it.
type declared struct {
	field    fieldType
	unsigned bool
}

// isString: values come with their length.
func (d declared) isString() bool {
	switch d.field {
	case fieldVarChar, fieldVarString, fieldString, fieldEnum, fieldSet, fieldJSON, fieldBit, fieldNewDecimal,
		fieldTinyBlob, fieldMediumBlob, fieldLongBlob, fieldBlob, 0x00: // 0: DECIMAL of old
		return true
	}
	return false
}

// readParam reads a value of the declared type. Strings alias the packet.
func readParam(p *payload, d declared) (session.Arg, error) {
	if d.isString() {
		s := p.string()
		if p.bad {
			return session.Arg{}, errArguments
		}
		return stringParam(s, d)
	}
	var a session.Arg
	switch d.field {
	case fieldTiny:
		a = intParam(int64(int8(p.uint8())), 0xff, d.unsigned)
	case fieldShort, fieldYear:
		a = intParam(int64(int16(p.uint16())), 0xffff, d.unsigned)
	case fieldLong, fieldInt24:
		a = intParam(int64(int32(p.uint32())), 0xffffffff, d.unsigned)
	case fieldLongLong:
		a = intParam(int64(p.uint64()), math.MaxUint64, d.unsigned)
	case fieldFloat:
		a = session.Arg{Value: types.NewFloat(math.Float32frombits(p.uint32())), Type: paramFloat}
	case fieldDouble:
		a = session.Arg{Value: types.NewDouble(math.Float64frombits(p.uint64())), Type: paramDouble}
	case fieldNull:
		a = session.Arg{Type: paramNull}
	case fieldDate, fieldDateTime, fieldTimestamp:
		return readDate(p, d.field == fieldDate)
	case fieldTime:
		return readTime(p)
	default:
		return a, sqlerr.New(sqlerr.NotSupportedYet, "parameters of the type number "+itoa(uint32(d.field)))
	}
	if p.bad {
		return a, errArguments
	}
	if a.Type == paramFloat && !finite(float64(a.Value.Float())) || a.Type == paramDouble && !finite(a.Value.Double()) {
		return a, errArguments // no SQL number is NaN or infinite
	}
	return a, nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func intParam(v int64, mask uint64, unsigned bool) session.Arg {
	if unsigned {
		return session.Arg{Value: types.NewUint(uint64(v) & mask), Type: paramUint}
	}
	return session.Arg{Value: types.NewInt(v), Type: paramInt}
}

func stringParam(s []byte, d declared) (session.Arg, error) {
	switch d.field {
	case fieldTinyBlob, fieldMediumBlob, fieldLongBlob, fieldBlob, fieldBit:
		return session.Arg{Value: types.NewBytes(s), Type: paramBlob}, nil
	case fieldNewDecimal, 0x00:
		n, read, exact, err := decimal.Parse(s)
		if err != nil || read != len(s) || !exact || n.Scale() > types.MaxDecimalScale ||
			n.IntegerDigits()+n.Scale() > types.MaxDecimalPrecision {
			break // as text, which is converted by SQL's rules
		}
		return session.Arg{Value: types.NewDecimal(n), Type: paramDecimals[n.Scale()]}, nil
	}
	if len(s) > 65535/4 {
		return session.Arg{Value: types.NewBytes(s), Type: paramLongText}, nil
	}
	return session.Arg{Value: types.NewBytes(s), Type: paramText}, nil
}

func readDate(p *payload, date bool) (session.Arg, error) {
	q := payload{b: p.take(int(p.uint8()))}
	if p.bad {
		return session.Arg{}, errArguments
	}
	var year, month, day, hour, minute, second, micro int
	if len(q.b) > 0 {
		year, month, day = int(q.uint16()), int(q.uint8()), int(q.uint8())
	}
	if len(q.b) > 0 {
		hour, minute, second = int(q.uint8()), int(q.uint8()), int(q.uint8())
	}
	if len(q.b) > 0 {
		micro = int(q.uint32())
	}
	if q.bad || len(q.b) > 0 {
		return session.Arg{}, errArguments
	}
	if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 || micro > 999_999 {
		return session.Arg{}, sqlerr.Newf(sqlerr.TruncatedWrongValue, "Incorrect DATETIME value of a parameter")
	}
	d := types.MakeDateTime(year, month, day, hour, minute, second, micro)
	if date && d == d.Truncate() {
		return session.Arg{Value: types.NewDate(d), Type: paramDate}, nil
	}
	return session.Arg{Value: types.NewDateTime(d), Type: paramDateTime}, nil
}

func readTime(p *payload) (session.Arg, error) {
	q := payload{b: p.take(int(p.uint8()))}
	if p.bad {
		return session.Arg{}, errArguments
	}
	var neg bool
	var days uint32
	var hour, minute, second, micro int
	if len(q.b) > 0 {
		neg, days = q.uint8() != 0, q.uint32()
		hour, minute, second = int(q.uint8()), int(q.uint8()), int(q.uint8())
	}
	if len(q.b) > 0 {
		micro = int(q.uint32())
	}
	if q.bad || len(q.b) > 0 {
		return session.Arg{}, errArguments
	}
	if days > 34 || hour > 23 || minute > 59 || second > 59 || micro > 999_999 || int(days)*24+hour > 838 {
		return session.Arg{}, sqlerr.Newf(sqlerr.TruncatedWrongValue, "Incorrect TIME value of a parameter")
	}
	d := types.MakeDuration(neg, int(days)*24+hour, minute, second, micro)
	return session.Arg{Value: types.NewTime(d), Type: paramTime}, nil
}
