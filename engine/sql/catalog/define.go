package catalog

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// Env is what a definition depends on besides its text.
type Env struct {
	Collation types.CollationID // of the schema
	Strict    bool              // sql_mode
	// Mode and Types: how default values are converted. Types gives mode, time zone and
	// date; nil stands for the defaults.
	Types                *types.Context
	NoEngineSubstitution bool
	// InnoDBOnly says that engines which MySQL has and InnoDB does as well for are refused as others are.
	InnoDBOnly        bool
	AnyKeyLength      bool // not strict: keys that are too long are cut
	ForeignKeyChecks  bool // foreign_key_checks
	RequirePrimaryKey bool // sql_require_primary_key
	LaxOptions        bool // innodb_strict_mode is off: options that do not fit are passed over
	Typer             Typer
	// Table returns a table that a foreign key refers to, or nil if there is none.
	Table func(schema, name string) (*record.Table, error)
	// Now is the statement's time, the initial value of a column that is added with
	// DEFAULT CURRENT_TIMESTAMP.
	Now  types.Timestamp
	Warn func(level string, e *sqlerr.Error) // level: Note, Warning
}

// definer makes or changes one definition.
type definer struct {
	env *Env
	t   *record.Table
	// isNew says that there are no rows yet.
	isNew bool
	// nullable and explicitNull are the columns, folded, that were declared NULL and DEFAULT
	// NULL in so many words: such cannot be in a primary key.
	nullable, explicitNull map[string]bool
	// checks that the text gives, to be added when all columns are known.
	checks []pendingCheck
}

type pendingCheck struct {
	check  ast.Check
	column string // of a column's own check
}

func (d *definer) warn(e *sqlerr.Error) {
	if d.env.Warn != nil {
		d.env.Warn("Warning", e)
	}
}

func (d *definer) note(e *sqlerr.Error) {
	if d.env.Warn != nil {
		d.env.Warn("Note", e)
	}
}

// comment checks how long a comment of name is: what is too long is cut off where that is no error.
func (d *definer) comment(text string, most int, tooLong sqlerr.Code, name string) (string, error) {
	if utf8.RuneCountInString(text) <= most {
		return text, nil
	}
	e := sqlerr.New(tooLong, name, most)
	if d.env.Strict {
		return "", e
	}
	d.warn(e)
	return string([]rune(text)[:most]), nil
}

// Define makes the definition of a new table in a schema from CREATE TABLE without
// LIKE. extra are columns that a SELECT gives, in its order behind those of the statement that it does not give (a
// column of the statement with the same name takes its place). Errors: MySQL's.
func Define(env *Env, schema string, st *ast.CreateTable, extra []record.Column) (*record.Table, error) {
	d := &definer{env: env, isNew: true, nullable: map[string]bool{}, explicitNull: map[string]bool{}, t: &record.Table{Schema: schema, Name: st.Table.Name,
		RowVersion: record.FirstRowVersion, NextColumn: 1, Collation: env.Collation}}
	if err := CheckName(st.Table.Name, sqlerr.WrongTableName); err != nil {
		return nil, err
	}
	if err := d.options(st.Options); err != nil {
		return nil, err
	}
	for i := range st.Columns {
		if slices.ContainsFunc(extra, func(c record.Column) bool { return dict.Fold(c.Name) == dict.Fold(st.Columns[i].Name) }) {
			continue
		}
		if err := d.addColumn(&st.Columns[i], -1); err != nil {
			return nil, err
		}
	}
	for i := range extra {
		typed := false
		for k := range st.Columns { // all, of which a second one is refused
			if dict.Fold(st.Columns[k].Name) != dict.Fold(extra[i].Name) {
				continue
			}
			typed = true
			if err := d.addColumn(&st.Columns[k], -1); err != nil {
				return nil, err
			}
		}
		if typed {
			continue
		}
		c := extra[i]
		c.ID, c.AddedIn = d.t.NextColumn, record.FirstRowVersion
		d.t.NextColumn++
		d.t.Columns = append(d.t.Columns, c)
	}
	if len(d.t.Columns) == 0 {
		return nil, sqlerr.New(sqlerr.TableMustHaveColumns)
	}
	if err := someVisible(d.t); err != nil {
		return nil, err
	}
	if err := d.keys(st.Columns, st.Indexes, append(columnKeys(st.Columns), st.ForeignKeys...)); err != nil {
		return nil, err
	}
	for i := range st.Checks {
		if !d.hasPending(st.Checks[i].Expr) {
			d.checks = append(d.checks, pendingCheck{check: st.Checks[i]})
		}
	}
	return d.finish()
}

