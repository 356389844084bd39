package log

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// SyncBuckets is the number of buckets of sync latencies: bucket i counts syncs that
// took less than 32 µs << i, the last one all others.
const SyncBuckets = 16

// Stats says what the log has done since it was opened, and what it holds.
type Stats struct {
	Entries, Bytes    int64 // appended
	Syncs             int64
	SyncTime, SyncMax time.Duration
	SyncLatency       [SyncBuckets]int64
	Rotations         int64
	Large             int64 // large transactions appended
	LargeCopied       int64 // those of them whose body was copied, as it could not be renamed
	Truncations       int64 // tails taken back
	Purged            int64 // files
	DiskReads         int64 // calls of Read that went to the disk
	TornBytes         int64 // that were cut off when it was opened, see TornEnd

	Version   uint8 // of the open file's format
	Files     int
	FileBytes int64 // of all files, without preallocated space
	Cached    int64 // bytes of entries in memory
}

type counters struct {
	entries, bytes, syncs, syncTime, syncMax  atomic.Int64
	rotations, truncations, purged, diskReads atomic.Int64
	large, largeCopied                        atomic.Int64
	latency                                   [SyncBuckets]atomic.Int64
}

func (c *counters) synced(took time.Duration) {
	c.syncs.Add(1)
	c.syncTime.Add(int64(took))
	c.syncMax.Store(max(c.syncMax.Load(), int64(took))) // one task syncs
	bucket := bits.Len64(uint64(max(took, 0)) / uint64(32*time.Microsecond))
	c.latency[min(bucket, SyncBuckets-1)].Add(1)
}

// Stats returns the numbers as they are now.
func (l *Log) Stats() Stats {
	c := &l.stats
	s := Stats{Entries: c.entries.Load(), Bytes: c.bytes.Load(), Syncs: c.syncs.Load(),
		SyncTime: time.Duration(c.syncTime.Load()), SyncMax: time.Duration(c.syncMax.Load()),
		Rotations: c.rotations.Load(), Truncations: c.truncations.Load(), Purged: c.purged.Load(),
		DiskReads: c.diskReads.Load(), Large: c.large.Load(), LargeCopied: c.largeCopied.Load()}
	for i := range c.latency {
		s.SyncLatency[i] = c.latency[i].Load()
	}
	if l.torn != nil {
		s.TornBytes = l.torn.Bytes
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	s.Version = l.files[len(l.files)-1].version
	s.Files = len(l.files)
	for _, f := range l.files {
		s.FileBytes += f.end
	}
	s.Cached = l.cache.bytes
	return s
}
