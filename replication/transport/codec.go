package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A frame is a run of messages:
//
//	message
//	    1  type
//	    v  fields that follow, a bit each
//	    v  to
//	    v  from
//	    v  term
//	    v  log term, index, commit, vote, reject hint: those whose bit is set
//	  v,…  context, with its length
//	    …  entries
//	    …  snapshot
//	entries
//	    v  count
//	    v  index of the first; the others follow it one by one
//	    v  term of the first
//	  for each: v term less that of the one before, 1 type, v length of data, data
//	snapshot, without data
//	    v  index, term
//	    1  leave a joint configuration automatically
//	  v,…  voters, learners, outgoing voters, next learners: each count and ids
//
// v is an unsigned varint. A field whose bit is not set is zero. The compact form
// is what the numbers of DEPENDENCIES ask for: Raft's own encoding costs an
// allocation for each field.

// The bits of a message's fields.
const (
	hasLogTerm = 1 << iota
	hasIndex
	hasCommit
	hasVote
	isReject
	hasRejectHint
	hasContext
	hasEntries
	hasSnapshot

	knownFields = 1<<iota - 1
)

// Limits of a frame. A frame is closed when it has one of them, except that a
// message is never split.
const (
	// MaxFrame is the longest frame: one entry of the greatest length, and its message.
	MaxFrame = 68 << 20
	// frameTarget is the length from which on nothing is added to a frame.
	frameTarget = 256 << 10
	// maxMessages is the most messages in a frame.
	maxMessages = 1024
	// maxEntries is the most entries in a frame.
	maxEntries = 64 << 10
	// maxContext is the longest context of a message.
	maxContext = 64 << 10
	// maxMembers is the most ids in one list of a snapshot's configuration.
	maxMembers = 1024
	// maxControlFrame is the longest frame on the control connection: those of
	// maxMessages heartbeats.
	maxControlFrame = 512 << 10
	// inlineData is the length up to which an entry's data is copied into the frame's
	// own bytes: a reference costs more than the copy.
	inlineData = 512
)

// ErrFrame says that bytes are no frame.
var ErrFrame = errors.New("transport: malformed frame")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFrame, fmt.Sprintf(format, args...))
}

// PurposeOf is the connection that a message belongs to.
func PurposeOf(m *raftpb.Message) Purpose {
	switch m.GetType() {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgSnap:
		return ForEntries
	}
	return ForControl
}

// encoder builds a frame as a list of pieces, so that long data is not copied.
type encoder struct {
	pieces   [][]byte
	own      []byte // what is being built
	length   int    // of the pieces
	messages int
	entries  int
}

func (e *encoder) size() int { return e.length + len(e.own) }

// full reports whether nothing more should be added.
func (e *encoder) full() bool {
	return e.size() >= frameTarget || e.messages >= maxMessages || e.entries >= maxEntries
}

// cut closes the piece that is being built.
func (e *encoder) cut() {
	if len(e.own) > 0 {
		e.pieces = append(e.pieces, e.own)
		e.length += len(e.own)
		e.own = nil
	}
}

// finish returns the frame's pieces and makes the encoder empty.
func (e *encoder) finish() [][]byte {
	e.cut()
	pieces := e.pieces
	*e = encoder{}
	return pieces
}

func (e *encoder) uint(v uint64) { e.own = binary.AppendUvarint(e.own, v) }

func (e *encoder) bytes(b []byte) {
	e.uint(uint64(len(b)))
	if len(b) <= inlineData {
		e.own = append(e.own, b...)
		return
	}
	e.cut()
	e.pieces = append(e.pieces, b)
	e.length += len(b)
}

// Encodable reports what makes a message one that cannot travel.
func Encodable(m *raftpb.Message) error {
	ents := m.GetEntries()
	size := len(m.GetContext())
	for i, ent := range ents {
		if ent.GetIndex() != ents[0].GetIndex()+uint64(i) {
			return fmt.Errorf("transport: entry %d follows entry %d in a message", ent.GetIndex(), ents[0].GetIndex()+uint64(i)-1)
		}
		if i > 0 && ent.GetTerm() < ents[i-1].GetTerm() {
			return fmt.Errorf("transport: term %d follows term %d in a message", ent.GetTerm(), ents[i-1].GetTerm())
		}
		size += len(ent.GetData()) + 3*binary.MaxVarintLen64
	}
	switch {
	case !carried(m.GetType()):
		return fmt.Errorf("transport: a message of type %v does not travel", m.GetType())
	case len(m.GetContext()) > maxContext, len(ents) > maxEntries, size > MaxFrame-4096:
		return fmt.Errorf("%w: %v with %d entries, %d bytes", ErrTooLarge, m.GetType(), len(ents), size)
	case len(m.GetResponses()) > 0:
		return fmt.Errorf("transport: a message with responses does not travel")
	case len(m.GetSnapshot().GetData()) > 0:
		return fmt.Errorf("transport: a snapshot's data does not travel in a message")
	case len(ents) > 0 && ents[0].GetIndex() > math.MaxUint64-uint64(len(ents)):
		return fmt.Errorf("transport: entries begin with index %d", ents[0].GetIndex())
	}
	c := m.GetSnapshot().GetMetadata().GetConfState()
	for _, ids := range [][]uint64{c.GetVoters(), c.GetLearners(), c.GetVotersOutgoing(), c.GetLearnersNext()} {
		if len(ids) > maxMembers {
			return fmt.Errorf("%w: a configuration of %d members", ErrTooLarge, len(ids))
		}
	}
	if err := misshapen(m); err != nil {
		return fmt.Errorf("transport: %w does not travel", err)
	}
	return nil
}

