package txn

import (
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
)

// Watch notes which rows of a table transactions change, by their clustered keys, for who
// makes a copy of the table beside them. A round of it:
//
//	Cut            what has ended by now is set aside
//	a snapshot     of the table is taken
//	Changed        says which rows differ, or may, from the snapshot of the round before
//
// Invariants: what a transaction that is visible in the snapshot has changed is among
// Changed of that round, or of an earlier one since the transaction wrote it; what one
// that is not visible has changed is among those of the next round. Until Stop other
// changes of the table's definition wait.
type Watch struct {
	m     *Manager
	name  Name
	limit int64
	side  uint64 // of who watches

	mu    sync.Mutex
	under map[string]int      // by transactions that have not ended: how many times
	ended map[string]struct{} // by those that have, since Cut
	aside map[string]struct{} // and before it
	bytes int64
	over  bool
	lost  error // why it does not know of all changes
	done  bool  // Stop was called

	awaits *Watch // whose end who has this one waits for; guarded by Manager.mu
}

// watchedKey is a row that a transaction has changed.
type watchedKey struct {
	w   *Watch
	key string
}

// watchEntry is what a key takes besides its bytes, about.
const watchEntry = 64

// Watch begins to watch a table. limit is how many bytes of memory the keys may take. nil:
// somebody watches it already.
//
// REQUIRES: the session's transaction has the table for itself (LockDefinitions), so that
// every other one that uses it begins to do so later.
func (s *Session) Watch(schema, name string, limit int64) *Watch {
	w := &Watch{m: s.m, name: Name{schema, name}, limit: limit, side: s.side(),
		under: map[string]int{}, ended: map[string]struct{}{}, aside: map[string]struct{}{}}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.m.watches[w.name] != nil {
		return nil
	}
	s.m.watches[w.name] = w
	s.m.watched.Store(true)
	return w
}

// Stop ends it. Stopping again does nothing.
func (w *Watch) Stop() {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.m.watches[w.name] == w {
		delete(w.m.watches, w.name)
		w.m.watched.Store(len(w.m.watches) > 0)
	}
	w.mu.Lock()
	w.done = true
	w.forget()
	w.mu.Unlock()
}

// forget gives up what was noted, of a watch that notes nothing any more.
//
// REQUIRES: mu.
func (w *Watch) forget() { w.under, w.ended, w.aside, w.bytes = nil, nil, nil, 0 }

// closed reports whether it notes nothing any more: it knows too much, or not all, or is over.
//
// REQUIRES: mu.
func (w *Watch) closed() bool { return w.over || w.done || w.lost != nil }

// watching returns who watches a table, or, of a schema, one of its tables; or nil.
func (m *Manager) watching(n Name) *Watch {
	if !m.watched.Load() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n.Table != "" {
		return m.watches[n]
	}
	for of, w := range m.watches { // any one
		if of.Schema == n.Schema {
			return w
		}
	}
	return nil
}

// Cut begins a round, before its snapshot is taken.
func (w *Watch) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed() {
		return
	}
	for k := range w.ended {
		if _, there := w.aside[k]; there {
			w.bytes -= int64(len(k)) + watchEntry
		}
		w.aside[k] = struct{}{}
	}
	clear(w.ended)
}

// Changed returns the keys of a round in their order. Error 1799: they were more than the
// limit allows. The reason of Manager.Suspend: this node has stopped writing since the
// watch began, and who wrote instead has not said what.
func (w *Watch) Changed() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.err(); err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(w.aside)+len(w.ended)+len(w.under))
	for k := range w.aside {
		keys = append(keys, k)
		w.bytes -= int64(len(k)) + watchEntry
	}
	for k := range w.ended {
		keys = append(keys, k)
	}
	for k := range w.under {
		keys = append(keys, k)
	}
	w.aside = map[string]struct{}{}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// Waiting is how many keys the next round would have, about.
func (w *Watch) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.aside) + len(w.ended) + len(w.under)
}

// wrote notes that a transaction changes the row with the key, and reports whether it has: not if the
// watch is of no more use.
func (w *Watch) wrote(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed() {
		return false
	}
	w.under[key]++
	w.account(key) // each time: the transaction keeps it as often
	return !w.over
}

// account counts a key that is noted.
//
// REQUIRES: mu.
func (w *Watch) account(key string) {
	if w.bytes += int64(len(key)) + watchEntry; w.bytes > w.limit {
		w.over = true
		w.forget()
	}
}

// end notes that a transaction that has changed the row is committed, and visible, or
// rolled back.
func (w *Watch) end(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed() {
		return
	}
	if _, there := w.ended[key]; !there {
		w.ended[key] = struct{}{}
		if w.account(key); w.over {
			return
		}
	}
	w.bytes -= int64(len(key)) + watchEntry
	if w.under[key]--; w.under[key] <= 0 {
		delete(w.under, key)
	}
}

