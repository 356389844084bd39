package buffer_test

import (
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/page"
)

// TestLatchHandsOverToAllReaders: readers who queue behind a writer all get the latch
// when it lets go, however many they are. Were some left in the queue, everyone who
// comes would have to queue, and whoever only tries would never succeed.
func TestLatchHandsOverToAllReaders(t *testing.T) {
	f := open(t, env.Real(), nil)
	defer f.close(t)
	id := page.ID{Space: 1, No: 1}
	writer, err := f.pool.Fix(id, buffer.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	const readers = 40
	in, out := make(chan struct{}, readers), make(chan struct{})
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			h, err := f.pool.Fix(id, buffer.Shared)
			if err != nil {
				t.Error(err)
			}
			in <- struct{}{}
			<-out // all hold it together
			f.pool.Unfix(h, buffer.Shared)
		})
	}
	for f.pool.Stats().LatchWaits < readers {
		time.Sleep(time.Millisecond)
	}
	f.pool.Unfix(writer, buffer.Exclusive)
	for range readers {
		<-in
	}
	close(out)
	wg.Wait()
}

// TestTryFixPassesTheQueue: where others may wait for what a task holds, it only tries.
// A reader does so past a writer that waits, or two such tasks and a queue that never
// empties could keep each other from going on.
func TestTryFixPassesTheQueue(t *testing.T) {
	f := open(t, env.Real(), nil)
	defer f.close(t)
	id := page.ID{Space: 1, No: 1}
	first, err := f.pool.Fix(id, buffer.Shared)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		h, err := f.pool.Fix(id, buffer.Exclusive)
		if err != nil {
			t.Error(err)
		}
		f.pool.Unfix(h, buffer.Exclusive)
	})
	for f.pool.Stats().LatchWaits < 1 {
		time.Sleep(time.Millisecond)
	}
	second, ok, err := f.pool.TryFix(id, buffer.Shared)
	if err != nil || !ok {
		t.Fatalf("refused: %v", err)
	}
	if _, ok, err := f.pool.TryFix(id, buffer.Exclusive); err != nil || ok {
		t.Fatalf("X beside S: %v", err)
	}
	f.pool.Unfix(first, buffer.Shared)
	f.pool.Unfix(second, buffer.Shared)
	wg.Wait()
	h, ok, err := f.pool.TryFix(id, buffer.Exclusive)
	if err != nil || !ok {
		t.Fatalf("the latch is not free in the end: %v", err)
	}
	f.pool.Unfix(h, buffer.Exclusive)
}
