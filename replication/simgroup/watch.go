package simgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/triremedb/trireme/e2e/history"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
)

// snap is what a reader has seen of the lists in one snapshot of a member.
type snap struct {
	node     uint64
	snapshot uint64 // its number
	txn      *history.Txn
}

// watcher asks members for read points, and reads values there.
func (w *world) watcher(number int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := 0; !w.stop; i++ {
		env.Sleep(w.sim, time.Duration(rng.IntN(60))*time.Millisecond)
		up := w.up()
		if len(up) == 0 {
			continue
		}
		n := up[rng.IntN(len(up))]
		if rng.IntN(2) == 0 {
			if n = w.server(rng); n == nil { // an old leader is the one to doubt
				continue
			}
		}
		v := &view{w: w, n: n, rng: rng, name: fmt.Sprintf("read %d of watcher %d on node %d", i, number, n.id),
			least: w.history.acked, newest: w.history.newest, opt: group.ReadOptions{Wait: time.Second}}
		v.snap = &snap{node: n.id, txn: &history.Txn{Name: v.name, Begin: w.history.now()}}
		switch rng.IntN(5) {
		case 4:
			v.opt.Consistency, v.opt.Bound, v.newest, v.snap.txn.Stale = group.Bounded, time.Duration(50+rng.IntN(1000))*time.Millisecond, nil, true
			v.least = w.bounded(v.opt.Bound)
		case 0:
			v.opt.Consistency, v.newest, v.snap.txn.Stale = group.Local, nil, true
		case 1: // it may miss what another read has seen and nobody has acknowledged
			v.opt.Consistency, v.opt.Number, v.snap.txn.Stale = group.AtLeast, w.history.acked, true
		}
		var err error
		n.env.Run(func() { err = v.take() })
		if err != nil || n.node != v.g {
			continue // the process that answered may have been dead by then
		}
		w.keep(v)
	}
}

// view is a read of several values on a member.
type view struct {
	w      *world
	n      *node
	rng    *rand.Rand
	name   string
	opt    group.ReadOptions
	least  uint64 // the number that it must have reached
	newest *op    // that it must see
	g      *group.Node
	snap   *snap
	saw    []sight
	wrong  string
}

// old reports whether the read may miss what was acknowledged before it.
func (v *view) old() bool {
	return v.opt.Consistency == group.Local || v.opt.Consistency == group.Bounded
}

// take reads. Errors are of members that do not serve.
func (v *view) take() error {
	g := v.n.node
	if v.g = g; g == nil {
		return group.ErrStopped
	}
	if v.opt.Consistency == group.Local {
		v.least = v.n.shown
	}
	point, err := g.ReadPoint(v.opt)
	if err != nil {
		return err
	}
	s, err := g.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{Options: trx.Options{ReadOnly: true}}); err != nil {
		return err
	}
	if v.rng.IntN(2) == 0 {
		if v.snap.snapshot = point; s.ReadAt(point) != nil {
			return errors.New("the snapshot is too old")
		}
	} else if v.snap.snapshot, err = s.Snapshot(); err != nil {
		return err
	}
	if v.snap.snapshot < point {
		v.wrong = fmt.Sprintf("a snapshot at transaction %d behind its read point %d", v.snap.snapshot, point)
	}
	return errors.Join(v.seeNewest(s), v.seeLists(s), v.seeRegister(s), v.seeSums(s))
}

// seeNewest looks for the newest operation that had been acknowledged.
func (v *view) seeNewest(s *txn.Session) error {
	if v.newest == nil {
		return nil
	}
	t, err := s.Open("bank", "ops")
	if err != nil {
		return err
	}
	row, err := read(s, t, int64(v.newest.id), false, 0, 1)
	if err == nil && row == nil {
		v.wrong = fmt.Sprintf("operation %x, which had been acknowledged as transaction %d, is not there",
			v.newest.id, v.newest.number)
	}
	return err
}

