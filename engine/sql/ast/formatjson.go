package ast

import "github.com/triremedb/trireme/engine/types"

func (f *formatter) jsonValue(e *JSONValue) {
	f.s("json_value(")
	f.expr(e.Doc)
	f.s(", ")
	f.quote(e.Path)
	f.s(" returning ")
	f.s(FormatReturning(&e.Returning))
	f.jsonResponses(e.OnEmpty, e.OnError)
	f.s(")")
}

// FormatReturning returns the text of a type of RETURNING.
func FormatReturning(t *ColumnType) string {
	f := &formatter{}
	switch {
	case t.Kind == types.KindBigInt && t.Unsigned:
		f.s("unsigned")
	case t.Kind == types.KindBigInt:
		f.s("signed")
	case t.Kind == types.KindDecimal && t.Length != Unspecified:
		f.s("decimal(")
		f.number(uint64(t.Length))
		f.s(", ")
		f.number(uint64(max(t.Decimals, 0)))
		f.s(")")
	default:
		f.s(t.Kind.String())
		f.lengths(t)
		if t.Charset != "" {
			f.s(" character set ", t.Charset)
		}
		f.opt(t.Binary, " binary")
	}
	return string(f.b)
}

func (f *formatter) jsonResponses(empty, err JSONResponse) {
	f.jsonResponse(empty, " on empty")
	f.jsonResponse(err, " on error")
}

func (f *formatter) jsonResponse(r JSONResponse, on string) {
	switch r.Kind {
	case JSONUnspecified:
		return
	case JSONNull:
		f.s(" null")
	case JSONError:
		f.s(" error")
	case JSONDefault:
		f.s(" default ")
		f.expr(r.Default)
	}
	f.s(on)
}

func (f *formatter) jsonTable(t *JSONTable) {
	f.s("json_table(")
	f.expr(t.Doc)
	f.s(", ")
	f.quote(t.Path)
	f.jsonColumns(t.Columns)
	f.s(") ")
	f.name(t.Alias)
}

func (f *formatter) jsonColumns(list []JSONColumn) {
	f.s(" columns (")
	for i := range list {
		f.opt(i > 0, ", ")
		f.jsonColumn(&list[i])
	}
	f.s(")")
}

func (f *formatter) jsonColumn(c *JSONColumn) {
	if c.Kind == JSONColumnNested {
		f.s("nested path ")
		f.quote(c.Path)
		f.jsonColumns(c.Columns)
		return
	}
	f.name(c.Name)
	if c.Kind == JSONColumnOrdinality {
		f.s(" for ordinality")
		return
	}
	f.s(" ")
	f.columnType(&c.Type)
	f.opt(c.Kind == JSONColumnExists, " exists")
	f.s(" path ")
	f.quote(c.Path)
	f.jsonResponses(c.OnEmpty, c.OnError)
}
