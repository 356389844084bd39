package dict

import (
	"fmt"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// Schema is a schema: a database in MySQL's words.
type Schema struct {
	ID        uint64
	Name      string
	Collation types.CollationID
	Options   map[string]string // attributes kept for the layer above
}

// Flags of columns.
const (
	flagHidden uint64 = 1 << iota
	flagInvisible
	flagAutoIncrement
	flagHasDefault
	columnFlagsAll = 1<<iota - 1
)

// Flags of indexes.
const (
	flagUnique uint64 = 1 << iota
	flagIndexInvisible
	flagBuilding
	indexFlagsAll = 1<<iota - 1
)

func flagIf(b bool, flag uint64) uint64 {
	if b {
		return flag
	}
	return 0
}

func encodeSchema(s *Schema) values {
	return values{uintValue(s.ID), stringValue(s.Name), uintValue(uint64(s.Collation)), bytesValue(encodeOptions(s.Options))}
}

func decodeSchema(row values) (Schema, error) {
	s := Schema{ID: row[schemaID].Uint(), Name: text(row[schemaName])}
	var err error
	if s.Collation, err = collation(row[schemaCollation].Uint()); err == nil {
		s.Options, err = decodeOptions(row[schemaOptions].Bytes())
	}
	if err == nil {
		err = validName(s.Name)
	}
	return s, corrupt("sys_schemas", err, s.ID)
}

func encodeTable(t *record.Table, schema uint64) values {
	return values{uintValue(t.ID), uintValue(schema), stringValue(t.Name), uintValue(t.Version),
		uintValue(uint64(t.RowVersion)), uintValue(uint64(t.NextColumn)), uintValue(uint64(t.Collation)),
		stringValue(t.Comment), bytesValue(encodeOptions(t.Options))}
}

func decodeTable(row values) (t *record.Table, schema uint64, err error) {
	t = &record.Table{ID: row[tableID].Uint(), Name: text(row[tableName]), Version: row[tableVersion].Uint(),
		RowVersion: uint8(row[tableRowVersion].Uint()), NextColumn: uint32(row[tableNextColumn].Uint()),
		Comment: text(row[tableComment])}
	if t.Collation, err = collation(row[tableCollation].Uint()); err == nil {
		t.Options, err = decodeOptions(row[tableOptions].Bytes())
	}
	if err == nil {
		err = validName(t.Name)
	}
	return t, row[tableSchema].Uint(), corrupt("sys_tables", err, t.ID)
}

func encodeColumn(table uint64, ordinal int, c *record.Column) values {
	flags := flagIf(c.Hidden, flagHidden) | flagIf(c.Invisible, flagInvisible) |
		flagIf(c.AutoIncrement, flagAutoIncrement) | flagIf(c.HasDefault, flagHasDefault)
	initial := types.Null
	if c.Initial != nil {
		initial = bytesValue(c.Initial)
	}
	return values{uintValue(table), uintValue(uint64(c.ID)), uintValue(uint64(ordinal)), stringValue(c.Name),
		bytesValue(types.AppendType(nil, &c.Type)), uintValue(flags), uintValue(uint64(c.AddedIn)),
		uintValue(uint64(c.DroppedIn)), initial, stringValue(c.Default), stringValue(c.Generated),
		stringValue(c.OnUpdate), stringValue(c.Comment)}
}

func decodeColumn(row values) (record.Column, error) {
	flags := row[columnFlags].Uint()
	c := record.Column{ID: uint32(row[columnID].Uint()), Name: text(row[columnName]),
		Hidden: flags&flagHidden != 0, Invisible: flags&flagInvisible != 0,
		AutoIncrement: flags&flagAutoIncrement != 0, HasDefault: flags&flagHasDefault != 0,
		AddedIn: uint8(row[columnAdded].Uint()), DroppedIn: uint8(row[columnDropped].Uint()),
		Default: text(row[columnDefault]), Generated: text(row[columnGenerated]),
		OnUpdate: text(row[columnOnUpdate]), Comment: text(row[columnComment])}
	if !row[columnInitial].IsNull() {
		c.Initial = append([]byte{}, row[columnInitial].Bytes()...)
	}
	var rest []byte
	var err error
	c.Type, rest, err = types.DecodeType(row[columnType].Bytes())
	switch {
	case err != nil:
	case len(rest) > 0:
		err = errCodecTail
	case flags > columnFlagsAll:
		err = fmt.Errorf("unknown flags %#x", flags)
	case c.Initial != nil:
		_, err = types.DecodeStored(c.Initial, &c.Type)
	}
	return c, corrupt("sys_columns", err, row[columnTable].Uint(), uint64(c.ID))
}

func encodeIndex(table uint64, ordinal int, ix *record.Index) values {
	flags := flagIf(ix.Unique, flagUnique) | flagIf(ix.Invisible, flagIndexInvisible) | flagIf(ix.Building, flagBuilding)
	return values{uintValue(table), uintValue(ix.ID), uintValue(uint64(ordinal)), stringValue(ix.Name), uintValue(flags),
		bytesValue(encodeParts(ix.Parts)), stringValue(ix.Comment)}
}

func decodeIndex(row values) (record.Index, error) {
	flags := row[indexFlags].Uint()
	ix := record.Index{ID: row[indexID].Uint(), Name: text(row[indexName]), Unique: flags&flagUnique != 0,
		Invisible: flags&flagIndexInvisible != 0, Building: flags&flagBuilding != 0, Comment: text(row[indexComment])}
	var err error
	if ix.Parts, err = decodeParts(row[indexParts].Bytes()); err == nil && flags > indexFlagsAll {
		err = fmt.Errorf("unknown flags %#x", flags)
	}
	return ix, corrupt("sys_indexes", err, row[indexTable].Uint(), ix.ID)
}

func encodeForeignKey(table uint64, ordinal int, fk *record.ForeignKey) values {
	return values{uintValue(table), uintValue(fk.ID), uintValue(uint64(ordinal)), stringValue(fk.Name),
		stringValue(fk.RefSchema), stringValue(fk.RefTable), bytesValue(encodeReference(fk)),
		uintValue(uint64(fk.OnDelete)), uintValue(uint64(fk.OnUpdate))}
}

func decodeForeignKey(row values) (record.ForeignKey, error) {
	fk := record.ForeignKey{ID: row[foreignID].Uint(), Name: text(row[foreignName]), RefSchema: text(row[foreignRefSchema]),
		RefTable: text(row[foreignRefTable]), OnDelete: uint8(row[foreignOnDelete].Uint()),
		OnUpdate: uint8(row[foreignOnUpdate].Uint())}
	err := decodeReference(row[foreignColumns].Bytes(), &fk)
	return fk, corrupt("sys_foreign_keys", err, row[foreignTable].Uint(), fk.ID)
}

// corrupt wraps an error of decoding a row; nil stays nil.
func corrupt(table string, err error, key ...uint64) error {
	if err == nil {
		return nil
	}
	return &CorruptError{Table: table, Row: fmt.Sprint(key), Err: err}
}

func collation(n uint64) (types.CollationID, error) {
	id := types.CollationID(n)
	if n > 1<<16-1 || id != types.CollationNone && types.CollationByID(id) == nil {
		return 0, fmt.Errorf("unknown collation %d", n)
	}
	return id, nil
}

func validName(s string) error {
	if s == "" || !utf8.ValidString(s) {
		return fmt.Errorf("malformed name %q", s)
	}
	return nil
}
