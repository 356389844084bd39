package dict_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// options is a small engine without purge.
func options(fsys file.FS, e env.Env) storage.Options {
	return storage.Options{FS: fsys, Env: e, BufferPoolSize: 4 << 20, RedoCapacity: 16 << 20, LogBufferSize: 1 << 20,
		ReadAheadTasks: -1, PurgeTasks: -1, TableCache: 64}
}

// open opens the engine, and what its catalogue needs from it.
func open(opt storage.Options) (*storage.Engine, error) {
	eng, err := storage.Open(opt)
	if err == nil {
		err = eng.Catalog.Sweep()
	}
	return eng, err
}

func shut(eng *storage.Engine) error {
	eng.Catalog.Close()
	return eng.Close()
}

// session is a worker with a transaction of its own.
type session struct {
	*table.Worker
	eng *storage.Engine
	c   *dict.Catalog
}

func newSession(eng *storage.Engine) *session {
	return &session{eng.Tables.NewWorker(), eng, eng.Catalog}
}

func (s *session) begin() { s.Use(s.eng.Trx.Begin(trx.Options{})) }

// commit commits as the next transaction of the log.
func (s *session) commit() error {
	t := s.Trx()
	if !t.HasChanges() {
		s.c.Committed(t)
		s.eng.Trx.End(t)
		return nil
	}
	t.StartCommit()
	for {
		last, pos := s.eng.Trx.Applied()
		err := s.eng.Trx.CommitGroup([]trx.Commit{{Trx: t, CSN: last + 1}}, trx.Position{Index: pos.Index + 1, Term: 1})
		if errors.Is(err, trx.ErrOutOfOrder) {
			continue
		}
		if err == nil {
			s.c.Committed(t)
			s.eng.Trx.End(t)
		}
		return err
	}
}

func (s *session) rollback() error {
	err := s.Rollback()
	if err == nil {
		s.c.RolledBack(s.Trx())
		s.eng.Trx.End(s.Trx())
	}
	return err
}

// do runs fn in a transaction, which commits if fn succeeds.
func (s *session) do(fn func() error) error {
	s.begin()
	if err := fn(); err != nil {
		return errors.Join(err, s.rollback())
	}
	return s.commit()
}

// trxOptions are those of a plain transaction.
var trxOptions = trx.Options{}

// must stops the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErrno checks MySQL's number of an error.
func wantErrno(t testing.TB, err error, number sqlerr.Code) {
	t.Helper()
	var e *sqlerr.Error
	if !errors.As(err, &e) || e.Number != number {
		t.Fatalf("got %v, want error %d", err, number)
	}
}

var (
	intType  = types.Type{Kind: types.KindInt, NotNull: true}
	nullInt  = types.Type{Kind: types.KindInt}
	textType = types.Type{Kind: types.KindVarChar, Length: 20, Collation: types.CollationUTF8MB40900AI}
)

// simpleTable is (id INT PRIMARY KEY, v INT NULL, s VARCHAR(20), KEY v (v)).
func simpleTable(schema, name string) *record.Table {
	return &record.Table{Schema: schema, Name: name, Collation: types.CollationUTF8MB40900AI,
		Columns: []record.Column{{Name: "id", Type: intType}, {Name: "v", Type: nullInt}, {Name: "s", Type: textType}},
		Indexes: []record.Index{
			{Name: "v", Parts: []record.Part{{Column: 2}}},
			{Name: "primary", Parts: []record.Part{{Column: 1}}},
		}}
}

func (s *session) insert(schema, name string, row ...types.Value) error {
	h, err := s.c.OpenTable(s.Trx(), schema, name)
	if err != nil {
		return err
	}
	defer h.Release()
	return s.Insert(h.Table(), row)
}

// rows reads all rows of a table by an index, as texts.
func (s *session) rows(h *dict.Handle, index int) ([]string, error) {
	t := h.Table()
	columns := []int{}
	kinds := []*types.Type{}
	for i := range t.Schema.Columns {
		if t.Schema.Columns[i].DroppedIn == 0 {
			columns = append(columns, i)
			kinds = append(kinds, &t.Schema.Columns[i].Type)
		}
	}
	own := s.eng.Trx.Begin(trx.Options{})
	defer s.eng.Trx.End(own)
	snap := *own.Snapshot()
	if s.Trx() != nil {
		snap.Own = s.Trx().ID()
	}
	var scan table.Scanner
	if err := scan.Start(s.eng.Tables.NewWorker(), t, &snap, table.Range{Index: index, Columns: columns}); err != nil {
		return nil, err
	}
	var out []string
	batch := types.NewBatch(kinds)
	for more := true; more; {
		var err error
		if more, err = scan.Next(batch); err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			line := []byte{}
			for c := range columns {
				if c > 0 {
					line = append(line, ' ')
				}
				if v := batch.Vecs[c].Value(i); v.IsNull() {
					line = append(line, "NULL"...)
				} else {
					line = types.AppendText(line, v, kinds[c], time.UTC)
				}
			}
			out = append(out, string(line))
		}
	}
	return out, nil
}
