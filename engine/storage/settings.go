package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
)

// Settings are those of the options that can be changed while the engine runs.
// docs/settings.md describes them under MySQL's names.
type Settings struct {
	BufferPoolSize int64 // up to Options.BufferPoolSizeMax
	OldBlocksPct   int
	OldBlocksTime  time.Duration
	Cleaner        buffer.CleanerOptions
	RedoCapacity   int64
	LockWait       time.Duration // holds for waits that begin later
	LockMemory     int64
	DeadlockDetect bool
	LockFIFO       bool
	PurgeTasks     int // an engine that was opened without purge tasks stays so
}

// Settings returns the settings in force.
func (e *Engine) Settings() Settings {
	e.settingsTurn.Lock()
	defer e.settingsTurn.Unlock()
	return e.settings()
}

// settings reads the settings from where they are in force, as far as they are
// kept there.
func (e *Engine) settings() Settings {
	s := e.set
	s.BufferPoolSize = e.Pool.Size()
	s.OldBlocksPct, s.OldBlocksTime = e.Pool.OldBlocks()
	s.Cleaner = e.Pool.CleanerOptions()
	s.RedoCapacity = e.Log.Capacity()
	return s
}

// initialSettings are those of the options.
func (o *Options) initialSettings() Settings {
	return Settings{LockWait: o.LockWait, LockMemory: o.LockMemory, DeadlockDetect: !o.NoDeadlockDetect,
		LockFIFO: o.LockFIFO, PurgeTasks: max(o.PurgeTasks, 0)}
}

// Set changes the settings while the engine runs:
//
//	s := eng.Settings()
//	s.BufferPoolSize = 8 << 30
//	err := eng.Set(s)
//
// Nothing is changed if a value is not possible. Shrinking the buffer pool or the
// redo log waits until pages have been written. An error of doing so (a full disk,
// what halted the engine, [ErrClosed], redo.ErrTooSmall if the load leaves no room) leaves the
// settings that were not reached yet as they were.
//
// REQUIRES: the task holds no latch.
func (e *Engine) Set(s Settings) error {
	e.settingsTurn.Lock()
	defer e.settingsTurn.Unlock()
	if err := e.Tables.Enter(); err != nil {
		return err
	}
	defer e.Tables.Leave()
	now := e.settings()
	if err := s.validate(e.Pool.SizeMax(), now.PurgeTasks > 0); err != nil {
		return err
	}
	e.Locks.SetWaitTimeout(s.LockWait)
	e.Locks.SetMemoryMax(s.LockMemory)
	e.Locks.SetDeadlockDetect(s.DeadlockDetect)
	e.Locks.SetFIFO(s.LockFIFO)
	if s.PurgeTasks > 0 {
		e.Purge.SetTasks(s.PurgeTasks)
	}
	e.set.LockWait, e.set.LockMemory = s.LockWait, s.LockMemory
	e.set.DeadlockDetect, e.set.LockFIFO, e.set.PurgeTasks = s.DeadlockDetect, s.LockFIFO, s.PurgeTasks
	e.Pool.SetOldBlocks(s.OldBlocksPct, s.OldBlocksTime)
	e.Pool.SetCleaner(s.Cleaner)
	if s.BufferPoolSize/page.Size != now.BufferPoolSize/page.Size {
		if err := e.Pool.Resize(s.BufferPoolSize); err != nil {
			return fmt.Errorf("storage: resizing the buffer pool: %w", err)
		}
	}
	if s.RedoCapacity != now.RedoCapacity {
		if err := e.resizeRedo(s.RedoCapacity); err != nil {
			return fmt.Errorf("storage: resizing the redo log: %w", err)
		}
	}
	return nil
}

// resizeAttempts is how often a redo log is made short enough for a smaller file.
const resizeAttempts = 10

func (e *Engine) resizeRedo(capacity int64) error {
	err := e.Log.Resize(capacity)
	for n := 0; n < resizeAttempts && errors.Is(err, redo.ErrTooSmall); n++ {
		if err = e.Pool.FlushAll(); err != nil {
			return err
		}
		err = e.Log.Resize(capacity)
	}
	return err
}

func (s *Settings) validate(poolMax int64, purging bool) error {
	v := validator{}
	v.bytes("innodb_buffer_pool_size", s.BufferPoolSize, buffer.MinSize, poolMax+page.Size-1)
	v.number("innodb_old_blocks_pct", int64(s.OldBlocksPct), 5, 95)
	v.cleaner(&s.Cleaner)
	v.bytes("innodb_redo_log_capacity", s.RedoCapacity, redo.MinCapacity, redoMax)
	v.atLeast("innodb_lock_wait_timeout", s.LockWait, time.Millisecond)
	v.bytes("lock_memory_max", s.LockMemory, lockMemoryMin, memoryMax)
	if purging {
		v.number("innodb_purge_threads", int64(s.PurgeTasks), 1, purgeTasksMax)
	} else {
		v.number("innodb_purge_threads (the engine was opened without purge)", int64(s.PurgeTasks), 0, 0)
	}
	return v.err()
}
