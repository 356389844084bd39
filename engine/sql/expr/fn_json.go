package expr

import (
	"bytes"
	"math"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// The JSON functions that read documents. Those that make and change them are in fn_jsonedit.go.

func init() {
	registerJSONReads()
	registerJSONTexts()
	registerJSONTests()
	registerJSONSearch()
	registerJSONEdits()
	registerJSONMakers()
}

// jsonPaths are the paths of a call's constant arguments, by argument; nil for the others.
type jsonPaths []*json.Path

// preparePaths parses the constant paths among the arguments from first on, every step-th. What is no path is an error when
// the call runs.
func preparePaths(first, step int) func(*Binder, *Call) error {
	return func(_ *Binder, c *Call) error {
		paths := make(jsonPaths, len(c.Args))
		for i := first; i < len(c.Args); i += step {
			if v, ok := Literal(c.Args[i]); ok && v.Class() == types.ClassBytes {
				if p, err := json.ParsePath(v.Bytes()); err == nil {
					paths[i] = p
				}
			}
		}
		c.Data = paths
		return nil
	}
}

// path returns the path that argument i is.
func (c *Call) path(a []types.Value, i int) (*json.Path, error) {
	if paths, ok := c.Data.(jsonPaths); ok && paths[i] != nil {
		return paths[i], nil
	}
	v := a[i]
	if v.Class() == types.ClassJSON {
		return json.ParsePath(json.Open(v.Bytes()).Str())
	}
	return json.ParsePath(v.Bytes())
}

// singlePath is path for functions that take no wildcards.
func (c *Call) singlePath(a []types.Value, i int) (*json.Path, error) {
	p, err := c.path(a, i)
	if err == nil && p.MultiMatch() {
		return nil, json.ErrPathWildcard
	}
	return p, err
}

func openJSON(v types.Value) json.Value { return json.Open(v.Bytes()) }

// documentOf returns a value of a document as a document of its own.
func (x *Context) documentOf(v json.Value) types.Value {
	return types.NewJSON(x.Keep(v.AppendDocument(x.Scratch())))
}

// build makes a document by what f does with a builder.
func (x *Context) build(f func(b *json.Builder) error) (types.Value, error) {
	b := x.jsonBuilder()
	defer x.keepBuilder()
	if err := f(b); err != nil {
		b.Reset()
		return types.Null, err
	}
	doc, err := b.Finish(x.Scratch())
	if err != nil {
		return types.Null, err
	}
	return types.NewJSON(x.Keep(doc)), nil
}

func registerJSONReads() {
	d := definer(catJSON)
	d.def("JSON_EXTRACT(doc, path, ...)", Func{
		Args: []ArgKind{ArgJSON, ArgUTF8}, Min: 2, Max: -1, Result: ResultJSON, Prepare: preparePaths(1, 1), Row: jsonExtract,
	})
	d.def("JSON_KEYS(doc); JSON_KEYS(doc, path)", Func{
		Args: []ArgKind{ArgJSON, ArgUTF8}, Min: 1, Max: 2, Result: ResultJSON, Prepare: preparePaths(1, 1),
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			v, ok, err := c.target(a, 1)
			if err != nil || !ok || !v.IsObject() {
				return types.Null, err
			}
			held := holding{x: x}
			defer held.done()
			return x.build(func(b *json.Builder) error {
				b.BeginArray()
				for i := range v.Len() {
					key, _ := v.Key(i)
					if err := held.add(builderCopies*len(key) + elementBytes); err != nil {
						return err
					}
					b.String(key)
				}
				b.EndArray()
				return nil
			})
		},
	})
	d.def("JSON_LENGTH(doc); JSON_LENGTH(doc, path)", Func{
		Args: []ArgKind{ArgJSON, ArgUTF8}, Min: 1, Max: 2, Result: ResultInt, Prepare: preparePaths(1, 1),
		Row: func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
			v, ok, err := c.target(a, 1)
			if err != nil || !ok {
				return types.Null, err
			}
			return types.NewInt(int64(v.Len())), nil
		},
	})
	d.def("JSON_DEPTH(doc)", Func{
		Args: []ArgKind{ArgJSON}, Result: ResultInt, NotNull: true,
		Row: intFunc(func(_ *Call, a []types.Value) int64 { return int64(openJSON(a[0]).Depth()) }),
	})
	d.def("JSON_STORAGE_SIZE(doc)", Func{
		Args: []ArgKind{ArgJSON}, Result: ResultInt, NotNull: true,
		Row: intFunc(func(_ *Call, a []types.Value) int64 { return int64(len(a[0].Bytes())) }),
	})
	d.def("JSON_STORAGE_FREE(doc)", Func{
		Args: []ArgKind{ArgJSON}, Result: ResultInt, NotNull: true,
		Row: intFunc(func(_ *Call, a []types.Value) int64 { return int64(openJSON(a[0]).Free()) }),
	})
}

