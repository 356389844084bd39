package bodies

import (
	"context"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// own is the body of a transaction of one of this member's sessions.
type own struct {
	held
	haves  []memberHas
	refuse []uint64 // members that do not receive it
	over   bool     // the session is done with it
	ours   bool     // the file is the store's, since the session has left it; see Pin
	moved  bool     // the file is in the log
	fed    int      // senders that have it on their lists
}

// memberHas is how much of a body another member has said it has.
type memberHas struct {
	member uint64
	synced int64
	whole  bool
}

// known is the process of a member that has opened a stream last. Reports of another one
// are late.
type known struct{ member, start uint64 }

// ownOf returns a transaction of this member's sessions. REQUIRES: mu.
func (s *Store) ownOf(id entry.StreamID) *own {
	if id.Member != s.opt.Member || id.Start != s.start {
		return nil
	}
	return s.ownNumber(id.Number)
}

// ownNumber returns one by its number. REQUIRES: mu.
func (s *Store) ownNumber(number uint64) *own {
	i, ok := slices.BinarySearchFunc(s.own, number, func(o *own, n uint64) int {
		switch {
		case o.b.ID.Number < n:
			return -1
		case o.b.ID.Number > n:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return s.own[i]
}

// Begin makes the file of a session's transaction, which is empty, the body of a stream. The
// session writes it, calls Changed after each change, and End when the transaction is over,
// unless its State is Taken then. The handle is the store's to close.
func (s *Store) Begin(term uint64, o body.Owner, name string, f file.File) *body.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	b := body.NewFile(entry.StreamID{Term: term, Member: s.opt.Member, Start: s.start, Number: s.number}, name, f)
	b.Owner = o
	s.own = append(s.own, &own{held: s.newHeld(b, o.Began)})
	if !s.offering {
		s.offering = s.spawn("large offers", s.offers)
	}
	s.offerWake.Unpark()
	s.wakeSenders()
	return b
}

// Changed says that a body of Begin has more frames, or fewer.
func (s *Store) Changed(b *body.File) {
	st := b.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeSenders()
	if st.Stored-st.Synced >= syncEveryOwn {
		s.syncSoon()
	}
}

// End says that a session has given a body up and removed its file, or will.
//
// REQUIRES: the State is not Taken. Then the file is the store's, or the log's.
func (s *Store) End(b *body.File) {
	s.mu.Lock()
	o := s.ownOf(b.ID)
	if o != nil && !o.over {
		o.over, o.whole = true, false
		b.End(body.Dropped)
		s.wakeSenders()
		s.settle(o)
	}
	s.mu.Unlock()
	s.closeUnused()
}

// settle forgets a transaction that nobody needs any more. REQUIRES: mu.
func (s *Store) settle(o *own) {
	if !o.over || o.fed > 0 || o.pinned || o.taking {
		return
	}
	i := slices.Index(s.own, o)
	if i < 0 {
		return
	}
	s.own = slices.Delete(s.own, i, i+1)
	if o.ours && !o.moved {
		s.removeFile(o.b)
	} else {
		s.closeFile(o.b)
	}
}

// Resign ends the waits of Finish for transactions of this term and of older ones, and their
// streams: the member does not lead in it any more.
func (s *Store) Resign(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resigned = max(s.resigned, term)
	s.wake()
	s.wakeSenders()
}

// Finish completes a body, whose last frame is written, and waits until enough members
// hold it, or until stop, which is asked now and then, returns an error. Errors: that; ctx's cause;
// ErrOver after Resign; the file's. The transaction is then to be rolled back.
func (s *Store) Finish(ctx context.Context, b *body.File, stop func() error) (l entry.LargeBody, err error) {
	s.mu.Lock()
	o := s.ownOf(b.ID)
	s.mu.Unlock()
	if o == nil {
		return l, fmt.Errorf("bodies: large transaction %v is over", b.ID)
	}
	l = b.Finish()
	s.Changed(b)
	if err := s.syncOwn(o, l); err != nil {
		return l, err
	}
	s.count.waits.Add(1)
	defer s.count.waits.Add(-1)
	p := s.opt.Env.NewParker()
	s.mu.Lock()
	defer s.await(p)()
	s.mu.Unlock()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, p.Unpark)()
	}
	want, every := s.opt.Env.Monotonic()+wantAfter, wantEvery
	for {
		haves, err := s.standing(o)
		if err == nil {
			err = stop()
		}
		switch {
		case err != nil:
			return l, err
		case ctx.Err() != nil:
			return l, context.Cause(ctx)
		case s.opt.Quorum(func(member uint64) bool {
			return member == s.opt.Member || slices.ContainsFunc(haves, func(h memberHas) bool { return h.member == member && h.whole })
		}):
			s.count.completed.Add(1)
			return l, nil
		}
		if now := s.opt.Env.Monotonic(); now >= want && s.lacks(o) {
			want, every = now+every, min(2*every, wantMax)
			s.want(o)
		}
		p.ParkFor(lookEvery) // the membership may change without a word
	}
}

// lacks reports whether those members are too few that have a body, or are receiving it.
func (s *Store) lacks(o *own) bool {
	s.mu.Lock()
	takes := []uint64{s.opt.Member}
	for _, h := range o.haves {
		if h.whole {
			takes = append(takes, h.member)
		}
	}
	for _, v := range s.senders {
		if !slices.Contains(o.refuse, v.member) {
			takes = append(takes, v.member)
		}
	}
	s.mu.Unlock()
	return !s.opt.Quorum(func(member uint64) bool { return slices.Contains(takes, member) })
}

// want asks members that have refused a body to receive it after all: it cannot be committed without
// them, and there may be room by now.
func (s *Store) want(o *own) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, member := range o.refuse {
		q := wanted{o.b.ID.Term, s.start, o.b.ID.Number}
		s.spawn("large want", func() {
			_, _ = s.opt.Transport.Ask(s.ctx, transport.Call{To: member, Kind: askWant, Payload: q.append(nil), Timeout: askTimeout})
		})
	}
}

