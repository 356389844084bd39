package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

const (
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

// spareRefusal numbers the failures of askSpare. Programs that do not know the question do not number theirs.
const spareRefusal = 1

// answerSpare answers askSpare.
func (n *Node) answerSpare(ctx context.Context, payload []byte) ([]byte, error) {
	caller := transport.CallerFrom(ctx)
	if !n.isReady() {
		return nil, &transport.Failure{Code: spareRefusal, Text: "this member is starting"}
	}
	if !n.fromMember(ctx) {
		return nil, &transport.Failure{Code: spareRefusal, Text: "only members ask for that"}
	}
	var req spareRequest
	if err := json.Unmarshal(payload, &req); err != nil {
		return nil, &transport.Failure{Code: spareRefusal, Text: err.Error()}
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
		return cramped(diskSpace(n.dir))
	}
	for i := range states {
		s := &states[i]
		if s.ID != m.ID {
			continue
		}
		if why := lacks(s); why != "" {
			return why
		}
		a, err := n.askAbout(ctx, m.ID)
		switch {
		case err != nil:
			return "does not answer"
		case a.Stopping, letGo < spareHolds && letGo < a.Uptime:
			return "is being stopped"
		}
		return cramped(a.DiskTotal, a.DiskFree)
	}
	return "does not answer"
}

// cramped says that the disk of a voter that others rely on has no room to speak of; empty: it has, or nobody knows. One without
// writes the log for as long as it has files for that, and then ends the writes of a group that it is alone in.
func cramped(total, free uint64) string {
	if !group.NoRoom(total, free) {
		return ""
	}
	return fmt.Sprintf("has %d KiB free on its disk", free>>10)
}

// lacks says what a voter that says so of itself lacks to do without others; empty: nothing. One whose disk is full may
// still write the log, but can neither lead nor do so for long. Older programs say so only once they find no space.
func lacks(s *group.Status) string {
	switch {
	case s.Provisioning:
		return "is being given its data"
	case s.Error != "":
		return "does not answer"
	case s.Trouble() != "":
		return s.Trouble()
	case s.Lag.Time < 0 || s.Lag.Time > spareLag:
		return fmt.Sprintf("is %d entries behind", s.Lag.Entries)
	}
	return ""
}
