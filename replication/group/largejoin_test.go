package group

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/replication/bodies"
	"github.com/triremedb/trireme/replication/transport"
)

func TestJoinLarge(t *testing.T) {
	id := func(n uint64) entry.StreamID { return entry.StreamID{Term: 4, Member: 1, Start: 9, Number: n} }
	here := func(n uint64, age time.Duration, m LargeMember) largeHere {
		return largeHere{ID: id(n), Age: age, LargeMember: m}
	}
	grown := LargeMember{State: LargeGrowing, Events: 5, Plain: 500, Stored: 50, Synced: 40}
	leaders := here(1, time.Minute, grown)
	leaders.Session = 77
	leaders.Others = []bodies.MemberStatus{{Member: 3, Synced: 30}, {Member: 4, Synced: 50, Whole: true}}
	follower := grown
	follower.AheadBytes, follower.AheadRows, follower.Waits = 400, 8, "entry 12 of the log"
	as := func(m LargeMember, member uint64) LargeMember { m.Member = member; return m }
	for _, c := range []struct {
		name string
		said []largeSaid
		want []LargeTransaction
	}{
		{"nobody is asked", nil, []LargeTransaction{}},
		{"nothing runs", []largeSaid{{member: 1, heard: true}, {member: 2}}, []LargeTransaction{}},
		{"one is silent, another is left out, and another has nothing, or has refused it", []largeSaid{{member: 1, heard: true, largeAnswer: largeAnswer{Running: []largeHere{leaders}}},
			{member: 2, heard: true, largeAnswer: largeAnswer{Running: []largeHere{here(1, time.Second, follower)}}}, {member: 3}, {member: 4, left: true}, {member: 5, heard: true},
			{member: 6, heard: true, largeAnswer: largeAnswer{Refused: []entry.StreamID{id(2), id(1)}}}},
			[]LargeTransaction{{ID: id(1), Session: 77, Age: time.Minute, Members: []LargeMember{as(grown, 1), as(follower, 2),
				{Member: 3, State: LargeUnreachable, Synced: 30}, {Member: 5, State: LargeAbsent}, {Member: 6, State: LargeRefused}}}}},
		{"the leader is silent", []largeSaid{{member: 1}, {member: 2, heard: true, largeAnswer: largeAnswer{Running: []largeHere{here(1, time.Second, follower)}}}},
			[]LargeTransaction{{ID: id(1), Age: time.Second, Members: []LargeMember{{Member: 1, State: LargeUnreachable}, as(follower, 2)}}}},
		{"several, of which one is committed on some members", []largeSaid{
			{member: 1, heard: true, largeAnswer: largeAnswer{Running: []largeHere{here(3, time.Second, grown)}, Logged: []entry.StreamID{id(2)}}},
			{member: 2, heard: true, largeAnswer: largeAnswer{Running: []largeHere{here(2, time.Hour, LargeMember{State: LargeFetching}), here(3, 2*time.Second, grown)}}}},
			[]LargeTransaction{
				{ID: id(2), Age: time.Hour, Members: []LargeMember{{Member: 1, State: LargeLogged}, {Member: 2, State: LargeFetching}}},
				{ID: id(3), Age: 2 * time.Second, Members: []LargeMember{as(grown, 1), as(grown, 2)}}}},
	} {
		if got := joinLarge(c.said); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, not\n%+v", c.name, got, c.want)
		}
	}
	many := largeSaid{member: 1, heard: true}
	for n := range uint64(2 * largeMax) {
		many.Running = append(many.Running, here(n, time.Duration(n), grown))
	}
	if got := joinLarge([]largeSaid{many}); len(got) != largeMax || got[0].ID != id(2*largeMax-1) {
		t.Errorf("%d transactions, the first is %v", len(got), got[0].ID)
	}
}

// An answer fits a message, however many members there are.
func TestEncodeLarge(t *testing.T) {
	a := largeAnswer{Logged: []entry.StreamID{{Term: 1 << 63, Start: 1<<64 - 1}}}
	for n := range uint64(largeMax) {
		h := largeHere{ID: entry.StreamID{Number: n, Start: 1<<64 - 1}, Age: time.Hour, LargeMember: LargeMember{Member: 7, State: LargeGrowing, Waits: "the log"}}
		for m := range uint64(200) {
			h.Others = append(h.Others, bodies.MemberStatus{Member: 1<<63 + m, Synced: 1 << 40})
		}
		a.Running = append(a.Running, h)
	}
	b := encodeLarge(a)
	var got largeAnswer
	if err := json.Unmarshal(b, &got); err != nil || len(b) > transport.MaxAsk || len(got.Running) == 0 || len(got.Running) >= largeMax {
		t.Fatalf("%d bytes, %d transactions: %v", len(b), len(got.Running), err)
	}
	want := a.Running[0]
	want.Member = 0 // who asks knows that
	if !reflect.DeepEqual(got.Running[0], want) || !reflect.DeepEqual(got.Logged, a.Logged) {
		t.Errorf("%+v", got.Running[0])
	}
}

func TestLargeState(t *testing.T) {
	for _, c := range []struct {
		st   bodies.StreamStatus
		want LargeState
	}{
		{bodies.StreamStatus{}, LargeGrowing},
		{bodies.StreamStatus{State: body.Complete}, LargeComplete},
		{bodies.StreamStatus{State: body.Complete, Pinned: true}, LargeCommitting},
		{bodies.StreamStatus{State: body.Taken, Pinned: true}, LargeCommitting},
		{bodies.StreamStatus{State: body.Taken}, ""},
		{bodies.StreamStatus{State: body.Dropped}, ""},
		{bodies.StreamStatus{Fetching: true}, LargeFetching},
	} {
		if got := largeState(&c.st); got != c.want {
			t.Errorf("%+v: %q, not %q", c.st, got, c.want)
		}
	}
}
