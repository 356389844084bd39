package txntest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// columnTypes are types of every kind.
var columnTypes = []types.Type{
	{Kind: types.KindTinyInt}, {Kind: types.KindSmallInt, Unsigned: true}, {Kind: types.KindMediumInt}, {Kind: types.KindInt},
	{Kind: types.KindBigInt, Unsigned: true}, {Kind: types.KindDecimal, Precision: 12, Scale: 3}, {Kind: types.KindDecimal, Precision: 60, Scale: 20},
	{Kind: types.KindFloat}, {Kind: types.KindDouble}, {Kind: types.KindBit, Length: 11}, {Kind: types.KindDate}, {Kind: types.KindTime, FSP: 3},
	{Kind: types.KindDateTime, FSP: 6}, {Kind: types.KindTimestamp}, {Kind: types.KindYear},
	{Kind: types.KindChar, Length: 12, Collation: types.CollationUTF8MB40900AI},
	{Kind: types.KindVarChar, Length: 30, Collation: types.CollationLatin1Swedish},
	{Kind: types.KindVarChar, Length: 300, Collation: types.CollationUTF8MB40900AI},
	{Kind: types.KindTinyText, Collation: types.CollationUTF8MB4Bin}, {Kind: types.KindText, Collation: types.CollationUTF8MB40900AI},
	{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Gen}, {Kind: types.KindBinary, Length: 9, Collation: types.CollationBinary},
	{Kind: types.KindVarBinary, Length: 40, Collation: types.CollationBinary}, {Kind: types.KindBlob, Collation: types.CollationBinary},
	{Kind: types.KindMediumBlob, Collation: types.CollationBinary},
	{Kind: types.KindEnum, Members: []string{"x", "y", "z"}, Collation: types.CollationUTF8MB40900AI},
	{Kind: types.KindSet, Members: []string{"p", "q", "r", "s", "t", "u", "v", "w", "x"}, Collation: types.CollationUTF8MB40900AI},
	{Kind: types.KindJSON, Collation: types.CollationBinary},
}

var (
	keyInt  = types.Type{Kind: types.KindInt, NotNull: true}
	nullInt = types.Type{Kind: types.KindInt}
	keyName = types.Type{Kind: types.KindVarChar, Length: 20, NotNull: true, Collation: types.CollationUTF8MB40900AI}
	autoInt = types.Type{Kind: types.KindBigInt, NotNull: true}
)

// RandomTable is a definition with columns of many types: a primary key of one or
// two columns, AUTO_INCREMENT, or none; a unique key; others.
func RandomTable(rng *rand.Rand, schema, name string) *record.Table {
	t := &record.Table{Schema: schema, Name: name, Collation: types.CollationUTF8MB40900AI, Comment: "random"}
	add := func(name string, ty types.Type) uint32 {
		id := uint32(len(t.Columns) + 1)
		t.Columns = append(t.Columns, record.Column{ID: id, Name: name, Type: ty})
		return id
	}
	for i := range rng.IntN(3) {
		add(fmt.Sprintf("a%d", i), randomType(rng))
	}
	primary := record.Index{Name: "PRIMARY", Unique: true}
	switch rng.IntN(4) {
	case 0:
		primary.Parts = []record.Part{{Column: add("pk", keyInt)}}
	case 1:
		primary.Parts = []record.Part{{Column: add("name", keyName)}, {Column: add("pk", keyInt), Desc: true}}
	case 2:
		id := add("id", autoInt)
		t.Columns[id-1].AutoIncrement = true
		primary.Parts = []record.Part{{Column: id}}
	}
	if primary.Parts != nil {
		t.Indexes = append(t.Indexes, primary)
	}
	t.Indexes = append(t.Indexes, record.Index{Name: "u", Unique: true, Parts: []record.Part{{Column: add("u", nullInt)}}})
	for i := range 1 + rng.IntN(6) {
		ty := randomType(rng)
		id := add(fmt.Sprintf("c%d", i), ty)
		if ty.Kind != types.KindJSON && rng.IntN(3) == 0 {
			t.Indexes = append(t.Indexes, record.Index{Name: fmt.Sprintf("i%d", i), Parts: []record.Part{indexPart(rng, id, &ty)}})
		}
	}
	if i := slices.IndexFunc(t.Columns, func(c record.Column) bool { return c.Name == "name" }); i >= 0 && rng.IntN(2) == 0 {
		t.Indexes = append(t.Indexes, record.Index{Name: "by_name", Parts: []record.Part{{Column: t.Columns[i].ID}}})
	}
	return t
}

func randomType(rng *rand.Rand) types.Type {
	t := columnTypes[rng.IntN(len(columnTypes))]
	t.NotNull = rng.IntN(4) == 0
	return t
}

func indexPart(rng *rand.Rand, id uint32, t *types.Type) record.Part {
	p := record.Part{Column: id, Desc: rng.IntN(2) == 0}
	if t.IsLong() || t.Length > 100 {
		p.Prefix = uint32(1 + rng.IntN(20))
	}
	return p
}

