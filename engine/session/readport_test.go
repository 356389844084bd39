package session_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// Sessions of the port for reads begin with what a global variable of its own says, also after a reset.
func TestReadPortBegins(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		main := r.Open(session.ConnectionInfo{})
		begins := func(s *session.Session, want string) {
			t.Helper()
			if got := r.Text(s, "SELECT @@trireme_read_consistency AS c"); got != "c\n"+want+"\n" {
				t.Errorf("it begins with %s, not with %s", got, want)
			}
		}
		reads := r.Open(session.ConnectionInfo{ReadOnly: true})
		begins(main, "STRONG")
		begins(reads, "LOCAL")
		r.Exec(main, "SET GLOBAL trireme_read_port_consistency = 'BOUNDED'")
		r.Exec(main, "SET GLOBAL trireme_read_consistency = 'AT_LEAST'")
		begins(r.Open(session.ConnectionInfo{ReadOnly: true}), "BOUNDED")
		begins(r.Open(session.ConnectionInfo{}), "AT_LEAST")
		r.Exec(reads, "SET trireme_read_consistency = DEFAULT")
		begins(reads, "AT_LEAST")
		if err := reads.Reset(); err != nil {
			t.Error(err)
		}
		begins(reads, "BOUNDED")
	})
}
