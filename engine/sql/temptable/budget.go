package temptable

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// grain is in what steps accounts take of their share, in bytes: most statements take one or none.
const grain = 64 << 10

// modest is what a session may have whatever others have, in bytes.
const modest = 1 << 20

// Budget is the memory that the sessions of a node may have together for their statements, in
// bytes. It is safe for concurrent use.
//
// A session may have half of what the others leave: one alone half of the budget, two a third
// each, k of them 1/(k+1). So whoever comes next finds room at once, and nobody has to be made to
// give back what he has. These are the dynamic thresholds of Choudhury and Hahne, "Dynamic Queue
// Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2),
// 1998. What does not fit goes to disk, or the statement fails with error 3170. Besides that each
// session may have 1 MiB in any case, so that small statements do not fail because of large ones. What goes to disk needs
// memory, too, as much for the hundredth statement as for the first: where that of all together is half as much more than the budget,
// those that have more than 4 MiB wait for others to end, and fail one after the other.
type Budget struct {
	limit   atomic.Int64
	used    atomic.Int64
	refused atomic.Uint64
}

// SetLimit changes what all sessions may have; 0 is no limit, as a new budget has none.
func (b *Budget) SetLimit(n int64) { b.limit.Store(n) }

// Limit is what all sessions may have; 0 is no limit.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Used is what sessions have now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused counts statements that failed because others left too little.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// Hold takes n bytes for what belongs to no session alone, or gives them back if n is negative. It reports whether there was room.
func (b *Budget) Hold(n int64) bool {
	used, limit := b.used.Add(n), b.limit.Load()
	if n > 0 && limit != 0 && used > limit {
		b.used.Add(-n)
		return false
	}
	return true
}

// Share is what one session has of a budget. It belongs to one task.
type Share struct {
	budget *Budget
	taken  int64
}

// Of begins a share of a budget.
func Of(b *Budget) Share { return Share{budget: b} }

// End gives back what accounts that were not ended have taken.
func (s *Share) End() { s.take(-s.taken) }

// Hold takes n bytes for single values, which cannot go to disk, or gives them back if n is negative. All that is left
// may be taken: values are short-lived. It reports whether there was room for them.
func (s *Share) Hold(n int64) bool {
	s.take(n)
	limit := s.budget.limit.Load()
	if n > 0 && limit != 0 && s.taken > modest && s.budget.used.Load() > limit {
		s.take(-n)
		return false
	}
	return true
}

// Alone reports whether n bytes more are too much whatever the others have.
func (s *Share) Alone(n int64) bool {
	limit := s.budget.limit.Load()
	return limit != 0 && s.taken+n > max(limit, modest)
}

// Exceeded is the error 3170 for what cannot go to disk and does not fit beside that of others.
func (s *Share) Exceeded(what string) error {
	s.budget.refused.Add(1)
	return sqlerr.New(sqlerr.CapacityExceeded, s.budget.Limit(), "temptable_max_ram",
		"All statements of this node have no more together, and "+what+" cannot go to disk: try again, or let the statement keep less.")
}

func (s *Share) take(n int64) {
	s.taken += n
	s.budget.used.Add(n)
}

// beyond reports whether sessions have more than the budget together, and this one is not modest.
func (s *Share) beyond() bool {
	limit := s.budget.limit.Load()
	return limit != 0 && s.taken > 4*modest && s.budget.used.Load() > limit
}

// crowded is beyond with half as much more, which statements that go to disk may keep in memory all the same, and where others have a
// good part of it: one alone goes on.
func (s *Share) crowded() bool {
	if s.taken <= 4*modest {
		return false // as most: they look at nothing that others write
	}
	limit, used := s.budget.limit.Load(), s.budget.used.Load()
	return limit != 0 && used > limit+limit/2 && used-s.taken > limit/2
}

// fits reports whether the session may have so much more.
func (s *Share) fits(more int64) bool {
	room := s.room()
	return room == 0 || s.taken+more <= room
}

// room is what the session may have as things are, 0 for no limit.
func (s *Share) room() int64 {
	limit := s.budget.limit.Load()
	if limit == 0 {
		return 0
	}
	return max(modest, (limit-(s.budget.used.Load()-s.taken))/2)
}
