package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/kubernetes"
)

// Whoever stops pods, one after the other or all at once, may not know how the group stands: a
// StatefulSet rolls its pods by their own readiness alone. So a voter that is to be stopped asks the
// leader whether the others can do without it, and goes on until they can, for at most
// stop_wait. The leader lets one go at a time, as long as a majority is there and has caught up.
// That is for members that are stopped in order; nothing of it is needed for safety.

const (
	// spareEvery is how often a node that is to be stopped asks again.
	spareEvery = time.Second
	// spareAsk is how long the leader's answer may take: it asks the others itself.
	spareAsk = 3 * time.Second
	// spareLeaderless is for how long a node waits for somebody to lead. A group without a leader
	// loses nothing when one more is stopped.
	spareLeaderless = 10 * time.Second
	// spareRefused is how often Kubernetes has to refuse an answer until that is its last word.
	spareRefused = 5
	// spareHolds is how long a member that was let go counts as gone by that alone: until it says so
	// itself, or was started again.
	spareHolds = 10 * time.Second
	// spareLag is how far a member may be behind to count as there.
	spareLag = 5 * time.Second
)

// spared is what a leader knows of those whom it let go.
type spared struct {
	mu sync.Mutex // held while one is thought about
	at map[uint64]time.Time
}

// spareRequest asks whether the group can do without a member.
type spareRequest struct {
	Leaves bool `json:"leaves"` // for good
}

// spareAnswer says why it cannot; empty: it can.
type spareAnswer struct {
	Wait string `json:"wait,omitempty"`
}

// AwaitSpared waits until the group can do without this node, for at most stop_wait or until ctx ends.
// It serves clients meanwhile. Stop is to be called next.
func (n *Node) AwaitSpared(ctx context.Context) {
	most := n.cfg.Duration("stop_wait")
	if most == 0 {
		return
	}
	began, said := time.Now(), ""
	refused := 0
	for led := began; n.group.Err() == nil && n.votes(); {
		wait := n.askSpared(ctx, &refused)
		if wait == nil {
			n.goes.Store(true) // before the leader forgets
			break
		}
		now := time.Now()
		if !errors.Is(wait, errNobodyLeads) {
			led = now
		}
		if now.Sub(led) >= spareLeaderless || now.Sub(began) >= most {
			n.log.Warn("this node stops though the group is not whole without it", "waited", now.Sub(began).Round(time.Millisecond), "for", wait)
			break
		}
		if wait.Error() != said {
			said = wait.Error()
			n.log.Warn("this node is to be stopped and waits until the group can do without it", "for", said, "at_most", most)
			n.tell(ctx, "StopWaits", fmt.Sprintf("member %d at %s is to be stopped and waits: %s", n.group.ID(), peerAddress(n.cfg), said))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(spareEvery):
		}
	}
}

var errNobodyLeads = errors.New("nobody leads the group")

// askSpared returns why this node had better go on; nil: nothing speaks for that.
func (n *Node) askSpared(ctx context.Context, refused *int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*spareAsk)
	defer cancel()
	var req spareRequest
	if n.set != nil {
		set, err := n.set.Set(ctx, n.set.name)
		if *refused++; !kubernetes.Refused(err) {
			*refused = 0
		}
		if err == nil && !set.Lasts || *refused >= spareRefused {
			return nil // all are stopped; or nobody can tell
		}
		req.Leaves = err == nil && !set.Has(n.set.ordinal)
	}
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
	var older *transport.Failure
	if errors.As(err, &older) {
		return nil // an older program, which knows nothing of it
	}
	var answer spareAnswer
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	if err == nil && answer.Wait != "" {
		err = errors.New(answer.Wait)
	}
	return err
}

// answerSpare answers askSpare.
func (n *Node) answerSpare(ctx context.Context, payload []byte) ([]byte, error) {
	caller := transport.CallerFrom(ctx)
	if !n.isReady() || caller.Member == 0 || caller.Group != transport.GroupID(n.group.Group()) {
		return nil, &transport.Failure{Text: "only members ask for that"}
	}
	var req spareRequest
	if err := json.Unmarshal(payload, &req); err != nil {
		return nil, &transport.Failure{Text: err.Error()}
	}
	var answer spareAnswer
	if err := n.spare(ctx, caller.Member, req); err != nil {
		answer.Wait = err.Error()
	}
	return json.Marshal(answer)
}

// spare lets a member go, or says why the group needs it.
func (n *Node) spare(ctx context.Context, id uint64, req spareRequest) error {
	n.spared.mu.Lock()
	defer n.spared.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err() // nobody waits for it any more
	}
	if !n.group.Writable() {
		return errNobodyLeads
	}
	voters, there, asks, joins := 0, 0, false, false
	var away []string
	states := n.group.GroupStatus()
	for _, m := range n.group.Members() {
		if m.Learner {
			if !m.Stays {
				joins = true
				away = append(away, fmt.Sprintf("member %d at %s does not vote yet", m.ID, m.Addr))
			}
			continue
		}
		voters++
		if m.ID == id {
			asks = true
			continue
		}
		if why := n.absent(ctx, m, states); why != "" {
			away = append(away, fmt.Sprintf("member %d at %s %s", m.ID, m.Addr, why))
		} else {
			there++
		}
	}
	if req.Leaves {
		voters--
	}
	majority := voters/2 + 1
	switch {
	case !asks:
		return nil // it does not vote
	case !req.Leaves && voters-1 < majority && !joins:
		return nil // two voters, or one: the group always needs it
	case there < majority:
		return fmt.Errorf("without it %d of %d voters would be there: %s", there, voters, strings.Join(away, ", "))
	}
	if ctx.Err() != nil {
		return ctx.Err() // it would count as let go, and has not heard of it
	}
	if n.spared.at == nil {
		n.spared.at = map[uint64]time.Time{}
	}
	n.spared.at[id] = time.Now()
	return nil
}

// absent says why a voter does not count as there; empty: it does.
func (n *Node) absent(ctx context.Context, m group.Member, states []group.Status) string {
	letGo := time.Since(n.spared.at[m.ID])
	if m.ID == n.group.ID() {
		if n.goes.Load() || letGo < spareHolds {
			return "is being stopped"
		}
		return ""
	}
	for i := range states {
		s := &states[i]
		if s.ID != m.ID {
			continue
		}
		switch {
		case s.Provisioning:
			return "is being given its data"
		case s.Error != "":
			return "does not answer"
		case s.Lag.Time < 0 || s.Lag.Time > spareLag:
			return fmt.Sprintf("is %d entries behind", s.Lag.Entries)
		}
		a, err := n.askAbout(ctx, m.ID)
		switch {
		case err != nil:
			return "does not answer"
		case a.Stopping, letGo < spareHolds && letGo < a.Uptime:
			return "is being stopped"
		}
		return ""
	}
	return "does not answer"
}

// tell makes an event of the node's StatefulSet, if it is of one.
func (n *Node) tell(ctx context.Context, reason, message string) {
	if n.set == nil {
		return
	}
	set, err := n.set.Set(ctx, n.set.name)
	if err != nil {
		n.log.Warn("an event cannot be told to Kubernetes", "reason", reason, "error", err)
		return
	}
	n.tellOf(ctx, &set, reason, message)
}

// tellOf makes an event of a set.
func (n *Node) tellOf(ctx context.Context, set *kubernetes.Set, reason, message string) {
	if err := n.set.Tell(ctx, set, reason, message); err != nil {
		n.log.Warn("an event cannot be told to Kubernetes", "reason", reason, "error", err)
	}
}
