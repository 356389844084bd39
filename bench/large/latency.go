package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/bench/quantile"
)

// latency is what small transactions met with beside large ones of one size.
type latency struct {
	mib               int
	statement, commit []time.Duration    // of each round
	windows           [3][]time.Duration // before, while the statement runs, at COMMIT
	failures
	err error // of the large transaction
}

// failures of small transactions.
type failures struct {
	failed int
	why    string // of the first
}

func (f *failures) add(err error) {
	if f.failed++; f.why == "" {
		f.why = err.Error()
	}
}

func (f *failures) merge(other failures) {
	if f.failed += other.failed; f.why == "" {
		f.why = other.why
	}
}

func (f failures) String() string {
	if f.failed == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", f.failed, f.why)
}

// latency measures the rounds of one size.
func (t *turn) latency(mib int) latency {
	l := latency{mib: mib}
	for range t.rounds {
		if l.err = t.latencyRound(&l); l.err == nil {
			l.err = t.caughtUp()
		}
		if l.err != nil {
			fmt.Fprintf(os.Stderr, "%s: %d MiB: %v\n", t.name, mib, l.err)
			break
		}
	}
	return l
}

// warmUp is how long clients run before they count.
const warmUp = 500 * time.Millisecond

func (t *turn) latencyRound(l *latency) error {
	var clients []*client
	var running sync.WaitGroup
	for i := range t.clients {
		x := &client{db: t.db, number: i, of: t.clients, rows: t.rows, limit: t.limit,
			every: time.Second * time.Duration(t.clients) / time.Duration(t.rate)}
		clients = append(clients, x)
		running.Go(x.run)
	}
	time.Sleep(warmUp)
	from := time.Now()
	time.Sleep(t.quiet)
	x, err := t.transaction(largeUpdate(l.mib), time.Time{}, commit)
	time.Sleep(commitAfter)
	until := time.Now()
	for _, c := range clients {
		c.until.Store(&until)
	}
	running.Wait() // those which are held up come to their end
	for _, c := range clients {
		l.merge(c.failures)
	}
	if err != nil {
		return err
	}
	l.statement, l.commit = append(l.statement, x.done.Sub(x.began)), append(l.commit, x.ok.Sub(x.ended))
	ws := windows(from, x.began, x.ended, x.ok)
	for _, c := range clients {
		for i, w := range ws {
			l.windows[i] = append(l.windows[i], w.latencies(c.samples)...)
		}
	}
	fmt.Fprintf(os.Stderr, "%-8s %5d MiB: statement %v, COMMIT %v; longest before %v, meanwhile %v, at COMMIT %v\n",
		t.name, l.mib, short(x.done.Sub(x.began)), short(x.ok.Sub(x.ended)),
		short(quantile.Of(l.windows[0], 1)), short(quantile.Of(l.windows[1], 1)), short(quantile.Of(l.windows[2], 1)))
	return nil
}

// client sends a single-row transaction each so often.
type client struct {
	db         *sql.DB
	number, of int // each has rows of its own
	rows       int
	every      time.Duration
	limit      time.Duration

	until   atomic.Pointer[time.Time] // requests that are due later are not sent
	samples []sample
	failures
}

func (x *client) run() {
	r := rand.New(rand.NewPCG(uint64(x.number), 1))
	ctx, cancel := context.WithTimeout(context.Background(), 2*x.limit)
	defer cancel()
	for due := time.Now(); ; due = due.Add(x.every) {
		time.Sleep(time.Until(due))
		if until := x.until.Load(); ctx.Err() != nil || until != nil && due.After(*until) {
			return
		}
		text := fmt.Sprintf("UPDATE large.t SET k = k + 1 WHERE id = %d", ownRow(r, x.number, x.of, x.rows))
		if _, err := x.db.ExecContext(ctx, text); err != nil {
			x.add(err)
			continue
		}
		x.samples = append(x.samples, sample{due, time.Since(due)})
	}
}

// ownRow is a row that no other client changes.
func ownRow(r *rand.Rand, number, of, rows int) int { return r.IntN(rows/of)*of + number }
