package bodies

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// sender sends the transactions that run here to one member. It belongs to one task.
type sender struct {
	s      *Store
	w      transport.BulkWriter
	member uint64
	term   uint64
	wake   env.Parker

	streams []*sending
	next    int // which of streams has its turn
	buf     []byte

	// Guarded by Store.mu.
	over bool   // the member has opened another stream
	last uint64 // number of the newest transaction that was looked at
}

// sending is one transaction on its way to a member.
//
// Invariant: in the body's epoch, the first frames, and so many bytes of the next one, are
// what the member was sent.
type sending struct {
	o         *own
	epoch     uint64
	frames    int
	part      int64
	scan      body.Scanner // of what was read, up to there
	begun     bool
	cut       bool // the member has to be told to where it goes back
	completed bool
	stuck     bool // the file cannot be read
}

// wakeSenders says that there may be something to send. REQUIRES: mu.
func (s *Store) wakeSenders() {
	for _, v := range s.senders {
		v.wake.Unpark()
	}
}

// stream answers a request large-stream.
func (s *Store) stream(ctx context.Context, member uint64, payload []byte, w transport.BulkWriter) error {
	l, err := parseList(payload)
	if err != nil {
		return err
	}
	v := &sender{s: s, w: w, member: member, term: l.term, wake: s.opt.Env.NewParker()}
	ended, oldest, err := v.enter(&l)
	if err != nil {
		return err
	}
	defer v.leave()
	b := appendUints(beginMessage(nil, msgHello, 0), l.term, s.start, oldest)
	if err := v.send(b, len(b)); err != nil {
		return err
	}
	for _, e := range ended {
		if err := v.sendEnd(e.number, e.why); err != nil {
			return err
		}
	}
	return v.run(ctx)
}

// ended is a stream of a request that runs no more.
type ended struct {
	number uint64
	why    byte
}

// enter registers the sender, in place of the member's last one, and takes up what the
// member has.
func (v *sender) enter(l *list) (gone []ended, oldest uint64, err error) {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, 0, ErrClosed
	case l.leader != s.start || l.term <= s.resigned || l.term < s.floor:
		return nil, 0, fmt.Errorf("bodies: member %d does not lead in term %d, or not in this process", s.opt.Member, l.term)
	}
	s.meet(v.member, l.start)
	for _, o := range s.senders {
		if o.member == v.member {
			o.over = true
			o.wake.Unpark()
		}
	}
	s.senders = append(s.senders, v)
	for _, o := range s.own {
		o.refuse = slices.DeleteFunc(o.refuse, func(m uint64) bool { return m == v.member })
	}
	var skip []uint64
	for i := range l.have {
		h := &l.have[i]
		o := s.ownNumber(h.number)
		switch {
		case o == nil || o.over && !o.ours || o.b.ID.Term != l.term:
			gone = append(gone, ended{h.number, s.whyOver(h.number)})
			skip = append(skip, h.number)
			continue
		case h.skip:
			// It may have had it: there was no room for what is not committed.
			o.haves = slices.DeleteFunc(o.haves, func(h memberHas) bool { return h.member == v.member })
			o.refuse = append(o.refuse, v.member)
			skip = append(skip, h.number)
			continue
		}
		o.has(v.member, h.synced, h.whole)
		v.add(o, h)
		skip = append(skip, h.number)
	}
	s.wake()
	v.collect(skip)
	return gone, s.oldest(), nil
}

// whyOver says why a stream ended. REQUIRES: mu.
func (s *Store) whyOver(number uint64) byte {
	if slices.ContainsFunc(s.taken, func(id entry.StreamID) bool {
		return id.Number == number && id.Start == s.start && id.Member == s.opt.Member
	}) {
		return endTaken
	}
	return endDropped
}

// oldest is the least number of a stream that may still be sent. REQUIRES: mu.
func (s *Store) oldest() uint64 {
	if len(s.own) > 0 {
		return s.own[0].b.ID.Number
	}
	return s.number + 1
}

// add takes up a transaction; h is what the member has of it, or nil. REQUIRES: Store.mu.
func (v *sender) add(o *own, h *listed) {
	x := &sending{o: o, epoch: o.b.Status().Epoch}
	if h != nil {
		x.begun, x.cut, x.completed = true, !h.whole, h.whole
		x.frames = resume(o.b, x.epoch, h.points)
	}
	o.fed++
	v.streams = append(v.streams, x)
}

