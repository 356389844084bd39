package dict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// Names of what a table without a primary key is given. InnoDB's name for the
// index is reserved for it there too.
const (
	HiddenIndex  = "GEN_CLUST_INDEX"
	HiddenColumn = "!row_id"
)

// Fold gives names of columns and indexes that are equal in MySQL the same form.
// Names of schemas and tables are equal only if their bytes are.
func Fold(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf }) {
		return name
	}
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, name)
}

// FindColumn returns the existing column of that name, or nil.
func FindColumn(def *record.Table, name string) *record.Column {
	name = Fold(name)
	for i := range def.Columns {
		if col := &def.Columns[i]; col.DroppedIn == 0 && Fold(col.Name) == name {
			return col
		}
	}
	return nil
}

// FindIndex returns the position of the index of that name, or -1.
func FindIndex(def *record.Table, name string) int {
	name = Fold(name)
	return slices.IndexFunc(def.Indexes, func(ix record.Index) bool { return Fold(ix.Name) == name })
}

func isDuplicate(err error) bool {
	var dup *table.DuplicateError
	return errors.As(err, &dup)
}

// isError reports whether err is MySQL's error of that number.
func isError(err error, number sqlerr.Code) bool {
	var e *sqlerr.Error
	return errors.As(err, &e) && e.Number == number
}

func sameValue(a, b types.Value) bool {
	if a.Class() != b.Class() {
		return false
	}
	if a.Class() == types.ClassBytes {
		return string(a.Bytes()) == string(b.Bytes())
	}
	return a.Uint() == b.Uint()
}

// complete returns a copy of a definition with what CreateTable fills in, numbers
// aside.
func complete(def *record.Table) *record.Table {
	d := def.Clone()
	d.Version = max(d.Version, 1)
	d.RowVersion = max(d.RowVersion, record.FirstRowVersion)
	for i := range d.Columns {
		col := &d.Columns[i]
		if col.ID == 0 {
			col.ID = uint32(i + 1)
		}
		col.AddedIn = max(col.AddedIn, record.FirstRowVersion)
		d.NextColumn = max(d.NextColumn, col.ID+1)
	}
	if i := FindIndex(d, primaryName); i >= 0 {
		primary := d.Indexes[i]
		primary.Name, primary.Unique = primaryName, true
		d.Indexes = slices.Insert(slices.Delete(d.Indexes, i, i+1), 0, primary)
	} else if !hasHiddenKey(d) && len(d.Columns) > 0 {
		addHiddenKey(d)
	}
	return d
}

// hasHiddenKey reports whether the table has the key of one without a primary key.
func hasHiddenKey(def *record.Table) bool {
	if len(def.Indexes) == 0 || def.Indexes[0].Name != HiddenIndex || len(def.Indexes[0].Parts) != 1 {
		return false
	}
	col := def.Column(def.Indexes[0].Parts[0].Column)
	return col != nil && col.Hidden && col.Name == HiddenColumn
}

func addHiddenKey(def *record.Table) {
	col := record.Column{ID: max(def.NextColumn, 1), Name: HiddenColumn, Hidden: true, AddedIn: record.FirstRowVersion,
		Type: types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}}
	def.NextColumn = col.ID + 1
	def.Columns = append(def.Columns, col)
	key := record.Index{Name: HiddenIndex, Unique: true, Parts: []record.Part{{Column: col.ID}}}
	def.Indexes = slices.Insert(def.Indexes, 0, key)
}

// checkName checks an identifier; wrong is the error for one that is malformed, whose
// text takes the name.
func checkName(name string, wrong sqlerr.Code) error {
	switch {
	case name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) || strings.HasSuffix(name, " "):
		return sqlerr.New(wrong, name)
	case utf8.RuneCountInString(name) > record.MaxIdentifier:
		return sqlerr.New(sqlerr.TooLongIdent, name)
	}
	return nil
}

// checkDefinition checks a complete definition and gives MySQL's error for what is
// wrong.
func checkDefinition(def *record.Table) error {
	if err := checkName(def.Name, sqlerr.WrongTableName); err != nil {
		return err
	}
	if err := checkName(def.Schema, sqlerr.WrongDBName); err != nil {
		return err
	}
	if err := checkColumns(def); err != nil {
		return err
	}
	if len(def.Indexes) > record.MaxIndexes {
		return sqlerr.New(sqlerr.TooManyKeys, record.MaxIndexes-1)
	}
	names := map[string]bool{}
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		if err := checkIndexName(def, i); err != nil {
			return err
		}
		if names[Fold(ix.Name)] {
			return sqlerr.New(sqlerr.DupKeyName, ix.Name)
		}
		names[Fold(ix.Name)] = true
		if err := checkParts(def, i); err != nil {
			return err
		}
	}
	if err := checkAuto(def); err != nil {
		return err
	}
	if err := checkForeignKeys(def); err != nil {
		return err
	}
	_, err := prepare(def)
	return err
}

