package undo

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// Limits of Options.MaxStreams.
const (
	DefaultMaxStreams = 256
	MaxStreams        = 1024
)

// Options configure a manager. Pool and Spaces are required.
type Options struct {
	Pool *buffer.Pool
	// Spaces are the undo tablespaces, each prepared by [CreateSpace]. A roll
	// pointer names a tablespace by its place here, which therefore never changes.
	Spaces []*space.Space
	// MaxStreams bounds the transactions that can change rows at the same time;
	// 0 means [DefaultMaxStreams].
	MaxStreams int
	// OnCommitted, if set, is called by Open for every committed log that is not
	// purged, stream by stream, in commit order within a stream.
	OnCommitted func(trxID, csn uint64) error
}

// Manager owns the undo tablespaces. All methods are safe for concurrent use.
type Manager struct {
	pool    *buffer.Pool
	spaces  []*space.Space
	max     int
	history atomic.Int64
	running atomic.Int64 // pages that transactions which have not ended have taken

	mu      sync.Mutex // guards what follows and the fields of streams that say so
	streams []*stream
	made    int       // streams that exist or are being made
	aside   int       // of them, set aside
	free    []*stream // nobody's; the one used last is taken first
	idle    []bool    // by space: gets no new owners
	perDir  []int     // by space: streams
	heads   headHeap
	active  []*Log // found by Open
	mtrs    []*mtr.Mtr
	buffers [][]byte
}

// CreateSpace makes the directory of an undo tablespace that was just created.
//
// REQUIRES: m is the mini-transaction of its creation, or the space is empty.
func CreateSpace(m *mtr.Mtr, sp *space.Space) error {
	seg, err := sp.CreateSegment(m)
	if err != nil {
		return err
	}
	no, err := sp.AllocPage(m, seg, page.None)
	if err != nil {
		return err
	}
	if no != dirPage {
		return fmt.Errorf("undo: tablespace %d is not empty: its first free page is %d", sp.No(), no)
	}
	p, err := m.GetNew(sp.ID(no), page.TypeUndoHeader)
	if err != nil {
		return err
	}
	m.SetOwner(p, uint64(seg))
	m.Write(p, offDirMagic, []byte(dirMagic))
	return nil
}

// Acquire gives the caller a stream of its own and returns the empty log at its
// end. It may make a stream, in a mini-transaction of its own. beyond says that
// Options.MaxStreams is not for this caller: one that may not fail, of which there are
// few. Errors: [ErrTooManyTransactions], space.ErrNoSpace.
//
// REQUIRES: the task holds no latch and no writing mini-transaction.
func (u *Manager) Acquire(trxID uint64, beyond bool) (*Log, error) {
	u.mu.Lock()
	if s := u.takeFree(); s != nil {
		u.mu.Unlock()
		return s.log.begin(trxID), nil
	}
	sp := u.spaceForNew()
	if sp < 0 || !beyond && u.usable() >= u.max {
		u.mu.Unlock()
		return nil, ErrTooManyTransactions
	}
	u.made++
	u.perDir[sp]++
	u.mu.Unlock()
	s, err := u.createStream(sp)
	u.mu.Lock()
	if err != nil {
		u.made--
		u.perDir[sp]--
		u.mu.Unlock()
		return nil, err
	}
	s.number = len(u.streams)
	u.streams = append(u.streams, s)
	s.owned = true
	u.mu.Unlock()
	return s.log.begin(trxID), nil
}

// usable is the number of streams in tablespaces that are in use: those in one that is
// being emptied are for nobody.
func (u *Manager) usable() int {
	n := u.made - u.aside
	for i, idle := range u.idle {
		if idle {
			n -= u.perDir[i]
		}
	}
	return n
}

// takeFree takes a free stream of a tablespace that is in use.
func (u *Manager) takeFree() *stream {
	for i := len(u.free) - 1; i >= 0; i-- {
		if s := u.free[i]; !u.idle[s.index] {
			u.free = append(u.free[:i], u.free[i+1:]...)
			s.owned = true
			return s
		}
	}
	return nil
}

// spaceForNew picks the tablespace with the fewest streams, or -1.
func (u *Manager) spaceForNew() int {
	best := -1
	for i, n := range u.perDir {
		if !u.idle[i] && n < dirCapacity && (best < 0 || n < u.perDir[best]) {
			best = i
		}
	}
	return best
}

