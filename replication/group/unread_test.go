package group_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// unreadable are reads of data files that end with an error of the disk.
var unreadable = simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Err: syscall.EIO}

// heap is a table that the pools of the group do not hold as a whole.
type heap struct {
	r    *simRig
	rows int
	next int
}

// makeHeap fills shop.fruit, with room for a row behind each.
func makeHeap(r *simRig, l *simNode) *heap {
	createFruit(r.t, l.node)
	h := &heap{r: r, rows: 24_000}
	const each = 4000
	for from := 0; from < h.rows; from += each {
		do(r.t, l.node, func(s *txn.Session) error {
			o, err := s.Open("shop", "fruit")
			for id := from; id < from+each && err == nil; id++ {
				err = s.Insert(o, []types.Value{types.NewInt(int64(10 * id)), types.NewString(strings.Repeat("f", 200))}, false)
			}
			return err
		})
	}
	return h
}

// insert makes a statement with a page of its own.
func (h *heap) insert(n *simNode) (uint64, error) {
	h.next++
	return insert(n.node, 10*(h.next*7919%h.rows)+1+h.next*7919/h.rows%9)
}

// A leader whose disk gives back no page of the data hands over within seconds, and does not come back while that is so: it
// follows, or has stopped since it needed such a page. The others serve.
func TestLeadersPagesUnreadable(t *testing.T) {
	for seed := range race.Fewer(uint64(3), 1) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			h := makeHeap(r, l)
			fault := l.fs.Inject(unreadable)
			began, failed := r.sim.Monotonic(), 0
			for ; l.node.Status().Leader == l.id && r.sim.Monotonic()-began < 20*time.Second; env.Sleep(r.sim, 20*time.Millisecond) {
				if _, err := h.insert(l); err != nil {
					failed++
				}
			}
			now := r.leader(l)
			if took := r.sim.Monotonic() - began; now == nil || failed == 0 || took > 10*time.Second {
				t.Errorf("seed %d: after %v and %d failed statements: %+v", seed, took, failed, l.node.Status())
				return
			}
			if s := l.node.Status(); s.Error == "" && !s.ReadsFail {
				t.Errorf("seed %d: the old leader says nothing of its disk: %+v", seed, s)
			}
			var last uint64
			for range 200 {
				number, err := h.insert(now)
				if err != nil {
					t.Errorf("seed %d: a statement on the new leader: %v", seed, err)
					return
				}
				last = number
				env.Sleep(r.sim, 100*time.Millisecond)
			}
			if s := now.node.Status(); !s.Writable || s.ReadsFail {
				t.Errorf("seed %d: the new leader says %+v", seed, s)
			}
			fault.Stop()
			l.kill()
			l.start()
			r.alike(last)
		})
	}
}

// A leader whose pages come back with wrong checksums hands over as one whose disk gives none back.
func TestLeadersPagesRotten(t *testing.T) {
	for seed := range race.Fewer(uint64(3), 1) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			h := makeHeap(r, l)
			rotten := rot(t, l)
			failed := 0
			if !r.within(20*time.Second, func() bool {
				if _, err := h.insert(l); err != nil {
					failed++
				}
				env.Sleep(r.sim, 20*time.Millisecond)
				return l.node.Status().Leader != l.id
			}) || failed == 0 {
				t.Errorf("seed %d: after %d failed statements, of %d rotten pages: %+v", seed, failed, rotten, l.node.Status())
				return
			}
			if s := l.node.Status(); s.Error == "" && !s.ReadsFail {
				t.Errorf("seed %d: the old leader says nothing of its disk: %+v", seed, s)
			}
			now := r.leader(l)
			if now == nil {
				t.Errorf("seed %d: nobody else leads: %s", seed, describe(r))
				return
			}
			for range 50 {
				if _, err := h.insert(now); err != nil {
					t.Errorf("seed %d: a statement on the new leader: %v", seed, err)
					return
				}
			}
		})
	}
}

// rot flips a bit in each page of a member's tablespaces of tables, and returns in how many.
func rot(t *testing.T, n *simNode) (pages int) {
	t.Helper()
	e, err := n.node.Engine()
	if err != nil {
		t.Fatal(err)
	}
	for _, no := range e.Spaces.List() {
		if no == space.System || no >= space.FirstUndo {
			continue
		}
		for at := int64(page.Size); n.fs.FlipBit(fmt.Sprintf("data.1/spaces/%08x.trd", no), at+1000, 3) == nil; at += page.Size {
			pages++
		}
	}
	return pages
}

