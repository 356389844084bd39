package crashtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// open opens the engine with random options; create makes the tables as well.
func (w *world) open(fs *simfile.FS, rng *rand.Rand, create bool) error {
	return w.openWith(options(w.env, fs, rng), create)
}

func (w *world) openWith(opt storage.Options, create bool) error {
	eng, err := storage.Open(opt)
	if err != nil {
		return err
	}
	w.eng, w.tables = eng, nil
	w.fs = opt.FS.(*simfile.FS)
	if create {
		if err := w.createTables(); err != nil {
			return err
		}
	}
	for n := range tables {
		t, err := w.table(n)
		if err != nil {
			return err
		}
		w.tables = append(w.tables, t)
	}
	return nil
}

func tableName(n int) string { return fmt.Sprint("t", n) }

// table opens a table of the test for good: the handle is never released.
func (w *world) table(n int) (*table.Table, error) {
	t := w.eng.Trx.Begin(trx.Options{})
	defer w.eng.Trx.End(t)
	h, err := w.eng.Catalog.OpenTable(t, "test", tableName(n))
	if err != nil {
		return nil, err
	}
	return h.Table(), nil
}

// createTables makes schema and tables in one transaction, and makes it durable:
// it is CSN 1, with no rows.
func (w *world) createTables() error {
	s := w.eng.NewSession()
	s.Begin(trx.Options{})
	if _, err := w.eng.Catalog.CreateSchema(s.Worker(), dict.Schema{Name: "test"}); err != nil {
		return err
	}
	for n := range tables {
		def := definition(tableName(n))
		if _, err := w.eng.Catalog.CreateTable(s.Worker(), &def); err != nil {
			return err
		}
	}
	csn, err := s.Commit()
	if err != nil {
		return err
	}
	w.model.baseCSN, w.model.durable = csn, csn
	return w.eng.Log.FlushTo(w.eng.Trx.CommitLSN())
}

// check looks at every structure. Nobody is at work, and purge has nothing to do.
func (w *world) check() string {
	var findings []string
	err := w.eng.Check(table.CheckPurged, func(f string) { findings = append(findings, f) })
	if err != nil {
		return fmt.Sprintf("check: %v", err)
	}
	if len(findings) > 0 {
		return fmt.Sprintf("check: %d findings:\n  %s", len(findings), strings.Join(findings[:min(len(findings), 10)], "\n  "))
	}
	return ""
}
