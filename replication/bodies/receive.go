package bodies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// source is a leader's process in a term: where streams come from. All fields but id and
// wake are guarded by Store.mu.
type source struct {
	id        entry.StreamID // without a number
	wake      env.Parker
	cancel    context.CancelFunc // of the stream that is being read
	over      bool
	running   bool           // a task reads, or is about to
	reporting bool           // another one reports
	oldest    uint64         // streams with lesser numbers are over
	closed    []uint64       // numbers from oldest on that are over; rising, the last closedKept
	refused   []uint64       // that the leader may ask for; the newest refusal last
	tries     map[uint64]int // to receive a stream
}

// of reports whether a stream comes from here.
func (src *source) of(id entry.StreamID) bool {
	id.Number = 0
	return src.id == id
}

// stop ends the task that reads. REQUIRES: mu.
func (src *source) stop() {
	src.over = true
	if src.cancel != nil {
		src.cancel()
	}
	src.wake.Unpark()
}

// close says that a stream is over, or not wanted for good: what still comes of it is ignored. One that ended long ago
// is forgotten, however long an older one runs: the leader sends nothing of it any more. REQUIRES: mu.
func (src *source) close(number uint64) {
	src.reopen(number)
	if i, ok := slices.BinarySearch(src.closed, number); !ok && number >= src.oldest {
		src.closed = slices.Insert(src.closed, i, number)
		src.closed = slices.Delete(src.closed, 0, max(0, len(src.closed)-closedKept))
	}
	delete(src.tries, number)
}

// isClosed reports whether what comes of a stream is ignored. REQUIRES: mu.
func (src *source) isClosed(number uint64) bool {
	_, ok := slices.BinarySearch(src.closed, number)
	return ok || number < src.oldest || slices.Contains(src.refused, number)
}

// prune forgets numbers below the oldest one that runs. REQUIRES: mu.
func (src *source) prune(oldest uint64) {
	src.oldest = max(src.oldest, oldest)
	i, _ := slices.BinarySearch(src.closed, src.oldest)
	src.closed = slices.Delete(src.closed, 0, i)
	src.refused = slices.DeleteFunc(src.refused, func(n uint64) bool { return n < src.oldest })
}

// refuse says that a stream is not wanted, but that the leader may ask for it. REQUIRES: mu.
func (src *source) refuse(number uint64) {
	if !src.isClosed(number) {
		src.refused = append(src.refused, number)
	}
	delete(src.tries, number)
}

// reopen takes refuse back, and reports whether there was a refusal. REQUIRES: mu.
func (src *source) reopen(number uint64) bool {
	i := slices.Index(src.refused, number)
	if i >= 0 {
		src.refused = slices.Delete(src.refused, i, i+1)
	}
	return i >= 0
}

// errAgain says that one stream has to be taken up anew, which a new connection does.
var errAgain = errors.New("bodies: a stream is taken up anew")

// errStale says that a source was replaced.
var errStale = errors.New("bodies: the leader's stream is over")

// offered hears that a leader has something.
func (s *Store) offered(from uint64, payload []byte) error {
	o, err := parseOffer(payload)
	if err != nil {
		return err
	}
	leader, term := s.opt.Leader()
	s.mu.Lock()
	defer s.mu.Unlock()
	id := entry.StreamID{Term: o.term, Member: from, Start: o.start}
	switch {
	case s.closed:
		return ErrClosed
	case from == s.opt.Member || o.term < max(s.floor, term) || o.term == term && leader != 0 && leader != from,
		s.src != nil && s.src.id != id && s.src.id.Term > o.term:
		return fmt.Errorf("bodies: member %d does not lead in term %d", from, o.term)
	case s.src == nil || s.src.id != id:
		if s.src != nil {
			s.src.stop()
		}
		s.src = &source{id: id, wake: s.opt.Env.NewParker(), tries: map[uint64]int{}}
	}
	if src := s.src; !src.running {
		src.running = s.spawn("large receive", func() { s.receive(src) })
	}
	s.src.wake.Unpark() // from a pause
	return nil
}

