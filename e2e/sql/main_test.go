package sql

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

var (
	duration = flag.Duration("e2e.duration", 8*time.Second, "how long faults go on in each test")
	seed     = flag.Uint64("e2e.seed", 0, "of what clients do and of the faults; 0: another in each run. Processes keep their own time: "+
		"the same seed gives the same plan, not the same run")
)

// patience is how long a client or a test waits for what has to come.
const patience = servers.Patience

// binary is the server, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "trireme-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if binary, err = servers.Build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// newGroup starts three nodes.
func newGroup(t *testing.T, o servers.Options) *servers.Group {
	t.Helper()
	o.Binary, o.Nodes = binary, 3
	return servers.Test(t, o)
}

// plan is the randomness of a test; its seed is told.
func plan(t *testing.T) *rand.Rand {
	t.Helper()
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with: go test ./e2e/sql -run '^%s$' -args -e2e.seed=%d -e2e.duration=%v", t.Name(), s, *duration)
	return rand.New(rand.NewPCG(s, 0))
}

// limits are those of a client that does not wait forever.
func limits(c *mysql.Config) {
	c.Timeout, c.ReadTimeout, c.WriteTimeout = 5*time.Second, patience, patience
}

// await waits until all nodes take writes again, with nobody's help.
func await(t *testing.T, g *servers.Group) {
	t.Helper()
	if err := g.Await(patience); err != nil {
		t.Fatal(err)
	}
}

// caughtUp waits until every node gives what the leader does, and reports of each
// whether it does.
func caughtUp(t *testing.T, g *servers.Group, query string) (same []bool) {
	t.Helper()
	want := servers.Text(t, servers.Open(t, g.Nodes[0].DSN("", limits)), query)
	for _, n := range g.Nodes {
		db := servers.Open(t, n.ReadDSN("", limits))
		var got string
		var err error
		equal := false
		for until := time.Now().Add(patience); !equal && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			var ready int // a table may not be there yet
			if err = db.QueryRow("SELECT COUNT(*) FROM (" + query + ") q").Scan(&ready); err == nil {
				got = servers.Text(t, db, query)
				equal = got == want
			}
		}
		if !equal {
			t.Errorf("node %d gives %.2000q, the leader %.2000q (%v)", n.Number, got, want, err)
		}
		same = append(same, equal)
	}
	return same
}

func leader(t *testing.T, g *servers.Group) *servers.Node {
	t.Helper()
	n, err := g.Leader(patience)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func start(t *testing.T, n *servers.Node) {
	t.Helper()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
}
