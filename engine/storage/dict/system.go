package dict

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation" // names are stored in a registered collation
)

// Numbers of the catalogue's own tables. They never change.
const (
	idSchemas uint64 = iota + 1
	idTables
	idColumns
	idIndexes
	idForeignKeys
	idPhysical
	idState
	idLocal
	idEnd
)

// FirstID is the least number of a table, schema or index that is not the
// catalogue's own.
const FirstID = 256

// formatVersion is the format of the catalogue, kept in slotFormat.
const formatVersion = 1

// Slots of the system page: the format, the segment for long values, and at
// slotRoots+n the root page of the catalogue's index number n.
const (
	slotFormat = 0
	slotLOB    = 1
	slotRoots  = 1
)

// systemName is the schema that the catalogue's own tables are shown in.
const systemName = "#dict"

// Columns of the catalogue's tables, by position.
const (
	schemaID = iota
	schemaName
	schemaCollation
	schemaOptions
)

const (
	tableID = iota
	tableSchema
	tableName
	tableVersion
	tableRowVersion
	tableNextColumn
	tableCollation
	tableComment
	tableOptions
)

const (
	columnTable = iota
	columnID
	columnOrdinal
	columnName
	columnType
	columnFlags
	columnAdded
	columnDropped
	columnInitial
	columnDefault
	columnGenerated
	columnOnUpdate
	columnComment
)

const (
	indexTable = iota
	indexID
	indexOrdinal
	indexName
	indexFlags
	indexParts
	indexComment
)

const (
	foreignTable = iota
	foreignID
	foreignOrdinal
	foreignName
	foreignRefSchema
	foreignRefTable
	foreignColumns
	foreignOnDelete
	foreignOnUpdate
)

const (
	physicalTable = iota
	physicalIndex // 0: the tablespace itself
	physicalSpace
	physicalPage // root page; of the tablespace: the segment for long values
)

const (
	stateKey = iota
	stateValue
)

// definer puts together the definition of a table of the catalogue.
type definer struct {
	t     *record.Table
	index uint64
}

func (d *definer) table(id uint64, name string) *definer {
	d.t = &record.Table{ID: id, Schema: systemName, Name: name, Version: 1, RowVersion: record.FirstRowVersion,
		NextColumn: 1, Collation: nameCollation}
	return d
}

func (d *definer) column(name string, t types.Type) *definer {
	d.t.Columns = append(d.t.Columns, record.Column{ID: d.t.NextColumn, Name: name, Type: t, AddedIn: record.FirstRowVersion})
	d.t.NextColumn++
	return d
}

// key adds an index of the columns at the positions. The catalogue's indexes are
// numbered in the order in which they are defined.
func (d *definer) key(name string, unique bool, positions ...int) *definer {
	d.index++
	ix := record.Index{ID: d.index, Name: name, Unique: unique}
	for _, p := range positions {
		ix.Parts = append(ix.Parts, record.Part{Column: d.t.Columns[p].ID})
	}
	d.t.Indexes = append(d.t.Indexes, ix)
	return d
}

// nameCollation compares names byte by byte.
const nameCollation = types.CollationUTF8MB40900B

var (
	typeID   = types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}
	typeInt  = types.Type{Kind: types.KindInt, Unsigned: true, NotNull: true}
	typeTiny = types.Type{Kind: types.KindTinyInt, Unsigned: true, NotNull: true}
	typeName = types.Type{Kind: types.KindVarChar, Length: record.MaxIdentifier, Collation: nameCollation, NotNull: true}
	typeText = types.Type{Kind: types.KindLongText, Collation: nameCollation, NotNull: true}
	typeBlob = types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary, NotNull: true}
	typeKey  = types.Type{Kind: types.KindVarBinary, Length: MaxStateKey, Collation: types.CollationBinary, NotNull: true}
	// typeMaybe is a blob that may be NULL.
	typeMaybe = types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
)

const primaryName = "PRIMARY"

