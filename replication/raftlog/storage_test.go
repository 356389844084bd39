package raftlog

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// pair is a storage and Raft's own in memory, which are told the same.
type pair struct {
	rng   *rand.Rand
	store *Storage
	ref   *raft.MemoryStorage
	term  uint64
}

func (p *pair) append() {
	last := must(p.ref.LastIndex())
	committed := p.store.Log().Committed()
	from := last + 1
	if p.rng.IntN(5) == 0 && last > committed {
		from = committed + 1 + p.rng.Uint64N(last-committed)
		p.term++
	}
	var entries []*raftpb.Entry
	for i := range 1 + p.rng.Uint64N(6) {
		e := &raftpb.Entry{Index: new(from + i), Term: new(p.term)}
		switch p.rng.IntN(6) {
		case 0:
		case 1:
			e.Type, e.Data = raftpb.EntryConfChangeV2.Enum(), []byte{byte(i), 2, 3}
		default:
			e.Data = mark(p.rng.IntN(700))
		}
		entries = append(entries, e)
	}
	ok(p.store.Append(&raftpb.Message{Entries: entries, Term: new(p.term), Vote: new(uint64(1))}))
	ok(p.ref.Append(entries))
	if p.rng.IntN(3) == 0 {
		ok(p.store.Sync())
		last = must(p.ref.LastIndex())
		p.store.Log().SetCommitted(committed + p.rng.Uint64N(last-committed+1))
	}
}

// compare asks both the same.
func (p *pair) compare() {
	first, last := must(p.ref.FirstIndex()), must(p.ref.LastIndex())
	assert(must(p.store.FirstIndex()) == first && must(p.store.LastIndex()) == last, "%d to %d", first, last)
	for range 5 {
		i := first - 1 + p.rng.Uint64N(last-first+4)
		term, err := p.store.Term(i)
		want, wantErr := p.ref.Term(i)
		assert(term == want && err == wantErr, "term of %d: %d, %v; %d, %v", i, term, err, want, wantErr)
	}
	if last < first {
		return
	}
	lo := first + p.rng.Uint64N(last-first+1)
	hi := lo + 1 + p.rng.Uint64N(last-lo+1)
	limit := p.rng.Uint64N(4000)
	want := must(p.ref.Entries(lo, hi, limit))
	got := must(p.store.Entries(lo, hi, limit))
	assert(len(got) > 0 && len(got) <= len(want), "%d entries, %d fit", len(got), len(want))
	for i := range got {
		assert(proto.Equal(got[i], want[i]), "entry %d: %v, want %v", lo+uint64(i), got[i], want[i])
	}
	got = append(got, nil) // the slice is the caller's
	assert(got[len(got)-1] == nil, "")
}

// Against Raft's storage in memory, over random appends, conflicts and restarts.
func TestAgainstMemory(t *testing.T) {
	for seed := range uint64(20) {
		simulate(t, seed, func(s *simenv.Sim) {
			fsys := simfile.New(s, seed)
			opt := logOptions(fsys, s)
			opt.Cache = []int64{0, -1, 2000}[seed%3]
			p := &pair{rng: rand.New(rand.NewPCG(seed, 2)), ref: raft.NewMemoryStorage(), term: 1}
			l := must(log.Create(opt, log.Start{}))
			sf := must(CreateState(stateOptions(fsys, s), State{}))
			p.store = must(New(Config{Log: l, State: sf}))
			for range 60 {
				p.append()
				p.compare()
				if p.rng.IntN(4) == 0 {
					p.store.recent.truncate(p.rng.Uint64N(must(p.ref.LastIndex()) + 2))
				}
				if p.rng.IntN(10) == 0 {
					committed := l.Committed()
					ok(l.Close())
					ok(sf.Close())
					l, sf = must(log.Open(opt)), must(OpenState(stateOptions(fsys, s)))
					p.store = must(New(Config{Log: l, State: sf, Applied: committed}))
					hs, _, err := p.store.InitialState()
					ok(err)
					assert(hs.GetTerm() == p.term && hs.GetCommit() == committed, "%v", hs)
				}
			}
			ok(l.Close())
			ok(sf.Close())
		})
	}
}

// recent holds what was pushed, within its limits.
func TestRecentLimits(t *testing.T) {
	var r recent
	next := uint64(1)
	for i := range 40_000 {
		if i%1000 == 999 {
			next -= 300
		}
		e := &raftpb.Entry{Index: new(next), Term: new(uint64(i)), Data: make([]byte, i%20_000)}
		r.push([]*raftpb.Entry{e})
		r.committed, r.given = next, next
		r.shrink()
		next++
		if r.next != next || r.next-r.first > recentMax || r.bytes > recentBytesMax {
			t.Fatalf("%d to %d, %d bytes", r.first, r.next, r.bytes)
		}
	}
	bytes := 0
	for i := r.first; i < r.next; i++ {
		e := *r.at(i)
		if e.GetIndex() != i {
			t.Fatalf("entry %d is %d", i, e.GetIndex())
		}
		bytes += len(e.Data)
	}
	if bytes != r.bytes {
		t.Fatalf("%d bytes, counted %d", bytes, r.bytes)
	}
	held := 0
	for _, e := range r.ring {
		if e != nil {
			held++
		}
	}
	if held != int(r.next-r.first) {
		t.Fatalf("%d entries are held, %d are in use", held, r.next-r.first)
	}
}