// message adds a message for which Encodable is nil.
func (e *encoder) message(m *raftpb.Message) {
	fields := fieldsOf(m)
	e.own = slices.Grow(e.own, inlineSize(m))
	e.own = append(e.own, byte(m.GetType()))
	e.uint(fields)
	e.uint(m.GetTo())
	e.uint(m.GetFrom())
	e.uint(m.GetTerm())
	for _, v := range [...]uint64{m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetVote(), m.GetRejectHint()} {
		if v != 0 {
			e.uint(v)
		}
	}
	if fields&hasContext != 0 {
		e.bytes(m.GetContext())
	}
	if fields&hasEntries != 0 {
		e.entryList(m.GetEntries())
	}
	if fields&hasSnapshot != 0 {
		e.snapshot(m.GetSnapshot().GetMetadata())
	}
	e.messages++
}

// inlineSize is about how many of a message's bytes are copied into the frame's own.
func inlineSize(m *raftpb.Message) int {
	n := 64 + min(len(m.GetContext()), inlineData)
	for _, ent := range m.GetEntries() {
		n += 8
		if len(ent.GetData()) <= inlineData {
			n += len(ent.GetData())
		}
	}
	return n
}

func fieldsOf(m *raftpb.Message) (fields uint64) {
	set := func(bit uint64, on bool) {
		if on {
			fields |= bit
		}
	}
	set(hasLogTerm, m.GetLogTerm() != 0)
	set(hasIndex, m.GetIndex() != 0)
	set(hasCommit, m.GetCommit() != 0)
	set(hasVote, m.GetVote() != 0)
	set(isReject, m.GetReject())
	set(hasRejectHint, m.GetRejectHint() != 0)
	set(hasContext, len(m.GetContext()) != 0)
	set(hasEntries, len(m.GetEntries()) != 0)
	set(hasSnapshot, m.GetSnapshot() != nil)
	return fields
}

func (e *encoder) entryList(ents []*raftpb.Entry) {
	e.uint(uint64(len(ents)))
	e.uint(ents[0].GetIndex())
	term := uint64(0)
	for _, ent := range ents {
		e.uint(ent.GetTerm() - term)
		term = ent.GetTerm()
		e.own = append(e.own, byte(ent.GetType()))
		e.bytes(ent.GetData())
	}
	e.entries += len(ents)
}

func (e *encoder) snapshot(m *raftpb.SnapshotMetadata) {
	c := m.GetConfState()
	e.uint(m.GetIndex())
	e.uint(m.GetTerm())
	leave := byte(0)
	if c.GetAutoLeave() {
		leave = 1
	}
	e.own = append(e.own, leave)
	for _, ids := range [...][]uint64{c.GetVoters(), c.GetLearners(), c.GetVotersOutgoing(), c.GetLearnersNext()} {
		e.uint(uint64(len(ids)))
		for _, id := range ids {
			e.uint(id)
		}
	}
}

// Copy returns messages as they arrive at their receiver, sharing no memory with
// those that were sent, and about how many bytes they are.
func Copy(msgs []*raftpb.Message) (copies []*raftpb.Message, size int, err error) {
	for len(msgs) > 0 {
		var e encoder
		n := 0
		for ; n < len(msgs) && (n == 0 || !e.full()); n++ {
			if err := Encodable(msgs[n]); err != nil {
				return nil, 0, err
			}
			e.message(msgs[n])
		}
		msgs = msgs[n:]
		frame := slices.Concat(e.finish()...)
		part, err := decodeFrame(frame)
		if err != nil {
			return nil, 0, err
		}
		copies, size = append(copies, part...), size+len(frame)
	}
	return copies, size, nil
}

// sizeOf is about how many bytes a queued message holds.
func sizeOf(m *raftpb.Message) int {
	n := 64 + len(m.GetContext())
	for _, ent := range m.GetEntries() {
		n += 16 + len(ent.GetData())
	}
	return n
}
