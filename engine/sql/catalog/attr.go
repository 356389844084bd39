package catalog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
)

// Names in record.Table.Options.
const (
	attrAuto    = dict.OptionAutoIncrement // least AUTO_INCREMENT value
	attrCheck   = "check."                 // + number: flags, name, expression
	attrStored  = "stored."                // + column number: the generated column is STORED
	attrView    = "view"                   // text of a view's query
	attrDefiner = "view.definer"           // name@host
	attrInvoker = "view.invoker"           // SQL SECURITY INVOKER
	attrChecked = "view.check"             // CASCADED or LOCAL
	attrAlgo    = "view.algorithm"         // MERGE, TEMPTABLE
	attrClient  = "view.client"            // character_set_client
	attrConn    = "view.connection"        // collation_connection
	attrSchema  = "view.schema"            // default schema when it was made
	attrNames   = "view.columns"           // the statement named the columns
	attrCreated = "created"                // microseconds since 1970, UTC
	attrUpdated = "altered"                // likewise
	attrOption  = "opt."                   // + name of a table option in upper case: its text
	attrHash    = "hash."                  // + index number by name: USING HASH was asked for
	attrShown   = "charset."               // + column number: its character set was given
	attrNext    = "check_next"             // number of the next nameless check
	attrNextFK  = "fk_next"                // number of the next nameless foreign key

	attrUnverified = "unverified." // + kind and name of a constraint, see OnlyConstrains
)

// Check is a CHECK constraint as a table has it.
type Check struct {
	Name     string
	Expr     string // text
	Enforced bool
}

// Checks returns the table's CHECK constraints in the order of their names.
func Checks(t *record.Table) []Check {
	var checks []Check
	for name, v := range t.Options {
		if rest, ok := strings.CutPrefix(name, attrCheck); ok && len(v) > 0 {
			checks = append(checks, Check{Name: rest, Expr: v[1:], Enforced: v[0] == '1'})
		}
	}
	slices.SortFunc(checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
	return checks
}

func setCheck(t *record.Table, c Check) {
	flag := "0"
	if c.Enforced {
		flag = "1"
	}
	setOption(t, attrCheck+c.Name, flag+c.Expr)
}

// setOption sets an option, or removes it if the value is empty.
func setOption(t *record.Table, name, value string) {
	if value == "" {
		delete(t.Options, name)
		return
	}
	if t.Options == nil {
		t.Options = map[string]string{}
	}
	t.Options[name] = value
}

// View is what a view's table carries.
type View struct {
	Query       string // its SELECT, canonical
	Named       bool   // the statement named the columns
	Schema      string // the default schema when it was made
	Definer     ast.User
	Invoker     bool   // SQL SECURITY INVOKER
	Algorithm   string // UNDEFINED, MERGE or TEMPTABLE
	CheckOption string // CASCADED, LOCAL or empty
	Client      string // character_set_client when it was made
	Connection  string // collation_connection likewise
}

// IsView reports whether a definition is that of a view.
func IsView(t *record.Table) bool { return t.Options[attrView] != "" }

// ViewOf returns a view's definition; ok is false for a table.
func ViewOf(t *record.Table) (v View, ok bool) {
	o := t.Options
	if o[attrView] == "" {
		return v, false
	}
	name, host := splitUser(o[attrDefiner])
	return View{Query: o[attrView], Named: o[attrNames] != "", Schema: o[attrSchema], Definer: ast.User{Name: name, Host: host}, Invoker: o[attrInvoker] != "",
		Algorithm: cmp.Or(o[attrAlgo], "UNDEFINED"), CheckOption: o[attrChecked], Client: o[attrClient], Connection: o[attrConn]}, true
}

// SetView makes a definition that of a view.
func SetView(t *record.Table, v View) {
	setOption(t, attrView, v.Query)
	setOption(t, attrSchema, v.Schema)
	setOption(t, attrDefiner, v.Definer.Name+"@"+v.Definer.Host)
	setOption(t, attrInvoker, flag(v.Invoker))
	setOption(t, attrNames, flag(v.Named))
	setOption(t, attrAlgo, v.Algorithm)
	setOption(t, attrChecked, v.CheckOption)
	setOption(t, attrClient, v.Client)
	setOption(t, attrConn, v.Connection)
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// splitUser splits name@host at the last @.
func splitUser(s string) (name, host string) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return s, "%"
	}
	return s[:i], s[i+1:]
}

// IsVirtual reports whether a generated column was declared VIRTUAL. It is stored all
// the same; the difference is one of SHOW and information_schema.
func IsVirtual(t *record.Table, c *record.Column) bool {
	return c.Generated != "" && t.Options[attrStored+strconv.FormatUint(uint64(c.ID), 10)] == ""
}

// SetTimes notes when a table was made and changed, in microseconds since 1970. Zero
// leaves what is there.
func SetTimes(t *record.Table, created, altered int64) {
	if created != 0 {
		setOption(t, attrCreated, strconv.FormatInt(created, 10))
	}
	if altered != 0 {
		setOption(t, attrUpdated, strconv.FormatInt(altered, 10))
	}
}

// Created returns when a table was made, in microseconds since 1970; 0: unknown.
func Created(t *record.Table) int64 {
	n, _ := strconv.ParseInt(t.Options[attrCreated], 10, 64)
	return n
}

// DefaultKind is what a column has by default.
type DefaultKind uint8

const (
	// DefaultNone: an INSERT must give a value, or takes the type's implicit default.
	DefaultNone DefaultKind = iota
	DefaultNull
	DefaultLiteral // a constant
	DefaultNow     // CURRENT_TIMESTAMP
	DefaultExpr    // DEFAULT (expression); Column.Default has the parentheses
)

// Default says of what kind a column's default is. Column.Default is the SQL text of
// the expression in any case.
func Default(c *record.Column) DefaultKind {
	switch {
	case !c.HasDefault:
		return DefaultNone
	case c.Default == "NULL":
		return DefaultNull
	case strings.HasPrefix(c.Default, "CURRENT_TIMESTAMP"):
		return DefaultNow
	case strings.HasPrefix(c.Default, "("):
		return DefaultExpr
	}
	return DefaultLiteral
}

// DefaultText is the SQL text of a column's default, without parentheses around an
// expression.
func DefaultText(c *record.Column) string {
	if Default(c) == DefaultExpr {
		return c.Default[1 : len(c.Default)-1]
	}
	return c.Default
}

// The actions of foreign keys are kept in record.ForeignKey as ast.Action's numbers.

// OnDelete returns what a foreign key does when the parent's row is deleted.
func OnDelete(k *record.ForeignKey) ast.Action { return ast.Action(k.OnDelete) }

// OnUpdate returns what a foreign key does when the parent's key changes.
func OnUpdate(k *record.ForeignKey) ast.Action { return ast.Action(k.OnUpdate) }

// visible returns the columns that SQL knows, in order: not dropped, not hidden.
func visible(t *record.Table) []*record.Column {
	var cols []*record.Column
	for i := range t.Columns {
		if c := &t.Columns[i]; c.DroppedIn == 0 && !c.Hidden {
			cols = append(cols, c)
		}
	}
	return cols
}

// Columns returns the columns that SQL knows, in the order of declaration.
func Columns(t *record.Table) []*record.Column { return visible(t) }
