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

// Change is what ALTER TABLE comes to.
type Change struct {
	Old *record.Table
	// Table is the definition afterwards. Without Rebuild the old table gets it as it
	// is, and then the indexes of Add, which are not part of it; both may be without
	// effect. With Rebuild it is that of a new table, which takes the rows of the old one:
	// a column has the number that it has there.
	Table   *record.Table
	Add     []record.Index
	Rebuild bool
	Reason  string // of the rebuild
	// Same says that nothing changes but, perhaps, Add.
	Same bool
	// Checks are new or newly enforced CHECK constraints and ForeignKeys the names of
	// new foreign keys: rows must satisfy them.
	Checks      []Check
	ForeignKeys []string
	// Dropped and Renamed are columns, by old name, that others may refer to.
	Dropped []string
	Renamed map[string]string
}

// alterer applies the parts of an ALTER TABLE.
type alterer struct {
	definer
	old    *record.Table
	change *Change
	force  string // why the table must be rebuilt, if known
}

// Alter works out what ALTER TABLE comes to. Errors: MySQL's.
func Alter(env *Env, old *record.Table, specs []ast.AlterSpec) (*Change, error) {
	next := old.Clone()
	next.Columns = slices.DeleteFunc(next.Columns, func(c record.Column) bool { return c.DroppedIn != 0 })
	a := &alterer{definer: definer{env: env, t: next, nullable: map[string]bool{}, explicitNull: map[string]bool{}}, old: old,
		change: &Change{Old: old, Renamed: map[string]string{}}}
	for _, s := range specs {
		if isDrop(s) {
			if err := a.spec(s); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range specs {
		if !isDrop(s) {
			if err := a.spec(s); err != nil {
				return nil, err
			}
		}
	}
	if len(visible(next)) == 0 {
		return nil, sqlerr.New(sqlerr.CantRemoveAllFields)
	}
	if err := someVisible(next); err != nil {
		return nil, err
	}
	before := old.Clone()
	before.Schema, before.Name = next.Schema, next.Name
	RenameSelfReferences(before, old.Schema, old.Name) // rows satisfy a check by whatever name
	checks := Checks(before)
	if pk := PrimaryKey(next); pk != nil {
		for _, p := range pk.Parts {
			if err := a.notNull(next.Column(p.Column)); err != nil {
				return nil, err
			}
		}
	}
	if _, err := a.finish(); err != nil {
		return nil, err
	}
	if err := a.checkReferring(); err != nil {
		return nil, err
	}
	for _, c := range Checks(next) {
		if c.Enforced && !slices.Contains(checks, c) {
			a.change.Checks = append(a.change.Checks, c)
		}
	}
	a.change.sweepMarks(next)
	return a.resolve()
}

// checkReferring checks foreign keys again of which a column has another type now.
func (a *alterer) checkReferring() error {
	if !a.env.ForeignKeyChecks {
		return nil
	}
	for i := range a.t.ForeignKeys {
		k := &a.t.ForeignKeys[i]
		for _, id := range k.Columns {
			if before := a.old.Column(id); before != nil && !before.Type.Equal(&a.t.Column(id).Type) {
				if err := a.checkParent(k); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func isDrop(s ast.AlterSpec) bool {
	switch s.(type) {
	case *ast.DropColumn, *ast.DropIndexSpec, *ast.DropForeignKey, *ast.DropConstraint:
		return true
	}
	return false
}

func (a *alterer) spec(s ast.AlterSpec) error {
	switch s := s.(type) {
	case *ast.AddColumns:
		return a.addColumns(s)
	case *ast.DropColumn:
		return a.dropColumn(s)
	case *ast.ChangeColumn:
		return a.changeColumn(s)
	case *ast.RenameColumn:
		return a.renameColumn(s)
	case *ast.SetDefault:
		return a.setDefault(s)
	case *ast.SetColumnVisible:
		c, err := a.column1054(s.Column)
		if err == nil {
			c.Invisible = s.Invisible
		}
		return err
	case *ast.AddIndex:
		if s.Index.IfNotExists && s.Index.Name != "" && dict.FindIndex(a.t, s.Index.Name) >= 0 {
			a.note(sqlerr.New(sqlerr.DupKeyName, s.Index.Name))
			return nil
		}
		return a.addIndex(&s.Index)
	case *ast.AddForeignKey:
		return a.newForeignKey(&s.ForeignKey)
	case *ast.AddCheck:
		a.checks = append(a.checks, pendingCheck{check: s.Check})
		return nil
	case *ast.RenameTo:
		return a.renameTo(s)
	case *ast.SetOptions:
		return a.options(s.Options)
	case *ast.ConvertCharset:
		return a.convertCharset(s)
	case *ast.Force:
		a.force = "FORCE"
		return nil
	case *ast.SetKeys:
		a.note(sqlerr.New(sqlerr.IllegalHA, a.old.Name))
		return nil
	case *ast.OrderRows:
		a.orderRows()
		return nil
	}
	return a.indexSpec(s)
}

// indexSpec applies the parts that concern indexes and constraints that exist.
func (a *alterer) indexSpec(s ast.AlterSpec) error {
	switch s := s.(type) {
	case *ast.DropIndexSpec:
		return a.dropIndex(s.Name, s.IfExists)
	case *ast.DropForeignKey:
		return a.dropForeignKey(s.Name, s.IfExists)
	case *ast.DropConstraint:
		return a.dropConstraint(s)
	case *ast.SetCheckEnforced:
		for _, c := range Checks(a.t) {
			if dict.Fold(c.Name) == dict.Fold(s.Name) {
				c.Enforced = !s.NotEnforced
				setCheck(a.t, c)
				return nil
			}
		}
		return errNoCheck(s.Name)
	case *ast.SetIndexVisible:
		i := dict.FindIndex(a.t, s.Name)
		switch {
		case i < 0:
			return errNoKey(s.Name, a.t.Name)
		case a.t.Indexes[i].Name == primaryName:
			return sqlerr.New(sqlerr.PKIndexCantBeInvisible)
		}
		a.t.Indexes[i].Invisible = s.Invisible
		return nil
	case *ast.RenameIndex:
		return a.renameIndex(s)
	}
	return sqlerr.New(sqlerr.NotSupportedYet, "this kind of ALTER TABLE")
}

func errNoCheck(name string) error {
	return sqlerr.New(sqlerr.CheckConstraintNotFound, name)
}
func errNoKey(name, table string) error {
	return sqlerr.New(sqlerr.KeyDoesNotExits, name, table)
}
func cantDrop(name string) error {
	return sqlerr.New(sqlerr.CantDropFieldOrKey, name)
}

func (a *alterer) column1054(name string) (*record.Column, error) {
	c := dict.FindColumn(a.t, name)
	if c == nil || c.Hidden {
		return nil, sqlerr.New(sqlerr.BadFieldError, name, a.old.Name)
	}
	return c, nil
}

// positionFor is the position that FIRST or AFTER means; -1 is the end.
func (a *alterer) positionFor(p ast.Position) (int, error) {
	switch {
	case p.First:
		return 0, nil
	case p.After == "":
		return -1, nil
	}
	c, err := a.column1054(p.After)
	if err != nil {
		return 0, err
	}
	return a.positionOf(c.ID) + 1, nil
}

func (a *alterer) positionOf(id uint32) int {
	return slices.IndexFunc(a.t.Columns, func(c record.Column) bool { return c.ID == id })
}

func (a *alterer) addColumns(s *ast.AddColumns) error {
	at, err := a.positionFor(s.Position)
	if err != nil {
		return err
	}
	columns := s.Columns
	if s.IfNotExists {
		columns = nil
		for _, c := range s.Columns {
			if dict.FindColumn(a.t, c.Name) != nil {
				a.note(sqlerr.New(sqlerr.DupFieldName, c.Name))
				continue
			}
			columns = append(columns, c)
		}
	}
	for i := range columns {
		if err := a.addColumn(&columns[i], at); err != nil {
			return err
		}
		if at >= 0 {
			at++
		}
	}
	if err := a.keys(columns, s.Indexes, nil); err != nil {
		return err
	}
	if err := a.newForeignKeys(append(columnKeys(columns), s.ForeignKeys...)); err != nil {
		return err
	}
	for i := range s.Checks {
		if !a.hasPending(s.Checks[i].Expr) {
			a.checks = append(a.checks, pendingCheck{check: s.Checks[i]})
		}
	}
	return nil
}

func (a *alterer) newForeignKeys(list []ast.ForeignKey) error {
	for i := range list {
		if err := a.newForeignKey(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *alterer) newForeignKey(def *ast.ForeignKey) error {
	if err := a.addForeignKey(def); err != nil {
		return err
	}
	a.change.ForeignKeys = append(a.change.ForeignKeys, a.t.ForeignKeys[len(a.t.ForeignKeys)-1].Name)
	return nil
}

func (a *alterer) dropColumn(s *ast.DropColumn) error {
	c := dict.FindColumn(a.t, s.Name)
	if c == nil || c.Hidden {
		if s.IfExists {
			a.note(cantDrop(s.Name).(*sqlerr.Error))
			return nil
		}
		return cantDrop(s.Name)
	}
	for i := range a.t.ForeignKeys {
		if slices.Contains(a.t.ForeignKeys[i].Columns, c.ID) {
			return sqlerr.New(sqlerr.FKColumnCannotDrop, c.Name, a.t.ForeignKeys[i].Name)
		}
	}
	if err := a.checkUnused(c, "dropped"); err != nil {
		return err
	}
	for i := range a.t.Indexes {
		ix := &a.t.Indexes[i]
		n := len(ix.Parts)
		ix.Parts = slices.DeleteFunc(ix.Parts, func(p record.Part) bool { return p.Column == c.ID })
		if len(ix.Parts) < n {
			ix.ID = 0
		}
	}
	a.t.Indexes = slices.DeleteFunc(a.t.Indexes, func(ix record.Index) bool { return len(ix.Parts) == 0 })
	a.change.Dropped = append(a.change.Dropped, c.Name)
	a.forget(c)
	return nil
}

// forget removes a column from the definition.
func (a *alterer) forget(c *record.Column) {
	id := strconv.FormatUint(uint64(c.ID), 10)
	setOption(a.t, attrShown+id, "")
	setOption(a.t, attrStored+id, "")
	at := a.positionOf(c.ID)
	a.t.Columns = slices.Delete(a.t.Columns, at, at+1)
}

// checkUnused refuses to drop or rename a column that expressions name. A check that
// names no other column goes with the column.
func (a *alterer) checkUnused(c *record.Column, what string) error {
	for i := range a.t.Columns {
		o := &a.t.Columns[i]
		if o.Generated == "" || o.ID == c.ID || !names(o.Generated, c.Name) {
			continue
		}
		if o.Hidden {
			return sqlerr.New(sqlerr.DependentByFunctionalIndex, c.Name)
		}
		return sqlerr.New(sqlerr.DependentByGeneratedColumn, c.Name)
	}
	for _, check := range Checks(a.t) {
		if !names(check.Expr, c.Name) {
			continue
		}
		if what == "dropped" && !namesOthers(check.Expr, c.Name) {
			setOption(a.t, attrCheck+check.Name, "")
			continue
		}
		return sqlerr.New(sqlerr.DependentByCheckConstraint, check.Name, c.Name)
	}
	for i := range a.t.Columns {
		o := &a.t.Columns[i]
		if o.ID != c.ID && Default(o) == DefaultExpr && names(o.Default, c.Name) {
			return sqlerr.Newf(sqlerr.UnsupportedActionOnDefaultValGenerated, "Column '%s' of table '%s' has a "+
				"default value expression dependency and cannot be dropped or renamed.", c.Name, a.t.Name)
		}
	}
	return nil
}

func names(text, column string) bool {
	found := false
	if e, err := ParseExpr(text); err == nil {
		eachColumn(e, func(r *ast.ColumnRef) { found = found || dict.Fold(r.Name) == dict.Fold(column) })
	}
	return found
}

func namesOthers(text, column string) bool {
	found := false
	if e, err := ParseExpr(text); err == nil {
		eachColumn(e, func(r *ast.ColumnRef) { found = found || dict.Fold(r.Name) != dict.Fold(column) })
	}
	return found
}

func (a *alterer) changeColumn(s *ast.ChangeColumn) error {
	c := dict.FindColumn(a.t, s.Old)
	if c == nil || c.Hidden {
		if s.IfExists {
			a.note(sqlerr.New(sqlerr.BadFieldError, s.Old, a.old.Name))
			return nil
		}
		return sqlerr.New(sqlerr.BadFieldError, s.Old, a.old.Name)
	}
	if err := a.rename(c, s.Column.Name); err != nil {
		return err
	}
	id := c.ID
	inKey := false
	if pk := PrimaryKey(a.t); pk != nil {
		inKey = slices.ContainsFunc(pk.Parts, func(p record.Part) bool { return p.Column == id })
	}
	if inKey && s.Column.Null == ast.NullAllowed {
		return errNullablePrimary()
	}
	def := s.Column
	if inKey && def.Null == ast.NullUnspecified {
		def.Null = ast.NotNull
	}
	def.PrimaryKey = false
	if err := a.column(&def, c); err != nil {
		return err
	}
	if s.Column.PrimaryKey || s.Column.Unique {
		if err := a.keys([]ast.ColumnDef{s.Column}, nil, nil); err != nil {
			return err
		}
	}
	if err := a.newForeignKeys(columnKeys([]ast.ColumnDef{s.Column})); err != nil {
		return err
	}
	a.fitIndexes(id)
	return a.move(id, s.Position)
}

// fitIndexes takes prefixes away that are not shorter than their column any more.
func (a *alterer) fitIndexes(id uint32) {
	c := a.t.Column(id)
	for i := range a.t.Indexes {
		for j := range a.t.Indexes[i].Parts {
			p := &a.t.Indexes[i].Parts[j]
			if p.Column == id && p.Prefix != 0 && !c.Type.IsLong() && p.Prefix >= c.Type.Length {
				p.Prefix = 0
			}
		}
	}
}

// move puts a column where FIRST or AFTER says.
func (a *alterer) move(id uint32, p ast.Position) error {
	if !p.First && p.After == "" {
		return nil
	}
	at := a.positionOf(id)
	c := a.t.Columns[at]
	if p.After != "" && dict.Fold(p.After) == dict.Fold(c.Name) {
		return sqlerr.New(sqlerr.BadFieldError, p.After, a.old.Name)
	}
	a.t.Columns = slices.Delete(a.t.Columns, at, at+1)
	to, err := a.positionFor(p)
	if err != nil {
		return err
	}
	a.t.Columns = slices.Insert(a.t.Columns, to, c)
	return nil
}

// rename gives a column another name.
func (a *alterer) rename(c *record.Column, name string) error {
	if c.Name == name {
		return nil
	}
	if o := dict.FindColumn(a.t, name); o != nil && o.ID != c.ID {
		return sqlerr.New(sqlerr.DupFieldName, name)
	}
	if dict.Fold(c.Name) != dict.Fold(name) {
		if err := a.checkUnused(c, "renamed"); err != nil {
			return err
		}
	}
	for i := range a.t.ForeignKeys { // of the table to itself
		k := &a.t.ForeignKeys[i]
		if k.RefSchema == a.old.Schema && k.RefTable == a.old.Name {
			k.RefColumns = slices.Clone(k.RefColumns)
			for j := range k.RefColumns {
				if dict.Fold(k.RefColumns[j]) == dict.Fold(c.Name) {
					k.RefColumns[j] = name
				}
			}
		}
	}
	a.change.Renamed[c.Name] = name
	c.Name = name
	return nil
}

func (a *alterer) renameColumn(s *ast.RenameColumn) error {
	c, err := a.column1054(s.Old)
	if err != nil {
		return err
	}
	if err := CheckName(s.New, sqlerr.WrongColumnName); err != nil {
		return err
	}
	return a.rename(c, s.New)
}

func (a *alterer) setDefault(s *ast.SetDefault) error {
	c, err := a.column1054(s.Column)
	if err != nil {
		return err
	}
	c.HasDefault, c.Default = false, ""
	if s.Default == nil {
		return nil
	}
	if c.AutoIncrement || c.Generated != "" {
		return errInvalidDefault(c.Name)
	}
	return a.defaultOf(s.Default, s.DefaultExpr, c)
}

func (a *alterer) renameTo(s *ast.RenameTo) error {
	if err := CheckName(s.Table.Name, sqlerr.WrongTableName); err != nil {
		return err
	}
	if s.Table.Schema != "" {
		a.t.Schema = s.Table.Schema
	}
	a.t.Name = s.Table.Name
	RenameSelfReferences(a.t, a.old.Schema, a.old.Name)
	for i, name := range a.change.ForeignKeys {
		if rest, ok := strings.CutPrefix(name, a.old.Name+"_ibfk_"); ok {
			a.change.ForeignKeys[i] = a.t.Name + "_ibfk_" + rest
		}
	}
	return nil
}

// RenameSelfReferences lets foreign keys of a table to itself, by its old name, follow
// its new one. Names that were made from the table's old one follow too.
func RenameSelfReferences(t *record.Table, schema, name string) {
	for i := range t.ForeignKeys {
		k := &t.ForeignKeys[i]
		if k.RefSchema == schema && k.RefTable == name {
			k.RefSchema, k.RefTable = t.Schema, t.Name
		}
		if rest, ok := strings.CutPrefix(k.Name, name+"_ibfk_"); ok {
			moveMark(t, unverifiedKey, k.Name, t.Name+"_ibfk_"+rest)
			k.Name = t.Name + "_ibfk_" + rest
		}
	}
	for _, c := range Checks(t) {
		if rest, ok := strings.CutPrefix(c.Name, name+"_chk_"); ok {
			setOption(t, attrCheck+c.Name, "")
			moveMark(t, unverifiedCheck, c.Name, t.Name+"_chk_"+rest)
			c.Name = t.Name + "_chk_" + rest
			setCheck(t, c)
		}
	}
}

// convertMembers returns the members of ENUM or SET in another character set.
func convertMembers(t *types.Type, to types.Charset) []string {
	from := t.Charset()
	if types.SameBytes(from, to) {
		return t.Members
	}
	members := make([]string, len(t.Members))
	for i, m := range t.Members {
		b, _ := types.Convert(nil, []byte(m), from, to)
		members[i] = string(b)
	}
	return members
}

func (a *alterer) convertCharset(s *ast.ConvertCharset) error {
	id, err := Collation(s.Charset, s.Collate, a.t.Collation)
	if err != nil {
		return err
	}
	if strings.EqualFold(s.Charset, "default") && s.Collate == "" {
		id = a.env.Collation
	}
	a.t.Collation = id
	width := types.CollationByID(id).Charset().MaxLen()
	for i := range a.t.Columns {
		c := &a.t.Columns[i]
		t := &c.Type
		if c.Hidden || !t.IsText() && t.Kind != types.KindEnum && t.Kind != types.KindSet {
			continue
		}
		if t.Kind >= types.KindTinyText && t.Kind < types.KindLongText && width > t.Charset().MaxLen() {
			t.Kind++ // as many characters fit as before
		}
		t.Members = convertMembers(t, types.CollationByID(id).Charset())
		t.Collation = id
		setOption(a.t, attrShown+strconv.FormatUint(uint64(c.ID), 10), "")
	}
	return nil
}
