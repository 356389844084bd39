package temptable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/internal/race"
)

var (
	bigint   = &types.Type{Kind: types.KindBigInt}
	ubigint  = &types.Type{Kind: types.KindBigInt, Unsigned: true}
	double   = &types.Type{Kind: types.KindDouble}
	short    = &types.Type{Kind: types.KindDecimal, Precision: 12, Scale: 3}
	wide     = &types.Type{Kind: types.KindDecimal, Precision: 40, Scale: 10}
	text     = &types.Type{Kind: types.KindVarChar, Length: 100, Collation: types.CollationUTF8MB40900AI}
	textBin  = &types.Type{Kind: types.KindVarChar, Length: 100, Collation: types.CollationUTF8MB40900B}
	padded   = &types.Type{Kind: types.KindVarChar, Length: 100, Collation: types.CollationUTF8MB4Gen}
	blob     = &types.Type{Kind: types.KindBlob, Collation: types.CollationBinary}
	date     = &types.Type{Kind: types.KindDate}
	keyTypes = []*types.Type{bigint, ubigint, double, short, wide, text, textBin, padded, blob, date}
)

func testConfig(t testing.TB, limit int64) *Config {
	return &Config{Env: env.Real(), FS: file.OS(t.TempDir()), Dir: "tmp", Memory: NewAccount(limit)}
}

// randomValue is a value of few different ones, with spellings that are equal.
func randomValue(rng *rand.Rand, t *types.Type, few bool) types.Value {
	if rng.IntN(10) == 0 {
		return types.Null
	}
	if !few {
		return txntest.RandomValue(rng, t).Clone()
	}
	words := []string{"a", "A", "b", "ä", "abc", "ABC", "abc ", "", "x\x00y", "z\x01"}
	switch t.Class() {
	case types.ClassBytes:
		word := words[rng.IntN(len(words))]
		if rng.IntN(2) == 0 { // agree so far that more than heads of keys tells them apart
			word = strings.Repeat(words[rng.IntN(3)], 12) + word + strings.Repeat(word, 6)
		}
		return types.NewString(word)
	case types.ClassDouble:
		return types.NewDouble([]float64{0, 1.5, -2, 1e300}[rng.IntN(4)] * []float64{1, -1}[rng.IntN(2)])
	case types.ClassInt:
		return types.NewInt(int64(rng.IntN(9)) - 4)
	case types.ClassUint:
		return types.NewUint(uint64(rng.IntN(9)) << 60)
	}
	return txntest.RandomValue(rand.New(rand.NewPCG(uint64(rng.IntN(7)), 1)), t).Clone()
}

func randomRows(rng *rand.Rand, cols []*types.Type, n int, few bool) [][]types.Value {
	rows := make([][]types.Value, n)
	for i := range rows {
		for _, t := range cols {
			rows[i] = append(rows[i], randomValue(rng, t, few))
		}
	}
	return rows
}

func batches(cols []*types.Type, rows [][]types.Value) []*types.Batch {
	var list []*types.Batch
	for len(rows) > 0 {
		b := types.NewBatch(cols)
		for ; len(rows) > 0 && !b.Full(); rows = rows[1:] {
			b.AppendRow(rows[0])
		}
		list = append(list, b)
	}
	return list
}

func compareRows(a, b []types.Value, cols []*types.Type) int {
	for c, t := range cols {
		if d := types.Compare(a[c], b[c], t); d != 0 {
			return d
		}
	}
	return 0
}

func pick(rng *rand.Rand, n int) []*types.Type {
	var cols []*types.Type
	for range n {
		cols = append(cols, keyTypes[rng.IntN(len(keyTypes))])
	}
	return cols
}

func vecs(b *types.Batch) []*types.Vector {
	var list []*types.Vector
	for i := range b.Vecs {
		list = append(list, &b.Vecs[i])
	}
	return list
}

