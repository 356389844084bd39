package bodies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Store holds the bodies that are not in the log yet. All methods are safe for concurrent
// use.
//
// mu guards memory only: nothing is read, written, sent or called back while it is held. It
// is taken before that of a body.File.
type Store struct {
	opt    Options
	start  uint64 // names this process
	tasks  *env.Group
	ctx    context.Context // of everything that waits for others
	cancel context.CancelFunc
	count  counters

	mu      sync.Mutex
	closed  bool
	waiters []env.Parker // of those that wait for any change
	syncing bool         // the task of syncPieces runs
	taken   []entry.StreamID
	unused  []*body.File // to be closed, if there are no tasks any more
	room    room

	// On the leader.
	number    uint64 // of the newest stream
	resigned  uint64 // streams of this term and of older ones are not waited for
	own       []*own // in the order of their numbers
	senders   []*sender
	known     []known
	offering  bool // the task of offers runs
	offerWake env.Parker
	asking    []uint64 // members that are being told of streams

	// On other members.
	floor   uint64 // streams of older terms are dead
	src     *source
	staged  []*staged // in the order in which they began
	fetches []*fetch
}

// held is a body that is here.
type held struct {
	b      *body.File
	l      entry.LargeBody // what it is, if whole
	began  time.Duration   // when the transaction did; elsewhere than on its leader, when this file was made
	whole  bool            // complete, verified and synced
	pinned bool            // Raft has been given its entry
	taking bool            // the log is about to rename it

	syncs  *env.Mutex // of whoever syncs the file, until the result is noted
	failed error      // what has lost something of the file, or cannot read it: it stays
}

// newHeld returns a body that nothing is known of.
func (s *Store) newHeld(b *body.File, began time.Duration) held {
	return held{b: b, began: began, syncs: env.NewMutex(s.opt.Env)}
}

// sync makes durable what was written to a body before. A system tells of what it could not write only once, so
// syncs come one after the other, and each fails that comes after one that has.
func (s *Store) sync(h *held) error {
	h.syncs.Lock()
	defer h.syncs.Unlock()
	s.mu.Lock()
	whole, err := h.whole, h.failed
	s.mu.Unlock()
	if whole || err != nil {
		return err
	}
	if !h.b.Hold() { // nor is it closed while its sync waits for the disk
		return ErrOver
	}
	defer h.b.Release()
	if err = h.b.Sync(); err != nil {
		s.fail(h, err)
	}
	return err
}

// fail notes that a body is not to be relied on.
func (s *Store) fail(h *held, err error) {
	s.mu.Lock()
	first := h.failed == nil
	if first {
		h.failed = err
	}
	s.wake()
	s.mu.Unlock()
	if first {
		s.opt.Logger.Error("the file of a large transaction cannot be relied on", "transaction", h.b.ID.String(), "file", h.b.Name, "error", err)
	}
}

// New returns an empty store.
func New(opt Options) *Store {
	opt.fill()
	s := &Store{opt: opt, start: opt.Env.Uint64(), tasks: env.NewGroup(opt.Env), offerWake: opt.Env.NewParker()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends all tasks of the store, and what waits in it. Files stay: the next start
// removes them. Calls of HandleBulk end at their next message. Sessions that are not over
// may still call End.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	s.wake()
	s.wakeSenders()
	s.offerWake.Unpark()
	if s.src != nil {
		s.src.stop()
	}
	for _, f := range s.fetches {
		f.stop()
	}
	s.mu.Unlock()
	s.tasks.Wait()
	s.mu.Lock()
	staged := s.staged
	s.staged = nil
	s.mu.Unlock()
	for _, st := range staged {
		_ = st.b.Close() // what was to be durable is
	}
	s.closeUnused()
}

// spawn runs a task of the store, unless it is closed. REQUIRES: mu.
func (s *Store) spawn(name string, fn func()) bool {
	if s.closed {
		return false
	}
	s.tasks.Go(name, fn)
	return true
}

// wake tells those that wait that something has changed. REQUIRES: mu.
func (s *Store) wake() {
	for _, p := range s.waiters {
		p.Unpark()
	}
}

// await registers a parker for wake, until the returned function is called. REQUIRES: mu.
func (s *Store) await(p env.Parker) (done func()) {
	s.waiters = append(s.waiters, p)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiters = slices.DeleteFunc(s.waiters, func(q env.Parker) bool { return p == q })
	}
}

