package dict

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

func TestCodec(t *testing.T) {
	options := map[string]string{"b": "", "a": "x", "": "y"}
	if got, err := decodeOptions(encodeOptions(options)); err != nil || !reflect.DeepEqual(got, options) {
		t.Fatal(got, err)
	}
	parts := []record.Part{{Column: 1, Desc: true}, {Column: 1 << 31, Prefix: 255}}
	if got, err := decodeParts(encodeParts(parts)); err != nil || !reflect.DeepEqual(got, parts) {
		t.Fatal(got, err)
	}
	fk := record.ForeignKey{Columns: []uint32{1, 7}, RefColumns: []string{"a", "ä"}}
	var got record.ForeignKey
	if err := decodeReference(encodeReference(&fk), &got); err != nil || !reflect.DeepEqual(got, fk) {
		t.Fatal(got, err)
	}
	for _, b := range [][]byte{nil, {2, 0}, {1}, {1, 0x80, 0}, {1, 0, 0}, {1, 5, 1}, {1, 2, 1, 'b', 0, 1, 'a', 0}} {
		if _, err := decodeOptions(b); err == nil {
			t.Errorf("options %x are accepted", b)
		}
	}
}

// FuzzBlobs: no bytes make a decoder panic, and what it accepts has one form only.
func FuzzBlobs(f *testing.F) {
	f.Add(encodeOptions(map[string]string{"a": "b", "c": ""}))
	f.Add(encodeParts([]record.Part{{Column: 3, Desc: true, Prefix: 300}}))
	f.Add(encodeReference(&record.ForeignKey{Columns: []uint32{1}, RefColumns: []string{"id"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if options, err := decodeOptions(b); err == nil && !bytes.Equal(encodeOptions(options), b) {
			t.Errorf("options %x: encoded as %x", b, encodeOptions(options))
		}
		if parts, err := decodeParts(b); err == nil && !bytes.Equal(encodeParts(parts), b) {
			t.Errorf("parts %x: encoded as %x", b, encodeParts(parts))
		}
		var fk record.ForeignKey
		if err := decodeReference(b, &fk); err == nil && !bytes.Equal(encodeReference(&fk), b) {
			t.Errorf("reference %x: encoded as %x", b, encodeReference(&fk))
		}
	})
}

// FuzzRows: rows of any content are decoded or refused with their name.
func FuzzRows(f *testing.F) {
	f.Add(uint64(1), uint64(2), "name", []byte{1, 0}, types.AppendType(nil, &typeName))
	f.Add(uint64(1<<40), uint64(255), "\xff", []byte{1, 1, 1, 'a', 0}, []byte{1})
	f.Fuzz(func(t *testing.T, n, m uint64, s string, blob, typ []byte) {
		check := func(err error) {
			var corrupt *CorruptError
			if err != nil && (!errors.As(err, &corrupt) || corrupt.Row == "" || corrupt.Table == "") {
				t.Errorf("error %v", err)
			}
		}
		num, name, bin := uintValue, stringValue(s), bytesValue(blob)
		_, err := decodeSchema(values{num(n), name, num(m), bin})
		check(err)
		_, _, err = decodeTable(values{num(n), num(m), name, num(n), num(m), num(n), num(m), name, bin})
		check(err)
		for _, initial := range []types.Value{types.Null, bin} {
			_, err = decodeColumn(values{num(n), num(m), num(n), name, bytesValue(typ), num(n), num(m), num(n), initial, name, name, name, name})
			check(err)
		}
		_, err = decodeIndex(values{num(n), num(m), num(n), name, num(m), bin, name})
		check(err)
		_, err = decodeForeignKey(values{num(n), num(m), num(n), name, name, name, bin, num(m), num(n)})
		check(err)
	})
}

// The catalogue's definitions never change by accident: their numbers are on disk.
func TestSystemTables(t *testing.T) {
	want := map[string]uint64{"sys_schemas": 1, "sys_tables": 3, "sys_columns": 5, "sys_indexes": 6,
		"sys_foreign_keys": 7, "sys_physical": 9, "sys_state": 10, "sys_local": 11}
	for i, def := range systemTables() {
		if def.ID != uint64(i+1) || def.Indexes[0].ID != want[def.Name] {
			t.Errorf("%s has number %d, index %d", def.Name, def.ID, def.Indexes[0].ID)
		}
		if _, err := record.Prepare(def); err != nil {
			t.Error(err)
		}
		if !IsSystem(def.ID) || IsReplicated(def.ID) != (def.Name != "sys_physical" && def.Name != "sys_local") {
			t.Errorf("%s is of the wrong sort", def.Name)
		}
	}
}
