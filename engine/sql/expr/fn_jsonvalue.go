package expr

import (
	"bytes"
	"math"
	"strconv"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// JSON_VALUE looks one value up and converts it strictly: what is not wholly a value of the type is an error, of which ON ERROR says what
// is given instead.

func init() {
	name := definer(catJSON).note("JSON_VALUE(doc, path [RETURNING type] [{NULL | ERROR | DEFAULT x} ON EMPTY] [.. ON ERROR])")
	builtins[name] = func(b *Binder, _ string, args []ast.Expr) (Node, error) {
		if l, ok := args[len(args)-1].(*ast.Literal); ok && len(args) == 2 && l.Kind == ast.LiteralString {
			e := &ast.JSONValue{Doc: args[0], Path: string(l.Value.Bytes())}
			e.Returning = ast.ColumnType{Kind: types.KindChar, Length: 512, Decimals: ast.Unspecified}
			return b.jsonValue(e)
		}
		return nil, errUnknownFunction(name)
	}
}

// jsonValue is what a call of JSON_VALUE does.
type jsonValue struct {
	path             *json.Path
	to               types.Type
	onEmpty, onError jsonAnswer
	tail             string // the call's text from the path on
}

// jsonAnswer is what is given in place of a value.
type jsonAnswer struct {
	fails bool
	v     types.Value
}

// jsonValue binds JSON_VALUE.
func (b *Binder) jsonValue(e *ast.JSONValue) (Node, error) {
	doc, err := b.Scalar(e.Doc)
	if err != nil {
		return nil, err
	}
	if t := doc.Type(); !isString(t) && t.Kind != types.KindJSON && t.Kind != types.KindNull {
		return nil, errJSONType(" in argument 1 to function json_value")
	}
	j := &jsonValue{}
	if j.path, err = json.ParsePath([]byte(e.Path)); err != nil {
		return nil, err
	}
	if j.to, err = b.returningType(doc, &e.Returning); err != nil {
		return nil, err
	}
	if j.onEmpty, err = j.answer(e.OnEmpty, b.opt.Mode); err != nil {
		return nil, err
	}
	if j.onError, err = j.answer(e.OnError, b.opt.Mode); err != nil {
		return nil, err
	}
	text := ast.Format(&ast.JSONValue{Doc: &ast.Literal{Kind: ast.LiteralInt, Value: types.NewInt(0), Type: &boolType}, Path: e.Path,
		Returning: e.Returning, OnEmpty: e.OnEmpty, OnError: e.OnError})
	j.tail = text[len("json_value(0"):]
	f := &Func{Name: "json_value", Args: []ArgKind{ArgAny}, Min: 1, Max: 1, Result: ResultOf(j.to), Row: j.row,
		Prepare: func(_ *Binder, c *Call) error { c.Data = j; return nil }}
	n, err := b.Call(f, f.Name, []Node{doc})
	if c, ok := n.(*Const); ok {
		c.t.NotNull = false // as MySQL describes it
	}
	return n, err
}

// returningType is a type of RETURNING. Text is of the collation that compares JSON strings unless a character set is given, and of any
// length unless one is.
func (b *Binder) returningType(doc Node, ct *ast.ColumnType) (types.Type, error) {
	switch ct.Kind {
	case types.KindChar, types.KindVarChar, types.KindBinary, types.KindVarBinary:
	default:
		return b.castType(doc, ct)
	}
	sized := *ct
	if sized.Length < 0 {
		sized.Length = maxText
	}
	t, err := b.textCast(doc, &sized)
	if err != nil {
		return t, err
	}
	switch {
	case t.Kind == types.KindBinary:
		t.Kind = types.KindVarBinary // it is not filled up
	case t.IsText() && ct.Charset == "" && ct.Binary:
		t.Collation = types.CollationUTF8MB4Bin
	case t.IsText() && ct.Charset == "":
		t.Collation = types.CollationUTF8MB40900B
	}
	return t, nil
}

func errJSONType(where string) error {
	return sqlerr.Newf(sqlerr.InvalidTypeForJSON, "Invalid data type for JSON data%s; a JSON string or JSON type is "+
		"required.", where)
}

// typeName is what messages call a type.
func (j *jsonValue) typeName(text string) string {
	switch {
	case j.to.Kind == types.KindBigInt && j.to.Unsigned:
		return "UNSIGNED"
	case j.to.Kind == types.KindBigInt:
		return "SIGNED"
	case isString(&j.to):
		return text
	}
	return upperKind(j.to.Kind)
}

func upperKind(k types.Kind) string { return string(bytes.ToUpper([]byte(k.String()))) }

func (j *jsonValue) outOfRange(what string) error {
	return sqlerr.New(sqlerr.DataOutOfRange, what, "json_value")
}

// row gives the value for one document.
func (j *jsonValue) row(x *Context, c *Call, a []types.Value) (types.Value, error) {
	doc, err := x.jsonParse(a[0], c.Args[0].Type(), " in argument 1 to function json_value")
	if e, ok := err.(*sqlerr.Error); ok && e.Number == sqlerr.InvalidJSONTextInParam {
		if !j.onError.fails {
			x.Warning(e)
		}
		return j.onError.give(e)
	}
	if err != nil {
		return types.Null, err
	}
	var found json.Value
	n := 0
	err = j.path.Each(openJSON(doc), x.pathLimits(), func(v json.Value) bool {
		found = v
		n++
		return n < 2
	})
	switch {
	case err != nil:
		return types.Null, err
	case n == 0:
		return j.onEmpty.give(sqlerr.New(sqlerr.MissingJSONValue, "json_value"))
	case n > 1:
		return j.onError.give(sqlerr.New(sqlerr.MultipleJSONValues, "json_value"))
	case found.IsNull():
		return types.Null, nil
	}
	v, ok, err := x.strictJSON(found, &j.to)
	if err == nil && !ok {
		return j.onError.give(j.outOfRange(j.typeName("STRING")))
	}
	return v, err
}

func (a jsonAnswer) give(err error) (types.Value, error) {
	if a.fails {
		return types.Null, err
	}
	return a.v, nil
}

// strictJSON converts a value that is not null to a type of RETURNING. ok is false for what is none of it.
func (x *Context) strictJSON(v json.Value, t *types.Type) (out types.Value, ok bool, err error) {
	switch t.Class() {
	case types.ClassInt, types.ClassUint:
		if t.Kind == types.KindYear {
			n, ok := strictInt(v, false)
			return types.NewUint(uint64(n)), ok && (n == 0 || n >= 1901 && n <= 2155), nil
		}
		n, ok := strictInt(v, t.Unsigned)
		if t.Unsigned {
			return types.NewUint(uint64(n)), ok, nil
		}
		return types.NewInt(n), ok, nil
	case types.ClassDouble, types.ClassFloat:
		f, ok := strictDouble(v)
		if t.Class() == types.ClassFloat {
			return types.NewFloat(float32(f)), ok && math.Abs(f) <= math.MaxFloat32, nil
		}
		return types.NewDouble(f), ok, nil
	case types.ClassDecimal:
		d, ok := strictDecimal(v)
		if ok {
			d, _, ok = d.Fit(int(t.Precision), int(t.Scale))
		}
		return types.NewDecimal(d), ok, nil
	case types.ClassDate, types.ClassDateTime, types.ClassTime:
		return x.strictTemporal(v, t)
	case types.ClassJSON:
		return x.documentOf(v), true, nil
	}
	text := x.Keep(v.AppendUnquoted(x.Scratch()))
	if err := x.Large(len(text)); err != nil {
		return types.Null, false, err
	}
	text, ok = fitCharset(text, t)
	return types.NewBytes(text), ok, nil
}

// fitCharset gives text the character set of a type; ok says that it has a place in the type.
func fitCharset(text []byte, t *types.Type) ([]byte, bool) {
	if cs := t.Charset(); cs != types.CharsetBinary && cs != types.CharsetUTF8MB4 {
		var bad int
		if text, bad = types.Convert(nil, text, types.CharsetUTF8MB4, cs); bad >= 0 {
			return nil, false
		}
	}
	return text, t.IsLong() || t.Charset().Count(text) <= int(t.Length)
}

func strictInt(v json.Value, unsigned bool) (int64, bool) {
	switch v.Type() {
	case json.TypeInteger:
		return v.Int(), !unsigned || v.Int() >= 0
	case json.TypeUnsigned:
		return int64(v.Uint()), unsigned || v.Uint() <= math.MaxInt64
	case json.TypeBoolean:
		if v.Bool() {
			return 1, true
		}
		return 0, true
	case json.TypeDouble:
		r := math.RoundToEven(v.Double())
		if unsigned {
			return int64(r), r >= 0 && r < 1<<63 // MySQL takes no more of a double
		}
		return int64(r), r >= -1<<63 && r < 1<<63
	case json.TypeDecimal:
		d, _ := v.Decimal()
		if unsigned {
			n, ok := d.Uint64()
			return int64(n), ok
		}
		return d.Int64()
	case json.TypeString:
		return strictDigits(v.Str(), unsigned)
	}
	return 0, false
}

// strictDigits reads an integer, before which there may be spaces, and nothing else.
func strictDigits(s []byte, unsigned bool) (int64, bool) {
	s = trimLeft(s)
	if !unsigned {
		n, err := strconv.ParseInt(string(s), 10, 64)
		return n, err == nil
	}
	n, err := strconv.ParseUint(string(bytes.TrimPrefix(s, []byte("+"))), 10, 64)
	return int64(n), err == nil
}

func strictDouble(v json.Value) (float64, bool) {
	switch v.Type() {
	case json.TypeInteger:
		return float64(v.Int()), true
	case json.TypeUnsigned:
		return float64(v.Uint()), true
	case json.TypeDouble:
		return v.Double(), true
	case json.TypeBoolean:
		if v.Bool() {
			return 1, true
		}
		return 0, true
	case json.TypeDecimal:
		d, _ := v.Decimal()
		return d.Float64(), true
	case json.TypeString:
		f, n := types.ParseDouble(v.Str())
		return f, n == len(v.Str()) && !math.IsInf(f, 0)
	}
	return 0, false
}

func strictDecimal(v json.Value) (decimal.Decimal, bool) {
	switch v.Type() {
	case json.TypeInteger:
		return decimal.FromInt64(v.Int()), true
	case json.TypeUnsigned:
		return decimal.FromUint64(v.Uint()), true
	case json.TypeDouble:
		d, err := decimal.FromFloat64(v.Double())
		return d, err == nil
	case json.TypeBoolean:
		f, _ := strictDouble(v)
		return decimal.FromInt64(int64(f)), true
	case json.TypeDecimal:
		return v.Decimal()
	case json.TypeString:
		s := trimLeft(v.Str())
		d, n, _, err := decimal.Parse(s)
		return d, err == nil && n > 0 && onlySpaces(s[n:])
	}
	return decimal.Decimal{}, false
}

func (x *Context) strictTemporal(v json.Value, t *types.Type) (types.Value, bool, error) {
	switch k := v.Type(); {
	case k == json.TypeString:
		return x.strictMoment(v.Str(), t)
	case k == json.TypeTime && t.Kind == types.KindTime:
		return types.NewTime(v.Time().TruncateFraction(int(t.FSP))), true, nil
	case k != json.TypeDate && k != json.TypeDateTime:
	case t.Kind == types.KindDate:
		return types.NewDate(v.DateTime().Truncate()), true, nil
	case t.Kind == types.KindDateTime:
		return types.NewDateTime(v.DateTime().TruncateFraction(int(t.FSP))), true, nil
	}
	return types.Null, false, nil
}

// strictMoment reads a date, time or both. A DATETIME has a time of day, and a TIME colons.
func (x *Context) strictMoment(s []byte, t *types.Type) (types.Value, bool, error) {
	if t.Kind == types.KindTime {
		d, info, ok := types.ParseTime(s)
		ok = ok && !info.Truncated && !info.OutOfRange && bytes.IndexByte(s, ':') >= 0
		return types.NewTime(d.TruncateFraction(int(t.FSP))), ok, nil
	}
	_, info, ok := types.ParseDateTime(s, x.dateMode())
	if !ok || info.Truncated || t.Kind == types.KindDateTime && (info.DateOnly || bytes.IndexByte(s, 'T') >= 0) {
		return types.Null, false, nil
	}
	d, ok, err := x.dateTimeOfText(s, "datetime")
	if t.Kind == types.KindDate {
		return types.NewDate(d.Truncate()), ok, err
	}
	return types.NewDateTime(d.TruncateFraction(int(t.FSP))), ok, err
}

// write gives the text of a call, which is that of the statement but for defaults.
func (j *jsonValue) write(w *textWriter, c *Call) {
	w.WriteString("json_value(")
	w.node(c.Args[0])
	w.WriteString(j.tail)
}