// find returns the body with an id of which something is true, or nil. A former leader may have two: what its session
// wrote, and what was fetched after that was lost or its file was taken. REQUIRES: mu.
func (s *Store) find(id entry.StreamID, is func(*held) bool) *held {
	if o := s.ownOf(id); o != nil && (!o.over || o.ours) && is(&o.held) {
		return &o.held
	}
	if st := s.stagedOf(id); st != nil && is(&st.held) {
		return &st.held
	}
	return nil
}

// same reports whether two descriptions are of the same bytes. Where they lie does not matter.
func same(a, b *entry.LargeBody) bool {
	c := *a
	c.Offset = b.Offset
	return c == *b
}

// holds returns the body that is wanted if all of it is here. REQUIRES: mu.
func (s *Store) holds(want *entry.LargeBody) *held {
	return s.find(want.ID, func(h *held) bool {
		// What Raft has been given was synced then.
		return h.whole && same(&h.l, want) && (h.failed == nil || h.pinned)
	})
}

// Has reports whether the whole body is here, verified and synced.
func (s *Store) Has(want *entry.LargeBody) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds(want) != nil
}

// Pin keeps a body that Has reports until Taken or Unpin: Raft is given its entry. It
// reports false if the body is not here. That of a session's transaction is the store's from
// then on, which its State tells the session: Taken.
func (s *Store) Pin(want *entry.LargeBody) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pin(want) != nil
}

// pin is Pin. REQUIRES: mu.
func (s *Store) pin(want *entry.LargeBody) *held {
	h := s.holds(want)
	if h == nil {
		return nil
	}
	h.pinned = true
	if o := s.ownOf(want.ID); o != nil && h == &o.held && !o.over {
		o.over, o.ours = true, true
		o.b.End(body.Taken)
	}
	return h
}

// Unpin ends Pin: the body's entry was refused, or the log has a copy of the body. What
// nobody else needs is removed.
func (s *Store) Unpin(want *entry.LargeBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.ownOf(want.ID); o != nil {
		o.pinned = false
		if o.ours && !o.moved && !o.taking {
			o.whole = false
			s.wakeSenders() // they tell it; to the session it stays Taken
		}
		s.settle(o)
	}
	if st := s.stagedOf(want.ID); st != nil {
		st.pinned, st.wanted = false, false
		s.outlived(st)
	}
}

// Take returns the name of the file with a body, for the log to rename, and pins it. Until
// Taken the file stays as it is. Error: Options.ErrNoBody.
func (s *Store) Take(want *entry.LargeBody) (name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.pin(want)
	if h == nil {
		return "", fmt.Errorf("bodies: the body of large transaction %v: %w", want.ID, s.opt.ErrNoBody)
	}
	h.taking = true
	return h.b.Name, nil
}

// Taken ends Take. moved says that the body is in the log, and that no file has the name any
// more; else it stays pinned.
func (s *Store) Taken(want *entry.LargeBody, moved bool) {
	s.mu.Lock()
	h := s.find(want.ID, func(h *held) bool { return h.taking })
	if h == nil {
		s.mu.Unlock()
		return
	}
	h.taking = false
	if !moved {
		s.mu.Unlock()
		return
	}
	h.pinned = false
	h.b.End(body.Taken)
	s.noteTaken(want.ID)
	st := s.stagedOf(want.ID)
	if st != nil && h == &st.held {
		s.forget(st)
	} else {
		st = nil
		o := s.ownOf(want.ID)
		o.moved, o.whole = true, false // the log may lose the entry and get it once more
		s.settle(o)
	}
	s.wakeSenders()
	s.wake()
	s.mu.Unlock()
	if st != nil {
		_ = st.b.Close() // the log has synced it
	}
}

