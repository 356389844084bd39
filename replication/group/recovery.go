package group

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
)

// Recovery tells from outside how far a node is with what it does before it has again what
// it had: the engine's redo, the roll-back of what was not committed, the check of the
// newest file of the log, and the entries of the log that the engine did not keep. [Open]
// is at work meanwhile, so that there is no Node to ask. Its methods are safe for
// concurrent use.
type Recovery struct {
	now atomic.Pointer[recovery] // nil: none has begun
}

// RecoveryStatus is how far a recovery is. Sizes are in bytes, times in seconds.
type RecoveryStatus struct {
	// Stage is the one that is at work: redo, pages, rollback, log, entries, done; empty:
	// none has begun.
	Stage        string `json:"stage"`
	Redo         int64  `json:"redo_bytes"` // to apply, as far as known
	RedoApplied  int64  `json:"redo_applied_bytes"`
	RedoGroups   int64  `json:"redo_records"` // mini-transactions read
	PagesWritten int64  `json:"pages_written"`
	PagesKept    int64  `json:"pages_kept"` // in memory, to be written
	Unfinished   int64  `json:"transactions"`
	RolledBack   int64  `json:"transactions_rolled_back"` // the rest is when it is done: large ones, beside new work
	ChangesLeft  int64  `json:"changes_to_roll_back"`     // of the transaction at hand
	Log          int64  `json:"log_bytes"`                // of the newest file of the log, to check
	LogRead      int64  `json:"log_read_bytes"`
	// EntriesFrom and EntriesTo are the indexes of the first and last entry of the log that
	// the engine did not have when it was open; none if the first is the higher one.
	EntriesFrom    uint64 `json:"entries_from"`
	EntriesTo      uint64 `json:"entries_to"`
	EntriesApplied uint64 `json:"entries_applied"`

	RedoTime     float64 `json:"redo_seconds"` // pages included
	RollbackTime float64 `json:"rollback_seconds"`
	LogTime      float64 `json:"log_seconds"`
	EntriesTime  float64 `json:"entries_seconds"`
	Time         float64 `json:"seconds"` // so far, or of all
}

// Status returns how far the recovery is.
func (r *Recovery) Status() RecoveryStatus {
	if now := r.now.Load(); now != nil {
		return now.status()
	}
	return RecoveryStatus{}
}

// Done reports whether the node has again what it had.
func (s *RecoveryStatus) Done() bool { return s.Stage == stageNames[stageDone] }

// Doing says what is at work, and how far it is; empty when there is nothing.
func (s *RecoveryStatus) Doing() string {
	switch s.Stage {
	case stageNames[stageRedo]:
		return "redo " + sizes(s.RedoApplied, s.Redo)
	case stageNames[stagePages]:
		return fmt.Sprintf("redo applied, %d of %d pages written", s.PagesWritten, s.PagesWritten+s.PagesKept)
	case stageNames[stageRollback]:
		if s.Unfinished == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %d transactions rolled back", s.RolledBack, s.Unfinished)
	case stageNames[stageLog]:
		return "newest file of the log, " + sizes(s.LogRead, s.Log) + " checked"
	case stageNames[stageEntries]:
		if s.Entries() == 0 {
			return ""
		}
		return fmt.Sprintf("entries of the log, %d of %d applied", s.EntriesApplied, s.Entries())
	}
	return ""
}

// Entries is how many entries of the log the engine did not have.
func (s *RecoveryStatus) Entries() uint64 { return max(s.EntriesTo+1, s.EntriesFrom) - s.EntriesFrom }

// sizes writes how much of something is done.
func sizes(done, all int64) string {
	if all >= 10<<20 {
		return fmt.Sprintf("%d of %d MiB", done>>20, all>>20)
	}
	return fmt.Sprintf("%d of %d KiB", done>>10, all>>10)
}

// stage is a part of a node's recovery.
type stage uint32

const (
	stageNone stage = iota
	stageRedo
	stagePages
	stageRollback
	stageLog
	stageEntries
	stageDone
)

