package txn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// OpKind is what a schema change does.
type OpKind uint8

// The numbers are part of the log's format.
const (
	OpCreateSchema OpKind = 1 + iota
	OpAlterSchema
	OpDropSchema
	OpCreateTable
	OpDropTable
	OpRenameTable
	OpTruncateTable
	OpReplaceTable // another definition without touching rows
	OpAddIndex     // the first of two entries: changes of rows go into the index
	OpPublishIndex // the second: it is complete
	OpDropIndex
	opKinds
)

var opNames = [opKinds]string{"", "create schema", "alter schema", "drop schema", "create table", "drop table", "rename table",
	"truncate table", "replace table", "add index", "publish index", "drop index"}

func (k OpKind) String() string {
	if k == 0 || k >= opKinds {
		return fmt.Sprintf("schema change %d", uint8(k))
	}
	return opNames[k]
}

// hasTable reports whether the definition of a table afterwards belongs to a change.
func (k OpKind) hasTable() bool { return k >= OpCreateTable && k != OpDropTable }

// hasOld reports whether there was a table before.
func (k OpKind) hasOld() bool { return k > OpCreateTable }

// SchemaOp is a change of the catalogue as the log has it: complete, with all numbers
// that the leader gave.
//
// Encoding, one form for each change: version 1, 1 byte; kind, 1 byte; then numbers
// as shortest uvarints, strings and lists with their length before them:
//
//	schema changes   number, name, collation, options
//	table changes    table before: number, schema, name   (not of create table)
//	                 index number                         (of index changes)
//	                 definition after                     (not of drop table)
type SchemaOp struct {
	Kind   OpKind
	Schema dict.Schema   // of changes of schemas
	Old    Name          // the table's name before
	OldID  uint64        // its number before
	Index  uint64        // number of the index concerned
	Table  *record.Table // definition afterwards
}

// Concerns names what the change is of.
func (op *SchemaOp) Concerns() string {
	switch {
	case op.Kind < OpCreateTable:
		return op.Schema.Name
	case op.Kind.hasOld():
		return op.Old.String()
	}
	return op.Table.Schema + "." + op.Table.Name
}

// schemaOpVersion is the version of the encoding.
const schemaOpVersion = 1

// MaxSchemaOp is the longest encoding in bytes: more than a table with all it may
// have takes.
const MaxSchemaOp = 32 << 20

// ErrSchemaOp is wrapped by the error for bytes that are no schema change.
var ErrSchemaOp = errors.New("txn: malformed schema change")

// Append appends the encoding.
func (op *SchemaOp) Append(dst []byte) []byte {
	dst = append(dst, schemaOpVersion, byte(op.Kind))
	if op.Kind < OpCreateTable {
		dst = binary.AppendUvarint(dst, op.Schema.ID)
		dst = appendString(dst, op.Schema.Name)
		dst = binary.AppendUvarint(dst, uint64(op.Schema.Collation))
		return appendOptions(dst, op.Schema.Options)
	}
	if op.Kind.hasOld() {
		dst = binary.AppendUvarint(dst, op.OldID)
		dst = appendString(appendString(dst, op.Old.Schema), op.Old.Table)
	}
	if op.Kind >= OpAddIndex {
		dst = binary.AppendUvarint(dst, op.Index)
	}
	if op.Kind.hasTable() {
		dst = appendTable(dst, op.Table)
	}
	return dst
}

// DecodeSchemaOp decodes a schema change. It keeps nothing of b. Error: ErrSchemaOp.
func DecodeSchemaOp(b []byte) (*SchemaOp, error) {
	op, err := decodeSchemaOp(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchemaOp, err)
	}
	return op, nil
}