// Groups numbers keys as a list searched from its beginning does.
func TestGroups(t *testing.T) {
	for seed := uint64(0); seed < 100; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		cols := pick(rng, 1+rng.IntN(3))
		if seed < uint64(len(keyTypes)) {
			cols = []*types.Type{keyTypes[seed]}
		}
		rows := randomRows(rng, cols, rng.IntN(300), rng.IntN(4) > 0)
		cfg := testConfig(t, 0)
		g, weights := NewGroups(cfg, cols, seed), seed%3 == 1
		if weights {
			g = NewKeys(cfg, cols, seed)
		}
		for round := range 2 { // the second one finds what the first one added
			var seen [][]types.Value
			at := 0
			for _, b := range batches(cols, rows) {
				ids, hashes := make([]uint32, b.Len()), make([]uint64, b.Len())
				g.Find(vecs(b), b.Len(), ids, round == 0)
				g.Hashes(vecs(b), b.Len(), hashes)
				for i := range b.Len() {
					want := 0
					for want < len(seen) && compareRows(seen[want], rows[at], cols) != 0 {
						want++
					}
					if want == len(seen) {
						seen = append(seen, rows[at])
					}
					if int(ids[i]) != want {
						t.Fatalf("seed %d round %d: row %d has group %d, want %d", seed, round, at, ids[i], want)
					}
					at++
				}
			}
			if g.Len() != len(seen) {
				t.Fatalf("seed %d: %d groups, want %d", seed, g.Len(), len(seen))
			}
			out := types.NewBatch(cols)
			if weights { // the keys are not to be had
				continue
			}
			g.AppendKeys(out.Vecs, 0, g.Len())
			for i, row := range seen {
				if got := out.Row(nil, i); compareRows(got, row, cols) != 0 {
					t.Fatalf("seed %d: key %d is %v, want %v", seed, i, got, row)
				}
			}
		}
		g.Reset()
		if cfg.Memory.Used() != 0 {
			t.Fatalf("seed %d: %d bytes left", seed, cfg.Memory.Used())
		}
	}
}

// Equal keys have equal hashes, and a key that is not there is not found.
func TestGroupsHashesAndMisses(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for _, typ := range keyTypes {
		cols := []*types.Type{typ, typ}
		b := batches(cols, randomRows(rng, cols, 400, true))[0]
		h := make([]uint64, b.Len())
		g := NewGroups(testConfig(t, 0), cols, 9)
		g.Hashes(vecs(b), b.Len(), h)
		for i := range b.Len() {
			for j := range i {
				if compareRows(b.Row(nil, i), b.Row(nil, j), cols) == 0 && h[i] != h[j] {
					t.Fatalf("%v: equal rows have different hashes", typ.Kind)
				}
			}
		}
		ids := make([]uint32, b.Len())
		g.Find(vecs(b), b.Len(), ids, false)
		for _, id := range ids {
			if id != None {
				t.Fatalf("%v: found in an empty table", typ.Kind)
			}
		}
	}
}

// A sorter gives what sort.SliceStable gives, in memory, from disk, and cut off.
func TestSorter(t *testing.T) {
	for seed := range race.Fewer(uint64(60), 12) {
		rng := rand.New(rand.NewPCG(seed, 3))
		cols := append(pick(rng, 1+rng.IntN(3)), bigint)
		var keys []SortKey
		for range 1 + rng.IntN(2) {
			keys = append(keys, SortKey{rng.IntN(len(cols)), rng.IntN(2) == 0})
		}
		n := rng.IntN(2000)
		memory := int64(0)
		if rng.IntN(2) == 0 {
			n, memory = n*4, 1
		}
		limit := 0
		if rng.IntN(2) == 0 {
			limit = 1 + rng.IntN(100)
			if memory == 0 {
				n += 3 * pruneSlack // rows beyond the limit are dropped
			}
		}
		rows := randomRows(rng, cols, n, rng.IntN(2) == 0)
		cfg := testConfig(t, memory)
		s := NewSorter(cfg, cols, keys)
		s.SetLimit(int64(limit))
		for round := range 2 {
			what := fmt.Sprintf("seed %d round %d: %d rows, limit %d, memory %d, keys %v", seed, round, n, limit, memory, keys)
			checkSorter(t, s, cols, keys, rows, limit, what)
			if err := s.Reset(); err != nil {
				t.Fatal(err)
			}
			if cfg.Memory.Used() != 0 {
				t.Fatalf("%s: %d bytes left", what, cfg.Memory.Used())
			}
		}
	}
}

func checkSorter(t *testing.T, s *Sorter, cols []*types.Type, keys []SortKey, rows [][]types.Value, limit int, what string) {
	t.Helper()
	for _, b := range batches(cols, rows) {
		if err := s.Add(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	less := func(a, b []types.Value) int {
		for _, k := range keys {
			d := types.Compare(a[k.Column], b[k.Column], cols[k.Column])
			if k.Desc {
				d = -d
			}
			if d != 0 {
				return d
			}
		}
		return 0
	}
	want := append([][]types.Value(nil), rows...)
	sort.SliceStable(want, func(i, j int) bool { return less(want[i], want[j]) < 0 })
	if limit > 0 && len(want) > limit {
		want = want[:limit]
	}
	out := types.NewBatch(cols)
	at := 0
	for {
		more, err := s.Next(out)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		for i := range out.Len() {
			if at >= len(want) {
				t.Fatalf("%s: too many rows", what)
			}
			if less(out.Row(nil, i), want[at]) != 0 {
				t.Fatalf("%s: row %d is %v, want %v", what, at, out.Row(nil, i), want[at])
			}
			at++
		}
	}
	if at != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, at, len(want))
	}
}

