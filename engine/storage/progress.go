package storage

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Stage is a part of what [Open] does with an existing database.
type Stage uint32

// The stages of a recovery, in their order.
const (
	StageNone       Stage = iota // not begun
	StageRedo                    // redo is read and applied to pages in memory
	StagePages                   // the pages are written
	StageRollback                // what was not committed is rolled back
	StageOpen                    // all is done, but for what is rolled back beside new work
	StageRolledBack              // that is done, too
)

// Recovery tells from outside how far [Open] is with the recovery of a database. Its
// methods are safe for concurrent use; one value serves one Open.
type Recovery struct {
	// OnStage is called by the task that opens whenever a stage begins, and by another one for the
	// last; nil: nobody is told.
	OnStage func(Stage)

	stage                    atomic.Uint32
	redoFrom, redoTo, redoAt atomic.Uint64 // LSN
	groups                   atomic.Int64
	cache                    atomic.Pointer[buffer.RecoveryCache]
	unfinished, rolledBack   atomic.Int64
	changesLeft              atomic.Int64
}

// RecoveryState is how far a recovery is.
type RecoveryState struct {
	Stage        Stage
	Redo         int64 // bytes to apply, as far as known: the end of the log shows when it is reached
	RedoApplied  int64 // bytes
	Groups       int64 // mini-transactions read
	PagesWritten int64
	PagesKept    int64 // in memory, to be written
	Unfinished   int64 // transactions to roll back
	RolledBack   int64
	ChangesLeft  int64 // to take back of the one at hand
}

// State returns how far the recovery is.
func (r *Recovery) State() RecoveryState {
	from, to, at := r.redoFrom.Load(), r.redoTo.Load(), r.redoAt.Load()
	s := RecoveryState{Stage: Stage(r.stage.Load()), Groups: r.groups.Load(), Redo: int64(max(to, at) - from), RedoApplied: int64(at - from),
		Unfinished: r.unfinished.Load(), RolledBack: r.rolledBack.Load(), ChangesLeft: r.changesLeft.Load()}
	if c := r.cache.Load(); c != nil {
		s.PagesWritten, s.PagesKept = c.Written.Load(), c.Kept.Load()
	}
	return s
}

func (r *Recovery) begin(s Stage) {
	if Stage(r.stage.Swap(uint32(s))) != s && r.OnStage != nil {
		r.OnStage(s)
	}
}

// redoRange takes what the log is known to hold: first when it is opened, and again when
// its end is found.
func (r *Recovery) redoRange(from, to page.LSN) {
	if r.redoFrom.CompareAndSwap(0, uint64(from)) {
		r.redoAt.Store(uint64(from))
	}
	r.redoTo.Store(uint64(to))
}