// asked hears that a leader cannot commit what was refused here. A new connection begins it anew.
func (s *Store) asked(from uint64, payload []byte) error {
	q, err := parseWanted(payload)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if src := s.src; src != nil && src.id == (entry.StreamID{Term: q.term, Member: from, Start: q.start}) && !s.stale(src) &&
		src.reopen(q.number) && src.cancel != nil {
		src.cancel()
	}
	return nil
}

// receive reads a leader's streams until there are none, or the leader does not answer.
// Then it is the leader's next offer that begins it again.
//
// As long as something of the leader's is here it goes on, slowly: what was rolled back meanwhile is not offered.
func (s *Store) receive(src *source) {
	pause := pauseMin
	for try := 0; ; {
		moved, err := s.read(src)
		if moved {
			try, pause = 0, pauseMin
		}
		if errors.Is(err, errAgain) {
			continue // it is counted by stream
		}
		if err != nil {
			try++
		}
		late := err == nil || try >= reopenMax
		if (late || errors.Is(err, errStale)) && s.received(src) {
			return
		}
		s.opt.Logger.Debug("the stream of a leader's large transactions broke", "member", src.id.Member, "error", err)
		if late {
			src.wake.ParkFor(pauseLate)
			continue
		}
		src.wake.ParkFor(pause)
		pause = min(2*pause, pauseMax)
	}
}

// received ends the task that reads a source, unless something is here whose end its leader has not told.
func (s *Store) received(src *source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stale(src) && slices.ContainsFunc(s.staged, func(st *staged) bool { return st.from == src }) {
		return false
	}
	src.running = false
	s.wake()
	return true
}

// stale reports whether a source is over. REQUIRES: mu.
func (s *Store) stale(src *source) bool { return src.over || s.closed || s.src != src }

// read opens a stream and reads it. moved says that something came. Errors: errAgain, also if the stream was
// ended here so that another one begins; errStale, the transport's; nil: the leader has nothing more.
func (s *Store) read(src *source) (moved bool, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer func() {
		if err != nil && err != errStale && ctx.Err() != nil {
			err = errAgain
		}
	}()
	s.mu.Lock()
	if s.stale(src) {
		s.mu.Unlock()
		return false, errStale
	}
	src.cancel = cancel
	l := s.listFor(src)
	s.mu.Unlock()
	call := transport.Call{To: src.id.Member, Kind: bulkStream, Payload: l.append(nil)}
	r, err := s.opt.Transport.OpenBulk(ctx, call)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }()
	for {
		chunk, err := r.Next()
		if err == io.EOF {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
		m, err := parseMessage(chunk)
		if err != nil {
			return moved, err
		}
		if err := s.accept(src, &m); err != nil {
			return moved, err
		}
		moved = true
	}
}

// listFor says what is here of a source's streams, and makes them ready to go on there.
// REQUIRES: mu, and nobody reads the source.
func (s *Store) listFor(src *source) list {
	l := list{term: src.id.Term, leader: src.id.Start, start: s.start}
	for _, st := range s.staged {
		if st.from != src {
			continue
		}
		now := st.b.Status()
		st.scan.Reset(now.Chain)
		l.have = append(l.have, listed{number: st.b.ID.Number, whole: st.whole, synced: now.Synced, points: points(st.b, now)})
	}
	// Refusals come first: the leader counts on this member for what is not listed, and does not ask for it.
	for _, numbers := range [][]uint64{src.refused, src.closed} {
		for _, number := range slices.Backward(numbers) {
			if len(l.have) == maxListed {
				return l
			}
			l.have = append(l.have, listed{number: number, skip: true})
		}
	}
	return l
}

