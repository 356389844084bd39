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

// TestTimers has one task that takes turns, and another one that sleeps: what is due is not forgotten, as it was for up to seconds if no other
// thread happened to wait for the network.
func TestTimers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for range 20 {
		var passes atomic.Int64
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for own := (Turn{}); ; {
				select {
				case <-stop:
					return
				default:
				}
				spin(Length / 20)
				before := own.began
				if own.Pass(); own.began != before {
					passes.Add(1)
				}
			}
		}()
		time.Sleep(50 * time.Millisecond)
		for range 50 {
			before := passes.Load()
			time.Sleep(time.Millisecond)
			if n := passes.Load() - before; n > 3000 {
				t.Errorf("a task that slept for 1 ms woke after %d turns of another", n)
			}
		}
		close(stop)
		<-done
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
