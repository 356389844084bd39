package group

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/env"
)

// TestStation: whoever does it, everything that is put to a station is done once, by one at
// a time, and before its task ends.
func TestStation(t *testing.T) {
	const givers, each = 8, 2000
	s := newStation[int](env.Real())
	done := make([]atomic.Int32, givers*each)
	var total, atWork atomic.Int32
	work := func(items []int) {
		if atWork.Add(1) != 1 {
			t.Error("two are at work")
		}
		for _, i := range items {
			done[i].Add(1)
			total.Add(1)
		}
		atWork.Add(-1)
	}
	var batch []int // of whoever is at work
	ended := make(chan struct{})
	go func() {
		for s.take(&batch) {
			work(batch)
		}
		close(ended)
	}()
	var wg sync.WaitGroup
	for g := range givers {
		wg.Go(func() {
			for i := range each {
				item := g*each + i
				if i%3 == 0 {
					s.add(item)
					continue
				}
				s.put(item)
				if s.turn(&batch) {
					n := len(batch)
					if i%2 == 0 {
						n /= 2 // the rest is the task's
					}
					work(batch[:n])
					s.leave(&batch, n)
				}
				s.kick()
			}
		})
	}
	wg.Wait()
	for total.Load() < givers*each {
		runtime.Gosched() // nobody is to be kicked for what is left
	}
	s.close()
	<-ended
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Fatalf("item %d was done %d times", i, n)
		}
	}
	if s.put(0); s.turn(&batch) {
		t.Error("a turn at a closed station")
	}
}
