package temptable

import (
	"errors"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sqlerr"
)

func wantFull(t *testing.T, err error, text string) {
	t.Helper()
	var e *sqlerr.Error
	if !errors.As(err, &e) || e.Number != sqlerr.RecordFileFull || !strings.Contains(e.Message, text) {
		t.Errorf("%v, want 1114 of %q", err, text)
	}
}

// TestDiskLimits: each limit is met by itself, and what was refused is not counted.
func TestDiskLimits(t *testing.T) {
	d := &Disk{}
	o := &DiskOwner{}
	a, b := &DiskShare{Disk: d, Owner: o}, &DiskShare{Disk: d, Owner: o}
	a.Limit = 3 << 20
	if err := a.take(3 << 20); err != nil {
		t.Fatal(err)
	}
	wantFull(t, a.take(1), "of this session may take 3145728 bytes (max_tmp_session_space_usage)")
	d.SetOwnerLimit(5 << 20)
	if err := b.take(2 << 20); err != nil {
		t.Fatal(err)
	}
	wantFull(t, b.take(1), "of this account may take 5242880 bytes (trireme_tmp_account_space_usage)")
	c := &DiskShare{Disk: d}
	d.SetLimit(6 << 20)
	if err := c.take(1); err != nil {
		t.Fatal(err)
	}
	if err := c.take(1<<20 - 1); err != nil {
		t.Fatal(err)
	}
	wantFull(t, c.take(1), "of this node may take 6291456 bytes (max_tmp_total_space_usage)")
	if d.Used() != 6<<20 || d.Refused() != 3 {
		t.Error(d.Used(), d.Refused())
	}
	a.give(3 << 20)
	b.give(2 << 20)
	c.give(1 << 20)
	if d.Used() != 0 || o.used.Load() != 0 || a.taken+b.taken+c.taken != 0 {
		t.Error(d.Used(), o.used.Load(), a.taken, b.taken, c.taken)
	}
}

// TestDiskFairness: temporary files leave the end of the disk to commits, and one account's leave as much as they take.
func TestDiskFairness(t *testing.T) {
	const size = 100 << 30
	held := int64(0) // by all else
	d := &Disk{}
	d.Space = func() (total, free uint64) { return size, uint64(size - held - d.Used()) }
	greedy := func(s *DiskShare) int64 {
		for s.take(64<<20) == nil {
		}
		return s.used
	}
	one, two := &DiskShare{Disk: d}, &DiskShare{Disk: d}
	if got := greedy(one) >> 30; got != 49 {
		t.Errorf("one alone has %d GiB", got)
	}
	if got := greedy(two) >> 30; got != 24 {
		t.Errorf("the second one has %d GiB", got)
	}
	one.give(one.used)
	two.give(two.used)
	held = size - reserveMost - 8<<20 // less is left than what anybody may have
	if err := one.take(4 << 20); err != nil {
		t.Error(err)
	}
	if err := two.take(4 << 20); err == nil {
		wantFull(t, two.take(8<<20), "free on this node's disk")
	}
	one.give(one.used)
	two.give(two.used)
	held = size - reserveMost
	wantFull(t, one.take(1), "free on this node's disk")
	if d.Used() != 0 {
		t.Error(d.Used())
	}
	d.Space = func() (total, free uint64) { return 0, 0 }
	if err := one.take(1); err != nil {
		t.Errorf("a disk that cannot be asked: %v", err)
	}
}
