package expr

import (
	"bytes"
	"math"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

func errJSONCast(to string) *sqlerr.Error {
	return sqlerr.New(sqlerr.InvalidJSONValueForCast, to, "", 1)
}

type jsonTruthKey struct{}

// truthOfJSON is the truth of a document: it is unlike the number 0. So false and null are true, of
// which a warning tells, once.
func (x *Context) truthOfJSON(j json.Value) bool {
	if told := x.State(jsonTruthKey{}, func() any { return new(bool) }).(*bool); !*told {
		*told = true
		x.Warning(sqlerr.New(sqlerr.ImplicitComparisonForJSON))
	}
	switch j.Type() {
	case json.TypeInteger:
		return j.Int() != 0
	case json.TypeUnsigned:
		return j.Uint() != 0
	case json.TypeDouble:
		return j.Double() != 0
	case json.TypeDecimal:
		d, _ := j.Decimal()
		return !d.IsZero()
	}
	return true
}

func (x *Context) doubleOfJSON(v types.Value) (float64, error) {
	j := json.Open(v.Bytes())
	switch j.Type() {
	case json.TypeInteger:
		return float64(j.Int()), nil
	case json.TypeUnsigned:
		return float64(j.Uint()), nil
	case json.TypeDouble:
		return j.Double(), nil
	case json.TypeBoolean:
		if j.Bool() {
			return 1, nil
		}
		return 0, nil
	case json.TypeString:
		return x.doubleOfText(j.Str())
	case json.TypeDecimal:
		d, _ := j.Decimal()
		return d.Float64(), nil
	}
	return 0, x.Fault(errJSONCast("DOUBLE"))
}

func (x *Context) decimalOfJSON(v types.Value) (decimal.Decimal, error) {
	j := json.Open(v.Bytes())
	switch j.Type() {
	case json.TypeInteger:
		return decimal.FromInt64(j.Int()), nil
	case json.TypeUnsigned:
		return decimal.FromUint64(j.Uint()), nil
	case json.TypeDouble:
		return x.decimalOfDouble(j.Double())
	case json.TypeBoolean:
		f, err := x.doubleOfJSON(v)
		return decimal.FromInt64(int64(f)), err
	case json.TypeString:
		return x.decimalOfText(j.Str())
	case json.TypeDecimal:
		d, _ := j.Decimal()
		return d, nil
	}
	return decimal.Decimal{}, x.Fault(errJSONCast("DECIMAL"))
}

func (x *Context) intOfJSON(v types.Value, unsigned bool) (int64, error) {
	j := json.Open(v.Bytes())
	switch j.Type() {
	case json.TypeInteger:
		return j.Int(), nil
	case json.TypeUnsigned:
		return int64(j.Uint()), nil
	case json.TypeDouble:
		return x.intOfDouble(j.Double(), false)
	case json.TypeBoolean:
		if j.Bool() {
			return 1, nil
		}
		return 0, nil
	case json.TypeString:
		return x.intOfText(j.Str(), unsigned)
	case json.TypeDecimal:
		d, _ := j.Decimal()
		return x.intOfDecimal(d, unsigned)
	}
	return 0, x.Fault(errJSONCast("INTEGER"))
}

// jsonTemporal returns the date or time that a document is, as SQL value.
func jsonTemporal(v types.Value) (types.Value, *types.Type, bool) {
	j := json.Open(v.Bytes())
	switch j.Type() {
	case json.TypeDate:
		return types.NewDate(j.DateTime().Truncate()), &classTypes[types.ClassDate], true
	case json.TypeDateTime:
		return types.NewDateTime(j.DateTime()), &classTypes[types.ClassDateTime], true
	case json.TypeTime:
		return types.NewTime(j.Time()), &classTypes[types.ClassTime], true
	}
	return types.Null, nil, false
}

// jsonParse reads text as a document. where names the place for error 3141.
func (x *Context) jsonParse(v types.Value, from *types.Type, where string) (types.Value, error) {
	if v.Class() == types.ClassJSON {
		return v, nil
	}
	if from != nil && !isString(from) {
		return types.Null, sqlerr.Newf(sqlerr.InvalidTypeForJSON, "Invalid data type for JSON data%s; a JSON string "+
			"or JSON type is required.", where)
	}
	text := v.Bytes()
	if from != nil && from.IsBlob() {
		return types.Null, sqlerr.New(sqlerr.InvalidJSONCharset, "binary")
	}
	if from != nil {
		text = x.utf8(text, from.Charset())
	}
	doc, err := x.parseJSON(x.Scratch(), text)
	if err != nil {
		return types.Null, jsonTextError(err, where)
	}
	return types.NewJSON(x.Keep(doc)), nil
}

const (
	// elementBytes is about what the parser keeps for each value and name of a text.
	elementBytes = 100
	// countedText is from which size on what parsing takes is counted, in bytes.
	countedText = 64 << 10
)

// parseJSON parses a text. What the parser keeps of a large one, many times its size where values are
// short, is counted meanwhile. Error: 3170 besides those of the text.
func (x *Context) parseJSON(dst, text []byte) (doc []byte, err error) {
	if len(text) < countedText {
		return json.Parse(dst, text)
	}
	work := int64(len(text))
	for _, c := range []byte(",:[{") {
		work += elementBytes * int64(bytes.Count(text, []byte{c}))
	}
	err = x.during(work, func() error {
		b := json.Builder{Stop: x.Check}
		if err := b.Parse(text); err != nil {
			return err
		}
		var err error
		doc, err = b.Finish(dst)
		return err
	})
	return doc, err
}

func jsonTextError(err error, where string) error {
	if e, ok := err.(*json.SyntaxError); ok {
		return sqlerr.Newf(sqlerr.InvalidJSONTextInParam, "Invalid JSON text%s: \"%s\" at position %d.", where,
			e.Reason, e.Offset)
	}
	return err // with its own number, or that the statement was interrupted
}

// jsonValue makes a document of any SQL value: text becomes a JSON string, bytes
// and types that JSON lacks opaque values. NULL becomes null.
func (x *Context) jsonValue(v types.Value, from *types.Type, isBool bool) (types.Value, error) {
	if v.Class() == types.ClassJSON {
		return v, nil
	}
	b := x.jsonBuilder()
	defer x.keepBuilder()
	if err := x.addJSON(b, v, from, isBool); err != nil {
		b.Reset()
		return types.Null, err
	}
	doc, err := b.Finish(x.Scratch())
	if err != nil {
		return types.Null, jsonTextError(err, "")
	}
	return types.NewJSON(x.Keep(doc)), nil
}

// jsonBuilder returns the context's builder of scalars, which is empty between uses.
func (x *Context) jsonBuilder() *json.Builder {
	if x.builder == nil {
		x.builder = &json.Builder{}
	}
	return x.builder
}

// keepBuilder gives the builder up if it has become large.
func (x *Context) keepBuilder() {
	if x.builder != nil && x.builder.MemoryBytes() > keepBytes {
		x.builder = nil
	}
}

// reserveText makes room for the text of a document, if it is large.
func (x *Context) reserveText(dst []byte, doc types.Value) ([]byte, error) {
	if len(doc.Bytes()) < countedText {
		return dst, nil
	}
	dst, _, err := x.reserve(dst, json.Open(doc.Bytes()).TextBound(), math.MaxInt)
	return dst, err
}

// addJSON adds an SQL value to a document under construction.
func (x *Context) addJSON(b *json.Builder, v types.Value, from *types.Type, isBool bool) error {
	switch v.Class() {
	case types.ClassNull:
		b.Null()
	case types.ClassInt:
		if isBool {
			b.Bool(v.Int() != 0)
		} else {
			b.Int(v.Int())
		}
	case types.ClassUint:
		return x.addJSONUint(b, v, from)
	case types.ClassFloat:
		return addJSONDouble(b, float64(v.Float()))
	case types.ClassDouble:
		return addJSONDouble(b, v.Double())
	case types.ClassDecimal:
		b.Decimal(v.Decimal())
	case types.ClassDate:
		b.DateTime(json.FieldDate, v.DateTime())
	case types.ClassDateTime:
		b.DateTime(json.FieldDateTime, v.DateTime())
	case types.ClassTimestamp:
		b.DateTime(json.FieldTimestamp, x.wallClock(v))
	case types.ClassTime:
		b.Time(v.Time())
	case types.ClassJSON:
		b.Value(json.Open(v.Bytes()))
	case types.ClassBytes:
		return x.addJSONText(b, v.Bytes(), from)
	}
	return nil
}

// addJSONDouble refuses what overflowed: documents have finite numbers only.
func addJSONDouble(b *json.Builder, f float64) error {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return errOutOfRange("DOUBLE", string(types.AppendDouble(nil, f)))
	}
	b.Double(f)
	return nil
}

