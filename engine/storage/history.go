package storage

import "github.com/triremedb/trireme/engine/storage/page"

// History is the undo of committed transactions: what snapshots read old versions of rows from until purge takes it away.
type History struct {
	Bytes int64 // that it takes in the undo tablespaces
	// Held is the oldest snapshot's CSN, if that snapshot is what keeps purge from going on; 0: purge has work, or there is
	// nothing for it.
	Held uint64
}

// History looks at the undo of committed transactions. Errors: those of reading, [ErrClosed].
func (e *Engine) History() (History, error) {
	if err := e.Tables.Enter(); err != nil {
		return History{}, err
	}
	defer e.Tables.Leave()
	pages, err := e.Trx.Undo().HistoryPages()
	if err != nil {
		return History{}, err
	}
	h := History{Bytes: pages * page.Size}
	// The oldest snapshot first: one that closes meanwhile lets purge go on, which then has a log at or below what was read here.
	snapshot := e.Trx.OldestSnapshot()
	if oldest, ok := e.Trx.Undo().OldestCommitted(); ok && oldest > snapshot {
		h.Held = snapshot
	}
	return h, nil
}
