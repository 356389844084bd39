package session

import (
	"strings"
	"sync"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// tableInfo is what changing rows needs of a definition: defaults, generated columns and
// checks, bound over the table's columns by position. It is immutable.
type tableInfo struct {
	keys      *record.Schema
	columns   []columnInfo // by position
	visible   []int        // positions that SQL knows, in order
	generated []int        // positions of generated columns, in order of evaluation
	checks    []tableCheck
	auto      int // position of the AUTO_INCREMENT column, or -1
	types     []*types.Type
	parents   []foreignKey // that the table's rows refer to
	view      string       // schema.name of the view through which it is changed, or empty
}

// columnInfo is a column as rows are built.
type columnInfo struct {
	*record.Column
	def       catalog.DefaultKind
	value     types.Value // of a literal default
	expr      expr.Node   // of a default that is an expression
	generated expr.Node
	onUpdate  bool // ON UPDATE CURRENT_TIMESTAMP
}

// tableCheck is a CHECK constraint that is enforced, or the condition of a view WITH CHECK OPTION, which must be true.
type tableCheck struct {
	name string // of a view with its schema
	expr expr.Node
	view bool
}

// failed is the error of a row for which the expression has a value; nil: it may be.
func (c *tableCheck) failed(v types.Value) error {
	switch {
	case c.view && (v.IsNull() || isFalse(v)):
		return sqlerr.New(sqlerr.ViewCheckFailed, c.name)
	case !c.view && !v.IsNull() && isFalse(v):
		return sqlerr.New(sqlerr.CheckConstraintViolated, c.name)
	}
	return nil
}

// evaluates reports whether building a row evaluates expressions over it.
func (i *tableInfo) evaluates() bool { return len(i.generated) > 0 || len(i.checks) > 0 }

// tableCache keeps what has been worked out of definitions.
type tableCache struct {
	mu     sync.RWMutex
	byKeys map[*record.Schema]*tableInfo
	links  map[*record.Schema]*childLinks
}

// tablesKept bounds how many definitions are kept.
const tablesKept = 4096

// tableInfo returns that of a definition.
func (m *Manager) tableInfo(keys *record.Schema) (*tableInfo, error) {
	c := &m.tables
	c.mu.RLock()
	i := c.byKeys[keys]
	c.mu.RUnlock()
	if i != nil {
		return i, nil
	}
	i, err := newTableInfo(keys)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.byKeys == nil || len(c.byKeys) >= tablesKept {
		c.byKeys = map[*record.Schema]*tableInfo{}
	}
	c.byKeys[keys] = i
	c.mu.Unlock()
	return i, nil
}

func newTableInfo(keys *record.Schema) (*tableInfo, error) {
	def := keys.Table
	i := &tableInfo{keys: keys, auto: -1}
	scope := &columnScope{keys: keys}
	for p := range def.Columns {
		c := &def.Columns[p]
		i.types = append(i.types, &c.Type)
		info := columnInfo{Column: c}
		if c.DroppedIn == 0 {
			if err := info.bind(scope); err != nil {
				return nil, err
			}
			if info.generated != nil {
				i.generated = append(i.generated, p)
			}
			if c.AutoIncrement {
				i.auto = p
			}
			if !c.Hidden {
				i.visible = append(i.visible, p)
			}
		}
		i.columns = append(i.columns, info)
	}
	for _, c := range catalog.Checks(def) {
		if !c.Enforced {
			continue
		}
		n, err := bindText(scope, c.Expr)
		if err != nil {
			return nil, err
		}
		i.checks = append(i.checks, tableCheck{name: c.Name, expr: n})
	}
	i.parents = foreignKeys(keys)
	return i, nil
}

// bind works out the expressions of a column.
func (c *columnInfo) bind(scope *columnScope) (err error) {
	c.def = catalog.Default(c.Column)
	c.onUpdate = c.OnUpdate != ""
	if c.Generated != "" {
		c.generated, err = bindText(scope, c.Generated)
		return err
	}
	switch c.def {
	case catalog.DefaultExpr:
		c.expr, err = bindText(scope, catalog.DefaultText(c.Column))
	case catalog.DefaultLiteral:
		c.value, err = plan.LiteralDefault(catalog.DefaultText(c.Column), &c.Type)
	}
	return err
}

func bindText(scope expr.Scope, text string) (expr.Node, error) {
	e, err := catalog.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return expr.Bind(scope, e)
}

// columnScope gives the columns of a table by position.
type columnScope struct {
	expr.NoScope
	keys  *record.Schema
	shift int // added to positions
}

func (c *columnScope) Column(ref *ast.ColumnRef) (expr.Node, error) {
	if c.keys != nil && (ref.Table == "" || ref.Table == c.keys.Name) {
		for p := range c.keys.Columns {
			col := &c.keys.Columns[p]
			if col.DroppedIn == 0 && (col.Name == ref.Name || strings.EqualFold(col.Name, ref.Name) || dict.Fold(col.Name) == dict.Fold(ref.Name)) {
				return expr.NewColumn(p+c.shift, &col.Type, col.Name), nil
			}
		}
	}
	return nil, unknownColumn(ref, "field list")
}

func unknownColumn(ref *ast.ColumnRef, where string) error {
	name := ref.Name
	if ref.Table != "" {
		name = ref.Table + "." + name
	}
	if ref.Schema != "" {
		name = ref.Schema + "." + name
	}
	return sqlerr.New(sqlerr.BadFieldError, name, where)
}

// position finds a column by name: its position, or -1. Hidden ones are not found.
func (i *tableInfo) position(name string) int {
	for _, p := range i.visible {
		if i.columns[p].Name == name {
			return p
		}
	}
	folded := dict.Fold(name)
	for _, p := range i.visible {
		if dict.Fold(i.columns[p].Name) == folded {
			return p
		}
	}
	return -1
}

// tableStats are estimates of an open table for the planner.
type tableStats struct{ t *table.Table }

func (s tableStats) Rows() float64 { return float64(max(s.t.Rows(), 0)) }

func (s tableStats) Distinct(index, parts int) float64 { return s.t.Distinct(index, parts) }

func (s tableStats) RangeRows(index int, r plan.ByteRange) (float64, bool) { return 0, false }
