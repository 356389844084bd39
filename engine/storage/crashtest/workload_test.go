package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
)

const (
	tables   = 2
	keySpace = 120
)

// Positions of the test table's columns.
const (
	colID = iota
	colName
	colCode
	colVal
	colBio
)

func definition(name string) record.Table {
	integer := func(null bool) types.Type { return types.Type{Kind: types.KindBigInt, NotNull: !null} }
	return record.Table{
		Schema: "test", Name: name, RowVersion: 1, NextColumn: 6,
		Columns: []record.Column{
			{ID: 1, Name: "id", Type: integer(false), AddedIn: 1},
			{ID: 2, Name: "name", Type: types.Type{Kind: types.KindVarChar, Length: 200, NotNull: true, Collation: types.CollationUTF8MB40900AI}, AddedIn: 1},
			{ID: 3, Name: "code", Type: integer(true), AddedIn: 1},
			{ID: 4, Name: "val", Type: integer(false), AddedIn: 1},
			{ID: 5, Name: "bio", Type: types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}, AddedIn: 1},
		},
		Indexes: []record.Index{
			{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "code", Unique: true, Parts: []record.Part{{Column: 3}}},
			{Name: "name_val", Parts: []record.Part{{Column: 2}, {Column: 4, Desc: true}}},
		},
	}
}

// world is a run: the engine, its tables and the model.
type world struct {
	env     env.Env
	eng     *storage.Engine
	tables  []*table.Table
	model   *model
	commits *env.Mutex
	fails   []string
	fs      *simfile.FS

	early   bool // locks may be released before the commit is finished
	again   bool // not the first life: what the crash has left in doubt may be rolled back beside new work
	beside  bool // compare does not wait for what is rolled back beside new work
	pending []pendingTrx
	lost    [][]change // committed, but undone by the last crash
}

// failf notes a failure. Once the disk is gone nothing counts any more: a change in
// memory may be half done.
func (w *world) failf(format string, args ...any) {
	if len(w.fails) < 5 && !w.fs.Crashed() {
		w.fails = append(w.fails, fmt.Sprintf(format, args...))
	}
}

// client is one task's transactions.
type client struct {
	w       *world
	rng     *rand.Rand
	worker  *table.Worker
	t       *trx.Trx
	overlay []change
	scanner table.Scanner
	ddl     bool
}

// errStopped ends a client: the engine has halted, as it does after a crash.
var errStopped = errors.New("stopped")

// run runs transactions until the engine halts or n are done.
func (c *client) run(n int) {
	for range n {
		if err := c.transaction(); err != nil {
			if c.w.eng.Err() == nil && !errors.Is(err, errStopped) && !errors.Is(err, file.ErrCrashed) {
				c.w.failf("unexpected error: %v", err)
			}
			return
		}
	}
}

// transaction runs one transaction of a few operations. Lock errors roll it back.
func (c *client) transaction() error {
	iso := []trx.Isolation{trx.RepeatableRead, trx.RepeatableRead, trx.ReadCommitted}[c.rng.IntN(3)]
	c.t = c.w.eng.Trx.Begin(trx.Options{Isolation: iso, LockWait: 200e6})
	c.worker.Use(c.t)
	c.overlay = c.overlay[:0]
	ops := 1 + c.rng.IntN(6)
	if c.rng.IntN(10) == 0 {
		ops = 30
	}
	for range ops {
		err := c.operation(iso)
		switch {
		case err == nil:
		case isLockError(err) || c.w.again && errors.Is(err, table.ErrEntryFailed) || errors.Is(err, file.ErrNoSpace) && c.rng.IntN(2) == 0:
			return c.rollback()
		case errors.Is(err, file.ErrNoSpace):
		default:
			return c.abandon(err)
		}
	}
	if c.rng.IntN(6) == 0 {
		return c.rollback()
	}
	return c.commit()
}

// isLockError: the transaction is rolled back for it. Beside the rollback of what a crash has left in doubt there is
// table.ErrEntryFailed, too: who has waited for a row of the newest transaction finds that of the one before it.
func isLockError(err error) bool {
	return errors.Is(err, lock.ErrDeadlock) || errors.Is(err, lock.ErrTimeout)
}

// abandon leaves the transaction as it is: the engine is dead, or the run fails.
func (c *client) abandon(err error) error {
	if c.w.eng.Err() != nil {
		return errStopped
	}
	return err
}

func (c *client) rollback() error {
	if err := c.worker.Rollback(); err != nil {
		return c.abandon(err)
	}
	c.w.eng.Catalog.RolledBack(c.t)
	c.w.eng.Trx.End(c.t)
	return nil
}

