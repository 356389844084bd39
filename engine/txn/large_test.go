package txn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// bodies makes large transactions of those above a threshold.
type bodies struct {
	threshold int64
	began     int
	live      map[*body.File]bool
}

func (g *bodies) Threshold() int64   { return g.threshold }
func (g *bodies) After() uint64      { return 1 }
func (g *bodies) Changed(*body.File) {}
func (g *bodies) Compress() bool     { return true }
func (g *bodies) End(b *body.File)   { delete(g.live, b); _ = b.Close() }
func (g *bodies) add(b *body.File)   { g.live[b] = true; g.began++ }
func (g *bodies) id() entry.StreamID { return entry.StreamID{Number: uint64(g.began)} }
func newBodies(threshold int64) *bodies {
	return &bodies{threshold: threshold, live: map[*body.File]bool{}}
}

func (g *bodies) Begin(name string, f file.File, o body.Owner) (*body.File, bool) {
	b := body.NewFile(g.id(), name, f)
	b.Owner = o
	g.add(b)
	return b, true
}

// sealed is what the log gets of a transaction: its events, read from the body if it is large.
func (r *rig) sealed(t testing.TB, x *txn.Txn, take bool) []byte {
	t.Helper()
	b, err := x.SealEvents()
	must(t, err)
	l := b.Finish()
	z, err := body.NewDecoder()
	must(t, err)
	f, err := r.fs.Open(b.Name, file.OpenOptions{ReadOnly: true})
	must(t, err)
	var all []byte
	for frames := body.NewReader(f, &l, z); ; {
		_, events, err := frames.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		all = append(all, events...)
	}
	must(t, f.Close())
	if take {
		must(t, r.fs.Rename(b.Name, "taken"))
		b.End(body.Taken)
	}
	if int64(len(all)) != x.Size() {
		t.Errorf("%d bytes in the body, %d in the transaction", len(all), x.Size())
	}
	return all
}

// inserts counts the rows that events insert into p, by id.
func (r *rig) inserts(t testing.TB, events []byte) map[int64]bool {
	t.Helper()
	all := map[int64]bool{}
	rd := event.NewReader(events)
	var e event.Event
	var rows event.RowReader
	must(t, r.s.Begin(txn.BeginOptions{}))
	l, err := event.NewLayout(open(t, r.s, "p").Definition(), event.Options{})
	must(t, err)
	must(t, r.s.Rollback())
	for {
		more, err := rd.Next(&e)
		must(t, err)
		if !more {
			return all
		}
		if !e.Type.IsRows() {
			continue
		}
		must(t, l.Read(&e, &rows))
		for {
			more, err := rows.Next()
			must(t, err)
			if !more {
				break
			}
			id := rows.After[0].Int()
			if all[id] {
				t.Errorf("row %d twice", id)
			}
			all[id] = true
		}
	}
}

// TestLarge: rows, statements that are rolled back and savepoints of a large transaction are in
// its body as they are in the engine.
func TestLarge(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 7))
		g := newBodies(300_000)
		r := newRig(t, env.Real(), func(o *txn.Options) { o.Large = g })
		r.create(t, people("p"))
		var events []byte
		r.log.Refuse = func(x *txn.Txn) error {
			if !x.Large() {
				t.Error("the transaction is not large")
				return nil
			}
			events = r.sealed(t, x, false)
			return nil
		}
		want := map[int64]bool{}
		id := 0
		insert := func(o *txn.Table, n int) {
			for range n {
				id++
				bio := strings.Repeat("x", rng.IntN(8000))
				must(t, r.s.Insert(o, row(id, fmt.Sprint(id), nil, bio), false))
				want[int64(id)] = true
			}
		}
		// forget takes back rows above an id.
		forget := func(above int) {
			for i := above + 1; i <= id; i++ {
				delete(want, int64(i))
			}
		}
		r.do(t, func() error {
			o := open(t, r.s, "p")
			saved := -1
			for len(want) < 400 {
				must(t, r.s.BeginStatement())
				before := id
				switch n := rng.IntN(150); rng.IntN(6) {
				case 0:
					insert(o, n)
					must(t, r.s.RollbackStatement())
					forget(before)
				case 1:
					must(t, r.s.Savepoint("s"))
					saved = id
					insert(o, n)
				case 2:
					insert(o, n)
					if saved >= 0 {
						must(t, r.s.RollbackTo("s"))
						forget(saved)
					}
				default:
					insert(o, n)
				}
				must(t, r.s.EndStatement())
			}
			return nil
		})
		got := r.inserts(t, events)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d rows in the body, %d were inserted", seed, len(got), len(want))
		}
		for i := range want {
			if !got[i] {
				t.Fatalf("seed %d: row %d is not in the body", seed, i)
			}
		}
		if n := len(strings.Fields(ids(t, r.s))); n != len(want) {
			t.Fatalf("seed %d: %d rows in the engine, %d were inserted", seed, n, len(want))
		}
		var logged []byte // the log read the events from the frames, too
		entries := r.log.Entries()
		e, raw, err := entry.Parse(entries[len(entries)-1].Data)
		must(t, err)
		var x entry.Txn
		txns := entry.NewReader(&e, raw)
		if _, err := txns.Next(&x); err != nil {
			t.Fatal(err)
		}
		if logged = x.Events; !bytes.Equal(logged, events) {
			t.Fatalf("seed %d: the events differ from those of the body", seed)
		}
		if g.began != 1 || len(g.live) != 0 || r.m.CacheStats.LargeUse.Load() != 1 {
			t.Errorf("seed %d: %d bodies, %d are left", seed, g.began, len(g.live))
		}
		r.close(t)
	}
}

