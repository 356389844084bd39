package storage

import (
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/purge"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Stats are the engine's numbers: counters since it was opened, and sizes of the
// moment. They are read one by one, while work goes on.
type Stats struct {
	Buffer  buffer.Stats
	Redo    redo.Stats
	Locks   lock.Stats
	Trx     TrxStats
	Undo    undo.Stats
	Purge   purge.Stats
	Spaces  SpaceStats
	Catalog dict.CacheStats
	Halted  bool // Engine.Err is not nil
}

// TrxStats are numbers of the transaction system.
type TrxStats struct {
	Active         int    // transactions that have not ended
	OpenSnapshots  int    // read views
	LastCommitted  uint64 // CSN
	OldestSnapshot uint64 // CSN
}

// SpaceStats are numbers of the tablespaces that are in use.
type SpaceStats struct {
	Spaces    int // that were opened
	OpenFiles int
	Unread    uint64 // reads of pages that ended with an error of the disk
	Bytes     int64  // logical size of all of them
	UndoBytes int64  // and of the undo tablespaces among them
}

// Stats returns the engine's numbers.
func (e *Engine) Stats() Stats {
	return Stats{
		Buffer: e.Pool.Stats(), Redo: e.Log.Stats(), Locks: e.Locks.Stats(),
		Trx: TrxStats{Active: e.Trx.Count(), OpenSnapshots: e.Trx.OpenSnapshots(),
			LastCommitted: e.Trx.LastCommitted(), OldestSnapshot: e.Trx.OldestSnapshot()},
		Undo: e.Trx.Undo().Stats(), Purge: e.Purge.Stats(), Spaces: e.spaceStats(), Catalog: e.Catalog.Stats(),
		Halted: e.Err() != nil,
	}
}

func (e *Engine) spaceStats() SpaceStats {
	s := SpaceStats{OpenFiles: e.Spaces.OpenFiles(), Unread: e.Spaces.ReadErrors()}
	for _, no := range e.Spaces.List() {
		sp := e.Spaces.Get(no)
		if sp == nil {
			continue // dropped meanwhile
		}
		s.Spaces++
		n := int64(sp.SizePages()) * page.Size
		s.Bytes += n
		if isUndo(no) {
			s.UndoBytes += n
		}
	}
	return s
}

// Each calls fn with every number under the name that InnoDB gives it in SHOW
// STATUS or innodb_metrics, or one made in the same way where InnoDB has none, in
// an order that does not change. docs/metrics.md explains them.
func (s *Stats) Each(fn func(name string, value int64)) {
	s.eachBuffer(fn)
	s.Redo.Each(fn)
	fn("Innodb_row_lock_waits", int64(s.Locks.Waits))
	fn("Innodb_row_lock_current_waits", s.Locks.WaitsNow)
	fn("Innodb_row_lock_time", s.Locks.WaitTime.Milliseconds())
	fn("Innodb_row_lock_time_max", s.Locks.WaitMax.Milliseconds())
	fn("lock_deadlocks", int64(s.Locks.Deadlocks))
	fn("lock_timeouts", int64(s.Locks.Timeouts))
	fn("lock_memory", s.Locks.Memory)
	fn("trx_active_transactions", int64(s.Trx.Active))
	fn("trx_open_read_views", int64(s.Trx.OpenSnapshots))
	fn("trx_last_committed", int64(s.Trx.LastCommitted))
	fn("trx_oldest_snapshot", int64(s.Trx.OldestSnapshot))
	fn("trx_rseg_history_len", int64(s.Undo.History))
	fn("trx_undo_slots_cached", int64(s.Undo.Streams-s.Undo.Owned))
	fn("trx_undo_slots_used", int64(s.Undo.Owned))
	fn("purge_transactions", int64(s.Purge.Logs))
	fn("purge_undo_log_records", int64(s.Purge.Records))
	fn("purge_failing", flag(s.Purge.Err != nil))
	fn("purge_undo_set_aside", int64(s.Undo.Aside))
	fn("Innodb_tablespaces_open", int64(s.Spaces.Spaces))
	fn("Innodb_num_open_files", int64(s.Spaces.OpenFiles))
	fn("page_read_errors", int64(s.Spaces.Unread))
	fn("Innodb_tablespace_bytes", s.Spaces.Bytes)
	fn("Innodb_undo_tablespace_bytes", s.Spaces.UndoBytes)
	fn("Open_tables", int64(s.Catalog.Cached))
	fn("Open_table_definitions", int64(s.Catalog.Live))
	fn("Open_tables_bytes", s.Catalog.Bytes)
	fn("engine_halted", flag(s.Halted))
}

func (s *Stats) eachBuffer(fn func(name string, value int64)) {
	b := &s.Buffer
	fn("Innodb_page_size", page.Size)
	fn("Innodb_buffer_pool_pages_total", int64(b.PagesTotal))
	fn("Innodb_buffer_pool_pages_free", int64(b.PagesFree))
	fn("Innodb_buffer_pool_pages_data", int64(b.PagesTotal-b.PagesFree))
	fn("Innodb_buffer_pool_pages_dirty", int64(b.PagesDirty))
	fn("Innodb_buffer_pool_pages_old", int64(b.PagesOld))
	fn("Innodb_buffer_pool_reads", int64(b.Reads))
	fn("Innodb_buffer_pool_read_ahead", int64(b.ReadAhead))
	fn("Innodb_buffer_pool_wait_free", int64(b.WaitFree))
	fn("Innodb_pages_written", int64(b.Written))
	fn("Innodb_dblwr_pages_written", int64(b.DblwrPages))
	fn("Innodb_dblwr_writes", int64(b.DblwrWrites))
	fn("buffer_pages_evicted", int64(b.Evicted))
	fn("buffer_LRU_pages_made_young", int64(b.MadeYoung))
	fn("buffer_latch_waits", int64(b.LatchWaits))
	fn("buffer_flush_adaptive_pages", int64(b.FlushAdaptivePages))
	fn("buffer_flush_background_pages", int64(b.FlushBackgroundPages))
	fn("buffer_flush_sync_pages", int64(b.FlushSyncPages))
	fn("buffer_flush_async_pages", int64(b.FlushAsyncPages))
	fn("buffer_LRU_batch_flush_total_pages", int64(b.LRUFlushPages))
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
