package raftlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

var quiet = &raft.DefaultLogger{Logger: stdlog.New(io.Discard, "", 0)}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testGroup = [16]byte{7}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	ok(err)
	return v
}

func assert(cond bool, format string, args ...any) {
	if !cond {
		panic(fmt.Sprintf(format, args...))
	}
}

func simulate(t *testing.T, seed uint64, main func(s *simenv.Sim)) {
	t.Helper()
	s := simenv.New(seed)
	s.StepLimit = 2_000_000
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d: %v", seed, r)
		}
	}()
	s.Run(func() { main(s) })
}

func stateOptions(fsys file.FS, e env.Env) StateOptions {
	return StateOptions{FS: fsys, Env: e, Group: testGroup, Member: 5}
}

func logOptions(fsys file.FS, e env.Env) log.Options {
	return log.Options{FS: fsys, Env: e, Group: testGroup, Preallocate: 64 << 10}
}

// mark is the data of an entry without transactions.
func mark(n int) []byte {
	e := entry.Envelope{Kind: entry.Mark, RawLength: uint32(n)}
	b := make([]byte, entry.EnvelopeSize+n)
	e.Put(b)
	return b
}

type node struct {
	store *Storage
	raw   *raft.RawNode
}

func (n *node) close() {
	ok(n.store.Log().Close())
	ok(n.store.State().Close())
}

func open(fsys file.FS, e env.Env, create bool, applied uint64) *node {
	var l *log.Log
	var st *StateFile
	if create {
		l = must(log.Create(logOptions(fsys, e), log.Start{}))
		st = must(CreateState(stateOptions(fsys, e), State{}))
	} else {
		l = must(log.Open(logOptions(fsys, e)))
		st = must(OpenState(stateOptions(fsys, e)))
	}
	conf := &raftpb.ConfState{Voters: []uint64{5}}
	store := must(New(Config{Log: l, State: st, Applied: applied, ConfState: conf,
		Snapshot: func() (uint64, *raftpb.ConfState, bool) { return applied, conf, applied > 0 }}))
	raw := must(raft.NewRawNode(&raft.Config{ID: 5, ElectionTick: 10, HeartbeatTick: 1, Storage: store, Applied: applied,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 16, AsyncStorageWrites: true, Logger: quiet, PreVote: true, CheckQuorum: true}))
	return &node{store, raw}
}

// drive handles what Raft has to do and returns the committed entries.
func (n *node) drive() (committed []*raftpb.Entry) {
	for n.raw.HasReady() {
		for _, m := range n.raw.Ready().Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				ok(n.store.Store(m))
			case raft.LocalApplyThread:
				committed = append(committed, m.GetEntries()...)
			}
			for _, r := range m.GetResponses() {
				ok(n.raw.Step(r))
			}
		}
	}
	return committed
}

// A group of one: entries come back in order after a restart, term and vote too.
func TestRaftOnTop(t *testing.T) {
	simulate(t, 3, func(s *simenv.Sim) {
		fsys := simfile.New(s, 3)
		n := open(fsys, s, true, 0)
		ok(n.raw.Campaign())
		n.drive()
		var want, got []*raftpb.Entry
		for i := range 300 {
			ok(n.raw.Propose(mark(i * 10)))
			got = append(got, n.drive()...)
		}
		assert(len(got) == 300, "%d committed", len(got))
		want = got
		term := n.store.State().Get().Term
		n.close()

		n = open(fsys.CrashImage(), s, false, 50)
		st := n.store.State().Get()
		assert(st.Term == term && st.Vote == 5 && st.LogFile > 0, "%+v", st)
		ok(n.raw.Campaign())
		got = n.drive()
		for i, e := range got[:251] {
			assert(proto.Equal(e, want[i+49]), "entry %d: %v, want %v", i, e, want[i+49])
		}
		n.close()
	})
}

func TestErrorsForRaft(t *testing.T) {
	simulate(t, 4, func(s *simenv.Sim) {
		fsys := simfile.New(s, 4)
		l := must(log.Create(logOptions(fsys, s), log.Start{Index: 10, Term: 2}))
		st := must(CreateState(stateOptions(fsys, s), State{Term: 2}))
		_, err := New(Config{Log: l, State: st, Applied: 9})
		assert(err != nil, "a log without the next entry passed")
		_, err = New(Config{Log: l, State: st, Applied: 11})
		assert(err != nil, "an engine ahead of the log passed")
		store := must(New(Config{Log: l, State: st, Applied: 10}))
		assert(must(store.Term(10)) == 2, "term before the first entry")
		_, err = store.Term(9)
		assert(err == raft.ErrCompacted, "%v", err)
		_, err = store.Term(11)
		assert(err == raft.ErrUnavailable, "%v", err)
		_, err = store.Entries(10, 11, 1)
		assert(err == raft.ErrCompacted, "%v", err)
		_, err = store.Entries(11, 12, 1)
		assert(err == raft.ErrUnavailable, "%v", err)
		_, err = store.Snapshot()
		assert(err == raft.ErrSnapshotTemporarilyUnavailable, "%v", err)
		var entries []*raftpb.Entry
		for i := uint64(11); i < 31; i++ {
			entries = append(entries, &raftpb.Entry{Index: new(i), Term: new(uint64(3)), Data: mark(100)})
		}
		ok(store.Append(&raftpb.Message{Entries: entries}))
		for _, limit := range []uint64{0, 1, 200, 350, 1 << 40} {
			fromMemory := must(store.Entries(12, 31, limit))
			size := 0
			for i, e := range fromMemory {
				size += proto.Size(e)
				assert(proto.Equal(e, entries[i+1]), "entry %d", i)
				assert(uint64(proto.Size(e)) == encodedSize(e), "size %d, not %d", encodedSize(e), proto.Size(e))
			}
			assert(len(fromMemory) == 1 || uint64(size) <= limit, "%d bytes, limit %d", size, limit)
			store.recent.truncate(0)
			fromLog := must(store.Entries(12, 31, limit))
			assert(len(fromLog) > 0 && len(fromLog) <= max(1, len(fromMemory)), "%d entries", len(fromLog))
			for i, e := range fromLog {
				assert(e.GetIndex() == entries[i+1].GetIndex() && string(e.Data) == string(entries[i+1].Data), "entry %d", i)
			}
			store.recent.push(entries)
		}
		ok(l.Close())
		ok(st.Close())
		assert(errors.Is(store.Append(&raftpb.Message{Entries: entries[:1], Term: new(uint64(9))}), fs.ErrClosed), "closed")
	})
}
