package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
)

// Node is a member of a group. All methods are safe for concurrent use.
type Node struct {
	opt       Options
	id        *identity
	home      *provision.Home
	transport transport.Transport
	locked    io.Closer // the directory

	core   atomic.Pointer[core]  // nil: getting new data, or closed
	err    atomic.Pointer[error] // why the node has failed
	closed atomic.Bool

	mu       sync.Mutex           // guards what follows
	rejected map[uint64]rejection // by member, what was told last
	contact  []string             // addresses of members, for a node that joins

	provisioning provisioning
	presence     presence
	elsewhere    elsewhere
}

// Open opens the node in its directory: it recovers what is there, or founds or joins
// a group as the options say, and takes part from then on. Errors say what is wrong
// with the options, the directory or its files, and what to do.
//
// With a Bootstrap it waits for the other founders of a new group, and returns early
// only for [OpenContext].
func Open(opt Options) (*Node, error) { return OpenContext(context.Background(), opt) }

// OpenContext is Open; the end of ctx ends waiting for others.
func OpenContext(ctx context.Context, opt Options) (*Node, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt.setDefaults()
	n := &Node{opt: opt, rejected: map[uint64]rejection{}}
	n.provisioning.init(n)
	n.presence.init(n)
	if err := n.lock(); err != nil {
		return nil, err
	}
	discarded, err := finishDiscard(opt.FS)
	if discarded {
		n.opt.Log.Info("the directory was that of a member that has left the group: its data are removed, and this node begins as a new one")
	}
	var names []string
	if err == nil {
		names, err = notHalfMade(opt.FS)
	}
	if err == nil {
		if err := tidyRestored(opt.FS, opt.Env, names); err != nil {
			n.opt.Log.Warn("what a restore has left in the directory stays", "error", err)
		}
		err = n.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.unlock())
	}
	n.checkAddress()
	n.provisioning.start()
	n.presence.start()
	return n, nil
}

func (n *Node) open(ctx context.Context) (err error) {
	if n.opt.Bootstrap != nil {
		err = n.bootstrap(ctx)
	} else if n.id, err = n.identify(); err == nil {
		n.transport, err = n.opt.Transport(transport.Identity{Group: n.id.group, Member: n.id.id}, n)
	}
	if err != nil {
		return err
	}
	n.opt.ID, n.contact = n.id.id, n.opt.Contact
	if n.home, err = openHome(&n.opt, n.id); err == nil {
		err = n.openData()
	}
	if err != nil {
		return errors.Join(err, n.transport.Close())
	}
	return nil
}

// openData opens what the home holds; a node that joins has nothing yet and is to be
// given its data first.
func (n *Node) openData() error {
	if _, received := n.home.Received(); n.joins() && !received {
		if _, err := n.createState(n.id); err != nil {
			return err
		}
		if err := n.await(); err != nil {
			return err
		}
		n.transport.SetPeers(nil)
		n.provisioning.want(0)
		return nil
	}
	if err := n.arrived(); err != nil {
		return err
	}
	c, err := openCore(&n.opt, n.id, n.home.Data(), n.transport, n.failed, n.provisioning.want)
	if err != nil {
		return err
	}
	n.core.Store(c)
	return nil
}

// joins reports whether the node was not among the group's founders.
func (n *Node) joins() bool { return len(n.id.founded.members) == 0 }

