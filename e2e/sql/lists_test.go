package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/e2e/servers"
)

// Lists are used for a while, so that they stay short: liveLists at a time, each for
// about listLength appends.
const (
	liveLists  = 4
	listLength = 25
)

// lists is a load of transactions that read lists and append to them.
type lists struct {
	t       *testing.T
	g       *servers.Group
	table   string
	level   sql.IsolationLevel
	began   time.Time
	stop    atomic.Bool
	all     sync.WaitGroup
	appends atomic.Int64
	mu      sync.Mutex
	txns    []*history.Txn
}

func (l *lists) client(i int, r *rand.Rand) {
	node := l.g.Nodes[i%len(l.g.Nodes)]
	db, err := sql.Open("mysql", node.DSN("lists", limits))
	if err != nil {
		l.t.Error(err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for n := 0; !l.stop.Load(); n++ {
		x := &history.Txn{Name: fmt.Sprintf("transaction %d of client %d", n, i), Outcome: history.Aborted}
		x.Begin = int64(time.Since(l.began))
		err := l.transact(db, r, x, &sql.TxOptions{Isolation: l.level})
		l.note(x, err)
	}
}

// reader reads on members that may lag: each query is a snapshot of its own.
func (l *lists) reader(i int, r *rand.Rand) {
	db, err := sql.Open("mysql", l.g.Nodes[i%len(l.g.Nodes)].ReadDSN("lists", limits))
	if err != nil {
		l.t.Error(err)
		return
	}
	defer db.Close()
	for n := 0; !l.stop.Load(); n++ {
		x := &history.Txn{Name: fmt.Sprintf("query %d on node %d", n, i+1), Stale: true}
		first := l.key(r) - r.IntN(liveLists)
		err := l.snapshot(db, x, first, first+2*liveLists)
		if err == nil || !documented(err) {
			l.note(x, err)
		}
		time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
	}
}

func (l *lists) note(x *history.Txn, err error) {
	x.End = int64(time.Since(l.began))
	if err != nil && !documented(err) {
		l.t.Errorf("%s saw %v", x.Name, err)
	}
	l.mu.Lock()
	l.txns = append(l.txns, x)
	l.mu.Unlock()
	if n := number(err); err != nil && n != 1213 {
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *lists) key(r *rand.Rand) int { return int(l.appends.Load())/listLength + r.IntN(liveLists) }

// transact runs a transaction, and notes what it did.
func (l *lists) transact(db *sql.DB, r *rand.Rand, x *history.Txn, o *sql.TxOptions) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return err
	}
	for range 1 + r.IntN(4) {
		op := history.Op{Key: l.key(r), Append: r.IntN(2) == 0}
		if op.Append {
			op.Value = int(l.appends.Add(1))
			_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, '%d') ON DUPLICATE KEY UPDATE v = CONCAT(v, ',%d')", l.table, op.Key, op.Value, op.Value))
		} else {
			how := ""
			if op.Locked = r.IntN(4) == 0; op.Locked {
				how = []string{" FOR UPDATE", " FOR SHARE"}[r.IntN(2)]
			}
			var text string
			err = tx.QueryRowContext(ctx, fmt.Sprintf("SELECT v FROM %s WHERE id = %d%s", l.table, op.Key, how)).Scan(&text)
			if errors.Is(err, sql.ErrNoRows) {
				err = nil
			}
			op.Read = l.parse(text)
		}
		if err != nil {
			if op.Append { // it was tried: nobody may ever see it
				x.Ops = append(x.Ops, op)
			}
			_ = tx.Rollback()
			return err
		}
		x.Ops = append(x.Ops, op)
	}
	if err = tx.Commit(); err != nil {
		x.Outcome = history.Unknown
		return err
	}
	x.Outcome = history.Committed
	return nil
}

// snapshot reads the lists from one to another in one query.
func (l *lists) snapshot(db *sql.DB, x *history.Txn, from, to int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT id, v FROM %s WHERE id BETWEEN %d AND %d", l.table, from, to))
	if err != nil {
		return err
	}
	defer rows.Close()
	found := map[int][]int{}
	for rows.Next() {
		var key int
		var text string
		if err := rows.Scan(&key, &text); err != nil {
			return err
		}
		found[key] = l.parse(text)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for key := from; key <= to; key++ {
		x.Ops = append(x.Ops, history.Op{Key: key, Read: found[key]})
	}
	return nil
}

func (l *lists) parse(text string) (list []int) {
	for v := range strings.SplitSeq(text, ",") {
		if v == "" {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			l.t.Errorf("a list is %q", text)
		}
		list = append(list, n)
	}
	return list
}

// TestLists does harm under transactions that read lists and append to them, and
// demands that the history they have seen is one that their isolation level allows.
func TestLists(t *testing.T) {
	g, links := newLinkedGroup(t)
	run(t, servers.Open(t, g.Nodes[0].DSN("", limits)), "CREATE DATABASE IF NOT EXISTS lists")
	for _, test := range []struct {
		name    string
		level   sql.IsolationLevel
		allowed history.Level
	}{
		{"serializable", sql.LevelSerializable, history.Serializable},
		{"repeatable_read", sql.LevelRepeatableRead, history.RepeatableRead},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := plan(t)
			run(t, servers.Open(t, g.Nodes[0].DSN("lists", limits)), "CREATE TABLE IF NOT EXISTS "+test.name+" (id INT PRIMARY KEY, v TEXT NOT NULL)")
			caughtUp(t, g, "SELECT * FROM lists."+test.name)
			l := &lists{t: t, g: g, table: test.name, level: test.level, began: time.Now()}
			l.run(&nemesis{t: t, g: g, l: links, r: r})
			caughtUp(t, g, "SELECT * FROM lists."+test.name)
			final := map[int][]int{}
			all := &history.Txn{}
			db := servers.Open(t, g.Nodes[0].DSN("lists", limits))
			insist(t, "reading all lists", func() error { return l.snapshot(db, all, 0, int(l.appends.Load())/listLength+liveLists) })
			for _, op := range all.Ops {
				final[op.Key] = op.Read
			}
			counts := map[history.Outcome]int{}
			for _, x := range l.txns {
				counts[x.Outcome]++
			}
			t.Logf("%d lists, %d transactions committed, %d rolled back, %d with unknown outcome", len(final),
				counts[history.Committed], counts[history.Aborted], counts[history.Unknown])
			for _, a := range history.Check(l.txns, final, test.allowed) {
				t.Error(a)
			}
		})
	}
}

// run is the load with its faults; the group is whole behind it.
func (l *lists) run(n *nemesis) {
	begin := func(work func(int, *rand.Rand), i int) {
		seed := n.r.Uint64()
		l.all.Go(func() { work(i, rand.New(rand.NewPCG(seed, 0))) })
	}
	for i := range clients {
		begin(l.client, i)
	}
	for i := range l.g.Nodes {
		begin(l.reader, i)
	}
	halt := func() {
		l.stop.Store(true)
		l.all.Wait()
	}
	defer halt()
	n.harm(l.began.Add(*duration / 2))
}