// watch notes a change of a row for who watches the table, as long as that is of use to him: each change takes
// memory here until the transaction ends.
func (t *Txn) watch(o *Table, key []byte) {
	k := watchedKey{o.watch, string(key)}
	if k.w.wrote(k.key) {
		t.watchedKeys = append(t.watchedKeys, k)
		return
	}
	o.watch = nil
	if t.watchedKeys = slices.DeleteFunc(t.watchedKeys, func(x watchedKey) bool { return x.w == k.w }); len(t.watchedKeys) == 0 {
		t.watchedKeys = nil
	}
}

// endWatched tells those who watch that the transaction has ended. Its metadata locks go
// only after that.
func (t *Txn) endWatched() {
	for _, k := range t.watchedKeys {
		k.w.end(k.key)
	}
	t.watchedKeys = nil
}

// LockWatched keeps everybody else from using the table, as LockDefinitions does, for who
// watches it: to make the last round and to change the definition. more are other names that the
// change will need: while it waits for one of them that is watched it has no table for itself.
// Errors: 1205, 1213 where two that watch wait for each other, 1317.
func (s *Session) LockWatched(w *Watch, more ...Name) error {
	t, err := s.enterToWrite(nil, true)
	if err != nil {
		return err
	}
	t.owns = w
	return s.leave(t.lockNames(tableLocks(append(more, w.name)...)))
}

// AwaitUnwatched waits until nobody watches a table, or of a schema any table, whose definition
// is to be changed. Who looks at the definition before it locks it calls this first. Errors: 1205,
// 1317, *WatchedError.
func (s *Session) AwaitUnwatched(n Name) error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	return s.leave(t.m.unwatched(&t.locks, t.owns, n, t.metadataWait))
}

// WatchedError says that a definition cannot be changed as long as somebody watches the table,
// and that the transaction has locks with which it cannot wait: they may be what who watches,
// or who uses the table, waits for. It is to be rolled back, and tried again after AwaitUnwatched. LockTables
// waits with what its session has locked before, which it cannot give back, and looks whether it is waited for.
type WatchedError struct{ Name Name }

func (e *WatchedError) Error() string { return "txn: " + e.Name.String() + " is being rebuilt" }

// unwatched waits until nobody else watches a table: a request for a metadata lock would
// keep all from using it meanwhile. Errors: as of AwaitUnwatched; 1213 for who watches a table, and
// has it for itself or is waited for by the other, and where who watches waits for who waits here, whose session has locked something
// over its transactions.
func (m *Manager) unwatched(o *metadataOwner, owns *Watch, n Name, limit time.Duration) error {
	e := m.opt.Env
	deadline := e.Monotonic() + limit
	defer m.notWaiting(owns)
	defer o.unwatched.Store(false)
	for {
		switch w := m.watching(n); {
		case w == nil || w == owns:
			return nil
		case owns == nil && !o.lasting && len(o.tickets) > 0:
			return &WatchedError{n}
		case owns != nil && (o.holds(owns.name, Exclusive) || !m.mayAwait(owns, w)):
			return lock.ErrDeadlock
		case o.interrupted.Load():
			return lock.ErrInterrupted
		case e.Monotonic() >= deadline:
			return lock.ErrTimeout
		case m.locks.waitsFor(w.side, o):
			return lock.ErrDeadlock
		}
		o.unwatched.Store(true)
		env.Sleep(e, watchPoll)
	}
}

// mayAwait notes that who watches a table waits for one that another watches, unless
// that one waits for the first.
func (m *Manager) mayAwait(own, other *Watch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := other; w != nil; w = w.awaits {
		if w == own {
			return false
		}
	}
	own.awaits = other
	return true
}

// notWaiting is the end of what mayAwait has noted, if w is not nil.
func (m *Manager) notWaiting(w *Watch) {
	if w != nil {
		m.mu.Lock()
		w.awaits = nil
		m.mu.Unlock()
	}
}

// watchedBeside reports whether somebody who does not own owns watches one of the tables that are locked to be changed.
func (m *Manager) watchedBeside(owns *Watch, locks []lockWanted) bool {
	for _, l := range locks {
		if l.mode == Exclusive {
			if w := m.watching(l.name); w != nil && w != owns {
				return true
			}
		}
	}
	return false
}

// loseWatches ends what watches note: this node stops writing, and what others write from now on
// no session of it will say.
func (m *Manager) loseWatches(reason error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.watches {
		w.mu.Lock()
		w.lost = reason
		w.forget()
		w.mu.Unlock()
	}
}

// Err is why the watch does not know all changes, or nil: the reason of Manager.Suspend, 1799.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err()
}

func (w *Watch) err() error {
	switch {
	case w.lost != nil:
		return w.lost
	case w.over:
		return sqlerr.Newf(sqlerr.InnoDBOnlineLogTooBig, "The table was changed so much while it was copied that the "+
			"changes take more than 'innodb_online_alter_log_max_size' bytes of memory. Set it higher, or try again "+
			"when less is written.")
	}
	return nil
}

// watchPoll is how often who waits for a watch to end looks whether it has.
const watchPoll = 20 * time.Millisecond
