package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/bench/contenders"
)

// kinds is how many rows the table has that t refers to.
const kinds = 100

// load makes the table, of rows of about 200 bytes.
func load(s *contenders.Server, rows int) error {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE ddl", "CREATE TABLE ddl.kinds (id INT NOT NULL PRIMARY KEY)",
		"CREATE TABLE ddl.t (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, n INT NOT NULL, kind INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	for id := range kinds {
		if _, err := db.Exec("INSERT INTO ddl.kinds VALUES (?)", id); err != nil {
			return err
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	return contenders.Fill(db, "ddl.t", rows, func(b *strings.Builder, id int) {
		fmt.Fprintf(b, "%d,%d,0,%d,'%0120d','%060d'", id, r.IntN(rows), r.IntN(kinds), r.Uint64(), r.Uint64())
	})
}

// seen is what clients met with.
type seen struct {
	before, during float64       // requests served per second
	reads, writes  time.Duration // the longest of each from the beginning of the change on
	late           int           // requests that took more than 100 ms
	failed         int
	why            string // the first failure
}

// change makes a change beside the clients.
func (c *config) change(s *contenders.Server, ch change) (took time.Duration, result seen, err error) {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return 0, result, err
	}
	defer db.Close()
	clients := make([]*client, c.clients)
	for i := range clients {
		clients[i] = &client{db: db, writes: i%2 == 0, rows: c.rows, every: time.Second * time.Duration(c.clients) / time.Duration(c.rate)}
	}
	ctx, stop := context.WithCancel(context.Background())
	var g sync.WaitGroup
	for i, x := range clients {
		g.Go(func() { x.run(ctx, uint64(i)) })
	}
	end := func() {
		stop()
		g.Wait()
	}
	defer end()
	time.Sleep(c.quiet)
	served := count(clients)
	result.before = float64(served) / c.quiet.Seconds()
	began := time.Now()
	for _, x := range clients {
		x.watching.Store(true)
	}
	if _, err := db.ExecContext(ctx, ch.text); err != nil {
		return 0, result, err
	}
	took = time.Since(began)
	result.during = float64(count(clients)-served) / took.Seconds()
	time.Sleep(c.quiet) // those which are held up come to their end
	end()
	for _, x := range clients {
		longest := &result.reads
		if x.writes {
			longest = &result.writes
		}
		*longest = max(*longest, x.longest)
		result.late += x.late
		if result.failed += x.failed; result.why == "" {
			result.why = x.why
		}
	}
	return took, result, nil
}

func count(clients []*client) (n int64) {
	for _, x := range clients {
		n += x.served.Load()
	}
	return n
}

// client sends a request each so often.
type client struct {
	db     *sql.DB
	writes bool
	rows   int
	every  time.Duration

	watching atomic.Bool // the change has begun
	served   atomic.Int64
	longest  time.Duration // from when a request should have been sent
	late     int
	failed   int
	why      string
}

// late is from when on a request counts as held up.
const late = 100 * time.Millisecond

func (x *client) run(ctx context.Context, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for due := time.Now(); ctx.Err() == nil; due = due.Add(x.every) {
		time.Sleep(time.Until(due))
		watching := x.watching.Load()
		err := x.request(ctx, r.IntN(x.rows))
		took := time.Since(due)
		switch {
		case errors.Is(err, context.Canceled) || ctx.Err() != nil:
			return
		case err != nil:
			if x.failed++; x.why == "" {
				x.why = err.Error()
			}
			continue
		}
		x.served.Add(1)
		if watching {
			x.longest = max(x.longest, took)
			if took > late {
				x.late++
			}
		}
	}
}

func (x *client) request(ctx context.Context, id int) error {
	if x.writes {
		_, err := x.db.ExecContext(ctx, "UPDATE ddl.t SET n = n + 1, k = k + 1 WHERE id = ?", id)
		return err
	}
	var n int64
	return x.db.QueryRowContext(ctx, "SELECT n FROM ddl.t WHERE id = ?", id).Scan(&n)
}
