package group

import (
	"errors"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/raftlog"
)

// LogPatience is how long the log of received data is looked for at those who cannot be reached.
var LogPatience = logPatience

// Between measures the log of a node as its lag is measured.
func (n *Node) Between(applied, committed uint64) (entries, bytes int64) {
	c, err := n.running()
	if err != nil {
		return 0, -1
	}
	return c.between(applied, committed)
}

// Agree makes the node believe that Raft has agreed on entries up to index.
func (n *Node) Agree(index uint64) {
	c, err := n.running()
	if err != nil {
		panic(err)
	}
	c.agreed.Store(index)
}

// Questions are how many questions for an index to read at the node's Raft was asked by the node itself,
// and how many of all it keeps. Only in a simulation, where nothing else runs.
func (n *Node) Questions() (asked uint64, kept int) {
	c, err := n.running()
	if err != nil {
		return 0, 0
	}
	return c.raft.lease.seq + c.raft.reads.seq, c.raft.reads.kept
}

// WantData makes the node ask for data as if its leader had no log for it.
func (n *Node) WantData() { n.provisioning.want(0) }

// WantDataAsOf is WantData if a member has said that data are needed.
func (n *Node) WantDataAsOf(member uint64) { n.provisioning.want(member) }

// WantsData reports whether the node is being given data.
func (n *Node) WantsData() bool { return n.provisioning.active() }

// AdoptLog says what becomes of Raft's state for a log that ends with an entry of a term.
func AdoptLog(fsys file.FS, e env.Env, s raftlog.State, term uint64) (raftlog.State, error) {
	n := &Node{opt: Options{FS: fsys, Env: e}, id: &identity{id: 1}}
	st, err := raftlog.CreateState(stateOptions(&n.opt, n.id), s)
	if err == nil {
		err = errors.Join(st.Close(), n.adoptLog(term))
	}
	if err != nil {
		return s, err
	}
	return n.createState(n.id)
}

var Ahead = ahead

// SetSabotage breaks the running node. Only in a simulation, where nothing else runs.
func (n *Node) SetSabotage(s Sabotage) { n.opt.Sabotage = s }

// Give makes the data those that were given with a log up to an index. It is called between Prepare and Run.
func (r *Regroup) Give(index uint64) error { return writeGiven(r.home.Data(), index) }

// What is beside data that were given.
const GivenName = givenName

func WriteGiven(data file.FS, index uint64) error { return writeGiven(data, index) }

func ReadGiven(data file.FS) (uint64, error) { return readGiven(data) }

// Waits are how many wait until something is applied.
func (n *Node) Waits() int {
	c, err := n.running()
	if err != nil {
		panic(err)
	}
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	return len(c.waiters)
}

// Unwritten is how many requests of Raft's wait for the log's task.
func (n *Node) Unwritten() int {
	c, err := n.running()
	if err != nil {
		panic(err)
	}
	c.writer.mu.Lock()
	defer c.writer.mu.Unlock()
	return len(c.writer.queue)
}

// MoveAs is Move by what a member was when it was looked up.
func (n *Node) MoveAs(was Member, addr string) error {
	m := was
	m.Addr = addr
	return n.proposeOf(&was, m.ID, addVoter(m))
}

// OnRaft makes a call on the Raft task.
func (n *Node) OnRaft(fn func()) {
	c, err := n.running()
	if err != nil {
		panic(err)
	}
	c.inbox.call(fn)
}

// KeepsBodies returns of how many large transactions in the log the body is not in the store any more, and how many of those count as
// bodies that are here for entries that a leader sends.
func (n *Node) KeepsBodies() (taken, kept int) {
	c, err := n.running()
	if err != nil {
		panic(err)
	}
	entries, err := c.binlog.Read(c.binlog.FirstIndex(), c.binlog.LastIndex()+1, 1<<30)
	if err != nil {
		panic(err)
	}
	for _, x := range entries {
		e := &raftpb.Entry{Index: &x.Index, Term: &x.Term, Data: x.Data}
		want, large := largeBody(e)
		if !large || c.bodies.Has(&want) {
			continue
		}
		if taken++; c.raft.keeps(e, &want) {
			kept++
		}
	}
	return taken, kept
}
