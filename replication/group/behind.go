package group

import (
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// Behind is what a leader knows of how far another member is.
type Behind struct {
	ID uint64 `json:"id"`
	// Index is up to where the member has applied the log, by its own word, or has it at least, by
	// Raft's. 0: this leader has not heard from it.
	Index uint64 `json:"index"`
	// Lag is how long ago, as far as the leader can prove, the member had all that the group had
	// agreed on: it grows while there is something that the member is not known to have. A leader
	// that has not heard from it counts from when it began to lead.
	Lag time.Duration `json:"lag"`
}

// behind is what this member knows of how far others are, while it leads. The Raft task looks once a
// second, and commits have nothing to do with it.
//
// Each member keeps, at whatever time, how far the group had agreed when: a new leader knows at once
// since when a member lags.
type behind struct {
	mu    sync.Mutex
	times []agreedAt // oldest first; index and until both rise
	// What follows is of the term in which this member leads.
	term    uint64 // 0: it does not
	since   time.Duration
	members map[uint64]heardOf
}

// agreedAt says that the group was not known to have agreed on more than index until then, on the
// monotonic clock. Whoever has that much had everything at that time.
type agreedAt struct {
	index uint64
	until time.Duration
}

// heardOf is how far a member is, by its own word (applied) and by Raft's (match); 0: not heard. By its own last word its disk is full, or is not.
type heardOf struct {
	match, applied uint64
	full           bool
}

const (
	// behindEvery is how often the Raft task looks.
	behindEvery = time.Second
	// behindLeast is the least lag that can be told: looks are that far apart, and answers are as old.
	behindLeast = 2 * behindEvery
	// behindGrain is which part of its age a time may be wrong by: older ones are thinned out, so that
	// some hundred last for years.
	behindGrain = 16
)

// note takes down how far the group has agreed by now. REQUIRES: mu.
func (b *behind) note(index uint64, now time.Duration) {
	if n := len(b.times); n > 0 && b.times[n-1].index >= index {
		b.times[n-1].until = now
		return
	}
	b.times = append(b.times, agreedAt{index, now})
	kept := b.times[:1]
	for i := 1; i < len(b.times); i++ {
		before := kept[len(kept)-1].until
		if i+1 < len(b.times) && b.times[i+1].until-before <= (now-before)/behindGrain {
			continue
		}
		kept = append(kept, b.times[i])
	}
	b.times = kept
}

// lag is how long ago whoever has the log up to an index had all of it, or longer. REQUIRES: mu.
func (b *behind) lag(index uint64, now time.Duration) time.Duration {
	if len(b.times) == 0 {
		return 0
	}
	at := b.times[max(0, sort.Search(len(b.times), func(i int) bool { return b.times[i].index > index })-1)]
	if lag := now - at.until; lag > behindLeast {
		return lag
	}
	return 0
}

// toApply is how long ago the group had agreed on what a member has still to apply, by its own last word. One that
// has said nothing comes behind those that have applied all, and before those that have not; one whose disk is full behind all.
func (b *behind) toApply(id uint64, now time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := b.members[id]; {
	case m.full:
		return math.MaxInt64 - 1
	case m.applied != 0:
		return b.lag(m.applied, now)
	}
	return 1
}

// watchBehind looks how far everybody is, once in a while.
func (t *raftTask) watchBehind(now time.Duration) {
	if now < t.nextBehind {
		return
	}
	t.nextBehind = now + behindEvery
	b := &t.n.behind
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(t.n.agreed.Load(), now)
	if !t.role.leads {
		b.term = 0
		return
	}
	before := b.members
	if b.term != t.role.term {
		b.term, b.since, before = t.role.term, now, nil
	}
	b.members = make(map[uint64]heardOf, len(before))
	t.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if id != t.n.opt.ID {
			b.members[id] = heardOf{match: pr.Match, applied: before[id].applied, full: before[id].full}
		}
	})
}

// told takes the word of members of what they have applied, and of their disks.
func (b *behind) told(answers []Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range answers {
		s := &answers[i]
		if m, ok := b.members[s.ID]; ok && s.Applied > 0 { // it has answered
			m.applied, m.full = max(m.applied, s.Applied), s.DiskFull
			b.members[s.ID] = m
		}
	}
}

// behindNow is what this member knows of the others as their leader; nil if it does not lead.
func (c *core) behindNow() []Behind {
	r, now, agreed := c.currentRole(), c.env.Monotonic(), c.agreed.Load()
	b := &c.behind
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.leads || b.term != r.term {
		return nil
	}
	var all []Behind
	for id, m := range b.members {
		one := Behind{ID: id, Index: m.applied, Lag: now - b.since}
		if one.Index == 0 {
			one.Index = m.match
		}
		switch {
		case one.Index >= agreed:
			one.Lag = 0
		case one.Index > 0:
			one.Lag = b.lag(one.Index, now)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Behind) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}