// points are the ends of the last frame and of some before it, each twice as far back.
func points(b *body.File, now body.Status) (at []point) {
	for n, back := now.Frames, 1; n > 0 && len(at) < pointsKept; n, back = n-back, 2*back {
		if f, ok := b.Frame(n-1, now.Epoch); ok {
			at = append(at, point{f.End(), f.CRC})
		}
	}
	return at
}

// accept takes a message. Errors: errAgain, errStale, errMalformed.
func (s *Store) accept(src *source, m *message) error {
	if m.kind == msgHello {
		return s.greeted(src, m)
	}
	if m.kind == msgBegin {
		return s.begun(src, m.number)
	}
	s.mu.Lock()
	stale := s.stale(src)
	if m.kind == msgEnd && !stale {
		s.ended(src, m)
	}
	st := s.streamed(src, m.number)
	s.mu.Unlock()
	if stale {
		return errStale
	}
	// A stream that is over, or not wanted, has no file; one that a fetch writes has another
	// writer.
	if st == nil || !st.w.TryLock() {
		return nil
	}
	defer st.w.Unlock()
	if !st.b.Hold() {
		return nil
	}
	defer st.b.Release()
	switch m.kind {
	case msgData:
		return s.data(src, st, m)
	case msgTruncate:
		return s.truncated(src, st, m)
	case msgComplete:
		return s.complete(src, st, m)
	}
	return nil
}

// streamed returns the body that a stream writes, or nil. REQUIRES: mu.
func (s *Store) streamed(src *source, number uint64) *staged {
	for _, st := range s.staged {
		if st.from == src && st.b.ID.Number == number {
			return st
		}
	}
	return nil
}

