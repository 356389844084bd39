package raftlog

import (
	"bytes"
	"math/bits"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
)

// slab is an entry with the room for what it points at.
type slab struct {
	entry       raftpb.Entry
	index, term uint64
	typ         raftpb.EntryType
}

// toRaft makes Raft's entries, in two allocations.
func toRaft(read []log.Entry) []*raftpb.Entry {
	slabs := make([]slab, len(read))
	entries := make([]*raftpb.Entry, len(read))
	for i := range read {
		b, e := &slabs[i], &read[i]
		b.index, b.term = e.Index, e.Term
		b.entry.Index, b.entry.Term = &b.index, &b.term
		if len(e.Data) > 0 {
			b.entry.Data = e.Data
		}
		if e.Type != log.Normal {
			b.typ = raftpb.EntryType(e.Type)
			b.entry.Type = &b.typ
		}
		entries[i] = &b.entry
	}
	return entries
}

// Limits of recent: entries, and bytes of data.
const (
	recentMax      = 4096 // a power of two
	recentBytesMax = 16 << 20
	// pendingBytesMax holds for committed entries that Raft has not given out, as the applier is behind.
	pendingBytesMax = 128 << 20
)

// recent holds the newest entries as Raft gave them, so that what followers are sent is not
// made again for each. Their data is what the log holds in memory too. Entry i lies at ring[i mod recentMax].
//
// Entries that are not committed are held whatever their size, since Raft's task is to need no
// disk when it gives them out: their data is bounded by what a leader lets be uncommitted. Those
// that are committed and not given out have a limit of their own.
type recent struct {
	ring        []*raftpb.Entry
	first, next uint64
	bytes       int
	committed   uint64
	given       uint64 // up to here Raft has given out what is committed
}

func (r *recent) at(index uint64) **raftpb.Entry { return &r.ring[index%recentMax] }

// slice returns entries from lo on, up to hi - 1 and within maxSize but for the first. nil:
// lo is not here, or something before hi.
func (r *recent) slice(lo, hi, maxSize uint64) []*raftpb.Entry {
	if lo < r.first || hi > r.next {
		return nil
	}
	end, size := lo, uint64(0)
	for ; end < hi; end++ {
		size += encodedSize(*r.at(end))
		if size > maxSize && end > lo {
			break
		}
	}
	entries := make([]*raftpb.Entry, 0, end-lo)
	for i := lo; i < end; i++ {
		entries = append(entries, *r.at(i))
	}
	return entries
}

// unlike is the index of the first of some entries in whose place there is another one of its term; 0: there is none.
func (r *recent) unlike(entries []*raftpb.Entry) uint64 {
	for _, e := range entries {
		index := e.GetIndex()
		if index >= r.next {
			break
		}
		if index < r.first {
			continue
		}
		if own := *r.at(index); own.GetTerm() == e.GetTerm() && (own.GetType() != e.GetType() || !bytes.Equal(own.GetData(), e.GetData())) {
			return index
		}
	}
	return 0
}

// push takes in entries; what was there from the first one on goes.
func (r *recent) push(entries []*raftpb.Entry) {
	if r.ring == nil {
		r.ring = make([]*raftpb.Entry, recentMax)
	}
	if index := entries[0].GetIndex(); index < r.first || index > r.next {
		r.truncate(0)
		r.first, r.next = index, index
	} else {
		r.truncate(index)
	}
	for _, e := range entries {
		if r.next-r.first == recentMax {
			r.drop(r.first)
			r.first++
		}
		r.bytes += len(e.GetData())
		*r.at(r.next) = e
		r.next++
	}
	r.shrink()
}

// shrink drops committed entries, the oldest first, beyond the limits.
func (r *recent) shrink() {
	for r.first < r.next && (r.bytes > recentBytesMax && r.first <= r.given || r.bytes > pendingBytesMax && r.first <= r.committed) {
		r.drop(r.first)
		r.first++
	}
}

func (r *recent) drop(index uint64) {
	r.bytes -= len((*r.at(index)).GetData())
	*r.at(index) = nil
}

// truncate drops the entries from index on.
func (r *recent) truncate(index uint64) {
	for r.next > max(index, r.first) {
		r.next--
		r.drop(r.next)
	}
	if r.next > index {
		r.first, r.next = index, index
	}
}

// encodedSize is proto.Size, without its way round.
func encodedSize(e *raftpb.Entry) uint64 {
	n := uint64(0)
	if e.Type != nil {
		n += 1 + varintSize(uint64(*e.Type))
	}
	if e.Term != nil {
		n += 1 + varintSize(*e.Term)
	}
	if e.Index != nil {
		n += 1 + varintSize(*e.Index)
	}
	if e.Data != nil {
		n += 1 + varintSize(uint64(len(e.Data))) + uint64(len(e.Data))
	}
	return n
}

func varintSize(v uint64) uint64 { return uint64(bits.Len64(v|1)+6) / 7 }
