package storage

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Options configure an engine. FS and Env are required; zero means the default
// elsewhere. Names in comments are MySQL's variables; docs/settings.md has the
// limits, and says what can be changed later (see [Settings]).
type Options struct {
	FS  file.FS // its root is the engine's directory
	Env env.Env

	BufferPoolSize    int64         // innodb_buffer_pool_size: 128 MiB
	BufferPoolSizeMax int64         // bound of later growth: the size
	OldBlocksPct      int           // innodb_old_blocks_pct: 37
	OldBlocksTime     time.Duration // innodb_old_blocks_time: 1 s; negative: none
	Cleaner           buffer.CleanerOptions
	ReadAheadTasks    int // 2; negative: none

	RedoCapacity   int64         // innodb_redo_log_capacity: 100 MiB
	LogBufferSize  int           // innodb_log_buffer_size: 16 MiB
	FlushInterval  time.Duration // innodb_flush_log_at_timeout: 1 s
	RecoveryMemory int           // redo held in memory at a time while recovering: 64 MiB
	RecoveryTasks  int           // tasks that apply redo: one per processor
	RecoveryCache  int64         // pages held in memory until recovery ends: the pool's size, which is not in use yet
	Recovery       *Recovery     // is told how far recovery is; nil: nobody asks
	// RollbackLater has Open return before it has rolled back what was running with more changes
	// than this; 0: it rolls back everything first. See [Engine.AwaitRollback].
	RollbackLater int64

	OpenFiles       int   // innodb_open_files: 4000
	DirectIO        bool  // innodb_flush_method=O_DIRECT
	ReserveExtents  int   // kept back in each tablespace for rollback: up to 4 extents
	UndoTablespaces int   // innodb_undo_tablespaces: 2; fixed when the database is created
	UndoSizeMax     int64 // innodb_max_undo_log_size: above it undo tablespaces are cut; 64 MiB
	MaxStreams      int   // transactions that can change rows at a time: 256

	LockWait         time.Duration // innodb_lock_wait_timeout: 50 s
	LockMemory       int64         // lock_memory_max: 1 GiB
	NoDeadlockDetect bool          // innodb_deadlock_detect=OFF
	LockFIFO         bool          // grant waiting locks in order of arrival

	PurgeTasks    int           // innodb_purge_threads: 2; negative: none
	PurgeInterval time.Duration // 200 ms

	TableCache int // table_open_cache: 4000
	// TableCacheBytes is how much memory the definitions in it may take, about; 0: any.
	TableCacheBytes int64
	// Shown is dict.Options.Shown.
	Shown func(stored *record.Table) *record.Table
}

func (o *Options) setDefaults() {
	def(&o.BufferPoolSize, 128<<20)
	def(&o.BufferPoolSizeMax, o.BufferPoolSize)
	def(&o.RedoCapacity, redo.DefaultCapacity)
	def(&o.LogBufferSize, redo.DefaultBufferSize)
	def(&o.FlushInterval, time.Second)
	def(&o.RecoveryMemory, 64<<20)
	def(&o.RecoveryCache, o.BufferPoolSize)
	def(&o.RecoveryTasks, min(runtime.GOMAXPROCS(0), recoveryTasksMax))
	if o.Recovery == nil {
		o.Recovery = &Recovery{}
	}
	def(&o.OpenFiles, 4000)
	def(&o.UndoTablespaces, 2)
	def(&o.UndoSizeMax, 64<<20)
	def(&o.MaxStreams, undo.DefaultMaxStreams)
	def(&o.LockWait, 50*time.Second)
	def(&o.LockMemory, 1<<30)
	def(&o.PurgeTasks, 2)
	def(&o.PurgeInterval, 200*time.Millisecond)
	def(&o.TableCache, dict.DefaultCacheSize)
}

