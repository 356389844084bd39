package sqlapi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	utf "unicode/utf8"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Types of parameters, few on purpose: plans are cached by them.
var (
	paramNull     = &types.Type{Kind: types.KindNull}
	paramInt      = &types.Type{Kind: types.KindBigInt}
	paramUint     = &types.Type{Kind: types.KindBigInt, Unsigned: true}
	paramDouble   = &types.Type{Kind: types.KindDouble}
	paramDate     = &types.Type{Kind: types.KindDate}
	paramDateTime = &types.Type{Kind: types.KindDateTime, FSP: 6}
	paramTime     = &types.Type{Kind: types.KindTime, FSP: 6}
	paramText     = &types.Type{Kind: types.KindVarChar, Length: 65535 / 4, Collation: collation}
	paramLongText = &types.Type{Kind: types.KindLongText, Collation: collation}
	paramBlob     = &types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
	paramDecimals = func() (all [types.MaxDecimalScale + 1]*types.Type) {
		for i := range all {
			all[i] = &types.Type{Kind: types.KindDecimal, Precision: types.MaxDecimalPrecision, Scale: uint8(i)}
		}
		return all
	}()
)

// collation is that of what clients send.
const collation = types.CollationUTF8MB40900AI

// maxParams is how many values a statement may have.
const maxParams = 65535

// arguments turns parameters into the session's, in args.
func arguments(args []session.Arg, params []*pb.SqlValue) ([]session.Arg, error) {
	if len(params) > maxParams {
		return args, sqlerr.Newf(sqlerr.PSManyParam, "A statement has at most %d parameters, not %d: send several "+
			"statements", maxParams, len(params))
	}
	for i, p := range params {
		a, why := argument(p)
		if why != "" {
			return args, wrongArgument(fmt.Sprintf("parameter %d: %s", i+1, why))
		}
		args = append(args, a)
	}
	return args, nil
}

func wrongArgument(why string) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.WrongArguments, "Incorrect arguments: %s", why)
}

// argument is one of them; why says what is wrong with it.
func argument(p *pb.SqlValue) (a session.Arg, why string) {
	switch v := p.GetKind().(type) {
	case nil:
		return session.Arg{Type: paramNull}, ""
	case *pb.SqlValue_Int:
		return session.Arg{Value: types.NewInt(v.Int), Type: paramInt}, ""
	case *pb.SqlValue_Uint:
		return session.Arg{Value: types.NewUint(v.Uint), Type: paramUint}, ""
	case *pb.SqlValue_Bool:
		n := int64(0)
		if v.Bool {
			n = 1
		}
		return session.Arg{Value: types.NewInt(n), Type: paramInt}, ""
	case *pb.SqlValue_Double:
		if math.IsNaN(v.Double) || math.IsInf(v.Double, 0) {
			return a, "no SQL number is infinite or NaN"
		}
		return session.Arg{Value: types.NewDouble(v.Double), Type: paramDouble}, ""
	case *pb.SqlValue_Text:
		t := paramText
		if len(v.Text) > 65535/4 {
			t = paramLongText
		}
		return session.Arg{Value: types.NewString(v.Text), Type: t}, ""
	case *pb.SqlValue_Blob:
		return session.Arg{Value: types.NewBytes(v.Blob), Type: paramBlob}, ""
	case *pb.SqlValue_Decimal:
		return decimalArgument(v.Decimal)
	}
	return temporalArgument(p)
}

func decimalArgument(text string) (a session.Arg, why string) {
	n, read, exact, err := decimal.Parse([]byte(text))
	if err != nil || read != len(text) || !exact || n.Scale() > types.MaxDecimalScale ||
		n.IntegerDigits()+n.Scale() > types.MaxDecimalPrecision {
		return a, fmt.Sprintf("%.80q is no decimal of up to %d digits, up to %d of them after the point",
			text, types.MaxDecimalPrecision, types.MaxDecimalScale)
	}
	return session.Arg{Value: types.NewDecimal(n), Type: paramDecimals[n.Scale()]}, ""
}

func temporalArgument(p *pb.SqlValue) (a session.Arg, why string) {
	switch v := p.GetKind().(type) {
	case *pb.SqlValue_Date:
		d, info, ok := types.ParseDateTime([]byte(v.Date), types.ModeDefault&^types.ModeNoZeroDate&^types.ModeNoZeroInDate)
		if !ok || info.Truncated || !info.DateOnly {
			return a, fmt.Sprintf("%.40q is no date: send it as 2026-11-21", v.Date)
		}
		return session.Arg{Value: types.NewDate(d.Truncate()), Type: paramDate}, ""
	case *pb.SqlValue_Datetime:
		d, info, ok := types.ParseDateTime([]byte(v.Datetime), types.ModeDefault&^types.ModeNoZeroDate&^types.ModeNoZeroInDate)
		if !ok || info.Truncated || info.HasOffset || info.Nanos != 0 {
			return a, fmt.Sprintf("%.40q is no date and time: send it as 2026-11-21 19:20:21.5, with at most six digits of a fraction and no offset", v.Datetime)
		}
		return session.Arg{Value: types.NewDateTime(d), Type: paramDateTime}, ""
	case *pb.SqlValue_Time:
		d, info, ok := types.ParseTime([]byte(v.Time))
		if !ok || info.Truncated || info.OutOfRange || info.DateLost || info.Nanos != 0 {
			return a, fmt.Sprintf("%.40q is no time from -838:59:59 to 838:59:59 with at most six digits of a fraction", v.Time)
		}
		return session.Arg{Value: types.NewTime(d), Type: paramTime}, ""
	}
	return a, "its kind is not known to this version"
}

// utf8 makes a name fit for a string of the contract.
func utf8(s string) string {
	if utf.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "?")
}

// appendValue appends bytes by which values can be told apart.
func appendValue(b []byte, p *pb.SqlValue) []byte {
	switch v := p.GetKind().(type) {
	case *pb.SqlValue_Int:
		return strconv.AppendInt(append(b, 'i'), v.Int, 10)
	case *pb.SqlValue_Uint:
		return strconv.AppendUint(append(b, 'u'), v.Uint, 10)
	case *pb.SqlValue_Bool:
		return strconv.AppendBool(append(b, 'b'), v.Bool)
	case *pb.SqlValue_Double:
		return strconv.AppendFloat(append(b, 'f'), v.Double, 'g', -1, 64)
	case *pb.SqlValue_Text:
		return append(append(b, 't'), v.Text...)
	case *pb.SqlValue_Blob:
		return append(append(b, 'x'), v.Blob...)
	case *pb.SqlValue_Decimal:
		return append(append(b, 'n'), v.Decimal...)
	case *pb.SqlValue_Date:
		return append(append(b, 'd'), v.Date...)
	case *pb.SqlValue_Datetime:
		return append(append(b, 's'), v.Datetime...)
	case *pb.SqlValue_Time:
		return append(append(b, 'h'), v.Time...)
	}
	return b
}

func counts(want, have int) string {
	return fmt.Sprintf("the statement has %d parameters, but %d values have come", want, have)
}

func unknownHandle(n uint32) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.UnknownStmtHandler, "Unknown prepared statement handler (%d): it was not prepared in "+
		"this session, its preparation failed, or it was closed", n)
}
