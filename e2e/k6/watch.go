package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// What is done beside a script while it runs.

// awaitRows waits until the script has written something.
func (t *target) awaitRows(k *k6) error {
	var n int
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		select {
		case <-k.ended:
			return errors.New("the script ended before it had written anything")
		default:
		}
		// There is no table at first.
		if err = t.db.QueryRow(context.Background(), "SELECT COUNT(*) FROM "+schema+".event").Scan(&n); err == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("the script writes nothing: %w", err)
}

// failLeader kills the leader in the middle of a run, and starts it again at its end.
func (t *target) failLeader(k *k6, r *result) error {
	if err := t.awaitRows(k); err != nil {
		return err
	}
	if t.group == nil {
		fmt.Fprintf(os.Stderr, "kill the leader within the next %v\n", r.length)
		return nil
	}
	select {
	case <-k.ended:
		return errors.New("the script ended before the leader did")
	case <-time.After(r.length / 2):
	}
	leader, err := t.group.Leader(patience)
	if err != nil {
		return err
	}
	leader.Kill()
	<-k.ended
	if err := leader.Start(); err != nil {
		return err
	}
	return t.group.Await(patience)
}

// growth is how much larger Go's heap may be on average in the last fifth of a steady load than it
// was in the second.
const growth = 1.5

// watch looks at the nodes' heap while a script runs.
func (t *target) watch(k *k6, r *result) error {
	if t.group == nil {
		return nil
	}
	if err := t.awaitRows(k); err != nil {
		return err
	}
	heaps := make([][]float64, len(t.group.Nodes))
	tick := time.NewTicker(max(r.length/200, 50*time.Millisecond))
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-k.ended:
			running = false
		case <-tick.C:
			for i, n := range t.group.Nodes {
				bytes, err := number(n, "go_heap_bytes")
				if err != nil {
					return err
				}
				heaps[i] = append(heaps[i], bytes)
			}
		}
	}
	var errs []error
	for i, h := range heaps {
		fifth := len(h) / 5
		if fifth == 0 {
			return errors.New("the load was too short for a look at memory")
		}
		early, late := average(h[fifth:2*fifth]), average(h[len(h)-fifth:])
		r.note("node %d has %.0f MiB of heap in the last fifth of the time, %.0f in the second", i+1, late/(1<<20), early/(1<<20))
		if late > growth*early && os.Getenv("LIMITS") != "off" {
			errs = append(errs, fmt.Errorf("the heap of node %d grows", i+1))
		}
	}
	return errors.Join(errs...)
}

func average(all []float64) float64 {
	var sum float64
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}

// number reads one of a node's metrics.
func number(n *servers.Node, name string) (v float64, err error) {
	c := http.Client{Timeout: patience}
	defer c.CloseIdleConnections()
	a, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", n.HTTP))
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			_, err := fmt.Sscan(rest, &v)
			return v, err
		}
	}
	return 0, fmt.Errorf("node %d has no metric %s", n.Number, name)
}
