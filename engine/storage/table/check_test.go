package table_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// entry works on an entry of a tree directly.
func (r *rig) entry(tbl *table.Table, position int, key []byte, insert bool, do func(c cursor)) {
	r.t.Helper()
	m := mtr.New(r.e.Pool)
	if err := m.Begin(); err != nil {
		r.t.Fatal(err)
	}
	c := tbl.Tree(position).NewCursor(m)
	exact, err := c.Seek(key, mtr.X)
	if err != nil || exact == insert {
		r.t.Fatalf("index %d, key %x: found %v, %v", position, key, exact, err)
	}
	do(c)
	c.Reset()
	m.Commit()
}

type cursor interface {
	Insert(key []byte, flags byte, value []byte)
	Update(flags byte, value []byte)
	SetFlags(byte)
	Remove()
	Value() []byte
	Flags() byte
}

// secondary builds the entry of a row in an index.
func (r *rig) secondary(tbl *table.Table, position int, row []types.Value) (key, value []byte) {
	r.t.Helper()
	s := tbl.Schema
	pk, err := s.AppendRowKey(nil, row)
	if err != nil {
		r.t.Fatal(err)
	}
	row = slices.Clone(row)
	if len(row) > 4 {
		row[4] = types.NewString("")
	}
	b, err := s.AppendRow(nil, row, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	rec, err := s.Row(pk, b)
	if err != nil {
		r.t.Fatal(err)
	}
	key, part, _, _, err := s.AppendSecondary(nil, s.Keys[position], rec, nil)
	if err == nil {
		value, err = s.AppendSecondaryValue(nil, s.Keys[position], rec, part)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return key, value
}

// Each case damages a sound table, and the check must say so.
func TestCheckFinds(t *testing.T) {
	long := strings.Repeat("long", 5000)
	row := func(n int64) []types.Value { return person(n, fmt.Sprint("name", n), n, 100+n, "bio") }
	firstLOB := func(r *rig, tbl *table.Table, n int64) (ref lob.Ref) {
		r.entry(tbl, 0, pk(tbl, n), false, func(c cursor) {
			rec, err := tbl.Schema.Row(pk(tbl, n), slices.Clone(c.Value()))
			if err == nil {
				err = rec.EachExternal(func(_ int, b []byte) error {
					ref, _ = lob.Decode(b)
					return nil
				})
			}
			if err != nil || ref.First == 0 {
				r.t.Fatalf("no off-page value: %v", err)
			}
		})
		return ref
	}
	tests := []struct {
		name   string
		damage func(r *rig, tbl *table.Table)
		want   []string // of each, a part is in a finding
		quiet  bool     // the check of a table in use does not see it
	}{
		{"no entry", func(r *rig, tbl *table.Table) {
			key, _ := r.secondary(tbl, 2, row(7))
			r.entry(tbl, 2, key, false, func(c cursor) { c.Remove() })
		}, []string{"name_age, key", "a row has no entry"}, false},
		{"deleted entry of a row", func(r *rig, tbl *table.Table) {
			key, _ := r.secondary(tbl, 1, row(7))
			r.entry(tbl, 1, key, false, func(c cursor) { c.SetFlags(record.FlagDeleted) })
		}, []string{"the entry of a row is deleted"}, false},
		{"entry without a row", func(r *rig, tbl *table.Table) {
			key, value := r.secondary(tbl, 1, row(999))
			r.entry(tbl, 1, key, true, func(c cursor) { c.Insert(key, 0, value) })
		}, []string{"entry without a row"}, false},
		{"left entry", func(r *rig, tbl *table.Table) {
			key, value := r.secondary(tbl, 1, row(999))
			r.entry(tbl, 1, key, true, func(c cursor) { c.Insert(key, record.FlagDeleted, value) })
		}, []string{"deleted entry that purge has left"}, true},
		{"entry of another value", func(r *rig, tbl *table.Table) {
			other := row(7)
			other[3] = types.NewInt(-5)
			key, value := r.secondary(tbl, 1, other)
			r.entry(tbl, 1, key, true, func(c cursor) { c.Insert(key, 0, value) })
		}, []string{"the row has the key"}, false},
		{"kept bytes", func(r *rig, tbl *table.Table) {
			key, value := r.secondary(tbl, 2, row(7))
			value[len(value)-1]++
			r.entry(tbl, 2, key, false, func(c cursor) { c.Update(0, value) })
		}, []string{"the entry keeps"}, false},
		{"malformed entry", func(r *rig, tbl *table.Table) {
			key, value := r.secondary(tbl, 2, row(7))
			value[0]++
			r.entry(tbl, 2, key, false, func(c cursor) { c.Update(0, value) })
		}, []string{"malformed entry", "the entry keeps"}, false},
		{"duplicate", func(r *rig, tbl *table.Table) {
			// Rows 7 and 8 get the same code, entries included.
			for n, code := range map[int64]int64{7: 5000, 8: 5000} {
				old, _ := r.secondary(tbl, 1, row(n))
				changed := row(n)
				changed[3] = types.NewInt(code)
				key, value := r.secondary(tbl, 1, changed)
				r.entry(tbl, 1, old, false, func(c cursor) { c.Remove() })
				r.entry(tbl, 1, key, true, func(c cursor) { c.Insert(key, 0, value) })
				r.entry(tbl, 0, pk(tbl, n), false, func(c cursor) {
					b, err := tbl.Schema.AppendRow(nil, changed, nil)
					if err != nil {
						r.t.Fatal(err)
					}
					copy(b, c.Value()[:record.HeaderSize])
					c.Update(0, b)
				})
			}
		}, []string{"has the same unique key"}, false},
		{"flipped row", func(r *rig, tbl *table.Table) {
			r.entry(tbl, 0, pk(tbl, 7), false, func(c cursor) {
				b := slices.Clone(c.Value())
				b[slices.Index(b, 'n')+1] ^= 2 // in "name7"
				c.Update(0, b)
			})
		}, []string{"a row has no entry", "the row has the key"}, false},
		{"broken text", func(r *rig, tbl *table.Table) {
			r.entry(tbl, 0, pk(tbl, 7), false, func(c cursor) {
				b := slices.Clone(c.Value())
				b[len(b)-1] = 0xff // in "bio"
				c.Update(0, b)
			})
		}, []string{"column bio: byte 2 is not of the character set"}, false},
		{"cut row", func(r *rig, tbl *table.Table) {
			r.entry(tbl, 0, pk(tbl, 7), false, func(c cursor) { c.Update(0, slices.Clone(c.Value()[:20])) })
		}, []string{"PRIMARY, key 80000007: record: malformed", "index code"}, false},
		{"deleted row", func(r *rig, tbl *table.Table) {
			r.entry(tbl, 0, pk(tbl, 7), false, func(c cursor) { c.SetFlags(record.FlagDeleted) })
		}, []string{"deleted row that purge has left", "entry of a deleted row is not deleted"}, true},
		{"bad roll pointer", func(r *rig, tbl *table.Table) {
			s := r.session()
			s.begin(trx.RepeatableRead)
			if err := s.Insert(tbl, row(-1)); err != nil {
				r.t.Fatal(err)
			}
			id := s.Trx().ID()
			r.entry(tbl, 0, pk(tbl, 7), false, func(c cursor) {
				b := slices.Clone(c.Value())
				record.SetHeader(b, id, 77)
				c.Update(0, b)
			})
		}, []string{"version 0 before the newest"}, false},
		{"leaked page", func(r *rig, tbl *table.Table) {
			m := mtr.New(r.e.Pool)
			if err := m.Begin(); err != nil {
				r.t.Fatal(err)
			}
			no, err := tbl.Space().AllocPage(m, tbl.Where.LOBSegment, 0)
			if err == nil {
				_, err = m.GetNew(page.ID{Space: tbl.Space().No(), No: no}, page.TypeLOBData)
			}
			if err != nil {
				r.t.Fatal(err)
			}
			m.Commit()
		}, []string{"allocated but not reachable"}, true},
		{"freed value", func(r *rig, tbl *table.Table) {
			if err := lob.Free(r.e.Pool, tbl.Space(), firstLOB(r, tbl, 3)); err != nil {
				r.t.Fatal(err)
			}
		}, []string{"column bio: lob: value", "gone"}, false},
		{"shared value", func(r *rig, tbl *table.Table) {
			ref := firstLOB(r, tbl, 3)
			r.entry(tbl, 0, pk(tbl, 7), false, func(c cursor) {
				ext := make([]record.External, 5)
				ext[4] = ref.Append(nil)
				b, err := tbl.Schema.AppendRow(nil, row(7), ext)
				if err != nil {
					r.t.Fatal(err)
				}
				copy(b, c.Value()[:record.HeaderSize-1])
				c.Update(0, b)
			})
		}, []string{"reachable twice"}, true},
		{"free page in use", func(r *rig, tbl *table.Table) {
			ref := firstLOB(r, tbl, 3)
			m := mtr.New(r.e.Pool)
			if err := m.Begin(); err != nil {
				r.t.Fatal(err)
			}
			if err := tbl.Space().FreePage(m, tbl.Where.LOBSegment, ref.First); err != nil {
				r.t.Fatal(err)
			}
			m.Commit()
		}, []string{"reachable page is not allocated"}, true},
		{"damaged tree", func(r *rig, tbl *table.Table) {
			m := mtr.New(r.e.Pool)
			if err := m.Begin(); err != nil {
				r.t.Fatal(err)
			}
			p, err := m.Get(page.ID{Space: tbl.Space().No(), No: tbl.Tree(2).Root()}, mtr.X)
			if err != nil {
				r.t.Fatal(err)
			}
			m.SetOwner(p, 4711)
			m.Commit()
		}, []string{"index name_age, page", "belongs to another index"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, env.Real(), file.OS(t.TempDir()), 256)
			tbl := r.create(people(20))
			s := r.session()
			var rows [][]types.Value
			for n := range int64(20) {
				rows = append(rows, row(n))
			}
			rows[3][4] = types.NewString(long)
			s.insertAll(tbl, rows)
			r.clean(tbl)
			test.damage(r, tbl)
			for _, state := range []table.CheckState{table.CheckOnline, table.CheckPurged} {
				found := strings.Join(r.check(tbl, state), "\n")
				if state == table.CheckOnline && test.quiet {
					continue
				}
				for _, want := range test.want {
					if !strings.Contains(found, want) {
						t.Errorf("check %d: found\n%s\nwant %q", state, found, want)
					}
				}
			}
			if err := r.e.Pool.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.log.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.e.Spaces.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Versions that only undo and snapshots know are no findings.
func TestCheckQuiet(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(people(20))
	s, old := r.session(), r.session()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(10) {
		s.insertAll(tbl, [][]types.Value{person(n, "x", n, n, strings.Repeat("first", 3000))})
	}
	old.begin(trx.RepeatableRead)
	old.all(tbl, 0)
	for round := range int64(3) {
		s.begin(trx.RepeatableRead)
		for n := range int64(10) {
			must(s.Update(tbl, pk(tbl, n), []record.Change{
				{Column: 3, Value: types.NewInt(100*round + n)}, {Column: 4, Value: types.NewString(strings.Repeat("next", 4000))}}))
		}
		must(s.Delete(tbl, pk(tbl, round)))
		if round == 2 {
			break
		}
		must(s.commit())
		if _, err := r.purger.Run(); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			s.begin(trx.RepeatableRead)
			must(s.Insert(tbl, person(0, "back", 1, 0, "")))
			must(s.commit())
		} else {
			s.begin(trx.RepeatableRead)
			must(s.Insert(tbl, person(1, "back", 1, 101, "")))
			must(s.commit())
		}
	}
	for _, state := range []table.CheckState{table.CheckOnline, table.CheckQuiet} {
		for _, f := range r.check(tbl, state) {
			t.Errorf("check %d: %s", state, f)
		}
	}
	if len(r.check(tbl, table.CheckPurged)) == 0 {
		t.Error("what is not purged is no finding for the strict check")
	}
	must(s.commit())
	must(old.commit())
	r.clean(tbl)
}

func TestCheckLimit(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 256)
	defer r.close()
	tbl := r.create(people(20))
	s := r.session()
	var rows [][]types.Value
	for n := range int64(50) {
		rows = append(rows, person(n, "x", n, n, ""))
	}
	s.insertAll(tbl, rows)
	for n := range int64(50) {
		key, _ := r.secondary(tbl, 1, rows[n])
		r.entry(tbl, 1, key, false, func(c cursor) { c.Remove() })
	}
	var found []string
	var own []space.Finding
	check, err := tbl.Space().NewCheck(func(f space.Finding) { own = append(own, f) })
	if err != nil {
		t.Fatal(err)
	}
	sum, err := tbl.Check(table.CheckOptions{State: table.CheckQuiet, Space: check, Limit: 5}, func(f table.Finding) { found = append(found, f.String()) })
	if err != nil {
		t.Fatal(err)
	}
	check.Finish()
	if len(found) != 6 || !strings.Contains(found[5], "45 more findings") || sum.Findings != 50 || len(own) != 0 {
		t.Errorf("%+v, %v:\n%s", sum, own, strings.Join(found, "\n"))
	}
	if sum.Rows != 50 || sum.Indexes[0].Entries != 50 || sum.Indexes[1].Entries != 0 {
		t.Errorf("%+v", sum)
	}
}

// A table in use gives no findings.
func TestCheckOnline(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 1024)
	defer r.close()
	tbl := r.create(people(20))
	const tasks, span = 3, 60
	var commits sync.Mutex
	var running sync.WaitGroup
	var left atomic.Int64
	left.Store(tasks)
	for task := range int64(tasks) {
		running.Go(func() {
			defer left.Add(-1)
			rng := rand.New(rand.NewPCG(uint64(task), 5))
			s := r.session()
			code := task * 1e6
			for range 60 {
				s.begin(trx.ReadCommitted)
				for range 1 + rng.IntN(8) {
					n := task*span + rng.Int64N(span)
					bio := types.NewString(strings.Repeat("b", rng.IntN(2)*9000))
					code++
					var err error
					switch rng.IntN(4) {
					case 0, 1:
						err = s.Insert(tbl, []types.Value{types.NewInt(n), types.NewString(fmt.Sprint("n", code%5)), types.Null, types.NewInt(code), bio})
					case 2:
						err = s.Update(tbl, pk(tbl, n), []record.Change{{Column: 3, Value: types.NewInt(code)}, {Column: 1, Value: types.NewString(fmt.Sprint("n", code%5))}, {Column: 4, Value: bio}})
					case 3:
						err = s.Delete(tbl, pk(tbl, n))
					}
					var dup *table.DuplicateError
					if err != nil && !errors.As(err, &dup) && !errors.Is(err, table.ErrNotFound) {
						t.Error(err)
						return
					}
				}
				if rng.IntN(3) == 0 {
					s.rollback()
					continue
				}
				commits.Lock()
				err := s.commit()
				commits.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Go(func() {
		for left.Load() > 0 {
			if _, err := r.purger.Run(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	checks := 0
	for left.Load() > 0 && !t.Failed() {
		for _, f := range r.check(tbl, table.CheckOnline) {
			t.Error(f)
		}
		checks++
	}
	running.Wait()
	if checks == 0 {
		t.Error("never checked")
	}
	r.clean(tbl)
}