// syncOwn makes a complete body durable here.
func (s *Store) syncOwn(o *own, l entry.LargeBody) error {
	if err := s.sync(&o.held); err != nil {
		return o.broken(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o.whole, o.l = true, l
	return nil
}

// broken is what COMMIT says if this member has not kept what the session wrote.
func (o *own) broken(err error) error {
	return fmt.Errorf("bodies: this member could not keep the events of large transaction %v, which is rolled back; see to its disk: %w", o.b.ID, err)
}

// standing says who has a body, or why it is not waited for any more.
func (s *Store) standing(o *own) ([]memberHas, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case o.over || o.b.ID.Term <= s.resigned:
		return nil, ErrOver
	case o.failed != nil:
		return nil, o.broken(o.failed)
	}
	return slices.Clone(o.haves), nil
}

// has notes what a member has. REQUIRES: mu.
func (o *own) has(member uint64, synced int64, whole bool) {
	i := slices.IndexFunc(o.haves, func(h memberHas) bool { return h.member == member })
	if i < 0 {
		o.haves = append(o.haves, memberHas{member: member})
		i = len(o.haves) - 1
	}
	h := &o.haves[i]
	h.synced = synced
	h.whole = h.whole || whole
}

// heard takes a member's large-have. again tells it to open its stream anew: this process
// does not know it.
func (s *Store) heard(member uint64, payload []byte) (again bool, err error) {
	r, err := parseReport(payload)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.leader != s.start || !slices.Contains(s.known, known{member, r.start}) {
		return true, nil
	}
	for _, h := range r.have {
		if o := s.ownNumber(h.number); o != nil && !slices.Contains(o.refuse, member) { // else it is a late word
			o.has(member, h.synced, h.whole)
		}
	}
	s.wake()
	return false, nil
}

// meet notes which process of a member opens a stream: what another one had is gone.
// REQUIRES: mu.
func (s *Store) meet(member, start uint64) {
	if slices.Contains(s.known, known{member, start}) {
		return
	}
	s.known = slices.DeleteFunc(s.known, func(k known) bool { return k.member == member })
	s.known = append(s.known, known{member, start})
	for _, o := range s.own {
		o.haves = slices.DeleteFunc(o.haves, func(h memberHas) bool { return h.member == member })
	}
}

// leading returns the newest term in which transactions run here, 0 if none do. REQUIRES: mu.
func (s *Store) leading() uint64 {
	for i := len(s.own) - 1; i >= 0; i-- {
		if o := s.own[i]; !o.over && o.b.ID.Term > s.resigned && o.b.ID.Term >= s.floor {
			return o.b.ID.Term
		}
	}
	return 0
}

// offers tells members without a stream that there is something to fetch, as long as there
// is.
func (s *Store) offers() {
	for {
		s.mu.Lock()
		term := s.leading()
		if term == 0 || s.closed {
			s.offering = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, member := range s.opt.Members() {
			s.offer(member, offer{term, s.start})
		}
		s.offerWake.ParkFor(offerEvery)
	}
}

// offer tells a member, if it has no stream and is not being told.
func (s *Store) offer(member uint64, o offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if member == s.opt.Member || slices.Contains(s.asking, member) ||
		slices.ContainsFunc(s.senders, func(v *sender) bool { return v.member == member && v.term == o.term }) {
		return
	}
	asked := s.spawn("large offer", func() {
		_, _ = s.opt.Transport.Ask(s.ctx, transport.Call{To: member, Kind: askOffer, Payload: o.append(nil), Timeout: askTimeout})
		// Whatever the answer: it is told again unless it opens a stream.
		s.mu.Lock()
		s.asking = slices.DeleteFunc(s.asking, func(m uint64) bool { return m == member })
		s.mu.Unlock()
	})
	if asked {
		s.asking = append(s.asking, member)
	}
}
