//go:build kubernetes

package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
)

const (
	accounts = 50
	opening  = 1000
	programs = 4
	// think is the time between two transactions of a program: the machine has to run a
	// cluster besides.
	think = 10 * time.Millisecond
)

// bank is a load of transfers between accounts, each with a row in a ledger, by programs that
// know nothing but the name of the chart's Service. They pause while held.
type bank struct {
	t    *testing.T
	db   *client.DB
	stop context.CancelFunc
	all  sync.WaitGroup
	held sync.RWMutex
	next atomic.Int64

	mu     sync.Mutex
	bears  uint16  // the number of an error that a transfer may have
	acked  []int64 // ledger ids
	failed []error
	last   time.Time     // when the newest was acknowledged
	gap    time.Duration // the longest between two
	pauses []pause       // the long ones
}

// pause is a time in which nothing was acknowledged.
type pause struct{ from, to time.Time }

// long is how long a pause has to be to be remembered by itself.
const long = time.Second

// newBank begins the load, as an account that may make the database.
func newBank(t *testing.T, address, user, password string) *bank {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	db, err := client.Open(ctx, client.Options{Addrs: []string{address}, User: user, Password: password,
		TLS: &tls.Config{InsecureSkipVerify: true}, Program: "bank", Patience: patience}) //nolint:gosec // nodes make their own certificates
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{t: t, db: db, stop: stop}
	for _, s := range []string{"CREATE DATABASE IF NOT EXISTS bank", "CREATE TABLE IF NOT EXISTS bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS bank.ledger (id BIGINT PRIMARY KEY, source INT NOT NULL, target INT NOT NULL, amount INT NOT NULL, KEY (source), KEY (target))"} {
		if _, err := db.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	for i := range accounts {
		if _, err := db.Exec(ctx, "INSERT IGNORE INTO bank.account VALUES (?, ?)", i, opening); err != nil {
			t.Fatal(err)
		}
	}
	for range programs {
		b.all.Go(func() { b.program(ctx) })
	}
	t.Cleanup(b.halt)
	return b
}

func (b *bank) halt() {
	b.stop()
	b.all.Wait()
	_ = b.db.Close()
}

func (b *bank) program(ctx context.Context) {
	for ctx.Err() == nil {
		b.transfer(ctx)
		time.Sleep(think)
	}
}

func (b *bank) transfer(ctx context.Context) {
	b.held.RLock()
	defer b.held.RUnlock()
	id, source, target, amount := b.next.Add(1), rand.IntN(accounts), rand.IntN(accounts), rand.IntN(20)
	_, err := b.db.RunTx(ctx, nil, func(tx *client.Tx) error {
		for _, s := range []struct {
			text string
			args []any
		}{
			{"SELECT balance FROM bank.account WHERE id IN (?, ?) ORDER BY id FOR UPDATE", []any{source, target}},
			{"UPDATE bank.account SET balance = balance - ? WHERE id = ?", []any{amount, source}},
			{"UPDATE bank.account SET balance = balance + ? WHERE id = ?", []any{amount, target}},
			{"INSERT INTO bank.ledger VALUES (?, ?, ?, ?)", []any{id, source, target, amount}},
		} {
			if _, err := tx.Exec(ctx, s.text, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var e *client.Error
	switch {
	case errors.As(err, &e) && e.Number == b.bears && b.bears != 0:
		return
	case err != nil:
		b.failed = append(b.failed, err)
		return
	}
	now := time.Now()
	if !b.last.IsZero() && now.Sub(b.last) > b.gap {
		b.gap = now.Sub(b.last)
	}
	if !b.last.IsZero() && now.Sub(b.last) > long {
		b.pauses = append(b.pauses, pause{b.last, now})
	}
	b.last = now
	b.acked = append(b.acked, id)
}

// mark begins to look for the longest gap anew.
func (b *bank) mark() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gap, b.bears, b.pauses = 0, 0, nil
}

// paused are the long pauses since the mark.
func (b *bank) paused() []pause {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.pauses)
}

// bear says which error is no failure of what happens now.
func (b *bank) bear(number uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bears = number
}

// goesOn waits until transfers that began after this call are acknowledged, and returns the
// longest gap since the mark.
func (b *bank) goesOn() time.Duration {
	b.t.Helper()
	b.mu.Lock()
	before := len(b.acked)
	b.mu.Unlock()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		b.mu.Lock()
		more, gap := len(b.acked)-before, b.gap
		b.mu.Unlock()
		if more > programs {
			return gap
		}
		if time.Now().After(until) {
			b.t.Fatal("no transfer is acknowledged any more")
		}
	}
}

// renew forgets what was transferred, once it was audited: what members hold stays small.
func (b *bank) renew() {
	b.t.Helper()
	_, letGo := b.hold()
	defer letGo()
	for _, s := range []string{"TRUNCATE TABLE bank.ledger", fmt.Sprintf("UPDATE bank.account SET balance = %d", opening)} {
		if _, err := b.db.Exec(context.Background(), s); err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked = nil
}

// hold waits for the transfers that are under way and keeps others from beginning until
// release is called. It demands that none has failed, and returns what was acknowledged.
func (b *bank) hold() (acked []int64, release func()) {
	b.t.Helper()
	b.held.Lock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failed) > 0 {
		b.t.Errorf("%d transfers have failed, the last one with: %v", len(b.failed), b.failed[len(b.failed)-1])
	}
	b.failed = nil
	return b.acked, func() {
		b.mu.Lock()
		b.last = time.Time{} // a pause of ours is no gap
		b.mu.Unlock()
		b.held.Unlock()
	}
}
