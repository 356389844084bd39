package ast

// JSONValue is JSON_VALUE(doc, path RETURNING type .. ON EMPTY .. ON ERROR).
type JSONValue struct {
	Doc  Expr
	Path string
	// Returning is as in Cast; CHAR(512) if it is not given.
	Returning        ColumnType
	OnEmpty, OnError JSONResponse
}

// JSONResponseKind is what to give in place of a value.
type JSONResponseKind uint8

const (
	JSONUnspecified JSONResponseKind = iota // as JSONNull
	JSONNull
	JSONError
	JSONDefault
)

// JSONResponse says what is given where a path finds nothing, or not what is wanted.
type JSONResponse struct {
	Kind    JSONResponseKind
	Default Expr // a literal, or the minus sign of one
}

// JSONTable is JSON_TABLE(doc, path COLUMNS (..)) AS alias, in FROM. Like a lateral derived table it may read the tables before it.
type JSONTable struct {
	Doc     Expr
	Path    string
	Columns []JSONColumn
	Alias   string
}

// JSONColumnKind is the kind of a column of JSON_TABLE.
type JSONColumnKind uint8

const (
	JSONColumnPath       JSONColumnKind = iota // name type PATH path
	JSONColumnExists                           // name type EXISTS PATH path
	JSONColumnOrdinality                       // name FOR ORDINALITY
	JSONColumnNested                           // NESTED PATH path COLUMNS (..)
)

// JSONColumn is what stands in COLUMNS (..).
type JSONColumn struct {
	Kind             JSONColumnKind
	Name             string
	Type             ColumnType
	Path             string
	OnEmpty, OnError JSONResponse
	Columns          []JSONColumn // of NESTED PATH
}

func (*JSONValue) node() {}
func (*JSONValue) expr() {}

func (*JSONTable) node()      {}
func (*JSONTable) tableExpr() {}
