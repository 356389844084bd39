package catalog

import (
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

func (a *alterer) dropIndex(name string, ifExists bool) error {
	i := dict.FindIndex(a.t, name)
	if i < 0 || a.t.Indexes[i].Name == dict.HiddenIndex {
		if ifExists {
			a.note(cantDrop(name).(*sqlerr.Error))
			return nil
		}
		return cantDrop(name)
	}
	ix := a.t.Indexes[i]
	a.t.Indexes = slices.Delete(a.t.Indexes, i, i+1)
	setOption(a.t, attrHash+dict.Fold(ix.Name), "")
	for j := range a.t.ForeignKeys {
		if k := &a.t.ForeignKeys[j]; leads(&ix, k.Columns) && leadingIndex(a.t, k.Columns) == nil {
			return sqlerr.New(sqlerr.DropIndexFK, ix.Name)
		}
	}
	for _, p := range ix.Parts { // its functional parts
		if c := a.t.Column(p.Column); c != nil && c.Hidden && c.Generated != "" {
			a.forget(c)
		}
	}
	return nil
}

func (a *alterer) dropForeignKey(name string, ifExists bool) error {
	i := findForeignKey(a.t, name)
	if i < 0 {
		if ifExists {
			a.note(cantDrop(name).(*sqlerr.Error))
			return nil
		}
		return cantDrop(name)
	}
	a.t.ForeignKeys = slices.Delete(a.t.ForeignKeys, i, i+1)
	return nil
}

func (a *alterer) dropConstraint(s *ast.DropConstraint) error {
	for _, c := range Checks(a.t) {
		if dict.Fold(c.Name) == dict.Fold(s.Name) {
			setOption(a.t, attrCheck+c.Name, "")
			return nil
		}
	}
	if !s.Any {
		return errNoCheck(s.Name)
	}
	if findForeignKey(a.t, s.Name) >= 0 {
		return a.dropForeignKey(s.Name, false)
	}
	if i := dict.FindIndex(a.t, s.Name); i >= 0 && a.t.Indexes[i].Unique && a.t.Indexes[i].Name != dict.HiddenIndex {
		return a.dropIndex(s.Name, false)
	}
	return sqlerr.New(sqlerr.ConstraintNotFound, s.Name)
}

func (a *alterer) renameIndex(s *ast.RenameIndex) error {
	i := dict.FindIndex(a.t, s.Old)
	switch {
	case i < 0:
		return errNoKey(s.Old, a.t.Name)
	case i == 0 || dict.Fold(s.New) == dict.Fold(primaryName):
		return sqlerr.New(sqlerr.WrongNameForIndex, s.New)
	}
	if err := CheckName(s.New, sqlerr.WrongNameForIndex); err != nil {
		return err
	}
	if j := dict.FindIndex(a.t, s.New); j >= 0 && j != i {
		return sqlerr.New(sqlerr.DupKeyName, s.New)
	}
	using := a.t.Options[attrHash+dict.Fold(s.Old)]
	setOption(a.t, attrHash+dict.Fold(s.Old), "")
	setOption(a.t, attrHash+dict.Fold(s.New), using)
	a.t.Indexes[i].Name = s.New
	return nil
}

// resolve finds out how the table gets its new definition.
func (a *alterer) resolve() (*Change, error) {
	ch := a.change
	why := a.force
	if why == "" {
		why = a.mustRebuild()
	}
	if why == "" {
		if ok, err := a.inPlace(); err != nil || ok {
			return ch, err
		}
		why = "the rows have no room for another version"
	}
	ch.Rebuild, ch.Reason = true, why
	ch.Table = fresh(a.t)
	return ch, nil
}

// fresh makes a definition that of a new table: no row of it has seen another one.
func fresh(t *record.Table) *record.Table {
	t = t.Clone()
	t.ID, t.Version, t.RowVersion = 0, 0, record.FirstRowVersion
	t.Columns = slices.DeleteFunc(t.Columns, func(c record.Column) bool {
		return c.DroppedIn != 0 || c.Hidden && c.Name == dict.HiddenColumn
	})
	for i := range t.Columns {
		t.Columns[i].AddedIn, t.Columns[i].Initial = record.FirstRowVersion, nil
	}
	t.Indexes = slices.DeleteFunc(t.Indexes, func(ix record.Index) bool { return ix.Name == dict.HiddenIndex })
	for i := range t.Indexes {
		t.Indexes[i].ID, t.Indexes[i].Building = 0, false
	}
	for i := range t.ForeignKeys {
		t.ForeignKeys[i].ID = 0
	}
	return t
}

// Fresh is the definition of a new empty table that is as another one, for CREATE TABLE
// LIKE: without its foreign keys, and without its name.
func Fresh(t *record.Table) *record.Table {
	t = fresh(t)
	t.ForeignKeys = nil
	setOption(t, attrAuto, "")
	setOption(t, attrNextFK, "")
	forgetMarks(t)
	return t
}

// mustRebuild says why the rows must be written anew, or nothing if they need not be.
func (a *alterer) mustRebuild() string {
	if !sameIndex(&a.old.Indexes[0], a.clustered()) {
		return "the primary key changes"
	}
	for i := range a.t.Columns {
		c := &a.t.Columns[i]
		before := a.old.Column(c.ID)
		switch {
		case before == nil && c.Generated != "":
			return "a generated column is added"
		case before == nil && c.AutoIncrement:
			return "an AUTO_INCREMENT column is added"
		case before == nil && Default(c) == DefaultExpr:
			return "the default value of an added column is an expression"
		case before == nil:
		case !dict.SameStorage(&before.Type, &c.Type):
			return "Cannot change column type INPLACE"
		case before.Generated != c.Generated:
			return "a generated column changes"
		case before.AutoIncrement != c.AutoIncrement && c.AutoIncrement && a.leadsNew(c.ID):
			return "an AUTO_INCREMENT column gets its index"
		}
	}
	return ""
}

// clustered is the clustered index of the new definition, nil if it has none yet.
func (a *alterer) clustered() *record.Index {
	if len(a.t.Indexes) > 0 && (a.t.Indexes[0].Name == primaryName || a.t.Indexes[0].Name == dict.HiddenIndex && PrimaryKey(a.old) == nil) {
		return &a.t.Indexes[0]
	}
	return nil
}

func sameIndex(a, b *record.Index) bool {
	return b != nil && a.ID == b.ID && a.Unique == b.Unique && slices.Equal(a.Parts, b.Parts)
}

// leadsNew reports whether only indexes that are yet to be built lead with a column.
func (a *alterer) leadsNew(id uint32) bool {
	for i := range a.t.Indexes {
		if ix := &a.t.Indexes[i]; ix.ID != 0 && ix.Parts[0].Column == id {
			return false
		}
	}
	return true
}

// inPlace makes the change one that touches no rows. ok is false if the table has had
// too many such changes.
func (a *alterer) inPlace() (ok bool, err error) {
	ch, next := a.change, a.t.Clone()
	version := next.RowVersion
	changed := false
	for i := range next.Columns {
		changed = changed || a.old.Column(next.Columns[i].ID) == nil
	}
	for i := range a.old.Columns {
		changed = changed || a.old.Columns[i].DroppedIn == 0 && next.Column(a.old.Columns[i].ID) == nil
	}
	if changed {
		if int(version)+1 > record.MaxRowVersion || len(a.old.Columns)+len(next.Columns) > 4*record.MaxColumns {
			return false, nil
		}
		version++
	}
	next.RowVersion = version
	for i := range next.Columns {
		c := &next.Columns[i]
		if a.old.Column(c.ID) != nil {
			continue
		}
		c.AddedIn = version
		if c.Initial, err = a.initial(c); err != nil {
			return false, err
		}
	}
	for i := range a.old.Columns {
		c := a.old.Columns[i]
		if c.DroppedIn == 0 && next.Column(c.ID) == nil {
			c.DroppedIn = version
			c.AutoIncrement, c.Generated, c.Default, c.HasDefault, c.OnUpdate = false, "", "", false, ""
		}
		if c.DroppedIn != 0 {
			next.Columns = append(next.Columns, c)
		}
	}
	if len(next.Columns) > record.MaxColumns {
		return false, nil
	}
	for _, ix := range next.Indexes {
		if ix.ID == 0 {
			ch.Add = append(ch.Add, ix)
		}
	}
	next.Indexes = slices.DeleteFunc(next.Indexes, func(ix record.Index) bool { return ix.ID == 0 })
	ch.Table = next
	ch.Same = sameDefinition(a.old, next)
	return true, nil
}

// initial is what rows have that were there before a column was added, in stored form.
func (a *alterer) initial(c *record.Column) ([]byte, error) {
	var v types.Value
	switch Default(c) {
	case DefaultNull:
		return nil, nil
	case DefaultNone:
		v = ImplicitDefault(&c.Type)
	case DefaultNow:
		v = types.NewTimestamp(a.env.Now)
		if c.Type.Kind == types.KindDateTime {
			v = types.NewDateTime(a.env.Now.In(a.location()))
		}
		x := types.Context{Mode: types.ModeDefault}
		var err error
		if v, err = x.Store(v, nil, &c.Type); err != nil {
			return nil, err
		}
	default:
		e, err := ParseExpr(c.Default)
		if err != nil {
			return nil, err
		}
		if v, err = a.constant(e, c); err != nil {
			return nil, err
		}
	}
	if v.IsNull() {
		return nil, nil
	}
	return types.AppendStored([]byte{}, v, &c.Type), nil
}

// location is the session's time zone.
func (a *alterer) location() *time.Location {
	if a.env.Types != nil {
		return a.env.Types.Location
	}
	return time.UTC
}

// sameDefinition reports whether nothing would change.
func sameDefinition(a, b *record.Table) bool {
	return a.Schema == b.Schema && a.Name == b.Name && a.Collation == b.Collation && a.Comment == b.Comment && a.RowVersion == b.RowVersion &&
		equalMaps(a.Options, b.Options) && slices.EqualFunc(a.Columns, b.Columns, sameColumn) &&
		slices.EqualFunc(a.Indexes, b.Indexes, func(x, y record.Index) bool {
			return x.ID == y.ID && x.Name == y.Name && x.Invisible == y.Invisible && x.Comment == y.Comment
		}) && slices.EqualFunc(a.ForeignKeys, b.ForeignKeys, func(x, y record.ForeignKey) bool {
		return x.Name == y.Name && x.ID == y.ID && slices.Equal(x.RefColumns, y.RefColumns) && x.RefTable == y.RefTable && x.RefSchema == y.RefSchema
	})
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func sameColumn(a, b record.Column) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Type.Equal(&b.Type) && a.Invisible == b.Invisible && a.AutoIncrement == b.AutoIncrement &&
		a.Default == b.Default && a.HasDefault == b.HasDefault && a.OnUpdate == b.OnUpdate && a.Generated == b.Generated &&
		a.Comment == b.Comment && a.DroppedIn == b.DroppedIn
}

// ZeroDefault gives a column of CREATE TABLE .. SELECT that is NOT NULL, and no copy of another one, the default that MySQL gives it: the
// zero of its type, where the sql_mode allows that, and where the type may have a default at all.
func ZeroDefault(c *record.Column, dates bool) {
	t := &c.Type
	switch {
	case !t.NotNull || t.IsLong() || t.Kind == types.KindEnum || t.Kind == types.KindSet:
		return
	case !dates && (t.Kind == types.KindDate || t.Kind == types.KindDateTime || t.Kind == types.KindTimestamp):
		return
	}
	c.HasDefault, c.Default = true, literalText(ImplicitDefault(t), t)
}

// ImplicitDefault is the value of a column without a default that an INSERT gives none,
// where the mode is not strict: zero, the empty string, the first member.
func ImplicitDefault(t *types.Type) types.Value {
	if !t.NotNull {
		return types.Null
	}
	switch t.Class() {
	case types.ClassInt:
		return types.NewInt(0)
	case types.ClassUint:
		if t.Kind == types.KindEnum {
			return types.NewUint(1)
		}
		return types.NewUint(0)
	case types.ClassFloat:
		return types.NewFloat(0)
	case types.ClassDouble:
		return types.NewDouble(0)
	case types.ClassDate:
		return types.NewDate(0)
	case types.ClassDateTime:
		return types.NewDateTime(0)
	case types.ClassTimestamp:
		return types.NewTimestamp(0)
	case types.ClassTime:
		return types.NewTime(0)
	}
	var x types.Context
	zero := types.NewInt(0)
	if t.Class() == types.ClassBytes {
		zero = types.NewBytes(nil)
	}
	if t.Class() == types.ClassJSON {
		zero = types.NewString("null")
	}
	v, err := x.Store(zero, nil, t)
	if err != nil {
		return types.Null
	}
	return v.Clone()
}
