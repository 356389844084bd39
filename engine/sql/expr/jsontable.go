package expr

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// JSONTable is JSON_TABLE without its document: paths and columns, bound. It is immutable.
type JSONTable struct {
	name string
	root *jsonNest
	cols []JSONTableColumn
}

// JSONTableColumn is a column of the table.
type JSONTableColumn struct {
	Name string
	Type types.Type
}

// jsonNest is COLUMNS (..): what each match of a path gives.
type jsonNest struct {
	path  *json.Path
	cells []jsonCell
	nests []*jsonNest
}

// jsonCell is a column within its nest.
type jsonCell struct {
	pos              int // among the table's columns
	kind             ast.JSONColumnKind
	path             *json.Path
	onEmpty, onError jsonCellAnswer
}

// jsonCellAnswer is what is given in place of a value: an error, a document, or NULL.
type jsonCellAnswer struct {
	fails bool
	doc   []byte
}

// NewJSONTable binds the columns; typeOf makes their types.
func NewJSONTable(t *ast.JSONTable, mode types.Mode, typeOf func(name string, ct *ast.ColumnType) (types.Type, error)) (*JSONTable, error) {
	b := &JSONTable{name: t.Alias}
	var err error
	if b.root, err = b.nest(t.Path, t.Columns, typeOf); err != nil {
		return nil, err
	}
	c := jsonCursor{rows: &JSONRows{table: b}}
	c.store.Mode, c.store.Row = mode&^types.ModeStrict, 1
	return b, b.checkDefaults(b.root, &c)
}

// checkDefaults converts what DEFAULT gives: it must be a value of the column, whether it is ever wanted or not.
func (t *JSONTable) checkDefaults(n *jsonNest, c *jsonCursor) error {
	for i := range n.cells {
		k := &n.cells[i]
		for _, a := range [...]*jsonCellAnswer{&k.onEmpty, &k.onError} {
			if a.doc == nil {
				continue
			}
			col := &t.cols[k.pos]
			v, err := c.convert(json.Open(a.doc), col)
			if err == nil && v.IsNull() {
				err = errJSONColumn(col.Name)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, k := range n.nests {
		if err := t.checkDefaults(k, c); err != nil {
			return err
		}
	}
	return nil
}

// Columns are the table's columns. All may be NULL.
func (t *JSONTable) Columns() []JSONTableColumn { return t.cols }

func (t *JSONTable) nest(path string, list []ast.JSONColumn, typeOf func(string, *ast.ColumnType) (types.Type, error)) (*jsonNest, error) {
	n := &jsonNest{}
	var err error
	if n.path, err = json.ParsePath([]byte(path)); err != nil {
		return nil, err
	}
	for i := range list {
		c := &list[i]
		if c.Kind == ast.JSONColumnNested {
			inner, err := t.nest(c.Path, c.Columns, typeOf)
			if err != nil {
				return nil, err
			}
			n.nests = append(n.nests, inner)
			continue
		}
		if c.Name == "" || strings.HasSuffix(c.Name, " ") {
			return nil, sqlerr.New(sqlerr.WrongColumnName, c.Name)
		}
		cell := jsonCell{pos: len(t.cols), kind: c.Kind}
		col := JSONTableColumn{Name: c.Name, Type: types.Type{Kind: types.KindBigInt}}
		if c.Kind != ast.JSONColumnOrdinality {
			if col.Type, err = typeOf(c.Name, &c.Type); err != nil {
				return nil, err
			}
			if cell.path, err = json.ParsePath([]byte(c.Path)); err != nil {
				return nil, err
			}
		}
		if cell.onEmpty, err = cellAnswer(c.OnEmpty, &col); err != nil {
			return nil, err
		}
		if cell.onError, err = cellAnswer(c.OnError, &col); err != nil {
			return nil, err
		}
		t.cols = append(t.cols, col)
		n.cells = append(n.cells, cell)
	}
	return n, nil
}

// cellAnswer parses what DEFAULT gives.
func cellAnswer(r ast.JSONResponse, col *JSONTableColumn) (a jsonCellAnswer, err error) {
	switch r.Kind {
	case ast.JSONError:
		a.fails = true
	case ast.JSONDefault:
		if a.doc, err = json.Parse(nil, literalText(r.Default)); err != nil {
			return a, jsonTextError(err, " in argument 1 to function JSON_TABLE")
		}
		if json.Open(a.doc).IsContainer() && col.Type.Kind != types.KindJSON {
			return a, sqlerr.New(sqlerr.InvalidDefault, col.Name)
		}
	}
	return a, nil
}

// JSONDocument checks that an expression may be the document of JSON_TABLE.
func JSONDocument(n Node) error {
	if isRow(n) {
		return errOperandColumns(1)
	}
	t := n.Type()
	switch {
	case isString(t) && t.IsBlob():
		return sqlerr.New(sqlerr.InvalidJSONCharset, "binary")
	case !isString(t) && t.Kind != types.KindJSON && t.Kind != types.KindNull:
		return errJSONType(inJSONTable)
	}
	return nil
}

const inJSONTable = " in argument 1 to function json_table"
