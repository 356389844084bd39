package group

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// writer is the task that makes Raft's state and entries durable: everything that
// has come together while the disk was busy is written at once and synced once, and
// only then do the answers go out.
//
// Invariant: requests are done in the order in which they came; an answer leaves
// after everything before it is on stable storage.
type writer struct {
	n *core
	station[*raftpb.Message]

	since atomic.Int64 // when the call to the disk that is under way began, on the monotonic clock; 0: there is none
	late  atomic.Int64 // what calls have taken that took slowCall or longer, nanoseconds since the start

	batch []*raftpb.Message
	reply []*raftpb.Message // to this node
	send  []*raftpb.Message // to others

	full fullDisk
}

func newWriter(n *core) *writer { return &writer{n: n, station: newStation[*raftpb.Message](n.env)} }

// mergeFrom is how many requests lie there before answers are merged. Without a disk that hangs or is full there are
// a few.
const mergeFrom = 64

// merge puts a request that has nothing to write into the newest one, if there are many: while a disk is full each heartbeat
// of a leader makes one. The newest acknowledgement of a term stands for those before it. It reports false if it has to
// be put behind the others.
func (w *writer) merge(m *raftpb.Message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) < mergeFrom {
		return false
	}
	into := w.queue[len(w.queue)-1]
	for _, r := range m.GetResponses() {
		i := slices.IndexFunc(into.GetResponses(), func(o *raftpb.Message) bool {
			return o.GetTo() == r.GetTo() && o.GetType() == r.GetType() && o.GetTerm() == r.GetTerm() && !o.GetReject() && len(o.GetContext()) == 0
		})
		if i >= 0 && mergeable(r) {
			into.Responses[i] = r
		} else {
			into.Responses = append(into.Responses, r)
		}
	}
	into.Commit = m.Commit
	return true
}

// mergeable reports whether an answer stands for earlier ones of its kind and term.
func mergeable(r *raftpb.Message) bool {
	return (r.GetType() == raftpb.MsgAppResp || r.GetType() == raftpb.MsgStorageAppendResp) && !r.GetReject() && len(r.GetContext()) == 0
}

func (w *writer) run() {
	for w.take(&w.batch) {
		if !w.flush() {
			return
		}
		w.n.stepRaft(!w.waits())
	}
}

// turn is a turn of somebody else. A disk that is full is left to the task to wait for;
// that is no turn.
func (w *writer) turn() bool {
	if !w.station.turn(&w.batch) {
		return false
	}
	rest, err := w.once(w.batch)
	if err != nil && !errors.Is(err, file.ErrNoSpace) {
		w.close()
		w.n.fail(err)
	}
	w.leave(&w.batch, len(w.batch)-len(rest))
	return err == nil
}

// flush makes the batch durable and gives out the answers; false means that the task
// ends. If the disk is full, what could be written goes out before the rest is tried
// again: it must not hold up what others count on.
func (w *writer) flush() bool {
	defer clear(w.batch)
	for rest := w.batch; len(rest) > 0; {
		var err error
		if rest, err = w.once(rest); err == nil {
			continue
		}
		if !errors.Is(err, file.ErrNoSpace) {
			w.n.fail(err)
			return false
		}
		w.n.stepRaft(true)
		if !w.full.wait(w.n, w.isClosed) {
			return false
		}
	}
	w.full.over(w.n)
	return true
}

// once writes and syncs what can be written and gives out the answers; the Raft task is
// not woken for them. rest is what could not, and err why.
func (w *writer) once(batch []*raftpb.Message) (rest []*raftpb.Message, err error) {
	defer w.ends()
	done, err := w.store(batch)
	if done > 0 {
		if err := w.sync(); err != nil {
			return batch, err
		}
		w.answer(batch[:done])
	}
	return batch[done:], err
}

func (w *writer) sync() error {
	if w.n.opt.Sabotage == AnswerUnsynced {
		return nil
	}
	w.begins()
	known := w.n.raftlog.Known()
	err := w.n.raftlog.Sync()
	if w.n.raftlog.Known() != known {
		w.n.inbox.call(w.n.raft.applyKnown)
	}
	return err
}

// store writes requests and returns how many it has done.
func (w *writer) store(batch []*raftpb.Message) (done int, err error) {
	for i, m := range batch {
		if w.n.opt.Sabotage == ForgetCommit {
			m.Commit = nil
		}
		w.begins()
		if err := w.n.raftlog.Append(m); err != nil {
			return i, err
		}
	}
	return len(batch), nil
}

// answer sends what was to be said once the requests were durable.
func (w *writer) answer(batch []*raftpb.Message) {
	w.reply, w.send = w.reply[:0], w.send[:0]
	for _, m := range batch {
		for _, r := range m.GetResponses() {
			if r.GetTo() == w.n.opt.ID {
				w.reply = append(w.reply, r)
			} else if !raft.IsLocalMsgTarget(r.GetTo()) {
				w.send = append(w.send, r)
			}
		}
	}
	if len(w.send) > 0 {
		w.n.transport.Send(w.send)
	}
	if len(w.reply) > 0 {
		w.n.inbox.fromStorage(w.reply)
	}
	clear(w.reply)
	clear(w.send)
}

// fullDisk is the state of a task that finds no space.
type fullDisk struct {
	told  bool
	since time.Duration // on the monotonic clock; then when leadership was last offered
}

// handOver is how long a leader waits for space before it asks another to lead.
const handOver = 2 * time.Second

// diskRetry is how often a full disk is tried again.
const diskRetry = 250 * time.Millisecond

// wait says that the disk is full and waits a little; false means that the node
// ends.
func (f *fullDisk) wait(n *core, closed func() bool) bool {
	if !f.told {
		f.told = true
		f.since = n.env.Monotonic()
		n.setDiskFull(true)
		n.log.Error("the disk is full: this node takes no writes until there is space")
	}
	if now := n.env.Monotonic(); now-f.since >= handOver && n.currentRole().leads {
		f.since = now
		r := &transferRequest{reply: reply{parker: n.env.NewParker()}}
		n.inbox.call(func() { n.raft.moves.startTransfer(n.raft, r) })
	}
	n.giveRoom()
	for waited := time.Duration(0); waited < diskRetry; waited += diskRetry / 10 {
		if closed() {
			return false
		}
		env.Sleep(n.env, diskRetry/10)
	}
	return !closed()
}

func (f *fullDisk) over(n *core) {
	if f.told {
		f.told = false
		n.setDiskFull(false)
		n.log.Info("the disk has space again")
	}
}
