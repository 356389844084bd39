package table_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/purge"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

var (
	seedFlag  = flag.Uint64("table.seed", 0, "run the workload with this seed only")
	seedsFlag = flag.Uint64("table.seeds", race.Fewer(uint64(10), 3), "how many seeds the simulated workload runs with")
)

// The properties, for transactions at REPEATABLE READ and SERIALIZABLE that run
// side by side with purge, in a pool too small for the table:
//
//   - A consistent read through any index gives the state at its snapshot's CSN,
//     with the transaction's own changes over it.
//   - A locking read gives the newest committed state of its range, with the own
//     changes over it, and so it stays to the end of the transaction: nothing
//     appears, nothing disappears, no update is lost.
//   - A row is refused as a duplicate if and only if there is another one.
//   - In the end every index holds the rows of the last state and nothing else, no
//     record with a delete mark, and no lock is left.

// locked is a range that a transaction has locked.
type locked struct {
	span
	state rows
}

// workload is a run of the random transactions.
type workload struct {
	r        *rig
	env      env.Env
	tbl      *table.Table
	h        *history
	keys     int64 // ids are below
	failed   atomic.Pointer[error]
	commits  atomic.Int64
	aborts   atomic.Int64
	sessions int
	rounds   int
	group    *group // nil: transactions commit by themselves
	crowded  bool   // rows have no room for what the indexes need
}

func (w *workload) fail(err error) {
	w.failed.CompareAndSwap(nil, &err)
}

// actor is a session of the workload.
type actor struct {
	*session
	w   *workload
	rng *rand.Rand
	own writes
	// seen are the ranges that the transaction has read and locked, and the committed
	// state then, which is that of the range to the transaction's end.
	seen []locked
	log  []string
	// doomed says that the group has rolled the transaction back.
	doomed bool
}

// errDoomed ends a transaction that the group has rolled back.
var errDoomed = errors.New("a transaction that this one depends on has failed")

// enter waits until operations may go on; leave must follow.
func (w *workload) enter() {
	if w.group != nil {
		w.group.gate.enter()
	}
}

func (w *workload) leave() {
	if w.group != nil {
		w.group.gate.leave()
	}
}

func (a *actor) note(format string, args ...any) {
	a.log = append(a.log, fmt.Sprintf(format, args...))
}

// wrong is a violated property.
func (a *actor) wrong(format string, args ...any) error {
	return fmt.Errorf("transaction %d (%v): %s\nits operations: %q", a.Trx().ID(), a.Trx().Isolation(), fmt.Sprintf(format, args...), a.log)
}

// run does transactions one after the other.
func (a *actor) run() {
	for range a.w.rounds {
		if a.w.failed.Load() != nil {
			return
		}
		if err := a.transaction(); err != nil {
			a.w.fail(err)
			return
		}
	}
}

func (a *actor) transaction() error {
	iso := trx.RepeatableRead
	if a.rng.IntN(4) == 0 {
		iso = trx.Serializable
	}
	a.w.enter()
	a.Use(a.r.e.Trx.Begin(trx.Options{Isolation: iso, LockWait: 20 * time.Millisecond}))
	a.own, a.seen, a.log, a.doomed = writes{}, nil, nil, false
	a.w.leave()
	err := a.steps()
	a.w.enter()
	defer a.w.leave()
	defer a.Use(nil)
	switch {
	case a.doomed && (err == nil || errors.Is(err, errDoomed) || errors.Is(err, lock.ErrDeadlock) || errors.Is(err, lock.ErrTimeout)):
		a.r.e.Trx.End(a.Trx())
		return nil
	case err == nil && a.rng.IntN(6) > 0:
		a.w.commits.Add(1)
		if a.w.group != nil {
			a.w.group.propose(a.session, a.own)
			return nil
		}
		return a.w.h.commit(a.session, a.own)
	case err == nil, errors.Is(err, lock.ErrDeadlock), errors.Is(err, lock.ErrTimeout):
		a.w.aborts.Add(1)
	default:
		return err
	}
	if err := a.Rollback(); err != nil {
		return a.wrong("rollback: %v", err)
	}
	a.r.e.Trx.End(a.Trx())
	return nil
}

