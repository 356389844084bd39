package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/quantile"
)

const (
	longQuery   = "SELECT kind, COUNT(*), SUM(n), MIN(c) FROM mixed.t WHERE pad LIKE '%77%' GROUP BY kind"
	largeUpdate = "UPDATE mixed.large SET c = CONCAT(id, UUID(), UUID(), UUID())" // of 250,000 rows: about 30 MB of changes
	largeRows   = 250_000
)

// load makes the tables.
func load(s *contenders.Server, rows int) error {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE mixed",
		"CREATE TABLE mixed.t (id INT NOT NULL PRIMARY KEY, n INT NOT NULL, kind INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"} {
		if _, err := db.Exec(text); err != nil {
			return err
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	err = contenders.Fill(db, "mixed.t", rows, func(b *strings.Builder, id int) {
		fmt.Fprintf(b, "%d,0,%d,'%0120d','%060d'", id, r.IntN(100), r.Uint64(), r.Uint64())
	})
	if err != nil {
		return err
	}
	if _, err := db.Exec("CREATE TABLE mixed.large LIKE mixed.t"); err != nil {
		return err
	}
	for from := 0; from < min(rows, largeRows); from += largeRows / 5 { // no more than Galera takes in one
		if _, err := db.Exec(fmt.Sprintf("INSERT INTO mixed.large SELECT * FROM mixed.t WHERE id >= %d AND id < %d", from, min(from+largeRows/5, largeRows))); err != nil {
			return err
		}
	}
	return nil
}

// latencies are how long statements took, from when each should have been sent.
type latencies []time.Duration

func (l latencies) quantile(q float64) time.Duration {
	d := quantile.Of(l, q)
	if d > 10*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

// turn sends short statements beside others.
func (c *config) turn(s *contenders.Server, beside company) (result, error) {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return result{}, err
	}
	defer db.Close()
	db.SetMaxIdleConns(c.clients + beside.sessions)
	ctx, stop := context.WithTimeout(context.Background(), c.length())
	defer stop()
	r := result{server: s.Name, beside: beside.name}
	var mu sync.Mutex // guards r
	var clients sync.WaitGroup
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if r.failed++; r.failed == 1 {
			r.firstOfFailure = err.Error()
		}
	}
	for range beside.sessions {
		clients.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := exhaust(db.QueryContext(ctx, beside.text))
				switch {
				case err == nil:
					mu.Lock()
					r.long += 60 / c.length().Seconds()
					mu.Unlock()
				case ctx.Err() == nil:
					fail(fmt.Errorf("a long statement, after %v: %w", time.Since(began), err))
				}
			}
		})
	}
	for i := range c.clients {
		clients.Go(func() {
			took := c.short(ctx, db, i, fail)
			mu.Lock()
			defer mu.Unlock()
			if i%2 == 0 {
				r.reads = append(r.reads, took...)
			} else {
				r.writes = append(r.writes, took...)
			}
		})
	}
	clients.Wait()
	return r, nil
}

// short sends a client's short statements.
func (c *config) short(ctx context.Context, db *sql.DB, client int, fail func(error)) (took latencies) {
	random := rand.New(rand.NewPCG(uint64(client), 1))
	every := time.Second * time.Duration(c.clients) / time.Duration(c.rate)
	for due := time.Now(); ctx.Err() == nil; due = due.Add(every) {
		time.Sleep(time.Until(due))
		id := random.IntN(c.rows)
		var err error
		if client%2 == 0 {
			var n int64
			err = db.QueryRowContext(ctx, fmt.Sprintf("SELECT n FROM mixed.t WHERE id = %d", id)).Scan(&n)
		} else {
			_, err = db.ExecContext(ctx, fmt.Sprintf("UPDATE mixed.t SET n = n + 1 WHERE id = %d", id))
		}
		switch {
		case err == nil:
			took = append(took, time.Since(due))
		case ctx.Err() == nil:
			fail(err)
		}
	}
	return took
}

// exhaust reads all rows.
func exhaust(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
