package session

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/trx"
)

const (
	// historyModest is what the undo of committed transactions may take however little the disk has left, where no limit is set.
	historyModest = 64 << 20
	// snapshotGrace is how old the transaction of a snapshot that is ended is at least: short ones, which end by
	// themselves, would be ended for what others have left to purge.
	snapshotGrace = 10 * time.Second
	// endTime is how long a look that has ended a snapshot goes on looking, since the next one may hold back as much, and endPause the time
	// that purge gets in between.
	endTime  = time.Second
	endPause = 10 * time.Millisecond
)

// historyLeast is the least value of trireme_undo_history_space: the undo streams' own pages count.
const historyLeast = 16 << 20

// checkHistorySpace wants no limit, or one that is not met by undo that nobody holds back.
func checkHistorySpace(_ *Session, x *varValue) error {
	if x.n != 0 && x.n < historyLeast {
		return sqlerr.Newf(sqlerr.WrongValueForVar, "Variable 'trireme_undo_history_space' can't be set to the value "+
			"of '%d': it must be 0 or at least %d", x.n, historyLeast)
	}
	return nil
}

// history is what the manager knows of the undo that snapshots hold back. Its fields but held are read by any task.
type history struct {
	bytes, limit atomic.Int64
	ended        atomic.Uint64
	held         uint64 // the snapshot that kept purge from going on at the last look; 0: none
}

// History is the undo of committed transactions that the node keeps, as of the last [Manager.LimitHistory].
type History struct {
	Bytes int64
	Limit int64  // above which the snapshot that holds it back is ended; 0: it is not known yet
	Ended uint64 // snapshots that were
}

// History returns what the last look has found.
func (m *Manager) History() History {
	return History{Bytes: m.history.bytes.Load(), Limit: m.history.limit.Load(), Ended: m.history.ended.Load()}
}

// EndedSnapshot is one that LimitHistory has ended.
type EndedSnapshot struct {
	Session    uint64
	User, Host string
	Age        time.Duration // of its transaction
	// Bytes is how much undo there was, Limit how much there may be.
	Bytes, Limit int64
}

// LimitHistory ends the oldest snapshot if that is a session's, keeps purge from going on, and the undo of committed transactions
// takes more than it may (trireme_undo_history_space): plain reads of its transaction fail with error 1412 from then on. Then it does the same with the next
// one, when purge is through with what the first had held back, and returns after a second, so that many forgotten sessions hold up purge no longer than
// one. It is to be called about once a second, by one task at a time; for the first it takes two calls that find the same.
//
// Snapshots of backups, and of definitions' changes, are not ended: they have an end.
func (m *Manager) LimitHistory() (ended []EndedSnapshot, err error) {
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return nil, err
	}
	for until := m.env.Monotonic() + endTime; ; env.Sleep(m.env, endPause) {
		h, err := eng.History()
		if err != nil {
			return ended, err
		}
		limit := m.historyLimit(h.Bytes)
		m.history.bytes.Store(h.Bytes)
		m.history.limit.Store(limit)
		again := h.Held != 0 && h.Held == m.history.held
		m.history.held = h.Held
		if again && limit > 0 && h.Bytes > limit {
			e, ok := m.endOldest(h)
			if !ok {
				return ended, nil
			}
			ended = append(ended, e)
			m.history.ended.Add(1)
			eng.Purge.Wake()
		}
		if len(ended) == 0 || h.Bytes <= limit || m.env.Monotonic() > until {
			return ended, nil
		}
	}
}

// historyLimit is how much of the disk the undo of committed transactions, which takes that many bytes now, may take; 0: nobody knows.
func (m *Manager) historyLimit(bytes int64) int64 {
	if n := m.global(variables["trireme_undo_history_space"]).n; n != 0 {
		return int64(n)
	}
	if m.opt.DiskSpace == nil {
		return 0
	}
	total, free := m.opt.DiskSpace()
	if total == 0 {
		return 0
	}
	return max(historyModest, (bytes+int64(free)-temptable.Reserve(total))/2)
}

// endOldest ends the snapshot that holds purge back, if it is a session's, and its transaction no short one.
func (m *Manager) endOldest(h storage.History) (EndedSnapshot, bool) {
	for _, s := range m.all() {
		s.mu.Lock()
		t := s.txn
		s.mu.Unlock()
		if t == nil || s.defines.Load() {
			continue
		}
		held, began, open := t.Holds()
		age := m.env.Monotonic() - began
		if !open || held != h.Held || age < snapshotGrace {
			continue
		}
		reason := fmt.Errorf("%w: the transaction's snapshot was ended after %d seconds, since the %d bytes of old row versions that it held back were more than the disk has room for (trireme_undo_history_space); begin it again",
			trx.ErrSnapshotTooOld, int(age.Seconds()), h.Bytes)
		if t.EndSnapshot(h.Held, reason) {
			info := s.whose()
			return EndedSnapshot{Session: s.id, User: info.User, Host: info.Host, Age: age, Bytes: h.Bytes, Limit: m.history.limit.Load()}, true
		}
	}
	return EndedSnapshot{}, false
}
