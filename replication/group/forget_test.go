package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// wrongClock is an environment whose wall clock is ahead.
type wrongClock struct {
	env.Env
	ahead *time.Duration
}

func (w wrongClock) Now() time.Time { return w.Env.Now().Add(*w.ahead) }

// tokenAt is a token that is made at a time.
func tokenAt(at time.Time, id int) (t entry.Token) {
	binary.BigEndian.PutUint64(t[:], uint64(at.UnixMilli())<<16)
	binary.BigEndian.PutUint64(t[8:], uint64(id))
	return t
}

// writeWith inserts a row in a transaction with a token.
func writeWith(n *group.Node, token entry.Token, id int) error {
	s, err := n.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{Token: token, HasToken: true, Options: trx.Options{}}); err != nil {
		return err
	}
	o, err := s.Open("shop", "fruit")
	if err == nil {
		err = s.Insert(o, []types.Value{types.NewInt(int64(id)), types.NewString(fmt.Sprint("fruit ", id))}, false)
	}
	if err == nil {
		_, err = s.Commit(context.Background())
	}
	return err
}

// tokenRig is a group in which transactions are committed with tokens. The clocks of all are ahead at will.
type tokenRig struct {
	*simRig
	ahead *time.Duration
	rows  int
}

func withTokens(t *testing.T, test func(r *tokenRig)) {
	ahead := new(time.Duration)
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.Env = wrongClock{o.Env, ahead} }, func(r *simRig) {
		createFruit(t, r.leader(nil).node)
		test(&tokenRig{simRig: r, ahead: ahead})
	})
}

// commit makes a token by the right clock, and commits a transaction with it.
func (r *tokenRig) commit() entry.Token {
	r.t.Helper()
	r.rows++
	token := tokenAt(r.sim.Now(), r.rows)
	if err := writeWith(r.leader(nil).node, token, r.rows); err != nil {
		r.t.Errorf("a commit with a new token: %v", err)
	}
	return token
}

// life sets how long tokens are good for.
func (r *tokenRig) life(seconds int64) {
	r.t.Helper()
	if err := r.leader(nil).node.Set("commit_token_life_seconds", seconds); err != nil {
		r.t.Error(err)
	}
}

// forgotten demands that a token was forgotten, and is refused.
func (r *tokenRig) forgotten(when string, token entry.Token) {
	r.t.Helper()
	l := r.leader(nil)
	before := l.node.Status().Number
	if err := writeWith(l.node, token, 1_000_000+r.rows); !errors.Is(err, commit.ErrTokenExpired) || l.node.Status().Number != before {
		r.t.Errorf("%s: a transaction with a forgotten token was answered with %v", when, err)
	}
	if _, found, err := l.node.Used(token); found || !errors.Is(err, commit.ErrTokenExpired) {
		r.t.Errorf("%s: its outcome was told as %v, %v", when, found, err)
	}
}

// kept demands that a token is remembered.
func (r *tokenRig) kept(when string, token entry.Token) {
	r.t.Helper()
	var used *commit.TokenUsedError
	if err := writeWith(r.leader(nil).node, token, 2_000_000+r.rows); !errors.As(err, &used) {
		r.t.Errorf("%s: a transaction with a used token was answered with %v", when, err)
	}
}

// equal demands that all members have the same.
func (r *tokenRig) equal() {
	r.t.Helper()
	l := r.leader(nil)
	number, index := l.node.Status().Number, l.node.Status().Committed
	var want [32]byte
	for _, n := range r.nodes {
		if !r.within(20*time.Second, func() bool { return n.node.Status().Applied >= index }) {
			r.t.Errorf("node %d: %+v", n.id, n.node.Status())
			continue
		}
		e, err := n.node.Engine()
		if err != nil {
			r.t.Error(err)
			continue
		}
		h, err := e.StateHash(number)
		if want == [32]byte{} {
			want = h
		}
		if err != nil || h != want {
			r.t.Errorf("node %d has another state: %v", n.id, err)
		}
	}
}

