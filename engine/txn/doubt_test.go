package txn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
)

// slowLog is a commit log that appends at once and commits when it is told.
type slowLog struct {
	r     *rig
	doubt []*txn.Txn
	at    []trx.Position // of them
	last  trx.Position
	// mute says that who commits hears at once that the outcome is unknown.
	mute bool
	// early is mute before anything is appended; queued is the transaction.
	early  bool
	queued *txn.Txn
	// hold keeps transactions from being appended.
	hold bool
	// beforeWait is called once before somebody waits for an index.
	beforeWait func()
	// beforeHeard, with mute, is called before who commits hears of it.
	beforeHeard func()
}

var errLost = errors.New("the entry is lost")

func (l *slowLog) Commit(_ context.Context, t *txn.Txn) (uint64, error) {
	for l.hold {
		env.Sleep(l.r.env, time.Millisecond)
	}
	if err := l.r.m.Suspended(); err != nil {
		return 0, err
	}
	t.Trx.StartCommit()
	if l.early {
		l.queued = t
		return 0, fmt.Errorf("%w: early", txn.ErrOutcomeUnknown)
	}
	csn, pos := l.r.eng.Trx.Applied()
	if l.last.Index < pos.Index {
		l.last = pos
	}
	l.last.Index++
	t.Appended(csn+uint64(len(l.doubt))+1, l.last)
	l.doubt, l.at = append(l.doubt, t), append(l.at, l.last)
	if l.mute {
		if l.beforeHeard != nil {
			l.beforeHeard()
		}
		return 0, fmt.Errorf("%w: mute", txn.ErrOutcomeUnknown)
	}
	for !t.Done.Load() {
		t.Waiter.Park()
	}
	return t.Number, t.Err
}

func (l *slowLog) WaitFinished(_ context.Context, index uint64, ended func() error) error {
	if f := l.beforeWait; f != nil {
		l.beforeWait = nil
		f()
	}
	for {
		if ended != nil {
			if err := ended(); err != nil {
				return err
			}
		}
		if _, pos := l.r.eng.Trx.Applied(); pos.Index >= index {
			return nil
		}
		if len(l.doubt) == 0 {
			return errLost
		}
		env.Sleep(l.r.env, time.Millisecond)
	}
}

// commit commits the oldest transaction in doubt.
func (l *slowLog) commit() error {
	t, at := l.doubt[0], l.at[0]
	l.doubt, l.at = l.doubt[1:], l.at[1:]
	if err := l.r.eng.Trx.CommitGroup([]trx.Commit{{Trx: t.Trx, CSN: t.Number}}, at); err != nil {
		return err
	}
	t.Published()
	return l.answer(t, nil)
}

// lose rolls back all in doubt, newest first.
func (l *slowLog) lose() error {
	for len(l.doubt) > 0 {
		t := l.doubt[len(l.doubt)-1]
		l.doubt, l.at = l.doubt[:len(l.doubt)-1], l.at[:len(l.doubt)-1]
		if err := t.Rollback(); err != nil {
			return err
		}
		if err := l.answer(t, errLost); err != nil {
			return err
		}
	}
	l.last.Index = 0
	return nil
}

func (l *slowLog) answer(t *txn.Txn, err error) error {
	if l.mute {
		t.Release()
		return nil
	}
	t.Err = err
	t.Done.Store(true)
	t.Waiter.Unpark()
	return nil
}

// doubtRig runs fn with a slow log in a simulation. There is a table p with the rows
// 1 to 3.
func doubtRig(t *testing.T, fn func(r *rig, l *slowLog)) {
	t.Helper()
	sim := simenv.New(1)
	sim.StepLimit = 5_000_000
	sim.Run(func() {
		r := newRig(t, sim, nil)
		r.create(t, people("p"))
		r.do(t, func() error {
			o := open(t, r.s, "p")
			for id := range 3 {
				must(t, r.s.Insert(o, row(id+1, fmt.Sprint("name", id+1), 0, nil), false))
			}
			return nil
		})
		must(t, r.s.Close())
		l := &slowLog{r: r}
		var err error
		r.m, err = txn.NewManager(txn.Options{Env: sim, Engine: r.eng, Log: l, FS: r.fs})
		must(t, err)
		r.s = r.m.NewSession()
		fn(r, l)
		r.close(t)
	})
}

