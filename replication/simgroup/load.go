package simgroup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
)

const (
	accounts = 12
	opening  = 1000 // balance of each account at the beginning
)

var (
	big     = types.Type{Kind: types.KindBigInt, NotNull: true}
	primary = record.Index{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}
)

// setup makes the tables, on whoever leads.
func (w *world) setup() error {
	if !w.within(20*time.Second, func() bool { return w.leader() != nil }) {
		return errors.New("no leader at the beginning")
	}
	for {
		err := w.createTables(w.leader())
		if err == nil || w.sim.Monotonic() > 30*time.Second {
			return err
		}
		env.Sleep(w.sim, 100*time.Millisecond)
		if !w.within(20*time.Second, func() bool { return w.leader() != nil }) {
			return err
		}
	}
}

func (w *world) createTables(n *node) error {
	s, err := n.node.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	run := func(fn func() error) error {
		if err := s.Begin(txn.BeginOptions{}); err != nil {
			return err
		}
		if err := fn(); err != nil {
			_ = s.Rollback()
			return err
		}
		number, err := s.Commit(context.Background())
		w.history.acknowledged(number, w.sim.Monotonic())
		return err
	}
	err = run(func() error {
		_, err := s.CreateSchema(dict.Schema{Name: "bank"}, nil)
		return err
	})
	var exists *sqlerr.Error
	if errors.As(err, &exists) && exists.Number == sqlerr.DBCreateExists {
		err = nil
	}
	tables := []record.Table{
		{Schema: "bank", Name: "accounts", Columns: []record.Column{{ID: 1, Name: "id", Type: big}, {ID: 2, Name: "balance", Type: big}},
			Indexes: []record.Index{primary, {Name: "balance", Parts: []record.Part{{Column: 2}}}}},
		{Schema: "bank", Name: "ops", Columns: []record.Column{{ID: 1, Name: "id", Type: big},
			{ID: 2, Name: "note", Type: types.Type{Kind: types.KindVarChar, Length: 400, Collation: types.CollationUTF8MB40900AI}}},
			Indexes: []record.Index{primary, {Name: "note", Parts: []record.Part{{Column: 2, Prefix: 20}}}}},
	}
	if !w.opt.Plain {
		tables = append(tables, moreTables()...)
	}
	for i := range tables {
		if err != nil {
			return err
		}
		err = run(func() error {
			_, err := s.CreateTable(&tables[i], nil)
			return err
		})
		if errors.As(err, &exists) && exists.Number == sqlerr.TableExistsError {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	err = run(func() error {
		t, err := s.Open("bank", "accounts")
		if err != nil {
			return err
		}
		rows := make([][]types.Value, accounts)
		for i := range rows {
			rows[i] = []types.Value{types.NewInt(int64(i)), types.NewInt(opening)}
		}
		_, err = s.InsertRows(t, rows, false)
		return err
	})
	var duplicate *table.DuplicateError
	if errors.As(err, &duplicate) {
		err = nil // an earlier try got through after all
	}
	if err == nil && !w.opt.Plain {
		err = run(func() error { return makeRegisters(s) })
		if errors.As(err, &duplicate) {
			err = nil
		}
	}
	return err
}

// token is a UUID of version 7 as a client makes it.
func token(now time.Time, id uint64) entry.Token {
	var t entry.Token
	binary.BigEndian.PutUint64(t[:], uint64(now.UnixMilli())<<16)
	binary.BigEndian.PutUint64(t[8:], id)
	return t
}

// transfer moves money between two accounts.
func (w *world) transfer(_ *node, s *txn.Session, rng *rand.Rand, y *try) error {
	from, to := int64(rng.IntN(accounts)), int64(rng.IntN(accounts-1))
	if to >= from {
		to++
	}
	amount := int64(rng.IntN(50))
	y.legs = [...]leg{{from, -amount}, {to, amount}}
	t, err := s.Open("bank", "accounts")
	if err != nil {
		return err
	}
	for i, l := range y.legs {
		balance, err := lockBalance(s, t, l.account)
		if err != nil {
			return err
		}
		key := t.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(l.account))
		before := []types.Value{types.NewInt(l.account), types.NewInt(balance)}
		if _, err := s.Update(t, key, before, []record.Change{{Column: 1, Value: types.NewInt(balance + l.amount)}}); err != nil {
			return err
		}
		if i == 0 && !w.opt.Plain && rng.IntN(4) == 0 {
			if err := w.sumWithin(s, t, -amount); err != nil {
				return err
			}
		}
	}
	y.note = fmt.Sprintf("%d to %d: %d %x", from, to, amount, rng.Perm(1+rng.IntN(60)))
	return nil
}

// sumWithin adds up the balances in a transaction that has changed them by an amount: what its own row
// is built on is in its snapshot, whoever had committed it and whether the group had agreed by then.
func (w *world) sumWithin(s *txn.Session, t *txn.Table, changed int64) error {
	sum, rows, err := sumBalances(s, t)
	if err == nil && (rows != accounts || sum != accounts*opening+changed) {
		w.failf("a transaction that has changed the accounts by %d sees %d with %d together; there were %d with %d", changed, rows, sum, accounts, accounts*opening)
	}
	return err
}

func lockBalance(s *txn.Session, t *txn.Table, account int64) (int64, error) {
	key := t.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(account))
	b := types.NewBatch([]*types.Type{&t.Definition().Columns[1].Type})
	found, err := s.GetLocked(t, key, lock.RecordX, lock.Block, []int{1}, b)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("account %d is gone", account)
	}
	return b.Row(nil, 0)[0].Int(), nil
}

