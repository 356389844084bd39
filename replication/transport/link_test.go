package transport

import (
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
