package txntest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// SchemaName is the schema of a workload's tables.
const SchemaName = "load"

// Workload runs random transactions on tables of all types: one session of several
// that share the tables.
type Workload struct {
	Tables int  // number of tables, t0 …
	DDL    bool // change definitions as well
	Large  bool // values that go off-page

	// Statistics.
	Committed, RolledBack, Schema int

	rng *rand.Rand
	m   *txn.Manager
	s   *txn.Session
}

// NewWorkload returns a workload with a session of its own.
func NewWorkload(m *txn.Manager, seed uint64) *Workload {
	return &Workload{Tables: 3, rng: rand.New(rand.NewPCG(seed, 7)), m: m, s: m.NewSession()}
}

// Close ends the session.
func (w *Workload) Close() error { return w.s.Close() }

// Setup makes the schema and the tables.
func (w *Workload) Setup() error {
	if err := w.do(func() error {
		_, err := w.s.CreateSchema(dict.Schema{Name: SchemaName, Options: map[string]string{"a": "1", "b": "2"}}, statement("CREATE SCHEMA load"))
		return err
	}); err != nil {
		return err
	}
	for i := range w.Tables {
		if err := w.do(func() error { return w.createTable(fmt.Sprintf("t%d", i)) }); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workload) do(fn func() error) error {
	if err := w.s.Begin(txn.BeginOptions{}); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return errors.Join(err, w.s.Rollback())
	}
	_, err := w.s.Commit(context.Background())
	return err
}

func statement(text string) *event.Query { return &event.Query{Schema: SchemaName, Text: []byte(text)} }

// Run runs n transactions. Errors that belong to ordinary life roll back; others end
// the run.
func (w *Workload) Run(n int) error {
	for range n {
		err := w.transaction()
		switch {
		case err == nil:
			w.Committed++
			continue
		case !ordinary(err):
			return err
		}
		w.RolledBack++
		if err := w.s.Rollback(); err != nil && !errors.Is(err, txn.ErrNoTransaction) {
			return err
		}
	}
	return nil
}

// ordinary reports whether an error is one that a client has to live with.
func ordinary(err error) bool {
	var e *sqlerr.Error
	var dup *table.DuplicateError
	return errors.Is(err, lock.ErrDeadlock) || errors.Is(err, lock.ErrTimeout) || errors.As(err, &dup) || errors.As(err, &e) ||
		errors.Is(err, table.ErrTableChanged) || errors.Is(err, table.ErrNoTable) || errors.Is(err, file.ErrNoSpace) ||
		errors.Is(err, record.ErrRowTooLarge) || errors.Is(err, errChangedMind)
}

var errChangedMind = errors.New("the client rolls back")

func (w *Workload) transaction() error {
	opt := txn.BeginOptions{Options: trx.Options{Isolation: [...]trx.Isolation{trx.RepeatableRead, trx.ReadCommitted, trx.Serializable}[w.rng.IntN(3)],
		LockWait: 50e6}}
	if opt.HasToken = w.rng.IntN(4) == 0; opt.HasToken {
		for i := range opt.Token {
			opt.Token[i] = byte(w.rng.Uint32())
		}
	}
	if err := w.s.Begin(opt); err != nil {
		return err
	}
	change := w.changeRows
	if w.DDL && w.rng.IntN(12) == 0 {
		change = w.changeSchema
	}
	if err := change(); err != nil {
		return err
	}
	if w.rng.IntN(15) == 0 {
		return errChangedMind
	}
	_, err := w.s.Commit(context.Background())
	return err
}

