package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Options are what binding depends on besides the statement. Whoever caches bound
// expressions keys them by it.
type Options struct {
	Mode                  types.Mode
	SQLMode               SQLMode
	Collation             types.CollationID // collation_connection; 0: utf8mb4_0900_ai_ci
	DivPrecisionIncrement int               // 0 is taken for MySQL's default, 4
	NoDivIncrement        bool              // div_precision_increment is really 0
	ParamTypes            []*types.Type     // of the parameters; missing or nil: NULL
}

// Scope gives the binder the meaning of names. Implementations embed [NoScope] for
// what cannot occur.
type Scope interface {
	Options() *Options

	// Column resolves a name, usually to a [Column].
	Column(ref *ast.ColumnRef) (Node, error)
	// Aggregate resolves an aggregate function, usually to a column of the
	// aggregation's output.
	Aggregate(a *ast.Aggregate) (Node, error)
	Window(w *ast.WindowFunc) (Node, error)

	// Subquery is a query as a scalar.
	Subquery(q *ast.Subquery) (Node, error)
	Exists(e *ast.Exists) (Node, error)
	// InQuery is left [NOT] IN (query); in.Operand is bound as left, a row's items
	// one by one.
	InQuery(left []Node, in *ast.In) (Node, error)
	// CompareQuery is left op (query), op ANY (query) or op ALL (query); a plain
	// query only with a row on the left.
	CompareQuery(op ast.BinaryOp, left []Node, q *ast.Subquery) (Node, error)

	// SystemVariable resolves @@name, usually to NewSystemVariable.
	SystemVariable(v *ast.Variable) (Node, error)
	// UserVariable returns the type that @name has now, nil if it was never set.
	UserVariable(name string) *types.Type

	Default(d *ast.Default) (Node, error)
	Values(v *ast.ValuesFunc) (Node, error)
	Match(m *ast.Match) (Node, error)
}

// NoScope is a scope without names.
type NoScope struct{ Opt Options }

func (s *NoScope) Options() *Options { return &s.Opt }

func (s *NoScope) Column(ref *ast.ColumnRef) (Node, error) {
	return nil, sqlerr.New(sqlerr.BadFieldError, columnName(ref), "field list")
}

func (s *NoScope) Aggregate(*ast.Aggregate) (Node, error) {
	return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
}

func (s *NoScope) Window(w *ast.WindowFunc) (Node, error) {
	return nil, sqlerr.New(sqlerr.WindowInvalidWindowFuncUse, w.Name)
}

func (s *NoScope) Subquery(*ast.Subquery) (Node, error) {
	return nil, errNotSupported("subquery in this place")
}

func (s *NoScope) Exists(*ast.Exists) (Node, error) {
	return nil, errNotSupported("subquery in this place")
}

func (s *NoScope) InQuery([]Node, *ast.In) (Node, error) {
	return nil, errNotSupported("subquery in this place")
}

func (s *NoScope) CompareQuery(ast.BinaryOp, []Node, *ast.Subquery) (Node, error) {
	return nil, errNotSupported("subquery in this place")
}

func (s *NoScope) SystemVariable(v *ast.Variable) (Node, error) {
	return nil, sqlerr.New(sqlerr.UnknownSystemVariable, v.Name)
}

func (s *NoScope) UserVariable(string) *types.Type { return nil }

func (s *NoScope) Default(*ast.Default) (Node, error) {
	return nil, errNotSupported("DEFAULT in this place")
}

func (s *NoScope) Values(*ast.ValuesFunc) (Node, error) {
	return nil, errNotSupported("VALUES() outside of INSERT .. ON DUPLICATE KEY UPDATE")
}

func (s *NoScope) Match(*ast.Match) (Node, error) {
	return nil, errNotSupported("MATCH .. AGAINST")
}

func columnName(ref *ast.ColumnRef) string {
	name := ref.Name
	if ref.Table != "" {
		name = ref.Table + "." + name
	}
	if ref.Schema != "" {
		name = ref.Schema + "." + name
	}
	return name
}
