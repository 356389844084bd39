package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestStepDown: where nobody writes any more, a session hears that it has to connect
// again, not that somebody killed it; one that only reads goes on.
func TestStepDown(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	killed := false
	writer := r.Open(session.ConnectionInfo{Disconnect: func() { killed = true }})
	reader := r.Open(session.ConnectionInfo{ReadOnly: true, Disconnect: func() { killed = true }})
	r.Manager.StepDown()
	if killed || !writer.Gone() || reader.Gone() {
		t.Errorf("killed %v, the writer is gone %v, the reader %v", killed, writer.Gone(), reader.Gone())
	}
	var e *sqlerr.Error
	if err := writer.Query(context.Background(), "SELECT 1", nil); !errors.As(err, &e) || e.Number != 1053 || e.State != "08S01" {
		t.Errorf("the writer hears %v", err)
	}
	r.Text(reader, "SELECT 1")
}

// TestReadsGoOnWithoutTheLead: who reads on the port for reads, and waits for a change of a definition that is in doubt, goes
// on waiting when the node gives up the lead, and hears of a KILL what it is.
func TestReadsGoOnWithoutTheLead(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		reader, killed := r.Open(session.ConnectionInfo{Schema: "test", ReadOnly: true}), r.Open(session.ConnectionInfo{Schema: "test", ReadOnly: true})
		r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
		r.Exec(s, "INSERT INTO t VALUES (1)")
		ended := false
		r.Log.Doubt = func() error {
			for !ended {
				env.Sleep(sim, time.Millisecond)
			}
			return nil
		}
		change := background(r, s, "TRUNCATE t")
		read, ends := background(r, reader, "SELECT COUNT(*) AS n FROM t"), background(r, killed, "SELECT COUNT(*) AS n FROM t")
		if err := r.Demote(); err != nil {
			t.Fatal(err)
		}
		env.Sleep(sim, time.Second)
		if read.done || ends.done {
			t.Errorf("who reads does not wait: %s%s", read.text, ends.text)
		}
		killed.Interrupt()
		if got := ends.await(r); !strings.Contains(got, "error 1317") {
			t.Errorf("who was killed hears: %s", got)
		}
		ended = true
		change.await(r)
		if got := read.await(r); got != "n\n0\n" {
			t.Errorf("who reads gets: %s", got)
		}
	})
}