// identify finds out who the node is, and writes it down the first time.
func (n *Node) identify() (*identity, error) {
	id, err := readIdentity(n.opt.FS)
	switch {
	case err == nil:
		return id, n.checkIdentity(id)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if len(n.opt.Founders) == 0 && !n.opt.Join {
		return nil, errors.New("group: this directory belongs to no group: say which members found one, or to join one")
	}
	if n.opt.Group == ([16]byte{}) || n.opt.ID == 0 {
		return nil, errors.New("group: a new member needs the group's id and an id of its own")
	}
	id = &identity{group: n.opt.Group, id: n.opt.ID, founded: roster{state: &raftpb.ConfState{}}}
	if !n.opt.Join {
		for _, m := range n.opt.Founders {
			id.founded.members = withMember(id.founded.members, m)
		}
		for _, m := range id.founded.members {
			if m.Learner {
				id.founded.state.Learners = append(id.founded.state.Learners, m.ID)
			} else {
				id.founded.state.Voters = append(id.founded.state.Voters, m.ID)
			}
		}
	}
	if n.opt.Join {
		// The id may have been drawn: it is written down before anything that names it.
		if err := unused(n.opt.FS, raftlog.State{}); err != nil {
			return nil, err
		}
		if err := id.write(n.opt.FS); err != nil {
			return nil, err
		}
		return id, nil
	}
	// The state file first: a founder that is known to be one has a vote to remember. It
	// may be there, if a crash came after this.
	st, err := n.createState(id)
	if err == nil {
		err = unused(n.opt.FS, st)
	}
	if err != nil {
		return nil, err
	}
	return id, id.write(n.opt.FS)
}

// createState makes Raft's state file for a node that has none yet.
func (n *Node) createState(id *identity) (raftlog.State, error) {
	st, err := raftlog.CreateState(stateOptions(&n.opt, id), raftlog.State{})
	if errors.Is(err, raftlog.ErrExists) {
		st, err = openState(&n.opt, id)
	}
	if err != nil {
		return raftlog.State{}, err
	}
	return st.Get(), st.Close()
}

func (n *Node) checkIdentity(id *identity) error {
	if n.opt.Group != ([16]byte{}) && n.opt.Group != id.group {
		return fmt.Errorf("group: this directory belongs to the group %v, not to %v",
			transport.GroupID(id.group), transport.GroupID(n.opt.Group))
	}
	if n.opt.ID != 0 && n.opt.ID != id.id {
		return fmt.Errorf("group: this directory is that of member %d, not %d", id.id, n.opt.ID)
	}
	return nil
}

func peersOf(members []Member) []transport.Peer {
	var peers []transport.Peer
	for _, m := range members {
		peers = append(peers, transport.Peer{ID: m.ID, Addr: m.Addr})
	}
	return peers
}

// Close ends the node. A leader should hand over first ([Node.Transfer]).
func (n *Node) Close() error {
	if n.closed.Swap(true) {
		return nil
	}
	n.presence.stop()
	n.provisioning.stop()
	if c, err := n.running(); err == nil {
		c.yield()
	}
	err := n.transport.Close()
	if c := n.take(); c != nil {
		err = errors.Join(err, c.close())
	}
	return errors.Join(err, n.unlock())
}

// Cancel begins Close: everything that may last ends, as the rollbacks of large transactions, which the next start goes on with.
// Sessions come to no end any more but by errors. Close is to follow.
func (n *Node) Cancel() {
	if c, err := n.running(); err == nil {
		c.yield()
		c.stop(ErrStopped)
	}
}

// take takes the core out of the node.
func (n *Node) take() *core { return n.core.Swap(nil) }

// failed notes why the core has stopped.
func (n *Node) failed(err error) {
	n.err.CompareAndSwap(nil, &err)
	n.opt.Changed()
}

// Fail stops the node, as an error of its own does: it cannot serve with the data that it has.
func (n *Node) Fail(err error) {
	if c, e := n.running(); e == nil {
		c.fail(err)
	}
}

// Err is why the node has stopped by itself, or nil.
func (n *Node) Err() error {
	if p := n.err.Load(); p != nil {
		return *p
	}
	return nil
}

// running returns the core. Error: ErrStopped, ErrProvisioning, or why the node has
// failed. Every statement asks, more than once: it takes no mutex.
func (n *Node) running() (*core, error) {
	if p := n.err.Load(); p != nil {
		return nil, *p
	}
	if c := n.core.Load(); c != nil {
		return c, nil
	}
	if n.closed.Load() {
		return nil, ErrStopped
	}
	return nil, ErrProvisioning
}

// ErrProvisioning: the node is being given its data and serves nothing yet.
var ErrProvisioning = errors.New("group: this member is being given its data")

// Engine returns the engine for reads. It is closed when the node is, and when the
// node gets its data anew: who reads it then gets storage.ErrClosed.
func (n *Node) Engine() (*storage.Engine, error) {
	c, err := n.running()
	if err != nil {
		return nil, err
	}
	return c.engine, nil
}

// Log returns the group's log as this node has it, for reading; nil while the node has
// none.
func (n *Node) Log() *log.Log {
	c, err := n.running()
	if err != nil {
		return nil
	}
	return c.binlog
}

// MetadataLocks lists the metadata locks of the node's sessions, at most max.
func (n *Node) MetadataLocks(max int) []txn.MetadataLock {
	c, err := n.running()
	if err != nil {
		return nil
	}
	return c.sessions.MetadataLocks(max)
}

// TemporaryTables tells of the temporary tables of the node's sessions: how many there are, and the bytes of their files.
func (n *Node) TemporaryTables() (tables, bytes int64) {
	c, err := n.running()
	if err != nil {
		return 0, 0
	}
	return c.sessions.Temporary()
}

// MetadataWaits lists who waits for whose metadata locks, at most max.
func (n *Node) MetadataWaits(max int) []txn.MetadataWait {
	c, err := n.running()
	if err != nil {
		return nil
	}
	return c.sessions.MetadataWaits(max)
}

// NewSession returns a session on the node's data. Writes are for the leader; on
// others they fail with ErrNotLeader.
func (n *Node) NewSession() (*txn.Session, error) {
	c, err := n.running()
	if err != nil {
		return nil, err
	}
	return c.sessions.NewSession(), nil
}

// Used answers a client that does not know what became of a commit: it returns the
// number of the transaction that was committed with the token. If none was, the client
// may begin again, with the same token: of two that do only one is committed
// (commit.TokenUsedError for the other). It is for the leader, and waits for a
// transaction that is being committed.
func (n *Node) Used(token entry.Token) (number uint64, found bool, err error) {
	c, err := n.running()
	if err != nil {
		return 0, false, err
	}
	if !c.writable() {
		return 0, false, ErrNotLeader
	}
	deadline := c.env.Monotonic() + n.opt.ReadTimeout
	if _, err := c.strongPoint(waiting{deadline: deadline}); err != nil { // an old leader knows nothing
		return 0, false, err
	}
	return c.pipeline.Used(token, deadline)
}

// ID is the node's member id, Group the id of its group.
func (n *Node) ID() uint64      { return n.id.id }
func (n *Node) Group() [16]byte { return n.id.group }

// Leader returns the leader that this node knows of; ok is false if it knows none.
func (n *Node) Leader() (m Member, ok bool) {
	c, err := n.running()
	if err != nil {
		return m, false
	}
	r := c.currentRole()
	for _, m := range c.membership.current() {
		if m.ID == r.leader {
			return m, true
		}
	}
	return m, false
}

// Writable reports whether sessions of this node may write.
func (n *Node) Writable() bool { return n.WritableTerm() != 0 }

// WritableTerm is the term in which sessions of this node may write; 0: they may not. Another
// one says that it did not lead in between.
func (n *Node) WritableTerm() uint64 {
	if c, err := n.running(); err == nil {
		if term := c.serving.Load(); c.writableIn(term) {
			return term
		}
	}
	return 0
}

// Transfer hands leadership to a voter; 0 chooses the one that can serve soonest. It
// returns when another member leads or the attempt is over.
func (n *Node) Transfer(to uint64) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	if to == 0 && c.currentRole().leads { // how much they have applied
		limit := min(n.opt.StatusTimeout, time.Duration(n.opt.ElectionTicks)*n.opt.Tick)
		c.behind.told(n.askStatus(c.membership.current(), limit))
	}
	r := &transferRequest{to: to, reply: reply{parker: c.env.NewParker()}}
	if !c.inbox.call(func() { c.raft.moves.startTransfer(c.raft, r) }) {
		return ErrStopped
	}
	return r.wait()
}