// someVisible refuses a table of invisible columns.
func someVisible(t *record.Table) error {
	if !slices.ContainsFunc(visible(t), func(c *record.Column) bool { return !c.Invisible }) {
		return sqlerr.New(sqlerr.TableMustHaveAVisibleColumn)
	}
	return nil
}

func (d *definer) hasPending(e ast.Expr) bool {
	for i := range d.checks {
		if d.checks[i].check.Expr == e {
			return true
		}
	}
	return false
}

// keys adds the indexes and foreign keys of a statement, those that columns ask for
// first.
func (d *definer) keys(columns []ast.ColumnDef, indexes []ast.IndexDef, fks []ast.ForeignKey) error {
	for i := range columns {
		c := &columns[i]
		if c.PrimaryKey {
			if err := d.addIndex(&ast.IndexDef{Kind: ast.IndexPrimary, Parts: []ast.IndexPart{{Column: c.Name}}}); err != nil {
				return err
			}
		}
		if c.Unique {
			if err := d.addIndex(&ast.IndexDef{Kind: ast.IndexUnique, Parts: []ast.IndexPart{{Column: c.Name}}}); err != nil {
				return err
			}
		}
	}
	for i := range indexes {
		if err := d.addIndex(&indexes[i]); err != nil {
			return err
		}
	}
	for i := range fks {
		if err := d.addForeignKey(&fks[i]); err != nil {
			return err
		}
	}
	return nil
}

// finish checks what can be checked only when all of the definition is known.
func (d *definer) finish() (*record.Table, error) {
	for _, c := range d.checks {
		if err := d.addCheck(c); err != nil {
			return nil, err
		}
	}
	if err := d.checkGenerated(); err != nil {
		return nil, err
	}
	if err := d.checkDefaults(); err != nil {
		return nil, err
	}
	if err := d.checkAuto(); err != nil {
		return nil, err
	}
	if err := d.checkSize(); err != nil {
		return nil, err
	}
	if d.env.RequirePrimaryKey && (len(d.t.Indexes) == 0 || d.t.Indexes[0].Name != primaryName) {
		return nil, sqlerr.New(sqlerr.TableWithoutPK)
	}
	return d.t, nil
}

const primaryName = "PRIMARY"

// checkAuto: at most one AUTO_INCREMENT column, which leads an index.
func (d *definer) checkAuto() error {
	for _, c := range visible(d.t) {
		if !c.AutoIncrement {
			continue
		}
		led := false
		for i := range d.t.Indexes {
			led = led || d.t.Indexes[i].Parts[0].Column == c.ID
		}
		if !led {
			return errAuto()
		}
	}
	return nil
}

func errAuto() error {
	return sqlerr.New(sqlerr.WrongAutoKey)
}

// maxRowBytes is MySQL's limit on the declared size of a row without BLOBs.
const maxRowBytes = 65535

// checkSize checks the number of columns and MySQL's declared size of a row.
func (d *definer) checkSize() error {
	exist, size, nullable := 0, int64(0), int64(0)
	for i := range d.t.Columns {
		c := &d.t.Columns[i]
		if c.DroppedIn != 0 {
			continue
		}
		exist++
		if !c.Type.NotNull {
			nullable++
		}
		size += rowBytes(&c.Type)
	}
	if exist > record.MaxColumns {
		return sqlerr.New(sqlerr.TooManyFields)
	}
	if size+(nullable+7)/8 > maxRowBytes {
		return sqlerr.New(sqlerr.TooBigRowSize, 65535)
	}
	return nil
}

// rowBytes is what a column counts for in MySQL's size of a row.
func rowBytes(t *types.Type) int64 {
	switch t.Kind {
	case types.KindTinyText, types.KindTinyBlob:
		return 9
	case types.KindText, types.KindBlob:
		return 10
	case types.KindMediumText, types.KindMediumBlob:
		return 11
	case types.KindLongText, types.KindLongBlob, types.KindJSON:
		return 12
	case types.KindVarChar, types.KindVarBinary:
		n := t.MaxBytes()
		if n > 255 {
			return n + 2
		}
		return n + 1
	}
	if n, ok := types.FixedSize(t); ok {
		return int64(n)
	}
	return t.MaxBytes()
}

