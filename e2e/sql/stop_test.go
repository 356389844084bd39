package sql

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// A node that is asked to stop does, and says that all went well, whether it serves or
// still waits for the others of its group.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, serves := range []bool{true, false} {
		o := servers.Options{Binary: binary, Dir: t.TempDir(), Nodes: 1}
		last := "msg=stopped"
		if !serves {
			o.Nodes, last = 3, "stopped while starting"
		}
		g, err := servers.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Kill)
		n := g.Nodes[0]
		start(t, n)
		if serves {
			await(t, g)
		} else {
			for until := time.Now().Add(patience); !strings.Contains(n.LastWords(), "waiting to join or found"); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("it does not start:\n%s", n.LastWords())
				}
			}
		}
		if err := n.Stop(patience); err != nil {
			t.Errorf("serves %v: %v", serves, err)
		}
		if said := n.LastWords(); !strings.Contains(said, last) {
			t.Errorf("serves %v: %q is not in\n%s", serves, last, said)
		}
	}
}
