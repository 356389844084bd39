package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestWaitsEndWithTheLead: who waits for a lock of GET_LOCK(), sleeps, or waits for transactions is not kept where nobody
// writes any more, and a lock that becomes free as its holder's session ends is not given to another one there.
func TestWaitsEndWithTheLead(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		for _, text := range []string{"SELECT GET_LOCK('a', -1)", "DO SLEEP(1000000)", "SELECT WAIT_FOR_EXECUTED_GTID_SET('aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:999999')"} {
			holder, waiter := r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{})
			r.Exec(holder, "DO GET_LOCK('a', 0)")
			waits := background(r, waiter, text)
			if waits.done {
				t.Fatalf("%s: %s", text, waits.text)
			}
			if err := r.Demote(); err != nil {
				t.Fatal(err)
			}
			began := sim.Monotonic()
			r.Manager.StepDown()
			if err := holder.Close(); err != nil {
				t.Error(err)
			}
			if got := waits.await(r); !strings.Contains(got, "error 1053 (08S01)") || sim.Monotonic()-began > 10*time.Second {
				t.Errorf("%s, after %v: %s", text, sim.Monotonic()-began, got)
			}
			r.Txns.Resume()
			r.ReadOnly = false
			if got := r.Text(r.Open(session.ConnectionInfo{}), "SELECT IS_FREE_LOCK('a') AS free"); got != "free\n1\n" {
				t.Errorf("%s: %s", text, got)
			}
		}
		env.Sleep(sim, time.Second)
	})
}

// TestNamedLockOfTheLeader: a lock of GET_LOCK() is given by the node that leads, at which clients meet; who is refused has
// it no more often than before.
func TestNamedLockOfTheLeader(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		for what, tc := range map[string]struct {
			point func(session.ReadOptions) error
			want  string
		}{
			"the leader":        {nil, "got\n1\n"},
			"no majority":       {func(session.ReadOptions) error { return sessiontest.ErrNoQuorum }, "error 1205"},
			"by way of another": {func(session.ReadOptions) error { return r.Demote() }, "error 1053 (08S01)"},
		} {
			s := r.Open(session.ConnectionInfo{})
			r.Exec(s, "DO GET_LOCK('twice', 0)")
			for _, name := range []string{"once", "twice"} {
				r.ReadPoint = tc.point
				got := r.Text(s, "SELECT GET_LOCK('"+name+"', 0) AS got")
				r.ReadPoint, r.ReadOnly = nil, false
				r.Txns.Resume()
				if !strings.Contains(got, tc.want) {
					t.Errorf("%s, %s: %s", what, name, got)
				}
			}
			other := r.Open(session.ConnectionInfo{})
			if got := r.Text(other, "SELECT IS_FREE_LOCK('once') AS once, IS_FREE_LOCK('twice') AS twice"); got != map[bool]string{
				true: "once | twice\n0 | 0\n", false: "once | twice\n1 | 0\n"}[tc.point == nil] {
				t.Errorf("%s: %s", what, got)
			}
			for _, s := range []*session.Session{s, other} {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		reads := r.Open(session.ConnectionInfo{ReadOnly: true}) // of which each member has some
		for _, e := range []string{"GET_LOCK('a', 0)", "RELEASE_LOCK('a')", "IS_FREE_LOCK('a')", "IS_USED_LOCK('a')"} {
			if got := r.Text(reads, "SELECT "+e); !strings.Contains(got, "error 1290 (HY000)") {
				t.Errorf("%s on the port for reads: %s", e, got)
			}
		}
		if got := r.Text(reads, "SELECT RELEASE_ALL_LOCKS() AS n"); got != "n\n0\n" {
			t.Error(got)
		}
	})
}

// TestNamedLockIsKnownToTheLeader: what is said of a lock of GET_LOCK(), or given up of one, is said by the node that leads: another
// one may give it to somebody else meanwhile. Who is refused has the lock still.
func TestNamedLockIsKnownToTheLeader(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		for what, tc := range map[string]struct {
			point func(session.ReadOptions) error
			want  string
		}{
			"no majority":       {func(session.ReadOptions) error { return sessiontest.ErrNoQuorum }, "error 1205"},
			"by way of another": {func(session.ReadOptions) error { return r.Demote() }, "error 1053 (08S01)"},
		} {
			var holder, other *session.Session
			for _, e := range []string{"IS_USED_LOCK('a') = CONNECTION_ID()", "IS_FREE_LOCK('a')", "RELEASE_LOCK('a')", "RELEASE_ALL_LOCKS()"} {
				holder, other = r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{})
				r.Exec(holder, "DO GET_LOCK('a', 0)")
				asks := []*session.Session{other, holder}
				if e == "RELEASE_ALL_LOCKS()" {
					asks = asks[1:] // 0 is true wherever it is said
				}
				for _, s := range asks {
					r.ReadPoint = tc.point
					got := r.Text(s, "SELECT "+e)
					r.ReadPoint, r.ReadOnly = nil, false
					r.Txns.Resume()
					if !strings.Contains(got, tc.want) {
						t.Errorf("%s, %s: %s", what, e, got)
					}
				}
				reads := r.Open(session.ConnectionInfo{})
				if got := r.Text(reads, "SELECT IS_FREE_LOCK('a') AS free"); got != "free\n0\n" {
					t.Errorf("%s, %s: %s", what, e, got)
				}
				if err := reads.Close(); err != nil {
					t.Error(err)
				}
				if tc.want == "error 1205" { // who hears 1053 is to connect again
					if got := r.Text(holder, "SELECT RELEASE_LOCK('a') AS a"); got != "a\n1\n" {
						t.Errorf("%s, %s: %s", what, e, got)
					}
					r.ReadPoint = tc.point
					if got := r.Text(other, "SELECT RELEASE_ALL_LOCKS() AS n"); got != "n\n0\n" {
						t.Errorf("%s: %s", what, got)
					}
					r.ReadPoint = nil
				}
				if err := holder.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
