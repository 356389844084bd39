package node_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/triremedb/trireme/server/node"
)

// sparedWithin reports whether a node would be let go in that time.
func (m *member) sparedWithin(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(m.t.Context(), d)
	defer cancel()
	m.AwaitSpared(ctx)
	return ctx.Err() == nil
}

// TestSpared: of three voters one may stop, and the next one when that is back.
func TestSpared(t *testing.T) {
	members := group(t, 3, "--stop-wait=1h")
	leader, other := leaderOf(t, members)
	for _, m := range members {
		eventually(t, "it is ready", m.readyz)
	}
	if !other.sparedWithin(patience) {
		t.Fatal("three voters cannot spare one")
	}
	let := time.Now()
	other.stop()
	if leader.sparedWithin(time.Second) {
		t.Error("of two voters that are there one may go")
	}
	i := slices.Index(members, other)
	again, err := start(t, other.args)
	if err != nil {
		t.Fatal(err)
	}
	members[i] = again
	eventually(t, "it is ready", again.readyz)
	// It was let go a moment ago, by the same leader, and is another process.
	const holds, margin = 10 * time.Second, 4 * time.Second
	soon := time.Since(let) < holds-margin // and else it is forgotten by now
	if third := members[3-i-slices.Index(members, leader)]; !third.sparedWithin(patience) || soon && time.Since(let) >= holds {
		t.Errorf("a member that was started again still counts as being stopped, %v after it was let go", time.Since(let))
	}
}

// TestSparedWhileOneJoins: a member that lost its data is not ready before it votes, and until then the two
// voters that are left are needed.
func TestSparedWhileOneJoins(t *testing.T) {
	members := group(t, 3, "--stop-wait=1h", "--shutdown-timeout=1s")
	leader, other := leaderOf(t, members)
	third := members[3-slices.Index(members, leader)-slices.Index(members, other)]
	dir := third.args[0][len("--datadir="):]
	third.stop()
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	m, err := start(t, third.args)
	if err != nil {
		t.Fatal(err)
	}
	votes := func() bool {
		r := m.report(t)
		return slices.ContainsFunc(r.Members, func(o node.MemberReport) bool { return o.ID == r.Member && !o.Learner })
	}
	let := make(chan bool)
	go func() { // whoever asks all the time is let go when that one votes
		for d := 50 * time.Millisecond; !other.sparedWithin(d) && t.Context().Err() == nil; d += d / 8 {
		}
		let <- votes()
	}()
	early := 0
	eventually(t, "it is ready", func() error {
		err := m.readyz()
		if err == nil && !votes() {
			early++
		}
		return err
	})
	if early > 0 {
		t.Error("it was ready before it voted")
	}
	if !<-let {
		t.Error("one of two voters was let go before the third voted")
	}
}
