package group

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/env"
)

// While the task stands still the messages that wait take no more than they may, whatever members send; those that
// keep a leader in office get through, of each member.
func TestInboxIsBounded(t *testing.T) {
	const most, members, each = 1 << 20, 3, 5000
	for what, fill := range map[string]func(m *raftpb.Message){
		"nothing":        func(*raftpb.Message) {},
		"a context":      func(m *raftpb.Message) { m.Context = make([]byte, 64) },
		"a long context": func(m *raftpb.Message) { m.Context = make([]byte, 60<<10) },
		"an entry":       func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{{Data: make([]byte, 10<<10)}} },
		"an empty entry": func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{{}} },
		"a snapshot's id": func(m *raftpb.Message) {
			m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{ConfState: &raftpb.ConfState{Voters: make([]uint64, 4000)}}}
		},
	} {
		in := newInbox(env.Real(), most)
		for range each {
			for id := range uint64(members) {
				m := &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: proto.Uint64(id + 1)}
				fill(m)
				in.fromPeers([]*raftpb.Message{m})
			}
		}
		held := 0
		for _, m := range in.now.peers {
			held += 256 + proto.Size(m)
		}
		if limit := most + members*smallMax*smallMessage; held > limit {
			t.Errorf("messages with %s: %d of them take %d bytes, at most %d may", what, len(in.now.peers), held, limit)
		}
		beats := len(in.now.peers)
		for id := range uint64(members) {
			in.fromPeers([]*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: proto.Uint64(id + 7), Context: make([]byte, 64)}})
		}
		if len(in.now.peers) != beats+members {
			t.Errorf("messages with %s: a heartbeat of another member does not get through", what)
		}
		var w work
		in.rest(&w)
		if in.fromPeers([]*raftpb.Message{{From: proto.Uint64(1)}}); len(in.now.peers) != 1 || len(in.small) != 0 {
			t.Errorf("messages with %s: it takes nothing once there is room", what)
		}
	}
}

// The longest message that there can be is taken where next to nothing waits, whatever all may take together: nobody could
// give it to this member otherwise. One at a time.
func TestInboxTakesTheLongest(t *testing.T) {
	long := func() *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: proto.Uint64(1), Entries: []*raftpb.Entry{{Data: make([]byte, 2<<20)}}}
	}
	in := newInbox(env.Real(), 1<<20)
	for range 2 {
		for range 5 {
			in.fromPeers([]*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: proto.Uint64(1), Context: make([]byte, 64)}})
		}
		if in.fromPeers([]*raftpb.Message{long(), long()}); len(in.now.peers) != 6 {
			t.Errorf("behind five heartbeats, of two messages that are longer than all may take, %d are taken", len(in.now.peers)-5)
		}
		var w work
		in.rest(&w)
	}
}