// A full disk and a failing one, as the task that stores meets them.
func TestStoreFaults(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		n := open(fsys, s, true, 0)
		entries := []*raftpb.Entry{{Index: new(uint64(1)), Term: new(uint64(1)), Data: mark(100_000)}}
		m := &raftpb.Message{Entries: entries, Term: new(uint64(1)), Vote: new(uint64(5)), Commit: new(uint64(0))}
		fsys.SetCapacity(fsys.Used() + 10)
		assert(errors.Is(n.store.Store(m), file.ErrNoSpace), "the disk is not full")
		assert(n.store.Err() == nil && n.store.State().Get().Term == 1, "%v", n.store.Err())
		fsys.SetCapacity(0)
		ok(n.store.Store(m))
		ok(n.store.Store(&raftpb.Message{Commit: new(uint64(1)), Term: new(uint64(1)), Vote: new(uint64(5))}))

		more := []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(1))}, {Index: new(uint64(3)), Term: new(uint64(1))}}
		ok(n.store.Append(&raftpb.Message{Entries: more}))
		ok(n.store.Sync())

		in := fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Err: syscall.EIO})
		m.Entries = []*raftpb.Entry{{Index: new(uint64(4)), Term: new(uint64(1))}}
		err := n.store.Store(m)
		assert(errors.Is(err, syscall.EIO) && errors.Is(n.store.Err(), syscall.EIO), "%v", err)
		in.Stop()
		assert(n.store.Store(m) != nil, "the log goes on after a failed sync")
		_ = n.store.Log().Close()
		ok(n.store.State().Close())
	})
}

// A damaged entry does not make Raft panic when it is read for a member: Raft hears that it
// is gone, and Err says why.
func TestDamagedEntry(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		n := open(fsys, s, true, 0)
		ok(n.store.Store(&raftpb.Message{Entries: []*raftpb.Entry{
			{Index: new(uint64(1)), Term: new(uint64(1)), Data: mark(100)}, {Index: new(uint64(2)), Term: new(uint64(1)), Data: mark(100)}}}))
		pos := must(n.store.Log().Position(2))
		n.close()
		n = open(fsys, s, false, 0)
		f := must(fsys.Open("binlog/"+log.FileName(pos.File), file.OpenOptions{}))
		must(f.WriteAt([]byte{0xff, 0xfe}, pos.Offset+80))
		_, err := n.store.Entries(1, 3, 1<<20)
		var damage *log.CorruptError
		assert(err == raft.ErrCompacted && errors.As(n.store.Err(), &damage) && damage.Index == 2, "%v, %v", err, n.store.Err())
		_ = n.store.Log().Close()
		ok(n.store.State().Close())
	})
}

// A log whose newest file is gone is not taken for a shorter one, unless its entries were
// taken back.
func TestNewestFileMissing(t *testing.T) {
	simulate(t, 9, func(s *simenv.Sim) {
		fsys := simfile.New(s, 9)
		n := open(fsys, s, true, 0)
		rotate := mark(10)
		e := entry.Envelope{Kind: entry.Mark, RawLength: 10, Flags: entry.FlagRotate}
		e.Put(rotate)
		add := func(index, term uint64, data []byte) {
			ok(n.store.Append(&raftpb.Message{Entries: []*raftpb.Entry{{Index: &index, Term: &term, Data: data}}}))
			ok(n.store.Sync())
		}
		add(1, 1, mark(10))
		add(2, 1, rotate)
		add(3, 1, mark(10))
		assert(n.store.State().Get().LogFile == 2, "%+v", n.store.State().Get())
		n.close()

		fsys.SyncAll()
		lost := fsys.CrashImage()
		ok(lost.Remove("binlog/" + log.FileName(2)))
		_, err := log.Open(logOptions(lost, s))
		assert(err != nil && strings.Contains(err.Error(), "the log ends with binlog.000001. synced.mark says"), "%v", err)
		ok(lost.Remove("binlog/synced.mark"))
		l, st := must(log.Open(logOptions(lost, s))), must(OpenState(stateOptions(lost, s)))
		_, err = New(Config{Log: l, State: st})
		assert(err != nil && strings.Contains(err.Error(), "binlog.000002 was there: files are missing"), "%v", err)

		n = open(fsys.CrashImage(), s, false, 0)
		add(2, 2, mark(10))
		assert(n.store.State().Get().LogFile == 1, "%+v", n.store.State().Get())
		n.close()
	})
}
