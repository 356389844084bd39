package node

import (
	"fmt"
	"testing"
	"time"
)

// TestSpoken: what a node waits for is said at once, and anew when it is something else, but not each second since it has a number that runs.
func TestSpoken(t *testing.T) {
	var s spoken
	began, said := time.Unix(1000, 0), 0
	for i := range 60 {
		if s.anew(fmt.Sprintf("member 2 is %d entries behind", i), began.Add(time.Duration(i)*spareEvery)) {
			said++
		}
	}
	if said != 2 {
		t.Errorf("in a minute it was said %d times", said)
	}
	if now := began.Add(time.Hour); !s.anew("member 3 does not answer", now) || s.anew("member 3 does not answer", now.Add(time.Hour)) {
		t.Error("another reason is not said, or the same is twice")
	}
}