// Add adds a member as a learner, or gives one another address. Unless it is to stay
// one the leader lets it vote by itself once it has caught up.
func (n *Node) Add(m Member) error {
	return n.change(m.ID, raftpb.ConfChangeAddLearnerNode, encodeMember(m))
}

// Promote lets a learner vote now. It should have caught up (see Status): until it has,
// commits may have to wait for it. Of a member that votes it makes sure that this is not
// forgotten any more.
func (n *Node) Promote(id uint64) error {
	for _, m := range n.Members() {
		switch {
		case m.ID == id && !m.Learner:
			return n.confirm(id)
		case m.ID == id:
			was := m
			m.Learner, m.Stays = false, false
			return n.proposeOf(&was, id, addVoter(m))
		}
	}
	return fmt.Errorf("group: there is no member %d", id)
}

// Remove takes a member out of the group for good. When it returns, the group does not
// need the member any more. The leader does not remove itself: it hands leadership over
// and returns [ErrNotLeader]; the new leader is to be asked. A member that has left already is
// not needed either once Remove returns.
func (n *Node) Remove(id uint64) error {
	if id == n.opt.ID {
		return n.giveUpLead()
	}
	if n.Left(id) {
		return n.confirm(id)
	}
	return n.change(id, raftpb.ConfChangeRemoveNode, nil)
}

