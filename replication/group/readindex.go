package group

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// reads are the requests for an index that a linearizable read must have seen. All
// that wait when a question is sent are answered by it.
type reads struct {
	seq     uint64
	waiting []*readRequest // for the next question
	asked   []readRound    // oldest first
	late    uint64         // the first question of any request that has been asked again; 0: there is none

	// Of a leader.
	kept    int                        // questions that Raft keeps, of this member and of others
	settled bool                       // it has noticed that it is
	early   map[uint64]*raftpb.Message // before: the last question of each other member
}

type readRound struct {
	seq   uint64
	at    time.Duration
	calls []*readRequest
}

type readRequest struct {
	reply
	gone     atomic.Bool // nobody waits for the answer any more
	deadline time.Duration
	first    uint64 // the first question that went out for it, to which any answer will do; 0: none has
	index    uint64
}

func (r *readRequest) answer(index uint64, err error) {
	r.index = index
	r.reply.answer(err)
}

// add takes a request; the question goes out with it.
func (r *reads) add(t *raftTask, req *readRequest) {
	r.waiting = append(r.waiting, req)
	r.ask(t)
}

// ask sends a question for all that wait, if there is somebody to ask and not too
// much is under way.
func (r *reads) ask(t *raftTask) {
	if len(r.waiting) == 0 || len(r.asked) >= maxReadRounds || t.role.leader == raft.None || t.role.leads && !t.settled() {
		return
	}
	if !t.askRaft(readContext(t.n.incarnation, contextRead, r.seq+1)) {
		return
	}
	r.seq++
	for _, req := range r.waiting {
		if req.first == 0 {
			req.first = r.seq
		}
	}
	r.asked = append(r.asked, readRound{seq: r.seq, at: t.env.Monotonic(), calls: r.waiting})
	r.waiting = nil
}

// askRaft asks for an index to read at; false: Raft keeps too many questions.
func (t *raftTask) askRaft(ctx []byte) bool {
	if t.role.leads && !t.reads.keep(maxKept) {
		return false
	}
	t.raft.ReadIndex(ctx)
	return true
}

// keep counts a question that the leader's Raft keeps until a majority has answered a heartbeat;
// false: there are as many as may be. It sends them along with all heartbeats, so that none has to be asked again.
func (r *reads) keep(most int) bool {
	if r.kept >= most {
		return false
	}
	r.kept++
	return true
}

// answered counts a question that Raft keeps no more.
func (r *reads) answered() { r.kept = max(r.kept-1, 0) }

const (
	maxReadRounds = 4
	// readRetryTicks is after how many ticks a question counts as lost: a follower's
	// travels by a message that may be dropped.
	// The answer to a question that counts as lost may come all the same, where members are far from each other.
	readRetryTicks = 4
	// maxKept is how many questions Raft may keep. In a second come some dozens, and a leader
	// that does not hear a majority for some seconds leads no more. Others have half of it, lest one
	// that asks without end keeps the leader from its lease.
	maxKept = 1024
)

// confirmed answers a round, and those that were asked before: their index is not
// higher.
func (r *reads) confirmed(t *raftTask, s raft.ReadState) {
	kind, seq, ok := parseContext(t.n.incarnation, s.RequestCtx)
	if !ok || kind != contextRead {
		return
	}
	for len(r.asked) > 0 && r.asked[0].seq <= seq {
		for _, req := range r.asked[0].calls {
			req.answer(s.Index, nil)
		}
		r.asked = append(r.asked[:0], r.asked[1:]...)
	}
	r.answerLate(seq, s.Index)
	r.ask(t)
}

// answerLate answers requests that have been asked again since the question to which this is the answer went out for them, or one before it.
func (r *reads) answerLate(seq, index uint64) {
	if r.late == 0 || r.late > seq {
		return
	}
	r.late = 0
	answer := func(list []*readRequest) []*readRequest {
		return slices.DeleteFunc(list, func(req *readRequest) bool {
			if req.first != 0 && req.first <= seq {
				req.answer(index, nil)
				return true
			}
			if req.first != 0 && (r.late == 0 || req.first < r.late) {
				r.late = req.first
			}
			return false
		})
	}
	for i := range r.asked {
		r.asked[i].calls = answer(r.asked[i].calls)
	}
	r.waiting = answer(r.waiting)
}

// repeat takes back the oldest question that is under way, to be asked again.
func (r *reads) repeat() {
	for _, req := range r.asked[0].calls {
		if r.late == 0 || req.first < r.late {
			r.late = req.first
		}
	}
	r.waiting = append(r.waiting, r.asked[0].calls...)
	r.asked = append(r.asked[:0], r.asked[1:]...)
}

// tick gives up on what has lasted too long and asks again for what was lost.
func (r *reads) tick(t *raftTask, now time.Duration) {
	for len(r.asked) > 0 && now-r.asked[0].at > readRetryTicks*t.tick {
		r.repeat()
	}
	kept := r.waiting[:0]
	for _, req := range r.waiting {
		if req.gone.Load() {
			continue
		}
		if now >= req.deadline {
			req.answer(0, ErrNoQuorum)
			continue
		}
		kept = append(kept, req)
	}
	clear(r.waiting[len(kept):])
	r.waiting = kept
	r.ask(t)
}

// again takes back the questions that are under way: whoever they went to leads no
// more.
func (r *reads) again() {
	for len(r.asked) > 0 {
		r.repeat()
	}
}

func (r *reads) failAll(err error) {
	for _, round := range r.asked {
		for _, req := range round.calls {
			req.answer(0, err)
		}
	}
	for _, req := range r.waiting {
		req.answer(0, err)
	}
	r.asked, r.waiting = nil, nil
}

// settled reports whether a leader knows what its predecessors have committed: it has committed an
// entry of its own term. Raft answers ReadIndex before, where there is one voter only, and keeps what
// it is asked elsewhere, as long as that takes and however often it is asked.
func (t *raftTask) settled() bool { return t.first != 0 && t.n.agreed.Load() >= t.first }

// settle does what a leader puts off until it is settled.
func (t *raftTask) settle() {
	if !t.role.leads || t.reads.settled || !t.settled() {
		return
	}
	t.reads.settled = true
	t.lease.renew(t)
	t.reads.ask(t)
	early := t.reads.early
	t.reads.early = nil
	for _, from := range slices.Sorted(maps.Keys(early)) {
		t.stepOne(early[from])
	}
}

// answersReads reports whether Raft is to be given the question of another member, which asks again
// if there is no answer. Raft would pass it on in the other's name if it followed somebody. What was
// elected in this turn does not know its role yet. Of the questions that come before the leader is
// settled it keeps each member's last, whose answer is one to those before.
func (t *raftTask) answersReads(m *raftpb.Message) bool {
	s := t.raft.BasicStatus()
	if s.RaftState != raft.StateLeader || !t.role.leads || t.role.term != s.HardState.GetTerm() {
		return false
	}
	if t.settled() {
		return t.reads.keep(maxKept / 2)
	}
	if t.reads.early == nil {
		t.reads.early = map[uint64]*raftpb.Message{}
	}
	t.reads.early[m.GetFrom()] = m
	return false
}

// firstOfTerm notes where a leader's own entries begin.
func (t *raftTask) firstOfTerm(entries []*raftpb.Entry) {
	if !t.role.leads || t.first != 0 {
		return
	}
	for _, e := range entries {
		if e.GetTerm() == t.role.term {
			t.first = e.GetIndex()
			return
		}
	}
}
