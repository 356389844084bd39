package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestGTIDsOfAnotherGroup: who waits for transactions of another group, as after a restore, is told at once that they are that; the set
// of this one's may be written in any way that MySQL takes.
func TestGTIDsOfAnotherGroup(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{})
		r.Exec(s, "CREATE DATABASE a")
		r.Exec(s, "CREATE DATABASE b")
		const own, foreign = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "11111111-bbbb-cccc-dddd-eeeeeeeeeeee"
		for set, want := range map[string]string{
			"":                             "0",
			own + ":1":                     "0",
			strings.ToUpper(own) + ":1-2":  "0",
			own + ":2:1":                   "0",
			own + ":999:1":                 "1",
			own + ":1,\n" + own + ":1-999": "1",
			foreign + ":1-5":               "error 1105 (HY000): The GTIDs '" + foreign + ":1-5' are of another group, whose transactions are never executed here: those of this group have the UUID " + own,
			own + ":1," + foreign + ":1":   "error 1105",
			foreign + ":1," + own + ":1":   "error 1105",
			own + ":x":                     "error 1772",
			own + ":x:1":                   "error 1772",
			own:                            "error 1772",
			"1111-bbbb:5":                  "error 1772",
		} {
			began := sim.Monotonic()
			got := r.Text(s, "SELECT WAIT_FOR_EXECUTED_GTID_SET('"+set+"', 2) AS w")
			if got != "w\n"+want+"\n" && !(strings.HasPrefix(want, "error") && strings.Contains(got, want)) || want != "1" && sim.Monotonic()-began > time.Second {
				t.Errorf("%q, after %v: %s", set, sim.Monotonic()-began, got)
			}
		}
		for set, want := range map[string]string{
			own + ":1-2":   "ok",
			"2":            "ok",
			foreign + ":1": "error 1105",
			own + ":x":     "error 1231",
		} {
			if got := r.Text(s, "SET trireme_read_gtid = '"+set+"'"); !strings.Contains(got, want) {
				t.Errorf("%q: %s", set, got)
			}
		}
	})
}
