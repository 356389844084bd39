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

// addCheck adds a CHECK constraint.
func (d *definer) addCheck(p pendingCheck) error {
	c := Check{Name: p.check.Name, Expr: ExprText(p.check.Expr), Enforced: !p.check.NotEnforced}
	if c.Name == "" {
		c.Name = d.nextName("_chk_", attrNext)
	}
	name := c.Name
	if n := len(name) - 1; n > 0 && name[n] == ' ' { // here MySQL allows a space at the end
		name = name[:n] + "_"
	}
	if err := CheckName(name, sqlerr.WrongNameForIndex); err != nil {
		return err
	}
	for _, other := range Checks(d.t) {
		if dict.Fold(other.Name) == dict.Fold(c.Name) {
			return sqlerr.New(sqlerr.CheckConstraintDupName, c.Name)
		}
	}
	var bad error
	eachColumn(p.check.Expr, func(ref *ast.ColumnRef) {
		of := dict.FindColumn(d.t, ref.Name)
		switch {
		case bad != nil:
		case of == nil || of.Hidden:
			bad = sqlerr.New(sqlerr.CheckConstraintRefersUnknownColumn, c.Name, ref.Name)
		case p.column != "" && dict.Fold(of.Name) != dict.Fold(p.column):
			bad = sqlerr.New(sqlerr.ColumnCheckConstraintReferencesOtherColumn, c.Name)
		case of.AutoIncrement:
			bad = sqlerr.New(sqlerr.CheckConstraintRefersAutoIncrementColumn, c.Name)
		}
	})
	if bad != nil {
		return bad
	}
	if d.env.Typer != nil {
		if _, err := d.env.Typer.TypeOf(p.check.Expr, d.t); err != nil {
			return err
		}
	}
	setCheck(d.t, c)
	return nil
}

// nextName makes a name for a constraint that is given none: table_chk_1 and so on. The
// numbers are never used again.
func (d *definer) nextName(infix, attr string) string {
	n, _ := strconv.ParseUint(d.t.Options[attr], 10, 32)
	for {
		n++
		name := d.t.Name + infix + number(n)
		setOption(d.t, attr, number(n))
		if !d.constraintNamed(name) {
			return name
		}
	}
}

func (d *definer) constraintNamed(name string) bool {
	for _, c := range Checks(d.t) {
		if dict.Fold(c.Name) == dict.Fold(name) {
			return true
		}
	}
	return findForeignKey(d.t, name) >= 0
}

func findForeignKey(t *record.Table, name string) int {
	for i := range t.ForeignKeys {
		if dict.Fold(t.ForeignKeys[i].Name) == dict.Fold(name) {
			return i
		}
	}
	return -1
}

// columnKeys are the foreign keys that columns ask for with REFERENCES.
func columnKeys(columns []ast.ColumnDef) []ast.ForeignKey {
	var list []ast.ForeignKey
	for i := range columns {
		if r := columns[i].References; r != nil {
			list = append(list, ast.ForeignKey{Columns: []string{columns[i].Name}, Reference: *r})
		}
	}
	return list
}

// parent is the table that a foreign key refers to, perhaps the one defined; nil: it is not there.
func (d *definer) parent(k *record.ForeignKey) (*record.Table, error) {
	if k.RefSchema == d.t.Schema && k.RefTable == d.t.Name {
		return d.t, nil
	}
	if d.env.Table == nil {
		return nil, nil
	}
	return d.env.Table(k.RefSchema, k.RefTable)
}

// referredKey gives a foreign key without columns of the other table those of its primary key.
func (d *definer) referredKey(k *record.ForeignKey) error {
	parent, err := d.parent(k)
	if err != nil {
		return err
	}
	if parent == nil {
		return sqlerr.New(sqlerr.FKCannotOpenParent, k.RefTable)
	}
	if pk := PrimaryKey(parent); pk != nil {
		for _, p := range pk.Parts {
			k.RefColumns = append(k.RefColumns, parent.Column(p.Column).Name)
		}
	}
	return nil
}

