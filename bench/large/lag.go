package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// lag is how far followers were behind.
type lag struct {
	statement, commit []time.Duration // of each round
	visible           []time.Duration // from COMMIT's OK on, on the last follower
	before, during    time.Duration   // the longest of heartbeats, before the UPDATE and from its beginning on
	write             time.Duration   // the longest that writing a heartbeat took, from when it was due
	failures                          // of writing heartbeats
	err               error
}

const (
	beatEvery = 50 * time.Millisecond
	pollEvery = 2 * time.Millisecond
)

func (t *turn) lag() (l lag) {
	for n := range t.rounds {
		if l.err = t.lagRound(&l, n+1); l.err == nil {
			l.err = t.caughtUp()
		}
		if l.err != nil {
			fmt.Fprintf(os.Stderr, "%s: lag: %v\n", t.name, l.err)
			break
		}
	}
	return l
}

// manyUpdate changes some 75 bytes of each row.
func manyUpdate(n int) string {
	return fmt.Sprintf("UPDATE large.many SET n = %d, c = CONCAT(SUBSTRING(c, 2), LEFT(c, 1))", n)
}

// lagRound sets all rows to n.
func (t *turn) lagRound(l *lag, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*t.limit)
	defer cancel()
	h := &heart{db: t.db}
	if err := t.db.QueryRowContext(ctx, "SELECT n FROM large.beats WHERE id = 1").Scan(&h.last); err != nil {
		return err
	}
	beating, still := context.WithCancel(ctx)
	defer still()
	var watchers, writer sync.WaitGroup
	eyes := make([]*eye, len(t.followers))
	for i, db := range t.followers {
		eyes[i] = &eye{db: db, row: fmt.Sprintf("SELECT n FROM large.many WHERE id = %d", t.lagRows-1), want: int64(n)}
		watchers.Go(func() { eyes[i].err = eyes[i].watch(ctx, h) })
	}
	writer.Go(func() { h.beat(ctx, beating) })
	time.Sleep(t.quiet)
	x, err := t.transaction(manyUpdate(n), time.Time{}, commit)
	if err != nil {
		cancel()
	}
	time.Sleep(commitAfter)
	still()
	writer.Wait()
	h.stop()
	watchers.Wait()
	l.merge(h.failures)
	if err != nil {
		return err
	}
	var visible time.Duration
	for _, e := range eyes {
		if e.err != nil {
			return e.err
		}
		visible = max(visible, e.changed.Sub(x.ok))
		var early []beat
		for _, b := range h.written {
			if b.at.Before(x.began) {
				early = append(early, b)
			}
		}
		now := time.Now()
		l.before = max(l.before, longestLag(early, e.seen, time.Time{}, now))
		l.during = max(l.during, longestLag(h.written, e.seen, x.began, now))
	}
	l.statement, l.commit = append(l.statement, x.done.Sub(x.began)), append(l.commit, x.ok.Sub(x.ended))
	l.visible, l.write = append(l.visible, visible), max(l.write, h.longest)
	fmt.Fprintf(os.Stderr, "%-8s lag: statement %v, COMMIT %v, visible after %v; heartbeats %v before, %v beside it\n",
		t.name, short(x.done.Sub(x.began)), short(x.ok.Sub(x.ended)), short(visible), short(l.before), short(l.during))
	return nil
}

// heart writes the heartbeat's row on the leader, on time: what is held up counts from when
// it was due.
type heart struct {
	db      *sql.DB
	written []beat // from when each was acknowledged
	longest time.Duration
	failures

	mu    sync.Mutex // guards what follows
	last  int64      // acknowledged
	ended bool
}

// beat writes until beating ends.
func (h *heart) beat(ctx, beating context.Context) {
	n := h.last
	for due := time.Now(); beating.Err() == nil; due = due.Add(beatEvery) {
		time.Sleep(time.Until(due))
		n++
		if _, err := h.db.ExecContext(ctx, fmt.Sprintf("UPDATE large.beats SET n = %d WHERE id = 1", n)); err != nil {
			h.add(err)
			continue
		}
		now := time.Now()
		h.written, h.longest = append(h.written, beat{n, now}), max(h.longest, now.Sub(due))
		h.mu.Lock()
		h.last = n
		h.mu.Unlock()
	}
}

func (h *heart) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

// complete reports whether there are no beats after n.
func (h *heart) complete(n int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended && n >= h.last
}

// eye watches a follower.
type eye struct {
	db      *sql.DB
	row     string // how to read a row that the UPDATE changes
	want    int64
	seen    []beat
	changed time.Time // when that row was first seen as it is to be
	err     error
}

// watch polls until both the last beat and the changed row are to be seen.
func (e *eye) watch(ctx context.Context, h *heart) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for last := int64(-1); ; {
		var n int64
		if err := conn.QueryRowContext(ctx, "SELECT n FROM large.beats WHERE id = 1").Scan(&n); err != nil {
			return e.failed(ctx, err)
		}
		if now := time.Now(); n > last {
			e.seen, last = append(e.seen, beat{n, now}), n
		}
		if e.changed.IsZero() {
			if err := conn.QueryRowContext(ctx, e.row).Scan(&n); err != nil {
				return e.failed(ctx, err)
			}
			if n >= e.want {
				e.changed = time.Now()
			}
		}
		if !e.changed.IsZero() && h.complete(last) {
			return nil
		}
		time.Sleep(pollEvery)
	}
}

func (e *eye) failed(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("a follower does not show what was committed")
	}
	return fmt.Errorf("a follower: %w", err)
}
