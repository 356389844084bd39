package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// addColumn adds a column at a position among the columns; -1 is behind the last one
// that exists. What it says of keys is left to the caller.
func (d *definer) addColumn(def *ast.ColumnDef, at int) error {
	if dict.FindColumn(d.t, def.Name) != nil {
		return sqlerr.New(sqlerr.DupFieldName, def.Name)
	}
	c := record.Column{ID: d.t.NextColumn, AddedIn: record.FirstRowVersion}
	if err := d.column(def, &c); err != nil {
		return err
	}
	d.t.NextColumn++
	if at < 0 {
		at = endOf(d.t)
	}
	d.t.Columns = slices.Insert(d.t.Columns, at, c)
	return nil
}

// endOf is the position behind the last column that SQL knows.
func endOf(t *record.Table) int {
	for i := range t.Columns {
		if t.Columns[i].Hidden || t.Columns[i].DroppedIn != 0 {
			return i
		}
	}
	return len(t.Columns)
}

// column fills in a column from its definition; number and row versions are set.
func (d *definer) column(def *ast.ColumnDef, c *record.Column) error {
	if err := CheckName(def.Name, sqlerr.WrongColumnName); err != nil {
		return err
	}
	comment, err := d.comment(def.Comment, 1024, sqlerr.TooLongFieldComment, def.Name)
	if err != nil {
		return err
	}
	for _, option := range def.Kept {
		d.warn(KeptOnly("Column option " + option))
	}
	t, given, err := d.columnType(def.Name, &def.Type, d.t.Collation)
	if err != nil {
		return err
	}
	id := strconv.FormatUint(uint64(c.ID), 10)
	c.Name, c.Type, c.Comment, c.Invisible, c.AutoIncrement = def.Name, t, comment, def.Invisible, def.AutoIncrement
	c.Type.NotNull = def.Null == ast.NotNull || def.PrimaryKey && def.Null != ast.NullAllowed || def.AutoIncrement
	c.Default, c.HasDefault, c.OnUpdate, c.Generated = "", false, "", ""
	if d.isNew && def.Null == ast.NullAllowed {
		d.nullable[dict.Fold(def.Name)] = true
	}
	if l, ok := def.Default.(*ast.Literal); d.isNew && ok && l.Kind == ast.LiteralNull {
		d.explicitNull[dict.Fold(def.Name)] = true
	}
	setOption(d.t, attrShown+id, flag(given))
	if def.PrimaryKey && def.Null == ast.NullAllowed {
		return errNullablePrimary()
	}
	for i := range def.Checks {
		d.checks = append(d.checks, pendingCheck{def.Checks[i], def.Name})
	}
	if def.Generated != nil {
		return d.generated(def, c, id)
	}
	if def.AutoIncrement {
		if err := d.autoIncrement(def, c); err != nil {
			return err
		}
	}
	if err := d.defaultOf(def.Default, def.DefaultExpr, c); err != nil {
		return err
	}
	if def.OnUpdate != nil {
		fsp, ok := isNow(def.OnUpdate)
		if !ok || !hasNow(&c.Type) || fsp != int(c.Type.FSP) {
			return sqlerr.New(sqlerr.InvalidOnUpdate, c.Name)
		}
		c.OnUpdate = nowText(fsp)
	}
	return nil
}

func errNullablePrimary() error {
	return sqlerr.New(sqlerr.PrimaryCantHaveNull)
}

func (d *definer) generated(def *ast.ColumnDef, c *record.Column, id string) error {
	if def.Default != nil || def.OnUpdate != nil || def.AutoIncrement {
		return sqlerr.New(sqlerr.WrongUsage, "DEFAULT", "generated column")
	}
	c.Generated = ExprText(def.Generated)
	setOption(d.t, attrStored+id, flag(def.Stored))
	return nil
}

func (d *definer) autoIncrement(def *ast.ColumnDef, c *record.Column) error {
	k := c.Type.Kind
	if !c.Type.IsInteger() && k != types.KindFloat && k != types.KindDouble {
		return sqlerr.New(sqlerr.WrongFieldSpec, c.Name)
	}
	if def.Default != nil {
		return errInvalidDefault(c.Name)
	}
	for i := range d.t.Columns {
		if o := &d.t.Columns[i]; o.AutoIncrement && o.DroppedIn == 0 && o.ID != c.ID {
			return errAuto()
		}
	}
	return nil
}

func errInvalidDefault(name string) error {
	return sqlerr.New(sqlerr.InvalidDefault, name)
}

// hasNow reports whether a column can have CURRENT_TIMESTAMP.
func hasNow(t *types.Type) bool { return t.Kind == types.KindTimestamp || t.Kind == types.KindDateTime }

func nowText(fsp int) string {
	if fsp == 0 {
		return "CURRENT_TIMESTAMP"
	}
	return "CURRENT_TIMESTAMP(" + strconv.Itoa(fsp) + ")"
}

