package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// pair is a leader with a table db.t (id INT PRIMARY KEY, v INT, s LONGTEXT) and a
// follower's engine.
type pair struct {
	*leader
	s    *txn.Session
	fs   *simfile.FS
	to   *engine
	sent int // entries
}

func newPair(e env.Env) (*pair, error) {
	l, err := newLeader(e, 1, nil)
	if err != nil {
		return nil, err
	}
	p := &pair{leader: l, s: l.m.NewSession(), fs: simfile.New(e, 2)}
	if p.to, err = openEngine(p.fs, e); err != nil {
		return nil, err
	}
	err = p.do(func() error {
		if _, err := p.s.CreateSchema(dict.Schema{Name: "db"}, nil); err != nil {
			return err
		}
		_, err := p.s.CreateTable(&record.Table{Schema: "db", Name: "t",
			Columns: []record.Column{{ID: 1, Name: "id", Type: types.Type{Kind: types.KindInt, NotNull: true}},
				{ID: 2, Name: "v", Type: types.Type{Kind: types.KindInt}}, {ID: 3, Name: "s", Type: types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}}},
			Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}, nil)
		return err
	})
	return p, err
}

func (p *pair) do(fn func() error) error {
	if err := p.s.Begin(txn.BeginOptions{}); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return errors.Join(err, p.s.Rollback())
	}
	_, err := p.s.Commit(context.Background())
	return err
}

// rows runs fn in a transaction, with the table.
func (p *pair) rows(fn func(t *txn.Table) error) error {
	return p.do(func() error {
		t, err := p.s.Open("db", "t")
		if err != nil {
			return err
		}
		return fn(t)
	})
}

func (p *pair) insert(id int64, text string) error {
	return p.rows(func(t *txn.Table) error {
		return p.s.Insert(t, []types.Value{types.NewInt(id), types.NewInt(0), types.NewString(text)}, false)
	})
}

func (p *pair) set(id, v int64) error {
	return p.rows(func(t *txn.Table) error {
		_, err := p.s.Update(t, keyOf(t, id), nil, []record.Change{{Column: 1, Value: types.NewInt(v)}})
		return err
	})
}

func (p *pair) delete(id int64) error {
	return p.rows(func(t *txn.Table) error { return p.s.Delete(t, keyOf(t, id), nil) })
}

func keyOf(t *txn.Table, id int64) []byte {
	return t.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(id))
}

// send submits what was not sent yet.
func (p *pair) send(a *apply.Applier) error {
	entries := p.log.Entries()
	err := feed(a, entries[p.sent:])
	p.sent = len(entries)
	return err
}

// TestDiverged: a change that does not fit the data stops the applier for good, and it
// says where.
func TestDiverged(t *testing.T) {
	damage := func(change func(w *table.Worker, tbl *table.Table) error) func(*pair) error {
		return func(p *pair) error {
			h, err := p.to.Catalog.OpenTable(nil, "db", "t")
			if err != nil {
				return err
			}
			defer h.Release()
			w := p.to.Tables.NewWorker()
			x := p.to.Trx.Begin(trx.Options{})
			w.Use(x)
			if err := change(w, h.Table()); err != nil {
				return err
			}
			_, pos := p.to.Applied()
			err = p.to.Trx.CommitGroup([]trx.Commit{{Trx: x}}, pos)
			p.to.Trx.End(x)
			return err
		}
	}
	remove := damage(func(w *table.Worker, tbl *table.Table) error {
		return w.Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(1)))
	})
	add := damage(func(w *table.Worker, tbl *table.Table) error {
		return w.Insert(tbl, []types.Value{types.NewInt(7), types.Null, types.Null})
	})
	for _, c := range []struct {
		name   string
		damage func(*pair) error
		change func(*pair) error
		key    int64
	}{
		{"update of a row that is missing", remove, func(p *pair) error { return p.set(1, 5) }, 1},
		{"delete of a row that is missing", remove, func(p *pair) error { return p.delete(1) }, 1},
		{"insert of a row that exists", add, func(p *pair) error { return p.insert(7, "x") }, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := newPair(env.Real())
			must(t, err)
			must(t, p.insert(1, "a"))
			must(t, p.insert(2, "b"))
			stopped := 0
			a, err := apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine, OnStop: func(error) { stopped++ }})
			must(t, err)
			must(t, p.send(a))
			must(t, a.Drain())
			must(t, c.damage(p))
			must(t, p.set(2, 9))
			must(t, c.change(p))
			must(t, p.insert(3, "never"))
			err = errors.Join(p.send(a), a.Drain())
			var diverged *apply.DivergedError
			if !errors.As(err, &diverged) {
				t.Fatalf("got %v, want a *DivergedError", err)
			}
			entries := p.log.Entries()
			bad := entries[len(entries)-2]
			key := fmt.Sprintf("%x", types.AppendKey(nil, types.NewInt(c.key), &types.Type{Kind: types.KindInt, NotNull: true}, false, 0))
			if diverged.Table != "db.t" || fmt.Sprintf("%x", diverged.Key) != key || diverged.Index != bad.Index || diverged.Number == 0 {
				t.Errorf("it says %+v; the entry is %d, the key %s", diverged, bad.Index, key)
			}
			if !strings.Contains(err.Error(), key) || a.Stats().State != apply.Failed || a.Err() == nil {
				t.Errorf("state %v: %v", a.Stats().State, err)
			}
			if index, _ := a.Applied(); index >= bad.Index {
				t.Errorf("applied up to %d", index)
			}
			if err := a.Submit(apply.Entry{Index: bad.Index + 2, Term: 1}); !errors.As(err, &diverged) {
				t.Errorf("another entry is taken: %v", err)
			}
			if err := a.Stop(); !errors.As(err, &diverged) || stopped != 1 {
				t.Errorf("Stop says %v; OnStop was called %d times", err, stopped)
			}
			must(t, errors.Join(p.s.Close(), p.to.close(), p.leader.close()))
		})
	}
}