// Release gives the log's stream back after the transaction's end, and shows a
// committed log to purge.
//
// REQUIRES: the log is empty or committed; its commit's mini-transaction has
// committed; the task holds no latch.
func (u *Manager) Release(l *Log) {
	s := l.s
	if l.count != 0 && !l.committed {
		panic("undo: Release of a log that is neither committed nor rolled back")
	}
	if l.pages > 0 {
		u.running.Add(-l.pages)
		l.pages = 0
	}
	u.mu.Lock()
	s.tail = l.top
	if l.committed {
		if s.history++; s.history == 1 {
			s.next = l.head()
			u.heads.push(&s.next)
		}
		u.history.Add(1)
	}
	wasted := s.history == 0 && !s.purging && s.tail.page != s.home
	if wasted {
		s.purging = true
	} else {
		u.giveFree(s)
	}
	u.mu.Unlock()
	if wasted {
		// A failure leaves the stream as it was; what halted the engine shows elsewhere.
		_ = u.reset(s)
		u.mu.Lock()
		s.purging = false
		u.giveFree(s)
		u.mu.Unlock()
	}
}

func (u *Manager) giveFree(s *stream) {
	if s.owned = false; s.damaged {
		return
	}
	u.free = append(u.free, s)
}

// SetActive says whether the streams of the tablespace, by its place in
// Options.Spaces, get new owners. One that gets none is empty once purge is
// through, and can be shrunk (innodb_undo_log_truncate).
func (u *Manager) SetActive(space int, active bool) {
	u.mu.Lock()
	u.idle[space] = !active
	u.mu.Unlock()
}

// Resurrected returns the logs that Open found without a commit, in the order of
// tablespaces and streams. They are to be rolled back and released.
func (u *Manager) Resurrected() []*Log {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*Log(nil), u.active...)
}

// HistoryLen is the number of committed logs that are not purged.
func (u *Manager) HistoryLen() uint64 { return uint64(max(u.history.Load(), 0)) }

// OldestCommitted is the CSN of the oldest committed log that is not purged, of those that nobody is purging at the moment; ok is
// false if there is none.
func (u *Manager) OldestCommitted() (csn uint64, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.heads) == 0 {
		return 0, false
	}
	return u.heads[0].csn, true
}

// HistoryPages is how many pages committed logs that are not purged take, and streams without any: all that are in use but those of
// running transactions. A transaction that Open found counts as committed up to its end. Errors: those of reading.
//
// REQUIRES: the task holds no latch.
func (u *Manager) HistoryPages() (int64, error) {
	n := -u.running.Load()
	for _, sp := range u.spaces {
		st, err := sp.Stats()
		if err != nil {
			return 0, err
		}
		n += int64(st.Size - st.Free)
	}
	return max(n, 0), nil
}

// Damaged reports whether err says that a page of an undo tablespace is damaged.
func Damaged(err error) bool {
	var c *page.CorruptError
	return errors.As(err, &c) && !c.Newer && c.ID.Space >= space.FirstUndo
}

// Stats are sizes of the moment.
type Stats struct {
	Streams int    // in all
	Owned   int    // by a running transaction
	Aside   int    // set aside since a page is damaged
	History uint64 // committed logs that are not purged
}

// Stats returns the sizes of the moment.
func (u *Manager) Stats() Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	st := Stats{Streams: len(u.streams), Aside: u.aside, History: u.HistoryLen()}
	for _, s := range u.streams {
		if s.owned {
			st.Owned++
		}
	}
	return st
}

func (u *Manager) getMtr() *mtr.Mtr {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.mtrs); n > 0 {
		m := u.mtrs[n-1]
		u.mtrs = u.mtrs[:n-1]
		return m
	}
	return mtr.New(u.pool)
}

func (u *Manager) putMtr(m *mtr.Mtr) {
	u.mu.Lock()
	u.mtrs = append(u.mtrs, m)
	u.mu.Unlock()
}

// getBuffer returns a buffer of one page.
func (u *Manager) getBuffer() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.buffers); n > 0 {
		b := u.buffers[n-1]
		u.buffers = u.buffers[:n-1]
		return b
	}
	return make([]byte, page.Size)
}

func (u *Manager) putBuffer(b []byte) {
	u.mu.Lock()
	u.buffers = append(u.buffers, b)
	u.mu.Unlock()
}
