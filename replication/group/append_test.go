package group

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
)

// What a follower answers while its disk is full does not pile up, and says the newest of everything.
func TestAnswersAreMerged(t *testing.T) {
	w := &writer{station: newStation[*raftpb.Message](env.Real())}
	answer := func(kind raftpb.MessageType, to, term, index uint64, reject bool) *raftpb.Message {
		return &raftpb.Message{Type: kind.Enum(), To: &to, Term: &term, Index: &index, Reject: &reject}
	}
	request := func(commit uint64, answers ...*raftpb.Message) *raftpb.Message {
		return &raftpb.Message{Type: raftpb.MsgStorageAppend.Enum(), Commit: &commit, Responses: answers}
	}
	give := func(m *raftpb.Message) {
		if !w.merge(m) {
			w.put(m)
		}
	}
	const count = 10_000
	for i := range uint64(count) {
		give(request(i, answer(raftpb.MsgAppResp, 2, 5, i, false), answer(raftpb.MsgStorageAppendResp, 1, 5, i, false)))
	}
	give(request(count, answer(raftpb.MsgAppResp, 2, 5, 7, true), answer(raftpb.MsgVoteResp, 3, 6, 0, false)))
	give(request(count, answer(raftpb.MsgVoteResp, 3, 6, 0, false), answer(raftpb.MsgAppResp, 2, 6, 1, false), answer(raftpb.MsgAppResp, 3, 5, 1, false)))
	if len(w.queue) != mergeFrom {
		t.Fatalf("%d requests wait", len(w.queue))
	}
	last := w.queue[mergeFrom-1]
	if last.GetCommit() != count {
		t.Errorf("commit index %d", last.GetCommit())
	}
	want := []*raftpb.Message{answer(raftpb.MsgAppResp, 2, 5, count-1, false), answer(raftpb.MsgStorageAppendResp, 1, 5, count-1, false),
		answer(raftpb.MsgAppResp, 2, 5, 7, true), answer(raftpb.MsgVoteResp, 3, 6, 0, false), answer(raftpb.MsgVoteResp, 3, 6, 0, false),
		answer(raftpb.MsgAppResp, 2, 6, 1, false), answer(raftpb.MsgAppResp, 3, 5, 1, false)}
	if len(last.Responses) != len(want) {
		t.Fatalf("%v", last.Responses)
	}
	for i, r := range last.Responses {
		if o := want[i]; r.GetType() != o.GetType() || r.GetTo() != o.GetTo() || r.GetTerm() != o.GetTerm() || r.GetIndex() != o.GetIndex() || r.GetReject() != o.GetReject() {
			t.Errorf("answer %d is %v, not %v", i, r, o)
		}
	}
}
