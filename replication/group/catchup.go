package group

import (
	"errors"
	"math"
	"time"
)

// CatchUp waits until this member has caught up with its leader; the leader has. It waits for a
// leader where there is none, until ended says that it is to end, which is asked now and then.
// Errors: ErrReadEnded, and as of Engine if the node gets its data meanwhile or has stopped.
//
// A round asks the leader what the group has agreed on, and waits until that is applied here. It is
// over when a round takes a second or less. Under a load with which the member just about keeps
// up, rounds come to be no shorter: that is over, too, since it would never end, and how far a
// member may be behind is for others to say. So the rounds that shrink take five times as long
// together as the first, at most.
func (n *Node) CatchUp(ended func() bool) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	w := waiting{deadline: math.MaxInt64, ended: ended}
	for r := (rounds{}); ; {
		index, err := c.askLeader(w)
		if errors.Is(err, ErrNoQuorum) {
			continue
		}
		if err != nil {
			return err
		}
		began := c.env.Monotonic()
		if err := c.waitApplied(index, 0, w); err != nil {
			return err
		}
		if r.over(c.env.Monotonic() - began) {
			return nil
		}
	}
}

// rounds says when a member that catches up has done so.
type rounds struct {
	shortest time.Duration // 0: there was none yet
	alike    int           // rounds since that were not much shorter
}

const (
	// roundShort is how long the last round takes.
	roundShort = time.Second
	// roundsAlike is how many rounds in a row do not have to be shorter.
	roundsAlike = 3
)

// over notes how long a round took.
func (r *rounds) over(took time.Duration) bool {
	switch {
	case took <= roundShort:
		return true
	case r.shortest == 0 || took < r.shortest*4/5:
		r.shortest, r.alike = took, 0
	default:
		r.alike++
	}
	return r.alike >= roundsAlike
}