func checkColumns(def *record.Table) error {
	names := map[string]bool{}
	exist := 0
	for i := range def.Columns {
		col := &def.Columns[i]
		if col.DroppedIn != 0 {
			continue
		}
		if err := checkName(col.Name, sqlerr.WrongColumnName); err != nil {
			return err
		}
		if names[Fold(col.Name)] {
			return sqlerr.New(sqlerr.DupFieldName, col.Name)
		}
		names[Fold(col.Name)] = true
		if !col.Hidden {
			exist++
		}
	}
	switch {
	case len(def.Columns) > record.MaxColumns:
		return sqlerr.New(sqlerr.TooManyFields)
	case exist == 0 && len(def.Columns) > 0:
		return sqlerr.New(sqlerr.CantRemoveAllFields)
	case exist == 0:
		return sqlerr.New(sqlerr.TableMustHaveColumns)
	}
	return nil
}

func checkIndexName(def *record.Table, i int) error {
	name := def.Indexes[i].Name
	reserved := i == 0 != strings.EqualFold(name, primaryName)
	if hasHiddenKey(def) {
		reserved = i == 0 != strings.EqualFold(name, HiddenIndex) || strings.EqualFold(name, primaryName)
	} else if strings.EqualFold(name, HiddenIndex) {
		reserved = true
	}
	if reserved {
		return sqlerr.New(sqlerr.WrongNameForIndex, name)
	}
	return checkName(name, sqlerr.WrongNameForIndex)
}

func checkParts(def *record.Table, i int) error {
	ix := &def.Indexes[i]
	if len(ix.Parts) > record.MaxIndexParts {
		return sqlerr.New(sqlerr.TooManyKeyParts, record.MaxIndexParts)
	}
	size := int64(0)
	for _, p := range ix.Parts {
		col := def.Column(p.Column)
		if col == nil || col.DroppedIn != 0 {
			return sqlerr.Newf(sqlerr.KeyColumnDoesNotExits, "Key column '%d' doesn't exist in table", p.Column)
		}
		t := &col.Type
		isString := t.IsText() || t.IsBlob()
		switch {
		case i == 0 && !t.NotNull:
			return sqlerr.New(sqlerr.PrimaryCantHaveNull)
		case t.IsLong() && p.Prefix == 0:
			return sqlerr.New(sqlerr.BlobKeyWithoutLength, col.Name)
		case p.Prefix != 0 && (!isString || !t.IsLong() && p.Prefix > t.Length):
			return sqlerr.New(sqlerr.WrongSubKey)
		}
		size += partBytes(t, p.Prefix)
	}
	if size > record.MaxKeyBytes {
		return sqlerr.New(sqlerr.TooLongKey, record.MaxKeyBytes)
	}
	return nil
}

// partBytes is how much of the longest key MySQL reckons for a part.
func partBytes(t *types.Type, prefix uint32) int64 {
	if n, ok := types.FixedSize(t); ok {
		return int64(n)
	}
	if prefix == 0 {
		return t.MaxBytes()
	}
	if t.IsText() {
		return int64(prefix) * int64(t.Charset().MaxLen())
	}
	return int64(prefix)
}

// checkAuto: at most one column counts, and an index leads to its greatest value.
func checkAuto(def *record.Table) error {
	var auto *record.Column
	count, led := 0, false
	for i := range def.Columns {
		if col := &def.Columns[i]; col.AutoIncrement && col.DroppedIn == 0 {
			auto = col
			count++
		}
	}
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		led = led || auto != nil && !ix.Building && ix.Parts[0].Column == auto.ID
	}
	if count > 1 || count == 1 && !led {
		return sqlerr.New(sqlerr.WrongAutoKey)
	}
	return nil
}

func checkForeignKeys(def *record.Table) error {
	names := map[string]bool{}
	ids := map[uint64]bool{}
	for i := range def.ForeignKeys {
		fk := &def.ForeignKeys[i]
		if names[Fold(fk.Name)] {
			return sqlerr.New(sqlerr.FKDupName, fk.Name)
		}
		names[Fold(fk.Name)] = true
		if fk.ID != 0 && ids[fk.ID] {
			return fmt.Errorf("dict: two foreign keys of table %s.%s have the number %d", def.Schema, def.Name, fk.ID)
		}
		ids[fk.ID] = true
		for _, id := range fk.Columns {
			if col := def.Column(id); col == nil || col.DroppedIn != 0 {
				return sqlerr.Newf(sqlerr.KeyColumnDoesNotExits, "Key column '%d' doesn't exist in table", id)
			}
		}
	}
	return nil
}
