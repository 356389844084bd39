package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// addIndex adds an index. In a new table it is complete; else it is what is to be
// built.
func (d *definer) addIndex(def *ast.IndexDef) error {
	switch def.Kind {
	case ast.IndexFullText, ast.IndexSpatial:
		word := "FULLTEXT"
		if def.Kind == ast.IndexSpatial {
			word = "SPATIAL"
		}
		return sqlerr.New(sqlerr.NotSupportedYet, word+" indexes")
	}
	comment, err := d.comment(def.Comment, 1024, sqlerr.TooLongIndexComment, def.Name)
	if err != nil {
		return err
	}
	ix := record.Index{Unique: def.Kind != ast.IndexPlain, Invisible: def.Invisible, Comment: comment}
	name, err := d.indexName(def)
	if err != nil {
		return err
	}
	ix.Name = name
	if len(def.Parts) > record.MaxIndexParts {
		return sqlerr.New(sqlerr.TooManyKeyParts, record.MaxIndexParts)
	}
	for i := range def.Parts {
		if err := d.addPart(&ix, def, i); err != nil {
			return err
		}
	}
	if err := d.checkKeyLength(&ix); err != nil {
		return err
	}
	if strings.EqualFold(def.Using, "HASH") {
		d.note(sqlerr.New(sqlerr.UnsupportedIndexAlgorithm, "HASH"))
	}
	if def.KeyBlockSize != 0 {
		d.warn(KeptOnly("KEY_BLOCK_SIZE of an index"))
	}
	if def.Using != "" {
		setOption(d.t, attrHash+dict.Fold(name), "BTREE")
	}
	return d.place(ix)
}

// place puts an index among the table's.
func (d *definer) place(ix record.Index) error {
	if ix.Name == primaryName {
		d.t.Indexes = slices.Insert(d.t.Indexes, 0, ix)
	} else {
		d.t.Indexes = append(d.t.Indexes, ix)
	}
	limit := record.MaxIndexes - 1
	if len(d.t.Indexes) > record.MaxIndexes || len(d.t.Indexes) == record.MaxIndexes && d.t.Indexes[0].Name != primaryName && !hasHiddenKey(d.t) {
		return sqlerr.New(sqlerr.TooManyKeys, limit)
	}
	return nil
}

// hasHiddenKey reports whether the clustered index is that of a table without a primary
// key.
func hasHiddenKey(t *record.Table) bool {
	return len(t.Indexes) > 0 && t.Indexes[0].Name == dict.HiddenIndex
}

// indexName checks the name that an index is given, or finds one.
func (d *definer) indexName(def *ast.IndexDef) (string, error) {
	if def.Kind == ast.IndexPrimary {
		if dict.FindIndex(d.t, primaryName) >= 0 {
			return "", sqlerr.New(sqlerr.MultiplePriKey)
		}
		if def.Invisible {
			return "", sqlerr.New(sqlerr.PKIndexCantBeInvisible)
		}
		return primaryName, nil
	}
	name := def.Name
	if name != "" {
		if strings.EqualFold(name, primaryName) || strings.EqualFold(name, dict.HiddenIndex) {
			return "", sqlerr.New(sqlerr.WrongNameForIndex, name)
		}
		if err := CheckName(name, sqlerr.WrongNameForIndex); err != nil {
			return "", err
		}
		if dict.FindIndex(d.t, name) >= 0 {
			return "", sqlerr.New(sqlerr.DupKeyName, name)
		}
		return name, nil
	}
	base := "functional_index"
	if def.Parts[0].Expr == nil {
		base = def.Parts[0].Column
		if c := dict.FindColumn(d.t, base); c != nil {
			base = c.Name
		}
	}
	return d.freeIndexName(base), nil
}

