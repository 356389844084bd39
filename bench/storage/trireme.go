package main

import (
	"fmt"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// ours is our engine with the table.
type ours struct {
	eng  *storage.Engine
	tbl  *table.Table
	held *dict.Handle
}

func openOurs(dir string, opt storage.Options) (*ours, error) {
	opt.FS, opt.Env = file.OS(dir), env.Real()
	eng, err := storage.Open(opt)
	if err != nil {
		return nil, err
	}
	o := &ours{eng: eng}
	s := eng.NewSession()
	s.Begin(trx.Options{})
	if _, err := eng.Catalog.CreateSchema(s.Worker(), dict.Schema{Name: "bench"}); err != nil {
		return nil, err
	}
	if _, err := eng.Catalog.CreateTable(s.Worker(), definition()); err != nil {
		return nil, err
	}
	if _, err := s.Commit(); err != nil {
		return nil, err
	}
	if o.held, err = eng.Catalog.OpenTable(nil, "bench", "orders"); err != nil {
		return nil, err
	}
	o.tbl = o.held.Table()
	return o, nil
}

func (o *ours) close() error {
	o.held.Release()
	return o.eng.Close()
}

// load inserts rows in the order of their ids, 1,000 a transaction.
func (o *ours) load(rows int) error {
	w := o.writer()
	for from := 0; from < rows; from += 1000 {
		err := w.batch(min(1000, rows-from), func(i int) int64 { return int64(from+i) * idStep })
		if err != nil {
			return err
		}
	}
	return nil
}

// oursWriter inserts batches.
type oursWriter struct {
	o *ours
	s *storage.Session
	m maker
}

func (o *ours) writer() writer { return &oursWriter{o: o, s: o.eng.NewSession()} }

func (w *oursWriter) batch(n int, id func(i int) int64) error {
	w.s.Begin(trx.Options{})
	for i := range n {
		if err := w.s.Worker().Insert(w.o.tbl, w.m.make(id(i))); err != nil {
			return err
		}
	}
	_, err := w.s.Commit()
	return err
}

// oursReader reads in transactions of its own.
type oursReader struct {
	o     *ours
	s     *storage.Session
	key   []byte
	batch *types.Batch
}

// allColumns are the positions of a whole row.
func allColumns() []int {
	all := make([]int, columns)
	for i := range all {
		all[i] = i
	}
	return all
}

var wholeRow = allColumns()

func newBatch(def *record.Table, cols []int) *types.Batch {
	var list []*types.Type
	for _, c := range cols {
		list = append(list, &def.Columns[c].Type)
	}
	return types.NewBatch(list)
}

func (o *ours) reader() reader {
	return &oursReader{o: o, s: o.eng.NewSession(), batch: newBatch(o.tbl.Schema.Table, wholeRow)}
}

func (r *oursReader) get(id int64) error {
	r.s.Begin(trx.Options{ReadOnly: true})
	r.batch.Reset()
	r.key = r.o.tbl.Schema.Keys[0].AppendKey(r.key[:0], types.NewInt(id))
	found, err := r.s.Worker().Get(r.o.tbl, r.key, r.s.Trx().Snapshot(), wholeRow, r.batch)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("row %d is missing", id)
	}
	if got := r.batch.Vecs[colAmount].Int64s()[0]; got != amountOf(id) {
		return fmt.Errorf("row %d has amount %d", id, got)
	}
	_, err = r.s.Commit()
	return err
}

// oursScanner scans the whole table.
type oursScanner struct {
	o     *ours
	s     *storage.Session
	cols  []int
	batch *types.Batch
	sc    table.Scanner
}

func (o *ours) scanner(cols []int) scanner {
	return &oursScanner{o: o, s: o.eng.NewSession(), cols: cols, batch: newBatch(o.tbl.Schema.Table, cols)}
}

func (c *oursScanner) scan() (rows int, sum int64, err error) {
	c.s.Begin(trx.Options{ReadOnly: true})
	if err := c.sc.Start(c.s.Worker(), c.o.tbl, c.s.Trx().Snapshot(), table.Range{Columns: c.cols}); err != nil {
		return 0, 0, err
	}
	at := position(c.cols, colAmount)
	for more := true; more; {
		if more, err = c.sc.Next(c.batch); err != nil {
			return 0, 0, err
		}
		rows += c.batch.Len()
		sum += sumOf(c.batch.Vecs[at].Int64s())
	}
	_, err = c.s.Commit()
	return rows, sum, err
}

func sumOf(values []int64) (sum int64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func position(list []int, want int) int {
	for i, c := range list {
		if c == want {
			return i
		}
	}
	return -1
}