// substituted are engines of MySQL and MariaDB whose tables InnoDB holds as well, in small letters. Of others, which discard rows or
// hold them elsewhere, nobody expects that.
var substituted = []string{"myisam", "memory", "heap", "archive", "csv", "mrg_myisam", "merge", "aria"}

func (d *definer) engine(name string) error {
	if strings.EqualFold(name, "InnoDB") {
		return nil
	}
	if !d.env.InnoDBOnly && slices.Contains(substituted, strings.ToLower(name)) {
		d.env.LaxOptions = true // those that follow are that engine's
		d.warn(sqlerr.New(sqlerr.WarnUsingOtherHandler, "InnoDB", d.t.Name))
		return nil
	}
	unknown := sqlerr.New(sqlerr.UnknownStorageEngine, name)
	if d.env.NoEngineSubstitution {
		return unknown
	}
	d.warn(unknown)
	d.warn(sqlerr.New(sqlerr.WarnUsingOtherHandler, "InnoDB", d.t.Name))
	return nil
}

// checkGenerated checks the expressions of generated columns, which may name each
// other and those before.
func (d *definer) checkGenerated() error {
	for i := range d.t.Columns {
		c := &d.t.Columns[i]
		if c.Generated == "" || c.Hidden || c.DroppedIn != 0 {
			continue
		}
		if c.AutoIncrement {
			return sqlerr.New(sqlerr.WrongFieldSpec, c.Name)
		}
		if err := d.checkReferences(c); err != nil {
			return err
		}
	}
	return nil
}

func (d *definer) checkReferences(c *record.Column) error {
	e, err := ParseExpr(c.Generated)
	if err != nil {
		return err
	}
	var bad error
	eachColumn(e, func(ref *ast.ColumnRef) {
		if bad != nil {
			return
		}
		of := dict.FindColumn(d.t, ref.Name)
		switch {
		case of == nil || of.Hidden:
			bad = sqlerr.New(sqlerr.BadFieldError, ref.Name, "generated column function")
		case of.AutoIncrement:
			bad = sqlerr.New(sqlerr.GeneratedColumnRefAutoInc, c.Name)
		case of.Generated != "" && !precedes(d.t, of, c):
			bad = sqlerr.New(sqlerr.GeneratedColumnNonPrior)
		}
	})
	if bad != nil || d.env.Typer == nil {
		return bad
	}
	_, err = d.env.Typer.TypeOf(e, d.t)
	return err
}

// checkDefaults checks the defaults that are expressions.
func (d *definer) checkDefaults() error {
	for i := range d.t.Columns {
		c := &d.t.Columns[i]
		if c.Hidden || c.DroppedIn != 0 || Default(c) != DefaultExpr {
			continue
		}
		if err := d.checkDefault(c); err != nil {
			return err
		}
	}
	return nil
}

func (d *definer) checkDefault(c *record.Column) error {
	e, err := ParseExpr(DefaultText(c))
	if err != nil {
		return err
	}
	var bad error
	eachOperand(e, func(x ast.Expr) {
		if bad != nil {
			return
		}
		if hasQuery(x) {
			bad = sqlerr.New(sqlerr.DefaultValGeneratedFunctionIsNotAllowed, c.Name)
			return
		}
		switch x := x.(type) {
		case *ast.Variable, *ast.Assign:
			bad = sqlerr.New(sqlerr.DefaultValGeneratedVariables, c.Name)
		case *ast.ColumnRef:
			of := dict.FindColumn(d.t, x.Name)
			switch {
			case of == nil || of.Hidden:
				bad = sqlerr.New(sqlerr.BadFieldError, x.Name, "default value expression")
			case of.AutoIncrement:
				bad = sqlerr.New(sqlerr.DefaultValGeneratedRefAutoInc, c.Name)
			case (of.Generated != "" || Default(of) == DefaultExpr) && !precedes(d.t, of, c):
				bad = sqlerr.New(sqlerr.DefaultValGeneratedNonPrior, c.Name)
			}
		}
	})
	if bad != nil || d.env.Typer == nil {
		return bad
	}
	return d.env.Typer.Check(e, d.t)
}

// hasQuery reports whether an expression itself, not its operands, has a subquery.
func hasQuery(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Subquery, *ast.Exists:
		return true
	case *ast.In:
		return e.Query != nil
	}
	return false
}

// precedes reports whether a stands before b in the definition.
func precedes(t *record.Table, a, b *record.Column) bool {
	for i := range t.Columns {
		switch &t.Columns[i] {
		case b:
			return false
		case a:
			return true
		}
	}
	return false
}