// addForeignKey adds a foreign key and, if there is none, the index that it needs.
func (d *definer) addForeignKey(def *ast.ForeignKey) error {
	ref := &def.Reference
	k := record.ForeignKey{Name: def.Name, RefSchema: ref.Table.Schema, RefTable: ref.Table.Name, RefColumns: ref.Columns,
		OnDelete: uint8(ref.OnDelete), OnUpdate: uint8(ref.OnUpdate)}
	if k.RefSchema == "" {
		k.RefSchema = d.t.Schema
	}
	named := k.Name != ""
	if !named {
		k.Name = d.nextName("_ibfk_", attrNextFK)
	}
	if err := CheckName(k.Name, sqlerr.WrongNameForIndex); err != nil {
		return err
	}
	if findForeignKey(d.t, k.Name) >= 0 {
		return sqlerr.New(sqlerr.FKDupName, k.Name)
	}
	if ref.Match != "" && !strings.EqualFold(ref.Match, "SIMPLE") {
		return sqlerr.New(sqlerr.NotSupportedYet, "MATCH "+strings.ToUpper(ref.Match))
	}
	if len(k.RefColumns) == 0 {
		if err := d.referredKey(&k); err != nil {
			return err
		}
	}
	if len(k.RefColumns) != len(def.Columns) {
		return sqlerr.New(sqlerr.WrongFKDef, k.Name, "Key reference and table reference don't match")
	}
	if ref.OnDelete == ast.ActionSetDefault || ref.OnUpdate == ast.ActionSetDefault {
		return sqlerr.New(sqlerr.CannotAddForeign)
	}
	for _, name := range def.Columns {
		c := dict.FindColumn(d.t, name)
		switch {
		case c == nil || c.Hidden:
			return sqlerr.New(sqlerr.KeyColumnDoesNotExits, name)
		case c.Type.NotNull && (ref.OnDelete == ast.ActionSetNull || ref.OnUpdate == ast.ActionSetNull):
			return sqlerr.New(sqlerr.FKColumnNotNull, c.Name, k.Name)
		case c.Type.IsLong():
			return sqlerr.New(sqlerr.BlobKeyWithoutLength, c.Name)
		case IsVirtual(d.t, c):
			return sqlerr.New(sqlerr.WrongFKOptionForGeneratedColumn, "ON UPDATE")
		}
		k.Columns = append(k.Columns, c.ID)
	}
	if err := d.checkParent(&k); err != nil {
		return err
	}
	d.t.ForeignKeys = append(d.t.ForeignKeys, k)
	if leadingIndex(d.t, k.Columns) != nil {
		return nil
	}
	ix := ast.IndexDef{Name: def.Name}
	if ix.Name != "" && dict.FindIndex(d.t, ix.Name) >= 0 {
		ix.Name = ""
	}
	for _, name := range def.Columns {
		ix.Parts = append(ix.Parts, ast.IndexPart{Column: name})
	}
	return d.addIndex(&ix)
}

// KeysIndexed reports whether all foreign keys of a table have their index in it.
func KeysIndexed(t *record.Table) bool {
	return !slices.ContainsFunc(t.ForeignKeys, func(k record.ForeignKey) bool { return leadingIndex(t, k.Columns) == nil })
}

// leadingIndex returns an index whose first parts are the columns, whole; one that is being built may come to nothing.
func leadingIndex(t *record.Table, columns []uint32) *record.Index {
	for i := range t.Indexes {
		if !t.Indexes[i].Building && leads(&t.Indexes[i], columns) {
			return &t.Indexes[i]
		}
	}
	return nil
}

func leads(ix *record.Index, columns []uint32) bool {
	if len(ix.Parts) < len(columns) {
		return false
	}
	for i, c := range columns {
		if ix.Parts[i].Column != c || ix.Parts[i].Prefix != 0 {
			return false
		}
	}
	return true
}

// checkParent checks a foreign key against the table that it refers to. Without
// foreign_key_checks a table that is not there is none's business yet.
func (d *definer) checkParent(k *record.ForeignKey) error {
	parent, err := d.parent(k)
	switch {
	case err != nil:
		return err
	case parent == nil && d.env.ForeignKeyChecks:
		return sqlerr.New(sqlerr.FKCannotOpenParent, k.RefTable)
	case parent == nil:
		return nil
	case IsView(parent):
		return sqlerr.New(sqlerr.WrongObject, k.RefSchema, k.RefTable, "BASE TABLE")
	}
	return CheckReference(d.t, k, parent)
}

// CheckReference checks that a foreign key of a table fits the table it refers to.
// Errors: 1822, 3734, 3780.
func CheckReference(t *record.Table, k *record.ForeignKey, parent *record.Table) error {
	var columns []uint32
	for i, name := range k.RefColumns {
		of := dict.FindColumn(parent, name)
		if of == nil || of.Hidden {
			return sqlerr.New(sqlerr.FKNoColumnParent, name, k.Name, parent.Name)
		}
		c := t.Column(k.Columns[i])
		if !compatible(&c.Type, &of.Type) {
			return sqlerr.New(sqlerr.FKIncompatibleColumns, c.Name, of.Name, k.Name)
		}
		columns = append(columns, of.ID)
	}
	if leadingIndex(parent, columns) == nil {
		return sqlerr.New(sqlerr.FKNoIndexParent, k.Name, parent.Name)
	}
	return nil
}

// compatible reports whether a column can refer to another one: keys of both compare as
// bytes.
func compatible(a, b *types.Type) bool {
	switch {
	case a.IsText() || a.IsBlob():
		return (b.IsText() || b.IsBlob()) && a.Collation == b.Collation && a.IsText() == b.IsText()
	case a.Kind == types.KindEnum || a.Kind == types.KindSet:
		x, _ := types.FixedSize(a)
		y, _ := types.FixedSize(b)
		return a.Kind == b.Kind && x == y
	case a.Kind == types.KindDecimal:
		return b.Kind == a.Kind && a.Precision == b.Precision && a.Scale == b.Scale
	}
	return a.Kind == b.Kind && a.Unsigned == b.Unsigned && a.FSP == b.FSP
}