func (x *Context) addJSONUint(b *json.Builder, v types.Value, from *types.Type) error {
	switch {
	case from == nil || from.IsInteger() || from.Kind == types.KindYear:
		b.Uint(v.Uint())
	case from.Kind == types.KindBit:
		b.Opaque(json.FieldBit, x.text(v, from))
	default:
		return x.addJSONText(b, x.text(v, from), from)
	}
	return nil
}

func (x *Context) addJSONText(b *json.Builder, s []byte, from *types.Type) error {
	cs := types.CharsetUTF8MB4
	if from != nil {
		cs = from.Charset()
	}
	if cs == types.CharsetBinary {
		b.Opaque(jsonBlobField(from), s)
		return nil
	}
	s = x.utf8(s, cs)
	if at := types.CharsetUTF8MB4.InvalidAt(s); at >= 0 {
		return errInvalidCharacters(types.CharsetUTF8MB4, s[at:])
	}
	b.String(s)
	return nil
}

func jsonBlobField(from *types.Type) json.FieldType {
	switch from.Kind {
	case types.KindVarBinary:
		return json.FieldVarchar
	case types.KindBinary:
		return json.FieldString
	case types.KindTinyBlob:
		return json.FieldTinyBlob
	case types.KindMediumBlob:
		return json.FieldMediumBlob
	case types.KindLongBlob:
		return json.FieldLongBlob
	}
	return json.FieldBlob
}

func errInvalidCharacters(cs types.Charset, s []byte) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.InvalidCharacterString, "Invalid %s character string: '%X'", cs, s[:min(len(s), 6)])
}