// call runs fn as a task and gives others time; done says that it is over.
type call struct {
	done bool
	err  error
}

func (r *rig) start(fn func() error) *call {
	c := &call{}
	r.env.Go("call", func() {
		c.err = fn()
		c.done = true
	})
	env.Sleep(r.env, 20*time.Millisecond)
	return c
}

func (c *call) want(t *testing.T, what string, done bool, err error) {
	t.Helper()
	if c.done != done || done && !errors.Is(c.err, err) {
		t.Errorf("%s: done %v, %v; want %v, %v", what, c.done, c.err, done, err)
	}
}

// update begins a transaction that changes n of a row.
func update(t *testing.T, s *txn.Session, id, n int) {
	t.Helper()
	must(t, s.Begin(txn.BeginOptions{}))
	o := open(t, s, "p")
	_, err := s.Update(o, key(o, id), nil, set(2, n))
	must(t, err)
}

func commit(s *txn.Session) func() error {
	return func() error { _, err := s.Commit(context.Background()); return err }
}

// get reads n of a row with a lock.
func lockRow(t *testing.T, s *txn.Session, id int) int {
	t.Helper()
	o := open(t, s, "p")
	batch := types.NewBatch([]*types.Type{&nullInt})
	_, err := s.GetLocked(o, key(o, id), lock.RecordS, lock.Block, []int{2}, batch)
	must(t, err)
	return int(batch.Row(nil, 0)[0].Int())
}

// TestInDoubt: what another learns of a transaction in doubt waits for it: the end of
// a transaction that only locked, and what Settle stands for; and it fails with it.
func TestInDoubt(t *testing.T) {
	for _, lost := range []bool{false, true} {
		doubtRig(t, func(r *rig, l *slowLog) {
			var want error
			end := l.commit
			if lost {
				want, end = errLost, l.lose
			}
			reader, asker, writer := r.m.NewSession(), r.m.NewSession(), r.m.NewSession()
			update(t, r.s, 1, 7)
			first := r.start(commit(r.s))
			first.want(t, "the first commit", false, nil)
			for _, s := range []*txn.Session{reader, asker} {
				must(t, s.Begin(txn.BeginOptions{}))
				if n := lockRow(t, s, 1); n != 7 {
					t.Errorf("the row has %d", n)
				}
			}
			must(t, writer.Begin(txn.BeginOptions{}))
			o := open(t, writer, "p")
			_, err := writer.Update(o, key(o, 2), nil, set(2, 1))
			must(t, err)
			must(t, writer.Settle(context.Background())) // it has met nobody
			var dup *table.DuplicateError
			if err := writer.Insert(o, row(1, "x", 0, nil), false); !errors.As(err, &dup) {
				t.Errorf("a key that is taken: %v", err)
			}
			a, b := r.start(commit(reader)), r.start(func() error { return asker.Settle(context.Background()) })
			c := r.start(func() error { return writer.Settle(context.Background()) })
			for _, x := range []*call{a, b, c} {
				x.want(t, "an answer that depends on it", false, nil)
			}
			must(t, end())
			env.Sleep(r.env, 20*time.Millisecond)
			first.want(t, "the first commit", true, want)
			a.want(t, "the commit of the reader", true, want)
			b.want(t, "the answer of a locking read", true, want)
			c.want(t, "the duplicate key", true, want)
			if lost == asker.InTransaction() || lost == writer.InTransaction() {
				t.Errorf("lost: %v, in transactions: %v, %v", lost, asker.InTransaction(), writer.InTransaction())
			}
			for _, s := range []*txn.Session{reader, asker, writer} {
				must(t, s.Close())
			}
		})
	}
}

