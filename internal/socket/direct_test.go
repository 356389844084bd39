package socket

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/internal/race"
)

// connected returns both ends of a connection of TCP, as Direct leaves them.
func connected(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return Direct(a), Direct(b)
}

// TestDirectBytes sends pieces of all sizes both ways at once, to readers that are slower than the
// writers, so that both ends wait, and looks at every byte.
func TestDirectBytes(t *testing.T) {
	a, b := connected(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for i, way := range []struct{ from, to net.Conn }{{a, b}, {b, a}} {
		sent := make([]byte, race.Fewer(16<<20, 4<<20))
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for j := range sent {
			sent[j] = byte(rng.Uint32())
		}
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for rest := sent; len(rest) > 0; {
				n, err := way.from.Write(rest[:min(len(rest), 1+rng.IntN(1<<rng.IntN(21)))])
				if err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
			if n, err := way.from.Write(nil); n != 0 || err != nil {
				t.Errorf("nothing was written: %d %v", n, err)
			}
			_ = way.from.(interface{ CloseWrite() error }).CloseWrite()
		})
		all.Go(func() {
			var got bytes.Buffer
			buf := make([]byte, 10_000)
			for {
				n, err := way.to.Read(buf)
				got.Write(buf[:n])
				if err == io.EOF && n == 0 {
					break
				}
				if err != nil || n == 0 {
					t.Errorf("%d bytes, %v", n, err)
					return
				}
			}
			if !bytes.Equal(got.Bytes(), sent) {
				t.Errorf("%d bytes came of %d, or others", got.Len(), len(sent))
			}
		})
	}
	all.Wait()
}

// TestDirectWriters lets writers share a connection: what one call wrote stays together.
func TestDirectWriters(t *testing.T) {
	a, b := connected(t)
	const writers, times, size = 4, 500, 1000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			piece := bytes.Repeat([]byte{byte(w)}, size)
			for range times {
				if _, err := a.Write(piece); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	piece := make([]byte, size)
	for range writers * times {
		if _, err := io.ReadFull(b, piece); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(piece, bytes.Repeat(piece[:1], size)) {
			t.Fatal("pieces were mixed")
		}
	}
	all.Wait()
}

// TestDirectEnds lets calls that wait end: by a deadline, by Close, by the other end.
func TestDirectEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(a, b net.Conn) error
		read func(error) bool
		full func(error) bool // of a write that waits
	}{
		{"deadline", func(a, _ net.Conn) error { return a.SetDeadline(time.Now().Add(10 * time.Millisecond)) }, timeout, timeout},
		{"close", func(a, _ net.Conn) error { return a.Close() }, closed, closed},
		{"reset", func(_, b net.Conn) error {
			_ = b.(interface{ SetLinger(int) error }).SetLinger(0)
			return b.Close()
		}, reset, reset},
		{"end", func(_, b net.Conn) error { return b.Close() }, func(err error) bool { return err == io.EOF },
			func(err error) bool { return reset(err) || errors.Is(err, syscall.EPIPE) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, write := range []bool{false, true} {
				a, b := connected(t)
				ended := make(chan error)
				go func() {
					p := make([]byte, directSize)
					for {
						var err error
						if write {
							_, err = a.Write(p)
						} else {
							_, err = a.Read(p)
						}
						if err != nil {
							ended <- err
							return
						}
					}
				}()
				select {
				case err := <-ended:
					t.Fatalf("write %t: it did not wait: %v", write, err)
				case <-time.After(50 * time.Millisecond):
				}
				if err := test.end(a, b); err != nil {
					t.Fatal(err)
				}
				err, right := <-ended, test.read
				if write {
					right = test.full
				}
				if !right(err) {
					t.Errorf("write %t: %v", write, err)
				}
			}
		})
	}
}

// directSize is of writes that are made directly.
const directSize = 4 << 10

func timeout(err error) bool {
	var e net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &e) && e.Timeout()
}

func closed(err error) bool { return errors.Is(err, net.ErrClosed) }

func reset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// TestDirectAllocations: a message that is sent and read takes no memory.
func TestDirectAllocations(t *testing.T) {
	a, b := connected(t)
	p, q := make([]byte, 40), make([]byte, 40)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := a.Write(p); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(b, q); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
