package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A link is given up when no sign of life was seen for its limit, and not before.
func TestSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 * time.Second
		began := time.Now()
		var died time.Duration
		s := watchSigns(limit, func() { died = time.Since(began) })
		defer s.stop()
		for range 50 {
			time.Sleep(limit / 2)
			s.seen.Store(true)
		}
		time.Sleep(10 * limit)
		synctest.Wait()
		if last := 25 * limit; died <= last+limit/2 || died > last+2*limit {
			t.Errorf("given up after %v, the last sign of life was after %v", died, last)
		}
	})
}

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
