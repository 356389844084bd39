package group

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/replication/raftlog"
)

var someMembers = []Member{{ID: 1, Addr: "a:1"}, {ID: 2, Addr: "b.example:17100", Learner: true}, {ID: 900, Addr: "c", Learner: true, Stays: true}}

var someRoster = roster{members: someMembers, state: someState, removed: []uint64{3, 1 << 63}}

var someState = &raftpb.ConfState{Voters: []uint64{1}, Learners: []uint64{2, 900}}

func TestMembershipEncoding(t *testing.T) {
	b := someRoster.encode()
	r, err := decodeRoster(b)
	if err != nil || !sameRoster(r, someRoster) {
		t.Errorf("%v %v", r, err)
	}
	if _, err := decodeRoster([]byte{9, 0}); err == nil || !strings.Contains(err.Error(), "format version 9") {
		t.Errorf("a newer version: %v", err)
	}
	for n := range b[:30] {
		if _, err := decodeRoster(b[:n]); err == nil {
			t.Errorf("%d bytes of %d are accepted", n, len(b))
		}
	}
}

func sameRoster(a, b roster) bool {
	return slices.Equal(a.members, b.members) && slices.Equal(a.removed, b.removed) && proto.Equal(a.state, b.state)
}

func FuzzRoster(f *testing.F) {
	f.Add(someRoster.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRoster(b)
		if err != nil {
			return
		}
		again, err := decodeRoster(r.encode())
		if err != nil || !sameRoster(again, r) {
			t.Fatalf("%v, and again %v: %v", r, again, err)
		}
	})
}

func TestIdentity(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		fsys := simfile.New(sim, 1)
		want := &identity{group: [16]byte{1, 2, 3}, id: 7, founded: someRoster}
		if err := want.write(fsys); err != nil {
			t.Error(err)
			return
		}
		got, err := readIdentity(fsys)
		if err != nil || got.group != want.group || got.id != 7 || !sameRoster(got.founded, someRoster) {
			t.Errorf("%+v %v", got, err)
		}
		f, err := fsys.Open(identityName, file.OpenOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := f.WriteAt([]byte{0xff}, 20); err != nil {
			t.Error(err)
		}
		_ = f.Close()
		if _, err := readIdentity(fsys); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("a damaged file: %v", err)
		}
	})
}

// TestCheckFiles: what a start would refuse a check finds.
func TestCheckFiles(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		fsys := simfile.New(sim, 1)
		check := func(what string, want error) {
			if err := CheckFiles(fsys, sim); !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		flip := func(name string, slots ...int64) {
			for _, at := range slots {
				if err := fsys.FlipBit(name, at+20, 3); err != nil {
					t.Error(err)
				}
			}
		}
		check("no group", nil)
		id := &identity{group: [16]byte{1}, id: 7, founded: someRoster}
		if err := id.write(fsys); err != nil {
			t.Error(err)
			return
		}
		check("no state", raftlog.ErrNoState)
		st, err := raftlog.CreateState(stateOptions(&Options{FS: fsys, Env: sim}, id), raftlog.State{Term: 3})
		if err != nil {
			t.Error(err)
			return
		}
		_ = st.Close()
		check("all there", nil)
		flip(raftlog.StateFileName, 0, 4096)
		check("a damaged state", raftlog.ErrDamaged)
		flip(raftlog.StateFileName, 0, 4096)
		check("all there again", nil)
		flip(identityName, 0)
		check("a damaged name", errIdentity)
		if err := fsys.Remove(identityName); err != nil {
			t.Error(err)
		}
		check("no name, and a state", errIdentity)
	})
}

// A lease runs from the sending of a round that a majority has answered, and no other
// answer renews it.
func TestLease(t *testing.T) {
	l := lease{length: 100 * time.Millisecond, held: true}
	l.term.Store(7)
	task := &raftTask{n: &core{incarnation: 5}, env: env.Real(), first: 40}
	for i := range 3 {
		l.seq++
		l.sent = append(l.sent, leaseRound{seq: l.seq, at: time.Duration(10*(i+1)) * time.Millisecond})
	}
	index := uint64(39)
	confirm := func(incarnation uint64, kind byte, seq uint64) {
		l.confirmed(task, raft.ReadState{RequestCtx: readContext(incarnation, kind, seq), Index: index})
	}
	confirm(4, contextLease, 3) // of an earlier process
	confirm(5, contextRead, 3)
	confirm(5, contextLease, 1) // of the only voter, from before it has committed in its term
	if l.valid(0, 7) {
		t.Error("a lease without an answer")
	}
	index = 40
	confirm(5, contextLease, 2)
	if !l.valid(119*time.Millisecond, 7) || l.valid(120*time.Millisecond, 7) {
		t.Error("the lease of round 2 ends 100 ms after it was sent")
	}
	if l.valid(0, 6) {
		t.Error("the lease of term 7 is taken for one of term 6")
	}
	confirm(5, contextLease, 1) // late
	if !l.valid(119*time.Millisecond, 7) {
		t.Error("a late answer has shortened the lease")
	}
	l.drop()
	confirm(5, contextLease, 3)
	if l.valid(0, 7) {
		t.Error("a lease after it was dropped")
	}
	if got := leaseLength(promiseLength(50*time.Millisecond, 10)); got >= 450*time.Millisecond {
		t.Errorf("a lease of %v is not shorter than the shortest election timeout", got)
	}
}