// Rows in memory and on disk come back as they were.
func TestListAndPartitions(t *testing.T) {
	for seed := range race.Fewer(uint64(20), 5) {
		rng := rand.New(rand.NewPCG(seed, 5))
		cols := pick(rng, 1+rng.IntN(4))
		rows := randomRows(rng, cols, rng.IntN(9000), false)
		cfg := testConfig(t, int64(rng.IntN(2)))
		l := NewList(cfg, cols)
		p, err := NewPartitions(cfg, cols, rng.IntN(MaxDepth), "test")
		if err != nil {
			t.Fatal(err)
		}
		g := NewGroups(cfg, cols, 7)
		hashes := make([]uint64, types.BatchRows)
		for _, b := range batches(cols, rows) {
			if err := l.Add(b, nil); err != nil {
				t.Fatal(err)
			}
			g.Hashes(vecs(b), b.Len(), hashes)
			if err := p.Add(b, nil, hashes); err != nil {
				t.Fatal(err)
			}
		}
		out := types.NewBatch(cols)
		at := 0
		for c := (Cursor{}); ; {
			more, err := l.Next(&c, out)
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
			for i := range out.Len() {
				if compareRows(out.Row(nil, i), rows[at], cols) != 0 {
					t.Fatalf("seed %d: row %d differs", seed, at)
				}
				at++
			}
		}
		if at != len(rows) || l.Len() != int64(at) {
			t.Fatalf("seed %d: %d rows, want %d", seed, at, len(rows))
		}
		checkPartitions(t, p, g, cols, rows)
		g.Reset()
		if err := l.Reset(); err != nil {
			t.Fatal(err)
		}
		if cfg.Memory.Used() != 0 {
			t.Fatalf("seed %d: %d bytes left", seed, cfg.Memory.Used())
		}
	}
}