func (c *client) commit() error {
	if !c.t.HasChanges() {
		c.w.eng.Trx.End(c.t)
		return nil
	}
	c.t.StartCommit()
	c.w.commits.Lock()
	if c.w.eng.Err() != nil {
		c.w.commits.Unlock()
		return errStopped
	}
	early := c.w.early && !c.ddl && c.rng.IntN(4) > 0
	c.w.propose(c.t, append([]change(nil), c.overlay...), early)
	n := len(c.w.pending)
	if early && n < pendingMax {
		n = max(0, c.rng.IntN(4*n)-3*n)
	}
	err := c.w.finish(n)
	csn := c.w.model.last()
	c.w.commits.Unlock()
	if err != nil {
		return c.abandon(err)
	}
	if c.rng.IntN(8) == 0 {
		if err := c.w.eng.Log.FlushTo(c.w.eng.Trx.CommitLSN()); err != nil {
			return c.abandon(err)
		}
		c.w.model.durable = max(c.w.model.durable, csn)
	}
	return nil
}

// operation runs one statement; a failed one leaves nothing behind.
func (c *client) operation(iso trx.Isolation) error {
	n := c.rng.IntN(tables)
	tbl := c.w.tables[n]
	id := c.rng.Int64N(keySpace)
	switch c.rng.IntN(10) {
	case 0:
		return c.insertRows(n, tbl, id)
	case 1, 2, 3:
		r := c.randomRow()
		err := c.worker.Insert(tbl, r.values(id))
		var dup *table.DuplicateError
		if errors.As(err, &dup) {
			return nil
		}
		if err == nil {
			c.note(n, id, &r)
		}
		return err
	case 4, 5, 6:
		return c.change(n, tbl, id, false)
	case 7:
		return c.change(n, tbl, id, true)
	case 8:
		return c.savepoint(n, tbl)
	default:
		if iso != trx.RepeatableRead {
			return nil
		}
		return c.read(n, tbl)
	}
}

// insertRows inserts rows together, mostly in the order of their keys.
func (c *client) insertRows(n int, tbl *table.Table, id int64) error {
	var rows []row
	var ids []int64
	var values [][]types.Value
	for range 1 + c.rng.IntN(12) {
		r := c.randomRow()
		if c.rng.IntN(3) > 0 {
			r.code = noCode
		}
		rows, ids, values = append(rows, r), append(ids, id), append(values, r.values(id))
		if id = (id + 1) % keySpace; c.rng.IntN(8) == 0 {
			id = c.rng.Int64N(keySpace)
		}
	}
	_, err := c.worker.InsertRows(tbl, values)
	var dup *table.DuplicateError
	if errors.As(err, &dup) {
		return nil
	}
	for i := range rows {
		if err == nil {
			c.note(n, ids[i], &rows[i])
		}
	}
	return err
}

func (c *client) note(n int, id int64, r *row) {
	if r != nil {
		copied := *r
		r = &copied
	}
	c.overlay = append(c.overlay, change{n, id, r})
}

// change locks a row, compares it with the model, and updates or deletes it.
func (c *client) change(n int, tbl *table.Table, id int64, remove bool) error {
	key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))
	got, err := c.scan(tbl, table.Range{Low: key, High: key, Locking: true, Lock: lock.RecordX})
	if err != nil {
		return err
	}
	if _, there := got[id]; !there && c.t.Isolation() != trx.RepeatableRead {
		return nil // nothing is locked: the row may be there by now
	}
	want := newRows(tables + ddlTables)
	if r, ok := c.w.model.now[n][id]; ok {
		want[n][id] = r
	}
	for _, o := range c.overlay {
		if o.table == n && o.id == id {
			want.apply([]change{o})
		}
	}
	if d := diff(got, want[n]); d != "" {
		c.w.failf("locking read of %d in table %d:\n%s", id, n, d)
		return errStopped
	}
	old, ok := got[id]
	if !ok {
		return nil
	}
	if remove {
		err := c.worker.Delete(tbl, key)
		if err == nil {
			c.note(n, id, nil)
		}
		return err
	}
	changes := c.randomChanges(&old)
	err = c.worker.Update(tbl, key, changes)
	var dup *table.DuplicateError
	if errors.As(err, &dup) {
		return nil
	}
	if err == nil {
		c.note(n, id, &old)
	}
	return err
}

