package bodies

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// staged is a body that is being received, or that was.
type staged struct {
	held
	w     *env.Mutex   // of its writer
	scan  body.Scanner // REQUIRES: w
	moved atomic.Int64 // bytes that came

	// Guarded by Store.mu.
	from   *source // whose stream writes it; nil: only a fetch does
	over   bool    // its leader has said that the transaction is over
	wanted bool    // it was fetched, and Raft has not been given its entry yet
	gone   bool    // it is not on the list any more
	told   having  // what its leader knows
}

// stagedOf returns a body that was received, or is being. REQUIRES: mu.
func (s *Store) stagedOf(id entry.StreamID) *staged {
	for _, st := range s.staged {
		if st.b.ID == id {
			return st
		}
	}
	return nil
}

// frames checks bytes that were written, and adds the frames that they complete. after
// returns the After of the i-th of them. Error: body.ErrCorrupt, errMalformed. REQUIRES: w.
func (st *staged) frames(p []byte, after func(i int) (uint64, bool)) error {
	for i := 0; len(p) > 0; {
		n, h, whole, err := st.scan.Next(p)
		if err != nil {
			return err
		}
		p = p[n:]
		if !whole {
			continue
		}
		a, ok := after(i)
		if !ok || st.b.Status().Frames >= maxFrames {
			return errMalformed
		}
		st.b.Added(h, a)
		i++
	}
	return nil
}

// finish makes a complete body durable; then it is here.
func (s *Store) finish(src *source, st *staged, l entry.LargeBody) {
	err := s.sync(&st.held)
	s.mu.Lock()
	if st.gone {
		s.mu.Unlock()
		return
	}
	if err != nil {
		s.mu.Unlock()
		_ = s.refuse(src, st, err)
		return
	}
	s.here(st, l)
	s.reportSoon(src)
	s.mu.Unlock()
	s.opt.OnHas(l)
}

// here notes that a body is whole. REQUIRES: mu.
func (s *Store) here(st *staged, l entry.LargeBody) {
	st.l, st.whole = l, true
	s.count.completed.Add(1)
	s.wake()
}

// syncSoon starts the task that syncs piecewise, if it does not run. REQUIRES: mu.
func (s *Store) syncSoon() {
	if !s.syncing {
		s.syncing = s.spawn("large sync", s.syncPieces)
	}
}

// syncPieces syncs what has many unsynced bytes, so that COMMIT has few left to sync.
func (s *Store) syncPieces() {
	for {
		s.mu.Lock()
		o, st := s.unsynced()
		if o == nil && st == nil || s.closed {
			s.syncing = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if o != nil {
			_ = s.sync(&o.held) // COMMIT says it
		} else if err := s.sync(&st.held); err != nil {
			s.lost(st, err)
		} else {
			s.mu.Lock()
			if st.from != nil {
				s.reportSoon(st.from)
			}
			s.mu.Unlock()
		}
	}
}

// unsynced returns the body with most bytes to sync, if they are enough. REQUIRES: mu.
func (s *Store) unsynced() (o *own, st *staged) {
	most := int64(0)
	left := func(b *body.File, every int64) bool {
		now := b.Status()
		n := now.Stored - now.Synced
		if now.State != body.Growing || n < every || n <= most {
			return false
		}
		most = n
		return true
	}
	for _, c := range s.staged {
		if left(c.b, syncEveryStaged) {
			st = c
		}
	}
	for _, c := range s.own {
		if c.failed == nil && left(c.b, syncEveryOwn) {
			o, st = c, nil
		}
	}
	return o, st
}

// lost drops a received body of which a sync may have lost something.
func (s *Store) lost(st *staged, err error) {
	s.mu.Lock()
	src, gone := st.from, st.gone
	if src == nil && !gone {
		s.remove(st) // a fetch begins again
	}
	s.mu.Unlock()
	if src != nil && !gone {
		_ = s.refuse(src, st, err)
	}
}

// reportSoon starts the task that tells a leader what is here, if it does not run.
// REQUIRES: mu.
func (s *Store) reportSoon(src *source) {
	if src != nil && !src.reporting && !s.stale(src) {
		src.reporting = s.spawn("large report", func() { s.report(src) })
	}
}

// report tells a leader what is here until it knows. If it does not answer, the next stream
// does that.
func (s *Store) report(src *source) {
	p := s.opt.Env.NewParker()
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		s.mu.Lock()
		r := s.reportFor(src)
		if len(r.have) == 0 || s.stale(src) || !src.running {
			src.reporting = false
			s.mu.Unlock()
			return
		}
		done := s.await(p) // Close ends the pause
		s.mu.Unlock()
		again, err := s.tell(src, &r)
		if err == nil && !again {
			s.noteTold(src, &r)
			pause = pauseMin
		} else if s.reopen(src, again) {
			p.Drain()
			p.ParkFor(pause)
		}
		done()
	}
}

func (s *Store) tell(src *source, r *report) (again bool, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	answer, err := s.opt.Transport.Ask(ctx, transport.Call{To: src.id.Member, Kind: askHave, Payload: r.append(nil), Timeout: askTimeout})
	return len(answer) > 0 && answer[0] != 0, err
}

// reopen ends the stream of a leader that does not know this process, and so does not know
// that it has one. It reports whether to go on.
func (s *Store) reopen(src *source, again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again && src.cancel != nil {
		src.cancel()
	}
	return !s.stale(src)
}

// reportFor collects what a leader does not know yet. REQUIRES: mu.
func (s *Store) reportFor(src *source) report {
	r := report{leader: src.id.Start, start: s.start}
	for _, st := range s.staged {
		if st.from != src || len(r.have) == maxListed {
			continue
		}
		h := having{st.b.ID.Number, st.b.Status().Synced, st.whole}
		if h.whole != st.told.whole || h.synced >= st.told.synced+syncEveryStaged || h.synced < st.told.synced {
			r.have = append(r.have, h)
		}
	}
	return r
}

func (s *Store) noteTold(src *source, r *report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.staged {
		i := slices.IndexFunc(r.have, func(h having) bool { return h.number == st.b.ID.Number })
		if st.from == src && i >= 0 {
			st.told = r.have[i]
		}
	}
}
