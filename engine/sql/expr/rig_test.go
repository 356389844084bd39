package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
)

// rig binds and runs expressions over the columns of a small table.
type rig struct {
	NoScope
	t        testing.TB
	names    []string
	columns  []*types.Type
	rows     *types.Batch
	x        *Context
	warnings []string
	vars     map[string]typedValue
}

type typedValue struct {
	v types.Value
	t *types.Type
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, vars: map[string]typedValue{}}
	r.Opt = Options{Mode: types.ModeDefault, SQLMode: ModeErrorForDivisionByZero}
	r.x = &Context{
		Now: time.Date(2024, 2, 29, 12, 30, 45, 123456000, time.UTC), Env: env.Real(),
		DivPrecisionIncrement: 4, GroupConcatMaxLen: 1024, MaxAllowedPacket: 1 << 20,
		Collation: types.CollationUTF8MB40900AI, SQLMode: ModeErrorForDivisionByZero,
	}
	r.x.Mode = types.ModeDefault
	r.x.Warn = func(e *sqlerr.Error) { r.warnings = append(r.warnings, fmt.Sprintf("%d %s", e.Number, e.Message)) }
	r.table("", nil)
	return r
}

// table sets the columns, as in CREATE TABLE, and the rows, as text; NULL is NULL.
func (r *rig) table(columns string, rows [][]string) {
	r.names, r.columns = nil, nil
	if columns != "" {
		for _, c := range mustParse(r.t, "CREATE TABLE t ("+columns+")")[0].(*ast.CreateTable).Columns {
			r.names = append(r.names, c.Name)
			r.columns = append(r.columns, columnType(r.t, &c.Type))
		}
	}
	r.rows = types.NewBatch(r.columns)
	for _, row := range rows {
		values := make([]types.Value, len(row))
		for i, text := range row {
			if text == "NULL" {
				continue
			}
			v, err := r.x.Store(types.NewString(text), nil, r.columns[i])
			if err != nil {
				r.t.Fatalf("%s: %v", text, err)
			}
			values[i] = v.Clone()
		}
		r.rows.AppendRow(values)
	}
}

func mustParse(t testing.TB, sql string) []ast.Statement {
	s, err := ast.Parse(sql, 0)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func columnType(t testing.TB, c *ast.ColumnType) *types.Type {
	n := &types.Type{Kind: c.Kind, Unsigned: c.Unsigned, ZeroFill: c.ZeroFill, Members: c.Members}
	switch {
	case n.Kind == types.KindDecimal:
		n.Precision, n.Scale = uint8(max(c.Length, 1)), uint8(max(c.Decimals, 0))
	case n.Kind == types.KindTime || n.Kind == types.KindDateTime || n.Kind == types.KindTimestamp:
		n.FSP = uint8(max(c.Length, 0))
	case c.Length > 0 && !n.IsInteger() && n.Kind != types.KindDouble && n.Kind != types.KindFloat:
		n.Length = uint32(c.Length)
	}
	if n.IsBlob() || n.Kind == types.KindJSON {
		n.Collation = types.CollationBinary
	}
	if n.IsText() || hasMembers(n) {
		n.Collation = types.CollationUTF8MB40900AI
		if c.Charset != "" {
			n.Collation, _ = CharsetCollation(c.Charset)
		}
		if col := types.CollationByName(c.Collate); col != nil {
			n.Collation = col.ID()
		}
	}
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *rig) Column(ref *ast.ColumnRef) (Node, error) {
	for i, n := range r.names {
		if n == ref.Name {
			return NewColumn(i, r.columns[i], n), nil
		}
	}
	return r.NoScope.Column(ref)
}

func (r *rig) UserVariable(name string) *types.Type { return r.vars[name].t }

// parse returns the expression that a text is.
func (r *rig) parse(text string) (ast.Expr, error) {
	s, err := ast.Parse("SELECT "+text, 0)
	if err != nil {
		return nil, err
	}
	return s[0].(*ast.Select).Items[0].Expr, nil
}

func (r *rig) bind(text string) (Node, error) {
	e, err := r.parse(text)
	if err != nil {
		return nil, err
	}
	return Bind(r, e)
}

// show gives a value as a client would see it.
func (r *rig) show(v types.Value, t *types.Type) string {
	if v.IsNull() {
		return "NULL"
	}
	s := types.AppendText(nil, v, t, r.x.Location)
	if isString(t) || hasMembers(t) {
		if t.IsBlob() {
			return fmt.Sprintf("x'%X'", s)
		}
		return "'" + string(s) + "'"
	}
	return string(s)
}

func showType(t *types.Type) string {
	s := t.Kind.String()
	switch {
	case t.Kind == types.KindDecimal:
		s += fmt.Sprintf("(%d,%d)", t.Precision, t.Scale)
	case t.FSP > 0 || t.Kind == types.KindChar || t.Kind == types.KindVarChar || t.Kind == types.KindBinary || t.Kind == types.KindVarBinary:
		s += fmt.Sprintf("(%d)", t.Length+uint32(t.FSP))
	}
	if t.Unsigned {
		s += " unsigned"
	}
	if t.IsText() && t.Collation != types.CollationUTF8MB40900AI {
		s += " " + types.CollationByID(t.Collation).Name()
	}
	return s
}

// eval runs an expression by Value and by Vector and gives result, type and warnings.
func (r *rig) eval(text string) string {
	n, err := r.bind(text)
	if err != nil {
		return "error " + errorText(err)
	}
	return r.run(n)
}

func (r *rig) run(n Node) string {
	if len(r.columns) == 0 {
		r.rows.SetLen(1)
	}
	var out []string
	for row := range r.rows.Len() {
		r.warnings = nil
		v, err := n.Value(r.x, r.rows, row)
		if err != nil {
			out = append(out, "error "+errorText(err))
			continue
		}
		s := r.show(v, n.Type())
		if v.Class() != types.ClassNull && v.Class() != n.Type().Class() {
			r.t.Errorf("%s: value of class %v, type %v", Text(n), v.Class(), n.Type().Kind)
		}
		if v.IsNull() && n.Type().NotNull {
			s += " (NOT NULL)"
		}
		for _, w := range r.warnings {
			s += " [" + w + "]"
		}
		out = append(out, s)
	}
	scalar := strings.Join(out, "; ")
	if VolatilityOf(n) != Volatile {
		r.compareVector(n, scalar)
	}
	return scalar + " : " + showType(n.Type())
}

// compareVector checks that Vector gives what Value gave.
func (r *rig) compareVector(n Node, scalar string) {
	out := types.NewVector(n.Type(), 0)
	r.warnings = nil
	err := n.Vector(r.x, r.rows, nil, out)
	if err != nil {
		if !strings.Contains(scalar, errorText(err)) {
			r.t.Errorf("%s: vector: %v, scalar: %s", Text(n), err, scalar)
		}
		return
	}
	var list []string
	for i := range out.Len() {
		list = append(list, r.show(out.Value(i), n.Type()))
	}
	var plain []string
	for _, s := range strings.Split(scalar, "; ") {
		s, _, _ = strings.Cut(s, " [")
		plain = append(plain, strings.TrimSuffix(s, " (NOT NULL)"))
	}
	if strings.Join(list, "; ") != strings.Join(plain, "; ") {
		r.t.Errorf("%s: vector: %s, scalar: %s", Text(n), strings.Join(list, "; "), scalar)
	}
}

func errorText(err error) string {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%d %s", e.Number, e.Message)
	}
	return "UNTYPED " + err.Error()
}