func checkPartitions(t *testing.T, p *Partitions, g *Groups, cols []*types.Type, rows [][]types.Value) {
	t.Helper()
	if err := p.Finish(); err != nil {
		t.Fatal(err)
	}
	out, hashes := types.NewBatch(cols), make([]uint64, types.BatchRows)
	var got [][]byte
	for i := range NumPartitions {
		for block := range p.Blocks(i) {
			if err := p.Read(i, block, out); err != nil {
				t.Fatal(err)
			}
			g.Hashes(vecs(out), out.Len(), hashes)
			for r := range out.Len() {
				if p.Of(hashes[r]) != i {
					t.Fatal("row in the wrong part")
				}
				got = append(got, fmt.Appendf(nil, "%v", keysOf(out.Row(nil, r), cols)))
			}
		}
	}
	var want [][]byte
	for _, row := range rows {
		want = append(want, fmt.Appendf(nil, "%v", keysOf(row, cols)))
	}
	for _, l := range [][][]byte{got, want} {
		sort.Slice(l, func(i, j int) bool { return bytes.Compare(l[i], l[j]) < 0 })
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatal("rows differ")
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func keysOf(row []types.Value, cols []*types.Type) []byte {
	var key []byte
	for c, v := range row {
		key = types.AppendKey(key, v, cols[c], false, 0)
	}
	return key
}

// Without files what does not fit is an error with MySQL's number.
func TestNoFiles(t *testing.T) {
	cfg := &Config{Env: env.Real(), Memory: NewAccount(1000)}
	l := NewList(cfg, []*types.Type{bigint})
	rng := rand.New(rand.NewPCG(1, 1))
	var err error
	for _, b := range batches([]*types.Type{bigint}, randomRows(rng, []*types.Type{bigint}, 20000, false)) {
		if err = l.Add(b, nil); err != nil {
			break
		}
	}
	e, ok := err.(*sqlerr.Error)
	if !ok || e.Number != sqlerr.CapacityExceeded {
		t.Fatalf("error %v", err)
	}
}

// A queue gives each cursor the rows that were added and not dropped, from memory or from
// disk, and gives disk and memory back.
func TestQueue(t *testing.T) {
	for _, limit := range []int64{0, 1} {
		cfg := testConfig(t, limit)
		cfg.MinWork = 1
		rng := rand.New(rand.NewPCG(uint64(limit), 3))
		rows := randomRows(rng, keyTypes, race.Fewer(20_000, 12_000), false)
		q := NewQueue(cfg, keyTypes)
		var far, near QueueCursor
		read := func(c *QueueCursor, row int64) {
			t.Helper()
			if c.Batch == nil || row < c.First || row >= c.First+int64(c.Batch.Len()) {
				if err := q.Seek(c, row); err != nil {
					t.Fatal(err)
				}
			}
			for k, typ := range keyTypes {
				if got := c.Batch.Vecs[k].Value(int(row - c.First)); types.Compare(got, rows[row][k], typ) != 0 {
					t.Fatalf("row %d, column %d: %v, want %v", row, k, got, rows[row][k])
				}
			}
		}
		for q.Len() < int64(len(rows)) {
			b := q.Tail()
			for range min(1+rng.IntN(b.Room()), len(rows)-int(q.Len())) {
				b.AppendRow(rows[int(q.Len())+b.Len()-tailRows(q)])
			}
			if err := q.Added(); err != nil {
				t.Fatal(err)
			}
			low := max(0, q.Len()-9000)
			read(&near, q.Len()-1)
			read(&far, low)
			if err := q.Drop(low); err != nil {
				t.Fatal(err)
			}
		}
		if spilled := cfg.Memory.Spilled(); (spilled > 0) != (limit > 0) {
			t.Errorf("with limit %d, %d bytes on disk", limit, spilled)
		}
		if err := q.Drop(q.Len()); err != nil {
			t.Fatal(err)
		}
		if q.spill != nil {
			t.Error("the file stays when no block is on disk")
		}
		if err := q.Reset(); err != nil {
			t.Fatal(err)
		}
		if used := cfg.Memory.Used(); used != 0 {
			t.Errorf("%d bytes are still counted", used)
		}
	}
}

// tailRows is the number of rows that the tail had when they were last counted.
func tailRows(q *Queue) int { return q.blocks[len(q.blocks)-1].rows }

// Items are sorted by prefix, whatever their number and however alike these are, and equal ones
// stay in their order.
func TestSortItems(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	var spare []sortItem
	for range 3000 {
		mask := ^uint64(0) >> rng.IntN(64) << rng.IntN(64)
		rest := rng.Uint64() &^ mask
		items := make([]sortItem, rng.IntN(fewItems+1))
		for i := range items {
			items[i] = sortItem{prefix: rng.Uint64()&mask | rest, row: uint32(i)}
		}
		want := slices.Clone(items)
		slices.SortStableFunc(want, func(a, b sortItem) int { return cmp.Compare(a.prefix, b.prefix) })
		var few []sortItem
		if few, spare = sortFew(slices.Clone(items), spare); !slices.Equal(few, want) {
			t.Fatalf("seed %d: few items: %v, want %v", seed, few, want)
		}
		if len(items) > 0 {
			if many, _ := radixSort(items, nil); !slices.Equal(many, want) {
				t.Fatalf("seed %d: radix: %v, want %v", seed, many, want)
			}
		}
	}
}

// A sort that is told to end does so within a block of rows, while it compares as well.
func TestStoppedSort(t *testing.T) {
	stop := errors.New("over")
	for _, c := range []struct {
		name  string
		limit int64
	}{{"in memory", 1 << 30}, {"on disk", 1}} {
		asked := 0
		cfg := &Config{Env: env.Real(), FS: file.OS(t.TempDir()), Dir: "tmp", Memory: NewAccount(c.limit), MinWork: 64 << 10}
		cols := []*types.Type{{Kind: types.KindVarChar, Length: 100, Collation: types.CollationBinary, NotNull: true}}
		s := NewSorter(cfg, cols, []SortKey{{Column: 0}})
		b := types.NewBatch(cols)
		var err error
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			b.Reset()
			for range types.BatchRows {
				b.Vecs[0].AppendBytes(fmt.Appendf(nil, "%d equal for many bytes %09d", random.IntN(2), random.IntN(1e9)))
				b.EndRow()
			}
			if err = s.Add(b, nil); err != nil {
				break
			}
		}
		cfg.Stop = func() error {
			asked++
			return stop
		}
		if err == nil {
			err = s.Finish()
		}
		if asked == 0 || err != stop {
			t.Errorf("%s: asked %d times, %v", c.name, asked, err)
		}
		if asked > 3 {
			t.Errorf("%s: it went on: asked %d times", c.name, asked)
		}
		if err := s.Reset(); err != nil {
			t.Error(err)
		}
	}
}