// freeIndexName is base, or base_2, base_3 ... if it is taken.
func (d *definer) freeIndexName(base string) string {
	name := base
	for n := 2; dict.FindIndex(d.t, name) >= 0 || strings.EqualFold(name, primaryName); n++ {
		suffix := "_" + strconv.Itoa(n)
		cut := base
		for utf8.RuneCountInString(cut)+len(suffix) > record.MaxIdentifier {
			_, size := utf8.DecodeLastRuneInString(cut)
			cut = cut[:len(cut)-size]
		}
		name = cut + suffix
	}
	return name
}

// addPart adds part i of the definition to an index.
func (d *definer) addPart(ix *record.Index, def *ast.IndexDef, i int) error {
	p := &def.Parts[i]
	if p.Expr != nil {
		return d.addFunctional(ix, def, i)
	}
	c := dict.FindColumn(d.t, p.Column)
	if c == nil || c.Hidden {
		return sqlerr.New(sqlerr.KeyColumnDoesNotExits, p.Column)
	}
	for _, other := range ix.Parts {
		if other.Column == c.ID {
			return sqlerr.New(sqlerr.DupFieldName, c.Name)
		}
	}
	part := record.Part{Column: c.ID, Desc: p.Desc}
	t := &c.Type
	switch {
	case t.Kind == types.KindJSON:
		return sqlerr.New(sqlerr.JSONUsedAsKey, c.Name)
	case t.IsLong() && p.Length == 0:
		return sqlerr.New(sqlerr.BlobKeyWithoutLength, c.Name)
	case p.Length > 0 && (!t.IsText() && !t.IsBlob() || !t.IsLong() && uint32(p.Length) > t.Length):
		return sqlerr.New(sqlerr.WrongSubKey)
	case p.Length > 0 && (t.IsLong() || uint32(p.Length) < t.Length):
		part.Prefix = uint32(p.Length)
	}
	if ix.Name == primaryName {
		if err := d.notNull(c); err != nil {
			return err
		}
		if IsVirtual(d.t, c) {
			return sqlerr.New(sqlerr.UnsupportedActionOnGeneratedColumn, "Defining a virtual generated column as "+
				"primary key")
		}
	}
	ix.Parts = append(ix.Parts, part)
	return nil
}

// notNull makes a column of the primary key NOT NULL.
func (d *definer) notNull(c *record.Column) error {
	if c.Type.NotNull {
		return nil
	}
	if !d.isNew {
		c.Type.NotNull = true
		if Default(c) == DefaultNull {
			c.HasDefault, c.Default = false, ""
		}
		return nil
	}
	if d.nullable[dict.Fold(c.Name)] {
		return errNullablePrimary()
	}
	c.Type.NotNull = true
	if Default(c) == DefaultNull {
		if d.explicitNull[dict.Fold(c.Name)] {
			return errInvalidDefault(c.Name)
		}
		c.HasDefault, c.Default = false, ""
	}
	return nil
}

