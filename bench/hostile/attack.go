package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// counts are what became of the hostile statements.
type counts struct {
	mu     sync.Mutex     // guards what follows
	Done   int            `json:"done"`
	GaveUp int            `json:"gaveUp"` // their client closed the connection
	Errors map[uint16]int `json:"errors"` // by MySQL's number; 0: the connection was lost
	Opened int            `json:"opened"` // connections of the account that floods
}

func (c *counts) note(err error, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e *mysql.MySQLError
	switch {
	case err == nil:
		c.Done++
	case gaveUp:
		c.GaveUp++
	default:
		if c.Errors == nil {
			c.Errors = map[uint16]int{}
		}
		number := uint16(0)
		if errors.As(err, &e) {
			number = e.Number
		}
		c.Errors[number]++
	}
}

func (c *counts) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]string, 0, len(c.Errors))
	for _, number := range slices.Sorted(maps.Keys(c.Errors)) {
		list = append(list, fmt.Sprintf("%d %dx", number, c.Errors[number]))
	}
	return fmt.Sprintf("Of the hostile statements %d were answered, %d given up by their clients, which closed the connection, and these ended with errors (0: a lost connection): %s. %d connections were opened by the one that floods.\n",
		c.Done, c.GaveUp, strings.Join(list, ", "), c.Opened)
}

// attack lets the hostile accounts loose until stop, in a process of their own: a shop does not share its scheduler with its attackers
// either.
func (w *world) attack(stop <-chan struct{}) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "-attack", w.dsn("h0", ""), "-seed", fmt.Sprint(w.seed), "-accounts", fmt.Sprint(w.accounts), "-idle", fmt.Sprint(w.idle),
		"-flood", fmt.Sprint(w.flood))
	return w.run(c, stop, stopLimit)
}

// run runs the process of the hostile accounts until stop, and reads its report. The process ends when its input does; it is killed if that takes
// longer than limit. An earlier end is an error at once.
func (w *world) run(c *exec.Cmd, stop <-chan struct{}, limit time.Duration) error {
	var report bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &report, os.Stderr, time.Second
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		return errors.Join(errors.New("the process of the hostile accounts has ended too early"), err)
	case <-stop:
	}
	_ = in.Close()
	select {
	case err = <-ended:
	case <-time.After(limit):
		_ = c.Process.Kill()
		return errors.Join(fmt.Errorf("the process of the hostile accounts did not end within %v and was killed", limit), <-ended)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(report.Bytes(), &w.hostile)
}

// attacker is that process.
type attacker struct {
	*config
	server *mysql.Config
	counts counts
}

// misbehaveUntil runs the hostile accounts until end is read to its end, and writes what became of their statements.
func (c *config) misbehaveUntil(end io.Reader, out io.Writer) error {
	server, err := mysql.ParseDSN(c.attack)
	if err != nil {
		return err
	}
	a := &attacker{config: c, server: server}
	if err := a.descriptors(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { a.crowd(ctx) })
	all.Go(func() { a.openAll(ctx) })
	for i := range a.accounts {
		all.Go(func() { a.misbehave(ctx, i) })
	}
	_, err = io.Copy(io.Discard, end)
	stop()
	all.Wait()
	return errors.Join(err, json.NewEncoder(out).Encode(&a.counts))
}

// dsn is how an account reaches the server.
func (a *attacker) dsn(user, schema string) string {
	c := a.server.Clone()
	c.User, c.DBName = user, schema
	return c.FormatDSN()
}

// descriptors takes what this process may have, and lets the flood be no larger.
func (a *attacker) descriptors() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("%d descriptors: %w", l.Max, err)
	}
	others := uint64(a.idle + 4*a.accounts + 1000)
	if l.Max < others+1 {
		return fmt.Errorf("%d descriptors are too few for -idle %d", l.Max, a.idle)
	}
	a.flood = int(min(uint64(a.flood), l.Max-others))
	return nil
}

// crowd opens idle connections and keeps them.
func (a *attacker) crowd(ctx context.Context) {
	db, err := sql.Open("mysql", a.dsn("shop", ""))
	if err != nil {
		return
	}
	defer db.Close()
	db.SetMaxIdleConns(a.idle)
	var held []*sql.Conn
	for len(held) < a.idle && ctx.Err() == nil {
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
func (a *attacker) openAll(ctx context.Context) {
	address := a.server.Addr
	for ctx.Err() == nil {
		var held []net.Conn
		for len(held) < a.flood && ctx.Err() == nil {
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err != nil {
				break
			}
			held = append(held, c)
		}
		a.counts.mu.Lock()
		a.counts.Opened += len(held)
		a.counts.mu.Unlock()
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
func (a *attacker) misbehave(ctx context.Context, account int) {
	db, err := sql.Open("mysql", a.dsn(fmt.Sprintf("h%d", account), fmt.Sprintf("h%d", account)))
	if err != nil {
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(3)
	var all sync.WaitGroup
	for part := range 3 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(a.seed, uint64(account*3+part)))
			for ctx.Err() == nil {
				a.once(ctx, db, random, bad[random.IntN(len(bad))](random))
			}
		})
	}
	all.Wait()
}

// once runs statements on a connection, which it may give up.
func (a *attacker) once(ctx context.Context, db *sql.DB, random *rand.Rand, statements []string) {
	one, cancel := context.WithTimeout(ctx, time.Duration(200+random.IntN(20_000))*time.Millisecond)
	defer cancel()
	c, err := db.Conn(one)
	if err != nil {
		a.counts.note(err, one.Err() != nil)
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
		a.counts.note(err, one.Err() != nil)
		if err != nil && one.Err() != nil {
			return
		}
	}
}
