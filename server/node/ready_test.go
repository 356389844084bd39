package node

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/config"
)

// A node whose engine recovers says how far it is, and is not ready.
func TestRecovering(t *testing.T) {
	cfg, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	var s group.RecoveryStatus
	n := &Node{cfg: cfg, ready: make(chan struct{}), recovery: func() group.RecoveryStatus { return s }}
	for _, c := range []struct {
		status group.RecoveryStatus
		text   string
	}{
		{group.RecoveryStatus{}, "starting"},
		{group.RecoveryStatus{Stage: "redo", Redo: 300 << 20, RedoApplied: 120 << 20}, "recovering: redo 120 of 300 MiB"},
		{group.RecoveryStatus{Stage: "redo", Redo: 90 << 10, RedoApplied: 7 << 10}, "recovering: redo 7 of 90 KiB"},
		{group.RecoveryStatus{Stage: "pages", PagesWritten: 30, PagesKept: 70}, "recovering: redo applied, 30 of 100 pages written"},
		{group.RecoveryStatus{Stage: "rollback", Unfinished: 3, RolledBack: 1}, "recovering: 1 of 3 transactions rolled back"},
		{group.RecoveryStatus{Stage: "log", Log: 64 << 20, LogRead: 12 << 20}, "recovering: newest file of the log, 12 of 64 MiB checked"},
		{group.RecoveryStatus{Stage: "entries", EntriesFrom: 11, EntriesTo: 110, EntriesApplied: 40}, "recovering: entries of the log, 40 of 100 applied"},
		{group.RecoveryStatus{Stage: "entries", EntriesFrom: 11, EntriesTo: 10}, "starting"},
		{group.RecoveryStatus{Stage: "done", EntriesFrom: 11, EntriesTo: 110, EntriesApplied: 100}, "starting"},
	} {
		s = c.status
		if err := n.unready(); err == nil || err.Error() != c.text {
			t.Errorf("%v: %v", c.status, err)
		}
		if r := n.report(); !r.Starting || r.Recovery != s {
			t.Errorf("/status has %+v", r)
		}
	}
	done := group.RecoveryStatus{Stage: "done", Redo: 300 << 20, RedoTime: 2.5, Time: 4, EntriesFrom: 11, EntriesTo: 110, EntriesTime: 1}
	if text := done.String(); !strings.HasPrefix(text, "recovered in 4.0 s") {
		t.Error(text)
	}
}

// Clients are not sent to who is far behind, or may be.
func TestTooFar(t *testing.T) {
	for _, c := range []struct {
		what     string
		writable bool
		lag      time.Duration
		most     time.Duration
		ready    bool
	}{
		{"a leader", true, 0, time.Second, true},
		{"a leader whose clock was set", true, time.Hour, time.Second, true},
		{"a follower", false, 10 * time.Millisecond, time.Second, true},
		{"who lags", false, 2 * time.Second, time.Second, false},
		{"who lags where nobody minds", false, 2 * time.Hour, 0, true},
		{"who has heard of no time yet", false, -1, time.Second, false},
		{"the same where nobody minds", false, -1, 0, true},
	} {
		s := group.Status{Writable: c.writable, Lag: group.Lag{Time: c.lag}}
		if err := tooFar(&s, c.most); (err == nil) != c.ready {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