// A token that was forgotten while tokens had a shorter life is refused when they have a longer one again, by
// whoever leads, however it got its data; and none that was not forgotten.
func TestShortLifeForgets(t *testing.T) {
	withTokens(t, func(r *tokenRig) {
		old := r.commit()
		r.life(60)
		env.Sleep(r.sim, 6*time.Minute)
		young := r.commit()
		r.life(3600)
		r.forgotten("with a long life again", old)
		r.kept("with a long life again", young)
		never := tokenAt(r.sim.Now().Add(-time.Minute), 77)
		if err := writeWith(r.leader(nil).node, never, 77_000); err != nil {
			t.Errorf("a token that is younger than the forgotten ones, and was not used: %v", err)
		}
		r.equal()
		for _, n := range r.nodes {
			n.kill()
		}
		for _, n := range r.nodes {
			n.start()
		}
		r.forgotten("after a restart", old)

		l := r.leader(nil)
		n := r.others(l)[0]
		r.net.CutBoth(n.addr, l.addr) // so that what it is given is ahead of what it has
		r.commit()
		given := n.node.Engine
		was, _ := given()
		n.node.WantData()
		if !r.within(time.Minute, func() bool { now, err := given(); return err == nil && now != was && n.over() }) {
			t.Errorf("it is not given data: %+v", n.node.Status())
		}
		r.net.HealAll()
		env.Sleep(r.sim, 5*time.Second)
		if l = r.leader(nil); l != n {
			if err := l.node.Transfer(n.id); err != nil {
				t.Error(err)
			}
		}
		if r.leader(l) != n {
			t.Error("the member that was given data does not lead")
		}
		r.forgotten("at a member that was given its data", old)
		r.kept("at a member that was given its data", young)
		r.equal()
	})
}

// A clock that is ahead for a moment has nothing forgotten. One that is for long has, and then tokens are
// refused that were made before; those that are made later are good at once.
func TestClockAheadForgets(t *testing.T) {
	withTokens(t, func(r *tokenRig) {
		env.Sleep(r.sim, 2*time.Minute)
		token := r.commit()
		for range 20 { // whatever the beat
			*r.ahead = 2 * time.Hour
			env.Sleep(r.sim, 13*time.Second)
			*r.ahead = 0
			env.Sleep(r.sim, 10*time.Second)
		}
		r.kept("after moments of a clock that is ahead", token)
		*r.ahead = 2 * time.Hour
		env.Sleep(r.sim, 5*time.Minute)
		*r.ahead = 0
		env.Sleep(r.sim, time.Second)
		r.forgotten("after a clock was ahead for long", token)
		r.kept("after a clock was ahead for long", r.commit())
		r.equal()
	})
}

// Without tokens that could be forgotten an idle group's log stays as it is.
func TestNothingToForget(t *testing.T) {
	withTokens(t, func(r *tokenRig) {
		token := r.commit()
		env.Sleep(r.sim, time.Minute)
		before := r.leader(nil).node.Status().Committed
		env.Sleep(r.sim, 10*time.Minute)
		if after := r.leader(nil).node.Status().Committed; after != before {
			t.Errorf("%d entries were added", after-before)
		}
		r.kept("in an idle group", token)
	})
}

// A token whose transaction was in the log for longer than the life of tokens, since a majority did not store it, and came into the
// engine when older tokens were about to be forgotten, is refused after that.
func TestForgetsWhatCameLate(t *testing.T) {
	withTokens(t, func(r *tokenRig) {
		r.commit()
		r.life(60)
		env.Sleep(r.sim, 10*time.Second)
		l := r.leader(nil)
		for _, n := range r.others(l) {
			n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Delay: 6 * time.Minute})
		}
		late, done := tokenAt(r.sim.Now(), 77), false
		r.sim.Go("late", func() {
			if err := writeWith(l.node, late, 77_000); err != nil {
				t.Errorf("the first use of a token: %v", err)
			}
			done = true
		})
		env.Sleep(r.sim, 5*time.Minute)
		if done || r.leader(nil) != l {
			t.Error("the transaction is committed without a majority")
		}
		if !r.within(10*time.Minute, func() bool { return done }) {
			t.Errorf("it is not committed: %+v", l.node.Status())
		}
		env.Sleep(r.sim, 5*time.Second)
		r.life(3600)
		r.forgotten("after it came late", late)
		r.equal()
	})
}
