package group

import (
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/bodies"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/provision"
)

// Stats are a node's numbers: of the moment, and counters since it got its present
// data. The engine's own are Engine().Stats().
type Stats struct {
	Log     log.Stats
	Commit  commit.Counts
	Apply   apply.Stats
	Source  provision.SourceStats
	Lag     Lag // of this member, as far as it knows
	Cache   CacheStats
	Bodies  bodies.Status
	Dropped uint64 // messages that did not fit the inbox
	Direct  uint64 // entries that a session finished in place of the tasks
}

// CacheStats are numbers of the transactions' binlog caches.
type CacheStats struct{ Use, DiskUse, LargeUse, DiskBytes, Files int64 }

// Stats returns the node's numbers. Errors: as of Engine.
func (n *Node) Stats() (Stats, error) {
	c, err := n.running()
	if err != nil {
		return Stats{}, err
	}
	_, pos := c.engine.Applied()
	c.inbox.mu.Lock()
	dropped := c.inbox.dropped
	c.inbox.mu.Unlock()
	return Stats{Log: c.binlog.Stats(), Commit: c.pipeline.Counts(), Apply: c.applier.Stats(), Source: c.source.Stats(),
		Lag:   c.lag(pos.Index, c.committed.Load()),
		Cache: c.cacheStats(), Bodies: c.bodies.Status(), Dropped: dropped, Direct: c.finisher.direct.Load()}, nil
}

func (c *core) cacheStats() CacheStats {
	s := &c.sessions.CacheStats
	return CacheStats{Use: s.Use.Load(), DiskUse: s.DiskUse.Load(), LargeUse: s.LargeUse.Load(), DiskBytes: s.DiskBytes.Load(), Files: s.Files.Load()}
}

// Each calls fn with every number under its name in SHOW STATUS, in an order that does
// not change. docs/metrics.md explains them.
func (s *Stats) Each(fn func(name string, value int64)) {
	fn("Binlog_entries", s.Log.Entries)
	fn("Binlog_bytes_written", s.Log.Bytes)
	fn("Binlog_syncs", s.Log.Syncs)
	fn("Binlog_sync_time_us", s.Log.SyncTime.Microseconds())
	fn("Binlog_sync_time_max_us", s.Log.SyncMax.Microseconds())
	fn("Binlog_rotations", s.Log.Rotations)
	fn("Binlog_truncations", s.Log.Truncations)
	fn("Binlog_torn_bytes", s.Log.TornBytes)
	fn("Binlog_files_purged", s.Log.Purged)
	fn("Binlog_disk_reads", s.Log.DiskReads)
	fn("Binlog_format_version", int64(s.Log.Version))
	fn("Binlog_files", int64(s.Log.Files))
	fn("Binlog_file_bytes", s.Log.FileBytes)
	fn("Binlog_memory_bytes", s.Log.Cached)
	fn("Binlog_cache_use", s.Cache.Use)
	fn("Binlog_cache_disk_use", s.Cache.DiskUse)
	fn("Binlog_cache_disk_bytes", s.Cache.DiskBytes)
	fn("Binlog_cache_large_use", s.Cache.LargeUse)
	fn("Binlog_cache_files", s.Cache.Files)
	fn("Binlog_large_commits", int64(s.Commit.Large))
	fn("Binlog_large_copied", s.Log.LargeCopied)
	fn("Binlog_large_running", int64(len(s.Bodies.Streams)))
	fn("Binlog_large_oldest_ms", s.Bodies.Oldest.Milliseconds())
	fn("Binlog_large_waits", s.Bodies.Waiting)
	fn("Binlog_large_fetching", int64(s.Bodies.Fetching))
	fn("Binlog_large_bytes_sent", s.Bodies.Streamed)
	fn("Binlog_large_bytes_received", s.Bodies.Received)
	fn("Binlog_large_refetches", s.Bodies.Refetched)
	fn("Binlog_large_dropped", s.Bodies.Dropped)
	fn("Commit_transactions", int64(s.Commit.Transactions))
	fn("Commit_entries", int64(s.Commit.Entries))
	fn("Commit_entries_direct", int64(s.Direct))
	fn("Commit_rolled_back", int64(s.Commit.RolledBack))
	fn("Commit_refused", int64(s.Commit.Refused))
	fn("Commit_raw_bytes", int64(s.Commit.RawBytes))
	fn("Commit_stored_bytes", int64(s.Commit.StoredBytes))
	fn("Commit_entries_compressed", int64(s.Commit.Compressed))
	fn("Commit_entries_plain", int64(s.Commit.Plain))
	fn("Commit_entries_packed", int64(s.Commit.Packed))
	s.Apply.Each(fn)
	fn("Replica_lag_ms", s.Lag.millis())
	fn("Replica_lag_entries", s.Lag.Entries)
	fn("Replica_lag_bytes", s.Lag.Bytes)
	fn("Provision_snapshots_open", int64(s.Source.Snapshots))
	fn("Provision_streams_open", int64(s.Source.Streams))
	fn("Provision_snapshots_taken", s.Source.Taken)
	fn("Provision_snapshots_expired", s.Source.Expired)
	fn("Provision_rows_sent", s.Source.Rows)
	fn("Provision_raw_bytes", s.Source.RawBytes)
	fn("Provision_sent_bytes", s.Source.SentBytes)
	fn("Group_messages_dropped", int64(s.Dropped))
}