// TestEntriesWithout: what has no transactions to apply only moves the position; what
// was made in another term counts for nothing.
func TestEntriesWithout(t *testing.T) {
	p, err := newPair(env.Real())
	must(t, err)
	must(t, p.insert(1, "a"))
	var seen []string
	a, err := apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine, Extra: func(e *apply.Applied) (*trx.Trx, error) {
		seen = append(seen, fmt.Sprintf("%d/%d kind %d tokens %d opaque %v", e.Index, e.Term, e.Envelope.Kind, len(e.Tokens), e.Opaque))
		return nil, nil
	}})
	must(t, err)
	entries := p.log.Entries()
	mark := make([]byte, entry.EnvelopeSize)
	(&entry.Envelope{Kind: entry.Mark, Term: 2, First: 2, Time: 77}).Put(mark)
	lost := make([]byte, len(entries[1].Data))
	copy(lost, entries[1].Data)
	for _, e := range []apply.Entry{
		{Index: 1, Term: 1, Data: entries[0].Data},
		{Index: 1, Term: 1, Data: entries[0].Data},
		{Index: 2, Term: 1, Data: entries[1].Data},
		{Index: 3, Term: 2},
		{Index: 4, Term: 2, Data: []byte("add a member"), Opaque: true},
		{Index: 5, Term: 2, Data: lost},
		{Index: 6, Term: 2, Data: mark},
	} {
		if err := a.Submit(e); err != nil {
			t.Fatal(err)
		}
	}
	must(t, a.WaitApplied(6, 0))
	if index, number := a.Applied(); index != 6 || number != 2 {
		t.Errorf("applied %d, %d", index, number)
	}
	want := "1/1 kind 1 tokens 0 opaque false, 2/1 kind 1 tokens 0 opaque false, 3/2 kind 0 tokens 0 opaque false, " +
		"4/2 kind 0 tokens 0 opaque true, 5/2 kind 0 tokens 0 opaque false, 6/2 kind 3 tokens 0 opaque false"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("seen\n%s\nwant\n%s", got, want)
	}
	if s := a.Stats(); s.LeaderTime != 77 || s.PendingEntries != 0 || s.PendingBytes != 0 || s.PendingTransactions != 0 || s.Transactions != 2 {
		t.Errorf("stats %+v", s)
	}
	if err := a.WaitApplied(7, 10*time.Millisecond); !errors.Is(err, apply.ErrTimeout) {
		t.Errorf("waiting for what is not there: %v", err)
	}
	must(t, a.Stop())
	if err := a.WaitApplied(7, 0); !errors.Is(err, apply.ErrStopped) {
		t.Errorf("waiting after Stop: %v", err)
	}
	if err := a.Submit(apply.Entry{Index: 7, Term: 2}); !errors.Is(err, apply.ErrStopped) {
		t.Errorf("Submit after Stop: %v", err)
	}
	must(t, errors.Join(p.s.Close(), p.to.close(), p.leader.close()))
}

