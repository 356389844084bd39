package expr

import (
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// The JSON functions that make and change documents.

// jsonEdit is one of the changes of package json.
type jsonEdit = func(doc []byte, p *json.Path, value []byte) (json.Edit, error)

func registerJSONEdits() {
	d := definer(catJSON)
	edit := func(usage string, f jsonEdit) {
		d.def(usage, Func{
			Args: []ArgKind{ArgJSON, ArgAny}, Min: 3, Max: -1, KeepNulls: true, Result: ResultJSON,
			Prepare: preparePairs, Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
				return x.makeOf(a, func() (types.Value, error) { return editJSON(x, c, a, f) })
			},
		})
	}
	edit("JSON_SET(doc, path, value, ...)", json.Set)
	edit("JSON_INSERT(doc, path, value, ...)", json.Insert)
	edit("JSON_REPLACE(doc, path, value, ...)", json.Replace)
	edit("JSON_ARRAY_APPEND(doc, path, value, ...)", json.ArrayAppend)
	edit("JSON_ARRAY_INSERT(doc, path, value, ...)", json.ArrayInsert)
	d.def("JSON_REMOVE(doc, path, ...)", Func{
		Args: []ArgKind{ArgJSON, ArgUTF8}, Min: 2, Max: -1, Result: ResultJSON, Prepare: preparePaths(1, 1),
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			return x.makeOf(a, func() (types.Value, error) { return removeJSON(x, c, a) })
		},
	})
	merge := func(usage string, f func(b *json.Builder, l, r json.Value)) {
		d.def(usage, Func{
			Args: []ArgKind{ArgJSON}, Min: 2, Max: -1, Result: ResultJSON,
			Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
				return x.makeOf(a, func() (types.Value, error) { return mergeJSON(x, a, f) })
			},
		})
	}
	merge("JSON_MERGE_PRESERVE(doc, doc, ...)", mergePreserve)
	merge("JSON_MERGE(doc, doc, ...)", mergePreserve)
	d.def("JSON_MERGE_PATCH(doc, doc, ...)", Func{
		Args: []ArgKind{ArgJSON}, Min: 2, Max: -1, KeepNulls: true, Result: ResultJSON,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			return x.makeOf(a, func() (types.Value, error) { return patchJSON(x, a) })
		},
	})
}

// makeOf counts what a document that f makes of others takes meanwhile: copies of their bytes, and a place for each of
// their values.
func (x *Context) makeOf(a []types.Value, f func() (types.Value, error)) (v types.Value, err error) {
	n := 0
	for i := range a {
		n += len(a[i].Bytes())
	}
	if n < countedText {
		return f()
	}
	n = (builderCopies+1)*n + json.ElementBytes*len(a)
	for i := range a {
		if a[i].Class() == types.ClassJSON {
			n += json.ElementBytes * openJSON(a[i]).Elements()
		}
	}
	err = x.during(int64(n), func() error {
		v, err = f()
		return err
	})
	return v, err
}

// preparePairs checks that paths and values come in pairs after the document.
func preparePairs(b *Binder, c *Call) error {
	if len(c.Args)%2 == 0 {
		return errArgCount(c.Func.Name)
	}
	return preparePaths(1, 2)(b, c)
}

// editJSON applies a change for each pair of path and value. A NULL document or path gives NULL, a NULL value is JSON's.
func editJSON(x *Context, c *Call, a []types.Value, edit jsonEdit) (types.Value, error) {
	for i := 0; i < len(a); i++ {
		if a[i].IsNull() && (i == 0 || i%2 == 1) {
			return types.Null, nil
		}
	}
	doc := append([]byte(nil), a[0].Bytes()...)
	for i := 1; i < len(a); i += 2 {
		if err := x.Worked(len(doc)); err != nil {
			return types.Null, err
		}
		p, err := c.singlePath(a, i)
		if err != nil {
			return types.Null, err
		}
		v, err := x.jsonArg(c, a, i+1)
		if err != nil {
			return types.Null, err
		}
		e, err := edit(doc, p, v.Bytes())
		if err != nil {
			return types.Null, err
		}
		doc = e.Doc
	}
	return edited(doc)
}

func removeJSON(x *Context, c *Call, a []types.Value) (types.Value, error) {
	doc := append([]byte(nil), a[0].Bytes()...)
	for i := 1; i < len(a); i++ {
		if err := x.Worked(len(doc)); err != nil {
			return types.Null, err
		}
		p, err := c.path(a, i)
		if err != nil {
			return types.Null, err
		}
		e, err := json.Remove(doc, p)
		if err != nil {
			return types.Null, err
		}
		doc = e.Doc
	}
	return edited(doc)
}