// addFunctional adds a functional key part: a hidden generated column.
func (d *definer) addFunctional(ix *record.Index, def *ast.IndexDef, i int) error {
	p := &def.Parts[i]
	switch {
	case ix.Name == primaryName:
		return sqlerr.New(sqlerr.FunctionalIndexPrimaryKey)
	case isColumn(p.Expr):
		return sqlerr.Newf(sqlerr.FulltextFunctionalIndex, "Functional index on a column is not supported. Consider "+
			"using a regular index instead.")
	case d.env.Typer == nil:
		return sqlerr.New(sqlerr.NotSupportedYet, "functional indexes here")
	}
	var bad error
	eachColumn(p.Expr, func(ref *ast.ColumnRef) {
		of := dict.FindColumn(d.t, ref.Name)
		switch {
		case bad != nil:
		case of == nil || of.Hidden:
			bad = sqlerr.New(sqlerr.BadFieldError, ref.Name, "functional index")
		case of.AutoIncrement:
			bad = sqlerr.New(sqlerr.FunctionalIndexRefAutoIncrement, ix.Name)
		}
	})
	if bad != nil {
		return bad
	}
	t, err := d.env.Typer.TypeOf(p.Expr, d.t)
	if err != nil {
		return err
	}
	c := record.Column{ID: d.t.NextColumn, Name: fmt.Sprintf("!hidden!%s!%d!0", ix.Name, i), Hidden: true, AddedIn: record.FirstRowVersion,
		Type: *t, Generated: ExprText(p.Expr)}
	c.Type.NotNull = false
	switch {
	case c.Type.Kind == types.KindJSON:
		return sqlerr.New(sqlerr.FunctionalIndexOnJSONOrGeometryFunction)
	case c.Type.IsLong():
		return sqlerr.New(sqlerr.FunctionalIndexOnLOB)
	}
	if len(c.Name) > record.MaxIdentifier {
		c.Name = fmt.Sprintf("!hidden!%d!0", c.ID)
	}
	d.t.NextColumn++
	at := endOf(d.t)
	for at < len(d.t.Columns) && d.t.Columns[at].DroppedIn == 0 {
		at++
	}
	d.t.Columns = slices.Insert(d.t.Columns, at, c)
	ix.Parts = append(ix.Parts, record.Part{Column: c.ID, Desc: p.Desc})
	return nil
}

func isColumn(e ast.Expr) bool {
	_, ok := e.(*ast.ColumnRef)
	return ok
}

// checkKeyLength checks the declared bytes of an index. Plain keys on columns without
// a prefix are cut where the mode is not strict.
func (d *definer) checkKeyLength(ix *record.Index) error {
	size := int64(0)
	for i := range ix.Parts {
		p := &ix.Parts[i]
		c := d.t.Column(p.Column)
		n := keyBytes(&c.Type, p.Prefix)
		if size+n > record.MaxKeyBytes && !ix.Unique && !d.env.Strict && (c.Type.IsText() || c.Type.IsBlob()) && size < record.MaxKeyBytes {
			width := int64(1)
			if c.Type.IsText() {
				width = int64(c.Type.Charset().MaxLen())
			}
			if room := (record.MaxKeyBytes - size) / width; room > 0 {
				d.warn(errTooLong())
				p.Prefix = uint32(room)
				n = room * width
			}
		}
		size += n
	}
	if size > record.MaxKeyBytes {
		return errTooLong()
	}
	return nil
}

func errTooLong() *sqlerr.Error {
	return sqlerr.New(sqlerr.TooLongKey, record.MaxKeyBytes)
}

// keyBytes is what a part of an index counts for.
func keyBytes(t *types.Type, prefix uint32) int64 {
	switch {
	case prefix != 0 && t.IsText():
		return int64(prefix) * int64(t.Charset().MaxLen())
	case prefix != 0:
		return int64(prefix)
	}
	if n, ok := types.FixedSize(t); ok {
		return int64(n)
	}
	return t.MaxBytes()
}

// Indexes returns the indexes that SQL knows in the order in which MySQL shows them: the
// primary key, unique keys without NULL, other unique keys, the rest.
func Indexes(t *record.Table) []*record.Index {
	var all []*record.Index
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; ix.Name != dict.HiddenIndex && !ix.Building {
			all = append(all, ix)
		}
	}
	slices.SortStableFunc(all, func(a, b *record.Index) int {
		return cmp.Or(cmp.Compare(indexRank(t, a), indexRank(t, b)), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func indexRank(t *record.Table, ix *record.Index) int {
	switch {
	case ix.Name == primaryName:
		return 0
	case !ix.Unique:
		return 3
	}
	for _, p := range ix.Parts {
		if c := t.Column(p.Column); c != nil && !c.Type.NotNull {
			return 2
		}
	}
	return 1
}

// PrimaryKey returns the declared primary key, or nil.
func PrimaryKey(t *record.Table) *record.Index {
	if len(t.Indexes) > 0 && t.Indexes[0].Name == primaryName {
		return &t.Indexes[0]
	}
	return nil
}