// TestMalformed: bytes that are no entry, and numbers that do not follow, stop the
// applier with a word where.
func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(entries []txntest.Entry) apply.Entry
	}{
		{"no envelope", "log entry 3: entry: malformed", func(e []txntest.Entry) apply.Entry {
			return apply.Entry{Index: 3, Term: 1, Data: []byte("short")}
		}},
		{"cut body", "log entry 3: entry: malformed", func(e []txntest.Entry) apply.Entry {
			return apply.Entry{Index: 3, Term: 1, Data: e[2].Data[:len(e[2].Data)-1]}
		}},
		{"garbage", "log entry 3", func(e []txntest.Entry) apply.Entry {
			d := append([]byte(nil), e[2].Data...)
			for i := entry.EnvelopeSize + 6; i < len(d); i++ {
				d[i] ^= 0x55
			}
			return apply.Entry{Index: 3, Term: 1, Data: d}
		}},
		{"a gap", "transaction 4 follows 2", func(e []txntest.Entry) apply.Entry {
			return apply.Entry{Index: 3, Term: 1, Data: e[3].Data}
		}},
		{"twice", "transaction 2 follows 2", func(e []txntest.Entry) apply.Entry {
			return apply.Entry{Index: 3, Term: 1, Data: e[1].Data}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := newPair(env.Real())
			must(t, err)
			for i := range int64(3) {
				must(t, p.insert(i, "a"))
			}
			a, err := apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine})
			must(t, err)
			entries := p.log.Entries()
			must(t, feed(a, entries[:2]))
			bad := c.spoil(entries)
			err = errors.Join(a.Submit(bad), a.Drain())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err := a.Stop(); err == nil || strings.Contains(c.want, "malformed") && !strings.Contains(err.Error(), "empty its data directory") {
				t.Errorf("Stop says nothing of what to do: %v", err)
			}
			must(t, errors.Join(p.s.Close(), p.to.close(), p.leader.close()))
		})
	}
}

// TestDiskFull: without room on the disk the applier waits, says so, asks for room, and goes on by
// itself when there is some.
func TestDiskFull(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		p, err := newPair(sim)
		if err != nil {
			return err
		}
		for i := range int64(30) {
			if err := p.insert(i, strings.Repeat("long ", 4000)); err != nil {
				return err
			}
		}
		if err := p.do(func() error { _, err := p.s.CreateSchema(dict.Schema{Name: "more"}, nil); return err }); err != nil {
			return err
		}
		if err := p.do(func() error {
			_, err := p.s.CreateTable(txntest.RandomTable(newRand(seed), "more", "t"), nil)
			return err
		}); err != nil {
			return err
		}
		asked := 0
		a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, Workers: 1 + int(seed%4), OnFull: func() { asked++ }})
		if err != nil {
			return err
		}
		full := false
		for step := int64(1); ; step++ {
			p.fs.SetCapacity(p.fs.Used() + step*int64(seed%7+1)*20_000)
			if step == 1 {
				if err := p.send(a); err != nil {
					return err
				}
			}
			err := a.WaitApplied(p.log.Entries()[p.sent-1].Index, 3*time.Second)
			full = full || a.Stats().State == apply.NoSpace
			if err == nil {
				break
			}
			if !errors.Is(err, apply.ErrTimeout) {
				return err
			}
			if step > 500 {
				return errors.New("it never ends")
			}
		}
		p.fs.SetCapacity(0)
		if s := a.Stats(); !full || s.State != apply.Running || s.SpaceWaits == 0 || asked == 0 {
			return fmt.Errorf("full: %v, then %+v; room was asked for %d times", full, s, asked)
		}
		if err := errors.Join(sameStates(p.eng, p.to), a.Stop()); err != nil {
			return err
		}
		return errors.Join(p.s.Close(), p.to.close(), p.leader.close())
	})
}

