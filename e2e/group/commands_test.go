package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/simgroup"
)

const (
	accounts = 12
	opening  = 1000 // balance of each account at the beginning
)

var commands = map[string]func(*group.Node, *request, *answer) error{
	"setup":    setUp,
	"transfer": transfer,
	"read":     read,
	"status":   status,
	"check":    check,
	"history":  readHistory,
	"add":      func(n *group.Node, q *request, _ *answer) error { return n.Add(q.Member) },
	"promote":  func(n *group.Node, q *request, _ *answer) error { return n.Promote(q.Member.ID) },
	"replace":  func(n *group.Node, q *request, _ *answer) error { return n.Replace(q.Old, q.Member.ID) },
	"set":      func(n *group.Node, q *request, _ *answer) error { return n.Set(q.Setting, q.Value) },
	"define":   define,
	"remove":   func(n *group.Node, q *request, _ *answer) error { return n.Remove(q.Member.ID) },
	"handover": func(n *group.Node, q *request, _ *answer) error { return n.Transfer(q.Member.ID) },
}

func status(n *group.Node, _ *request, a *answer) error {
	a.Status, a.Members = n.Status(), n.Members()
	if l := n.Log(); l != nil {
		a.Newest, _ = l.Newest()
	}
	return n.Err()
}

// within runs a transaction. Its changes are rolled back if fn fails.
func within(n *group.Node, opt txn.BeginOptions, fn func(*txn.Session) error) (number uint64, err error) {
	s, err := n.NewSession()
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(opt); err != nil {
		return 0, err
	}
	if err := fn(s); err != nil {
		_ = s.Rollback()
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Commit(ctx)
}

// setUp makes the tables and the accounts.
func setUp(n *group.Node, _ *request, a *answer) error {
	big := types.Type{Kind: types.KindBigInt, NotNull: true}
	text := types.Type{Kind: types.KindVarChar, Length: 400, Collation: types.CollationUTF8MB40900AI}
	primary := record.Index{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}
	steps := []func(*txn.Session) error{
		func(s *txn.Session) error {
			_, err := s.CreateSchema(dict.Schema{Name: "bank"}, nil)
			return err
		},
		func(s *txn.Session) error {
			_, err := s.CreateTable(&record.Table{Schema: "bank", Name: "accounts",
				Columns: []record.Column{{ID: 1, Name: "id", Type: big}, {ID: 2, Name: "balance", Type: big}},
				Indexes: []record.Index{primary, {Name: "balance", Parts: []record.Part{{Column: 2}}}}}, nil)
			return err
		},
		func(s *txn.Session) error {
			_, err := s.CreateTable(&record.Table{Schema: "bank", Name: "ops",
				Columns: []record.Column{{ID: 1, Name: "id", Type: big}, {ID: 2, Name: "note", Type: text}},
				Indexes: []record.Index{primary, {Name: "note", Parts: []record.Part{{Column: 2, Prefix: 20}}}}}, nil)
			return err
		},
		func(s *txn.Session) error {
			t, err := s.Open("bank", "accounts")
			for i := 0; i < accounts && err == nil; i++ {
				err = s.Insert(t, []types.Value{types.NewInt(int64(i)), types.NewInt(opening)}, false)
			}
			return err
		},
	}
	for _, step := range steps {
		number, err := within(n, txn.BeginOptions{}, step)
		var e *sqlerr.Error
		var d *table.DuplicateError
		if errors.As(err, &e) && (e.Number == 1007 || e.Number == 1050) || errors.As(err, &d) {
			continue // an earlier attempt got through after all
		}
		if err != nil {
			return err
		}
		a.Number = number
	}
	a.Number = max(a.Number, n.Status().Number) // also if all of it was there
	return nil
}

// transfer moves money between two accounts and leaves a row that says so.
func transfer(n *group.Node, q *request, a *answer) error {
	a.Outcome = refused
	if q.Ask {
		number, found, err := n.Used(q.Token)
		if err != nil || found {
			a.Number = number
			a.Outcome = map[bool]outcome{true: committed, false: refused}[found]
			return err
		}
	}
	s, err := n.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{HasToken: true, Token: q.Token}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.Limit)
	defer cancel()
	err = move(s, q)
	var taken *table.DuplicateError
	if errors.As(err, &taken) {
		return transferred(ctx, n, s, q, a)
	}
	if err == nil && q.Abort {
		err = errors.New("the client changed its mind")
	}
	if err != nil {
		_ = s.Rollback()
		return err
	}
	a.Number, err = s.Commit(ctx)
	var used *commit.TokenUsedError
	switch {
	case err == nil:
		a.Outcome = committed
	case errors.As(err, &used):
		a.Outcome, a.Number, err = committed, used.Number, nil
	case errors.Is(err, txn.ErrOutcomeUnknown), errors.Is(err, commit.ErrTokenInFlight):
		a.Outcome = unknown
	}
	return err
}

