package bodies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// fetch is a body that the log needs and that is not here. All fields but want, began and wake are
// guarded by Store.mu.
type fetch struct {
	want    entry.LargeBody
	began   time.Duration
	wake    env.Parker
	index   uint64
	from    []uint64
	over    bool
	running bool
	full    bool               // its last try found no space on the disk
	cancel  context.CancelFunc // of the stream that is being read
	heard   time.Duration      // when something came on it

	// Of the leader's stream, while the fetch waits for it. The task's own.
	seen  int64
	since time.Duration
}

// stop ends a fetch. REQUIRES: mu.
func (f *fetch) stop() {
	f.over = true
	if f.cancel != nil {
		f.cancel()
	}
	f.wake.Unpark()
}

// fetchOf returns the fetch of a body, or nil. REQUIRES: mu.
func (s *Store) fetchOf(id entry.StreamID) *fetch {
	for _, f := range s.fetches {
		if f.want.ID == id && !f.over {
			return f
		}
	}
	return nil
}

// Fetch begins to get a whole body from any of the members in turn, until it is here or
// CancelFetch is called; OnHas is called in the end, and OnMiss whenever none of them had it. index is that of the body's entry in
// the log. If the fetch is under way, it goes on with the members that are named now.
func (s *Store) Fetch(want *entry.LargeBody, index uint64, from []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds(want) != nil {
		l := *want
		s.spawn("large told", func() { s.opt.OnHas(l) })
		return
	}
	f := s.fetchOf(want.ID)
	if f != nil && !same(&f.want, want) {
		f.stop()
		f = nil
	}
	if f == nil {
		f = &fetch{want: *want, began: s.opt.Env.Monotonic(), wake: s.opt.Env.NewParker()}
		s.fetches = append(s.fetches, f)
	}
	f.index, f.from = index, slices.Clone(from)
	s.startFetches()
}

// CancelFetch ends Fetch: the log does not need the body any more. What was fetched and not
// pinned is not kept for the log.
func (s *Store) CancelFetch(want *entry.LargeBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.stagedOf(want.ID); st != nil && st.wanted {
		st.wanted = false
		s.outlived(st)
	}
	f := s.fetchOf(want.ID)
	if f == nil {
		return
	}
	f.stop()
	if !f.running {
		s.endFetch(f)
	}
}

// startFetches runs as many fetches as may be. REQUIRES: mu.
func (s *Store) startFetches() {
	running := 0
	for _, f := range s.fetches {
		if f.running {
			running++
		}
	}
	for _, f := range s.fetches {
		if running >= fetchesMax {
			return
		}
		if !f.running && !f.over {
			f.running = s.spawn("large fetch", func() { s.fetch(f) })
			running++
		}
	}
}

// endFetch takes a fetch off the list, and drops what it leaves unfinished. REQUIRES: mu.
func (s *Store) endFetch(f *fetch) {
	s.fetches = slices.DeleteFunc(s.fetches, func(g *fetch) bool { return g == f })
	st := s.stagedOf(f.want.ID)
	switch {
	case st == nil:
	case st.whole:
		st.wanted = !f.over
	case st.from == nil && s.needless(st):
		s.remove(st)
	}
	s.startFetches()
}

// fetch gets one body.
func (s *Store) fetch(f *fetch) {
	s.mu.Lock()
	done := s.await(f.wake)
	s.mu.Unlock()
	pause, said := pauseMin, map[uint64]string{}
	for try := 0; !s.fetched(f); {
		if s.coming(f) {
			f.wake.ParkFor(lookEvery)
			continue
		}
		holder, more := s.holder(f, try)
		err := s.fetchFrom(f, holder)
		s.noteFull(f, errors.Is(err, file.ErrNoSpace))
		if err == nil || s.fetched(f) {
			continue
		}
		s.count.refetched.Add(1)
		if text := err.Error(); text != said[holder] { // a full disk says the same many times
			said[holder] = text
			s.opt.Logger.Warn("the body of a large transaction was not fetched; it is tried again",
				"transaction", f.want.ID.String(), "from", holder, "error", err)
		}
		if try++; !more || errors.Is(err, transport.ErrClosed) {
			s.mu.Lock()
			index := f.index
			s.mu.Unlock()
			s.opt.OnMiss(index)
			s.rest(f, pause)
			pause = min(2*pause, pauseMax)
		}
	}
	done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endFetch(f)
}

