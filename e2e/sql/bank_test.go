package sql

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

var duration = flag.Duration("e2e.duration", 8*time.Second, "how long faults go on")

const (
	accounts = 50
	opening  = 1000
)

// expected are the errors by which a server may answer during faults, with what they
// mean; docs/protocol.md says the same.
func expected(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return true // of the connection
	}
	switch e.Number {
	case 1205, 1213, // lock wait, deadlock
		1290, 1836, // this node takes no writes now
		1053, 1317, 1927, // the server stops, or the connection was ended
		3101, 3100, 1180, // the group did not commit the transaction
		1040, 2013, 1158, 1159, 1160, 1161:
		return true
	}
	return false
}

// bank is a load of transfers between accounts, each with a row in a ledger, and
// snapshots whose sum must hold.
type bank struct {
	c       *cluster
	stop    atomic.Bool
	all     sync.WaitGroup
	mu      sync.Mutex
	acked   []int64 // ledger ids
	unknown int
	refused int
	reads   int
}

func newBank(c *cluster) *bank {
	db := c.nodes[0].open("")
	run(c.t, db, "CREATE DATABASE bank", "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE bank.ledger (id BIGINT PRIMARY KEY, source INT NOT NULL, target INT NOT NULL, amount INT NOT NULL, KEY (source))")
	for i := range accounts {
		run(c.t, db, fmt.Sprintf("INSERT INTO bank.account VALUES (%d, %d)", i, opening))
	}
	return &bank{c: c}
}

func (b *bank) start(clients int) {
	for i := range clients {
		b.all.Go(func() { b.client(i) })
	}
	b.all.Go(b.reader)
}

func (b *bank) end() {
	b.stop.Store(true)
	b.all.Wait()
}

func (b *bank) client(i int) {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	db, err := sql.Open("mysql", b.c.nodes[i%len(b.c.nodes)].dsn(b.c.nodes[i%len(b.c.nodes)].port, "bank", ""))
	if err != nil {
		b.c.t.Error(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for n := int64(0); !b.stop.Load(); n++ {
		id := int64(i)<<32 | n
		committing, err := transfer(db, id, r.IntN(accounts), r.IntN(accounts), r.IntN(20))
		b.mu.Lock()
		switch {
		case err == nil:
			b.acked = append(b.acked, id)
		case !expected(err):
			b.c.t.Errorf("a client saw %v", err)
		case committing:
			b.unknown++
		default:
			b.refused++
		}
		b.mu.Unlock()
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// transfer moves an amount; committing says that an error came while it was being
// committed, so that nobody knows whether it was.
func transfer(db *sql.DB, id int64, source, target, amount int) (committing bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	first, second := min(source, target), max(source, target)
	for _, s := range []string{
		fmt.Sprintf("SELECT balance FROM account WHERE id IN (%d, %d) ORDER BY id FOR UPDATE", first, second),
		fmt.Sprintf("UPDATE account SET balance = balance - %d WHERE id = %d", amount, source),
		fmt.Sprintf("UPDATE account SET balance = balance + %d WHERE id = %d", amount, target),
		fmt.Sprintf("INSERT INTO ledger VALUES (%d, %d, %d, %d)", id, source, target, amount),
	} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			_ = tx.Rollback()
			return false, err
		}
	}
	return true, tx.Commit()
}

// reader looks at snapshots on all nodes.
func (b *bank) reader() {
	var dbs []*sql.DB
	for _, n := range b.c.nodes {
		db, err := sql.Open("mysql", n.dsn(n.reads, "bank", ""))
		if err != nil {
			b.c.t.Error(err)
			return
		}
		defer db.Close()
		dbs = append(dbs, db)
	}
	for i := 0; !b.stop.Load(); i++ {
		var sum, n int64
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := dbs[i%len(dbs)].QueryRowContext(ctx, "SELECT SUM(balance), COUNT(*) FROM account").Scan(&sum, &n)
		cancel()
		if err != nil {
			if !expected(err) {
				b.c.t.Errorf("a reader saw %v", err)
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		b.mu.Lock()
		b.reads++
		b.mu.Unlock()
		if n != accounts || sum != accounts*opening {
			b.c.t.Errorf("node %d: %d accounts with %d together", i%len(dbs)+1, n, sum)
		}
	}
}

// check demands that every acknowledged transfer is there once, on every node, and that
// the balances are those of the ledger.
func (b *bank) check() {
	t := b.c.t
	t.Helper()
	b.c.await()
	want := text(t, b.c.nodes[0].open("bank"), "SELECT COUNT(*), SUM(amount) FROM ledger")
	for _, n := range b.c.nodes {
		db := n.openAt(n.reads, "bank", "")
		var got string
		for until := time.Now().Add(patience); got != want && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			got = text(t, db, "SELECT COUNT(*), SUM(amount) FROM ledger")
		}
		if got != want {
			t.Errorf("node %d has %s in the ledger, the leader %s", n.number, got, want)
			continue
		}
		if wrong := text(t, db, `SELECT id, balance FROM account WHERE balance <> 1000
+ (SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE target = account.id) - (SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE source = account.id)`); wrong != "" {
			t.Errorf("node %d: balances that are not those of the ledger:\n%s", n.number, wrong)
		}
		there := map[int64]bool{}
		rows, err := db.Query("SELECT id FROM ledger")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			there[id] = true
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		lost := 0
		for _, id := range b.acked {
			if !there[id] {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("node %d: %d of %d acknowledged transfers are lost", n.number, lost, len(b.acked))
		}
	}
	t.Logf("%d transfers acknowledged, %d refused, %d with unknown outcome, %d snapshots read", len(b.acked), b.refused, b.unknown, b.reads)
}

// Under kill -9, pauses and clean stops of any node, one after the other, money neither
// comes nor goes and no acknowledged transfer is lost.
func TestBank(t *testing.T) {
	c := newCluster(t, 3)
	b := newBank(c)
	b.start(6)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for until := time.Now().Add(*duration); time.Now().Before(until); {
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		n := c.nodes[r.IntN(len(c.nodes))]
		switch r.IntN(3) {
		case 0:
			n.kill()
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
			n.start()
		case 1:
			n.signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(500+r.IntN(2000)) * time.Millisecond)
			n.signal(syscall.SIGCONT)
		default:
			n.stop()
			n.start()
		}
	}
	b.end()
	b.check()
}
