package storage_test

import (
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// looks are the calls that only look at an engine, and may come at any time. h is a table of it.
func looks(eng *storage.Engine, h *dict.Handle) map[string]func() error {
	c, w := eng.Catalog, eng.Tables.NewWorker()
	snap := &trx.Snapshot{CSN: eng.Trx.LastCommitted()}
	id := h.Table().ID()
	return map[string]func() error{
		"EachState":   func() error { return c.EachState(nil, dict.Replicated, func(_, _ []byte) error { return nil }) },
		"GetState":    func() error { _, _, err := c.GetState(nil, dict.Local, []byte("a")); return err },
		"Tables":      func() error { return c.Tables(nil, func(*record.Table) error { return nil }) },
		"Definition":  func() error { _, err := c.Definition(nil, id); return err },
		"TableNames":  func() error { _, err := c.TableNames(nil, "a"); return err },
		"References":  func() error { _, err := c.References(nil, "a", "a"); return err },
		"Schemas":     func() error { _, err := c.Schemas(nil); return err },
		"FindSchema":  func() error { _, err := c.FindSchema(nil, "a"); return err },
		"OpenTable":   func() error { _, err := c.OpenTable(nil, "b", "b"); return err },
		"by ID":       func() error { _, err := c.OpenTableByID(nil, id+1); return err },
		"TableAt":     func() error { _, err := c.TableAt(snap, id); return err },
		"Counters":    func() error { _, _, err := h.Table().Counters(); return err },
		"Hash":        func() error { _, err := w.Hash(h.Table(), snap, nil); return err },
		"StateHash":   func() error { _, err := eng.StateHash(snap.CSN); return err },
		"CounterHash": func() error { _, _, _, err := eng.CounterHash(); return err },
		"Check":       func() error { return eng.Check(table.CheckOnline, func(string) {}) },
		"Set":         func() error { return eng.Set(eng.Settings()) },
		"table's check": func() error {
			_, err := h.Table().Check(table.CheckOptions{}, func(table.Finding) {})
			return err
		},
	}
}

// TestLookAfterClose: who looks at an engine that is closed is told so.
func TestLookAfterClose(t *testing.T) {
	d := newDisk(t)
	d.open()
	h, err := d.eng.Catalog.OpenTable(nil, "a", "a")
	if err != nil {
		t.Fatal(err)
	}
	all := looks(d.eng, h)
	d.close()
	for name, look := range all {
		if err := look(); name != "Counters" && !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := h.Table().Distinct(1, 1); n != 0 {
		t.Errorf("%v values in an index of a closed engine", n)
	}
	_, _, _ = d.eng.Stats(), d.eng.Settings(), d.eng.Catalog.Stats()
	h.Release()
}

// TestCloseEndsLooks: closing waits for who is looking at the engine, and they end early.
func TestCloseEndsLooks(t *testing.T) {
	for _, what := range []string{"check", "hash", "state"} {
		t.Run(what, func(t *testing.T) {
			d := newDisk(t)
			d.open()
			h, err := d.eng.Catalog.OpenTable(nil, "a", "a")
			if err != nil {
				t.Fatal(err)
			}
			begun := make(chan bool)
			asked, looked := 0, false
			until := func() error { // the engine is being closed
				if asked++; asked == 1 {
					close(begun)
				}
				for d.eng.Tables.Closed() == nil {
					env.Real().Yield()
				}
				_, _, err := d.eng.Catalog.GetState(nil, dict.Local, []byte("a"))
				if !errors.Is(err, storage.ErrClosed) {
					t.Errorf("another look from there: %v", err)
				}
				looked = true
				return nil
			}
			look := env.NewGroup(env.Real())
			look.Go("look", func() {
				var err error
				switch snap := (&trx.Snapshot{CSN: d.eng.Trx.LastCommitted()}); what {
				case "check":
					_, err = h.Table().Check(table.CheckOptions{Stop: until}, func(table.Finding) {})
				case "hash":
					_, err = d.eng.Tables.NewWorker().Hash(h.Table(), snap, until)
				case "state":
					err = d.eng.Catalog.Tables(nil, func(*record.Table) error { return until() })
				}
				if !errors.Is(err, storage.ErrClosed) || asked != 1 {
					t.Errorf("asked %d times: %v", asked, err)
				}
				h.Release()
			})
			<-begun
			d.close()
			if !looked {
				t.Error("the engine was closed while somebody looked at it")
			}
			look.Wait()
		})
	}
}