func (s *Store) greeted(src *source, m *message) error {
	if m.term != src.id.Term || m.start != src.id.Start {
		return fmt.Errorf("%w: a hello of term %d", errMalformed, m.term)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale(src) {
		return errStale
	}
	src.prune(m.oldest)
	s.reportSoon(src)
	return nil
}

// begun makes room for a new stream. Error: errAgain, if there is none, as refuse.
func (s *Store) begun(src *source, number uint64) error {
	id := src.id
	id.Number = number
	s.mu.Lock()
	known := src.isClosed(number) || s.stagedOf(id) != nil || slices.Contains(s.taken, id)
	full := len(s.staged) >= streamsMax
	s.mu.Unlock()
	if known {
		return nil
	}
	st, err := (*staged)(nil), fmt.Errorf("bodies: there are %d already", streamsMax)
	if !full {
		st, err = s.create(id)
	}
	if err != nil {
		s.mu.Lock()
		s.shun(src, number)
		s.mu.Unlock()
		s.unwanted(id, err)
		return errAgain
	}
	st.from = src
	s.mu.Lock()
	// A fetch may have made another file, or the source be over.
	late := s.stale(src) || src.isClosed(number) || s.stagedOf(id) != nil
	if late {
		s.removeFile(st.b)
	} else {
		s.staged = append(s.staged, st)
	}
	s.mu.Unlock()
	if !late {
		s.opt.OnBody(st.b)
	}
	return nil
}

// data writes bytes of a body.
func (s *Store) data(src *source, st *staged, m *message) error {
	now := st.b.Status()
	switch {
	case now.State != body.Growing:
		return nil
	case m.at != now.Stored+st.scan.Partial():
		return s.anew(src, st, fmt.Errorf("%w: bytes at %d, %d were expected", errMalformed, m.at, now.Stored+st.scan.Partial()))
	}
	if _, err := st.b.WriteAt(m.data, m.at); err != nil {
		return s.refuse(src, st, err)
	}
	s.count.received.Add(int64(len(m.data)))
	st.moved.Add(int64(len(m.data)))
	if err := st.frames(m.data, m.after); err != nil {
		return s.anew(src, st, err)
	}
	if now = st.b.Status(); now.Stored-now.Synced >= syncEveryStaged {
		s.mu.Lock()
		s.syncSoon()
		s.mu.Unlock()
	}
	return nil
}

// truncated cuts a body.
func (s *Store) truncated(src *source, st *staged, m *message) error {
	now := st.b.Status()
	at := now.Stored
	if m.frames < now.Frames {
		f, _ := st.b.Frame(m.frames, now.Epoch)
		at = f.At
	}
	switch {
	case m.frames > now.Frames || m.at != at:
		if now.State != body.Growing {
			return nil
		}
		return s.anew(src, st, fmt.Errorf("%w: a cut at frame %d, byte %d", errMalformed, m.frames, m.at))
	case now.State == body.Growing && m.frames < now.Frames:
		st.b.Truncate(m.frames)
	}
	st.scan.Reset(st.b.Status().Chain)
	return nil
}

// complete takes the word of a leader that a body is whole.
func (s *Store) complete(src *source, st *staged, m *message) error {
	if st.b.Status().State != body.Growing {
		return nil
	}
	err := st.b.Matches(&m.body)
	if err == nil && (st.scan.Partial() > 0 || m.body.ID != st.b.ID) {
		err = fmt.Errorf("%w: large transaction %v ends within a frame, or is %v", errMalformed, st.b.ID, m.body.ID)
	}
	if err != nil {
		return s.anew(src, st, err)
	}
	st.b.Finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawn("large complete", func() { s.finish(src, st, m.body) })
	return nil
}

// ended takes the word of a leader that a transaction is over. REQUIRES: mu.
func (s *Store) ended(src *source, m *message) {
	st := s.streamed(src, m.number)
	src.close(m.number)
	src.prune(m.oldest)
	switch {
	case st == nil:
	case m.why == endTaken:
		// Its entry will come, and with it the body is fetched from where this one ends.
		st.over, st.from = true, nil
		s.limitLeft()
	case s.needless(st):
		s.remove(st)
	default:
		st.over, st.from = true, nil
	}
	s.wake()
}

// limitLeft bounds how many unfinished files wait for the entry of their transaction.
// REQUIRES: mu.
func (s *Store) limitLeft() {
	var left []*staged
	for _, st := range s.staged {
		if st.over && !st.whole && s.needless(st) && st.b.Status().State == body.Growing {
			left = append(left, st)
		}
	}
	for ; len(left) > leftMax; left = left[1:] {
		s.remove(left[0])
	}
}

// anew has a stream whose bytes are wrong received from its beginning, unless that was tried
// often enough. Error: errAgain.
func (s *Store) anew(src *source, st *staged, err error) error {
	number := st.b.ID.Number
	s.mu.Lock()
	src.tries[number]++
	tries := src.tries[number]
	s.mu.Unlock()
	s.count.refetched.Add(1)
	if tries >= triesMax {
		return s.refuse(src, st, err)
	}
	s.opt.Logger.Info("a large transaction is received anew", "transaction", st.b.ID.String(), "error", err)
	st.b.Truncate(0)
	st.scan.Reset(0)
	return errAgain
}

// refuse drops a stream that cannot be received. The leader is told by a new connection.
// Error: errAgain.
func (s *Store) refuse(src *source, st *staged, err error) error {
	s.mu.Lock()
	gone := st.gone
	if !gone {
		s.remove(st)
		s.shun(src, st.b.ID.Number)
	}
	s.mu.Unlock()
	if !gone {
		s.unwanted(st.b.ID, err)
	}
	return errAgain
}

// shun refuses a stream. The leader, which counts on every member that has a connection until that one's list says
// otherwise, hears it by a new one: what is open ends here, since the task that reads it may be waiting for the
// leader. REQUIRES: mu.
func (s *Store) shun(src *source, number uint64) {
	src.refuse(number)
	if src.cancel != nil {
		src.cancel()
	}
	s.wake()
}

// unwanted says once that a stream is not received.
func (s *Store) unwanted(id entry.StreamID, err error) {
	s.opt.Logger.Warn("a large transaction is not received while it runs; this member will fetch it when it commits",
		"member", id.Member, "transaction", id.String(), "error", err)
}
