package sql

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/client"
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
	c.Timeout, c.ReadTimeout, c.WriteTimeout = patience, patience, patience
}

// openClient is a program over gRPC that knows all nodes.
func openClient(t *testing.T, g *servers.Group) *client.DB {
	t.Helper()
	o := client.Options{User: "root", Password: servers.Password, Patience: patience}
	for _, n := range g.Nodes {
		o.Addrs = append(o.Addrs, fmt.Sprintf("127.0.0.1:%d", n.GRPC))
	}
	db, err := client.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// await waits until all nodes take writes again, with nobody's help.
func await(t *testing.T, g *servers.Group) {
	t.Helper()
	if err := g.Await(patience); err != nil {
		t.Fatal(err)
	}
}

// insist does something again until it succeeds: on a busy machine another node may begin
// to lead at any time, with the errors that come of it.
func insist(t *testing.T, what string, do func() error) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if !documented(err) || time.Now().After(until) {
			t.Fatalf("%.300s: %v", what, err)
		}
	}
}

// run runs statements which do no harm if they are run twice.
func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		insist(t, s, func() error { _, err := db.Exec(s); return err })
	}
}

// text is servers.Text for a query that may have to be asked again.
func text(t *testing.T, db *sql.DB, query string) (rows string) {
	t.Helper()
	insist(t, query, func() (err error) { rows, err = servers.Rows(db, query); return err })
	return rows
}

// caughtUp waits until every node gives what the leader does, and reports of each
// whether it does.
func caughtUp(t *testing.T, g *servers.Group, query string) (same []bool) {
	t.Helper()
	want := text(t, servers.Open(t, g.Nodes[0].DSN("", limits)), query)
	for _, n := range g.Nodes {
		db := servers.Open(t, n.ReadDSN("", limits))
		var got string
		var err error
		equal := false
		for until := time.Now().Add(patience); !equal && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			got, err = servers.Rows(db, query) // a table may not be there yet
			equal = err == nil && got == want
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
