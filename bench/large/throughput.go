package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/triremedb/trireme/bench/quantile"
)

// throughput is what clients committed each second.
type throughput struct {
	alone, baseline, beside steady
	left                    rate // of the baseline, without the seconds of ROLLBACKs
	err                     error
}

// steady is a stretch of it.
type steady struct {
	rate  rate
	large []large
	spans [][2]float64 // when they ended, in seconds
	failures
}

// afterRollback is how long a session waits after a ROLLBACK, so that the seconds which the
// baseline leaves out have nothing of the next statement.
const afterRollback = time.Second

// afterFailure keeps clients of a server that is gone from being counted by the thousand.
const afterFailure = 10 * time.Millisecond

func (t *turn) throughput() (x throughput) {
	if x.alone, x.err = t.steadily(min(t.seconds, 15), nil); x.err == nil {
		x.baseline, x.err = t.steadily(t.seconds, rollback)
	}
	x.left = x.baseline.rate.without(widened(x.baseline.spans, afterRollback.Seconds()))
	if x.err == nil {
		x.err = t.caughtUp()
	}
	if x.err == nil {
		x.beside, x.err = t.steadily(t.seconds, commit)
	}
	if x.err == nil {
		x.err = t.caughtUp()
	}
	what := "throughput: alone %.0f/s, baseline %.0f/s, beside COMMITs %.0f/s"
	what = fmt.Sprintf(what, quantile.Of(x.alone.rate, 0.5), quantile.Of(x.left, 0.5), quantile.Of(x.beside.rate, 0.5))
	if x.err != nil {
		what += ": " + x.err.Error()
	}
	fmt.Fprintf(os.Stderr, "%-8s %s\n", t.name, what)
	return x
}

// widened has spans with some seconds after each.
func widened(spans [][2]float64, seconds float64) (list [][2]float64) {
	for _, s := range spans {
		list = append(list, [2]float64{s[0], s[1] + seconds})
	}
	return list
}

// steadily counts what clients commit beside large transactions that end so, one after the
// other, or beside none.
func (t *turn) steadily(seconds int, end func() string) (s steady, err error) {
	ctx, stop := context.WithCancel(context.Background())
	begin := time.Now().Add(warmUp)
	until := begin.Add(time.Duration(seconds) * time.Second)
	s.rate = make(rate, seconds)
	var mu sync.Mutex // guards s
	var clients sync.WaitGroup
	for i := range t.clients {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for ctx.Err() == nil && time.Now().Before(until) {
				err := writeOnly(ctx, t.db, r, ownRow(r, i, t.clients, t.rows))
				now := time.Now()
				mu.Lock()
				switch {
				case err != nil:
					s.add(err)
				case !now.Before(begin) && now.Before(until):
					s.rate[now.Sub(begin)/time.Second]++
				}
				mu.Unlock()
				if err != nil {
					time.Sleep(afterFailure)
				}
			}
		})
	}
	time.Sleep(time.Until(begin))
	for end != nil && err == nil && time.Now().Before(until) {
		var x large
		x, err = t.transaction(largeUpdate(t.steady), time.Now().Add(t.every), func() string {
			if time.Now().Before(until) {
				return end()
			}
			return "ROLLBACK" // it comes too late to be measured
		})
		if err == nil && x.ended.Before(until) {
			s.large = append(s.large, x)
			s.spans = append(s.spans, [2]float64{x.ended.Sub(begin).Seconds(), x.ok.Sub(begin).Seconds()})
		}
		if x.end == "ROLLBACK" {
			rest := x.ok.Add(afterRollback).Sub(begin)
			time.Sleep(time.Until(begin.Add((rest + time.Second).Truncate(time.Second))))
		}
	}
	time.Sleep(time.Until(until))
	time.AfterFunc(t.limit, stop)
	clients.Wait()
	stop()
	return s, err
}

// writeOnly is the transaction of sysbench's oltp_write_only, of one row.
func writeOnly(ctx context.Context, db *sql.DB, r *rand.Rand, id int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, text := range []string{
		fmt.Sprintf("UPDATE large.t SET k = k + 1 WHERE id = %d", id),
		fmt.Sprintf("UPDATE large.t SET c = '%0120d' WHERE id = %d", r.Uint64(), id),
		fmt.Sprintf("DELETE FROM large.t WHERE id = %d", id),
		fmt.Sprintf("INSERT INTO large.t VALUES (%s)", smallRow(r, id))} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	return tx.Commit()
}

func (s *steady) commits() (statements, commits []time.Duration) {
	for _, x := range s.large {
		statements, commits = append(statements, x.done.Sub(x.began)), append(commits, x.ok.Sub(x.ended))
	}
	return statements, commits
}