// TestStop: what is under way is taken back by Stop, and an applier that is started
// anew goes on from there; entries in memory are bounded.
func TestStop(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		p, err := newPair(sim)
		if err != nil {
			return err
		}
		for i := range int64(40) {
			if err := p.rows(func(t *txn.Table) error {
				for n := range int64(20) {
					if err := p.s.Insert(t, []types.Value{types.NewInt(100*n + i), types.Null, types.Null}, false); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		waits := uint64(0)
		for {
			a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, MemoryMax: 4 << 10, Workers: 3})
			if err != nil {
				return err
			}
			submitted := make([]error, 1)
			g := env.NewGroup(sim)
			_, pos := p.to.Applied()
			g.Go("feed", func() { submitted[0] = feed(a, p.log.Entries()[pos.Index:]) })
			err = a.WaitApplied(uint64(len(p.log.Entries())), time.Duration(1+newRand(seed+pos.Index).IntN(20))*time.Millisecond)
			waits += a.Stats().MemoryWaits
			if e := a.Stop(); e != nil {
				return e
			}
			g.Wait()
			if n := p.to.Trx.Count(); n != 0 {
				return fmt.Errorf("%d transactions are left", n)
			}
			if err == nil {
				break
			}
			if !errors.Is(submitted[0], apply.ErrStopped) && submitted[0] != nil || !errors.Is(err, apply.ErrTimeout) {
				return errors.Join(submitted[0], err)
			}
		}
		if waits == 0 {
			return errors.New("Submit never waited for memory")
		}
		return errors.Join(sameStates(p.eng, p.to), p.s.Close(), p.to.close(), p.leader.close())
	})
}

// TestWrongDependencies: a log that says that nothing depends on anything is found
// out, by the applier or by comparing states.
func TestWrongDependencies(t *testing.T) {
	found, refused := 0, 0
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		p, err := newPair(sim)
		if err != nil {
			return err
		}
		p.log.Independent = true
		for i := range int64(30) {
			if err := errors.Join(p.insert(i%3, "x"), p.set(i%3, i), p.delete(i%3)); err != nil {
				return err
			}
		}
		a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, Workers: 8})
		if err != nil {
			return err
		}
		err = errors.Join(p.send(a), a.Drain())
		var diverged *apply.DivergedError
		switch {
		case errors.As(err, &diverged):
			found++
			refused++
		case err != nil:
			return err
		default:
			if sameStates(p.eng, p.to) != nil {
				found++
			}
		}
		_ = a.Stop()
		return errors.Join(p.s.Close(), p.to.close(), p.leader.close())
	})
	if *runs >= 5 && (found == 0 || refused == 0) {
		t.Errorf("of %d logs %d were found out, %d by the applier", *runs, found, refused)
	}
}

// TestFollowsLeader: where a member led for a while, its applier goes on behind what
// its own sessions have committed.
func TestFollowsLeader(t *testing.T) {
	p, err := newPair(env.Real())
	must(t, err)
	a, err := apply.New(apply.Options{Env: env.Real(), Engine: p.to.Engine})
	must(t, err)
	must(t, p.insert(1, "a"))
	must(t, p.send(a))
	must(t, a.Drain())
	// Now the other one leads.
	q := &leader{eng: p.to, log: txntest.NewLog(env.Real(), p.to.Engine)}
	q.m, err = txn.NewManager(txn.Options{Env: env.Real(), Engine: p.to.Engine, FS: file.OS(t.TempDir()), Log: q.log})
	must(t, err)
	there := &pair{leader: q, s: q.m.NewSession()}
	b, err := apply.New(apply.Options{Env: env.Real(), Engine: p.eng.Engine})
	must(t, err)
	must(t, there.set(1, 10))
	must(t, there.do(func() error { _, err := there.s.TruncateTable("db", "t", nil); return err }))
	must(t, there.insert(2, "b"))
	must(t, there.send(b))
	must(t, b.Drain())
	// A transaction that was begun here before may not write by the old definition.
	stale := q.m.NewSession()
	must(t, stale.Begin(txn.BeginOptions{}))
	old, err := stale.Open("db", "t")
	must(t, err)
	must(t, q.m.Suspend(errors.New("not leader")))
	must(t, p.do(func() error { _, err := p.s.TruncateTable("db", "t", nil); return err }))
	must(t, p.insert(2, "b"))
	must(t, p.send(a))
	must(t, a.Drain())
	q.m.Resume()
	if err := stale.Insert(old, []types.Value{types.NewInt(9), types.Null, types.Null}, false); !errors.Is(err, table.ErrTableChanged) {
		t.Errorf("insert into a table that is another one by now: %v", err)
	}
	must(t, stale.Close())
	// And back again.
	must(t, p.set(2, 30))
	must(t, p.insert(3, "c"))
	must(t, p.send(a))
	must(t, a.Drain())
	must(t, sameStates(p.eng, p.to))
	must(t, errors.Join(a.Stop(), b.Stop(), p.s.Close(), there.s.Close(), p.to.close(), p.leader.close()))
}
