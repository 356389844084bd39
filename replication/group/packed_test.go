package group_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// insertMany inserts rows that make more than two pieces of events in one transaction.
func insertMany(t *testing.T, s *txn.Session, first int, text func() string) {
	t.Helper()
	o, err := s.Open("shop", "fruit")
	for i := 0; i < 9000 && err == nil; i++ {
		name := fmt.Sprint("fruit ", first+i, text())
		err = s.Insert(o, []types.Value{types.NewInt(int64(first + i)), types.NewString(name)}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func repetitive() string { return strings.Repeat(" and another one", 11) }

// random does not get shorter by compression.
func random() string {
	b := make([]byte, 180)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return string(b)
}

// Large transactions are compressed by their sessions, one at a time, beside small ones, and
// are what they were on all members; one whose session does not wait is in nobody's way.
func TestPacked(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	l := r.nodes[r.leader()]
	createFruit(t, l)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := l.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		t.Fatal(err)
	}
	insertMany(t, s, 1_000_000, repetitive)
	if _, err := s.Commit(ended); !errors.Is(err, context.Canceled) || errors.Is(err, txn.ErrOutcomeUnknown) {
		t.Errorf("a commit whose session does not wait: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	var work sync.WaitGroup
	for c := range 3 {
		work.Go(func() {
			do(t, l, func(s *txn.Session) error {
				insertMany(t, s, 10_000*(c+1), repetitive)
				return nil
			})
		})
	}
	for i := range 50 {
		insertFruit(t, l, i)
	}
	work.Wait()
	r.equal(insertFruit(t, l, 51))
	stats, err := l.Stats()
	if c := stats.Commit; err != nil || c.Packed != 3 || c.StoredBytes > c.RawBytes/4 {
		t.Errorf("%+v %v", c, err)
	}

	// What does not get shorter is not compressed a second time by who proposes.
	r.equal(do(t, l, func(s *txn.Session) error {
		insertMany(t, s, 50_000, random)
		return nil
	}))
	if stats, err = l.Stats(); err != nil || stats.Commit.Packed != 4 {
		t.Errorf("%+v %v", stats.Commit, err)
	}
}

// An entry that is longer than all messages that may wait for a member's Raft comes to it all the same.
func TestLongestEntry(t *testing.T) {
	options := func(o *group.Options) { o.InboxMax, o.LargeThreshold = 1<<20, 64<<20 }
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		s, err := l.node.NewSession()
		if err != nil {
			t.Error(err)
			return
		}
		if err := errors.Join(s.Begin(txn.BeginOptions{}), l.node.Set("binlog_transaction_compression", 0)); err != nil {
			t.Error(err)
		}
		insertMany(t, s, 0, repetitive)
		var number uint64
		done := false
		r.sim.Go("commit", func() { number, err = s.Commit(context.Background()); done = true })
		if !r.within(time.Minute, func() bool { return done }) || err != nil {
			t.Errorf("the commit has ended: %v, %v", done, err)
		}
		for _, n := range r.others(l) {
			if !r.within(time.Minute, func() bool { return n.node.Status().Number >= number && done }) {
				t.Errorf("member %d does not get the entry: %+v", n.id, n.node.Status())
			}
		}
		if done {
			_ = s.Close()
		}
	})
}