// resume returns how many frames of a member's body are those of b: the ends of some of its
// frames are known.
func resume(b *body.File, epoch uint64, points []point) int {
	st := b.Status()
	for _, p := range points {
		// Frames lie in the order of their places.
		lo, hi := 0, st.Frames
		for lo < hi {
			mid := (lo + hi) / 2
			f, ok := b.Frame(mid, epoch)
			if !ok {
				return 0 // it was cut off meanwhile
			}
			if f.End() < p.at {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if f, ok := b.Frame(lo, epoch); ok && f.End() == p.at && f.CRC == p.chain {
			return lo + 1
		}
	}
	return 0
}

// collect takes up the transactions that have begun since, but those to skip. REQUIRES:
// Store.mu.
func (v *sender) collect(skip []uint64) {
	for _, o := range v.s.own {
		number := o.b.ID.Number
		if number <= v.last {
			continue
		}
		v.last = number
		if !o.over && !o.moved && o.b.ID.Term == v.term && !slices.Contains(skip, number) {
			v.add(o, nil)
		}
	}
}

// leave unregisters the sender.
func (v *sender) leave() {
	s := v.s
	defer s.closeUnused()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.senders = slices.DeleteFunc(s.senders, func(o *sender) bool { return o == v })
	for _, x := range v.streams {
		x.o.fed--
		s.settle(x.o)
	}
	s.offerWake.Unpark()
}

// run sends until the member is gone, or nothing has been running for a while.
func (v *sender) run(ctx context.Context) error {
	e := v.s.opt.Env
	for idle := e.Monotonic(); ; {
		if over, err := v.look(ctx); over || err != nil {
			return err
		}
		sent, err := v.step()
		switch {
		case err != nil:
			return err
		case sent:
			continue
		case len(v.streams) > 0:
			idle = e.Monotonic()
		case e.Monotonic()-idle >= idleEnd:
			return nil
		}
		v.wake.ParkFor(lookEvery) // a reader that is gone does not say so
	}
}

// look says whether the stream is over, and takes up what is new.
func (v *sender) look(ctx context.Context) (over bool, err error) {
	if err := ctx.Err(); err != nil {
		return true, err
	}
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return true, ErrClosed
	case v.over:
		return true, errors.New("bodies: the member has opened another stream")
	case v.term <= s.resigned || v.term < s.floor:
		return true, ErrOver
	}
	v.collect(nil)
	return false, nil
}

// step sends one message of the stream whose turn it is; each in turn, so that a huge one
// does not keep the others back.
func (v *sender) step() (sent bool, err error) {
	for range v.streams {
		v.next %= len(v.streams)
		x := v.streams[v.next]
		sent, done, err := v.advance(x)
		if done {
			v.streams = slices.Delete(v.streams, v.next, v.next+1)
			v.s.mu.Lock()
			x.o.fed--
			v.s.settle(x.o)
			v.s.mu.Unlock()
		} else {
			v.next++
		}
		if sent || done || err != nil {
			return true, err
		}
	}
	return false, nil
}

// advance sends the next message of a stream, if there is one. done says that it was the
// last.
func (v *sender) advance(x *sending) (sent, done bool, err error) {
	b := x.o.b
	for {
		st, kept := b.Since(x.epoch)
		if kept < x.frames || kept == x.frames && x.part > 0 && st.Epoch != x.epoch {
			x.frames, x.part, x.cut = kept, 0, true
		}
		x.epoch = st.Epoch
		number := b.ID.Number
		dropped, logged := st.State == body.Dropped, false
		if st.State == body.Taken {
			dropped, logged = v.s.fate(x.o)
		}
		switch {
		case dropped:
			if !x.begun {
				return false, true, nil
			}
			return true, true, v.sendEnd(number, endDropped)
		case x.completed:
			return false, logged, nil
		case !x.begun:
			x.begun = true
			m := beginMessage(v.buf[:0], msgBegin, number)
			return true, false, v.send(m, len(m))
		case x.stuck:
			return false, logged, nil
		}
		again := false
		switch {
		case x.cut:
			sent, again, err = v.sendCut(x)
		case x.frames < st.Frames:
			sent, again, err = v.sendData(x, st.Frames)
		default:
			sent, err = v.sendComplete(x)
		}
		if !again {
			return sent, false, err
		}
	}
}

// fate says what became of a body that its session has left: its entry was refused, or the log has taken it. Until then
// it may be either, and the members that have it are to hear of the one.
func (s *Store) fate(o *own) (refused, logged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !o.pinned && !o.taking && !o.moved, o.moved
}

// sendCut says how much of a stream stays. again: it was cut once more meanwhile.
func (v *sender) sendCut(x *sending) (sent, again bool, err error) {
	var at int64
	if x.frames > 0 {
		f, ok := x.o.b.Frame(x.frames-1, x.epoch)
		if !ok {
			return false, true, nil
		}
		at = f.End()
	}
	x.cut = false
	m := appendUints(beginMessage(v.buf[:0], msgTruncate, x.o.b.ID.Number), uint64(x.frames), uint64(at))
	return true, false, v.send(m, len(m))
}

// sendData sends the next bytes of a stream that has so many frames. again: it was cut
// meanwhile.
func (v *sender) sendData(x *sending, frames int) (sent, again bool, err error) {
	b := x.o.b
	f, ok := b.Frame(x.frames, x.epoch)
	if !ok {
		return false, true, nil
	}
	at := f.At + x.part
	end, n, part := at, x.frames, x.part
	m := appendUints(beginMessage(v.buf[:0], msgData, b.ID.Number), uint64(at))
	counted := len(m)
	m = append(m, 0, 0)
	for ended := 0; end-at < maxData && n < frames && ended < maxAfters; {
		if f, ok = b.Frame(n, x.epoch); !ok {
			return false, true, nil
		}
		if end+maxData-(end-at) < f.End() {
			end = at + maxData
			part = end - f.At
			break
		}
		end, part = f.End(), 0
		m = appendUints(m, f.After)
		n, ended = n+1, ended+1
		binary.LittleEndian.PutUint16(m[counted:], uint16(ended))
	}
	fields := len(m)
	m = slices.Grow(m, int(end-at))[:fields+int(end-at)]
	v.buf = m
	_, err = b.ReadAt(m[fields:], at)
	// What was cut off while it was read may be anything, and so is a file that was dropped.
	if st := b.Status(); st.Epoch != x.epoch || st.State == body.Dropped {
		return false, true, nil
	}
	if err == nil {
		again, err = x.check(m[fields:])
	}
	if again {
		return false, true, nil
	}
	if err != nil {
		// The transaction cannot be committed with such a file: COMMIT says so instead of waiting for this member.
		v.s.fail(&x.o.held, fmt.Errorf("reading it for member %d: %w", v.member, err))
		x.stuck = true
		return false, false, nil
	}
	x.frames, x.part = n, part
	v.s.count.streamed.Add(end - at)
	return true, false, v.send(m, fields)
}

// check checks what was read of the file behind what was sent. The member would refuse bytes that the disk has changed, as
// it refuses those that the network has, and nobody would know whose they are. again: the frame before was cut off meanwhile.
func (x *sending) check(p []byte) (again bool, err error) {
	b := x.o.b
	if x.part == 0 {
		var f body.Frame
		if x.frames > 0 {
			var ok bool
			if f, ok = b.Frame(x.frames-1, x.epoch); !ok {
				return true, nil
			}
		}
		x.scan.Reset(f.CRC)
	}
	for frame := x.frames; len(p) > 0; {
		n, h, whole, err := x.scan.Next(p)
		if err != nil {
			return false, fmt.Errorf("frame %d: %w", frame, err)
		}
		if p = p[n:]; !whole {
			continue
		}
		if f, ok := b.Frame(frame, x.epoch); ok && f.CRC != h.CRC {
			return false, fmt.Errorf("frame %d: %w: its checksum is %08x, %08x was written", frame, body.ErrCorrupt, h.CRC, f.CRC)
		}
		frame++
	}
	return false, nil
}

// sendComplete says what a body is, once all of it is sent.
func (v *sender) sendComplete(x *sending) (sent bool, err error) {
	l, ok := x.o.b.Summary()
	if !ok {
		return false, nil
	}
	x.completed = true
	m := entry.AppendLargeBody(beginMessage(v.buf[:0], msgComplete, x.o.b.ID.Number), &l)
	return true, v.send(m, len(m))
}

func (v *sender) sendEnd(number uint64, why byte) error {
	v.s.mu.Lock()
	oldest := v.s.oldest()
	v.s.mu.Unlock()
	m := appendUints(append(beginMessage(v.buf[:0], msgEnd, number), why), oldest)
	return v.send(m, len(m))
}

// send sends a message of which so many bytes are fields.
func (v *sender) send(m []byte, fields int) error {
	if v.buf = m; cap(v.buf) > 2*maxData {
		v.buf = nil
	}
	seal(m, fields)
	return v.w.Send(m)
}
