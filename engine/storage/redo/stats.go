package redo

import "sync/atomic"

type counters struct {
	writes, writeBytes, syncs, checkpoints atomic.Int64
	logWaits, admitWaits, flushWaits       atomic.Int64
}

// Stats is a snapshot of the log's state and counters since it was opened. The
// comments give the names that InnoDB has for them.
type Stats struct {
	CurrentLSN    uint64 // log_lsn_current
	PublishedLSN  uint64 // log_lsn_buf_dirty_pages_added
	WrittenLSN    uint64 // log_lsn_last_written
	FlushedLSN    uint64 // log_lsn_last_flush
	CheckpointLSN uint64 // log_lsn_last_checkpoint
	CheckpointAge int64  // log_lsn_checkpoint_age, bytes
	Capacity      int64  // innodb_redo_log_capacity, bytes
	Admitted      int64  // bytes admitted now

	Writes      int64 // log_writes: writes of log bytes to the file
	WriteBytes  int64 // os_log_bytes_written
	Syncs       int64 // os_log_fsyncs
	Checkpoints int64 // log_checkpoints
	LogWaits    int64 // log_waits: a group found the ring full
	AdmitWaits  int64 // a mini-transaction waited for a checkpoint
	FlushWaits  int64 // a FlushTo waited for another's
}

// Stats returns the state and the counters. They are read one by one, while the
// log goes on.
func (l *Log) Stats() Stats {
	s := Stats{
		CheckpointLSN: l.ckpt.Load(), FlushedLSN: l.flushed.Load(), WrittenLSN: l.written.Load(),
		PublishedLSN: l.published.Load(), CurrentLSN: l.current.Load(),
		Capacity: l.capacity.Load(), Admitted: l.admitted.Load(),
		Writes: l.stats.writes.Load(), WriteBytes: l.stats.writeBytes.Load(),
		Syncs: l.stats.syncs.Load(), Checkpoints: l.stats.checkpoints.Load(),
		LogWaits: l.stats.logWaits.Load(), AdmitWaits: l.stats.admitWaits.Load(), FlushWaits: l.stats.flushWaits.Load(),
	}
	s.CheckpointAge = int64(s.CurrentLSN - s.CheckpointLSN)
	return s
}

// Each calls f with every value under InnoDB's name, where it has one.
func (s Stats) Each(f func(name string, value int64)) {
	f("log_lsn_current", int64(s.CurrentLSN))
	f("log_lsn_buf_dirty_pages_added", int64(s.PublishedLSN))
	f("log_lsn_last_written", int64(s.WrittenLSN))
	f("log_lsn_last_flush", int64(s.FlushedLSN))
	f("log_lsn_last_checkpoint", int64(s.CheckpointLSN))
	f("log_lsn_checkpoint_age", s.CheckpointAge)
	f("log_capacity", s.Capacity)
	f("log_admitted", s.Admitted)
	f("log_writes", s.Writes)
	f("os_log_bytes_written", s.WriteBytes)
	f("os_log_fsyncs", s.Syncs)
	f("log_checkpoints", s.Checkpoints)
	f("log_waits", s.LogWaits)
	f("log_admit_waits", s.AdmitWaits)
	f("log_flush_waits", s.FlushWaits)
}
