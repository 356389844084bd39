package sql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/e2e/servers"
)

// registerCount is how many there are: few, so that clients meet at them.
const registerCount = 6

// registers is a load of single writes, conditional writes and reads.
type registers struct {
	t      *testing.T
	g      *servers.Group
	began  time.Time
	stop   atomic.Bool
	all    sync.WaitGroup
	values atomic.Int64
	mu     sync.Mutex
	ops    []*history.RegisterOp
}

// strong makes reads on the port that only reads miss nothing.
func strong(c *mysql.Config) {
	limits(c)
	c.Params = map[string]string{"trireme_read_consistency": "'STRONG'"}
}

// client writes and reads through one node, reader reads on it.
func (l *registers) client(i int, r *rand.Rand) {
	node := l.g.Nodes[i%len(l.g.Nodes)]
	l.repeat(r, fmt.Sprintf("client %d", i), node.DSN("registers", limits), func(db *sql.DB, o *history.RegisterOp) error {
		if r.IntN(3) == 0 {
			return l.read(db, o)
		}
		return l.write(db, r, o)
	})
}

func (l *registers) reader(i int, r *rand.Rand, stale bool) {
	how := strong
	if stale {
		how = limits
	}
	name := fmt.Sprintf("reader of node %d (stale %v)", i+1, stale)
	l.repeat(r, name, l.g.Nodes[i].ReadDSN("registers", how), func(db *sql.DB, o *history.RegisterOp) error {
		o.Stale = stale
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		o.Begin = int64(time.Since(l.began))
		return l.read(db, o)
	})
}

// repeat does one operation after the other over one connection.
func (l *registers) repeat(r *rand.Rand, name, dsn string, do func(*sql.DB, *history.RegisterOp) error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		l.t.Error(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for n := 0; !l.stop.Load(); n++ {
		o := &history.RegisterOp{Name: fmt.Sprintf("operation %d of %s", n, name), Key: 1 + r.IntN(registerCount), Outcome: history.Aborted}
		o.Begin = int64(time.Since(l.began))
		err := do(db, o)
		o.End = int64(time.Since(l.began))
		if err != nil && !documented(err) {
			l.t.Errorf("%s saw %v", o.Name, err)
		}
		if o.Write || err == nil {
			l.mu.Lock()
			l.ops = append(l.ops, o)
			l.mu.Unlock()
		}
		if k := number(err); err != nil && k != 1213 {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (l *registers) read(db *sql.DB, o *history.RegisterOp) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT v, n FROM registers WHERE id = %d", o.Key)).Scan(&o.Value, &o.Version)
	if err == nil {
		o.Outcome = history.Committed
	}
	return err
}

// write gives a register a new value, or does so if it has the one that was seen just before:
// if not, it is a read with locks.
func (l *registers) write(db *sql.DB, r *rand.Rand, o *history.RegisterOp) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	condition, seen := "", 0
	if r.IntN(2) == 0 {
		if err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT v FROM registers WHERE id = %d", o.Key)).Scan(&seen); err != nil {
			return err
		}
		condition = fmt.Sprintf(" AND v = %d", seen)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	value := int(l.values.Add(1))
	result, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE registers SET v = %d, n = n + 1 WHERE id = %d%s", value, o.Key, condition))
	if err != nil {
		o.Write, o.Value = true, value // nobody may ever see it
		return err
	}
	changed, _ := result.RowsAffected()
	var has, version int
	err = tx.QueryRowContext(ctx, fmt.Sprintf("SELECT v, n FROM registers WHERE id = %d", o.Key)).Scan(&has, &version)
	o.Write, o.Value = changed > 0, value
	if err != nil {
		return err
	}
	if o.Write && has != value || !o.Write && has == seen {
		l.t.Errorf("%s: %d rows were changed to %d where there was %d; then there is %d", o.Name, changed, value, seen, has)
	}
	o.Value = has
	if err := tx.Commit(); err != nil {
		o.Outcome = history.Unknown
		return err
	}
	o.Outcome, o.Version = history.Committed, version
	return nil
}

// TestRegisters demands that what clients see of single rows is linearizable, whatever is done to
// processes and links.
func TestRegisters(t *testing.T) {
	t.Parallel()
	r := plan(t)
	n := newNemesis(t, r)
	db := servers.Open(t, n.g.Nodes[0].DSN("", limits))
	run(t, db, "CREATE DATABASE IF NOT EXISTS registers", "CREATE TABLE IF NOT EXISTS registers.registers (id INT PRIMARY KEY, v BIGINT NOT NULL, n BIGINT NOT NULL)")
	l := &registers{t: t, g: n.g, began: time.Now()}
	for key := 1; key <= registerCount; key++ {
		value := int(l.values.Add(1))
		run(t, db, fmt.Sprintf("INSERT IGNORE INTO registers.registers VALUES (%d, %d, 1)", key, value))
		l.ops = append(l.ops, &history.RegisterOp{Name: "the beginning", Key: key, Write: true, Value: value, Version: 1, Outcome: history.Committed})
	}
	caughtUp(t, n.g, "SELECT * FROM registers.registers")
	begin := func(work func(*rand.Rand)) {
		seed := r.Uint64()
		l.all.Go(func() { work(rand.New(rand.NewPCG(seed, 0))) })
	}
	for i := range clients {
		begin(func(r *rand.Rand) { l.client(i, r) })
	}
	for i := range n.g.Nodes {
		begin(func(r *rand.Rand) { l.reader(i, r, false) })
		begin(func(r *rand.Rand) { l.reader(i, r, true) })
	}
	halt := sync.OnceFunc(func() { l.stop.Store(true); l.all.Wait() })
	defer halt()
	n.harm(time.Now().Add(*duration))
	halt()
	caughtUp(t, n.g, "SELECT * FROM registers.registers")
	for i, node := range n.g.Nodes {
		db := servers.Open(t, node.ReadDSN("registers", limits))
		for key := 1; key <= registerCount; key++ {
			o := &history.RegisterOp{Name: fmt.Sprintf("the end on node %d", i+1), Key: key, Begin: int64(time.Since(l.began))}
			insist(t, "reading a register", func() error { return l.read(db, o) })
			o.End = int64(time.Since(l.began))
			l.ops = append(l.ops, o)
		}
	}
	counts := map[string]int{}
	for _, o := range l.ops {
		counts[fmt.Sprintf("%s, %s", map[bool]string{true: "write", false: "read"}[o.Write],
			[...]string{history.Committed: "committed", history.Aborted: "rolled back", history.Unknown: "unknown"}[o.Outcome])]++
	}
	t.Logf("%v", counts)
	for _, a := range history.CheckRegisters(l.ops) {
		t.Error(a)
	}
}