// noteFull notes whether a fetch has found no space. What is here only early goes then: it must not keep from the disk what
// the log waits for.
func (s *Store) noteFull(f *fetch, full bool) {
	s.mu.Lock()
	f.full = full
	s.mu.Unlock()
	if full {
		s.GiveRoom()
	}
}

// Full reports whether a body that the log waits for finds no space on the disk.
func (s *Store) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.fetches, func(f *fetch) bool { return f.full && !f.over })
}

// rest waits until it is time to try again. A change elsewhere does not end it.
func (s *Store) rest(f *fetch, pause time.Duration) {
	e := s.opt.Env
	for end := e.Monotonic() + pause; e.Monotonic() < end && !s.fetched(f); {
		f.wake.ParkFor(end - e.Monotonic())
	}
}

// fetched reports whether a fetch is over.
func (s *Store) fetched(f *fetch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.over || s.closed || s.holds(&f.want) != nil
}

// coming reports whether a body comes by its leader's stream, or is being synced.
func (s *Store) coming(f *fetch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stagedOf(f.want.ID)
	if st == nil || st.whole {
		return false
	}
	if st.b.Status().State == body.Complete {
		return true // its task ends with the whole body, or without any
	}
	if st.from == nil || st.from != s.src || !s.src.running {
		return false
	}
	now := s.opt.Env.Monotonic()
	if n := st.moved.Load() + 1; n != f.seen {
		f.seen, f.since = n, now
	}
	return now-f.since < stallAfter
}

// holder returns the member to ask in a try, and whether there are others in this round.
func (s *Store) holder(f *fetch, try int) (member uint64, more bool) {
	s.mu.Lock()
	from := f.from
	s.mu.Unlock()
	if len(from) == 0 {
		from = s.opt.Members()
	}
	if len(from) == 0 {
		return 0, false
	}
	return from[try%len(from)], try%len(from) < len(from)-1
}

// errCut says that a holder's stream ended before the body did.
var errCut = errors.New("bodies: the stream of a body ended too early")

// fetchFrom gets what is missing of a body from one member.
func (s *Store) fetchFrom(f *fetch, holder uint64) error {
	if holder == 0 {
		return errors.New("bodies: no member is known to fetch from")
	}
	st, err := s.stage(f)
	if err != nil {
		return err
	}
	st.w.Lock() // the leader's stream may be in the middle of a message
	defer st.w.Unlock()
	if !st.b.Hold() {
		return errStale
	}
	defer st.b.Release()
	if st.b.Status().State != body.Growing {
		return errStale // that message was the last one
	}
	for {
		from := st.b.Status().Stored
		if err = s.pull(f, st, holder); err == nil {
			err = st.b.Matches(&f.want)
		}
		switch {
		case err == nil:
			return s.fetchedWhole(f, st)
		case !errors.Is(err, body.ErrCorrupt) && !errors.Is(err, errMalformed):
			return err
		}
		st.b.Truncate(0)
		if from == 0 {
			return err
		}
		// It may be what was here before that was wrong: the leader has cut it off since.
	}
}

// fetchedWhole makes a fetched body durable; then it is here. REQUIRES: st.w.
func (s *Store) fetchedWhole(f *fetch, st *staged) error {
	st.b.Finish()
	err := s.sync(&st.held)
	s.mu.Lock()
	if st.gone {
		s.mu.Unlock()
		return errStale
	}
	if err != nil {
		s.remove(st)
		s.mu.Unlock()
		return err
	}
	s.here(st, f.want)
	s.mu.Unlock()
	s.opt.OnHas(f.want)
	return nil
}

