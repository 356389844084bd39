// Package schema validates JSON documents by JSON Schema, draft 4, as MySQL does.
//
// A schema is read as it is, in the binary form of package json; what it says wrongly counts for nothing. References lead to places of
// the schema itself. The first requirement that a document fails is told: of a value its type first, then what its type asks for, then
// what holds for every value; members and elements in the order of the document, before what is asked of the whole.
package schema

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types/json"
)

// Failure is the requirement that a document does not meet.
type Failure struct {
	Keyword  string
	Document string // where in the document, as #/a/b
	Schema   string // where in the schema
}

// maxDepth ends references that lead in circles.
const maxDepth = 1000

// ErrReference is the error of a schema that refers to another document.
var ErrReference = sqlerr.New(sqlerr.NotSupportedYet, "references in JSON Schema")

// A Validator validates by one schema. It belongs to one task.
type Validator struct {
	root   json.Value
	opt    Options
	err    error
	depth  int
	active map[[2]string]bool // references that are being followed, by where they lead and the place in the document
}

// Options are what a validator needs of others.
type Options struct {
	// Stop is asked for each value, and now and then by what takes long; an error ends the validation. nil: nothing does.
	Stop func() error
	// Match reports whether a pattern is found in a text. What is no pattern is found everywhere.
	Match func(pattern, text []byte) (bool, error)
}

// New returns a validator. Error: ErrReference. The schema's bytes must stay as they are.
func New(root json.Value, opt Options) (*Validator, error) {
	if refersOutside(root) {
		return nil, ErrReference
	}
	return &Validator{root: root, opt: opt}, nil
}

// stopped asks whether to go on.
func (d *Validator) stopped() bool {
	if d.err == nil && d.opt.Stop != nil {
		d.err = d.opt.Stop()
	}
	return d.err != nil
}

// elementsBetweenStops is how many elements of a list in a schema are looked at between two questions whether to go on.
const elementsBetweenStops = 64

// ended asks at some elements of a list in a schema whether to end.
func (d *Validator) ended(i int) bool {
	return i%elementsBetweenStops == elementsBetweenStops-1 && d.stopped()
}

// refersOutside reports whether a reference in a schema leads out of it.
func refersOutside(v json.Value) bool {
	if ref, ok := member(v, "$ref"); ok && ref.Type() == json.TypeString && !bytes.HasPrefix(ref.Str(), []byte("#")) {
		return true
	}
	for i := range v.Len() {
		if e, ok := v.Index(i); v.IsContainer() && ok && refersOutside(e) {
			return true
		}
	}
	return false
}

// Validate returns what a document fails first; nil: nothing.
func (d *Validator) Validate(v json.Value) (*Failure, error) {
	d.err, d.depth, d.active = nil, 0, map[[2]string]bool{}
	f := d.value(d.root, "#", v, "#")
	return f, d.err
}

func member(v json.Value, key string) (json.Value, bool) {
	if !v.IsObject() {
		return json.Value{}, false
	}
	return v.Member([]byte(key))
}

