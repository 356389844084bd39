package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/triremedb/trireme/bench/quantile"
)

const (
	clients  = 8 // of the shop
	shopRows = 20_000
	// patience is how long a statement of the shop may take before its client gives it up.
	patience = 20 * time.Second
)

// phase is what the shop has seen of a part.
type phase struct {
	name          string
	reads, writes []time.Duration // from when each statement should have been sent
	failed        int
	first         string // failure
	memory        int64  // the most that a node used, in bytes
}

func (p *phase) row() string {
	failed := fmt.Sprint(p.failed)
	if p.failed > 0 {
		failed += ": " + p.first
	}
	part := func(l []time.Duration) string {
		at := func(q float64) time.Duration { return quantile.Of(l, q).Round(10 * time.Microsecond) }
		return fmt.Sprintf("%d | %v | %v | %v", len(l), at(0.5), at(0.99), at(1))
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %s |", p.name, part(p.reads), part(p.writes), p.memory>>20, failed)
}

// phase runs the shop for a while, beside something.
func (w *world) phase(name string, length time.Duration, beside func(stop <-chan struct{}) error) (phase, error) {
	r := phase{name: name}
	ctx, stop := context.WithTimeout(context.Background(), length)
	defer stop()
	var mu sync.Mutex // guards r
	var all sync.WaitGroup
	var broken error
	if beside != nil {
		all.Go(func() {
			defer stop() // if it has ended too early, nothing is left to measure
			broken = beside(ctx.Done())
		})
	}
	all.Go(func() {
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				used := w.memory()
				mu.Lock()
				r.memory = max(r.memory, used)
				mu.Unlock()
			}
		}
	})
	for i := range clients {
		all.Go(func() {
			s := shopper{w: w, number: i, fail: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if r.failed++; r.failed == 1 {
					r.first = err.Error()
				}
			}}
			s.run(ctx)
			mu.Lock()
			defer mu.Unlock()
			r.reads, r.writes = append(r.reads, s.reads...), append(r.writes, s.writes...)
		})
	}
	all.Wait()
	return r, broken
}

// shopper is a client of the shop: three reads of a row, then an insert with a number that is looked for in the end.
type shopper struct {
	w             *world
	number        int
	fail          func(error)
	reads, writes []time.Duration
}

func (s *shopper) run(ctx context.Context) {
	db, err := sql.Open("mysql", s.w.dsn("shop", "shop"))
	if err != nil {
		s.fail(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	random := rand.New(rand.NewPCG(s.w.seed, uint64(s.number)))
	every := time.Second * clients / time.Duration(s.w.rate)
	for due, n := time.Now(), 0; ctx.Err() == nil; due, n = due.Add(every), n+1 {
		time.Sleep(time.Until(due))
		one, cancel := context.WithTimeout(context.Background(), patience)
		if n%4 < 3 {
			var got int64
			err = db.QueryRowContext(one, fmt.Sprintf("SELECT n FROM item WHERE id = %d", random.IntN(shopRows))).Scan(&got)
		} else {
			id := s.w.next.Add(1)
			if _, err = db.ExecContext(one, fmt.Sprintf("INSERT INTO sale VALUES (%d, %d)", id, random.IntN(shopRows))); err == nil {
				s.w.acknowledge(id)
			}
		}
		cancel()
		switch {
		case err != nil:
			s.fail(fmt.Errorf("after %v: %w", time.Since(due).Round(time.Millisecond), err))
			due = time.Now() // who waits for an answer does not send what fell due meanwhile
		case n%4 < 3:
			s.reads = append(s.reads, time.Since(due))
		default:
			s.writes = append(s.writes, time.Since(due))
		}
	}
}