// stage returns the file that a fetch writes: what the leader's stream has left, or a new one.
func (s *Store) stage(f *fetch) (*staged, error) {
	take := func() *staged {
		st := s.stagedOf(f.want.ID)
		if st == nil {
			return nil
		}
		if st.from != nil {
			st.from.close(st.b.ID.Number)
			st.from = nil
		}
		if st.whole && !same(&st.l, &f.want) || st.b.Status().Stored > f.want.Stored {
			s.remove(st) // another body by the same name
			return nil
		}
		return st
	}
	s.mu.Lock()
	st := take()
	s.mu.Unlock()
	if st != nil {
		return st, nil
	}
	made, err := s.create(f.want.ID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st = take(); st != nil {
		s.removeFile(made.b)
		return st, nil
	}
	if s.src != nil && s.src.of(f.want.ID) {
		s.src.close(f.want.ID.Number)
	}
	s.staged = append(s.staged, made)
	return made, nil
}

// pull reads what is missing of a body. REQUIRES: st.w.
func (s *Store) pull(f *fetch, st *staged, holder uint64) error {
	now := st.b.Status()
	st.scan.Reset(now.Chain)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.mu.Lock()
	if f.over || s.closed {
		s.mu.Unlock()
		return errStale
	}
	f.cancel, f.heard = cancel, s.opt.Env.Monotonic()
	q := request{want: f.want, index: f.index, at: now.Stored}
	s.spawn("large watch", func() { s.watch(ctx, f, cancel) })
	s.mu.Unlock()
	r, err := s.opt.Transport.OpenBulk(ctx, transport.Call{To: holder, Kind: bulkBody, Payload: q.append(nil)})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for at := q.at; ; {
		chunk, err := r.Next()
		if err == io.EOF && at < f.want.Stored {
			err = errCut
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if int64(len(chunk)) > f.want.Stored-at {
			return fmt.Errorf("%w: a body of more than %d bytes", errMalformed, f.want.Stored)
		}
		if _, err := st.b.WriteAt(chunk, at); err != nil {
			return err
		}
		at += int64(len(chunk))
		s.count.received.Add(int64(len(chunk)))
		// Work ahead may be reading the file. When the leader closed a frame is not known here, but it was before the entry.
		if err := st.frames(chunk, func(int) (uint64, bool) { return max(q.index, 1) - 1, true }); err != nil {
			return err
		}
		s.arrived(f, st)
	}
}

// arrived notes that a fetch goes on.
func (s *Store) arrived(f *fetch, st *staged) {
	now := st.b.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	f.heard = s.opt.Env.Monotonic()
	if now.Stored-now.Synced >= syncEveryStaged {
		s.syncSoon()
	}
}

// watch gives up a holder that is silent, until its stream is over.
func (s *Store) watch(ctx context.Context, f *fetch, cancel context.CancelFunc) {
	p := s.opt.Env.NewParker()
	s.mu.Lock()
	defer s.await(p)()
	s.mu.Unlock()
	for ctx.Err() == nil {
		p.ParkFor(lookEvery)
		s.mu.Lock()
		if s.opt.Env.Monotonic()-f.heard >= silentAfter {
			cancel()
		}
		s.mu.Unlock()
	}
}

// serve answers a request large-body.
func (s *Store) serve(ctx context.Context, payload []byte, w transport.BulkWriter) error {
	q, err := parseRequest(payload)
	if err != nil {
		return err
	}
	r, done, err := s.open(&q)
	if err != nil {
		return err
	}
	defer done()
	buf := make([]byte, min(maxData, q.want.Stored-q.at))
	for at := q.at; at < q.want.Stored; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.ctx.Err() != nil {
			return ErrClosed
		}
		p := buf[:min(int64(len(buf)), q.want.Stored-at)]
		if _, err := r.ReadAt(p, at); err != nil {
			return fmt.Errorf("bodies: large transaction %v at %d: %w", q.want.ID, at, err)
		}
		if err := w.Send(p); err != nil {
			return err
		}
		at += int64(len(p))
		s.count.streamed.Add(int64(len(p)))
	}
	return nil
}

// open finds a body that somebody fetches, here or in the log. The receiver checks what it
// gets.
func (s *Store) open(q *request) (r io.ReaderAt, done func(), err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, ErrClosed
	}
	if h := s.holds(&q.want); h != nil && h.b.Hold() {
		s.mu.Unlock()
		return h.b, h.b.Release, nil
	}
	s.mu.Unlock()
	f, c, err := s.opt.Log(&q.want, q.index)
	if err != nil {
		return nil, nil, err
	}
	return bodyIn{f, int64(q.want.Offset)}, func() { _ = c.Close() }, nil
}

// bodyIn reads a body that lies at a place of a file.
type bodyIn struct {
	f  io.ReaderAt
	at int64
}

func (b bodyIn) ReadAt(p []byte, off int64) (int, error) { return b.f.ReadAt(p, b.at+off) }