// Where two disks are bad the third member leads in the end.
func TestPagesUnreadableOnTwo(t *testing.T) {
	for seed := range race.Fewer(uint64(3), 1) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			h := makeHeap(r, r.leader(nil))
			l := r.leader(nil)
			good := r.others(l)[1]
			l.fs.Inject(unreadable)
			r.others(l)[0].fs.Inject(unreadable)
			if !r.within(30*time.Second, func() bool {
				for _, n := range r.nodes {
					if n.node.Writable() {
						_, _ = h.insert(n)
					}
				}
				env.Sleep(r.sim, 20*time.Millisecond)
				return good.node.Writable()
			}) {
				t.Errorf("seed %d: the good one does not lead: %s", seed, describe(r))
			}
		})
	}
}

// A node that is alone leads on with what it can read, and has a good disk again once nothing has failed for a while.
func TestPagesUnreadableAlone(t *testing.T) {
	simulate(t, 1, 1, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		h := makeHeap(r, l)
		term, failed, done := l.node.Status().Term, 0, 0
		fault := l.fs.Inject(unreadable)
		for i := range 100 {
			if _, err := h.insert(l); err != nil {
				failed++
			}
			if _, err := insert(l.node, 10*h.rows+i); err == nil { // whose page is in memory
				done++
			}
			env.Sleep(r.sim, 100*time.Millisecond)
		}
		if s := l.node.Status(); failed < 20 || done < 20 || s.Term != term || !s.Writable || !s.ReadsFail {
			t.Errorf("%d statements failed, %d of those that need no read succeeded: %+v", failed, done, s)
		}
		if e, err := l.node.Engine(); err != nil {
			t.Error(err)
		} else if name, offset, why := e.Spaces.LastReadError(); name == "" || offset <= 0 || !errors.Is(why, syscall.EIO) || e.Stats().Spaces.Unread < 20 {
			t.Errorf("of %d errors the last is in %s at %d: %v", e.Stats().Spaces.Unread, name, offset, why)
		}
		fault.Stop()
		if _, err := h.insert(l); err != nil {
			t.Errorf("the disk is well again: %v", err)
		}
		if !r.within(2*time.Minute, func() bool { return !l.node.Status().ReadsFail }) {
			t.Errorf("the disk is well for two minutes: %+v", l.node.Status())
		}
	})
}

// A follower whose disk gives back no pages lets another be elected, but is elected itself where the others know less.
func TestPagesUnreadableStandsBack(t *testing.T) {
	for seed := range race.Fewer(uint64(4), 1) {
		for _, better := range []bool{true, false} {
			simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
				l := r.leader(nil)
				h := makeHeap(r, l)
				bad, other := r.others(l)[0], r.others(l)[1] // which stand for election in that order
				last, err := h.insert(l)
				if err != nil {
					t.Fatal(err)
				}
				r.alike(last)
				if !better {
					other.kill()
					if last, err = h.insert(l); err != nil || !r.within(time.Minute, func() bool { return bad.node.Status().Number >= last }) {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
				fault := bad.fs.Inject(unreadable)
				e, err := bad.node.Engine()
				if err == nil {
					_, err = e.StateHash(last)
				}
				if err == nil || !r.within(time.Second, func() bool { return bad.node.Status().ReadsFail }) {
					t.Errorf("seed %d: all could be read: %v, %+v", seed, err, bad.node.Status())
				}
				fault.Stop()
				l.kill()
				if !better {
					other.start()
				}
				want := map[bool]*simNode{true: other, false: bad}[better]
				if now := r.leader(l); now != want {
					t.Errorf("seed %d: with another that is well (%v) another leads: %s", seed, better, describe(r))
				}
			})
		}
	}
}

func describe(r *simRig) (all string) {
	for _, n := range r.nodes {
		if n.node != nil {
			all += fmt.Sprintf("%+v ", n.node.Status())
		}
	}
	return all
}

// An error that does not come again moves no lead.
func TestOnePageUnreadableOnce(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		h := makeHeap(r, l)
		once := unreadable
		once.Times = 1
		l.fs.Inject(once)
		term, failed := l.node.Status().Term, 0
		for range 500 {
			if _, err := h.insert(l); err != nil {
				failed++
			}
			env.Sleep(r.sim, 20*time.Millisecond)
		}
		if s := l.node.Status(); failed != 1 || s.Term != term || !s.Writable || !s.ReadsFail {
			t.Errorf("%d statements failed: %+v", failed, s)
		}
		if _, err := l.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: time.Second}); err != nil {
			t.Error(err)
		}
	})
}