// isNow recognizes CURRENT_TIMESTAMP and its other names.
func isNow(e ast.Expr) (fsp int, ok bool) {
	f, isFunc := e.(*ast.Func)
	if !isFunc || len(f.Args) > 1 || f.Schema != "" {
		return 0, false
	}
	switch strings.ToLower(f.Name) {
	case "now", "current_timestamp", "localtime", "localtimestamp":
	default:
		return 0, false
	}
	if len(f.Args) == 1 {
		l, isLit := f.Args[0].(*ast.Literal)
		if !isLit || l.Kind != ast.LiteralInt {
			return 0, false
		}
		fsp = int(l.Value.Int())
	}
	return fsp, true
}

// defaultOf sets a column's default. A column that may be NULL and is given none has
// NULL.
func (d *definer) defaultOf(e ast.Expr, isExpr bool, c *record.Column) error {
	if e == nil {
		if !c.Type.NotNull {
			c.HasDefault, c.Default = true, "NULL"
		}
		return nil
	}
	c.HasDefault = true
	if fsp, ok := isNow(e); ok && !isExpr {
		if !hasNow(&c.Type) || fsp != int(c.Type.FSP) {
			return errInvalidDefault(c.Name)
		}
		c.Default = nowText(fsp)
		return nil
	}
	if isExpr {
		c.Default = "(" + ExprText(e) + ")" // checkDefaults looks at it
		return nil
	}
	if l, ok := e.(*ast.Literal); ok && l.Kind == ast.LiteralNull {
		if c.Type.NotNull {
			return errInvalidDefault(c.Name)
		}
		c.Default = "NULL"
		return nil
	}
	if c.Type.IsLong() {
		return d.longDefault(e, c)
	}
	v, err := d.constant(e, c)
	if err != nil {
		return err
	}
	c.Default = literalText(v, &c.Type)
	return nil
}

// longDefault is a literal default of TEXT, BLOB or JSON: an error, but for an empty one
// when the mode is not strict, which means nothing.
func (d *definer) longDefault(e ast.Expr, c *record.Column) error {
	bad := sqlerr.New(sqlerr.BlobCantHaveDefault, c.Name)
	l, ok := e.(*ast.Literal)
	if d.env.Strict || !ok || l.Kind != ast.LiteralString || len(l.Value.Bytes()) > 0 {
		return bad
	}
	d.warn(bad)
	c.HasDefault, c.Default = !c.Type.NotNull, ""
	if c.HasDefault {
		c.Default = "NULL"
	}
	return nil
}

// constant is the value that a literal default gives the column. Error: 1067.
func (d *definer) constant(e ast.Expr, c *record.Column) (types.Value, error) {
	v, from, ok := literalValue(e)
	if !ok {
		return v, errInvalidDefault(c.Name)
	}
	x := types.Context{Mode: types.ModeDefault}
	if d.env.Types != nil {
		x.Mode, x.Location, x.Today = d.env.Types.Mode|types.ModeStrict, d.env.Types.Location, d.env.Types.Today
		if d.env.Types.Mode&types.ModeStrict == 0 {
			x.Mode &^= types.ModeNoZeroDate | types.ModeNoZeroInDate
		}
	}
	to := c.Type
	to.NotNull = false
	v, err := x.Store(v, from, &to)
	if err != nil {
		return v, errInvalidDefault(c.Name)
	}
	return v.Clone(), nil
}

// literalValue is the value of a literal, with a sign or without; from is as
// types.Context.Store wants it.
func literalValue(e ast.Expr) (v types.Value, from *types.Type, ok bool) {
	if u, isUnary := e.(*ast.Unary); isUnary && u.Op == ast.OpNeg {
		l, isLit := u.Operand.(*ast.Literal)
		if !isLit {
			return v, nil, false
		}
		switch l.Value.Class() {
		case types.ClassInt:
			return types.NewInt(-l.Value.Int()), nil, true
		case types.ClassUint:
			if l.Value.Uint() == 1<<63 {
				return types.NewInt(-1 << 63), nil, true
			}
		case types.ClassDouble:
			return types.NewDouble(-l.Value.Double()), nil, true
		}
		text := types.AppendText([]byte{'-'}, l.Value, l.Type, nil)
		return types.NewBytes(text), nil, true
	}
	l, isLit := e.(*ast.Literal)
	if !isLit {
		return v, nil, false
	}
	if l.Kind == ast.LiteralString && l.Charset == "" {
		return l.Value, nil, true
	}
	return l.Value, l.Type, true
}

// literalText is the SQL text of a column's literal default, as SHOW CREATE TABLE has
// it: quoted, whatever the type.
func literalText(v types.Value, t *types.Type) string {
	if v.IsNull() {
		return "NULL"
	}
	if t.Kind == types.KindBit {
		return "b'" + strconv.FormatUint(v.Uint(), 2) + "'"
	}
	b := types.AppendText(nil, v, t, nil)
	if t.IsBlob() {
		if t.Kind == types.KindBinary {
			for len(b) > 0 && b[len(b)-1] == 0 {
				b = b[:len(b)-1]
			}
		}
		if !printable(b) {
			return "0x" + hexText(b)
		}
	}
	if t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet {
		b, _ = types.Convert(nil, b, t.Charset(), types.CharsetUTF8MB4)
	}
	return string(appendEscaped(nil, string(b)))
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

const hexDigits = "0123456789ABCDEF"

func hexText(b []byte) string {
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, hexDigits[c>>4], hexDigits[c&15])
	}
	return string(out)
}