// reader asks for read points and looks at snapshots, everywhere.
func (w *world) reader(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for !w.stop {
		env.Sleep(w.sim, time.Duration(rng.IntN(60))*time.Millisecond)
		up := w.up()
		if len(up) == 0 {
			continue
		}
		n := up[rng.IntN(len(up))]
		opt := group.ReadOptions{Wait: time.Second}
		least := uint64(0)
		switch rng.IntN(5) {
		case 0:
			opt.Consistency = group.Local
			least = n.shown
		case 4:
			opt.Consistency, opt.Bound = group.Bounded, time.Duration(50+rng.IntN(1000))*time.Millisecond
			least = w.bounded(opt.Bound)
		case 1:
			opt.Consistency, opt.Number = group.AtLeast, w.history.acked
			least = opt.Number
		default:
			least = w.history.acked
		}
		g := n.node
		csn, err := g.ReadPoint(opt)
		if err != nil || n.node != g {
			continue
		}
		w.history.reads++
		if opt.Consistency == group.Local {
			n.shown = max(n.shown, csn)
			if w.sim.Monotonic()-n.started >= readTimeout {
				least = 0 // it is not to wait longer
			}
		}
		if csn < least {
			w.failf("node %d: a read of consistency %d saw transactions up to %d, %d had been acknowledged, or seen there, before", n.id, opt.Consistency, csn, least)
		}
		if rng.IntN(4) == 0 {
			w.audit(n, false)
		}
	}
}

// bounded is the highest number that data of such an age must have; 0: nobody knows.
func (w *world) bounded(bound time.Duration) uint64 {
	undated := w.opt.NoLease || slices.ContainsFunc(w.made, func(n *node) bool { return n.old })
	switch {
	case w.untimely, w.disagree && undated:
		return 0
	case w.disagree:
		bound += bound / 8 // which clocks that go faster and slower by a twentieth may make of it
	}
	return w.history.ackedBy(w.sim.Monotonic() - bound)
}

// audit adds up the balances in a snapshot of a node.
func (w *world) audit(n *node, must bool) {
	g := n.node
	s, err := g.NewSession()
	if err == nil {
		defer func() { _ = s.Close() }()
		err = s.Begin(txn.BeginOptions{})
	}
	var t *txn.Table
	if err == nil {
		t, err = s.Open("bank", "accounts")
	}
	sum, rows := int64(0), 0
	if err == nil {
		sum, rows, err = sumBalances(s, t)
	}
	switch {
	case err != nil:
		if must {
			w.failf("node %d: reading the accounts: %v", n.id, err)
		}
	case rows != 0 && (rows != accounts || sum != accounts*opening):
		w.failf("node %d: %d accounts with %d together; there were %d with %d", n.id, rows, sum, accounts, accounts*opening)
	}
}

func sumBalances(s *txn.Session, t *txn.Table) (sum int64, rows int, err error) {
	scan := s.NewScan()
	if err := scan.Start(t, table.Range{Columns: []int{1}}); err != nil {
		return 0, 0, err
	}
	b := types.NewBatch([]*types.Type{&t.Definition().Columns[1].Type})
	var row []types.Value
	for more := true; more; {
		if more, err = scan.Next(b); err != nil {
			return 0, 0, err
		}
		for i := range b.Len() {
			row = b.Row(row[:0], i)
			sum += row[0].Int()
			rows++
		}
	}
	return sum, rows, nil
}
