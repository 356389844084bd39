package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// What is not committed stays in memory, however much it is; Raft gives it out without a look
// at the disk.
func TestUncommittedStays(t *testing.T) {
	var r recent
	for i := uint64(1); i <= 5; i++ {
		r.push([]*raftpb.Entry{{Index: new(i), Term: new(uint64(1)), Data: make([]byte, recentBytesMax)}})
	}
	if r.first != 1 || r.slice(1, 6, 1<<40) == nil {
		t.Fatalf("%d to %d are held", r.first, r.next)
	}
	r.committed = 4
	r.shrink()
	if r.first != 1 {
		t.Fatalf("%d to %d are held, which were not given out", r.first, r.next)
	}
	r.given = 3
	r.shrink()
	if r.first != 4 {
		t.Fatalf("%d to %d are held, up to 3 were given out", r.first, r.next)
	}
	for i := uint64(6); r.bytes <= pendingBytesMax; i++ {
		r.push([]*raftpb.Entry{{Index: new(i), Term: new(uint64(1)), Data: make([]byte, recentBytesMax)}})
	}
	r.committed = r.next - 1
	if r.shrink(); r.bytes > pendingBytesMax {
		t.Fatalf("%d bytes are held though the entries are committed", r.bytes)
	}
}

// A leader that needs a large entry from the disk for a member hears that it gets neither the
// entry nor a snapshot now, and has it once another task has read it.
func TestLargeEntryIsLoaded(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := logOptions(fsys, s)
		opt.Cache = -1
		l := must(log.Create(opt, log.Start{}))
		state := must(CreateState(stateOptions(fsys, s), State{}))
		leads, asked := true, uint64(0)
		store := must(New(Config{Log: l, State: state, ConfState: &raftpb.ConfState{Voters: []uint64{5}},
			Snapshot: func() (uint64, *raftpb.ConfState, bool) { return 1, nil, true },
			Load:     func(index uint64) { asked = index }, Leads: func() bool { return leads }}))
		var entries []*raftpb.Entry
		for i, size := range []int{10, largeEntry + 1, 10, 2 * largeEntry, 10} {
			entries = append(entries, &raftpb.Entry{Index: new(uint64(i + 1)), Term: new(uint64(1)), Data: mark(size)})
		}
		ok(store.Append(&raftpb.Message{Entries: entries}))
		ok(store.Sync())
		store.GaveOut(3, 5)
		store.recent.truncate(0)

		has := func(lo uint64, want int) {
			got := must(store.Entries(lo, 6, 1<<20))
			assert(len(got) == want && got[0].GetIndex() == lo, "%d entries from %d on", len(got), lo)
		}
		has(1, 1)
		has(3, 1)
		_, err := store.Entries(2, 6, 1<<20)
		assert(err == raft.ErrCompacted && asked == 2, "%v, entry %d is to be read", err, asked)
		_, err = store.Snapshot()
		assert(err == raft.ErrSnapshotTemporarilyUnavailable, "%v", err)
		_, err = store.Snapshot()
		assert(err == nil, "a snapshot that is asked for later: %v", err)
		_, err = store.Entries(2, 6, 1<<20)
		assert(err == raft.ErrCompacted, "%v", err)
		store.Load(asked)
		has(2, 1)

		// What is read while the entry is taken back, or before, is not what the log has then.
		for _, before := range []bool{true, false} {
			_, err = store.Entries(2, 3, 1<<20)
			assert(err == raft.ErrCompacted, "%v", err)
			overwrite := func() {
				e := &raftpb.Entry{Index: new(uint64(2)), Term: new(store.lastTerm() + 1), Data: mark(largeEntry + 9)}
				ok(store.Append(&raftpb.Message{Entries: []*raftpb.Entry{e}}))
				ok(store.Sync())
				store.recent.truncate(0)
			}
			if before {
				overwrite()
			}
			store.Load(asked)
			if !before {
				overwrite()
			}
			_, err = store.Entries(2, 3, 1<<20)
			assert(err == raft.ErrCompacted, "an entry that was taken back is sent: %v", err)
			store.Load(asked)
			got := must(store.Entries(2, 3, 1<<20))
			assert(got[0].GetTerm() == store.lastTerm(), "term %d, the log has %d", got[0].GetTerm(), store.lastTerm())
		}
		ok(store.Append(&raftpb.Message{Entries: []*raftpb.Entry{
			{Index: new(uint64(3)), Term: new(store.lastTerm()), Data: mark(10)},
			{Index: new(uint64(4)), Term: new(store.lastTerm()), Data: mark(2 * largeEntry)},
			{Index: new(uint64(5)), Term: new(store.lastTerm()), Data: mark(10)}}}))
		ok(store.Sync())
		store.recent.truncate(0)
		has(4, 1) // it is to be given out next, which cannot wait
		leads = false
		has(2, 1)
		ok(l.Close())
		ok(state.Close())
	})
}

// lastTerm is the term of the log's last entry.
func (s *Storage) lastTerm() uint64 { return s.cfg.Log.LastTerm() }
