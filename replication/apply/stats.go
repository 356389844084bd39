package apply

// counts are guarded by Applier.mu.
type counts struct {
	pending      int64 // transactions
	transactions uint64
	rows         uint64
	commits      uint64
	memoryWaits  uint64
	fullWaits    uint64
	indexes      uint64
	indexWaits   uint64

	aheadRows         uint64
	aheadTransactions uint64
	aheadDropped      uint64

	lastTime   int64
	leaderTime int64
}

// Stats are an applier's numbers of the moment. Times are the leader's, in
// microseconds since 1970.
type Stats struct {
	State State

	AppliedIndex  uint64
	AppliedNumber uint64
	// LastTime is when the leader committed the last transaction applied.
	LastTime int64
	// LeaderTime is when the leader made the last entry applied, marks included: how
	// far behind this member is, on the leader's clock, even if nothing is written.
	LeaderTime int64

	PendingEntries      int64 // submitted and not applied
	PendingBytes        int64 // memory that they count for
	PendingTransactions int64

	Transactions uint64 // applied
	Rows         uint64 // changed by them
	Commits      uint64 // groups
	MemoryWaits  uint64 // times that Submit had to wait
	SpaceWaits   uint64 // times that the disk was full
	Indexes      uint64 // filled beside other changes
	IndexWaits   uint64 // publications of indexes that were not filled by then

	AheadRows         uint64 // changed ahead, whatever became of them
	AheadTransactions uint64 // large ones that were applied ahead when they were committed
	AheadDropped      uint64 // work ahead that was taken back
}

// Stats returns the applier's numbers.
func (a *Applier) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.stats
	return Stats{
		State: a.state, AppliedIndex: a.pos.Index, AppliedNumber: a.committed, LastTime: c.lastTime, LeaderTime: c.leaderTime,
		PendingEntries: int64(len(a.queue) - a.head), PendingBytes: a.bytes, PendingTransactions: c.pending,
		Transactions: c.transactions, Rows: c.rows, Commits: c.commits, MemoryWaits: c.memoryWaits, SpaceWaits: c.fullWaits,
		Indexes: c.indexes, IndexWaits: c.indexWaits,
		AheadRows: c.aheadRows, AheadTransactions: c.aheadTransactions, AheadDropped: c.aheadDropped,
	}
}

// Each calls fn with every number that is a count, in an order that does not change.
func (s *Stats) Each(fn func(name string, value int64)) {
	fn("Replica_applier_state", int64(s.State))
	fn("Replica_applied_index", int64(s.AppliedIndex))
	fn("Replica_applied_number", int64(s.AppliedNumber))
	fn("Replica_pending_entries", s.PendingEntries)
	fn("Replica_pending_bytes", s.PendingBytes)
	fn("Replica_pending_transactions", s.PendingTransactions)
	fn("Replica_transactions_applied", int64(s.Transactions))
	fn("Replica_rows_applied", int64(s.Rows))
	fn("Replica_commit_groups", int64(s.Commits))
	fn("Replica_waits_for_memory", int64(s.MemoryWaits))
	fn("Replica_waits_for_disk_space", int64(s.SpaceWaits))
	fn("Replica_indexes_filled", int64(s.Indexes))
	fn("Replica_waits_for_index", int64(s.IndexWaits))
	fn("Replica_ahead_rows", int64(s.AheadRows))
	fn("Replica_ahead_transactions", int64(s.AheadTransactions))
	fn("Replica_ahead_dropped", int64(s.AheadDropped))
}
