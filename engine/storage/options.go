package storage

import (
	"runtime"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Options configure an engine. FS and Env are required; zero means the default
// elsewhere. Names in comments are MySQL's variables.
type Options struct {
	FS  file.FS // its root is the engine's directory
	Env env.Env

	BufferPoolSize    int64 // innodb_buffer_pool_size: 128 MiB
	BufferPoolSizeMax int64 // bound of later growth: the size
	OldBlocksPct      int   // innodb_old_blocks_pct: 37
	OldBlocksTime     time.Duration
	Cleaner           buffer.CleanerOptions
	ReadAheadTasks    int

	RedoCapacity   int64 // innodb_redo_log_capacity: 100 MiB
	LogBufferSize  int   // innodb_log_buffer_size: 16 MiB
	FlushInterval  time.Duration
	RecoveryMemory int // redo held in memory at a time while recovering: 64 MiB
	RecoveryTasks  int // tasks that apply redo: one per processor

	OpenFiles       int   // innodb_open_files
	DirectIO        bool  // innodb_flush_method=O_DIRECT
	ReserveExtents  int   // kept back in each tablespace for rollback
	UndoTablespaces int   // innodb_undo_tablespaces: 2
	UndoSizeMax     int64 // innodb_max_undo_log_size: above it undo tablespaces are cut; 64 MiB
	MaxStreams      int   // transactions that can change rows at a time: 256

	LockWait         time.Duration // innodb_lock_wait_timeout: 50 s
	LockMemory       int64
	NoDeadlockDetect bool // innodb_deadlock_detect=OFF
	LockFIFO         bool

	PurgeTasks    int // innodb_purge_threads: 2; negative: none, 32 at most
	PurgeInterval time.Duration

	TableCache int // table_open_cache: 4000
}

func (o *Options) setDefaults() {
	def(&o.BufferPoolSize, 128<<20)
	def(&o.RecoveryMemory, 64<<20)
	def(&o.RecoveryTasks, runtime.GOMAXPROCS(0))
	def(&o.UndoTablespaces, 2)
	def(&o.PurgeInterval, 200*time.Millisecond)
	if o.PurgeTasks == 0 {
		o.PurgeTasks = 2
	}
	o.PurgeTasks = min(o.PurgeTasks, 32)
}

func def[T int | int64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