// target is what an optional path argument names in the document that argument 0 is.
func (c *Call) target(a []types.Value, i int) (v json.Value, ok bool, err error) {
	v = openJSON(a[0])
	if i >= len(a) {
		return v, true, nil
	}
	p, err := c.singlePath(a, i)
	if err != nil {
		return v, false, err
	}
	v, ok = p.Get(v)
	return v, ok, nil
}

// jsonExtract gives the one value that one path without wildcards names, and an array of all matches otherwise.
func jsonExtract(x *Context, c *Call, a []types.Value) (types.Value, error) {
	doc := openJSON(a[0])
	if len(a) == 2 {
		p, err := c.path(a, 1)
		if err != nil {
			return types.Null, err
		}
		if !p.MultiMatch() {
			v, ok := p.Get(doc)
			if !ok {
				return types.Null, nil
			}
			return x.documentOf(v), nil
		}
	}
	found, held := false, holding{x: x}
	defer held.done()
	v, err := x.build(func(b *json.Builder) error {
		b.BeginArray()
		for i := 1; i < len(a); i++ {
			p, err := c.path(a, i)
			if err != nil {
				return err
			}
			n, err := x.collect(b, p, doc, &held)
			if err != nil {
				return err
			}
			found = found || n > 0
		}
		b.EndArray()
		return nil
	})
	if err != nil || !found {
		return types.Null, err
	}
	return v, nil
}

// collect adds what a path finds in a document to an array that is being built, and returns how many values that are.
// Many values may have the same bytes in them: what they take is counted into held, which the caller gives back when
// the array is made.
func (x *Context) collect(b *json.Builder, p *json.Path, doc json.Value, held *holding) (n int, err error) {
	wrong := p.Each(doc, x.pathLimits(), func(v json.Value) bool {
		n++
		err = held.add(builderCopies*v.Size() + elementBytes)
		b.Value(v)
		return err == nil
	})
	if err == nil {
		err = wrong
	}
	return n, err
}

// builderCopies is how many times a builder has the bytes of a document in it, besides the document.
const builderCopies = 2

// pathStepsWork is what the steps of a path between two questions whether to go on count for.
const pathStepsWork = 64 << 10

// limits are those of following a path, for the context that they belong to.
type limits struct {
	json.Limits
	of *Context
}

// pathLimits are those of following a path that may match several places.
func (x *Context) pathLimits() *json.Limits {
	if x.limits == nil || x.limits.of != x {
		x.limits = &limits{json.Limits{Stop: func() error { return x.Worked(pathStepsWork) }, Account: x.Account}, x}
	}
	return &x.limits.Limits
}

func registerJSONTexts() {
	d := definer(catJSON)
	d.def("JSON_QUOTE(s)", Func{
		Prepare: func(_ *Binder, c *Call) error { return refuseForQuotes("json_quote", c.Given[0]) },
		Args:    []ArgKind{ArgUTF8}, NotNull: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			return textType(min(6*textLength(c.Args[0].Type())+2, maxText), types.CollationUTF8MB4Bin), nil
		},
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			s := a[0].Bytes()
			dst, _, err := x.reserve(dst, json.QuotedLen(s), math.MaxInt)
			if err != nil {
				return nil, false, err
			}
			return json.AppendQuoted(dst, s), true, nil
		}),
	})
	d.overloads("JSON_UNQUOTE(x)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) == 1 && args[0].Type().Kind == types.KindJSON {
			return unquoteDocument, args, nil
		}
		if len(args) == 1 {
			if err := refuseForQuotes("json_unquote", args[0]); err != nil {
				return nil, nil, err
			}
		}
		return unquoteText, args, nil
	})
	d.def("JSON_TYPE(doc)", Func{
		Args: []ArgKind{ArgJSON}, Result: resultJSONText(51), NotNull: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewString(openJSON(a[0]).Type().String()), nil
		},
	})
	d.def("JSON_PRETTY(doc)", Func{
		Args: []ArgKind{ArgJSON}, Result: resultJSONText(maxText),
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			out, ok, err := x.appendPretty(dst, openJSON(a[0]), x.packetLimit())
			if err != nil {
				return nil, false, err
			}
			return x.limited(c, out, ok)
		}),
	})
	d.overloads("JSON_VALID(x)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		f := &Func{Name: "json_valid", Args: []ArgKind{ArgAny}, Boolean: true, KeepNulls: true, Result: ResultBool, Row: jsonValid}
		return f, args, nil
	})
}