func (v *view) seeLists(s *txn.Session) error {
	t, err := s.Open("bank", "lists")
	if err != nil {
		return err
	}
	for slot := range listSlots {
		list := v.w.list(slot)
		if v.rng.IntN(8) == 0 && list >= listSlots {
			list -= listSlots
		}
		items, _, err := v.w.readList(s, t, list, false)
		if err != nil {
			return err
		}
		v.snap.txn.Ops = append(v.snap.txn.Ops, history.Op{Key: list, Read: items})
	}
	return nil
}

func (v *view) seeRegister(s *txn.Session) error {
	t, err := s.Open("bank", "registers")
	if err != nil {
		return err
	}
	row, err := read(s, t, v.rng.Int64N(registers), false, 0, 0, 1)
	if err == nil && row != nil {
		v.saw = append(v.saw, sight{reader: v.name, register: row[0].Int(), value: row[1].Int(),
			began: v.snap.txn.Begin, stale: v.old(), snapshot: v.snap.snapshot})
	}
	return err
}

// seeSums adds up balances, and looks for children without parents, now and then.
func (v *view) seeSums(s *txn.Session) error {
	if v.rng.IntN(6) != 0 {
		return nil
	}
	t, err := s.Open("bank", "accounts")
	if err != nil {
		return err
	}
	sum, rows, err := sumBalances(s, t)
	early := rows == 0 && v.old() // it may not have come to the deposits yet
	if err == nil && !early && (rows != accounts || sum != accounts*opening) {
		v.wrong = fmt.Sprintf("%d accounts with %d together; there are %d with %d", rows, sum, accounts,
			accounts*opening)
	}
	if err != nil {
		return err
	}
	parents, err := rowsOf(s, "parents", 0)
	if err != nil {
		return err
	}
	children, err := rowsOf(s, "children", 0, 1)
	if orphan := orphanOf(parents, children); err == nil && orphan != "" {
		v.wrong = orphan
	}
	return err
}

// orphanOf names a child whose parent is not there; empty: there is none.
func orphanOf(parents, children [][]types.Value) string {
	known := map[int64]bool{}
	for _, p := range parents {
		known[p[0].Int()] = true
	}
	for _, c := range children {
		if !known[c[1].Int()] {
			return fmt.Sprintf("child %d has parent %d, which is not there", c[0].Int(), c[1].Int())
		}
	}
	return ""
}

// rowsOf reads columns of all rows of a table.
func rowsOf(s *txn.Session, name string, columns ...int) (rows [][]types.Value, err error) {
	t, err := s.Open("bank", name)
	if err != nil {
		return nil, err
	}
	kinds := make([]*types.Type, len(columns))
	for i, c := range columns {
		kinds[i] = &t.Definition().Columns[c].Type
	}
	scan, b := s.NewScan(), types.NewBatch(kinds)
	if err := scan.Start(t, table.Range{Columns: columns}); err != nil {
		return nil, err
	}
	for more := true; more; {
		if more, err = scan.Next(b); err != nil {
			return nil, err
		}
		for i := range b.Len() {
			row := b.Row(nil, i)
			for c := range row {
				row[c] = row[c].Clone()
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// keep judges a read by itself and keeps it for the end.
func (w *world) keep(v *view) {
	h, n := &w.history, v.n
	h.reads++
	v.snap.txn.End = h.now()
	if v.opt.Consistency == group.Local {
		n.shown = max(n.shown, v.snap.snapshot)
		if w.sim.Monotonic()-n.started >= readTimeout*9/10 {
			v.least = 0 // it is not to wait longer, by its own clock
		}
	}
	switch {
	case v.snap.snapshot < v.least:
		w.failf("%s of consistency %d saw transactions up to %d, %d had been acknowledged, or seen there, before",
			v.name, v.opt.Consistency, v.snap.snapshot, v.least)
	case v.wrong != "":
		w.failf("%s, at transaction %d: %s", v.name, v.snap.snapshot, v.wrong)
	}
	h.snaps = append(h.snaps, v.snap)
	h.saw = append(h.saw, v.saw...)
}
