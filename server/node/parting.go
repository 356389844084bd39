package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/kubernetes"
)

// Whoever stops pods, one after the other or all at once, may not know how the group stands: a
// StatefulSet rolls its pods by their own readiness alone. So a voter that is to be stopped asks the
// leader whether the others can do without it, and goes on until they can, for at most
// stop_wait. The leader lets one go at a time, as long as a majority is there and has caught up.
// That is for members that are stopped in order; nothing of it is needed for safety.
//
// One that is stopped for good is let go because it will leave: the others would be too few if it stopped
// and stayed a voter. So it leaves before it stops, and is a voter like any other until it has left.

const (
	// spareEvery is how often a node that is to be stopped asks again.
	spareEvery = time.Second
	// spareAsk is how long the leader's answer may take: it asks the others itself.
	spareAsk = 3 * time.Second
	// spareLeaderless is for how long a node waits for somebody to lead. A group without a leader
	// loses nothing when one more is stopped.
	spareLeaderless = 10 * time.Second
	// spareSaid is how often a node says anew what it waits for. That may have a number which is another one each time.
	spareSaid = 30 * time.Second
	// spareRefused is how often Kubernetes has to refuse an answer until that is its last word.
	spareRefused = 5
)

// parting is a voter that is to be stopped.
type parting struct {
	n       *Node
	until   time.Time       // it waits no longer
	refused int             // answers of Kubernetes, in a row
	set     *kubernetes.Set // as Kubernetes has said last; nil: it has not
	shut    bool            // clients are not served any more
}

// AwaitSpared waits until the group can do without this node, for at most stop_wait or until ctx ends.
// It serves clients meanwhile. One that has no place any more leaves the group first, by when the statements of
// its clients have ended. Stop is to be called next.
func (n *Node) AwaitSpared(ctx context.Context) {
	most := n.cfg.Duration("stop_wait")
	if most == 0 {
		return
	}
	began := time.Now()
	var said spoken
	p := &parting{n: n, until: began.Add(most)}
	for led := began; n.group.Err() == nil && n.votes(); {
		wait := p.ask(ctx)
		if wait == nil {
			n.goes.Store(true) // before the leader forgets
			break
		}
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		if p.leaves() || !errors.Is(wait, errNobodyLeads) {
			led = now
		}
		if now.Sub(led) >= spareLeaderless || !now.Before(p.until) {
			n.log.Warn("this node stops though the group is not whole without it", "waited", now.Sub(began).Round(time.Millisecond), "for", wait)
			break
		}
		if said.anew(wait.Error(), now) {
			n.log.Warn("this node is to be stopped and waits until the group can do without it", "for", said.text, "at_most", most)
			n.tell(ctx, "StopWaits", fmt.Sprintf("member %d at %s is to be stopped and waits: %s", n.group.ID(), peerAddress(n.cfg), said.text))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(spareEvery):
		}
	}
}

// spoken is what was said last.
type spoken struct {
	text string
	at   time.Time
}

// anew reports whether a text is to be said: it is another one, and nothing was said for a while.
func (s *spoken) anew(text string, now time.Time) bool {
	if text == s.text || s.text != "" && now.Sub(s.at) < spareSaid {
		return false
	}
	*s = spoken{text, now}
	return true
}

var errNobodyLeads = errors.New("nobody leads the group")

// ask returns why this node had better go on; nil: nothing speaks for that.
func (p *parting) ask(ctx context.Context) error {
	n := p.n
	err := p.look(ctx)
	switch {
	case n.set == nil:
	case p.set != nil && !p.set.Lasts, n.lastDays.Load(), n.blind.Load() && n.allStop(ctx):
		return nil
	case p.set == nil && n.voters() == 2: // if this one is to leave, the other one is lost with it unless it has left
		return fmt.Errorf("whether the member is to leave the group is not known: %w", err)
	}
	if err := n.askSpared(ctx, spareRequest{Leaves: p.leaves()}); err != nil || !p.leaves() {
		return err
	}
	n.goes.Store(true)
	return p.leave(ctx)
}