// refuseForQuotes is the error of JSON_QUOTE and JSON_UNQUOTE for what is no text.
func refuseForQuotes(name string, n Node) error {
	switch t := n.Type(); {
	case t.IsBlob():
		return sqlerr.New(sqlerr.InvalidJSONCharset, "binary")
	case t.Kind != types.KindNull && t.Kind != types.KindJSON && !textual(n):
		return sqlerr.New(sqlerr.IncorrectType, "1", name)
	}
	return nil
}

// jsonValid looks at text; other types than text and JSON are no documents.
func jsonValid(x *Context, c *Call, a []types.Value) (types.Value, error) {
	switch t := c.Args[0].Type(); {
	case a[0].IsNull() && (t.Kind == types.KindNull || isString(t) || t.Kind == types.KindJSON):
		return types.Null, nil
	case a[0].Class() == types.ClassJSON:
		return boolValue(true), nil
	case a[0].Class() != types.ClassBytes || c.Args[0].Type().IsBlob():
		return boolValue(false), nil
	}
	_, err := x.parseJSON(nil, c.argText(a, 0))
	if _, wrong := err.(*json.SyntaxError); err != nil && !wrong {
		return types.Null, err // nobody knows what follows
	}
	return boolValue(err == nil), nil
}

// argText returns a text argument as UTF-8.
func (c *Call) argText(a []types.Value, i int) []byte {
	s := a[i].Bytes()
	if cs := c.argCharset(i); !cs.IsUTF8() && cs != types.CharsetBinary && !(cs.HasASCII() && isASCII(s)) {
		s, _ = types.Convert(nil, s, cs, types.CharsetUTF8MB4)
	}
	return s
}

var (
	unquoteDocument = &Func{
		Name: "json_unquote", Args: []ArgKind{ArgAny}, NotNull: true,
		Result: ResultOf(types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}),
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			dst, err := x.reserveText(dst, a[0])
			if err != nil {
				return nil, false, err
			}
			return openJSON(a[0]).AppendUnquoted(dst), true, nil
		}),
	}
	unquoteText = &Func{
		Name: "json_unquote", Args: []ArgKind{ArgUTF8},
		Result: ResultOf(types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}),
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			s := a[0].Bytes()
			if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
				return a[0], nil
			}
			doc, err := x.parseJSON(x.Scratch(), s)
			if err != nil {
				return types.Null, jsonTextError(err, " in argument 1 to function json_unquote")
			}
			return types.NewBytes(json.Open(x.Keep(doc)).Str()), nil
		},
	}
)

func registerJSONTests() {
	d := definer(catJSON)
	test := func(usage string, kinds []ArgKind, f func(c *jsonComparer, a, b json.Value) bool) {
		d.def(usage, Func{
			Args: kinds, Boolean: true, NotNull: true, Result: ResultBool,
			Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
				return x.compareJSON(f, openJSON(a[0]), openJSON(a[1]))
			},
		})
	}
	test("JSON_OVERLAPS(a, b)", []ArgKind{ArgJSON, ArgJSON}, (*jsonComparer).overlaps)
	test("MEMBER OF(array)", []ArgKind{ArgJSONValue, ArgJSON}, (*jsonComparer).memberOf)
	d.def("JSON_CONTAINS(doc, candidate); JSON_CONTAINS(doc, candidate, path)", Func{
		Args: []ArgKind{ArgJSON, ArgJSON, ArgUTF8}, Min: 2, Max: 3, Boolean: true, Result: ResultBool, Prepare: preparePaths(2, 1),
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			v, ok, err := c.target(a, 2)
			if err != nil || !ok {
				return types.Null, err
			}
			return x.compareJSON((*jsonComparer).contains, v, openJSON(a[1]))
		},
	})
	d.def("JSON_CONTAINS_PATH(doc, {'one' | 'all'}, path, ...)", Func{
		Args: []ArgKind{ArgJSON, ArgUTF8, ArgUTF8}, Min: 3, Max: -1, Boolean: true, Result: ResultBool, Prepare: preparePaths(2, 1),
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			one, err := oneOrAll(a[1].Bytes(), c.Func.Name)
			if err != nil {
				return types.Null, err
			}
			doc := openJSON(a[0])
			for i := 2; i < len(a); i++ {
				p, err := c.path(a, i)
				if err != nil {
					return types.Null, err
				}
				_, ok, err := p.First(doc, x.pathLimits())
				if err != nil {
					return types.Null, err
				}
				if ok == one {
					return boolValue(one), nil
				}
			}
			return boolValue(!one), nil
		},
	})
}

