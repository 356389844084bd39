package crashtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// One client at a time creates, fills, truncates, changes and drops tables of its
// own. In the model they come after the fixed tables; a row with the key existsKey
// says that the table exists.
const (
	ddlTables = 3
	existsKey = -1
)

func ddlName(k int) string { return fmt.Sprint("d", k) }

// ddlRow is what every row of such a table holds.
func ddlRow(id int64) row {
	r := row{name: "d", code: noCode, val: id}
	if id%50 == 7 {
		r.bio = strings.Repeat("b", 9000+int(id)) // off-page
	}
	return r
}

// runDDL runs transactions until the engine halts or n are done.
func (c *client) runDDL(n int) {
	c.ddl = true
	c.w.eng.AwaitRollback(func() bool { return c.w.eng.Err() != nil })
	for range n {
		err := c.ddlTransaction()
		if err != nil {
			if c.w.eng.Err() == nil && !errors.Is(err, errStopped) && !errors.Is(err, file.ErrCrashed) {
				c.w.failf("unexpected error of a schema change: %v", err)
			}
			return
		}
		env.Sleep(c.w.env, time.Duration(c.rng.IntN(20))*time.Millisecond)
	}
}

func (c *client) ddlTransaction() error {
	c.t = c.w.eng.Trx.Begin(trx.Options{LockWait: 200e6})
	c.worker.Use(c.t)
	c.overlay = c.overlay[:0]
	for range 1 + c.rng.IntN(3) {
		err := c.ddlOperation(c.rng.IntN(ddlTables))
		switch {
		case err == nil:
		case isLockError(err) || errors.Is(err, file.ErrNoSpace):
			return c.rollback()
		default:
			return c.abandon(err)
		}
	}
	if c.rng.IntN(4) == 0 {
		return c.rollback()
	}
	return c.commit()
}

// view is the content of a table as the transaction should see it.
func (c *client) view(k int) map[int64]row {
	v := newRows(tables + ddlTables)
	v[tables+k] = maps.Clone(c.w.model.now[tables+k])
	for _, o := range c.overlay {
		if o.table == tables+k {
			v.apply([]change{o})
		}
	}
	return v[tables+k]
}

func (c *client) ddlOperation(k int) error {
	now := c.view(k)
	cat := c.w.eng.Catalog
	if _, exists := now[existsKey]; !exists {
		def := definition(ddlName(k))
		if _, err := cat.CreateTable(c.worker, &def); err != nil {
			return err
		}
		c.note(tables+k, existsKey, &row{})
		if c.rng.IntN(2) == 0 {
			return c.load(k)
		}
		return c.fill(k)
	}
	switch c.rng.IntN(5) {
	case 0:
		if _, err := cat.DropTable(c.worker, "test", ddlName(k)); err != nil {
			return err
		}
		c.noteGone(k, now)
		c.note(tables+k, existsKey, nil)
		return nil
	case 1:
		if _, err := cat.TruncateTable(c.worker, "test", ddlName(k), nil); err != nil {
			return err
		}
		c.noteGone(k, now)
		if c.rng.IntN(2) == 0 {
			return c.load(k)
		}
		return nil
	case 2:
		return c.toggleIndex(k)
	}
	return c.fill(k)
}

func (c *client) noteGone(k int, now map[int64]row) {
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if id != existsKey {
			c.note(tables+k, id, nil)
		}
	}
}

// fill inserts rows behind those that are there.
func (c *client) fill(k int) error {
	h, err := c.w.eng.Catalog.OpenTable(c.t, "test", ddlName(k))
	if err != nil {
		return err
	}
	defer h.Release()
	next := int64(len(c.view(k)) - 1)
	for range c.rng.IntN(30) {
		r := ddlRow(next)
		if err := c.worker.Insert(h.Table(), r.values(next)); err != nil {
			return err
		}
		c.note(tables+k, next, &r)
		next++
	}
	return nil
}

// load fills an empty table that the transaction has just made with a bulk load. If
// that fails, or gives up, the transaction is rolled back and the table with it.
func (c *client) load(k int) error {
	h, err := c.w.eng.Catalog.OpenTable(c.t, "test", ddlName(k))
	if err != nil {
		return err
	}
	defer h.Release()
	l := c.w.eng.Tables.NewWorker().NewLoader(h.Table(), table.LoadOptions{
		FS: c.w.fs, Memory: 1 << 16, Fill: 50 + c.rng.IntN(50)})
	n := int64(c.rng.IntN(1500))
	for id := range n {
		r := ddlRow(id)
		if err := l.Add(r.values(id)); err != nil {
			return err
		}
		c.note(tables+k, id, &r)
	}
	return l.Finish()
}

// toggleIndex drops the last secondary index, or adds one to an empty table.
func (c *client) toggleIndex(k int) error {
	h, err := c.w.eng.Catalog.OpenTable(c.t, "test", ddlName(k))
	if err != nil {
		return err
	}
	def := h.Table().Schema.Table
	h.Release()
	if n := len(def.Indexes); n > 2 {
		_, err = c.w.eng.Catalog.DropIndex(c.worker, def.ID, def.Indexes[n-1].Name)
		return err
	}
	if len(c.view(k)) > 1 {
		return nil // filling an index is the layer above's
	}
	_, err = c.w.eng.Catalog.AddIndex(c.worker, def.ID, record.Index{Name: "val", Parts: []record.Part{{Column: 4}}})
	return err
}

// ddlContent is what an index of such a table holds, as the model counts it.
func (w *world) ddlContent(k int) (map[int64]row, error) {
	t := w.eng.Trx.Begin(trx.Options{})
	defer w.eng.Trx.End(t)
	h, err := w.eng.Catalog.OpenTable(t, "test", ddlName(k))
	var missing *sqlerr.Error
	if errors.As(err, &missing) && missing.Number == 1146 || errors.Is(err, table.ErrNoTable) {
		return map[int64]row{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer h.Release()
	var first map[int64]row
	for i, key := range h.Table().Schema.Keys {
		if key.Building {
			continue
		}
		got, err := w.content(h.Table(), i)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = got
		} else if d := diff(got, first); d != "" {
			return nil, fmt.Errorf("index %s differs from the primary key:\n%s", key.Name, d)
		}
	}
	first[existsKey] = row{}
	return first, nil
}

// fillDisk takes the disk's free space away now and then, until the clients stop.
func (w *world) fillDisk(stop *bool, rng func(int) int) {
	for !*stop {
		env.Sleep(w.env, time.Duration(1+rng(30))*time.Millisecond)
		w.fs.SetCapacity(w.fs.Used() + int64(rng(4))<<14)
		env.Sleep(w.env, time.Duration(1+rng(20))*time.Millisecond)
		w.fs.SetCapacity(0)
	}
}
