package buffer

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/page"
)

type counters struct {
	reads, readAhead, written, evicted, madeYoung, waitFree, latchWaits atomic.Uint64
	dblwrPages, dblwrWrites                                             atomic.Uint64
	adaptivePages, backgroundPages, syncPages, asyncPages, lruPages     atomic.Uint64
}

// Stats are the pool's counters since it was made, and its sizes now, under the
// names that InnoDB gives them (innodb_metrics and SHOW STATUS).
type Stats struct {
	PagesTotal int // Innodb_buffer_pool_pages_total
	PagesFree  int // Innodb_buffer_pool_pages_free
	PagesDirty int // Innodb_buffer_pool_pages_dirty
	PagesOld   int // Innodb_buffer_pool_pages_old

	Reads       uint64 // Innodb_buffer_pool_reads: pages read from disk
	ReadAhead   uint64 // Innodb_buffer_pool_read_ahead
	Written     uint64 // Innodb_pages_written
	Evicted     uint64 // buffer_pages_evicted
	MadeYoung   uint64 // buffer_LRU_pages_made_young
	WaitFree    uint64 // Innodb_buffer_pool_wait_free
	LatchWaits  uint64 // page latches that were not had at once
	DblwrPages  uint64 // Innodb_dblwr_pages_written
	DblwrWrites uint64 // Innodb_dblwr_writes

	FlushAdaptivePages   uint64 // buffer_flush_adaptive_pages
	FlushBackgroundPages uint64 // buffer_flush_background_pages
	FlushSyncPages       uint64 // buffer_flush_sync_pages
	FlushAsyncPages      uint64 // buffer_flush_async_pages: above the async watermark
	LRUFlushPages        uint64 // buffer_LRU_batch_flush_total_pages

	CheckpointAge int64 // log_lsn_checkpoint_age, bytes
}

// Stats returns the counters.
func (p *Pool) Stats() Stats {
	c := &p.stats
	p.lru.mu.Lock()
	total, free, old := p.lru.target, len(p.lru.free), p.lru.old
	p.lru.mu.Unlock()
	return Stats{
		PagesTotal: total, PagesFree: free, PagesOld: old, PagesDirty: p.DirtyPages(),
		Reads: c.reads.Load(), ReadAhead: c.readAhead.Load(), Written: c.written.Load(),
		Evicted: c.evicted.Load(), MadeYoung: c.madeYoung.Load(), WaitFree: c.waitFree.Load(),
		LatchWaits: c.latchWaits.Load(), DblwrPages: c.dblwrPages.Load(), DblwrWrites: c.dblwrWrites.Load(),
		FlushAdaptivePages: c.adaptivePages.Load(), FlushBackgroundPages: c.backgroundPages.Load(),
		FlushSyncPages: c.syncPages.Load(), FlushAsyncPages: c.asyncPages.Load(), LRUFlushPages: c.lruPages.Load(),
		CheckpointAge: int64(p.log.Age()),
	}
}

// Size is the memory that the pool's pages may take now, in bytes.
func (p *Pool) Size() int64 { return int64(p.lru.size()) * page.Size }