// TestOutcomeUnknown: a session that hears so is free for the next transaction; the
// old one ends without it.
func TestOutcomeUnknown(t *testing.T) {
	for _, lost := range []bool{false, true} {
		doubtRig(t, func(r *rig, l *slowLog) {
			l.mute = true
			update(t, r.s, 1, 7)
			if err := commit(r.s)(); !errors.Is(err, txn.ErrOutcomeUnknown) || r.s.InTransaction() {
				t.Errorf("commit says %v", err)
			}
			must(t, r.s.Begin(txn.BeginOptions{}))
			if n := lockRow(t, r.s, 2); n != 0 {
				t.Errorf("the row has %d", n)
			}
			must(t, r.s.Rollback())
			want := 0
			if lost {
				must(t, l.lose())
			} else {
				want = 7
				must(t, l.commit())
			}
			must(t, r.s.Begin(txn.BeginOptions{}))
			if n := lockRow(t, r.s, 1); n != want {
				t.Errorf("the row has %d, want %d", n, want)
			}
			must(t, r.s.Rollback())
		})
	}
}

// TestEndedBeforeHeard: a transaction may end before its session has heard that the outcome is unknown,
// while others look at the session.
func TestEndedBeforeHeard(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, suspend := range []bool{false, true} {
			doubtRig(t, func(r *rig, l *slowLog) {
				l.mute = true
				looks := 0
				l.beforeHeard = func() {
					end := l.commit
					if lost {
						end = l.lose
					}
					must(t, end())
					r.start(func() error {
						r.s.Waits()
						r.s.Interrupt()
						r.s.Trx()
						looks++
						if suspend {
							defer r.m.Resume()
							return r.m.Suspend(errors.New("this node no longer leads"))
						}
						return nil
					})
				}
				update(t, r.s, 1, 7)
				if err := commit(r.s)(); !errors.Is(err, txn.ErrOutcomeUnknown) || r.s.InTransaction() || looks != 1 {
					t.Errorf("commit says %v", err)
				}
				env.Sleep(r.env, 20*time.Millisecond)
				must(t, r.s.Begin(txn.BeginOptions{}))
				if n := lockRow(t, r.s, 1); n != 7 == !lost {
					t.Errorf("the row has %d; lost: %v", n, lost)
				}
				must(t, r.s.Rollback())
			})
		}
	}
}