var stageNames = [...]string{"", "redo", "pages", "rollback", "log", "entries", "done"}

// recovery is one opening of the node's data.
type recovery struct {
	env    env.Env
	log    *slog.Logger
	engine storage.Recovery

	stage            atomic.Uint32
	began            [stageDone + 1]atomic.Int64 // when, on the monotonic clock, plus 1; 0: not yet
	logRead, logSize atomic.Int64
	from, to         atomic.Uint64                  // index of the first entry to apply, and the last
	data             atomic.Pointer[storage.Engine] // applies them; nil: not yet, or not any more
}

// newRecovery begins a recovery; the one before, of the node's former data, is forgotten.
func newRecovery(opt *Options) *recovery {
	r := &recovery{env: opt.Env, log: opt.Log}
	r.engine.OnStage = r.onEngine
	r.enter(stageNone)
	opt.Recovery.now.Store(r)
	return r
}

func (r *recovery) at() stage { return stage(r.stage.Load()) }

func (r *recovery) enter(s stage) {
	r.began[s].Store(int64(r.env.Monotonic()) + 1)
	r.stage.Store(uint32(s))
}

// onEngine follows the engine's stages.
func (r *recovery) onEngine(s storage.Stage) {
	switch s {
	case storage.StageRedo:
		r.enter(stageRedo)
		if e := r.engine.State(); e.Redo > 0 {
			r.log.Info("recovery: redo is applied", "bytes", e.Redo)
		}
	case storage.StagePages:
		r.enter(stagePages)
	case storage.StageRollback:
		r.enter(stageRollback)
		e := r.engine.State()
		if e.Redo > 0 {
			r.log.Info("recovery: redo was applied", "bytes", e.RedoApplied, "records", e.Groups, "pages", e.PagesWritten,
				"apply_took", r.between(stageRedo, stagePages), "took", r.between(stageRedo, stageRollback))
		}
		if e.Unfinished > 0 {
			r.log.Info("recovery: transactions that had not ended are rolled back", "transactions", e.Unfinished)
		}
	case storage.StageOpen:
		r.enter(stageLog)
		if e := r.engine.State(); e.RolledBack > 0 {
			r.log.Info("recovery: transactions were rolled back", "transactions", e.RolledBack, "took", r.between(stageRollback, stageLog))
		}
		if e := r.engine.State(); e.RolledBack < e.Unfinished {
			r.log.Info("recovery: large transactions are rolled back beside new work", "transactions", e.Unfinished-e.RolledBack)
		}
	case storage.StageRolledBack:
		r.log.Info("recovery: all transactions that had not ended are rolled back", "took", r.between(stageRollback, stageNone))
	}
}

// logChecked takes how much of the newest file of the log was checked.
func (r *recovery) logChecked(read, size int64) {
	r.logRead.Store(read)
	r.logSize.Store(size)
}

// opened begins the last stage: the engine has the log, which ends at last, up to applied.
func (r *recovery) opened(e *storage.Engine, applied, last uint64) {
	r.from.Store(applied + 1)
	r.to.Store(last)
	r.data.Store(e)
	r.enter(stageEntries)
	if n := r.logRead.Load(); n > 0 {
		r.log.Info("recovery: the newest file of the log was checked", "bytes", n, "took", r.between(stageLog, stageEntries))
	}
	if last > applied {
		r.log.Info("recovery: entries of the log are applied again once the group says that they are committed",
			"from", applied+1, "to", last)
	}
}

// finished ends the recovery.
func (r *recovery) finished() {
	r.enter(stageDone)
	r.data.Store(nil)
	if s := r.status(); r.began[stageRedo].Load() != 0 { // otherwise the data are new
		r.log.Info("recovery: this member has what it had", "redo_bytes", s.Redo, "entries", s.Entries(),
			"entries_took", r.between(stageEntries, stageDone), "took", r.between(stageNone, stageDone))
	}
}