func (a *actor) steps() error {
	type savepoint struct {
		mark uint64
		own  writes
	}
	var saves []savepoint
	step := func() error {
		a.w.enter()
		defer a.w.leave()
		if a.doomed {
			return errDoomed
		}
		var err error
		switch n := a.rng.IntN(20); {
		case n < 3:
			err = a.insert()
		case n < 4:
			err = a.insertRows()
		case n < 9:
			err = a.update()
		case n < 11:
			err = a.delete()
		case n < 13:
			err = a.get()
		case n < 15:
			err = a.read(a.span())
		case n < 17:
			err = a.readLocked(a.span())
		case n < 18:
			saves = append(saves, savepoint{a.Savepoint(), copyOf(a.own)})
			a.note("savepoint")
		case len(saves) > 0:
			i := a.rng.IntN(len(saves))
			a.note("rollback to %d", saves[i].mark)
			if err = a.RollbackTo(saves[i].mark); err != nil {
				return a.wrong("rollback to savepoint: %v", err)
			}
			a.own = copyOf(saves[i].own)
			saves = saves[:i+1]
		}
		return err
	}
	for range 1 + a.rng.IntN(8) {
		a.w.pause(a.rng)
		if err := step(); err != nil {
			return err
		}
	}
	a.w.enter()
	defer a.w.leave()
	if a.doomed {
		return errDoomed
	}
	return a.again()
}

func copyOf(w writes) writes {
	out := writes{}
	for id, r := range w {
		out[id] = r
	}
	return out
}

// again repeats what the transaction has read.
func (a *actor) again() error {
	for _, p := range a.seen {
		mode := lock.RecordS
		if a.rng.IntN(2) == 0 {
			mode = lock.RecordX
		}
		got, err := a.lockSpan(p.span, mode, lock.Block)
		if err != nil {
			return err
		}
		if diff := difference(got, p.of(a.own.over(p.state))); diff != "" {
			return a.wrong("phantoms when %v is read again:\n%s", p.span, diff)
		}
	}
	if a.rng.IntN(4) == 0 {
		return a.read(span{index: a.rng.IntN(3), noLo: true, noHi: true})
	}
	return nil
}

func (a *actor) span() span {
	p := span{index: a.rng.IntN(3), lo: a.rng.Int64N(a.w.keys), backward: a.rng.IntN(3) == 0}
	if p.index == byCode && a.rng.IntN(8) == 0 {
		p.lo = null
	}
	p.hi = p.lo + a.rng.Int64N(a.w.keys/4+1)
	switch a.rng.IntN(6) {
	case 0:
		p.hi = p.lo
	case 1:
		p.noLo = a.rng.IntN(2) == 0
		p.noHi = a.rng.IntN(2) == 0
	}
	if p.lo != p.hi {
		p.loOpen, p.hiOpen = a.rng.IntN(4) == 0, a.rng.IntN(4) == 0
	}
	return p
}

func (a *actor) bio() int64 {
	switch a.rng.IntN(12) {
	case 0:
		return 9000 + a.rng.Int64N(30000)
	case 1, 2, 3:
		return a.rng.Int64N(4000)
	}
	return a.rng.Int64N(100)
}

func (a *actor) code() int64 {
	if a.rng.IntN(8) == 0 {
		return null
	}
	return a.rng.Int64N(a.w.keys)
}

func (a *actor) age() int64 { return a.rng.Int64N(4) - 1 }

// current is the newest state as the transaction may change it.
func (a *actor) current() rows { return a.own.over(a.w.newest()) }

// newest is the state that locking reads find.
func (w *workload) newest() rows {
	if w.group == nil {
		return w.h.latest()
	}
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	return w.group.newest()
}

// expectDuplicate checks that a refused row really has a rival.
func (a *actor) expectDuplicate(r thing, old int64, dup *table.DuplicateError) error {
	for _, o := range a.current() {
		if o.id == old {
			continue
		}
		if dup.Position == byID && o.id == r.id || dup.Position == byCode && o.code == r.code && r.code != null {
			return nil
		}
	}
	return a.wrong("%+v was refused as a duplicate in index %d, but there is none", r, dup.Position)
}

// expectUnique checks that an accepted row has no rival.
func (a *actor) expectUnique(r thing, old int64) error {
	for _, o := range a.current() {
		if o.id == old {
			continue
		}
		if o.id == r.id || o.code == r.code && r.code != null {
			return a.wrong("%+v was accepted, but there is %+v", r, o)
		}
	}
	return nil
}

func (a *actor) insert() error {
	r := thing{id: a.rng.Int64N(a.w.keys), code: a.code(), name: a.rng.Int64N(a.w.keys / 3), age: a.age(), bio: a.bio()}
	a.aim(&r)
	a.note("insert %+v", r)
	err := a.Insert(a.w.tbl, a.w.row(r))
	var dup *table.DuplicateError
	switch {
	case errors.As(err, &dup):
		return a.expectDuplicate(r, null, dup)
	case err != nil:
		return a.failure("insert", err)
	}
	if err := a.expectUnique(r, null); err != nil {
		return err
	}
	a.own[r.id] = &r
	return nil
}

