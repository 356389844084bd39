package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Of entries that memory has in the same place and term those are found that are others; not those of other terms, which Raft replaces, nor
// those that memory does not have.
func TestUnlike(t *testing.T) {
	e := func(index, term uint64, data string) *raftpb.Entry {
		return &raftpb.Entry{Index: proto.Uint64(index), Term: proto.Uint64(term), Data: []byte(data)}
	}
	var s Storage
	all := []*raftpb.Entry{e(5, 2, "a"), e(6, 3, "b"), e(7, 3, "c")}
	if at := s.Unlike(all); at != 0 {
		t.Errorf("of an empty memory entry %d is another one", at)
	}
	s.recent.push(all)
	conf := e(7, 3, "c")
	conf.Type = raftpb.EntryConfChange.Enum()
	for _, c := range []struct {
		what string
		ents []*raftpb.Entry
		at   uint64
	}{
		{"the same", all, 0},
		{"none", nil, 0},
		{"others", []*raftpb.Entry{e(5, 2, "a"), e(6, 3, "x"), e(7, 3, "y")}, 6},
		{"one of another type", []*raftpb.Entry{conf}, 7},
		{"one of another term", []*raftpb.Entry{e(6, 4, "x"), e(7, 4, "y")}, 0},
		{"later ones", []*raftpb.Entry{e(8, 3, "x"), e(9, 3, "y")}, 0},
		{"an earlier one, and others", []*raftpb.Entry{e(4, 2, "x"), e(5, 2, "y")}, 5},
	} {
		if at := s.Unlike(c.ents); at != c.at {
			t.Errorf("%s: entry %d is another one, want %d", c.what, at, c.at)
		}
	}
}