func TestSettle(t *testing.T) {
	state := &raftpb.ConfState{Voters: []uint64{1, 2}, VotersOutgoing: []uint64{3}, Learners: []uint64{4}, LearnersNext: []uint64{3}}
	members := []Member{{ID: 1}, {ID: 2, Learner: true}, {ID: 3}, {ID: 4}, {ID: 5}}
	want := []Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}
	got := roster{members: members, removed: []uint64{7, 4}}.settle(state)
	if !slices.Equal(got.members, want) {
		t.Errorf("%v, want %v", got.members, want)
	}
	if want := []uint64{7, 5}; !slices.Equal(got.removed, want) {
		t.Errorf("removed: %v, want %v: 5 has left, 4 is back", got.removed, want)
	}
	r := roster{state: &raftpb.ConfState{}}
	for id := range uint64(maxRemoved + 10) {
		r.members = []Member{{ID: id}}
		r = r.settle(r.state)
	}
	if len(r.removed) != maxRemoved || r.removed[0] != 10 {
		t.Errorf("of %d that have left %d are remembered, from %d on", maxRemoved+10, len(r.removed), r.removed[0])
	}
}

// Of an entry that is restored in part the transactions that stay are what they were.
func TestCut(t *testing.T) {
	e := entry.Envelope{Kind: entry.Transactions, Term: 3, First: 8, Count: 3, Time: 1000}
	var all []entry.Txn
	var body []byte
	for n := e.First; n <= e.Last(); n++ {
		x := entry.Txn{Number: n, DependsOn: n - 1, Time: 900, Events: []byte{1, 2, byte(n)}, Flags: entry.TokenFlag | entry.TraceFlag,
			Token: entry.Token{byte(n)}, Trace: trace.Context{Trace: [16]byte{byte(n)}, Span: [8]byte{byte(n)}}}
		all = append(all, x)
		body = entry.AppendTxn(body, &x, e.Time)
	}
	c := logCopy{until: 9}
	data, err := c.cut(&e, body)
	if err != nil {
		t.Fatal(err)
	}
	short, body, err := entry.Parse(data)
	if err != nil || short.First != 8 || short.Count != 2 || short.Term != 3 {
		t.Fatalf("%+v %v", short, err)
	}
	r := entry.NewReader(&short, body)
	for _, want := range all[:2] {
		var got entry.Txn
		if more, err := r.Next(&got); !more || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v: %v, %v", got, want, more, err)
		}
	}
	if more, err := r.Next(&entry.Txn{}); more || err != nil {
		t.Errorf("behind the last one: %v, %v", more, err)
	}
}

// Ticks that a task has slept through count from the last word of its leader, and from the last change
// of its role: promises to leaders count on it that n ticks take n-1 times the length of one.
func TestMissedTicks(t *testing.T) {
	const tick = 50 * time.Millisecond
	for _, c := range []struct {
		name string
		from time.Duration // when the leader was heard
		now  time.Duration
		late bool
		want int
	}{
		{"nothing was heard", 50 * time.Millisecond, 251 * time.Millisecond, false, 3},
		{"the leader was heard in the last tick", 240 * time.Millisecond, 251 * time.Millisecond, false, 0},
		{"the leader was heard two ticks before", 150 * time.Millisecond, 251 * time.Millisecond, false, 2},
		{"the process stood still", 50 * time.Millisecond, 251 * time.Millisecond, true, 0},
		{"the first tick is yet to come", 50 * time.Millisecond, 60 * time.Millisecond, false, 0},
	} {
		task := &raftTask{tick: tick, nextTick: 100 * time.Millisecond, calm: calm{sleep: true, from: c.from}}
		if got := task.missed(c.now, c.late); got != c.want {
			t.Errorf("%s: %d ticks, want %d", c.name, got, c.want)
		}
	}
}
