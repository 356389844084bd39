package group

import (
	"bytes"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
)

// inbox collects what Raft has to do. Anyone may add to it. At most one takes at a time:
// the Raft task, or somebody else for one turn, as at a [station].
//
// Invariant: messages from peers take at most maxBytes, and of each member smallMax small ones more; what is
// beyond is dropped (Raft sends again). One message that is longer than all may take is taken where next to nothing
// waits: Raft would send it again for ever. What the node itself adds is bounded by what it has in work.
// Nobody waits for room: the connection would not be read meanwhile, and heartbeats come behind what
// waits. What holds the task for long may be waiting for other messages.
type inbox struct {
	mu       sync.Mutex
	parker   env.Parker
	maxBytes int

	now     work
	bytes   int
	small   map[uint64]int // messages beyond maxBytes, by member
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
		if in.closed || in.bytes+n > in.maxBytes && in.bytes > nearlyEmpty && !in.takesSmall(m, n) {
			in.dropped++
			continue
		}
		if len(m.GetContext()) > 0 { // it is a part of a frame, whose other messages may be dropped
			m.Context = bytes.Clone(m.GetContext())
		}
		in.bytes += n
		in.now.peers = append(in.now.peers, m)
	}
	return total
}

// Small messages are taken also where there is no room: heartbeats and votes must get through
// however much is waiting. In a second, a member sends some tens of them.
const (
	smallMessage = 512
	smallMax     = 1024
	// nearlyEmpty is how many bytes may wait before a message that is too long for maxBytes: heartbeats always do.
	nearlyEmpty = 64 << 10
)

// takesSmall reports whether a message of a member is taken beyond maxBytes. REQUIRES: mu.
func (in *inbox) takesSmall(m *raftpb.Message, size int) bool {
	if size > smallMessage || len(m.GetEntries()) > 0 || in.small[m.GetFrom()] >= smallMax {
		return false
	}
	if in.small == nil {
		in.small = map[uint64]int{}
	}
	in.small[m.GetFrom()]++
	return true
}

// What a message and an entry take in memory besides what is of any length.
const (
	messageOverhead = 256
	entryOverhead   = 128
)

func messageSize(m *raftpb.Message) int {
	n := messageOverhead + len(m.GetContext())
	for _, e := range m.GetEntries() {
		n += entryOverhead + len(e.GetData())
	}
	if s := m.GetSnapshot(); s != nil {
		c := s.GetMetadata().GetConfState()
		n += messageOverhead + len(s.GetData()) +
			8*(len(c.GetVoters())+len(c.GetLearners())+len(c.GetVotersOutgoing())+len(c.GetLearnersNext()))
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
		clear(in.small)
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