// noteTaken remembers that a stream is in the log, so that it does not begin again.
// REQUIRES: mu.
func (s *Store) noteTaken(id entry.StreamID) {
	if len(s.taken) == takenKept {
		s.taken = slices.Delete(s.taken, 0, 1)
	}
	s.taken = append(s.taken, id)
	if f := s.fetchOf(id); f != nil {
		f.stop() // what it waits for has come otherwise
		if !f.running {
			s.endFetch(f)
		}
	}
	if s.src != nil && s.src.of(id) {
		s.src.close(id.Number)
	}
}

// DropBefore removes what leaders of terms before this one have sent and Raft has not been
// given, and takes no more of it. A body that Fetch was asked for stays.
//
// A new leader may have an entry of an older term in its log, whose body is here: the call is
// best made when this member's log has the first entry of the new term.
func (s *Store) DropBefore(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if term <= s.floor {
		return
	}
	s.floor = term
	if s.src != nil && s.src.id.Term < term {
		s.src.stop()
		s.src = nil
	}
	for _, st := range slices.Clone(s.staged) {
		if st.b.ID.Term < term && s.needless(st) {
			s.remove(st)
		}
	}
	s.wakeSenders()
}

// outlived removes a body that was only kept, or fetched, for the log. REQUIRES: mu.
func (s *Store) outlived(st *staged) {
	if (st.over || st.from == nil || st.b.ID.Term < s.floor) && s.needless(st) {
		s.remove(st)
	}
}

// needless reports whether nobody but its leader may need a body. REQUIRES: mu.
func (s *Store) needless(st *staged) bool {
	return !st.pinned && !st.taking && !st.wanted && s.fetchOf(st.b.ID) == nil
}

// forget takes a body off the list. REQUIRES: mu.
func (s *Store) forget(st *staged) {
	s.staged = slices.DeleteFunc(s.staged, func(o *staged) bool { return o == st })
	st.gone = true
}

// remove drops a body and its file. REQUIRES: mu.
func (s *Store) remove(st *staged) {
	if st.gone {
		return
	}
	s.forget(st)
	st.b.End(body.Dropped)
	s.count.dropped.Add(1)
	s.removeFile(st.b)
}

// removeFile closes and removes a file, by a task: to give back the space of a large one
// takes long. REQUIRES: mu.
func (s *Store) removeFile(b *body.File) {
	removed := s.spawn("large remove", func() {
		err := errors.Join(b.Close(), s.opt.FS.Remove(b.Name))
		if err != nil {
			s.opt.Logger.Warn("the file of a large transaction was not removed", "file", b.Name, "error", err)
		}
		s.mu.Lock()
		s.room.removals--
		s.mu.Unlock()
	})
	if removed {
		s.room.removals++
	} else {
		s.unused = append(s.unused, b)
	}
}

// closeFile closes a file, by a task. REQUIRES: mu.
func (s *Store) closeFile(b *body.File) {
	if !s.spawn("large close", func() { _ = b.Close() }) { // nothing is written any more
		s.unused = append(s.unused, b)
	}
}

// closeUnused closes the files that no task will.
func (s *Store) closeUnused() {
	s.mu.Lock()
	unused := s.unused
	s.unused = nil
	s.mu.Unlock()
	for _, b := range unused {
		_ = b.Close()
	}
}

// create makes a file for a body that is to come.
func (s *Store) create(id entry.StreamID) (*staged, error) {
	err := s.opt.FS.MkdirAll(s.opt.Dir)
	if err != nil {
		return nil, err
	}
	for range namesTried {
		var f file.File
		name := path.Join(s.opt.Dir, fmt.Sprintf("%s%016x", filePrefix, s.opt.Env.Uint64()))
		if f, err = s.opt.FS.Open(name, file.OpenOptions{Exclusive: true}); err == nil {
			return &staged{held: s.newHeld(body.NewFile(id, name, f), s.opt.Env.Monotonic()), w: env.NewMutex(s.opt.Env)}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return nil, err
}
