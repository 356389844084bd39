package transport

import (
	"encoding/binary"
	"math"

	"go.etcd.io/raft/v3/raftpb"
)

// decodeFrame returns the messages of a frame. Their data and contexts are parts of
// the frame. What it allocates is bounded by the limits of a frame and proportional
// to its length.
func decodeFrame(frame []byte) ([]*raftpb.Message, error) {
	if len(frame) > MaxFrame {
		return nil, malformed("%d bytes, at most %d are allowed", len(frame), MaxFrame)
	}
	d := decoder{left: frame}
	var msgs []*raftpb.Message
	for len(d.left) > 0 && d.err == nil {
		if len(msgs) == maxMessages {
			return nil, malformed("more than %d messages", maxMessages)
		}
		msgs = append(msgs, d.message())
	}
	if d.err != nil {
		return nil, d.err
	}
	return msgs, nil
}

type decoder struct {
	left    []byte
	entries int
	err     error
}

// fail keeps the first error and makes every later read empty.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = malformed(format, args...)
	}
	d.left = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.left)
	if n <= 0 {
		d.fail("a number is cut or too long")
		return 0
	}
	d.left = d.left[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.left) == 0 {
		d.fail("cut")
		return 0
	}
	b := d.left[0]
	d.left = d.left[1:]
	return b
}

// bytes returns nil for length 0.
func (d *decoder) bytes(limit int) []byte {
	n := d.uint()
	if n > uint64(len(d.left)) || n > uint64(limit) {
		d.fail("%d bytes of data where %d are left and %d allowed", n, len(d.left), limit)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	b := d.left[:n:n]
	d.left = d.left[n:]
	return b
}

// count reads how many things of at least size bytes follow.
func (d *decoder) count(size, limit int, what string) int {
	n := d.uint()
	if d.err == nil && (n > uint64(limit) || n > uint64(len(d.left)/size)) {
		d.fail("%d %s in %d bytes, at most %d are allowed", n, what, len(d.left), limit)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

// box holds a message and what its pointers point to in one allocation.
type box struct {
	m                                                        raftpb.Message
	typ                                                      raftpb.MessageType
	to, from, term, logTerm, index, commit, vote, rejectHint uint64
	reject                                                   bool
}

func (d *decoder) message() *raftpb.Message {
	b := &box{}
	m := &b.m
	b.typ = raftpb.MessageType(d.byte())
	fields := d.uint()
	if d.err == nil && !carried(b.typ) {
		d.fail("a message of type %v", b.typ)
	}
	if d.err == nil && fields&^knownFields != 0 {
		d.fail("a message with unknown fields %#x", fields)
	}
	b.to, b.from, b.term = d.uint(), d.uint(), d.uint()
	m.Type, m.To, m.From, m.Term = &b.typ, &b.to, &b.from, &b.term
	field := func(bit uint64, into *uint64) *uint64 {
		if fields&bit != 0 {
			*into = d.uint()
		}
		return into
	}
	m.LogTerm = field(hasLogTerm, &b.logTerm)
	m.Index = field(hasIndex, &b.index)
	m.Commit = field(hasCommit, &b.commit)
	m.Vote = field(hasVote, &b.vote)
	m.RejectHint = field(hasRejectHint, &b.rejectHint)
	b.reject = fields&isReject != 0
	m.Reject = &b.reject
	if fields&hasContext != 0 {
		m.Context = d.bytes(maxContext)
	}
	if fields&hasEntries != 0 {
		m.Entries = d.entryList()
	}
	if fields&hasSnapshot != 0 {
		m.Snapshot = d.snapshot()
	}
	if d.err == nil {
		if err := misshapen(m); err != nil {
			d.fail("%v", err)
		}
	}
	return m
}

type entryBox struct {
	e           raftpb.Entry
	term, index uint64
	typ         raftpb.EntryType
}

func (d *decoder) entryList() []*raftpb.Entry {
	n := d.count(3, maxEntries-d.entries, "entries")
	index := d.uint()
	if d.err == nil && (n == 0 || index > math.MaxUint64-uint64(n)) {
		d.fail("%d entries from index %d on", n, index)
	}
	if d.err != nil {
		return nil
	}
	d.entries += n
	boxes := make([]entryBox, n)
	ents := make([]*raftpb.Entry, n)
	term := uint64(0)
	for i := range boxes {
		b := &boxes[i]
		delta := d.uint()
		if delta > math.MaxUint64-term {
			d.fail("a term beyond 64 bits")
		}
		term += delta
		b.term, b.index, b.typ = term, index+uint64(i), raftpb.EntryType(d.byte())
		if d.err == nil && (b.typ < raftpb.EntryNormal || b.typ > raftpb.EntryConfChangeV2) {
			d.fail("an entry of type %d", b.typ)
		}
		b.e.Term, b.e.Index, b.e.Type = &b.term, &b.index, &b.typ
		b.e.Data = d.bytes(MaxFrame)
		if d.err != nil {
			return nil
		}
		ents[i] = &b.e
	}
	return ents
}

func (d *decoder) snapshot() *raftpb.Snapshot {
	index, term, leave := d.uint(), d.uint(), d.byte()
	if d.err == nil && leave > 1 {
		d.fail("a flag of value %d", leave)
	}
	auto := leave == 1
	c := &raftpb.ConfState{AutoLeave: &auto}
	c.Voters, c.Learners, c.VotersOutgoing, c.LearnersNext = d.ids(), d.ids(), d.ids(), d.ids()
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: c, Index: &index, Term: &term}}
}

func (d *decoder) ids() []uint64 {
	n := d.count(1, maxMembers, "members")
	if n == 0 {
		return nil
	}
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = d.uint()
	}
	return ids
}