// TestSuspend: everything that was changed or locked is taken back, but for what is in
// doubt; who waits hears why; who reads goes on.
func TestSuspend(t *testing.T) {
	doubtRig(t, func(r *rig, l *slowLog) {
		reason := errors.New("this node no longer leads")
		doubtful, held, idle, waiting, schema, reader := r.m.NewSession(), r.m.NewSession(), r.m.NewSession(), r.m.NewSession(), r.m.NewSession(), r.m.NewSession()
		all := []*txn.Session{doubtful, held, idle, waiting, schema, reader}
		update(t, doubtful, 1, 7)
		inDoubt := r.start(commit(doubtful))
		must(t, idle.Begin(txn.BeginOptions{}))
		lockRow(t, idle, 2)
		update(t, held, 3, 5)
		l.hold = true
		queued := r.start(commit(held))
		must(t, waiting.Begin(txn.BeginOptions{}))
		wait := r.start(func() error {
			o, err := waiting.Open("db", "p")
			if err == nil {
				err = waiting.Delete(o, key(o, 2), nil)
			}
			return err
		})
		must(t, schema.Begin(txn.BeginOptions{}))
		change := r.start(func() error { _, err := schema.DropTable("db", "p", nil); return err })
		must(t, reader.Begin(txn.BeginOptions{}))
		must(t, reader.ReadAt(r.eng.Trx.LastCommitted()))

		suspended := r.start(func() error { return r.m.Suspend(reason) })
		suspended.want(t, "Suspend while the commit log holds one", false, nil)
		wait.want(t, "the wait for a row", true, reason)
		change.want(t, "the schema change", true, reason)
		l.hold = false
		env.Sleep(r.env, 20*time.Millisecond)
		queued.want(t, "what was not appended", true, reason)
		suspended.want(t, "Suspend", true, nil)
		inDoubt.want(t, "what is in doubt", false, nil)
		if idle.InTransaction() || !reader.InTransaction() {
			t.Error("the wrong ones were rolled back")
		}
		if err := idle.BeginStatement(); !errors.Is(err, reason) {
			t.Errorf("a call in what was rolled back: %v", err)
		}
		must(t, idle.Rollback())
		must(t, idle.Begin(txn.BeginOptions{}))
		o := open(t, idle, "p")
		if err := idle.Insert(o, row(9, "n", 0, nil), false); !errors.Is(err, reason) {
			t.Errorf("a change meanwhile: %v", err)
		}
		if _, err := idle.GetLocked(o, key(o, 2), lock.RecordS, lock.Block, nil, types.NewBatch(nil)); !errors.Is(err, reason) {
			t.Errorf("a locking read meanwhile: %v", err)
		}
		must(t, idle.Rollback())
		must(t, l.lose())
		env.Sleep(r.env, 20*time.Millisecond)
		inDoubt.want(t, "what was in doubt", true, errLost)
		r.m.Resume()
		if got := ids(t, r.s); got != "1 2 3" {
			t.Errorf("there are %s", got)
		}
		for _, s := range all {
			must(t, s.Close())
		}
		update(t, r.s, 1, 8)
		again := r.start(commit(r.s))
		must(t, l.commit())
		env.Sleep(r.env, 20*time.Millisecond)
		again.want(t, "a commit afterwards", true, nil)
	})
}

// TestTraceBesideSuspend: a commit may be given its span while its transaction is taken away.
func TestTraceBesideSuspend(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "a", 0, nil), false) })
	of := trace.Context{Trace: [16]byte{1}, Span: [8]byte{1}}
	for i := range 50 {
		update(t, r.s, 1, i+1)
		done := make(chan error)
		go func() {
			err := r.m.Suspend(errors.New("not leader"))
			r.m.Resume()
			done <- err
		}()
		for range 100 {
			r.s.Trace(of)
		}
		must(t, <-done)
		must(t, r.s.Rollback())
	}
}

// TestSuspendLeft: Suspend waits for a transaction that its session has left to the
// commit log before that has appended it.
func TestSuspendLeft(t *testing.T) {
	doubtRig(t, func(r *rig, l *slowLog) {
		l.early = true
		update(t, r.s, 1, 7)
		if err := commit(r.s)(); !errors.Is(err, txn.ErrOutcomeUnknown) {
			t.Errorf("commit says %v", err)
		}
		suspended := r.start(func() error { return r.m.Suspend(errors.New("not leader")) })
		suspended.want(t, "Suspend", false, nil)
		must(t, l.queued.Rollback())
		l.queued.Release()
		env.Sleep(r.env, 20*time.Millisecond)
		suspended.want(t, "Suspend", true, nil)
		r.m.Resume()
	})
}

