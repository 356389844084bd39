package group

import (
	"encoding/binary"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// How old a member's data are is told without comparing clocks of two machines. A leader's word, which a heartbeat carries, says that
// everything acknowledged before a round of heartbeats was sent lies at most at an index; which round is the last that this member has
// answered; and how long after the sending of the former the leader has heard that answer. The member knows when it has answered, and
// that was before the leader heard it: the sending was so long before the answer, or later. Of two clocks only the speeds are compared.
//
// Leaders of older programs do not say so, or send no rounds, as the only voter or without a lease. Then what tells the age is the
// leader's clock in the newest entry applied, or in its word, and this member's. A leader that has dated a word is never taken for such a one:
// of a member that is cut off, nothing but the words that it has heard tells the age.

// maxWords bounds how many words are remembered that tell of entries which are not applied yet.
const maxWords = 256

// words are what leaders have said: all that was acknowledged by a time, on this member's lease clock, lies at most at an index. Times and
// indexes rise.
type words struct {
	mu   sync.Mutex
	list []word
	gap  time.Duration // that is between those of list, but for the last one
}

type word struct {
	index uint64
	at    time.Duration
}

// add notes a word. It may come late: then it tells nothing new.
func (w *words) add(index uint64, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.list)
	switch {
	case n > 0 && (index < w.list[n-1].index || at <= w.list[n-1].at):
		return
	case n > 0 && index == w.list[n-1].index:
		w.list[n-1].at = at
		return
	}
	if n == maxWords { // a member is far behind: the words of so long are kept less exactly
		w.gap = max(2*w.gap, 2*(at-w.list[0].at)/maxWords)
		all := w.list
		w.list = w.list[:0]
		for _, o := range all {
			w.put(o)
		}
	}
	w.put(word{index, at})
}

// put appends a word, or has it take the place of the last one, which is close to that before it.
func (w *words) put(o word) {
	if n := len(w.list); n > 1 && w.list[n-1].at-w.list[n-2].at < w.gap {
		w.list[n-1] = o
		return
	}
	w.list = append(w.list, o)
}

// newest is the time of the newest word whose entries are applied, if there is one.
func (w *words) newest(applied uint64) (at time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < len(w.list) && w.list[n].index <= applied {
		n++
	}
	if n == 0 {
		return 0, false
	}
	at = w.list[n-1].at
	if w.list = append(w.list[:0], w.list[n-1:]...); len(w.list) == 1 { // older ones will not be asked for
		w.gap = 0
	}
	return at, true
}

// heardRounds are the rounds of a leader that this member has taken in last, and when.
type heardRounds struct {
	of   leadership
	ring [64]struct {
		round uint64
		at    time.Duration
	}
	next int
}

func (h *heardRounds) add(of leadership, round uint64, at time.Duration) {
	if h.of != of {
		*h = heardRounds{of: of}
	}
	for i := range h.ring {
		if h.ring[i].round == round { // it is sent again until it is confirmed: the first time counts, which was answered first
			return
		}
	}
	h.ring[h.next].round, h.ring[h.next].at = round, at
	h.next = (h.next + 1) % len(h.ring)
}

// at is when a round was taken in; false: it is not known any more.
func (h *heardRounds) at(tag uint16) (time.Duration, bool) {
	for i := range h.ring {
		if h.ring[i].round != 0 && roundTag(h.ring[i].round) == tag {
			return h.ring[i].at, true
		}
	}
	return 0, false
}

// hearWord takes in what a leader's heartbeat says, if it is one of a round.
func (t *raftTask) hearWord(m *raftpb.Message) {
	c, now, of := t.n, t.leaseNow(), leadership{m.GetFrom(), m.GetTerm()}
	f, ok := told(m)
	if !ok {
		t.hearNothing(m, of, now)
		return
	}
	b := m.GetContext()
	t.wordAt, t.wordOf = now, of
	t.rounds.add(of, binary.LittleEndian.Uint64(b), now)
	if len(b) >= datedSize {
		t.dates = of
	}
	if c.undated.Store(len(b) < datedSize); len(b) >= datedSize && f.index != 0 {
		answered, after := dated(binary.LittleEndian.Uint64(b[alikeSize:]))
		if at, ok := t.rounds.at(answered); ok {
			c.words.add(f.index, min(at-after, now))
		}
	}
	if f.index != 0 {
		c.hearFresh(f)
	}
}

// hearNothing takes in a heartbeat that is of no round. Between rounds there are such, too, but not for seconds.
func (t *raftTask) hearNothing(m *raftpb.Message, of leadership, now time.Duration) {
	if m.GetType() != raftpb.MsgHeartbeat || t.dates == of {
		return
	}
	if t.wordOf != of { // what others have said before, or for how long nobody has, says nothing of this one
		t.wordAt, t.wordOf = now, of
	}
	if now-t.wordAt > 3*compareEvery {
		t.n.undated.Store(true)
	}
}

// roundTag is what tells a round from the others of which a member knows when it took them in: its kind, and the last bits of its number.
func roundTag(round uint64) uint16 {
	return uint16(round>>63<<15 | round&0x7fff)
}

// date is what dates the word to a member: the last round that it has answered, and how long after the sending of the round of the
// freshness the leader has heard that, which may be negative.
func date(answered uint64, after time.Duration) uint64 {
	return uint64(after.Microseconds())<<16 | uint64(roundTag(answered))
}

func dated(date uint64) (answered uint16, after time.Duration) {
	return uint16(date), time.Duration(int64(date)>>16) * time.Microsecond
}

// told reads the freshness of a heartbeat; false: it is not of a round that tells any.
func told(m *raftpb.Message) (f freshness, ok bool) {
	b := m.GetContext()
	if m.GetType() != raftpb.MsgHeartbeat || len(b) < toldSize {
		return f, false
	}
	b = b[roundSize:]
	return freshness{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}, true
}