// systemTables are the definitions of the catalogue's tables in the order of
// their numbers.
func systemTables() []*record.Table {
	d := &definer{}
	var all []*record.Table
	add := func(d *definer) { all = append(all, d.t) }
	add(d.table(idSchemas, "sys_schemas").
		column("id", typeID).column("name", typeName).column("collation", typeInt).column("options", typeBlob).
		key(primaryName, true, schemaID).key("name", true, schemaName))
	add(d.table(idTables, "sys_tables").
		column("id", typeID).column("schema_id", typeID).column("name", typeName).column("version", typeID).
		column("row_version", typeTiny).column("next_column", typeInt).column("collation", typeInt).
		column("comment", typeText).column("options", typeBlob).
		key(primaryName, true, tableID).key("name", true, tableSchema, tableName))
	add(d.table(idColumns, "sys_columns").
		column("table_id", typeID).column("id", typeInt).column("ordinal", typeInt).column("name", typeName).
		column("type", typeBlob).column("flags", typeInt).column("added_in", typeTiny).column("dropped_in", typeTiny).
		column("initial", typeMaybe).column("default", typeText).column("generated", typeText).
		column("on_update", typeText).column("comment", typeText).
		key(primaryName, true, columnTable, columnID))
	add(d.table(idIndexes, "sys_indexes").
		column("table_id", typeID).column("id", typeID).column("ordinal", typeInt).column("name", typeName).
		column("flags", typeInt).column("parts", typeBlob).column("comment", typeText).
		key(primaryName, true, indexTable, indexID))
	add(d.table(idForeignKeys, "sys_foreign_keys").
		column("table_id", typeID).column("id", typeID).column("ordinal", typeInt).column("name", typeName).
		column("ref_schema", typeName).column("ref_table", typeName).column("columns", typeBlob).
		column("on_delete", typeTiny).column("on_update", typeTiny).
		key(primaryName, true, foreignTable, foreignID).key("referenced", false, foreignRefSchema, foreignRefTable))
	add(d.table(idPhysical, "sys_physical").
		column("table_id", typeID).column("index_id", typeID).column("space", typeInt).column("page", typeInt).
		key(primaryName, true, physicalTable, physicalIndex))
	add(d.table(idState, "sys_state").
		column("key", typeKey).column("value", typeBlob).key(primaryName, true, stateKey))
	add(d.table(idLocal, "sys_local").
		column("key", typeKey).column("value", typeBlob).key(primaryName, true, stateKey))
	return all
}

// Bootstrap makes the catalogue's tables in a new database.
//
// REQUIRES: the system tablespace and the system page are there, nothing else.
func Bootstrap(e *table.Engine) error {
	sp, err := e.Spaces.Open(space.System)
	if err != nil {
		return fmt.Errorf("dict: %w", err)
	}
	m := mtr.New(e.Pool)
	if err := m.Begin(); err != nil {
		return err
	}
	lob, err := sp.CreateSegment(m)
	m.Commit()
	if err != nil {
		return fmt.Errorf("dict: creating the catalogue: %w", err)
	}
	roots := map[uint64]uint32{}
	for _, def := range systemTables() {
		for i := range def.Indexes {
			id := def.Indexes[i].ID
			if roots[id], err = e.CreateIndex(sp, id); err != nil {
				return fmt.Errorf("dict: creating %s: %w", def.Name, err)
			}
		}
	}
	for _, c := range []trx.Counter{trx.TableID, trx.IndexID} {
		if err := e.Trx.RaiseNumber(c, FirstID); err != nil {
			return err
		}
	}
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	if err := e.Trx.SetSlot(m, slotFormat, formatVersion); err != nil {
		return err
	}
	if err := e.Trx.SetSlot(m, slotLOB, uint64(lob)); err != nil {
		return err
	}
	for id := uint64(1); id <= uint64(len(roots)); id++ {
		if err := e.Trx.SetSlot(m, int(slotRoots+id), uint64(roots[id])); err != nil {
			return err
		}
	}
	return nil
}

// bind opens the catalogue's tables.
func (c *Catalog) bind() error {
	format, err := c.sys.Slot(slotFormat)
	if err != nil {
		return fmt.Errorf("dict: %w", err)
	}
	if format == 0 || format > formatVersion {
		return fmt.Errorf("%w: format %d, known are 1 to %d", ErrFormat, format, formatVersion)
	}
	lob, err := c.sys.Slot(slotLOB)
	if err != nil {
		return fmt.Errorf("dict: %w", err)
	}
	for _, def := range systemTables() {
		at := table.Physical{Space: space.System, LOBSegment: uint32(lob), Roots: map[uint64]uint32{}}
		for i := range def.Indexes {
			id := def.Indexes[i].ID
			root, err := c.sys.Slot(int(slotRoots + id))
			if err != nil {
				return fmt.Errorf("dict: %w", err)
			}
			at.Roots[id] = uint32(root)
		}
		s, err := record.Prepare(def)
		if err != nil {
			return fmt.Errorf("dict: %w", err)
		}
		if c.own[def.ID], err = c.e.Open(s, at); err != nil {
			return fmt.Errorf("dict: %w", err)
		}
	}
	return nil
}
