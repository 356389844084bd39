package group

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
)

// Bootstrap lets a node find out by itself who it is: a founder of a group, a new
// member of one that exists, or the member whose data its directory has. All nodes of
// a cluster can be started alike, as often as need be: package discovery says why no
// second group comes of that, and why a node whose directory was lost does not come
// back under its old id. Such a node joins as a new member; the group drops the old
// one of the same address with the same change.
type Bootstrap struct {
	Discovery discovery.Discovery
	Name      string // of the cluster
	Addr      string // of this node, as others reach it and as the list of founders has it
	// Replica says that the node, if it joins, stays a learner: it serves reads and
	// does not vote.
	Replica bool
}

func (b *Bootstrap) validate(o *Options) error {
	switch {
	case b.Discovery == nil || b.Name == "" || b.Addr == "":
		return errors.New("group: a bootstrap needs a discovery, the cluster's name and the node's address")
	case len(o.Founders) > 0 || o.Join || o.ID != 0 || o.Group != [16]byte{}:
		return errors.New("group: a node with a bootstrap finds out by itself who founds the group, and its own id")
	}
	return nil
}

// bootstrap opens the transport, finds out who the node is, and writes it down the
// first time.
func (n *Node) bootstrap(ctx context.Context) error {
	var begun transport.Identity
	switch id, err := readIdentity(n.opt.FS); {
	case err == nil:
		begun = transport.Identity{Group: id.group, Member: id.id}
		if err := keepCluster(n.opt.FS, id.group, n.opt.Bootstrap.Name); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default: // others must not hear that a directory is empty that is not
		if err := unused(n.opt.FS, raftlog.State{}); err != nil {
			return err
		}
	}
	replaced, err := readReplaced(n.opt.FS)
	if err != nil {
		return err
	}
	o := n.opt.Bootstrap
	b, err := discovery.New(discovery.Options{Env: n.opt.Env, FS: n.opt.FS, Discovery: o.Discovery,
		Addr: o.Addr, Name: o.Name, Begun: begun, Replaced: replaced, Log: n.opt.Log})
	if err != nil {
		return err
	}
	if n.transport, err = n.opt.Transport(begun, b); err != nil {
		return err
	}
	if err = n.decide(ctx, b); err != nil {
		return errors.Join(err, n.transport.Close())
	}
	return nil
}

func (n *Node) decide(ctx context.Context, b *discovery.Bootstrap) error {
	a, err := b.Run(ctx, n.transport)
	if err != nil {
		return err
	}
	switch a.Kind {
	case discovery.Found:
		n.opt.Group, n.opt.ID = a.Group, a.ID
		for _, p := range a.Plan.Founders() {
			n.opt.Founders = append(n.opt.Founders, Member{ID: p.ID, Addr: p.Addr})
		}
	case discovery.Join:
		n.opt.Group, n.opt.ID, n.opt.Join, n.opt.Contact = a.Group, a.ID, true, a.Contacts
	}
	if n.id, err = n.identify(); err != nil {
		return err
	}
	if err := keepCluster(n.opt.FS, n.id.group, n.opt.Bootstrap.Name); err != nil {
		return err
	}
	id := transport.Identity{Group: n.id.group, Member: n.id.id}
	if err := n.transport.SetIdentity(id); err != nil {
		return err
	}
	b.Begin(id, n)
	return nil
}

// checkAddress says when others look for this member elsewhere than where it is.
func (n *Node) checkAddress() {
	c, err := n.running()
	if n.opt.Bootstrap == nil || err != nil {
		return
	}
	for _, m := range c.membership.current() {
		if m.ID == n.id.id && m.Addr != n.opt.Bootstrap.Addr {
			n.opt.Log.Warn("the group knows this member at another address, where others will look for it: start it there, or, if it was moved here "+
				"and its former process has ended, tell the group: "+moveCommand(m.ID, n.opt.Bootstrap.Addr),
				"known", m.Addr, "started", n.opt.Bootstrap.Addr)
		}
	}
}