// Replace puts a new voter in the place of an old one in one step. The new one should
// be a learner that has caught up. When Replace returns, the group does not need the old
// one any more, also if it had been replaced already. The leader does not replace itself, as for
// [Node.Remove].
func (n *Node) Replace(old, with uint64) error {
	if old == n.opt.ID {
		return n.giveUpLead()
	}
	for _, m := range n.Members() {
		if m.ID != with {
			continue
		}
		if !m.Learner && n.Left(old) {
			return n.confirm(old)
		}
		was := m
		m.Learner, m.Stays = false, false
		return n.proposeOf(&was, with, &raftpb.ConfChangeV2{Context: encodeMember(m), Changes: []*raftpb.ConfChangeSingle{
			{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: new(with)},
			{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(old)},
		}})
	}
	return fmt.Errorf("group: there is no member %d", with)
}

// confirm returns when a change of membership that is in force, of which an earlier request may
// not have heard, cannot be forgotten any more.
func (n *Node) confirm(id uint64) error { return n.propose(id, &raftpb.ConfChangeV2{}) }

// giveUpLead hands leadership over, since somebody else has to do what was asked for.
func (n *Node) giveUpLead() error {
	if err := n.Transfer(0); err != nil {
		return err
	}
	return ErrNotLeader
}

func addVoter(m Member) *raftpb.ConfChangeV2 {
	return &raftpb.ConfChangeV2{Context: encodeMember(m),
		Changes: []*raftpb.ConfChangeSingle{{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: new(m.ID)}}}
}

func (n *Node) change(id uint64, typ raftpb.ConfChangeType, context []byte) error {
	return n.propose(id, &raftpb.ConfChangeV2{Context: context,
		Changes: []*raftpb.ConfChangeSingle{{Type: typ.Enum(), NodeId: new(id)}}})
}

func (n *Node) propose(id uint64, cc *raftpb.ConfChangeV2) error { return n.proposeOf(nil, id, cc) }

// proposeOf is propose for a change that was made of what a member was; nil: of nothing.
func (n *Node) proposeOf(was *Member, id uint64, cc *raftpb.ConfChangeV2) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	if id == raft.None || raft.IsLocalMsgTarget(id) {
		return fmt.Errorf("group: %d cannot be the id of a member", id)
	}
	r := &changeRequest{cc: cc, was: was, node: id, deadline: c.env.Monotonic() + n.opt.ChangeTimeout, reply: reply{parker: c.env.NewParker()}}
	if !c.inbox.call(func() { c.raft.moves.startChange(c.raft, r) }) {
		return ErrStopped
	}
	return r.wait()
}

// Left reports whether a member was removed, as far as this node knows and remembers.
func (n *Node) Left(id uint64) bool {
	c, err := n.running()
	return err == nil && c.membership.left(id)
}

// Members returns who is in the group as far as this node knows.
func (n *Node) Members() []Member {
	c, err := n.running()
	if err != nil {
		return nil
	}
	return c.membership.current()
}

// WaitWritable waits until this node takes writes, or another leads, or the time is up.
func (n *Node) WaitWritable(ctx context.Context, limit time.Duration) bool {
	for until := n.opt.Env.Monotonic() + limit; n.opt.Env.Monotonic() < until && ctx.Err() == nil; {
		if n.Writable() {
			return true
		}
		env.Sleep(n.opt.Env, min(limit, 5*time.Millisecond))
	}
	return n.Writable()
}
