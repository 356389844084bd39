package turn

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestPass has one processor: a task on it that never waits lets one run whose input is
// there already.
func TestPass(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

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
	passes := 0
	for i := range int64(rounds) {
		if _, err := client.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		for ; answered.Load() <= i; passes++ {
			pass()
		}
	}
	// The kernel may take its time, or another task have something to do.
	if passes > 4*rounds {
		t.Errorf("%d passes until others had read %d times", passes, rounds)
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