// edited is a document after edits, without the gaps that they have left: a member that loads rows gets
// documents without, and how long a value is must be the same on all members.
func edited(doc []byte) (types.Value, error) {
	doc, err := json.Compact(nil, doc)
	return types.NewJSON(doc), err
}

// jsonArg returns argument i as a document, as it stands in one: text is a JSON string.
func (x *Context) jsonArg(c *Call, a []types.Value, i int) (types.Value, error) {
	return x.jsonValue(a[i], c.Args[i].Type(), IsBoolean(c.Args[i]))
}

func mergeJSON(x *Context, a []types.Value, merge func(b *json.Builder, l, r json.Value)) (types.Value, error) {
	left := a[0]
	for _, right := range a[1:] {
		if err := x.Worked(len(left.Bytes()) + len(right.Bytes())); err != nil {
			return types.Null, err
		}
		b := &json.Builder{}
		merge(b, openJSON(left), openJSON(right))
		doc, err := b.Finish(nil)
		if err != nil {
			return types.Null, err
		}
		left = types.NewJSON(doc)
	}
	return types.NewJSON(x.Copy(left.Bytes())), nil
}

// patchJSON merges from the left; an unknown side stays unknown until a patch that is no object takes its place.
func patchJSON(x *Context, a []types.Value) (types.Value, error) {
	left := a[0]
	for _, right := range a[1:] {
		switch {
		case right.IsNull():
			left = types.Null
			continue
		case !openJSON(right).IsObject():
			left = right
			continue
		case left.IsNull():
			continue
		}
		if err := x.Worked(len(left.Bytes()) + len(right.Bytes())); err != nil {
			return types.Null, err
		}
		b := &json.Builder{}
		mergePatch(b, openJSON(left), openJSON(right))
		doc, err := b.Finish(nil)
		if err != nil {
			return types.Null, err
		}
		left = types.NewJSON(doc)
	}
	if left.IsNull() {
		return types.Null, nil
	}
	return types.NewJSON(x.Copy(left.Bytes())), nil
}

func registerJSONMakers() {
	d := definer(catJSON)
	d.def("JSON_ARRAY(x, ...)", Func{
		Args: []ArgKind{ArgAny}, Min: 0, Max: -1, KeepNulls: true, NotNull: true, Result: ResultJSON,
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			held := holding{x: x}
			defer held.done()
			return x.build(func(b *json.Builder) error {
				b.BeginArray()
				for i, v := range a {
					if err := held.add(builderCopies*len(v.Bytes()) + elementBytes); err != nil {
						return err
					}
					if err := x.addJSON(b, v, c.Args[i].Type(), IsBoolean(c.Args[i])); err != nil {
						return err
					}
				}
				b.EndArray()
				return nil
			})
		},
	})
	d.def("JSON_OBJECT(key, value, ...)", Func{
		Args: []ArgKind{ArgAny}, Min: 0, Max: -1, KeepNulls: true, NotNull: true, Result: ResultJSON,
		Prepare: func(_ *Binder, c *Call) error {
			if len(c.Args)%2 != 0 {
				return errArgCount(c.Func.Name)
			}
			return nil
		},
		Row: jsonObject,
	})
}

func jsonObject(x *Context, c *Call, a []types.Value) (types.Value, error) {
	held := holding{x: x}
	defer held.done()
	return x.build(func(b *json.Builder) error {
		b.BeginObject()
		for i := 0; i < len(a); i += 2 {
			if err := held.add(builderCopies*(len(a[i].Bytes())+len(a[i+1].Bytes())) + elementBytes); err != nil {
				return err
			}
			if a[i].IsNull() {
				return sqlerr.New(sqlerr.JSONDocumentNullKey)
			}
			key, err := x.jsonKey(a[i], c.Args[i].Type())
			if err != nil {
				return err
			}
			b.Key(key)
			if err := x.addJSON(b, a[i+1], c.Args[i+1].Type(), IsBoolean(c.Args[i+1])); err != nil {
				return err
			}
		}
		b.EndObject()
		return nil
	})
}

// jsonKey returns a value as name of a member: text in UTF-8.
func (x *Context) jsonKey(v types.Value, t *types.Type) ([]byte, error) {
	s := x.text(v, t)
	cs := textCharset(t)
	if cs == types.CharsetBinary {
		return nil, sqlerr.New(sqlerr.InvalidJSONCharset, "binary")
	}
	s = x.utf8(s, cs)
	if at := types.CharsetUTF8MB4.InvalidAt(s); at >= 0 {
		return nil, errInvalidCharacters(types.CharsetUTF8MB4, s[at:])
	}
	return s, nil
}
