package main

import (
	"encoding/binary"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
)

// Columns of the table, by position. Their values add up to rowBytes.
const (
	colID       = iota // BIGINT, 8 bytes
	colCustomer        // INT, 4
	colAmount          // BIGINT, 8
	colRate            // DOUBLE, 8
	colState           // INT, 4
	colName            // VARCHAR, 20
	colNote            // VARCHAR, 148
	columns

	nameBytes = 20
	noteBytes = 148
	rowBytes  = 8 + 4 + 8 + 8 + 4 + nameBytes + noteBytes
)

// idStep is the distance of the loaded ids: between them is room for inserts.
const idStep = 64

func definition() *record.Table {
	integer := types.Type{Kind: types.KindInt, NotNull: true}
	big := types.Type{Kind: types.KindBigInt, NotNull: true}
	text := func(n uint32) types.Type {
		return types.Type{Kind: types.KindVarChar, Length: n, Collation: types.CollationUTF8MB40900AI, NotNull: true}
	}
	def := &record.Table{Schema: "bench", Name: "orders"}
	for i, c := range []record.Column{
		colID:       {Name: "id", Type: big},
		colCustomer: {Name: "customer", Type: integer},
		colAmount:   {Name: "amount", Type: big},
		colRate:     {Name: "rate", Type: types.Type{Kind: types.KindDouble, NotNull: true}},
		colState:    {Name: "state", Type: integer},
		colName:     {Name: "name", Type: text(40)},
		colNote:     {Name: "note", Type: text(200)},
	} {
		c.ID, c.AddedIn = uint32(i+1), record.FirstRowVersion
		def.Columns = append(def.Columns, c)
	}
	def.Indexes = []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: colID + 1}}}}
	return def
}

// maker makes rows: the same one for the same id, in reused memory.
type maker struct {
	row        [columns]types.Value
	name, note [noteBytes]byte
}

func (m *maker) make(id int64) []types.Value {
	x := uint64(id)
	fill(m.name[:nameBytes], x)
	fill(m.note[:], x+1)
	m.row = [columns]types.Value{
		colID:       types.NewInt(id),
		colCustomer: types.NewInt(int64(x * 7 % 100_000)),
		colAmount:   types.NewInt(amountOf(id)),
		colRate:     types.NewDouble(float64(x%1000) / 8),
		colState:    types.NewInt(int64(x % 5)),
		colName:     types.NewBytes(m.name[:nameBytes]),
		colNote:     types.NewBytes(m.note[:]),
	}
	return m.row[:]
}

func amountOf(id int64) int64 { return id*31 + 5 }

// fill writes letters that depend on x and do not compress to nothing.
func fill(b []byte, x uint64) {
	var w [8]byte
	for len(b) > 0 {
		x = mix(x)
		binary.LittleEndian.PutUint64(w[:], x&0x0f0f0f0f0f0f0f0f|0x6060606060606060)
		b = b[copy(b, w[:]):]
	}
}

// mix is the step of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// rng is a small random generator.
type rng uint64

func (r *rng) below(n int) int {
	*r += 0x9e3779b97f4a7c15
	return int(mix(uint64(*r)) % uint64(n))
}

// shuffle walks through 0 to n-1 in a scattered order, each once.
type shuffle struct{ n, step, at int }

func newShuffle(n int) *shuffle {
	step := int(float64(n)*0.618) | 1
	for gcd(step, n) != 1 {
		step += 2
	}
	return &shuffle{n: n, step: step}
}

func (s *shuffle) next() int {
	s.at = (s.at + s.step) % s.n
	return s.at
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// freshIDs gives ids that were not loaded, in scattered order, each once: rows
// times idStep-1 of them.
type freshIDs struct {
	s    *shuffle
	used int
}

func newFreshIDs(rows int) *freshIDs { return &freshIDs{s: newShuffle(rows)} }

func (f *freshIDs) next() int64 {
	gap := 1 + f.used/f.s.n
	f.used++
	return int64(f.s.next())*idStep + int64(gap)
}

func (f *freshIDs) left() int { return f.s.n*(idStep-1) - f.used }