func (w *Workload) createTable(name string) error {
	_, err := w.s.CreateTable(RandomTable(w.rng, SchemaName, name), statement("CREATE TABLE "+name+" (…)"))
	return err
}

// changeSchema changes the definition of a table.
func (w *Workload) changeSchema() error {
	w.Schema++
	name := w.name()
	switch w.rng.IntN(8) {
	case 0:
		return w.createTable(name)
	case 1:
		if _, err := w.s.DropTable(SchemaName, name, statement("DROP TABLE "+name)); err != nil {
			return err
		}
		return w.createTable(name)
	case 2:
		_, err := w.s.RenameTable(SchemaName, name, SchemaName, w.name(), statement("RENAME TABLE …"))
		return err
	case 3:
		return w.truncate(name)
	case 4:
		_, err := w.s.TruncateTable(SchemaName, name, statement("TRUNCATE TABLE "+name))
		return err
	}
	t, err := w.s.Open(SchemaName, name)
	if err != nil {
		return err
	}
	if w.rng.IntN(3) == 0 {
		return w.addIndex(t.Definition())
	}
	return w.alter(t)
}

// addIndex begins an index of a table with rows.
func (w *Workload) addIndex(def *record.Table) error {
	c := &def.Columns[w.rng.IntN(len(def.Columns))]
	if c.Hidden || c.DroppedIn != 0 || c.Type.IsLong() || c.Type.Length > 60 || len(def.Indexes) > 6 {
		return nil
	}
	ix := record.Index{Name: fmt.Sprintf("y%d", w.rng.IntN(1000)), Parts: []record.Part{indexPart(w.rng, c.ID, &c.Type)}}
	_, err := w.s.AddIndex(def.ID, ix, statement("ALTER TABLE … ADD INDEX"))
	return err
}

// truncate empties a table and gives it an index: building it is no work then.
func (w *Workload) truncate(name string) error {
	def, err := w.s.TruncateTable(SchemaName, name, statement("TRUNCATE TABLE "+name))
	if err != nil {
		return err
	}
	c := &def.Columns[w.rng.IntN(len(def.Columns))]
	if c.Hidden || c.Type.Kind == types.KindJSON || len(def.Indexes) > 6 {
		return nil
	}
	ix := record.Index{Name: fmt.Sprintf("x%d", w.rng.IntN(1000)), Parts: []record.Part{indexPart(w.rng, c.ID, &c.Type)}}
	_, err = w.s.AddIndex(def.ID, ix, statement("ALTER TABLE … ADD INDEX"))
	return err
}

// alter changes a definition in place. An index that is to be published is filled first,
// while others change the table.
func (w *Workload) alter(t *txn.Table) error {
	def := t.Definition()
	for i := range def.Indexes {
		if def.Indexes[i].Building && w.rng.IntN(2) == 0 {
			if _, err := w.s.FillIndex(t, def.Indexes[i].ID, nil); err != nil {
				return err
			}
			_, err := w.s.PublishIndex(def.ID, def.Indexes[i].ID, nil)
			return err
		}
	}
	if n := len(def.Indexes); n > 3 && w.rng.IntN(3) == 0 {
		_, err := w.s.DropIndex(def.ID, def.Indexes[n-1].Name, statement("ALTER TABLE … DROP INDEX"))
		return err
	}
	if def.RowVersion >= 200 || len(def.Columns) > 40 {
		return nil
	}
	next := *def
	next.Columns = slices.Clone(def.Columns)
	next.RowVersion++
	ty := randomType(w.rng)
	c := record.Column{ID: next.NextColumn, Name: fmt.Sprintf("n%d", next.NextColumn), Type: ty, AddedIn: next.RowVersion}
	if ty.NotNull || w.rng.IntN(2) == 0 {
		c.Initial = types.AppendStored([]byte{}, RandomValue(w.rng, &ty), &ty)
	}
	next.NextColumn++
	at := 0 // of the first column that is hidden or dropped
	for at < len(next.Columns) && !next.Columns[at].Hidden && next.Columns[at].DroppedIn == 0 {
		at++
	}
	next.Columns = slices.Insert(next.Columns, at, c)
	if w.rng.IntN(3) == 0 {
		w.dropColumn(&next)
	}
	_, err := w.s.ReplaceTable(&next, statement("ALTER TABLE … ADD COLUMN, ALGORITHM=INSTANT"))
	return err
}

// dropColumn drops one of the columns that no index has.
func (w *Workload) dropColumn(t *record.Table) {
	i := w.rng.IntN(len(t.Columns))
	c := t.Columns[i]
	if c.Hidden || c.DroppedIn != 0 || c.AddedIn == t.RowVersion {
		return
	}
	for k := range t.Indexes {
		for _, p := range t.Indexes[k].Parts {
			if p.Column == c.ID {
				return
			}
		}
	}
	c.DroppedIn = t.RowVersion
	t.Columns = append(slices.Delete(t.Columns, i, i+1), c)
}
