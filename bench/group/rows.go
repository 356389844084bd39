package main

import (
	"encoding/binary"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// valueBytes is the length of a value.
const valueBytes = 200

const (
	schemaName   = "bench"
	rowsTable    = "rows"     // id, value
	countsTable  = "counters" // id, number
	hotCounters  = 64         // rows of the hot-row measurement, from 0 on
	retryCounter = 1000       // counters of the transfers, from here on
)

var primary = []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}

func bigint(name string, id uint32) record.Column {
	return record.Column{ID: id, Name: name, Type: types.Type{Kind: types.KindBigInt, NotNull: true}}
}

func tables() []*record.Table {
	return []*record.Table{
		{Schema: schemaName, Name: rowsTable, Indexes: primary, Columns: []record.Column{bigint("id", 1),
			{ID: 2, Name: "value", Type: types.Type{Kind: types.KindVarBinary, Length: valueBytes, NotNull: true}}}},
		{Schema: schemaName, Name: countsTable, Indexes: primary, Columns: []record.Column{bigint("id", 1), bigint("number", 2)}},
	}
}

// scattered is the n-th of keys that are all different and in no order.
func scattered(n uint64) int64 { return int64(mix(n) >> 1) }

// fill writes the value of a row: letters that depend on its id and do not compress
// to nothing.
func fill(b []byte, id int64) {
	x := uint64(id)
	var w [8]byte
	for len(b) > 0 {
		x = mix(x)
		binary.LittleEndian.PutUint64(w[:], x&0x0f0f0f0f0f0f0f0f|0x6060606060606060)
		b = b[copy(b, w[:]):]
	}
}

// mix is the step of splitmix64, which never gives one value for two.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
