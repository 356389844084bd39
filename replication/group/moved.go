package group

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/replication/discovery"
)

// ErrNotMoved: a member is not known to be where it is said to be, and nowhere else.
var ErrNotMoved = errors.New("the member was not moved")

// Move tells the group that a member with all its data is at another address. A node is not believed that by
// itself: two processes with copies of one directory would both vote. The member has to run at the new
// address, and none may run, or have been heard a moment ago, at the old one; a process there that this
// leader cannot reach is for whoever asks to know of. Errors: those of Add, and ErrNotMoved.
func (n *Node) Move(ctx context.Context, id uint64, addr string) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	if !c.currentRole().leads {
		return ErrNotLeader
	}
	if id == n.opt.ID {
		return fmt.Errorf("%w: member %d leads the group from %s, where it is", ErrNotMoved, id, n.transport.Addr())
	}
	for _, m := range n.Members() {
		if m.ID != id {
			continue
		}
		if m.Addr == addr {
			return n.confirm(id)
		}
		if err := n.hasMoved(ctx, m, addr); err != nil {
			return err
		}
		was := m
		m.Addr = addr
		cc := addVoter(m)
		if m.Learner {
			cc.Changes[0].Type = raftpb.ConfChangeAddLearnerNode.Enum()
		}
		return n.proposeOf(&was, id, cc)
	}
	return fmt.Errorf("group: there is no member %d", id)
}

// hasMoved looks whether a member is at an address, and no more at the one that the group knows.
func (n *Node) hasMoved(ctx context.Context, m Member, addr string) error {
	runs := func(at string) (discovery.Status, bool, error) {
		s, err := discovery.Probe(ctx, n.transport, at, joinAsk)
		return s, err == nil && s.State == discovery.Begun && s.Group == n.id.group && s.ID == m.ID, err
	}
	switch s, there, err := runs(addr); {
	case err != nil:
		return fmt.Errorf("%w: nobody answers at %s: %w", ErrNotMoved, addr, err)
	case !there:
		return fmt.Errorf("%w: the node at %s is not member %d of this group, but member %d of %v", ErrNotMoved, addr, m.ID, s.ID, s.Group)
	}
	if _, there, _ := runs(m.Addr); there {
		return fmt.Errorf("%w: it runs at %s as well, with another copy of its directory", ErrNotMoved, m.Addr)
	}
	for _, f := range n.Followers() {
		if f.ID == m.ID && f.Active {
			return fmt.Errorf("%w: it was heard from %s a moment ago", ErrNotMoved, m.Addr)
		}
	}
	return nil
}

// elsewhere is what other members have said to this one because they know the member at another address,
// or have let in another process of it.
type elsewhere struct {
	mu   sync.Mutex
	said map[uint64]string // by member; gone when it lets this one in
}

// heard notes that a member refuses this one, and returns what to do about it.
func (e *elsewhere) heard(from uint64, text, addr string, id uint64) (advice string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.said == nil {
		e.said = map[uint64]string{}
	}
	advice = fmt.Sprintf("two processes never are one member. If this directory is a copy: stop this process and empty the directory, and it joins as a "+
		"new member. If the member was moved to %s and its former process has ended: %s", addr, moveCommand(id, addr))
	e.said[from] = "other members refuse this one: " + text + "; " + advice
	return advice
}

// over forgets what a member has said, which lets this one in.
func (e *elsewhere) over(from uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.said, from)
}

// text is what one of them has said; empty: nobody says so.
func (e *elsewhere) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	least := uint64(0)
	for id := range e.said {
		if least == 0 || id < least {
			least = id
		}
	}
	return e.said[least]
}

// moveCommand is what an operator says to the group.
func moveCommand(id uint64, addr string) string {
	return fmt.Sprintf("trireme admin members add %d %s", id, addr)
}
