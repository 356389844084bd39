package group

import (
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
)

// inbox collects what the Raft task has to do. Anyone may add to it; one task
// takes.
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

// fromPeers adds messages of other members.
func (in *inbox) fromPeers(msgs []*raftpb.Message) {
	in.mu.Lock()
	for _, m := range msgs {
		n := messageSize(m)
		if in.closed || in.bytes+n > in.maxBytes && n > smallMessage {
			in.dropped++
			continue
		}
		in.bytes += n
		in.now.peers = append(in.now.peers, m)
	}
	in.mu.Unlock()
	in.parker.Unpark()
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

// fromStorage adds answers of the local log.
func (in *inbox) fromStorage(msgs []*raftpb.Message) {
	in.mu.Lock()
	for _, m := range msgs {
		if raft.IsLocalMsgTarget(m.GetTo()) {
			continue // for a storage task; none asks for that
		}
		in.now.local = append(in.now.local, m)
	}
	in.mu.Unlock()
	in.parker.Unpark()
}

// propose adds a proposal; false if the task has ended.
func (in *inbox) propose(p *proposal) bool {
	in.mu.Lock()
	ok := !in.closed
	if ok {
		in.now.proposals = append(in.now.proposals, p)
	}
	in.mu.Unlock()
	in.parker.Unpark()
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

// take moves what is there into w, which is empty, and waits for something for at
// most the given time. closed says that nothing will come any more.
func (in *inbox) take(w *work, wait time.Duration) (closed bool) {
	if in.swap(w) || wait <= 0 {
		return in.isClosed()
	}
	in.parker.ParkFor(wait)
	in.swap(w)
	return in.isClosed()
}

func (in *inbox) swap(w *work) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.now.empty() {
		return false
	}
	in.now, *w = *w, in.now
	in.bytes = 0
	return true
}

func (in *inbox) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed
}

// close ends the inbox. What has been added is still taken.
func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.parker.Unpark()
}