// insertRows inserts rows together, mostly in the order of their keys.
func (a *actor) insertRows() error {
	var list []thing
	var values [][]types.Value
	id := a.rng.Int64N(a.w.keys)
	for range 1 + a.rng.IntN(6) {
		r := thing{id: id % a.w.keys, code: a.code(), name: a.rng.Int64N(a.w.keys / 3), age: a.age(), bio: a.bio()}
		if a.rng.IntN(6) == 0 {
			a.aim(&r)
		}
		list, values = append(list, r), append(values, a.w.row(r))
		id += 1 + a.rng.Int64N(3)
	}
	a.note("insert %+v", list)
	failed, err := a.InsertRows(a.w.tbl, values)
	var dup *table.DuplicateError
	before := maps.Clone(a.own)
	for i := range list {
		if err != nil && i == failed {
			break
		}
		if err == nil {
			if err := a.expectUnique(list[i], null); err != nil {
				return err
			}
		}
		a.own[list[i].id] = &list[i]
	}
	if err == nil {
		return nil
	}
	if errors.As(err, &dup) {
		err = a.expectDuplicate(list[failed], null, dup)
	} else {
		err = a.failure("insert", err)
	}
	a.own = before
	return err
}

// aim puts a new row, now and then, into a range that the transaction has locked.
func (a *actor) aim(r *thing) {
	if len(a.seen) == 0 || a.rng.IntN(2) == 0 {
		return
	}
	p := a.seen[a.rng.IntN(len(a.seen))]
	v := min(max(p.lo, 0)+a.rng.Int64N(p.hi-p.lo+1), a.w.keys-1)
	switch p.index {
	case byID:
		r.id = v
	case byCode:
		r.code = v
	case byName:
		r.name = v
	}
}

// failure passes on the errors that a transaction must expect.
func (a *actor) failure(what string, err error) error {
	if errors.Is(err, lock.ErrDeadlock) || errors.Is(err, lock.ErrTimeout) {
		a.note("%s: %v", what, err)
		return err
	}
	return a.wrong("%s: %v", what, err)
}

// pick locks a row at random and returns it.
func (a *actor) pick() (r thing, found bool, err error) {
	p := span{index: a.rng.IntN(3), lo: a.rng.Int64N(a.w.keys)}
	p.hi = p.lo
	got, err := a.lockSpan(p, lock.RecordX, lock.Block)
	if err != nil || len(got) == 0 {
		return r, false, err
	}
	return got[a.rng.IntN(len(got))], true, nil
}

func (a *actor) update() error {
	old, found, err := a.pick()
	if err != nil || !found {
		return err
	}
	r := old
	var changes []record.Change
	set := func(column int, v types.Value) { changes = append(changes, record.Change{Column: column, Value: v}) }
	if a.rng.IntN(6) == 0 {
		r.id = a.rng.Int64N(a.w.keys)
		set(0, types.NewInt(r.id))
	}
	if a.rng.IntN(3) == 0 {
		r.name = a.rng.Int64N(a.w.keys / 3)
		set(1, nameOf(r.name))
	}
	if a.rng.IntN(3) == 0 {
		r.age = a.age()
		set(2, ageOf(r.age))
	}
	if a.rng.IntN(3) == 0 {
		r.code = a.code()
		set(3, codeOf(r.code))
	}
	if a.rng.IntN(3) == 0 || len(changes) == 0 {
		r.bio = a.bio()
		set(4, bioOf(r.bio))
	}
	a.note("update %+v to %+v", old, r)
	err = a.Update(a.w.tbl, pk(a.w.tbl, old.id), changes)
	var dup *table.DuplicateError
	switch {
	case errors.As(err, &dup):
		return a.expectDuplicate(r, old.id, dup)
	case err != nil:
		return a.failure("update", err)
	}
	if err := a.expectUnique(r, old.id); err != nil {
		return err
	}
	a.own[old.id] = nil
	a.own[r.id] = &r
	return nil
}

func (a *actor) delete() error {
	old, found, err := a.pick()
	if err != nil || !found {
		return err
	}
	a.note("delete %+v", old)
	if err := a.Delete(a.w.tbl, pk(a.w.tbl, old.id)); err != nil {
		return a.failure("delete", err)
	}
	a.own[old.id] = nil
	return nil
}

