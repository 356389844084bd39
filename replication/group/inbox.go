package group

import (
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
)

// inbox collects what Raft has to do. Anyone may add to it. At most one takes at a time:
// the Raft task, or somebody else for one turn, as at a [station].
//
// Invariant: messages from peers take at most maxBytes; what is beyond is dropped
// (Raft sends again). What the node itself adds is bounded by what it has in work.
type inbox struct {
	mu       sync.Mutex
	parker   env.Parker
	maxBytes int

	now     work
	bytes   int
	dropped uint64
	closed  bool

	busy   bool // somebody is at work on what was taken
	task   bool // it is the Raft task
	wanted bool // the Raft task waits for that
}

// work is what the Raft task takes in one turn, in the order in which it is done.
type work struct {
	local     []*raftpb.Message // answers of the log and of the applier
	peers     []*raftpb.Message
	proposals []*proposal
	calls     []func()
}

func (w *work) empty() bool {
	return len(w.local)+len(w.peers)+len(w.proposals)+len(w.calls) == 0
}

// reset empties w and keeps its memory, but no references.
func (w *work) reset() {
	clear(w.local)
	clear(w.peers)
	clear(w.proposals)
	clear(w.calls)
	w.local, w.peers, w.proposals, w.calls = w.local[:0], w.peers[:0], w.proposals[:0], w.calls[:0]
}

func newInbox(e env.Env, maxBytes int) *inbox {
	return &inbox{parker: e.NewParker(), maxBytes: maxBytes}
}

// fromPeers adds messages of other members, without waking the task, and returns how many
// bytes they have.
func (in *inbox) fromPeers(msgs []*raftpb.Message) (total int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, m := range msgs {
		n := messageSize(m)
		total += n
		if in.closed || in.bytes+n > in.maxBytes && n > smallMessage {
			in.dropped++
			continue
		}
		in.bytes += n
		in.now.peers = append(in.now.peers, m)
	}
	return total
}

// smallMessage is what is always taken: heartbeats and votes must get through
// however much is waiting.
const smallMessage = 256

func messageSize(m *raftpb.Message) int {
	n := 64
	for _, e := range m.GetEntries() {
		n += 48 + len(e.GetData())
	}
	return n
}

// fromStorage adds answers of the node's own, without waking the task.
func (in *inbox) fromStorage(msgs []*raftpb.Message) {
	in.mu.Lock()
	for _, m := range msgs {
		if raft.IsLocalMsgTarget(m.GetTo()) {
			continue // for a storage task; none asks for that
		}
		in.now.local = append(in.now.local, m)
	}
	in.mu.Unlock()
}

// propose adds a proposal, without waking the task; false if that has ended.
func (in *inbox) propose(p *proposal) bool {
	in.mu.Lock()
	ok := !in.closed
	if ok {
		in.now.proposals = append(in.now.proposals, p)
	}
	in.mu.Unlock()
	return ok
}

// call runs fn on the Raft task; false if the task has ended.
func (in *inbox) call(fn func()) bool {
	in.mu.Lock()
	ok := !in.closed
	if ok {
		in.now.calls = append(in.now.calls, fn)
	}
	in.mu.Unlock()
	in.parker.Unpark()
	return ok
}

// take is the task's: it ends its turn, waits for something to do, for at most the given
// time, and moves it into w, which is empty. closed says that nothing will come any more.
func (in *inbox) take(w *work, wait time.Duration) (closed bool) {
	in.mu.Lock()
	if in.task {
		in.busy, in.task = false, false
	}
	for waited := wait <= 0; in.busy || !waited && !in.closed && in.now.empty(); {
		in.wanted = in.busy
		in.mu.Unlock()
		if in.wanted {
			in.parker.Park()
		} else {
			in.parker.ParkFor(wait)
			waited = true
		}
		in.mu.Lock()
	}
	defer in.mu.Unlock()
	in.busy, in.task, in.wanted = true, true, false
	in.swap(w)
	return in.closed
}

// turn moves what is there into w in place of the task. false: there is nothing, or
// somebody is at work, or the task, whose clock is to tick, is next. After true, leave ends
// the turn.
func (in *inbox) turn(w *work) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.busy || in.wanted || in.closed || in.now.empty() {
		return false
	}
	in.busy = true
	in.swap(w)
	return true
}

// leave ends a turn; what has come since is the task's.
func (in *inbox) leave() {
	in.mu.Lock()
	in.busy = false
	wake := in.wanted || in.closed || !in.now.empty()
	in.mu.Unlock()
	if wake {
		in.parker.Unpark()
	}
}

// kick wakes the task if there is something to do and nobody is at it.
func (in *inbox) kick() {
	in.mu.Lock()
	wake := !in.busy && !in.now.empty()
	in.mu.Unlock()
	if wake {
		in.parker.Unpark()
	}
}

// swap moves what is there into w. REQUIRES: mu.
func (in *inbox) swap(w *work) {
	if !in.now.empty() {
		in.now, *w = *w, in.now
		in.bytes = 0
	}
}

// rest moves what is there into w, which is empty, once the task has ended.
func (in *inbox) rest(w *work) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.swap(w)
}

// close ends the inbox. What has been added is still taken.
func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.parker.Unpark()
}
