package group

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

var someMembers = []Member{{ID: 1, Addr: "a:1"}, {ID: 2, Addr: "b.example:17100", Learner: true}, {ID: 900, Addr: "c", Learner: true, Stays: true}}

var someState = &raftpb.ConfState{Voters: []uint64{1}, Learners: []uint64{2, 900}}

func TestMembershipEncoding(t *testing.T) {
	b := encodeMembership(someMembers, someState)
	members, state, err := decodeMembership(b)
	if err != nil || !reflect.DeepEqual(members, someMembers) || !proto.Equal(state, someState) {
		t.Errorf("%v %v %v", members, state, err)
	}
	if _, _, err := decodeMembership([]byte{9, 0}); err == nil || !strings.Contains(err.Error(), "format version 9") {
		t.Errorf("a newer version: %v", err)
	}
	for n := range b[:20] {
		if _, _, err := decodeMembership(b[:n]); err == nil {
			t.Errorf("%d bytes of %d are accepted", n, len(b))
		}
	}
}

func FuzzMembership(f *testing.F) {
	f.Add(encodeMembership(someMembers, someState))
	f.Fuzz(func(t *testing.T, b []byte) {
		members, state, err := decodeMembership(b)
		if err != nil {
			return
		}
		again, _, err := decodeMembership(encodeMembership(members, state))
		if err != nil || !reflect.DeepEqual(again, members) {
			t.Fatalf("%v, and again %v: %v", members, again, err)
		}
	})
}

func TestIdentity(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		fsys := simfile.New(sim, 1)
		want := &identity{group: [16]byte{1, 2, 3}, id: 7, members: someMembers, state: someState}
		if err := want.write(fsys); err != nil {
			t.Error(err)
			return
		}
		got, err := readIdentity(fsys)
		if err != nil || got.group != want.group || got.id != 7 || !reflect.DeepEqual(got.members, someMembers) {
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

// A lease runs from the sending of a round that a majority has answered, and no other
// answer renews it.
func TestLease(t *testing.T) {
	l := lease{length: 100 * time.Millisecond, held: true}
	task := &raftTask{n: &core{incarnation: 5}}
	for i := range 3 {
		l.seq++
		l.sent = append(l.sent, leaseRound{l.seq, time.Duration(10*(i+1)) * time.Millisecond})
	}
	confirm := func(incarnation uint64, kind byte, seq uint64) {
		l.confirmed(task, raft.ReadState{RequestCtx: readContext(incarnation, kind, seq)})
	}
	confirm(4, contextLease, 3) // of an earlier process
	confirm(5, contextRead, 3)
	if l.valid(0) {
		t.Error("a lease without an answer")
	}
	confirm(5, contextLease, 2)
	if !l.valid(119*time.Millisecond) || l.valid(120*time.Millisecond) {
		t.Error("the lease of round 2 ends 100 ms after it was sent")
	}
	confirm(5, contextLease, 1) // late
	if !l.valid(119 * time.Millisecond) {
		t.Error("a late answer has shortened the lease")
	}
	l.drop()
	confirm(5, contextLease, 3)
	if l.valid(0) {
		t.Error("a lease after it was dropped")
	}
	if got := leaseLength(50*time.Millisecond, 10); got >= 450*time.Millisecond {
		t.Errorf("a lease of %v is not shorter than the shortest election timeout", got)
	}
}

func TestSettle(t *testing.T) {
	state := &raftpb.ConfState{Voters: []uint64{1, 2}, VotersOutgoing: []uint64{3}, Learners: []uint64{4}, LearnersNext: []uint64{3}}
	members := []Member{{ID: 1}, {ID: 2, Learner: true}, {ID: 3}, {ID: 4}, {ID: 5}}
	want := []Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}
	if got := settle(members, state); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
