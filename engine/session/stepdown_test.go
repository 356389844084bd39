package session_test

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/types"
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
	var e *types.Error
	if err := writer.Query(context.Background(), "SELECT 1", nil); !errors.As(err, &e) || e.Number != 1053 || e.State != "08S01" {
		t.Errorf("the writer hears %v", err)
	}
	r.Text(reader, "SELECT 1")
}