// place appends a token to a pointer in the form of a URI's fragment.
func place(at string, token []byte) string {
	const hex = "0123456789ABCDEF"
	out := append([]byte(at), '/')
	for _, c := range token {
		switch {
		case c == '~':
			out = append(out, "~0"...)
		case c == '/':
			out = append(out, "~1"...)
		case c >= '0' && c <= '9', c|32 >= 'a' && c|32 <= 'z', c == '-', c == '.', c == '_':
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

func numbered(at string, i int) string { return at + "/" + strconv.Itoa(i) }

// resolve follows a schema's references. ok is false for one that leads nowhere: it asks for nothing.
func (d *Validator) resolve(s json.Value, at string) (json.Value, string, bool) {
	for range maxDepth {
		ref, ok := member(s, "$ref")
		if !ok || ref.Type() != json.TypeString {
			return s, at, s.IsObject()
		}
		s, at = d.root, "#"
		_, tokens, some := bytes.Cut(ref.Str(), []byte("/"))
		for token := range bytes.SplitSeq(tokens, []byte("/")) {
			if !some {
				break
			}
			token = bytes.ReplaceAll(bytes.ReplaceAll(token, []byte("~1"), []byte("/")), []byte("~0"), []byte("~"))
			if s.IsArray() {
				i, err := strconv.Atoi(string(token))
				if err != nil || i < 0 {
					return s, at, false
				}
				if s, ok = s.Index(i); !ok {
					return s, at, false
				}
			} else if s, ok = member(s, string(token)); !ok {
				return s, at, false
			}
			at = place(at, token)
		}
	}
	return s, at, false
}

// value validates a value by a schema.
func (d *Validator) value(s json.Value, at string, v json.Value, where string) *Failure {
	from := at
	s, at, ok := d.resolve(s, at)
	if !ok || d.err != nil || d.depth >= maxDepth {
		return nil
	}
	if from != at {
		// A reference that leads back to what is being validated asks for nothing more.
		key := [2]string{at, where}
		if d.active[key] {
			return nil
		}
		d.active[key] = true
		defer delete(d.active, key)
	}
	if d.stopped() {
		return nil
	}
	d.depth++
	defer func() { d.depth-- }()
	fail := func(keyword string) *Failure { return &Failure{Keyword: keyword, Document: where, Schema: at} }
	if t, ok := member(s, "type"); ok && !d.hasType(t, v) {
		return fail("type")
	}
	var f *Failure
	switch k := v.Type(); {
	case isNumber(k):
		f = number(s, v, fail)
	case k == json.TypeArray:
		f = d.array(s, at, v, where, fail)
	case k == json.TypeObject:
		f = d.object(s, at, v, where, fail)
	case k == json.TypeString:
		f = d.text(s, v, fail)
	}
	if f != nil || d.err != nil {
		return f
	}
	return d.combined(s, at, v, where, fail)
}

func isNumber(k json.Type) bool {
	return k == json.TypeInteger || k == json.TypeUnsigned || k == json.TypeDouble || k == json.TypeDecimal
}

// hasType reports whether a value is of a type, or of one of several. Dates and what else JSON lacks are strings.
func (d *Validator) hasType(t, v json.Value) bool {
	if t.IsArray() {
		for i := range t.Len() {
			if e, ok := t.Index(i); d.ended(i) || ok && !e.IsArray() && d.hasType(e, v) {
				return true
			}
		}
		return false
	}
	if t.Type() != json.TypeString {
		return false
	}
	k := v.Type()
	switch string(t.Str()) {
	case "null":
		return k == json.TypeNull
	case "boolean":
		return k == json.TypeBoolean
	case "object":
		return k == json.TypeObject
	case "array":
		return k == json.TypeArray
	case "integer":
		return k == json.TypeInteger || k == json.TypeUnsigned
	case "number":
		return isNumber(k)
	case "string":
		return k >= json.TypeString && k != json.TypeObject && k != json.TypeArray && k != json.TypeBoolean
	}
	return false
}

func number(s, v json.Value, fail func(string) *Failure) *Failure {
	if m, ok := member(s, "minimum"); ok && isNumber(m.Type()) {
		if c := json.Compare(v, m); c < 0 || c == 0 && isTrue(s, "exclusiveMinimum") {
			return fail("minimum")
		}
	}
	if m, ok := member(s, "maximum"); ok && isNumber(m.Type()) {
		if c := json.Compare(v, m); c > 0 || c == 0 && isTrue(s, "exclusiveMaximum") {
			return fail("maximum")
		}
	}
	if m, ok := member(s, "multipleOf"); ok && isNumber(m.Type()) && asDouble(m) > 0 {
		q := math.Abs(asDouble(v)) / asDouble(m)
		whole := math.Floor(q + 0.5)
		if diff := math.Abs(whole - q); diff > (q+whole)*0x1p-52 && diff >= 0x1p-1022 {
			return fail("multipleOf")
		}
	}
	return nil
}

func isTrue(s json.Value, key string) bool {
	v, ok := member(s, key)
	return ok && v.Type() == json.TypeBoolean && v.Bool()
}

func asDouble(v json.Value) float64 {
	switch v.Type() {
	case json.TypeInteger:
		return float64(v.Int())
	case json.TypeUnsigned:
		return float64(v.Uint())
	case json.TypeDecimal:
		d, _ := v.Decimal()
		return d.Float64()
	}
	return v.Double()
}

// limit is a count that a schema gives.
func limit(s json.Value, key string) (int64, bool) {
	v, ok := member(s, key)
	switch {
	case !ok:
	case v.Type() == json.TypeInteger && v.Int() >= 0:
		return v.Int(), true
	case v.Type() == json.TypeUnsigned:
		return int64(min(v.Uint(), math.MaxInt64)), true
	}
	return 0, false
}

// within checks a count against a lower and an upper limit.
func within(s json.Value, n int, low, high string, fail func(string) *Failure) *Failure {
	if m, ok := limit(s, low); ok && int64(n) < m {
		return fail(low)
	}
	if m, ok := limit(s, high); ok && int64(n) > m {
		return fail(high)
	}
	return nil
}

func (d *Validator) text(s, v json.Value, fail func(string) *Failure) *Failure {
	if f := within(s, utf8.RuneCount(v.Str()), "minLength", "maxLength", fail); f != nil {
		return f
	}
	if p, ok := member(s, "pattern"); ok && p.Type() == json.TypeString && !d.matches(p.Str(), v.Str()) {
		return fail("pattern")
	}
	return nil
}

// matches reports whether a pattern is found in a text.
func (d *Validator) matches(pattern, text []byte) bool {
	if d.err != nil {
		return true
	}
	found, err := d.opt.Match(pattern, text)
	d.err = err
	return found || err != nil
}

// repeated returns the first element that is equal to one before it, or -1. Memory: four bytes for each element.
func (d *Validator) repeated(v json.Value) int {
	order := make([]int32, v.Len())
	for i := range order {
		order[i] = int32(i)
	}
	compare := func(a, b int32) int {
		x, _ := v.Index(int(a))
		y, _ := v.Index(int(b))
		return json.Compare(x, y)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		if d.stopped() {
			return 0
		}
		return compare(a, b)
	})
	first := -1
	for i := 1; i < len(order) && d.err == nil; i++ {
		if at := int(order[i]); (first < 0 || at < first) && compare(order[i-1], order[i]) == 0 {
			first = at
		}
	}
	return first
}

func (d *Validator) array(s json.Value, at string, v json.Value, where string, fail func(string) *Failure) *Failure {
	items, hasItems := member(s, "items")
	more, hasMore := member(s, "additionalItems")
	repeated := -1
	if isTrue(s, "uniqueItems") {
		repeated = d.repeated(v)
	}
	for i := range v.Len() {
		e, ok := v.Index(i)
		if !ok {
			continue
		}
		var f *Failure
		switch {
		case !hasItems:
		case !items.IsArray():
			f = d.value(items, at+"/items", e, numbered(where, i))
		case i < items.Len():
			one, _ := items.Index(i)
			f = d.value(one, numbered(at+"/items", i), e, numbered(where, i))
		case hasMore && more.IsObject():
			f = d.value(more, at+"/additionalItems", e, numbered(where, i))
		case hasMore && more.Type() == json.TypeBoolean && !more.Bool():
			f = &Failure{Keyword: "additionalItems", Document: numbered(where, i), Schema: at}
		}
		if f != nil || d.err != nil {
			return f
		}
		if i == repeated {
			return &Failure{Keyword: "uniqueItems", Document: numbered(where, i), Schema: at}
		}
	}
	return within(s, v.Len(), "minItems", "maxItems", fail)
}

func (d *Validator) object(s json.Value, at string, v json.Value, where string, fail func(string) *Failure) *Failure {
	for i := range v.Len() {
		key, _ := v.Key(i)
		e, ok := v.Index(i)
		if !ok {
			continue
		}
		if f := d.member(s, at, key, e, place(where, key)); f != nil || d.err != nil {
			return f
		}
	}
	if r, ok := member(s, "required"); ok && r.IsArray() {
		for i := 0; i < r.Len() && !d.ended(i); i++ {
			if name, ok := r.Index(i); ok && name.Type() == json.TypeString {
				if _, has := v.Member(name.Str()); !has {
					return fail("required")
				}
			}
		}
	}
	if f := within(s, v.Len(), "minProperties", "maxProperties", fail); f != nil {
		return f
	}
	return d.dependencies(s, at, v, where, fail)
}

// member validates a member of an object.
func (d *Validator) member(s json.Value, at string, key []byte, e json.Value, where string) *Failure {
	known := false
	var own *Failure // of its own schema; a pattern's is told before
	if props, ok := member(s, "properties"); ok && props.IsObject() {
		if p, ok := props.Member(key); ok {
			known = true
			own = d.value(p, place(at+"/properties", key), e, where)
		}
	}
	if patterns, ok := member(s, "patternProperties"); ok && patterns.IsObject() {
		for i := range patterns.Len() {
			pattern, _ := patterns.Key(i)
			p, ok := patterns.Index(i)
			if !ok || !d.matches(pattern, key) {
				continue
			}
			known = true
			if own != nil || d.value(p, place(at+"/patternProperties", pattern), e, where) != nil {
				return &Failure{Keyword: "patternProperties", Document: where, Schema: at}
			}
		}
	}
	more, ok := member(s, "additionalProperties")
	switch {
	case own != nil:
		return own
	case known || !ok:
	case more.IsObject():
		return d.value(more, at+"/additionalProperties", e, where)
	case more.Type() == json.TypeBoolean && !more.Bool():
		return &Failure{Keyword: "additionalProperties", Document: where, Schema: at}
	}
	return nil
}

func (d *Validator) dependencies(s json.Value, at string, v json.Value, where string, fail func(string) *Failure) *Failure {
	deps, ok := member(s, "dependencies")
	if !ok || !deps.IsObject() {
		return nil
	}
	for i := 0; i < deps.Len() && !d.ended(i); i++ {
		key, _ := deps.Key(i)
		dep, ok := deps.Index(i)
		if _, has := v.Member(key); !ok || !has {
			continue
		}
		if dep.IsObject() {
			if d.value(dep, place(at+"/dependencies", key), v, where) != nil {
				return fail("dependencies")
			}
			continue
		}
		for k := 0; k < dep.Len() && !d.ended(k); k++ {
			name, ok := dep.Index(k)
			if !ok || !dep.IsArray() || name.Type() != json.TypeString {
				continue
			}
			if _, has := v.Member(name.Str()); !has {
				return fail("dependencies")
			}
		}
	}
	return nil
}

// combined validates what a schema asks of every value.
func (d *Validator) combined(s json.Value, at string, v json.Value, where string, fail func(string) *Failure) *Failure {
	if list, ok := member(s, "enum"); ok && list.IsArray() && list.Len() > 0 {
		found := false
		for i := 0; i < list.Len() && !found && !d.ended(i); i++ {
			e, ok := list.Index(i)
			found = ok && json.Compare(e, v) == 0
		}
		if !found {
			return fail("enum")
		}
	}
	for _, keyword := range [...]string{"allOf", "anyOf", "oneOf"} {
		list, ok := member(s, keyword)
		if !ok || !list.IsArray() || list.Len() == 0 {
			continue
		}
		met := 0
		for i := range list.Len() {
			if e, ok := list.Index(i); ok && d.value(e, numbered(at+"/"+keyword, i), v, where) == nil {
				met++
			}
		}
		if keyword == "allOf" && met < list.Len() || met == 0 || keyword == "oneOf" && met > 1 {
			return fail(keyword)
		}
	}
	if not, ok := member(s, "not"); ok && not.IsObject() && d.value(not, at+"/not", v, where) == nil {
		return fail("not")
	}
	return nil
}
