package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// k6 is a run of a script.
type k6 struct {
	cmd   *exec.Cmd
	said  strings.Builder
	ended chan struct{}
	err   error
}

// startK6 starts a script that writes its summary to a file.
func startK6(ctx context.Context, program, script, summary string, env []string) (*k6, error) {
	k := &k6{ended: make(chan struct{})}
	// Without an address it listens nowhere. It is to ask nobody on the Internet anything.
	k.cmd = exec.CommandContext(ctx, program, "run", "--address", "", "--quiet", "--no-color", "--summary-export", summary, script)
	k.cmd.Env = append(append(os.Environ(), "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false"), env...)
	k.cmd.Stderr = &k.said
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	k.cmd.Cancel = func() error { return k.cmd.Process.Signal(os.Interrupt) }
	k.cmd.WaitDelay = 20 * time.Second
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w (make bin/k6 builds it)", err)
	}
	go func() {
		k.err = k.cmd.Wait()
		close(k.ended)
	}()
	return k, nil
}

// crossed is how k6 exits when a threshold is not kept.
const crossed = 99

// wait waits for its end. Thresholds that were not kept are in the summary.
func (k *k6) wait() error {
	<-k.ended
	var exit *exec.ExitError
	if k.err == nil || errors.As(k.err, &exit) && exit.ExitCode() == crossed {
		return nil
	}
	said := k.said.String()
	return fmt.Errorf("k6: %w\n%s", k.err, said[max(0, len(said)-4000):])
}

// metric is what the summary has of one.
type metric struct {
	Count, Med, Max float64
	P95             float64         `json:"p(95)"`
	P99             float64         `json:"p(99)"`
	Fails           float64         // of checks
	Thresholds      map[string]bool // whether it was crossed
}

// result is how a scenario went.
type result struct {
	scenario string
	length   time.Duration
	metrics  map[string]metric
	notes    []string
}

func (r *result) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var s struct{ Metrics map[string]metric }
	err = json.Unmarshal(text, &s)
	r.metrics = s.Metrics
	return err
}

func (r *result) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// count is how often something was counted, in the metric name or in that of an operation.
func (r *result) count(name string) int { return int(r.metrics[name].Count) }

func (r *result) operations(op string) int { return r.count("operations{op:" + op + "}") }

// acknowledged is how many events there have to be.
func (r *result) acknowledged() int {
	return r.operations("write") + r.operations("transaction") - r.operations("delete")
}

// missed are the thresholds that were not kept.
func (r *result) missed() (all []string) {
	for name, m := range r.metrics {
		for threshold, crossed := range m.Thresholds {
			if crossed {
				all = append(all, fmt.Sprintf("%s: %s is not %s", r.scenario, name, threshold))
			}
		}
	}
	slices.Sort(all)
	return all
}

// operations are those of all scripts, in the table's order, and their tags.
var operations = []struct{ name, tags string }{{"read", "op:read"}, {"  at the leader", "op:read,at:leader"}, {"  at followers", "op:read,at:follower"},
	{"write", "op:write"}, {"transaction", "op:transaction"}, {"delete", "op:delete"}}

// show prints a line for each operation of each scenario, and what else is to be said of it.
func show(to io.Writer, results []*result) {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nSCENARIO\tOPERATION\tCOUNT\tPER SECOND\tMEDIAN\tP95\tP99\tMAX\tTHRESHOLD\tRETRIES\tERRORS")
	for _, r := range results {
		name, counts := r.scenario, fmt.Sprintf("%d\t%d", r.count("retries"), r.count("errors"))
		for _, op := range operations {
			m := r.metrics["duration{"+op.tags+"}"]
			if m.Count == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\n", name, op.name, m.Count, m.Count/r.length.Seconds(),
				millis(m.Med), millis(m.P95), millis(m.P99), millis(m.Max), limits(m), counts)
			name, counts = "", "\t"
		}
	}
	w.Flush()
	for _, r := range results {
		if gap, ok := r.metrics["gap"]; ok {
			fmt.Fprintf(to, "%s: %d times a client went to another leader; the longest time without an answer was %s (%s)\n",
				r.scenario, r.count("moves"), millis(gap.Max), limits(gap))
		}
		for _, n := range r.notes {
			fmt.Fprintf(to, "%s: %s\n", r.scenario, n)
		}
	}
}

func millis(ms float64) string { return fmt.Sprintf("%.1f ms", ms) }

// limits are the thresholds of a metric.
func limits(m metric) string {
	var all []string
	for threshold, crossed := range m.Thresholds {
		if crossed {
			threshold += " FAILED"
		}
		all = append(all, threshold)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
