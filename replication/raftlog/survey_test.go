package raftlog

import (
	"math/rand/v2"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// What is told of changes of membership is so, whatever is appended, taken back, read and applied.
func TestSurvey(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var all []*raftpb.Entry
		grow := func() (grown []*raftpb.Entry) {
			for range 1 + rng.IntN(8) {
				e := &raftpb.Entry{Index: new(uint64(len(all) + 1))}
				if rng.IntN(5) == 0 {
					e.Type = raftpb.EntryConfChangeV2.Enum()
				}
				all, grown = append(all, e), append(grown, e)
			}
			return grown
		}
		for range 5 {
			grow()
		}
		applied := rng.Uint64N(uint64(len(all)))
		s := survey{base: applied, from: applied, to: uint64(len(all))}
		told := 0
		for range 40 {
			switch rng.IntN(5) {
			case 0:
				all = all[:applied+rng.Uint64N(uint64(len(all))-applied+1)]
				s.truncate(uint64(len(all)) + 1)
				s.appended(grow())
			case 1:
				s.appended(grow())
			case 2:
				from := rng.Uint64N(s.from + 2)
				s.read(all[min(from, uint64(len(all))):min(from+5, uint64(len(all)))])
			case 3:
				applied += min(rng.Uint64N(4), uint64(len(all))-applied)
				s.applied(applied)
			}
			lo := applied + 1
			hi := lo + 1 + rng.Uint64N(uint64(len(all)))
			if hi > uint64(len(all))+1 {
				continue
			}
			got := s.types(lo, hi)
			if got == nil {
				continue
			}
			told++
			want := false
			for _, e := range all[lo-1 : hi-1] {
				want = want || e.GetType() != raftpb.EntryNormal
			}
			if is := got[0].GetType() != raftpb.EntryNormal; is != want || !want && len(got) != int(hi-lo) {
				t.Fatalf("seed %d: entries %d to %d: a change %t, it says %t, with %d entries", seed, lo, hi-1, want, is, len(got))
			}
		}
		if told == 0 && seed < 10 {
			t.Errorf("seed %d: nothing was told", seed)
		}
	}
}

// A member with a backlog on its disk stands for election without reading it, unless a change of membership is in
// it; for what was there at the start another task looks first. What stands in for entries is given out to nobody.
func TestStandingReadsNothing(t *testing.T) {
	for _, change := range []bool{false, true} {
		for _, restarted := range []bool{false, true} {
			simulate(t, 1, func(s *simenv.Sim) { standing(s, change, restarted) })
		}
	}
}

func standing(s *simenv.Sim, change, restarted bool) {
	const n = 5000
	fsys := simfile.New(s, 1)
	opt := logOptions(fsys, s)
	opt.Cache = -1
	l := must(log.Create(opt, log.Start{}))
	state := must(CreateState(stateOptions(fsys, s), State{Term: 1}))
	var raw *raft.RawNode
	surveys := 0
	open := func() *Storage {
		return must(New(Config{Log: l, State: state, ConfState: &raftpb.ConfState{Voters: []uint64{5, 6}}, Survey: func() { surveys++ },
			Load: func(uint64) {}, Leads: func() bool { return raw.BasicStatus().RaftState == raft.StateLeader }}))
	}
	store := open()
	var entries []*raftpb.Entry
	for i := range uint64(n) {
		entries = append(entries, &raftpb.Entry{Index: new(i + 1), Term: new(uint64(1)), Data: mark(2000)})
	}
	if change {
		entries[n/2].Type, entries[n/2].Data = raftpb.EntryConfChangeV2.Enum(), []byte{1}
	}
	for i := 0; i < n; i += 100 {
		ok(store.Append(&raftpb.Message{Entries: entries[i : i+100]}))
		ok(store.Sync())
	}
	ok(state.SetCommit(n))
	if restarted {
		store = open()
	}
	store.recent.truncate(0)
	raw = must(raft.NewRawNode(&raft.Config{ID: 5, ElectionTick: 10, HeartbeatTick: 1, Storage: store, MaxSizePerMsg: 1 << 20, MaxCommittedSizePerReady: 4 << 20,
		MaxInflightMsgs: 10, PreVote: true, CheckQuorum: true, AsyncStorageWrites: true, Logger: quiet}))
	b := raw.BasicStatus()
	if known := store.Surveyed(b.Applied, b.HardState.GetCommit()); known == restarted || surveys != map[bool]int{true: 1}[restarted] {
		panic("it knows what it cannot know, or the other way round, or nobody looks")
	}
	if restarted {
		store.Survey(func() bool { return false })
		assert(store.Surveyed(0, n), "after a look at all entries they are not known")
	}
	reads := l.Stats().DiskReads
	store.Standing(func() { ok(raw.Campaign()) })
	assert(l.Stats().DiskReads == reads, "%d reads", l.Stats().DiskReads-reads)
	assert((raw.BasicStatus().RaftState == raft.StatePreCandidate) != change, "a change is in the backlog: %t, and it is %v", change, raw.BasicStatus().RaftState)
	for _, m := range raw.Ready().Messages {
		for _, e := range m.GetEntries() {
			assert(e.GetIndex() != 0 && len(e.GetData()) != 1 || e.GetType() != raftpb.EntryNormal, "a message of type %v holds what stands in for an entry", m.GetType())
		}
	}
}