func decodeSchemaOp(b []byte) (*SchemaOp, error) {
	switch {
	case len(b) > MaxSchemaOp:
		return nil, fmt.Errorf("%d bytes, the most is %d", len(b), MaxSchemaOp)
	case len(b) < 2:
		return nil, errShort
	case b[0] != schemaOpVersion:
		return nil, fmt.Errorf("unknown version %d", b[0])
	}
	op := &SchemaOp{Kind: OpKind(b[1])}
	if op.Kind == 0 || op.Kind >= opKinds {
		return nil, fmt.Errorf("unknown kind %d", b[1])
	}
	d := &decoder{b: b[2:]}
	if op.Kind < OpCreateTable {
		op.Schema = dict.Schema{ID: d.uint(maxUint), Name: d.string(), Collation: d.collation(), Options: d.options()}
		return op, d.end()
	}
	if op.Kind.hasOld() {
		op.OldID = d.uint(maxUint)
		op.Old = Name{Schema: d.string(), Table: d.string()}
	}
	if op.Kind >= OpAddIndex {
		op.Index = d.uint(maxUint)
	}
	if op.Kind.hasTable() {
		op.Table = d.table()
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	if op.Table != nil {
		if err := op.Table.Validate(); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// Flags of columns and indexes in the encoding.
const (
	colHidden = 1 << iota
	colInvisible
	colAutoIncrement
	colHasDefault
	colInitial
	colFlags = 1<<iota - 1
)

const (
	indexUnique = 1 << iota
	indexInvisible
	indexBuilding
	indexFlags = 1<<iota - 1
)

func appendTable(dst []byte, t *record.Table) []byte {
	dst = binary.AppendUvarint(dst, t.ID)
	dst = appendString(appendString(dst, t.Schema), t.Name)
	dst = binary.AppendUvarint(dst, t.Version)
	dst = append(dst, t.RowVersion)
	dst = binary.AppendUvarint(dst, uint64(t.NextColumn))
	dst = binary.AppendUvarint(dst, uint64(t.Collation))
	dst = appendString(dst, t.Comment)
	dst = appendOptions(dst, t.Options)
	dst = binary.AppendUvarint(dst, uint64(len(t.Columns)))
	for i := range t.Columns {
		dst = appendColumn(dst, &t.Columns[i])
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.Indexes)))
	for i := range t.Indexes {
		dst = appendIndex(dst, &t.Indexes[i])
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.ForeignKeys)))
	for i := range t.ForeignKeys {
		dst = appendForeignKey(dst, &t.ForeignKeys[i])
	}
	return dst
}

func appendColumn(dst []byte, c *record.Column) []byte {
	dst = binary.AppendUvarint(dst, uint64(c.ID))
	dst = appendString(dst, c.Name)
	dst = types.AppendType(dst, &c.Type)
	dst = append(dst, flagIf(c.Hidden, colHidden)|flagIf(c.Invisible, colInvisible)|flagIf(c.AutoIncrement, colAutoIncrement)|
		flagIf(c.HasDefault, colHasDefault)|flagIf(c.Initial != nil, colInitial), c.AddedIn, c.DroppedIn)
	if c.Initial != nil {
		dst = appendString(dst, string(c.Initial))
	}
	for _, s := range [...]string{c.Default, c.Generated, c.OnUpdate, c.Comment} {
		dst = appendString(dst, s)
	}
	return dst
}

func appendIndex(dst []byte, ix *record.Index) []byte {
	dst = binary.AppendUvarint(dst, ix.ID)
	dst = appendString(dst, ix.Name)
	dst = append(dst, flagIf(ix.Unique, indexUnique)|flagIf(ix.Invisible, indexInvisible)|flagIf(ix.Building, indexBuilding))
	dst = binary.AppendUvarint(dst, uint64(len(ix.Parts)))
	for _, p := range ix.Parts {
		dst = binary.AppendUvarint(dst, uint64(p.Column))
		dst = append(dst, flagIf(p.Desc, 1))
		dst = binary.AppendUvarint(dst, uint64(p.Prefix))
	}
	return appendString(dst, ix.Comment)
}

func appendForeignKey(dst []byte, fk *record.ForeignKey) []byte {
	dst = binary.AppendUvarint(dst, fk.ID)
	dst = appendString(dst, fk.Name)
	dst = binary.AppendUvarint(dst, uint64(len(fk.Columns)))
	for _, c := range fk.Columns {
		dst = binary.AppendUvarint(dst, uint64(c))
	}
	dst = appendString(appendString(dst, fk.RefSchema), fk.RefTable)
	dst = binary.AppendUvarint(dst, uint64(len(fk.RefColumns)))
	for _, name := range fk.RefColumns {
		dst = appendString(dst, name)
	}
	return append(dst, fk.OnDelete, fk.OnUpdate)
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendOptions(dst []byte, options map[string]string) []byte {
	names := make([]string, 0, len(options))
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for _, name := range names {
		dst = appendString(appendString(dst, name), options[name])
	}
	return dst
}

func flagIf(b bool, flag byte) byte {
	if b {
		return flag
	}
	return 0
}
