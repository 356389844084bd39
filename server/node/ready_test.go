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

// A member is one that the group can spare another for when it votes, or is not to.
func TestWillVote(t *testing.T) {
	others := []group.Member{{ID: 1}, {ID: 2}, {ID: 4, Learner: true, Stays: true}}
	for _, c := range []struct {
		self *group.Member
		will bool
	}{
		{&group.Member{ID: 3}, false},
		{&group.Member{ID: 3, Learner: true}, true},
		{&group.Member{ID: 3, Learner: true, Stays: true}, false},
		{nil, true}, // it has the group's data of before it was let in
	} {
		members := others
		if c.self != nil {
			members = append(members[:len(members):len(members)], *c.self)
		}
		if will := willVote(members, 3); will != c.will {
			t.Errorf("%+v: %t", c.self, will)
		}
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

// A member that was ready and hears no leader stays so for those who read, but not where others that
// answer hear one.
func TestWithoutLeader(t *testing.T) {
	began := time.Now()
	const most = time.Hour
	var r readiness
	for _, c := range []struct {
		what  string
		known bool
		after time.Duration
		most  time.Duration
		ready bool
	}{
		{"nobody has looked yet", false, -1, most, true},
		{"it is lost", false, 0, most, true},
		{"for long", false, most - time.Second, most, true},
		{"for too long", false, most + time.Second, most, false},
		{"for too long, where it may be longer", false, most + time.Second, 2 * most, true},
		{"it is there", true, 2 * most, most, true},
		{"it is lost again", false, 2*most + time.Second, most, true},
		{"where that may not be", false, 2*most + time.Second, 0, false},
	} {
		if c.after >= 0 {
			r.look(c.known, began.Add(c.after))
		}
		if err := r.err(began.Add(max(0, c.after)), c.most); (err == nil) != c.ready {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	r.elsewhere = elsewhereLooks - 1
	if err := r.err(began.Add(2*most), most); err != nil {
		t.Errorf("others knew a leader once: %v", err)
	}
	r.elsewhere = elsewhereLooks
	if err := r.err(began.Add(2*most), most); err == nil {
		t.Error("others know a leader, and a member that does not is ready")
	}
	if r.look(true, began.Add(2*most)); r.err(began.Add(2*most), most) != nil {
		t.Error("it hears the leader again, and is not ready")
	}
}

// That a leader is known elsewhere is what another voter says that answers.
func TestLeaderElsewhere(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}
	for _, c := range []struct {
		what   string
		states []group.Status
		known  bool
	}{
		{"nobody answers", []group.Status{{ID: 1}, {ID: 2, Leader: 3, Error: "no"}, {ID: 3, Leader: 3, Error: "no"}}, false},
		{"nobody knows one", []group.Status{{ID: 1}, {ID: 2}, {ID: 3}}, false},
		{"this member does by now", []group.Status{{ID: 1, Leader: 2}, {ID: 2}}, false},
		{"one that does not vote has not noticed", []group.Status{{ID: 1}, {ID: 4, Leader: 3}}, false},
		{"another follows it", []group.Status{{ID: 1}, {ID: 2, Leader: 3}, {ID: 3, Error: "no"}}, true},
		{"it answers itself", []group.Status{{ID: 1}, {ID: 3, Leader: 3}}, true},
	} {
		if known := knowLeader(1, members, c.states); known != c.known {
			t.Errorf("%s: %t", c.what, known)
		}
	}
}

// So few voters that nothing can be agreed on are told of, with where to read on; who does not vote does not count.
func TestNoMajority(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}
	for _, c := range []struct {
		states []group.Status
		want   string
	}{
		{[]group.Status{{ID: 1}, {ID: 2}, {ID: 3, Error: "no"}, {ID: 4}}, ""},
		{[]group.Status{{ID: 1}, {ID: 2, Error: "no"}, {ID: 3, Error: "no"}, {ID: 4}}, "no majority: 1 of 3 voters answer. If the disks of the others are lost"},
		{[]group.Status{{ID: 1}, {ID: 2, Error: "no"}, {ID: 3, Error: "no", Distrust: "the certificate of c is expired"}, {ID: 4}},
			"no majority: 1 of 3 voters answer, and certificates between members are not accepted: the certificate of c is expired. Nothing is lost"},
		{[]group.Status{{ID: 1}, {ID: 2, Error: "no"}, {ID: 3, Error: "no"}, {ID: 4, Error: "no", Distrust: "the certificate of a replica is expired"}},
			"no majority: 1 of 3 voters answer. If the disks of the others are lost"},
	} {
		voters, answered := countVoters(members, c.states)
		got := NoMajority(voters, answered, Distrust(members, c.states))
		if !strings.HasPrefix(got, c.want) || got != "" && !strings.Contains(got, "docs/operations-group.md, When the majority is lost") || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c.states, got)
		}
	}
	if voters, answered := countVoters(nil, nil); NoMajority(voters, answered, "") != "" {
		t.Error("a node that knows nobody lacks a majority")
	}
	r := readiness{minority: minority{voters: 3, answered: 1}}
	if err := r.withMinority("recovering"); !strings.Contains(err.Error(), "recovering; no majority: 1 of 3") {
		t.Error(err)
	}
	if r.look(true, time.Now()); r.withMinority("recovering").Error() != "recovering" {
		t.Error("there is a leader again, and no majority is still said")
	}
}
