package group

import (
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// forgetting is how the leader has the group forget commit tokens that are too old to be used. Before
// that the group is told when the youngest of them was made: whether the time of a token is one from which some were
// forgotten does not follow from the life of tokens, which can be made longer again, nor from the clock, which can have been
// ahead. It is a number that the leader logs as it logs changes of settings, so that members of older
// versions keep it, too, and it goes with data that are given, and with backups.
//
// It belongs to its own task, since it reads the engine.
type forgetting struct {
	looked bool
	at     time.Duration // of the last look, on the monotonic clock
	wall   int64         // then, in microseconds
	due    time.Duration // when tokens are looked for next

	// What is to be forgotten once the group knows the floor; 0: nothing.
	before int64
	cuts   []int64        // the floor is known, and the tokens from before these times go, one after the other
	term   uint64         // in which the floor was proposed
	floor  *atomic.Uint64 // index of its entry; 0: it is not in the log
}

const (
	// tokenFloor is the name under which the group keeps up to when tokens were made that may have been
	// forgotten, in microseconds.
	tokenFloor = "commit_token/forgotten"

	forgetEvery = time.Minute
	// clockSlack is by how much the wall clock may part from the monotonic one between two looks.
	clockSlack = 10 * time.Second
)

// forgetTokens is the task in which the leader has old commit tokens forgotten.
func (c *core) forgetTokens() {
	var f forgetting
	for !c.isStopped() {
		c.forgets.ParkFor(env.Beat(c.env, c.opt.MarkInterval/2))
		if before := f.look(c); before != 0 {
			c.pipeline.Mark(entry.Mark, markBody(before), func(trx.Position, error) {})
		}
	}
}

// look returns from before when tokens are to be forgotten now, in microseconds; 0: none are.
//
// A leader whose clock has jumped waits: a clock that is put right again soon costs no tokens. One that is not costs
// the memory of young tokens, never its word that they may have been used.
func (f *forgetting) look(c *core) (before int64) {
	now, wall, term := c.env.Monotonic(), c.env.Now(), c.serving.Load()
	jump := time.Duration(wall.UnixMicro()-f.wall)*time.Microsecond - (now - f.at)
	steady := f.looked && jump.Abs() <= clockSlack
	f.looked, f.at, f.wall = true, now, wall.UnixMicro()
	switch {
	case !steady:
		f.before, f.cuts, f.due = 0, nil, now+forgetEvery
	case term == 0 || term != f.term:
		f.before, f.cuts, f.term = 0, nil, term
	case len(f.cuts) > 0:
		before, f.cuts = f.cuts[0], f.cuts[1:]
	case f.before != 0 && f.known(c):
		f.confirm(c)
	case now >= f.due:
		f.due = now + forgetEvery
		f.find(c, c.tokens.ForgetBefore(wall))
	}
	return before
}

// find looks for tokens that can be forgotten, and proposes the floor. It may miss some: a transaction that was proposed
// long ago is not in the engine as long as a majority does not store it.
func (f *forgetting) find(c *core, before int64) {
	made, found := f.youngest(c, before)
	if f.before = 0; found {
		f.before = before
		f.propose(c, made)
	}
}

// youngest is when the youngest token was made that was used before a time, as far as the engine knows.
func (f *forgetting) youngest(c *core, before int64) (made int64, found bool) {
	made, found, err := c.tokens.Youngest(before)
	if err != nil && !c.isStopped() {
		c.log.Warn("looking for commit tokens that can be forgotten", "error", err)
	}
	return made, found && err == nil
}

// propose proposes a floor, or the one that there is if that is higher: its entry tells how far the engine is.
func (f *forgetting) propose(c *core, made int64) {
	index := new(atomic.Uint64)
	f.floor = index
	c.pipeline.Mark(entry.Settings, numberBody(tokenFloor, max(made, c.tokens.Floor())), func(p trx.Position, err error) {
		if err == nil {
			index.Store(p.Index)
		}
	})
}

// known reports whether the floor's entry is applied here.
func (f *forgetting) known(c *core) bool {
	index := f.floor.Load()
	return index != 0 && c.applied.Load() >= index
}

// confirm finds out from before when tokens are to be forgotten, once the floor is known, unless a higher one is needed first. What is
// to be forgotten is in the engine now: what was proposed before the floor is applied, and what came after it was used later.
func (f *forgetting) confirm(c *core) {
	switch made, found := f.youngest(c, f.before); {
	case !found:
		f.before = 0
	case made > c.tokens.Floor():
		f.propose(c, made)
	default:
		cuts, err := c.tokens.Cuts(f.before)
		if err != nil && !c.isStopped() {
			c.log.Warn("looking for commit tokens that can be forgotten", "error", err)
		}
		if n := len(cuts); n > 0 && cuts[n-1] < f.before {
			f.due = 0 // there are more
		}
		f.cuts, f.before = cuts, 0
	}
}