// TestLargeEnds: a body goes with its transaction unless the log has taken it, and a transaction
// that a savepoint has made small is an ordinary one.
func TestLargeEnds(t *testing.T) {
	g := newBodies(300_000)
	r := newRig(t, env.Real(), func(o *txn.Options) { o.Large = g })
	defer r.close(t)
	r.create(t, people("p"))
	bio := types.NewString(strings.Repeat("x", 10_000))
	id := 0
	fill := func(o *txn.Table) {
		for range 60 {
			id++
			values := row(id, fmt.Sprint(id), nil, nil)
			values[3] = bio
			must(t, r.s.Insert(o, values, false))
		}
	}
	left := func(files, live int) {
		t.Helper()
		names, err := r.fs.List("#binlog_cache_files")
		must(t, err)
		if len(names) != files || len(g.live) != live {
			t.Fatalf("files %v and %d bodies are left", names, len(g.live))
		}
	}
	must(t, r.s.Begin(txn.BeginOptions{Client: 42}))
	began := r.s.Trx().Started()
	fill(open(t, r.s, "p"))
	left(2, 1)
	for b := range g.live {
		if b.Owner != (body.Owner{Session: 42, Began: began}) {
			t.Errorf("the transaction of session 42 of %v has a body of %+v", began, b.Owner)
		}
	}
	must(t, r.s.Rollback())
	left(1, 0)

	was := id
	large := true
	r.log.Refuse = func(x *txn.Txn) error { large = x.Large(); return nil }
	r.do(t, func() error {
		o := open(t, r.s, "p")
		must(t, r.s.Insert(o, row(1000, "a", nil, nil), false))
		must(t, r.s.Savepoint("s"))
		fill(o)
		return r.s.RollbackTo("s")
	})
	left(1, 0)
	if got := r.logged(t); large || !strings.Contains(got, "1000") || strings.Count(got, "Write_rows") != 1 {
		t.Fatalf("large: %v, logged %s", large, got)
	}

	id = was
	r.log.Refuse = func(x *txn.Txn) error { r.sealed(t, x, false); return errors.New("no") }
	if _, err := do(r.s, func() error { fill(open(t, r.s, "p")); return nil }); err == nil {
		t.Fatal("it is committed")
	}
	left(1, 0)
	r.log.Refuse = func(x *txn.Txn) error { r.sealed(t, x, true); return nil }
	r.do(t, func() error { fill(open(t, r.s, "p")); return nil })
	left(1, 1)
	if there, err := r.fs.Exists("taken"); !there || err != nil {
		t.Fatal("the taken body is gone")
	}
	must(t, r.s.Close())
	left(0, 1)
	r.s = r.m.NewSession()
	r.log.Refuse = nil

	// What a process that has died leaves is removed.
	must(t, r.s.Begin(txn.BeginOptions{}))
	fill(open(t, r.s, "p"))
	left(2, 2)
	other, err := txn.NewManager(txn.Options{Env: r.env, Engine: r.eng, FS: r.fs, Log: r.log})
	must(t, err)
	must(t, other.Close())
	left(0, 2)
	must(t, r.s.Rollback())
	_, err = r.s.Commit(context.Background())
	if !errors.Is(err, txn.ErrNoTransaction) {
		t.Fatal(err)
	}
}