// presence makes the node a member of the group if it is none yet, and keeps what the
// discovery says of it up to date.
type presence struct {
	n      *Node
	ctx    context.Context
	cancel context.CancelFunc
	over   atomic.Bool
	join   env.Parker
	tell   env.Parker
	tasks  *env.Group
}

func (p *presence) init(n *Node) {
	p.n, p.join, p.tell, p.tasks = n, n.opt.Env.NewParker(), n.opt.Env.NewParker(), env.NewGroup(n.opt.Env)
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

func (p *presence) start() {
	if p.n.opt.Bootstrap == nil {
		return
	}
	if p.n.joins() {
		p.tasks.Go("joining", p.joinGroup)
	}
	p.tasks.Go("announcing", p.announce)
}

func (p *presence) stop() {
	p.over.Store(true)
	p.cancel()
	p.join.Unpark()
	p.tell.Unpark()
	p.tasks.Wait()
}

const (
	joinEvery     = 500 * time.Millisecond
	joinAsk       = time.Second // the first wait for an answer, which takes several round trips; it gets longer where that was too short
	joinAskMost   = 8 * time.Second
	joinProbe     = 4 * time.Second // the leader's wait for an answer of the node that joins
	announceEvery = 2 * time.Second
)

// announce tells the discovery what the node is.
func (p *presence) announce() {
	b := p.n.opt.Bootstrap
	told := false
	for !p.over.Load() {
		a := discovery.Announcement{Group: p.n.id.group, ID: p.n.id.id, Addr: b.Addr}
		if c, err := p.n.running(); err == nil {
			a.Term = c.serving.Load()
		}
		err := b.Discovery.Announce(p.ctx, a)
		if err != nil && !told && !p.over.Load() {
			p.n.opt.Log.Warn("the discovery was not told of this node", "error", err)
		}
		told = err != nil
		p.tell.ParkFor(announceEvery)
	}
}

// joinGroup asks until the group has taken the node in, and has given it its data.
func (p *presence) joinGroup() {
	var lead string // where the leader is said to be
	gone, fresh := refusals{}, p.n.hasNoData()
	for wait := joinAsk; !p.over.Load(); {
		if p.isMember() {
			return
		}
		next, contacts, late := "", p.contacts(lead), false
	asking:
		for i, addr := range contacts {
			began := p.n.opt.Env.Monotonic()
			answer, err := p.n.transport.Ask(p.ctx, transport.Call{Addr: addr, Kind: askJoin, Timeout: wait,
				Payload: encodeMember(Member{ID: p.n.id.id, Addr: p.n.opt.Bootstrap.Addr, Learner: true, Stays: p.n.opt.Bootstrap.Replica})})
			gone.heard(addr, err)
			late = late || err != nil && p.n.opt.Env.Monotonic()-began >= wait
			if err != nil || len(answer) == 0 || p.over.Load() {
				continue
			}
			switch next = string(answer[1:]); {
			case answer[0] == joinDone && !p.n.hasNoData():
				return
			case answer[0] != joinElsewhere:
				break asking
			// Who knows nobody, or one that was just asked in vain, may be a node that joins, too.
			case next == "", slices.Contains(contacts[:i+1], next):
				next = ""
			default:
				break asking
			}
		}
		if fresh && gone.most(contacts) && p.n.hasNoData() {
			p.n.failed(fmt.Errorf("%w (most of those that it asked to join say so; it has no data yet)", ErrRemoved))
			p.n.provisioning.stopReceiving()
			return
		}
		if late { // perhaps they are far away
			wait = min(2*wait, joinAskMost)
		}
		lead, next = next, lead
		if lead == "" || lead == next {
			p.join.ParkFor(joinEvery)
		}
	}
}

// hasNoData reports whether the node is being given its data.
func (n *Node) hasNoData() bool {
	_, err := n.running()
	return errors.Is(err, ErrProvisioning)
}

// refusals are addresses at which members say that this one was removed. A node that has data hears that from members that
// it knows (see removal); one that has none yet knows nobody, and would wait for its data for ever. Its directory holds
// nothing that the group needs.
type refusals map[string]bool

func (r refusals) heard(addr string, err error) {
	var said *transport.Rejection
	switch {
	case errors.As(err, &said) && said.Reason == transport.ReasonRemoved:
		r[addr] = true
	case err == nil:
		delete(r, addr)
	}
}

// most reports whether most of those that can be asked say so.
func (r refusals) most(contacts []string) bool {
	count := 0
	for _, addr := range contacts {
		if r[addr] {
			count++
		}
	}
	return count > len(contacts)/2
}

func (p *presence) isMember() bool {
	c, err := p.n.running()
	if err != nil {
		return false
	}
	for _, m := range c.membership.current() {
		if m.ID == p.n.id.id {
			return true
		}
	}
	return false
}

// contacts are addresses of members, the leader's first if it is known. They are those
// to get the data from, too.
func (p *presence) contacts(lead string) []string {
	found, err := p.n.opt.Bootstrap.Discovery.Contacts(p.ctx)
	var addrs []string
	if lead != "" {
		addrs = append(addrs, lead)
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	if err == nil && len(found) > 0 {
		p.n.contact = found
	}
	for _, a := range p.n.contact {
		if a != lead && a != p.n.opt.Bootstrap.Addr {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// Answers to a node that asks to become a member.
const (
	joinDone      = 1 + iota // it is one
	joinBegun                // it is going to be
	joinElsewhere            // the leader must be asked; its address follows if it is known
)

// letIn answers a node that asks to become a member. Of the members that have had its
// address nothing is left, since the node at that address says that it is the new one:
// they leave the group.
func (n *Node) letIn(ctx context.Context, payload []byte) ([]byte, error) {
	m, err := decodeMember(payload)
	if err != nil {
		return nil, err
	}
	c, err := n.running()
	if err != nil {
		return nil, err
	}
	if !c.currentRole().leads {
		answer := []byte{joinElsewhere}
		if l, ok := n.Leader(); ok {
			answer = append(answer, l.Addr...)
		}
		return answer, nil
	}
	for _, old := range c.membership.current() {
		switch {
		case old.ID == m.ID:
			return []byte{joinDone}, nil
		case old.ID == n.id.id && old.Addr == m.Addr:
			return nil, fmt.Errorf("group: %s is the address of the leader", m.Addr)
		}
	}
	s, err := discovery.Probe(ctx, n.transport, m.Addr, joinProbe)
	if err != nil {
		return nil, fmt.Errorf("group: the node that asks to join does not answer at the address it gives: %w", err)
	}
	if s.State != discovery.Begun || s.Group != n.id.group || s.ID != m.ID {
		return nil, fmt.Errorf("group: node %s says that it is member %d of group %v, not member %d that asks to join", m.Addr, s.ID, s.Group, m.ID)
	}
	c.inbox.call(func() {
		if c.raft.moves.change == nil {
			cc := joinChange(m, c.membership.current())
			n.opt.Log.Info("a node joins", "member", m.ID, "address", m.Addr, "replaces", len(cc.Changes)-1)
			c.raft.moves.startChange(c.raft, &changeRequest{cc: cc, node: m.ID, joining: &m,
				deadline: c.env.Monotonic() + n.opt.ChangeTimeout, reply: reply{parker: c.env.NewParker()}})
		}
	})
	return []byte{joinBegun}, nil
}

// joinChange makes a learner of a node, and lets those leave that have had its address.
func joinChange(m Member, members []Member) *raftpb.ConfChangeV2 {
	cc := &raftpb.ConfChangeV2{Context: encodeMember(m), Changes: []*raftpb.ConfChangeSingle{
		{Type: raftpb.ConfChangeAddLearnerNode.Enum(), NodeId: new(m.ID)}}}
	for _, old := range members {
		if old.Addr == m.Addr && old.ID != m.ID {
			cc.Changes = append(cc.Changes, &raftpb.ConfChangeSingle{Type: raftpb.ConfChangeRemoveNode.Enum(), NodeId: new(old.ID)})
		}
	}
	return cc
}
