package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// counts are what became of the hostile statements.
type counts struct {
	mu     sync.Mutex // guards what follows
	done   int
	gaveUp int            // their client closed the connection
	errors map[uint16]int // by MySQL's number; 0: the connection was lost
	opened int            // connections of the one who floods
}

func (c *counts) note(err error, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e *mysql.MySQLError
	switch {
	case err == nil:
		c.done++
	case gaveUp:
		c.gaveUp++
	default:
		if c.errors == nil {
			c.errors = map[uint16]int{}
		}
		number := uint16(0)
		if errors.As(err, &e) {
			number = e.Number
		}
		c.errors[number]++
	}
}

func (c *counts) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]string, 0, len(c.errors))
	for _, number := range slices.Sorted(maps.Keys(c.errors)) {
		list = append(list, fmt.Sprintf("%d %dx", number, c.errors[number]))
	}
	return fmt.Sprintf("Of the hostile statements %d were answered, %d given up by their clients, which closed the connection, and these ended with errors (0: a lost connection): %s. %d connections were opened by the one who floods.\n",
		c.done, c.gaveUp, strings.Join(list, ", "), c.opened)
}

// attack lets the hostile accounts loose until stop.
func (w *world) attack(stop <-chan struct{}) error {
	if err := w.descriptors(); err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	var all sync.WaitGroup
	all.Go(func() { w.crowd(ctx) })
	all.Go(func() { w.openAll(ctx) })
	for i := range w.accounts {
		all.Go(func() { w.misbehave(ctx, i) })
	}
	<-stop
	end()
	all.Wait()
	return nil
}

// descriptors takes what this process may have, and lets the flood be no larger.
func (w *world) descriptors() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("%d descriptors: %w", l.Max, err)
	}
	others := uint64(w.idle + 4*w.accounts + 1000)
	if l.Max < others+1 {
		return fmt.Errorf("%d descriptors are too few for -idle %d", l.Max, w.idle)
	}
	w.flood = int(min(uint64(w.flood), l.Max-others))
	return nil
}

// crowd opens idle connections and keeps them.
func (w *world) crowd(ctx context.Context) {
	db, err := sql.Open("mysql", w.dsn("shop", ""))
	if err != nil {
		return
	}
	defer db.Close()
	db.SetMaxIdleConns(w.idle)
	var held []*sql.Conn
	for len(held) < w.idle && ctx.Err() == nil {
		c, err := db.Conn(ctx)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		held = append(held, c)
	}
	<-ctx.Done()
	for _, c := range held {
		_ = c.Close()
	}
}

// openAll opens connections without a word, as many as it may, and closes them again.
func (w *world) openAll(ctx context.Context) {
	address := fmt.Sprintf("127.0.0.1:%d", w.group.Nodes[0].Port)
	for ctx.Err() == nil {
		var held []net.Conn
		for len(held) < w.flood && ctx.Err() == nil {
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err != nil {
				break
			}
			held = append(held, c)
		}
		w.hostile.mu.Lock()
		w.hostile.opened += len(held)
		w.hostile.mu.Unlock()
		pause(ctx, 10*time.Second)
		for _, c := range held {
			_ = c.Close()
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// misbehave is what one account does: one statement after the other on three connections, some of which it gives up.
func (w *world) misbehave(ctx context.Context, account int) {
	db, err := sql.Open("mysql", w.dsn(fmt.Sprintf("h%d", account), fmt.Sprintf("h%d", account)))
	if err != nil {
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(3)
	var all sync.WaitGroup
	for part := range 3 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(w.seed, uint64(account*3+part)))
			for ctx.Err() == nil {
				w.once(ctx, db, random, bad[random.IntN(len(bad))](random))
			}
		})
	}
	all.Wait()
}

// once runs statements on a connection, which it may give up.
func (w *world) once(ctx context.Context, db *sql.DB, random *rand.Rand, statements []string) {
	one, cancel := context.WithTimeout(ctx, time.Duration(200+random.IntN(20_000))*time.Millisecond)
	defer cancel()
	c, err := db.Conn(one)
	if err != nil {
		w.hostile.note(err, one.Err() != nil)
		pause(ctx, 100*time.Millisecond)
		return
	}
	defer c.Close()
	for _, text := range statements {
		rows, err := c.QueryContext(one, text)
		if err == nil {
			for rows.Next() { // it takes all of it
			}
			err = rows.Err()
			_ = rows.Close()
		}
		w.hostile.note(err, one.Err() != nil)
		if err != nil && one.Err() != nil {
			return
		}
	}
}
