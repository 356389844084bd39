package txn

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
)

// sampleTable uses every field of a definition.
func sampleTable() *record.Table {
	return &record.Table{ID: 300, Schema: "db", Name: "täble", Version: 9, RowVersion: 3, NextColumn: 8,
		Collation: types.CollationUTF8MB40900AI, Comment: "comment", Options: map[string]string{"engine": "InnoDB", "a": ""},
		Columns: []record.Column{
			{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}, AutoIncrement: true, AddedIn: 1},
			{ID: 4, Name: "e", Type: types.Type{Kind: types.KindEnum, Members: []string{"x", "y"}, Collation: types.CollationUTF8MB40900AI},
				Invisible: true, Default: "'x'", HasDefault: true, Generated: "f(id)", OnUpdate: "now()", Comment: "c", AddedIn: 1},
			{ID: 5, Name: "n", Type: types.Type{Kind: types.KindInt, NotNull: true}, AddedIn: 2, Initial: []byte{0x80, 0, 0, 5}},
			{ID: 6, Name: "v", Type: types.Type{Kind: types.KindVarChar, Length: 10, Collation: types.CollationUTF8MB40900AI}, AddedIn: 2, Initial: []byte{}},
			{ID: 7, Name: "gone", Type: types.Type{Kind: types.KindInt}, Hidden: true, AddedIn: 1, DroppedIn: 3},
		},
		Indexes: []record.Index{
			{ID: 400, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}, Comment: "pk"},
			{ID: 401, Name: "v", Unique: true, Invisible: true, Building: true, Parts: []record.Part{{Column: 6, Desc: true, Prefix: 4}, {Column: 5}}},
		},
		ForeignKeys: []record.ForeignKey{{ID: 2, Name: "fk", Columns: []uint32{5}, RefSchema: "other", RefTable: "parent", RefColumns: []string{"p"}, OnDelete: 1, OnUpdate: 2}},
	}
}

func samples() []*SchemaOp {
	s := dict.Schema{ID: 256, Name: "db", Collation: types.CollationUTF8MB40900AI, Options: map[string]string{"k": "v"}}
	old, t := Name{"db", "old"}, sampleTable()
	return []*SchemaOp{
		{Kind: OpCreateSchema, Schema: s}, {Kind: OpAlterSchema, Schema: s}, {Kind: OpDropSchema, Schema: dict.Schema{ID: 1 << 63, Name: "x"}},
		{Kind: OpCreateTable, Table: t}, {Kind: OpDropTable, OldID: 300, Old: old}, {Kind: OpRenameTable, OldID: 300, Old: old, Table: t},
		{Kind: OpTruncateTable, OldID: 299, Old: old, Table: t}, {Kind: OpReplaceTable, OldID: 300, Old: old, Table: t},
		{Kind: OpAddIndex, OldID: 300, Old: old, Index: 401, Table: t}, {Kind: OpPublishIndex, OldID: 300, Old: old, Index: 401, Table: t},
		{Kind: OpDropIndex, OldID: 300, Old: old, Index: 401, Table: t},
	}
}

// TestSchemaOp: what is decoded is what was encoded; each prefix of it, and more than
// it, is refused.
func TestSchemaOp(t *testing.T) {
	for _, op := range samples() {
		b := op.Append(nil)
		got, err := DecodeSchemaOp(b)
		if err != nil {
			t.Fatalf("%v: %v", op.Kind, err)
		}
		if !reflect.DeepEqual(got, op) {
			t.Errorf("%v: got\n%+v\nwant\n%+v", op.Kind, got, op)
		}
		if op.Concerns() == "" || op.Kind.String() == "" {
			t.Errorf("%v concerns %q", op.Kind, op.Concerns())
		}
		for n := range b {
			if _, err := DecodeSchemaOp(b[:n]); !errors.Is(err, ErrSchemaOp) {
				t.Fatalf("%v: %d bytes of %d: %v", op.Kind, n, len(b), err)
			}
		}
		if _, err := DecodeSchemaOp(append(b, 0)); !errors.Is(err, ErrSchemaOp) {
			t.Errorf("%v: a byte more: %v", op.Kind, err)
		}
		b[0] = 2
		if _, err := DecodeSchemaOp(b); !errors.Is(err, ErrSchemaOp) {
			t.Errorf("%v: another version: %v", op.Kind, err)
		}
	}
}

// TestSchemaOpFormat pins the bytes: logs are kept.
func TestSchemaOpFormat(t *testing.T) {
	op := &SchemaOp{Kind: OpRenameTable, OldID: 300, Old: Name{"db", "o"}, Table: &record.Table{ID: 300, Schema: "db", Name: "n", Version: 2,
		RowVersion: 1, NextColumn: 2, Columns: []record.Column{{ID: 1, Name: "i", Type: types.Type{Kind: types.KindInt, NotNull: true}, AddedIn: 1}},
		Indexes: []record.Index{{ID: 301, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}}
	want := "\x01\x06" + "\xac\x02\x02db\x01o" + "\xac\x02\x02db\x01n\x02\x01\x02\x00\x00\x00" +
		"\x01" + "\x01\x01i" + string(types.AppendType(nil, &op.Table.Columns[0].Type)) + "\x00\x01\x00\x00\x00\x00\x00" +
		"\x01" + "\xad\x02\x07PRIMARY\x01\x01\x01\x00\x00\x00" + "\x00"
	if got := string(op.Append(nil)); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// FuzzSchemaOp: no bytes make the decoder panic, and what it takes has one form.
func FuzzSchemaOp(f *testing.F) {
	for _, op := range samples() {
		f.Add(op.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		op, err := DecodeSchemaOp(b)
		if err != nil {
			if !errors.Is(err, ErrSchemaOp) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		if !bytes.Equal(op.Append(nil), b) {
			t.Fatalf("%x is encoded as %x", b, op.Append(nil))
		}
	})
}
