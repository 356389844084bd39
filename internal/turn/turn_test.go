package turn

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestPass has one processor: a task on it that never waits lets one run whose input is
// there already.
func TestPass(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	// What is written into a pipe is there at once. A connection's input comes by a task of the kernel's,
	// which a busy machine keeps waiting.
	server, client, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer client.Close()

	const rounds = 200
	var answered atomic.Int64
	go func() {
		buf := make([]byte, 1)
		for range rounds {
			if _, err := server.Read(buf); err != nil {
				t.Error(err)
			}
			answered.Add(1)
		}
	}()
	late := 0
	for i := range int64(rounds) {
		if _, err := client.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		passes := 0
		for ; answered.Load() <= i; passes++ {
			pass()
		}
		if passes > 4 {
			late++
		}
	}
	// Another task may have something to do, and the system may take the reader's thread off its processor.
	if late > rounds/4 {
		t.Errorf("in %d of %d rounds the reader had to wait for more than 4 passes", late, rounds)
	}
}

// TestPassesAtOnce has more tasks pass than have gates.
func TestPassesAtOnce(t *testing.T) {
	const tasks, each = 50, 200
	done := make(chan struct{})
	for range tasks {
		go func() {
			for range each {
				pass()
			}
			done <- struct{}{}
		}()
	}
	for range tasks {
		<-done
	}
}

// TestShare has one processor: a task that takes turns comes off with its work also beside
// one that takes none.
func TestShare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var over atomic.Bool
	work := func(pass func()) (did int) {
		for sum := 0; !over.Load(); did++ {
			for range 20000 {
				sum += did
			}
			runtime.KeepAlive(sum)
			pass()
		}
		return did
	}
	hog := make(chan int)
	go func() { hog <- work(func() {}) }()
	time.AfterFunc(500*time.Millisecond, func() { over.Store(true) })
	var turn Turn
	did, beside := work(turn.Pass), <-hog
	if did*50 < beside {
		t.Errorf("it worked %d times, and the other %d times", did, beside)
	}
}