// savepoint inserts some rows and takes them back.
func (c *client) savepoint(n int, tbl *table.Table) error {
	mark := c.worker.Savepoint()
	for range 1 + c.rng.IntN(4) {
		err := c.worker.Insert(tbl, c.randomRow().values(c.rng.Int64N(keySpace)))
		var dup *table.DuplicateError
		if err != nil && !errors.As(err, &dup) {
			if uerr := c.worker.RollbackTo(mark); uerr != nil {
				return uerr
			}
			return err
		}
	}
	return c.worker.RollbackTo(mark)
}

// read compares what the transaction's snapshot sees with the model.
func (c *client) read(n int, tbl *table.Table) error {
	snap := c.t.Snapshot()
	index := c.rng.IntN(3)
	got, err := c.scanAt(tbl, snap, table.Range{Index: index, Backward: c.rng.IntN(2) == 0})
	if err != nil {
		return err
	}
	if snap.CSN < c.w.model.baseCSN {
		c.w.failf("snapshot %d in a life that began at %d", snap.CSN, c.w.model.baseCSN)
		return errStopped
	}
	want := c.w.model.at(snap.CSN)
	want.apply(c.overlay)
	if d := diff(got, want[n]); d != "" {
		c.w.failf("snapshot %d of table %d by index %d:\n%s", snap.CSN, n, index, d)
		return errStopped
	}
	return nil
}

func (c *client) scan(tbl *table.Table, r table.Range) (map[int64]row, error) {
	return c.scanAt(tbl, nil, r)
}

func (c *client) scanAt(tbl *table.Table, snap *trx.Snapshot, r table.Range) (map[int64]row, error) {
	return scanRows(c.worker, &c.scanner, tbl, snap, r)
}

// scanRows reads a range; a row that comes twice is an error.
func scanRows(w *table.Worker, sc *table.Scanner, tbl *table.Table, snap *trx.Snapshot, r table.Range) (map[int64]row, error) {
	var cols []*types.Type
	for i := range tbl.Schema.Columns {
		r.Columns = append(r.Columns, i)
		cols = append(cols, &tbl.Schema.Columns[i].Type)
	}
	if err := sc.Start(w, tbl, snap, r); err != nil {
		return nil, err
	}
	batch := types.NewBatch(cols)
	out := map[int64]row{}
	for more := true; more; {
		var err error
		if more, err = sc.Next(batch); err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			v := batch.Row(nil, i)
			id := v[colID].Int()
			if _, twice := out[id]; twice {
				return nil, fmt.Errorf("row %d comes twice", id)
			}
			r := row{name: string(v[colName].Bytes()), code: noCode, val: v[colVal].Int(), bio: string(v[colBio].Bytes())}
			if !v[colCode].IsNull() {
				r.code = v[colCode].Int()
			}
			out[id] = r
		}
	}
	return out, nil
}

func (r row) values(id int64) []types.Value {
	code := types.Null
	if r.code != noCode {
		code = types.NewInt(r.code)
	}
	return []types.Value{types.NewInt(id), types.NewString(r.name), code, types.NewInt(r.val), types.NewString(r.bio)}
}

var names = []string{"anna", "Anna", "bert", "carla", "dora", "emil", "Émil", "fritz"}

func (c *client) randomRow() row {
	return row{name: c.randomName(), code: c.randomCode(), val: c.rng.Int64N(1000), bio: c.randomBio()}
}

func (c *client) randomName() string {
	return names[c.rng.IntN(len(names))] + strings.Repeat("x", c.rng.IntN(3)*40)
}

func (c *client) randomCode() int64 {
	if c.rng.IntN(3) == 0 {
		return noCode
	}
	return c.rng.Int64N(keySpace * 2)
}

func (c *client) randomBio() string {
	n := c.rng.IntN(200)
	switch c.rng.IntN(12) {
	case 0:
		n = 3000
	case 1:
		n = 9000 + c.rng.IntN(40000)
	}
	return strings.Repeat(string(rune('a'+c.rng.IntN(26))), n)
}

// randomChanges picks new values for some columns and puts them into r.
func (c *client) randomChanges(r *row) []record.Change {
	var changes []record.Change
	if c.rng.IntN(3) == 0 {
		r.name = c.randomName()
		changes = append(changes, record.Change{Column: colName, Value: types.NewString(r.name)})
	}
	if c.rng.IntN(3) == 0 {
		r.code = c.randomCode()
		changes = append(changes, record.Change{Column: colCode, Value: r.values(0)[colCode]})
	}
	if c.rng.IntN(4) == 0 {
		r.bio = c.randomBio()
		changes = append(changes, record.Change{Column: colBio, Value: types.NewString(r.bio)})
	}
	r.val++
	return append(changes, record.Change{Column: colVal, Value: types.NewInt(r.val)})
}