// reportEvery is the time between two lines of the log that say how far a recovery is.
const reportEvery = 5 * time.Second

// watched runs what opens the node's data, and says in the log how far it is.
func (r *recovery) watched(open func() error) error {
	var over atomic.Bool
	wake, task := r.env.NewParker(), env.NewGroup(r.env)
	task.Go("recovery report", func() {
		for said := ""; !over.Load(); {
			if !wake.ParkFor(reportEvery) && !over.Load() {
				said = r.say(said)
			}
		}
	})
	err := open()
	over.Store(true)
	wake.Unpark()
	task.Wait()
	return err
}

// say says how far the recovery is, if that is not what was said last.
func (r *recovery) say(last string) string {
	s := r.status()
	doing := s.Doing()
	if doing != last && doing != "" {
		r.log.Info("recovery: "+doing, "so_far", r.between(stageNone, stageDone))
	}
	return doing
}

// between is how long it took from the beginning of a stage to that of a later one, or
// has taken so far, which it says of stageNone too.
func (r *recovery) between(from, to stage) time.Duration {
	began, end := r.began[from].Load(), int64(r.env.Monotonic())+1
	if began == 0 {
		return 0
	}
	if at := r.began[to].Load(); at != 0 && to > from {
		end = at
	}
	return time.Duration(end - began).Round(time.Millisecond)
}

func (r *recovery) status() RecoveryStatus {
	e := r.engine.State()
	s := RecoveryStatus{Stage: stageNames[r.at()], Redo: e.Redo, RedoApplied: e.RedoApplied, RedoGroups: e.Groups,
		PagesWritten: e.PagesWritten, PagesKept: e.PagesKept, Unfinished: e.Unfinished, RolledBack: e.RolledBack, ChangesLeft: e.ChangesLeft,
		Log: r.logSize.Load(), LogRead: r.logRead.Load(), EntriesFrom: r.from.Load(), EntriesTo: r.to.Load()}
	switch e := r.data.Load(); {
	case e != nil:
		_, pos := e.Applied()
		s.EntriesApplied = max(min(pos.Index, s.EntriesTo)+1, s.EntriesFrom) - s.EntriesFrom
	case s.Done():
		s.EntriesApplied = s.Entries()
	}
	s.RedoTime = r.between(stageRedo, stageRollback).Seconds()
	s.RollbackTime = r.between(stageRollback, stageLog).Seconds()
	s.LogTime = r.between(stageLog, stageEntries).Seconds()
	s.EntriesTime = r.between(stageEntries, stageDone).Seconds()
	s.Time = r.between(stageNone, stageDone).Seconds()
	return s
}

// String says it all in a line.
func (s *RecoveryStatus) String() string {
	if doing := s.Doing(); doing != "" {
		return "recovering: " + doing
	}
	if !s.Done() {
		return "recovering"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "recovered in %.1f s", s.Time)
	if s.Redo > 0 {
		fmt.Fprintf(&b, ", %.1f s of them for %d KiB of redo", s.RedoTime, s.Redo>>10)
	}
	if n := s.Entries(); n > 0 {
		fmt.Fprintf(&b, ", %.1f s for %d entries of the log", s.EntriesTime, n)
	}
	if n := s.Unfinished - s.RolledBack; n > 0 {
		fmt.Fprintf(&b, "; large transactions that had not ended are rolled back: %d, of the first %d changes are left", n, s.ChangesLeft)
	}
	return b.String()
}

// watchRecovery follows the entries of the log that the engine did not keep.
func (c *core) watchRecovery() {
	said, to := "", c.recovery.to.Load()
	for {
		// The leader may have left less of the log than was found.
		err := c.waitApplied(min(to, c.binlog.LastIndex()), 0, waiting{deadline: c.env.Monotonic() + reportEvery})
		switch {
		case err == nil:
			c.recovery.finished()
			return
		case !errors.Is(err, ErrStale):
			return // the node stops
		}
		said = c.recovery.say(said)
	}
}