// compareJSON gives what f says of two values.
func (x *Context) compareJSON(f func(c *jsonComparer, a, b json.Value) bool, a, b json.Value) (types.Value, error) {
	c := x.comparer
	if c == nil {
		c = &jsonComparer{}
		x.comparer = c
	}
	c.x, c.err = x, nil
	is := f(c, a, b)
	return boolValue(is), c.err
}

// oneOrAll reads the argument of that name.
func oneOrAll(s []byte, function string) (one bool, err error) {
	switch string(upperASCII(append([]byte(nil), s...), 0)) {
	case "ONE":
		return true, nil
	case "ALL":
		return false, nil
	}
	return false, sqlerr.New(sqlerr.JSONBadOneOrAllArg, function)
}

func registerJSONSearch() {
	definer(catJSON).def("JSON_SEARCH(doc, {'one' | 'all'}, pattern, escape, path, ...)", Func{
		Args: []ArgKind{ArgJSON, ArgUTF8, ArgUTF8, ArgUTF8, ArgUTF8}, Min: 3, Max: -1, KeepNulls: true, Result: ResultJSON,
		Prepare: preparePaths(4, 1), Row: jsonSearch,
	})
}

func jsonSearch(x *Context, c *Call, a []types.Value) (types.Value, error) {
	for i, v := range a {
		if v.IsNull() && i != 3 {
			return types.Null, nil
		}
	}
	one, err := oneOrAll(a[1].Bytes(), c.Func.Name)
	if err != nil {
		return types.Null, err
	}
	escape := '\\'
	if len(a) > 3 && len(a[3].Bytes()) > 0 {
		e := []rune(string(a[3].Bytes()))
		if len(e) != 1 {
			return types.Null, errWrongArguments("ESCAPE")
		}
		escape = e[0]
	}
	doc, held := openJSON(a[0]), holding{x: x}
	defer held.done()
	s := jsonSearcher{x: x, one: one, path: []byte{'$'}, match: func(text []byte) (bool, error) {
		return likeSearch(x, text, a[2].Bytes(), escape)
	}}
	if s.starts, err = x.searchStarts(c, a, doc, &held); err != nil {
		return types.Null, err
	}
	var first []byte
	n := 0
	v, err := x.build(func(b *json.Builder) error {
		s.found = func(path []byte) error {
			switch n++; n {
			case 1:
				first = bytes.Clone(path)
			case 2:
				b.BeginArray()
				b.String(first)
				fallthrough
			default:
				b.String(path)
			}
			return held.add(builderCopies*len(path) + elementBytes)
		}
		s.search(doc, len(a) <= 4)
		switch {
		case s.err != nil:
			return s.err
		case n > 1:
			b.EndArray()
		default:
			b.String(first)
		}
		return nil
	})
	if err != nil || n == 0 {
		return types.Null, err
	}
	return v, nil
}

// placeBytes is what a place takes in a set.
const placeBytes = 64

// searchStarts are the places that the paths of JSON_SEARCH name.
func (x *Context) searchStarts(c *Call, a []types.Value, doc json.Value, held *holding) (starts jsonPlaces, err error) {
	if len(a) <= 4 {
		return nil, nil
	}
	starts = jsonPlaces{}
	for i := 4; i < len(a); i++ {
		p, err := c.path(a, i)
		if err != nil {
			return nil, err
		}
		wrong := p.Each(doc, x.pathLimits(), func(v json.Value) bool {
			starts[v.Place()] = struct{}{}
			err = held.add(placeBytes)
			return err == nil
		})
		if err == nil {
			err = wrong
		}
		if err != nil {
			return nil, err
		}
	}
	return starts, nil
}