// changeRows runs a few statements.
func (w *Workload) changeRows() error {
	for range 1 + w.rng.IntN(5) {
		if err := w.s.BeginStatement(); err != nil {
			return err
		}
		err := w.statement()
		var dup *table.DuplicateError
		if errors.As(err, &dup) && w.rng.IntN(2) == 0 {
			err = w.s.RollbackStatement()
		}
		if err != nil {
			return err
		}
		switch w.rng.IntN(12) {
		case 0:
			err = w.s.Savepoint("a")
		case 1:
			err = w.s.Savepoint("B")
		case 2:
			err = ignore(w.s.RollbackTo("A"), sqlerr.SPDoesNotExist)
		case 3:
			err = ignore(w.s.Release("b"), sqlerr.SPDoesNotExist)
		case 4:
			err = w.s.RollbackStatement()
		case 5:
			err = w.s.EndStatement()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ignore(err error, number sqlerr.Code) error {
	var e *sqlerr.Error
	if errors.As(err, &e) && e.Number == number {
		return nil
	}
	return err
}

func (w *Workload) name() string { return fmt.Sprintf("t%d", w.rng.IntN(w.Tables)) }

// statement changes rows of one table.
func (w *Workload) statement() error {
	t, err := w.s.Open(SchemaName, w.name())
	if err != nil {
		return err
	}
	if w.rng.IntN(2) == 0 {
		for range 1 + w.rng.IntN(4) {
			if err := w.s.Insert(t, w.row(t), w.rng.IntN(2) == 0); err != nil {
				return err
			}
		}
		return nil
	}
	keys, err := w.keys(t)
	if err != nil || len(keys) == 0 {
		return err
	}
	for range 1 + w.rng.IntN(3) {
		if err := w.changeRow(t, keys[w.rng.IntN(len(keys))]); err != nil {
			return err
		}
	}
	return nil
}

// keys are those of all rows that the transaction sees.
func (w *Workload) keys(t *txn.Table) (keys [][]byte, err error) {
	scan := w.s.NewScan()
	if err := scan.Start(t, table.Range{Keys: true}); err != nil {
		return nil, err
	}
	batch := types.NewBatch(nil)
	for more := true; more; {
		if more, err = scan.Next(batch); err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			keys = append(keys, slices.Clone(scan.Key(i)))
		}
	}
	return keys, nil
}

// changeRow updates or deletes a row.
func (w *Workload) changeRow(t *txn.Table, key []byte) error {
	def := t.Definition()
	changes := w.changes(def)
	var changing []int
	for i := range changes {
		changing = append(changing, changes[i].Column)
	}
	before, err := w.before(t, key, t.Needs(nil, changing))
	if err != nil || before == nil {
		return err
	}
	if w.rng.IntN(4) == 0 {
		before = nil // let it read for itself
	}
	if w.rng.IntN(4) == 0 {
		return w.s.Delete(t, key, before)
	}
	_, err = w.s.Update(t, key, before, changes)
	return err
}

// changes are new values for one to three columns.
func (w *Workload) changes(def *record.Table) []record.Change {
	var changes []record.Change
	for range 1 + w.rng.IntN(3) {
		c := w.rng.IntN(len(def.Columns))
		col := &def.Columns[c]
		if col.Hidden || col.DroppedIn != 0 || col.AutoIncrement || slices.ContainsFunc(changes, func(x record.Change) bool { return x.Column == c }) {
			continue
		}
		changes = append(changes, record.Change{Column: c, Value: w.value(col)})
	}
	return changes
}

// before locks a row and reads columns of it, nil if it is gone.
func (w *Workload) before(t *txn.Table, key []byte, columns []int) ([]types.Value, error) {
	def := t.Definition()
	var kinds []*types.Type
	for _, c := range columns {
		kinds = append(kinds, &def.Columns[c].Type)
	}
	batch := types.NewBatch(kinds)
	found, err := w.s.GetLocked(t, key, lock.RecordX, lock.Block, columns, batch)
	if err != nil || !found {
		return nil, err
	}
	row := make([]types.Value, len(def.Columns))
	for i, v := range batch.Row(nil, 0) {
		row[columns[i]] = v
	}
	return row, nil
}

func (w *Workload) row(t *txn.Table) []types.Value {
	def := t.Definition()
	row := make([]types.Value, len(def.Columns))
	for i := range def.Columns {
		c := &def.Columns[i]
		if c.Hidden || c.DroppedIn != 0 || c.AutoIncrement && w.rng.IntN(8) > 0 {
			continue
		}
		row[i] = w.value(c)
	}
	return row
}

// value is a value for a column: those of keys are from few, so that they meet.
func (w *Workload) value(c *record.Column) types.Value {
	if !c.Type.NotNull && w.rng.IntN(5) == 0 {
		return types.Null
	}
	switch c.Name {
	case "pk", "u":
		return types.NewInt(int64(w.rng.IntN(80)))
	case "name":
		return types.NewString([...]string{"a", "A", "b", "ä", "ss", "ß", "zz", "é"}[w.rng.IntN(8)])
	}
	if w.Large && c.Type.IsLong() && c.Type.Kind != types.KindJSON && w.rng.IntN(6) == 0 {
		b := make([]byte, min(int64(1+w.rng.IntN(40000)), c.Type.MaxBytes()))
		for i := range b {
			b[i] = byte('a' + w.rng.IntN(26))
		}
		return types.NewBytes(b)
	}
	return RandomValue(w.rng, &c.Type)
}
