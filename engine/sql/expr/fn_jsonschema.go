package expr

import (
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/engine/types/json/schema"
)

func init() {
	d := definer(catJSON)
	d.def("JSON_SCHEMA_VALID(schema, doc)", Func{
		Args: []ArgKind{ArgJSON, ArgJSON}, Boolean: true, NotNull: true, Result: ResultBool,
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			f, err := x.validate(c, a)
			return boolValue(f == nil), err
		},
	})
	d.def("JSON_SCHEMA_VALIDATION_REPORT(schema, doc)", Func{
		Args: []ArgKind{ArgJSON, ArgJSON}, Result: ResultJSON,
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			f, err := x.validate(c, a)
			if err != nil {
				return types.Null, err
			}
			return x.build(func(b *json.Builder) error {
				b.BeginObject()
				b.Key([]byte("valid"))
				b.Bool(f == nil)
				if f != nil {
					for _, m := range [...][2]string{
						{"reason", reasonOf(f)}, {"schema-location", f.Schema}, {"document-location", f.Document}, {"schema-failed-keyword", f.Keyword},
					} {
						b.Key([]byte(m[0]))
						b.String([]byte(m[1]))
					}
				}
				b.EndObject()
				return nil
			})
		},
	})
}

func reasonOf(f *schema.Failure) string {
	return "The JSON document location '" + f.Document + "' failed requirement '" + f.Keyword + "' at JSON Schema location '" + f.Schema + "'"
}

// validate validates a document by the schema that argument 0 is. A constant one is looked at once.
func (x *Context) validate(c *Call, a []types.Value) (*schema.Failure, error) {
	type kept struct {
		v   *schema.Validator
		err error
	}
	make := func() kept {
		s := openJSON(a[0])
		if !s.IsObject() {
			return kept{err: sqlerr.New(sqlerr.InvalidJSONType, 1, c.Func.Name, "object")}
		}
		v, err := schema.New(s, schema.Options{Stop: func() error { return x.Worked(rowWork) }, Match: x.matchesSchema})
		return kept{v, err}
	}
	var k kept
	if _, ok := c.Args[0].(*Const); ok && !x.folding {
		k = x.State(c, func() any { return make() }).(kept)
	} else {
		k = make()
	}
	if k.err != nil {
		return nil, k.err
	}
	return k.v.Validate(openJSON(a[1]))
}

// matchesSchema is the search for a pattern of a schema, which is one of Go's: what is none is found everywhere. Error: 3700 besides that of an
// interrupted statement.
func (x *Context) matchesSchema(pattern, text []byte) (bool, error) {
	m, err := newMatcher(x, pattern, patternFlags{plain: true})
	if err != nil {
		if err != errPatternTooBig && isPatternError(err) {
			return true, nil
		}
		return false, err
	}
	return m.matches(x, text)
}
