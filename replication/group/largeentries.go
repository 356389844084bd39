package group

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// lacking keeps entries from Raft that this member could not store: a large transaction's body
// comes another way than its entry, and may be late. Raft must not have the entry before, since the
// writer, which also stores votes, would have to wait for the body.
//
// Such an entry, and what a leader sends behind it, is treated like messages that were lost: the
// leader sends it again. The message with the entry is kept, and given to Raft when the body is here.
type lacking struct {
	index uint64          // of the entry; 0: nothing is lacking
	term  uint64          // of the leader that has sent it
	held  *raftpb.Message // from that entry on

	wanted []wanted // bodies that are kept or fetched for entries that leaders have sent
}

// wanted is a body for an entry that need not come into the log: another leader may put another one
// there.
type wanted struct {
	body  entry.LargeBody
	index uint64
}

// complete returns the part of a leader's message that Raft may have now; nil: none of it.
func (t *raftTask) complete(m *raftpb.Message) *raftpb.Message {
	if m.GetType() != raftpb.MsgApp {
		return m
	}
	l := &t.lacking
	if l.index != 0 && m.GetTerm() == l.term && m.GetIndex() >= l.index {
		return nil // Raft lacks the entry before it
	}
	for i, e := range m.GetEntries() {
		want, large := largeBody(e)
		if !large || t.stored(e) || e.GetIndex() <= t.raft.BasicStatus().HardState.GetCommit() {
			continue // Raft ignores what the group has agreed on: it may be in data that this member was given, and not in its log
		}
		if w := (wanted{want, e.GetIndex()}); !slices.Contains(l.wanted, w) {
			l.wanted = append(l.wanted, w)
		}
		if !t.keeps(e, &want) {
			return t.hold(m, i, &want)
		}
	}
	if n := len(m.GetEntries()); m.GetTerm() > l.term || n > 0 && m.GetEntries()[n-1].GetIndex() >= l.index {
		l.clear()
	}
	return m
}

func (l *lacking) clear() { l.index, l.term, l.held = 0, 0, nil }

// passed lets go of bodies of which the log has taken all that it will: the group has agreed on the entries
// up to the index, and they are in this member's log.
func (t *raftTask) passed(index uint64) {
	l := &t.lacking
	kept := l.wanted[:0]
	for _, w := range l.wanted {
		if w.index > index {
			kept = append(kept, w)
			continue
		}
		t.n.bodies.CancelFetch(&w.body)
		t.n.bodies.Unpin(&w.body)
	}
	clear(l.wanted[len(kept):])
	l.wanted = kept
}

// hold keeps a message from entry i on, whose body is fetched, and returns what comes before.
func (t *raftTask) hold(m *raftpb.Message, i int, want *entry.LargeBody) *raftpb.Message {
	e := m.GetEntries()[i]
	l := &t.lacking
	l.index, l.term, l.held = e.GetIndex(), m.GetTerm(), part(m, i, len(m.GetEntries()))
	t.n.fetchBody(want, e.GetIndex(), m.GetFrom())
	if i == 0 {
		return nil
	}
	return part(m, 0, i)
}

// part is a message with some of its entries.
func part(m *raftpb.Message, from, to int) *raftpb.Message {
	p := &raftpb.Message{Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index, Commit: m.Commit,
		Entries: m.GetEntries()[from:to:to]}
	if from > 0 {
		before := m.GetEntries()[from-1]
		p.Index, p.LogTerm = before.Index, before.Term
	}
	return p
}

// stored reports whether the log has the entry, and with it the body.
//
// The writer may have yet to take entries back, but not this one: a leader sends an entry from before its term only upon an answer that
// this member has given in that term, and answers to appends, refusals as well, leave when all is written that came before.
func (t *raftTask) stored(e *raftpb.Entry) bool {
	term, err := t.n.binlog.Term(e.GetIndex())
	return err == nil && term == e.GetTerm()
}

// keeps keeps the body of an entry that the log did not have a moment ago, and reports whether it is here. The writer may have
// come to the entry meanwhile: what the log has taken is not fetched once more.
func (t *raftTask) keeps(e *raftpb.Entry, want *entry.LargeBody) bool {
	return t.n.bodies.Pin(want) || t.stored(e)
}

// bodyCame gives Raft what was kept from it for want of a body, if that is all there now.
func (t *raftTask) bodyCame() {
	m := t.lacking.held
	if m == nil || m.GetTerm() != t.role.term {
		return
	}
	t.lacking.clear()
	if m = t.complete(m); m != nil {
		t.stepOne(m)
	}
}

// bodyMissed lets the leader's messages to Raft again although the body of an entry is not here: no
// member has given it. Raft refuses those behind the entry, so that the leader looks for it in its log,
// and sends it again, or a snapshot if its log has been purged of it.
func (t *raftTask) bodyMissed(index uint64) {
	if t.lacking.index == index {
		t.lacking.clear()
	}
}

// largeBody is what an entry of kind Large says of its body; large is false of all others. One that
// is malformed is left to the log, which refuses it.
func largeBody(e *raftpb.Entry) (want entry.LargeBody, large bool) {
	data := e.GetData()
	if e.GetType() != raftpb.EntryNormal || len(data) == 0 || entry.Kind(data[0]) != entry.Large {
		return want, false
	}
	_, b, err := entry.Parse(data)
	if err == nil {
		want, err = entry.ParseLargeBody(b)
	}
	return want, err == nil
}
