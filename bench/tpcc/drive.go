package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// kind is one of the five transactions.
type kind struct {
	name  string
	share int           // of 100
	limit time.Duration // of the 90th percentile (clause 5.2.5.7)
	run   func(*terminal, context.Context) error
}

var kinds = []kind{
	{"new order", 45, 5 * time.Second, (*terminal).newOrder},
	{"payment", 43, 5 * time.Second, (*terminal).payment},
	{"order status", 4, 5 * time.Second, (*terminal).orderStatus},
	{"delivery", 4, 5 * time.Second, (*terminal).delivery},
	{"stock level", 4, 20 * time.Second, (*terminal).stockLevel},
}

// deck deals the kinds in their mix, shuffled (clause 5.2.4.2).
type deck struct {
	cards []int
	r     *random
}

func (d *deck) deal() *kind {
	if len(d.cards) == 0 {
		for i, k := range kinds {
			for range k.share {
				d.cards = append(d.cards, i)
			}
		}
		d.r.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
	}
	last := len(d.cards) - 1
	k := &kinds[d.cards[last]]
	d.cards = d.cards[:last]
	return k
}

// result is what a run was.
type result struct {
	took      time.Duration
	times     map[string][]time.Duration // of transactions that were committed
	retries   map[string]int             // by reason
	delivered int
	unknown   bool // whether a delivery was committed is not known
}

func (r *result) tpmC() float64 { return float64(len(r.times["new order"])) / r.took.Minutes() }

func (r *result) add(o *result) {
	for k, v := range o.times {
		r.times[k] = append(r.times[k], v...)
	}
	for k, v := range o.retries {
		r.retries[k] += v
	}
	r.delivered += o.delivered
	r.unknown = r.unknown || o.unknown
}

func newResult() *result {
	return &result{times: map[string][]time.Duration{}, retries: map[string]int{}}
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "%-14s %9s %9s %9s %9s %9s\n", "", "count", "share", "p50", "p90", "p99")
	total := 0
	for _, t := range r.times {
		total += len(t)
	}
	for _, k := range kinds {
		t := r.times[k.name]
		if len(t) == 0 {
			continue
		}
		slices.Sort(t)
		at := func(p int) time.Duration { return t[(len(t)-1)*p/100].Round(10 * time.Microsecond) }
		note := ""
		if at(90) > k.limit {
			note = fmt.Sprintf("  above the %v allowed", k.limit)
		}
		fmt.Fprintf(w, "%-14s %9d %8.1f%% %9s %9s %9s%s\n", k.name, len(t), 100*float64(len(t))/float64(total), at(50), at(90), at(99), note)
	}
	for reason, n := range r.retries {
		fmt.Fprintf(w, "repeated %d times: %s\n", n, reason)
	}
	fmt.Fprintf(w, "tpmC %.0f (%d new orders in %v, no keying and think times)\n", r.tpmC(), len(r.times["new order"]), r.took.Round(time.Millisecond))
}

// drive runs terminals for a time.
func drive(ctx context.Context, db *sql.DB, warehouses, clients int, ramp, duration time.Duration, seed uint64) (*result, error) {
	begin := time.Now().Add(ramp)
	end := begin.Add(duration)
	results := make([]*result, clients)
	errs := make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			results[i], errs[i] = serve(ctx, db, warehouses, i, begin, end, seed)
		})
	}
	all.Wait()
	total := newResult()
	total.took = duration
	for _, r := range results {
		total.add(r)
	}
	return total, errors.Join(errs...)
}

// serve is a terminal's life.
func serve(ctx context.Context, db *sql.DB, warehouses, i int, begin, end time.Time, seed uint64) (*result, error) {
	out := newResult()
	r := newRandom(seed, 1000+i, runConstants(seed))
	t := &terminal{r: r, warehouses: warehouses, home: i%warehouses + 1}
	defer func() {
		if t.conn != nil {
			_ = t.conn.Close()
		}
		out.delivered = t.delivered
	}()
	d := deck{r: r}
	for time.Now().Before(end) && ctx.Err() == nil {
		k := d.deal()
		from := time.Now()
		for {
			err := t.connect(ctx, db)
			if err == nil {
				err = k.run(t, ctx)
			}
			if err == nil {
				break
			}
			reason, lost := repeatable(err)
			if reason == "" {
				return out, fmt.Errorf("%s: %w", k.name, err)
			}
			out.retries[reason]++
			if lost {
				out.unknown = out.unknown || k.name == "delivery"
				t.reset()
				time.Sleep(20 * time.Millisecond)
			}
			if time.Since(from) > time.Minute {
				return out, fmt.Errorf("%s: for a minute now: %w", k.name, err)
			}
		}
		if now := time.Now(); from.After(begin) && now.Before(end) {
			out.times[k.name] = append(out.times[k.name], now.Sub(from))
		}
	}
	return out, nil
}

func (t *terminal) connect(ctx context.Context, db *sql.DB) (err error) {
	if t.conn != nil {
		return nil
	}
	t.prepared = map[string]*sql.Stmt{}
	t.conn, err = db.Conn(ctx)
	return err
}

// reset gives the connection up.
func (t *terminal) reset() {
	if t.conn != nil {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = t.conn.Close()
		t.conn = nil
	}
}

// repeatable names the reason why a transaction is to be run again; lost says that the
// connection is gone, or leads to a server that takes no writes.
func repeatable(err error) (reason string, lost bool) {
	var e *mysql.MySQLError
	switch {
	case errors.As(err, &e):
		switch e.Number {
		case 1205, 1213, 3101, 1020:
			return fmt.Sprintf("error %d", e.Number), false
		case 1053, 1290, 1836, 3100, 1180, 1927, 4031, 1792:
			return fmt.Sprintf("error %d", e.Number), true
		}
		return "", false
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection lost", true
	}
	var op interface{ Timeout() bool }
	if errors.As(err, &op) {
		return "no connection", true
	}
	return "", false
}