func (a *actor) get() error {
	id := a.rng.Int64N(a.w.keys)
	snap := a.Trx().Snapshot()
	row, err := a.GetRow(a.w.tbl, pk(a.w.tbl, id), snap)
	if err != nil {
		return a.wrong("get %d: %v", id, err)
	}
	want, exists := a.own.over(a.w.h.at(snap.CSN))[id]
	if exists != (row != nil) {
		return a.wrong("get %d at CSN %d: found %v, want %v", id, snap.CSN, row != nil, exists)
	}
	if !exists {
		return nil
	}
	got, err := thingOf(row)
	if err != nil || got != want {
		return a.wrong("get %d at CSN %d: %+v, want %+v (%v)", id, snap.CSN, got, want, err)
	}
	return nil
}

func (a *actor) things(snap *trx.Snapshot, r table.Range) ([]thing, error) {
	rows, err := a.scan(a.w.tbl, snap, r)
	if err != nil {
		return nil, err
	}
	var out []thing
	for _, row := range rows {
		t, err := thingOf(row)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// read checks a consistent read.
func (a *actor) read(p span) error {
	snap := a.Trx().Snapshot()
	got, err := a.things(snap, p.bounds(a.w.tbl))
	if err != nil {
		return a.wrong("read of %v at CSN %d: %v", p, snap.CSN, err)
	}
	if diff := difference(got, p.of(a.own.over(a.w.h.at(snap.CSN)))); diff != "" {
		return a.wrong("read of %v at CSN %d:\n%s", p, snap.CSN, diff)
	}
	return nil
}

// lockSpan checks a locking read and returns its rows.
func (a *actor) lockSpan(p span, mode lock.Mode, policy lock.Policy) ([]thing, error) {
	a.note("lock %v %v", mode, p)
	r := p.bounds(a.w.tbl)
	r.Locking, r.Lock, r.Policy = true, mode, policy
	got, err := a.things(nil, r)
	if err != nil {
		if policy == lock.NoWait && errors.Is(err, lock.ErrNoWait) {
			return nil, nil
		}
		return nil, a.failure(fmt.Sprintf("locking read of %v", p), err)
	}
	want := p.of(a.current())
	if policy == lock.SkipLocked {
		for _, r := range got {
			if !slices.Contains(want, r) {
				return nil, a.wrong("locking read of %v gave %+v, which is not there", p, r)
			}
		}
		return got, nil
	}
	if diff := difference(got, want); diff != "" {
		return nil, a.wrong("locking read of %v (%v):\n%s", p, mode, diff)
	}
	return got, nil
}

func (a *actor) readLocked(p span) error {
	mode, policy := lock.RecordS, lock.Block
	if a.rng.IntN(2) == 0 {
		mode = lock.RecordX
	}
	if a.rng.IntN(3) == 0 {
		policy = lock.Policy(a.rng.IntN(3))
	}
	_, err := a.lockSpan(p, mode, policy)
	if err == nil && policy == lock.Block && len(a.seen) < 4 {
		a.seen = append(a.seen, locked{p, a.w.newest()})
	}
	return err
}

// watch opens snapshots, reads the table through every index more than once, and
// closes them.
func (w *workload) watch(rng *rand.Rand, done func() bool) {
	a := &actor{session: w.r.session(), w: w, rng: rng}
	for !done() && w.failed.Load() == nil {
		a.begin(trx.RepeatableRead)
		for range 1 + rng.IntN(6) {
			p := span{index: rng.IntN(3), noLo: true, noHi: true, backward: rng.IntN(2) == 0}
			if err := a.read(p); err != nil {
				w.fail(err)
				break
			}
			w.pause(rng)
		}
		w.r.e.Trx.End(a.Trx())
	}
}

// pause lets others go on. In a simulation the clock moves when everybody waits.
func (w *workload) pause(rng *rand.Rand) {
	if w.env != env.Real() || rng.IntN(8) == 0 {
		env.Sleep(w.env, time.Duration(rng.IntN(200))*time.Microsecond)
	}
}

// execute runs the sessions side by side with purge and then checks what is left.
func (w *workload) execute(seed uint64) error {
	r := w.r
	w.tbl = r.create(things(20, w.crowded))
	w.h = newHistory(w.env, r.e.Trx.LastCommitted())
	var running atomic.Int64
	running.Store(int64(w.sessions))
	over := func() bool { return running.Load() == 0 }
	g := env.NewGroup(w.env)
	for i := range w.sessions {
		a := &actor{session: r.session(), w: w, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		if w.group != nil {
			w.group.actors = append(w.group.actors, a)
		}
		g.Go(fmt.Sprint("session ", i), func() {
			defer running.Add(-1)
			a.run()
		})
	}
	g.Go("watch", func() { w.watch(rand.New(rand.NewPCG(seed, 1000)), over) })
	r.purger = purge.New(purge.Options{Tables: r.e, Tasks: 2, Interval: time.Millisecond})
	g.Go("purge", func() {
		rng := rand.New(rand.NewPCG(seed, 2000))
		for !over() {
			if _, err := r.purger.Run(); err != nil {
				w.fail(fmt.Errorf("purge: %w", err))
				return
			}
			w.pause(rng)
		}
	})
	if w.group != nil {
		g.Go("group", func() {
			if err := w.group.run(over); err != nil {
				w.fail(err)
			}
		})
	}
	g.Wait()
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return w.checkEnd()
}

// checkEnd checks what is left when all is over.
func (w *workload) checkEnd() error {
	s := w.r.session()
	for {
		n, err := w.r.purger.Run()
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		if n == 0 {
			break
		}
	}
	if n := w.r.e.Undo.HistoryLen(); n != 0 {
		return fmt.Errorf("%d undo logs are left", n)
	}
	if l := w.r.e.Locks.Snapshot(0).Locks; len(l) > 0 {
		return fmt.Errorf("locks are left: %+v", l)
	}
	a := &actor{session: s, w: w}
	s.begin(trx.RepeatableRead)
	defer w.r.e.Trx.End(s.Trx())
	last := w.h.latest()
	for i := range 3 {
		if err := a.read(span{index: i, noLo: true, noHi: true}); err != nil {
			return err
		}
		if err := w.walk(i, len(last)); err != nil {
			return err
		}
	}
	if got := w.tbl.Rows(); got != int64(len(last)) {
		return fmt.Errorf("%d rows counted, there are %d", got, len(last))
	}
	return nil
}

// walk checks the tree of an index.
func (w *workload) walk(index, want int) error {
	tree := w.tbl.Tree(index)
	var findings []string
	_, err := tree.Check(func(f btree.Finding) { findings = append(findings, f.String()) }, nil, nil)
	if err != nil || len(findings) > 0 {
		return fmt.Errorf("index %d: %v %v", index, err, findings)
	}
	m := mtr.New(w.r.e.Pool)
	m.BeginRead()
	defer m.Commit()
	c := tree.NewCursor(m)
	defer c.Reset()
	n := 0
	for err = c.First(mtr.S); err == nil && c.Valid(); err = c.Next() {
		if c.Flags()&record.FlagDeleted != 0 {
			return fmt.Errorf("index %d: entry %x has a delete mark after purge", index, c.Key()[:8])
		}
		n++
	}
	if err == nil && n != want {
		return fmt.Errorf("index %d: %d entries for %d rows", index, n, want)
	}
	return err
}

// simulate is one run with a seed.
func simulate(t *testing.T, seed uint64) (err error) {
	sim := simenv.New(seed)
	sim.YieldOdds = 2
	sim.StepLimit = 20_000_000
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	sim.Run(func() {
		r := newRig(t, sim, simfile.New(sim, seed), 64)
		w := &workload{r: r, env: sim, keys: 12 + int64(seed%5)*12, sessions: 3 + int(seed%4), rounds: 40, crowded: seed%3 == 0}
		if err = w.execute(seed); err == nil {
			r.close()
		}
		t.Logf("seed %d: %d commits, %d rollbacks, %d deadlocks", seed, w.commits.Load(), w.aborts.Load(), r.e.Locks.Stats().Deadlocks)
	})
	return err
}

func TestWorkloadSimulated(t *testing.T) {
	first, n := uint64(1), *seedsFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+n; seed++ {
		if err := simulate(t, seed); err != nil {
			t.Fatalf("%v\nrepeat: go test ./engine/storage/table -run TestWorkloadSimulated -table.seed=%d", err, seed)
		}
	}
}

func TestWorkloadReal(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	r := newRig(t, env.Real(), simfile.New(env.Real(), seed), 64)
	w := &workload{r: r, env: env.Real(), keys: 40, sessions: 6, rounds: 60}
	if err := w.execute(seed); err != nil {
		t.Fatalf("%v\nrepeat: go test ./engine/storage/table -run TestWorkloadReal -table.seed=%d", err, seed)
	}
	t.Logf("%d commits, %d rollbacks, %d deadlocks", w.commits.Load(), w.aborts.Load(), r.e.Locks.Stats().Deadlocks)
	r.close()
}
