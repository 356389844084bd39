package expr

import (
	"bytes"
	"math"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// answer converts what DEFAULT gives when the statement is bound: it must be a value of the type as it is.
func (j *jsonValue) answer(r ast.JSONResponse, mode types.Mode) (jsonAnswer, error) {
	switch r.Kind {
	case ast.JSONError:
		return jsonAnswer{fails: true}, nil
	case ast.JSONDefault:
		v, err := j.defaultOf(r.Default, mode)
		return jsonAnswer{v: v}, err
	}
	return jsonAnswer{}, nil
}

// literalText is a literal as text, and as a document if it is a number.
func literalText(e ast.Expr) []byte {
	minus := false
	if u, ok := e.(*ast.Unary); ok {
		minus, e = true, u.Operand
	}
	l := e.(*ast.Literal)
	text := types.AppendText(nil, l.Value, l.Type, nil)
	if cs := l.Type.Charset(); l.Charset != "" && !cs.IsUTF8() && cs != types.CharsetBinary {
		text, _ = types.Convert(nil, text, cs, types.CharsetUTF8MB4)
	}
	if minus {
		text = append([]byte("-"), text...)
	}
	return text
}

func (j *jsonValue) defaultOf(e ast.Expr, mode types.Mode) (types.Value, error) {
	text := literalText(e)
	switch t := &j.to; t.Class() {
	case types.ClassInt, types.ClassUint:
		return j.defaultInt(text)
	case types.ClassDouble, types.ClassFloat:
		f, n := types.ParseDouble(text)
		if n == 0 || n < len(text) || math.IsInf(f, 0) {
			return types.Null, errTruncatedValue("DOUBLE", text)
		}
		if t.Class() == types.ClassDouble {
			return types.NewDouble(f), nil
		}
		if math.Abs(f) > math.MaxFloat32 {
			return types.Null, j.outOfRange("FLOAT DEFAULT")
		}
		return types.NewFloat(float32(f)), nil
	case types.ClassDecimal:
		d, n, _, err := decimal.Parse(text)
		if err != nil || n == 0 || n < len(text) {
			return types.Null, errTruncatedValue("DECIMAL", text)
		}
		r, _, ok := d.Fit(int(t.Precision), int(t.Scale))
		if !ok || d.Scale() > int(t.Scale) {
			return types.Null, j.outOfRange("DECIMAL DEFAULT")
		}
		return types.NewDecimal(r), nil
	case types.ClassDate, types.ClassDateTime:
		return j.defaultDate(text, mode)
	case types.ClassTime:
		d, info, ok := types.ParseTime(text)
		if !ok || info.Truncated || info.OutOfRange {
			return types.Null, errTruncatedValue("time", text)
		}
		if d != d.TruncateFraction(int(t.FSP)) {
			return types.Null, j.outOfRange("TIME DEFAULT")
		}
		return types.NewTime(d), nil
	case types.ClassJSON:
		doc, err := json.Parse(nil, text)
		if err != nil {
			return types.Null, jsonTextError(err, " in argument 1 to function json_value")
		}
		return types.NewJSON(doc), nil
	}
	text, ok := fitCharset(text, &j.to)
	if !ok {
		return types.Null, j.outOfRange("CHAR DEFAULT")
	}
	return types.NewBytes(text), nil
}

func (j *jsonValue) defaultInt(text []byte) (types.Value, error) {
	year := j.to.Kind == types.KindYear
	unsigned := j.to.Unsigned && !year
	what := "INTEGER " + j.typeName("")
	if year {
		what = "YEAR"
	}
	n, ok := strictDigits(text, unsigned)
	if !ok {
		f, read := types.ParseDouble(text)
		whole := read > 0 && read == len(text) && f == math.Trunc(f) && bytes.IndexByte(text, '.') < 0
		switch {
		case !whole:
			return types.Null, errTruncatedValue(what, text)
		case unsigned && (f < 0 || f >= 1<<64), !unsigned && (f < -1<<63 || f >= 1<<63):
			return types.Null, j.outOfRange(j.typeName("") + " DEFAULT")
		case unsigned:
			n = int64(uint64(f))
		default:
			n = int64(f)
		}
	}
	switch {
	case year && n != 0 && (n < 1901 || n > 2155):
		return types.Null, j.outOfRange("YEAR")
	case year || unsigned:
		return types.NewUint(uint64(n)), nil
	}
	return types.NewInt(n), nil
}

func (j *jsonValue) defaultDate(text []byte, mode types.Mode) (types.Value, error) {
	d, info, ok := types.ParseDateTime(text, mode&^(types.ModeStrict|types.ModeTimeTruncateFraction))
	if j.to.Kind == types.KindDate {
		if !ok || info.Truncated {
			return types.Null, errTruncatedValue("date", text)
		}
		return types.NewDate(d.Truncate()), nil
	}
	if !ok || info.Truncated || info.DateOnly {
		return types.Null, errIncorrectValue("datetime", text)
	}
	if d != d.TruncateFraction(int(j.to.FSP)) {
		return types.Null, j.outOfRange("TIME DEFAULT")
	}
	return types.NewDateTime(d), nil
}
