package raftlog

import (
	"math/rand/v2"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// raftSide is a log as Raft has it: what it has appended, and the commit index.
type raftSide struct {
	entries []*raftpb.Entry // from index 1 on
	commit  uint64
	applied uint64 // durably, by the engine
}

// appends makes a storage message of some new entries, with a conflicting tail now and then.
func (r *raftSide) appends(rng *rand.Rand, term *uint64) *raftpb.Message {
	last := uint64(len(r.entries))
	if rng.IntN(5) == 0 && last > r.commit {
		*term++
		r.entries = r.entries[:r.commit+rng.Uint64N(last-r.commit)]
	}
	from := len(r.entries)
	for range rng.IntN(5) {
		e := &raftpb.Entry{Index: new(uint64(len(r.entries) + 1)), Term: new(*term), Data: mark(rng.IntN(100))}
		if rng.IntN(6) == 0 {
			e.Type, e.Data = raftpb.EntryConfChangeV2.Enum(), []byte{1}
		}
		r.entries = append(r.entries, e)
	}
	r.commit += rng.Uint64N(uint64(len(r.entries)) - r.commit + 1)
	return &raftpb.Message{Entries: r.entries[from:], Commit: new(r.commit)}
}

// newestChange is the last change of membership up to an index.
func (r *raftSide) newestChange(upTo uint64) uint64 {
	for i := upTo; i > 0; i-- {
		if r.entries[i-1].GetType() != raftpb.EntryNormal {
			return i
		}
	}
	return 0
}

// Whatever a member has acknowledged, it comes back with all changes of membership that were
// committed as far as it knew, if its power is lost and its engine has little of it; without
// such changes the state file is not written.
func TestChangesAreRemembered(t *testing.T) {
	for seed := range uint64(200) {
		simulate(t, seed, func(s *simenv.Sim) {
			rng := rand.New(rand.NewPCG(seed, 4))
			fsys := simfile.New(s, seed)
			l := must(log.Create(logOptions(fsys, s), log.Start{}))
			state := must(CreateState(stateOptions(fsys, s), State{}))
			r, term := &raftSide{}, uint64(1)
			for range 6 {
				store := must(New(Config{Log: l, State: state, Applied: r.applied}))
				// What an earlier process knew and did not store does not count any more.
				hs, _, err := store.InitialState()
				ok(err)
				r.commit = hs.GetCommit()
				for range rng.IntN(12) {
					for range rng.IntN(3) {
						ok(store.Append(r.appends(rng, &term)))
					}
					before, stored := state.sequence, state.Get().Commit
					ok(store.Sync())
					change := r.newestChange(r.commit)
					kept := max(state.Get().Commit, r.applied)
					assert(kept >= change, "commit index %d is durable, a change at %d is committed", kept, change)
					assert(kept <= r.commit, "commit index %d is durable, %d is committed", kept, r.commit)
					if change <= max(stored, r.applied) && store.changes.unread <= max(stored, r.applied) {
						assert(state.sequence-before <= 1, "the state file was written without need")
					}
				}
				r.applied += rng.Uint64N(r.commit - r.applied + 1)
				fsys = fsys.CrashImage()
				l, state = must(log.Open(logOptions(fsys, s))), must(OpenState(stateOptions(fsys, s)))
				r.entries = r.entries[:l.LastIndex()]
				for i := range r.entries {
					term = max(term, r.entries[i].GetTerm())
				}
				assert(l.LastIndex() >= r.applied, "the log lost what was synced")
			}
		})
	}
}

// A log that ends before a commit index that was stored has lost entries.
func TestCommittedEntriesMissing(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		l := must(log.Create(logOptions(fsys, s), log.Start{}))
		state := must(CreateState(stateOptions(fsys, s), State{Term: 1, Commit: 3}))
		_, err := New(Config{Log: l, State: state})
		assert(err != nil, "a log without entries that were committed passed")
	})
}