// TestSuspendForgets: a transaction that Suspend has left alone waits for locks as if it had not
// been, once changes are allowed again; KILL is not forgotten with it.
func TestSuspendForgets(t *testing.T) {
	doubtRig(t, func(r *rig, _ *slowLog) {
		other, killed := r.m.NewSession(), r.m.NewSession()
		short := txn.BeginOptions{Options: trx.Options{LockWait: time.Millisecond}}
		must(t, other.Begin(short))
		must(t, killed.Begin(short))
		o, k := open(t, other, "p"), open(t, killed, "p")
		killed.Interrupt()
		must(t, r.m.Suspend(errors.New("this node no longer leads")))
		r.m.Resume()
		update(t, r.s, 1, 7)
		if err := other.Delete(o, key(o, 1), nil); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("the wait of a transaction that went on: %v", err)
		}
		if err := killed.Delete(k, key(k, 1), nil); !errors.Is(err, lock.ErrInterrupted) {
			t.Errorf("the wait of one that was killed: %v", err)
		}
		must(t, r.s.Rollback())
		must(t, other.Close())
		must(t, killed.Close())
	})
}

// TestDeadlock: the victim is rolled back, and told so until the next transaction.
func TestDeadlock(t *testing.T) {
	doubtRig(t, func(r *rig, l *slowLog) {
		other := r.m.NewSession()
		update(t, r.s, 1, 1)
		update(t, other, 2, 2)
		a := r.start(func() error { o := open(t, other, "p"); return other.Delete(o, key(o, 1), nil) })
		a.want(t, "the first wait", false, nil)
		b := r.start(func() error { o := open(t, r.s, "p"); return r.s.Delete(o, key(o, 2), nil) })
		env.Sleep(r.env, time.Second)
		victim, winner := r.s, other
		if a.err != nil {
			victim, winner = other, r.s
			a, b = b, a
		}
		b.want(t, "the victim", true, lock.ErrDeadlock)
		a.want(t, "the winner", true, nil)
		if err := victim.BeginStatement(); !errors.Is(err, lock.ErrDeadlock) || victim.InTransaction() {
			t.Errorf("the victim goes on: %v", err)
		}
		if err := commit(victim)(); !errors.Is(err, lock.ErrDeadlock) {
			t.Errorf("the victim's commit: %v", err)
		}
		must(t, winner.Rollback())
		must(t, other.Close())
	})
}

// TestSchemaChangeWaits: a change of a definition waits for who uses the table, and
// nobody uses it before the change is committed.
func TestSchemaChangeWaits(t *testing.T) {
	doubtRig(t, func(r *rig, l *slowLog) {
		user, later, changer := r.m.NewSession(), r.m.NewSession(), r.m.NewSession()
		update(t, user, 1, 7)
		must(t, changer.Begin(txn.BeginOptions{}))
		change := r.start(func() error { _, err := changer.TruncateTable("db", "p", nil); return err })
		must(t, later.Begin(txn.BeginOptions{}))
		opened := r.start(func() error { _, err := later.Open("db", "p"); return err })
		change.want(t, "the change", false, nil)
		opened.want(t, "a newcomer", false, nil)
		used := r.start(commit(user))
		change.want(t, "the change, its user in doubt", false, nil)
		must(t, l.commit())
		env.Sleep(r.env, 20*time.Millisecond)
		used.want(t, "the user", true, nil)
		change.want(t, "the change", true, nil)
		done := r.start(commit(changer))
		opened.want(t, "a newcomer before the commit", false, nil)
		must(t, l.commit())
		env.Sleep(r.env, 20*time.Millisecond)
		done.want(t, "the change's commit", true, nil)
		opened.want(t, "a newcomer", true, nil)
		must(t, later.Rollback())
		if got := ids(t, r.s); got != "" {
			t.Errorf("there are %s", got)
		}
		// The change fails with its entry.
		must(t, changer.Begin(txn.BeginOptions{}))
		_, err := changer.DropTable("db", "p", nil)
		must(t, err)
		done = r.start(commit(changer))
		must(t, l.lose())
		env.Sleep(r.env, 20*time.Millisecond)
		done.want(t, "the second change's commit", true, errLost)
		if got := ids(t, r.s); got != "" {
			t.Errorf("there are %s", got)
		}
		for _, s := range []*txn.Session{user, later, changer} {
			must(t, s.Close())
		}
	})
}
