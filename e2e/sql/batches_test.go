package sql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// batchRows is how many rows are loaded by one statement.
const batchRows = 400

// TestBatches loads data while harm is done: each batch that was acknowledged is there as a whole
// on every node, and none is there in part.
func TestBatches(t *testing.T) {
	t.Parallel()
	r := plan(t)
	n := newNemesis(t, r)
	run(t, servers.Open(t, n.g.Nodes[0].DSN("", limits)), "CREATE DATABASE IF NOT EXISTS batches",
		"CREATE TABLE IF NOT EXISTS batches.rows_of (batch INT, i INT, v VARCHAR(100) NOT NULL, PRIMARY KEY (batch, i), KEY (v))")
	caughtUp(t, n.g, "SELECT COUNT(*) FROM batches.rows_of")
	var stop atomic.Bool
	var all sync.WaitGroup
	var mu sync.Mutex
	var acked []int
	var next atomic.Int64
	load := func(node *servers.Node, r *rand.Rand) {
		db, err := sql.Open("mysql", node.DSN("batches", limits))
		if err != nil {
			t.Error(err)
			return
		}
		defer db.Close()
		for !stop.Load() {
			id := int(next.Add(1))
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			_, err := db.ExecContext(ctx, batch(id, r))
			cancel()
			switch {
			case err == nil:
				mu.Lock()
				acked = append(acked, id)
				mu.Unlock()
			case !documented(err):
				t.Errorf("loading batch %d at node %d: %v", id, node.Number, err)
			}
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		}
	}
	for _, node := range n.g.Nodes {
		seed := r.Uint64()
		all.Go(func() { load(node, rand.New(rand.NewPCG(seed, 0))) })
	}
	halt := sync.OnceFunc(func() { stop.Store(true); all.Wait() })
	defer halt()
	n.harm(time.Now().Add(*duration))
	halt()
	t.Logf("%d batches acknowledged of %d", len(acked), next.Load())
	const whole = "SELECT batch, COUNT(*) AS n, COUNT(DISTINCT v) AS m FROM batches.rows_of GROUP BY batch ORDER BY batch"
	caughtUp(t, n.g, whole)
	for i, node := range n.g.Nodes {
		there := map[string]bool{}
		for line := range strings.Lines(text(t, servers.Open(t, node.ReadDSN("", limits)), whole)) {
			f := strings.Fields(line)
			if there[f[0]] = true; len(f) != 3 || f[1] != fmt.Sprint(batchRows) || f[2] != fmt.Sprint(batchRows) {
				t.Errorf("node %d has batch %v in part", i+1, f)
			}
		}
		for _, id := range acked {
			if !there[fmt.Sprint(id)] {
				t.Errorf("node %d has not got batch %d, which was acknowledged", i+1, id)
			}
		}
	}
}

func batch(id int, r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("INSERT INTO rows_of VALUES ")
	for i := range batchRows {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "(%d, %d, '%d-%x')", id, i, i, r.Uint64())
	}
	return b.String()
}
