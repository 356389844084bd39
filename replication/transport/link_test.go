package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A watch that fires while it is being stopped either ends the connection, with its reason,
// or does not: there is always a word why a connection ended.
func TestStopWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("late")
		for range 1000 {
			ctx, cancel := context.WithCancelCause(context.Background())
			watch := time.AfterFunc(time.Second, func() { cancel(late) })
			time.Sleep(time.Second)
			err := stopWatch(ctx, watch)
			synctest.Wait()
			if ended := ctx.Err() != nil; ended != (err != nil) || ended && err != late {
				t.Fatalf("stopping says %v, the reason is %v", err, context.Cause(ctx))
			}
			cancel(nil)
		}
	})
}

// TestPauses: a node whose peer is gone looks for it often at first; one that is refused, as two nodes with
// each other's directories are, does not knock for ever as often as that.
func TestPauses(t *testing.T) {
	opts := Options{AllowPlaintext: true, Listen: "x", LogFormat: Versions{1, 1}}
	if err := opts.fill(); err != nil {
		t.Fatal(err)
	}
	attempts := func(err error, from, to time.Duration) (count int) {
		pause := time.Duration(0)
		for at := time.Duration(0); at < to; at += pause {
			if at >= from {
				count++
			}
			pause = nextPause(pause, at, lasting(err), &opts)
		}
		return count
	}
	for _, test := range []struct {
		err           error
		first, minute int // attempts in the first five seconds, and in a later minute
	}{
		{errRefused, 102, 121},
		{&Rejection{Reason: ReasonNoGroup}, 102, 121},
		{fmt.Errorf("dialing: %w", &Rejection{Reason: ReasonOtherMember}), 9, 12},
		{&Rejection{Reason: ReasonDuplicateMember}, 9, 12},
	} {
		first, minute := attempts(test.err, 0, 5*time.Second), attempts(test.err, time.Minute, 2*time.Minute)
		if first > test.first || minute > test.minute {
			t.Errorf("%v: %d attempts in five seconds and %d in a minute, at most %d and %d are wanted", test.err, first, minute, test.first, test.minute)
		}
	}
}

// A connection is closed with the calls over it, though gRPC has not asked for it yet: the context of the first call was over.
func TestClosesUnusedConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	cc, err := (&Peers{}).overConn(&clientConn{Conn: ours, who: "node", plain: true}, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	cc.Close()
	_ = theirs.SetReadDeadline(time.Now().Add(patience))
	if _, err := theirs.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("it is not closed: %v", err)
	}
}