// transferred answers for an earlier attempt whose row is there.
func transferred(ctx context.Context, n *group.Node, s *txn.Session, q *request, a *answer) error {
	if err := s.Settle(ctx); err != nil { // whoever hears of the other transaction relies on it
		return err
	}
	_ = s.Rollback()
	number, found, err := n.Used(q.Token)
	switch {
	case err != nil:
		a.Outcome = unknown
	case !found:
		a.Fault = fmt.Sprintf("the row of operation %x is there, but its token is not known", q.Op)
	default:
		a.Outcome, a.Number = committed, number
	}
	return err
}

func move(s *txn.Session, q *request) error {
	t, err := s.Open("bank", "accounts")
	if err != nil {
		return err
	}
	for _, leg := range [...]struct{ account, amount int64 }{{q.From, -q.Amount}, {q.To, q.Amount}} {
		key := t.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(leg.account))
		b := types.NewBatch([]*types.Type{&t.Definition().Columns[1].Type})
		found, err := s.GetLocked(t, key, lock.RecordX, lock.Block, []int{1}, b)
		if err == nil && !found {
			err = fmt.Errorf("account %d is gone", leg.account)
		}
		if err != nil {
			return err
		}
		balance := b.Row(nil, 0)[0].Int()
		before := []types.Value{types.NewInt(leg.account), types.NewInt(balance)}
		if _, err := s.Update(t, key, before, []record.Change{{Column: 1, Value: types.NewInt(balance + leg.amount)}}); err != nil {
			return err
		}
	}
	ops, err := s.Open("bank", "ops")
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%d to %d: %d %s", q.From, q.To, q.Amount, strings.Repeat("-", int(q.Op%300)))
	return s.Insert(ops, []types.Value{types.NewInt(int64(q.Op)), types.NewString(note)}, false)
}

// read finds a read point, adds up the balances in a snapshot there and looks for
// operations.
func read(n *group.Node, q *request, a *answer) error {
	number, err := n.ReadPoint(group.ReadOptions{Consistency: q.Consistency, Number: q.Number, Bound: q.Bound, Wait: q.Limit})
	if err != nil {
		return err
	}
	a.Number = number
	s, err := n.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		return err
	}
	if at, err := s.Snapshot(); err != nil || at < number {
		return errors.Join(err, fmt.Errorf("the snapshot is of transaction %d, the read point of %d", at, number))
	}
	balances, err := column(s, "accounts", 1)
	if err != nil {
		return err
	}
	a.Rows = len(balances)
	for _, b := range balances {
		a.Sum += b
	}
	return find(s, q.Ops, a)
}

func find(s *txn.Session, ops []uint64, a *answer) error {
	t, err := s.Open("bank", "ops")
	for i := 0; i < len(ops) && err == nil; i++ {
		found := false
		b := types.NewBatch([]*types.Type{&t.Definition().Columns[0].Type})
		found, err = s.Get(t, t.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(int64(ops[i]))), []int{0}, b)
		if !found {
			a.Missing = append(a.Missing, ops[i])
		}
	}
	return err
}

// column reads a column of numbers of a whole table.
func column(s *txn.Session, name string, position int) (values []int64, err error) {
	t, err := s.Open("bank", name)
	if err != nil {
		return nil, err
	}
	scan := s.NewScan()
	if err := scan.Start(t, table.Range{Columns: []int{position}}); err != nil {
		return nil, err
	}
	b := types.NewBatch([]*types.Type{&t.Definition().Columns[position].Type})
	var row []types.Value
	for more := true; more; {
		if more, err = scan.Next(b); err != nil {
			return nil, err
		}
		for i := range b.Len() {
			row = b.Row(row[:0], i)
			values = append(values, row[0].Int())
		}
	}
	return values, nil
}

// check returns the state hash at a number, the closed files and the operations.
func check(n *group.Node, q *request, a *answer) error {
	e, err := n.Engine()
	if err != nil {
		return err
	}
	hash, err := e.StateHash(q.Number)
	if err != nil {
		return err
	}
	a.Hash = fmt.Sprintf("%x", hash)
	for _, f := range n.Log().Files() {
		if f.Closed {
			a.Closed = append(a.Closed, f.Name)
		}
	}
	if a.Marks, err = marks(n); err != nil {
		return err
	}
	_, err = within(n, txn.BeginOptions{}, func(s *txn.Session) error {
		ids, err := column(s, "ops", 0)
		for _, id := range ids {
			a.Ids = append(a.Ids, uint64(id))
		}
		return err
	})
	return err
}

// readHistory returns the operations in the log.
func readHistory(n *group.Node, _ *request, a *answer) error {
	e, err := n.Engine()
	if err != nil {
		return err
	}
	h, err := e.Catalog.OpenTable(nil, "bank", "ops")
	if err != nil {
		return err
	}
	defer h.Release()
	a.Log, a.LogFrom, err = simgroup.ReadLog(n.Log(), h.Table().Schema.Table)
	return err
}