// look asks Kubernetes whether this node is stopped for good. While it does not answer, what it has said last holds.
func (p *parting) look(ctx context.Context) error {
	n := p.n
	if n.set == nil {
		return nil
	}
	set, err := n.askSet(ctx, n.set.name)
	if p.refused++; !kubernetes.Refused(err) {
		p.refused = 0
	}
	n.blind.Store(p.refused >= spareRefused)
	if err != nil {
		return err
	}
	if p.set = &set; p.leaves() {
		n.noPlace.Store(p.set)
	} else {
		n.noPlace.Store(nil)
	}
	return nil
}

// leaves reports whether this node is stopped for good.
func (p *parting) leaves() bool {
	return p.set != nil && p.set.Lasts && !p.set.Has(p.n.set.ordinal)
}

// allStop reports whether this node is not the only one that is being stopped without hearing why: so it is
// when a namespace ends, with the pods' rights. Where only one has lost them the group goes on, and needs it.
func (n *Node) allStop(ctx context.Context) bool {
	stop := 0
	for _, m := range n.group.Members() {
		if m.Learner || m.ID == n.group.ID() {
			continue
		}
		switch a, err := n.askAbout(ctx, m.ID); {
		case err != nil: // it may have stopped
		case a.Stopping || a.Blind:
			stop++
		default:
			return false
		}
	}
	return stop > 0
}

// askSpared asks the leader whether the group can do without this node: why not; nil: it can.
func (n *Node) askSpared(ctx context.Context, req spareRequest) error {
	ctx, cancel := context.WithTimeout(ctx, 2*spareAsk)
	defer cancel()
	leader, ok := n.group.Leader()
	switch {
	case !ok:
		return errNobodyLeads
	case leader.ID == n.group.ID():
		return n.spare(ctx, leader.ID, req)
	}
	payload, err := json.Marshal(req)
	if err != nil {
		return err
	}
	b, err := n.peers.Ask(ctx, transport.Call{To: leader.ID, Kind: askSpare, Payload: payload, Timeout: spareAsk})
	if unknownSpare(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the leader, member %d at %s, does not say whether the others can do without this one: %w", leader.ID, leader.Addr, err)
	}
	var answer spareAnswer
	if err = json.Unmarshal(b, &answer); err == nil && answer.Wait != "" {
		err = errors.New(answer.Wait)
	}
	return err
}

// unknownSpare reports whether the error is of an older program, which does not know the question.
func unknownSpare(err error) bool {
	var f *transport.Failure
	return errors.As(err, &f) && f.Code == 0
}

// leave takes this node, which was let go for good, out of the group: why it is still in it; nil: it has left.
func (p *parting) leave(ctx context.Context) error {
	n := p.n
	if n.group.Writable() {
		if err := n.handOn(p.set); err != nil {
			return fmt.Errorf("leadership cannot be handed over: %w", err)
		}
	}
	if !p.shut {
		began := time.Now()
		n.draining.Store(true) // whenever it leads again it hands over
		limit, cancel := context.WithTimeout(ctx, n.cfg.Duration("shutdown_timeout"))
		n.shutDoors(limit)
		cancel()
		p.shut, p.until = true, p.until.Add(time.Since(began))
	}
	return n.leave(ctx, p.set)
}

// tell makes an event of the node's StatefulSet, if it is of one, and reports whether it did.
func (n *Node) tell(ctx context.Context, reason, message string) bool {
	return n.tellKind(ctx, kubernetes.Warning, reason, message)
}

func (n *Node) tellKind(ctx context.Context, kind, reason, message string) bool {
	if n.set == nil {
		return false
	}
	set, err := n.set.Set(ctx, n.set.name)
	if err == nil {
		err = n.set.Tell(ctx, &set, kind, reason, message)
	}
	return n.toldEvent(reason, err)
}

// tellOf makes an event of a set; of this node's own if that one is gone, since nobody reads of it any more.
func (n *Node) tellOf(ctx context.Context, set *kubernetes.Set, reason, message string) {
	if !set.Exists() {
		n.tell(ctx, reason, message)
		return
	}
	n.toldEvent(reason, n.set.Tell(ctx, set, kubernetes.Warning, reason, message))
}

// toldEvent reports whether an event was told; the log says why not.
func (n *Node) toldEvent(reason string, err error) bool {
	if kubernetes.NamespaceEnds(err) { // its pods end one after the other, and none comes back
		n.lastDays.Store(true)
	}
	if err != nil && !n.isStopping() {
		n.log.Warn("an event cannot be told to Kubernetes", "reason", reason, "error", err)
	}
	return err == nil
}
