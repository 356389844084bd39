package adminapi

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/page"
)

// TestSendingTime: a rate that is so small that the time does not fit is no missing one.
func TestSendingTime(t *testing.T) {
	for _, c := range []struct {
		n, rate uint64
		want    time.Duration
	}{
		{0, 1, 0}, {1 << 20, 1 << 20, time.Second}, {3 << 19, 1 << 20, 1500 * time.Millisecond}, {1, 1 << 63, 0},
		{1e9, 1, 1e9 * time.Second}, {1e10, 1, math.MaxInt64}, {math.MaxUint64, 1, math.MaxInt64}, {math.MaxUint64, math.MaxUint64, time.Second},
	} {
		if got := sendingTime(c.n, c.rate); got != c.want {
			t.Errorf("%d bytes at %d a second: %v, want %v", c.n, c.rate, got, c.want)
		}
	}
}

// TestRateIsKept: whatever a backup has waited for, it is not made up for by sending faster than it may.
func TestRateIsKept(t *testing.T) {
	const piece = 1 << 18
	now := time.Unix(1e9, 0)
	b := &sentBackup{rate: 1 << 20, began: now}
	for _, waited := range []time.Duration{0, 20 * time.Second, time.Hour, 300 * time.Millisecond} {
		now = now.Add(waited)
		from, began := b.sent, now
		for now.Sub(began) < 10*time.Second {
			b.sent += piece
			now = now.Add(max(b.pause(now), 0))
		}
		if got := b.sent - from; got < 10<<20 || got > 12<<20 {
			t.Errorf("after %v: %d bytes in 10 s at %d a second", waited, got, b.rate)
		}
	}
}

// TestBackupOfDamagedMember: a client that knows other members asks the next one.
func TestBackupOfDamagedMember(t *testing.T) {
	for _, damage := range []error{
		fmt.Errorf("table a.b: %w", &page.CorruptError{Problem: "checksum"}),
		&log.CorruptError{},
	} {
		var e *Error
		if err := backupError(damage); !errors.As(err, &e) || e.Code != codes.Unavailable || !strings.Contains(e.Advice, "ask another member") {
			t.Errorf("%v: %v", damage, err)
		}
	}
}
