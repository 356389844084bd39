package table_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// thing is a row of the workload's table; null stands for NULL in age and code.
// The long columns are made from the numbers: long keys, so that a few rows fill a
// leaf, and a bio that now and then lies off-page.
type thing struct{ id, code, name, age, bio int64 }

const null = -1

const (
	codePad = 900 // about fifteen entries in a leaf
	namePad = 600
)

func codeOf(n int64) types.Value {
	if n == null {
		return types.Null
	}
	return types.NewString(fmt.Sprintf("%04d%s", n, strings.Repeat("c", codePad)))
}

func nameOf(n int64) types.Value {
	return types.NewString(fmt.Sprintf("%04d%s", n, strings.Repeat("n", namePad)))
}

func ageOf(n int64) types.Value {
	if n == null {
		return types.Null
	}
	return types.NewInt(n)
}

// bioOf is n bytes that tell their number.
func bioOf(n int64) types.Value {
	return types.NewString(strings.Repeat(fmt.Sprintf("%05d ", n), int(n)/6+1)[:n])
}

func (r thing) values() []types.Value {
	return []types.Value{types.NewInt(r.id), nameOf(r.name), ageOf(r.age), codeOf(r.code), bioOf(r.bio)}
}

// thingOf reads a row back, and complains about one that was not made by values.
func thingOf(v []types.Value) (thing, error) {
	number := func(v types.Value) int64 {
		if v.IsNull() {
			return null
		}
		n := int64(0)
		for _, c := range v.Bytes()[:min(4, len(v.Bytes()))] {
			n = n*10 + int64(c-'0')
		}
		return n
	}
	r := thing{id: v[0].Int(), name: number(v[1]), age: null, code: number(v[3]), bio: int64(len(v[4].Bytes()))}
	if !v[2].IsNull() {
		r.age = v[2].Int()
	}
	for i, want := range r.values() {
		if i != 2 && !bytes.Equal(want.Bytes(), v[i].Bytes()) {
			return r, fmt.Errorf("row %+v: column %d has %d bytes that were never written", r, i, len(v[i].Bytes()))
		}
	}
	return r, nil
}

// crowd is how many full columns that cannot go off-page leave no room for names and codes.
const crowd = 29

// row is what the workload's table holds of a row.
func (w *workload) row(r thing) []types.Value {
	row := r.values()
	for range crowd {
		if w.crowded {
			row = append(row, types.NewString(strings.Repeat("f", record.MinExternal)))
		}
	}
	return row
}

// things is the workload's table.
func things(id uint64, crowded bool) *record.Table {
	def := people(id)
	def.Columns[1].Type = types.Type{Kind: types.KindVarChar, NotNull: true, Length: 700, Collation: types.CollationUTF8MB4Bin}
	def.Columns[3].Type = types.Type{Kind: types.KindVarChar, Length: 1000, Collation: types.CollationBinary}
	for i := range uint32(crowd) {
		if crowded {
			def.Columns = append(def.Columns, record.Column{ID: 6 + i, Name: fmt.Sprint("full", i), AddedIn: 1,
				Type: types.Type{Kind: types.KindVarBinary, NotNull: true, Length: record.MinExternal, Collation: types.CollationBinary}})
			def.NextColumn = 7 + i
		}
	}
	return def
}

// Positions of the indexes.
const (
	byID = iota
	byCode
	byName
)

// rows is a state of the table by id. A state that was published is not changed.
type rows map[int64]thing

// in lists the rows of a state in the order of an index.
func (s rows) in(index int, keep func(thing) bool) []thing {
	var out []thing
	for _, r := range s {
		if keep(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b thing) int {
		switch index {
		case byCode:
			return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.id, b.id))
		case byName:
			return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(b.age, a.age), cmp.Compare(a.id, b.id))
		}
		return cmp.Compare(a.id, b.id)
	})
	return out
}

// writes are a transaction's own rows by id; nil means deleted.
type writes map[int64]*thing

func (w writes) over(s rows) rows {
	out := maps.Clone(s)
	for id, r := range w {
		if r == nil {
			delete(out, id)
		} else {
			out[id] = *r
		}
	}
	return out
}

// history is what the table held at each CSN.
type history struct {
	mu     *env.Mutex
	states map[uint64]rows
	last   uint64
}

func newHistory(e env.Env, csn uint64) *history {
	return &history{mu: env.NewMutex(e), states: map[uint64]rows{csn: {}}, last: csn}
}

// at is the state that a snapshot sees.
func (h *history) at(csn uint64) rows {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[csn]
}

// latest is the newest committed state.
func (h *history) latest() rows {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[h.last]
}

// commit commits the session's transaction and notes the state.
func (h *history) commit(s *session, w writes) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := s.Trx().HasChanges()
	if err := s.commit(); err != nil {
		return err
	}
	if !changed {
		return nil
	}
	csn := s.r.e.Trx.LastCommitted()
	if csn != h.last+1 {
		return fmt.Errorf("CSN %d after %d", csn, h.last)
	}
	h.states[csn] = w.over(h.states[h.last])
	h.last = csn
	return nil
}

// span is a range of an index in the model's terms: the first column from lo to
// hi, either of which may be open.
type span struct {
	index          int
	lo, hi         int64
	loOpen, hiOpen bool // lo, hi themselves are left out
	noLo, noHi     bool
	backward       bool
}

func (p span) String() string {
	names := [...]string{"id", "code", "name"}
	return fmt.Sprintf("%s %d..%d open=%v,%v none=%v,%v backward=%v", names[p.index], p.lo, p.hi, p.loOpen, p.hiOpen, p.noLo, p.noHi, p.backward)
}

func (p span) has(r thing) bool {
	v := [...]int64{r.id, r.code, r.name}[p.index]
	return (p.noLo || v > p.lo || v == p.lo && !p.loOpen) && (p.noHi || v < p.hi || v == p.hi && !p.hiOpen)
}

func (p span) of(s rows) []thing {
	out := s.in(p.index, p.has)
	if p.backward {
		slices.Reverse(out)
	}
	return out
}

func (p span) key(t *table.Table, n int64) []byte {
	v := [...]func(int64) types.Value{types.NewInt, codeOf, nameOf}[p.index](n)
	return t.Schema.Keys[p.index].AppendKey(nil, v)
}

func (p span) bounds(t *table.Table) table.Range {
	r := table.Range{Index: p.index, LowOpen: p.loOpen, HighOpen: p.hiOpen, Backward: p.backward}
	if !p.noLo {
		r.Low = p.key(t, p.lo)
	}
	if !p.noHi {
		r.High = p.key(t, p.hi)
	}
	return r
}

// difference explains how two lists of rows differ, "" if they do not.
func difference(got, want []thing) string {
	if slices.Equal(got, want) {
		return ""
	}
	var b strings.Builder
	for _, r := range got {
		if !slices.Contains(want, r) {
			fmt.Fprintf(&b, "  unexpected %+v\n", r)
		}
	}
	for _, r := range want {
		if !slices.Contains(got, r) {
			fmt.Fprintf(&b, "  missing    %+v\n", r)
		}
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "  order or number: %v\n  instead of       %v\n", got, want)
	}
	return b.String()
}
