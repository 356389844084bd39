package group

import (
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
	before, floor int64
	term          uint64 // in which the floor was proposed
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
		f.before, f.due = 0, now+forgetEvery
	case term == 0 || term != f.term:
		f.before, f.term = 0, term
	case f.before != 0 && c.tokens.Floor() >= f.floor:
		before, f.before = f.before, 0
	case now >= f.due:
		f.due = now + forgetEvery
		f.find(c, c.tokens.ForgetBefore(wall))
	}
	return before
}

// find looks for tokens that can be forgotten, and proposes the floor. Transactions that are on their way into the
// engine are younger, as long as the clock does not jump.
func (f *forgetting) find(c *core, before int64) {
	made, found, err := c.tokens.Youngest(before)
	if err != nil {
		if !c.isStopped() {
			c.log.Warn("looking for commit tokens that can be forgotten", "error", err)
		}
		return
	}
	if f.before = 0; !found {
		return
	}
	f.before, f.floor = before, made
	if made > c.tokens.Floor() {
		c.pipeline.Mark(entry.Settings, numberBody(tokenFloor, made), func(trx.Position, error) {})
	}
}
