package session_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/session/sessiontest"
)

func TestScripts(t *testing.T) { sessiontest.Scripts(t, "testdata") }
