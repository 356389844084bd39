package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

const (
	accounts = 50
	opening  = 1000
	clients  = 6
)

// bank is a load of transfers between accounts, each with a row in a ledger, and
// snapshots whose sum must hold.
type bank struct {
	t       *testing.T
	g       *servers.Group
	stop    atomic.Bool
	all     sync.WaitGroup
	mu      sync.Mutex
	acked   []int64 // ledger ids
	at      []int   // how many of them came through each node
	unknown int
	refused map[uint16]int // by number of the error; 0: the connection ended
	reads   int
}

// newBank begins the load.
func newBank(t *testing.T, g *servers.Group, r *rand.Rand) *bank {
	t.Helper()
	db := servers.Open(t, g.Nodes[0].DSN("", limits))
	run(t, db, "CREATE DATABASE IF NOT EXISTS bank", "CREATE TABLE IF NOT EXISTS bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS bank.ledger (id BIGINT PRIMARY KEY, source INT NOT NULL, target INT NOT NULL, amount INT NOT NULL, KEY (source))")
	for i := range accounts {
		run(t, db, fmt.Sprintf("INSERT IGNORE INTO bank.account VALUES (%d, %d)", i, opening))
	}
	caughtUp(t, g, "SELECT id FROM bank.account")
	b := &bank{t: t, g: g, at: make([]int, len(g.Nodes)), refused: map[uint16]int{}}
	for i := range clients {
		seed := r.Uint64()
		b.all.Go(func() { b.client(i, rand.New(rand.NewPCG(seed, 0))) })
	}
	b.all.Go(b.reader)
	t.Cleanup(b.halt)
	return b
}

// documented are the errors that a client must be ready for while servers fail, as
// docs/operations-server.md tells them.
func documented(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return true // the connection ended
	}
	switch e.Number {
	case 1205, 1213, // a lock was not to be had, as without faults
		1053, // the server stops, or leads no more
		3101, // what the transaction builds on was not committed
		1180, // nobody knows whether the commit stands
		1114: // the disk is full
		return true
	}
	return false
}

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func (b *bank) client(i int, r *rand.Rand) {
	node := i % len(b.g.Nodes)
	db, err := sql.Open("mysql", b.g.Nodes[node].DSN("bank", limits))
	if err != nil {
		b.t.Error(err)
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
			b.at[node]++
		case !documented(err):
			b.t.Errorf("a client of node %d saw %v", node+1, err)
		case committing:
			b.unknown++
		default:
			b.refused[number(err)]++
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
	for _, n := range b.g.Nodes {
		db, err := sql.Open("mysql", n.ReadDSN("bank", limits))
		if err != nil {
			b.t.Error(err)
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
			if !documented(err) {
				b.t.Errorf("a reader saw %v", err)
			}
			time.Sleep(20 * time.Millisecond)
			continue
		}
		b.mu.Lock()
		b.reads++
		b.mu.Unlock()
		if n != accounts || sum != accounts*opening {
			b.t.Errorf("node %d: %d accounts with %d together", i%len(dbs)+1, n, sum)
		}
	}
}

// goesOn demands that clients of each of the nodes get transfers acknowledged from now on.
func (b *bank) goesOn(nodes ...*servers.Node) {
	b.t.Helper()
	b.mu.Lock()
	before := append([]int(nil), b.at...)
	b.mu.Unlock()
	for _, n := range nodes {
		for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			b.mu.Lock()
			// One was perhaps on its way: two more are a new one.
			more := b.at[n.Number-1] - before[n.Number-1]
			b.mu.Unlock()
			if more > 1+clients/len(b.g.Nodes) {
				break
			}
			if time.Now().After(until) {
				b.t.Fatalf("no transfer is acknowledged any more at node %d", n.Number)
			}
		}
	}
}

func (b *bank) halt() {
	if b.stop.Swap(true) {
		return
	}
	b.all.Wait()
	b.t.Logf("%d transfers acknowledged, %d with unknown outcome, %d snapshots read; refused, by error: %v", len(b.acked), b.unknown, b.reads, b.refused)
}

// end stops the load and demands that every acknowledged transfer is there once, on every
// node, and that the balances are those of the ledger.
func (b *bank) end() {
	t := b.t
	t.Helper()
	await(t, b.g)
	b.goesOn(b.g.Nodes...)
	b.halt()
	same := caughtUp(t, b.g, "SELECT COUNT(*) AS n, SUM(amount) AS s FROM bank.ledger")
	for i, n := range b.g.Nodes {
		if !same[i] {
			continue
		}
		db := servers.Open(t, n.ReadDSN("bank", limits))
		if wrong := text(t, db, `SELECT id, balance FROM account WHERE balance <> 1000
+ (SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE target = account.id) - (SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE source = account.id)`); wrong != "" {
			t.Errorf("node %d: balances that are not those of the ledger:\n%s", n.Number, wrong)
		}
		there := map[string]bool{}
		for _, id := range strings.Fields(text(t, db, "SELECT id FROM ledger")) {
			there[id] = true
		}
		lost := 0
		for _, id := range b.acked {
			if !there[fmt.Sprint(id)] {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("node %d: %d of %d acknowledged transfers are lost", n.Number, lost, len(b.acked))
		}
	}
}

// Under kill -9 of one or all, pauses of one or more and clean stops, money neither comes nor
// goes and no acknowledged transfer is lost.
func TestBank(t *testing.T) {
	g, r := newGroup(t, servers.Options{}), plan(t)
	b := newBank(t, g, r)
	h := &nemesis{t: t, g: g, r: r}
	for until := time.Now().Add(*duration); time.Now().Before(until); {
		time.Sleep(h.upTo(1500 * time.Millisecond))
		n := g.Nodes[r.IntN(len(g.Nodes))]
		switch r.IntN(4) {
		case 0:
			h.down(time.Millisecond, n)
		case 1:
			h.killAll()
		case 2:
			h.pauseSome()
		default:
			if err := n.Stop(patience); err != nil {
				t.Errorf("node %d: %v", n.Number, err)
			}
			start(t, n)
		}
	}
	b.end()
}