func def[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Limits of options, where no package below has them.
const (
	memoryMax         = 1 << 44 // bytes; more than that is a slip of the pen
	redoMax           = 1 << 40
	logBufferMax      = 1 << 32
	recoveryMemoryMin = 64 << 10
	recoveryTasksMax  = 256
	readAheadTasksMax = 64
	undoSizeMin       = 1 << 20
	lockMemoryMin     = 64 << 10
	purgeTasksMax     = 32

	awaitEvery = 5 * time.Millisecond // between looks at a rollback
)

// Validate reports every option that is out of its limits, by MySQL's name. Open
// does the same.
func (o Options) Validate() error {
	o.setDefaults()
	v := validator{}
	if o.FS == nil || o.Env == nil {
		v.add("FS and Env are required")
	}
	v.bytes("innodb_buffer_pool_size", o.BufferPoolSize, buffer.MinSize, memoryMax)
	v.bytes("the buffer pool's maximal size", o.BufferPoolSizeMax, o.BufferPoolSize, memoryMax)
	if o.OldBlocksPct != 0 {
		v.number("innodb_old_blocks_pct", int64(o.OldBlocksPct), 5, 95)
	}
	v.cleaner(&o.Cleaner)
	v.number("the number of read-ahead tasks", int64(o.ReadAheadTasks), -1, readAheadTasksMax)
	v.bytes("innodb_redo_log_capacity", o.RedoCapacity, redo.MinCapacity, redoMax)
	v.bytes("innodb_log_buffer_size", int64(o.LogBufferSize), redo.MinBufferSize, logBufferMax)
	v.atLeast("innodb_flush_log_at_timeout", o.FlushInterval, time.Millisecond)
	v.bytes("the memory for recovery", int64(o.RecoveryMemory), recoveryMemoryMin, memoryMax)
	v.bytes("the memory for pages of recovery", o.RecoveryCache, page.Size, memoryMax)
	v.number("the number of recovery tasks", int64(o.RecoveryTasks), 1, recoveryTasksMax)
	v.number("the changes of a transaction that are rolled back first", o.RollbackLater, 0, 1<<62)
	v.number("innodb_open_files", int64(o.OpenFiles), 10, 1<<31-1)
	v.number("the reserve in extents", int64(o.ReserveExtents), 0, 1024)
	v.number("innodb_undo_tablespaces", int64(o.UndoTablespaces), 1, undo.MaxSpaces)
	v.bytes("innodb_max_undo_log_size", o.UndoSizeMax, undoSizeMin, memoryMax)
	v.number("the number of undo streams", int64(o.MaxStreams), 1, undo.MaxStreams)
	v.atLeast("innodb_lock_wait_timeout", o.LockWait, time.Millisecond)
	v.bytes("lock_memory_max", o.LockMemory, lockMemoryMin, memoryMax)
	v.number("innodb_purge_threads", int64(o.PurgeTasks), -1, purgeTasksMax)
	v.atLeast("the interval of purge", o.PurgeInterval, time.Millisecond)
	v.number("table_open_cache", int64(o.TableCache), 1, 1<<20)
	return v.err()
}

// validator collects what is wrong with options.
type validator struct{ errs []error }

func (v *validator) err() error { return errors.Join(v.errs...) }

func (v *validator) add(format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("storage: "+format, args...))
}

func (v *validator) number(name string, n, least, most int64) {
	if n < least || n > most {
		v.add("%s is %d; it must be %d to %d", name, n, least, most)
	}
}

func (v *validator) bytes(name string, n, least, most int64) {
	switch {
	case n < least:
		v.add("%s is %d bytes; the least is %d (%s)", name, n, least, size(least))
	case n > most:
		v.add("%s is %d bytes; the most is %d (%s)", name, n, most, size(most))
	}
}

func (v *validator) atLeast(name string, d, least time.Duration) {
	if d < least {
		v.add("%s is %v; the least is %v", name, d, least)
	}
}

func (v *validator) cleaner(o *buffer.CleanerOptions) {
	v.number("innodb_io_capacity", int64(o.IOCapacity), 0, 1<<30)
	v.number("innodb_io_capacity_max", int64(o.IOCapacityMax), 0, 1<<30)
	if o.IOCapacityMax != 0 && o.IOCapacityMax < o.IOCapacity {
		v.add("innodb_io_capacity is %d, above innodb_io_capacity_max, which is %d", o.IOCapacity, o.IOCapacityMax)
	}
	v.number("innodb_max_dirty_pages_pct", int64(o.MaxDirtyPct), 0, 99)
	v.number("innodb_lru_scan_depth", int64(o.LRUScanDepth), 0, 1<<30)
	v.atLeast("the interval of the page cleaner", o.Interval, 0)
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
