package txn

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Temporary tables are a session's own: nobody else sees them, the log knows nothing of them, and they end with the session.
// They lie in an engine of their own, beside the node's, that is opened for the first one and whose files are never
// synced and are garbage after the process. A session's transaction has a second one there, which begins with the first use
// of such a table, takes every rollback of a statement or to a savepoint along, and ends as the transaction does. To
// make or drop a table is no part of either.

// temporaryDir is where the temporary tables' engines have their files, in the manager's directory.
const temporaryDir = "#innodb_temp"

// temporarySchema has all temporary tables, under numbers.
const temporarySchema = "temporary"

// firstTemporary is the least number of a temporary table.
const firstTemporary = 1 << 47

// optionShown is the name in record.Table.Options of the schema and name that the session has given a temporary table,
// with a zero byte between.
const optionShown = "shown"

// shown is the definition of a temporary table as its session sees it.
func shown(stored *record.Table) *record.Table {
	schema, name, ok := strings.Cut(stored.Options[optionShown], "\x00")
	if !ok {
		return stored
	}
	def := stored.Clone()
	def.Schema, def.Name = schema, name
	delete(def.Options, optionShown)
	return def
}

// temporaryStore is the engine of the temporary tables of all sessions.
type temporaryStore struct {
	turn    *env.Mutex
	engine  *storage.Engine // nil: there is none yet
	engines int             // that were opened
	made    uint64          // tables
	tables  atomic.Int64    // there are now
	bytes   atomic.Int64    // of their files
	undo    atomic.Int64    // of the engine's undo, as some session has counted it
}

// growUndo claims for a session what the engine's undo has grown by since somebody looked, in bytes.
func (st *temporaryStore) growUndo(eng *storage.Engine) int64 {
	now := int64(eng.Spaces.Get(space.FirstUndo).SizePages()) * page.Size
	for {
		seen := st.undo.Load()
		if st.undo.CompareAndSwap(seen, now) {
			return max(now-seen, 0)
		}
	}
}

// Temporary tells of the temporary tables of all sessions: how many there are, and the bytes of their files.
func (m *Manager) Temporary() (tables, bytes int64) {
	return m.temporary.tables.Load(), m.temporary.bytes.Load()
}

// temporaryEngine opens the engine for temporary tables if there is none, or the one that was there has failed.
//
// REQUIRES: m.temporary.turn.
func (m *Manager) temporaryEngine() (*storage.Engine, error) {
	st := &m.temporary
	if err := m.Down(); err != nil {
		return nil, err
	}
	if st.engine != nil && st.engine.Err() == nil {
		return st.engine, nil
	}
	st.engines++
	fs, err := file.Scratch(m.opt.FS, temporaryDir+"/"+strconv.Itoa(st.engines))
	if err != nil {
		return nil, err
	}
	// Nothing is recovered, so the redo log may be short; it bounds how much of the pool is dirty.
	eng, err := storage.Open(storage.Options{FS: fs, Env: m.opt.Env, BufferPoolSize: m.opt.TemporaryPool, RedoCapacity: 32 << 20, LogBufferSize: 1 << 20,
		OpenFiles: m.opt.TemporaryFiles, UndoTablespaces: 1, MaxStreams: 1024, PurgeTasks: 1, Shown: shown})
	if err != nil {
		return nil, err
	}
	s := eng.NewSession()
	if _, err = s.Do(trx.Options{}, func(w *table.Worker) error {
		_, err := eng.Catalog.CreateSchema(w, dict.Schema{Name: temporarySchema})
		return err
	}); err != nil {
		return nil, errors.Join(err, eng.Close())
	}
	// No temporary table has the number of another table: who compares tables compares numbers.
	if err := eng.Trx.RaiseNumber(trx.TableID, firstTemporary); err != nil {
		return nil, errors.Join(err, eng.Close())
	}
	st.engine = eng
	st.growUndo(eng)
	return eng, nil
}

// closeTemporary ends the engine.
func (m *Manager) closeTemporary() error {
	m.temporary.turn.Lock()
	defer m.temporary.turn.Unlock()
	eng := m.temporary.engine
	if m.temporary.engine = nil; eng == nil {
		return nil
	}
	halted := eng.Err()
	if err := eng.Close(); halted == nil {
		return err
	}
	return nil
}

// temporaryTables are those of a session. They are its task's, under its turn.
type temporaryTables struct {
	m      *Manager
	engine *storage.Engine
	work   *storage.Session // for rows
	began  bool             // work has a transaction
	tables map[Name]*temporaryTable
	opened []*Table // in the transaction
	space  func(bytes int64) error
	undo   int64 // that the transaction, or the last one, has been counted for
}

type temporaryTable struct {
	stored string       // its name in the engine
	handle *dict.Handle // held for as long as the table is there: its counters are in memory alone
	bytes  int64        // of its file, as they are counted
}

// HasTemporaries reports whether the session has temporary tables.
func (s *Session) HasTemporaries() bool { return s.temp != nil && len(s.temp.tables) > 0 }

// HasTemporary reports whether the session has a temporary table of the name.
func (s *Session) HasTemporary(schema, name string) bool {
	return s.temp != nil && s.temp.tables[Name{schema, name}] != nil
}

// TemporaryTable is the session's temporary table of the name, nil if it has none: for looking at. It is valid until the table is
// dropped or changed.
func (s *Session) TemporaryTable(schema, name string) *table.Table {
	if !s.HasTemporary(schema, name) {
		return nil
	}
	return s.temp.tables[Name{schema, name}].handle.Table()
}

// CreateTemporary makes a temporary table of the session. space is told by how many bytes the file of one of the session's grows, or
// shrinks; its error ends the statement. Errors besides those of dict.Catalog.CreateTable: 1050.
func (s *Session) CreateTemporary(def *record.Table, space func(bytes int64) error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.HasTemporary(def.Schema, def.Name) {
		return sqlerr.New(sqlerr.TableExistsError, def.Name)
	}
	s.m.temporary.turn.Lock()
	eng, err := s.m.temporaryEngine()
	s.m.temporary.made++
	stored := strconv.FormatUint(s.m.temporary.made, 10)
	s.m.temporary.turn.Unlock()
	if err != nil {
		return err
	}
	if s.temp == nil {
		s.temp = &temporaryTables{m: s.m, engine: eng, work: eng.NewSession(), tables: map[Name]*temporaryTable{}}
	}
	x := s.temp
	if x.engine != eng {
		if len(x.tables) > 0 || x.began {
			return x.lost()
		}
		x.engine, x.work = eng, eng.NewSession()
	}
	x.space = space
	n := Name{def.Schema, def.Name}
	def = def.Clone()
	if def.Options == nil {
		def.Options = map[string]string{}
	}
	def.Options[optionShown] = n.Schema + "\x00" + n.Table
	def.Schema, def.Name = temporarySchema, stored
	var made *record.Table
	if _, err := eng.NewSession().Do(trx.Options{}, func(w *table.Worker) (err error) {
		made, err = eng.Catalog.CreateTable(w, def)
		return err
	}); err != nil {
		return err
	}
	h, err := eng.Catalog.OpenTableByID(nil, made.ID)
	if err != nil {
		return errors.Join(err, x.remove(stored))
	}
	o := &temporaryTable{stored: stored, handle: h}
	if err := x.count(o); err != nil {
		h.Release()
		return errors.Join(err, x.remove(stored))
	}
	x.tables[n] = o
	s.m.temporary.tables.Add(1)
	if s.t != nil {
		s.t.temp = x
	}
	return nil
}

// remove drops a table of the engine. Its file goes when nobody uses it any more.
func (x *temporaryTables) remove(stored string) error {
	_, err := x.engine.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
		_, err := x.engine.Catalog.DropTable(w, temporarySchema, stored)
		return err
	})
	return err
}

// count tells of the growth of a table's file, and of undo. After an error it is not counted, and the statement is to end.
func (x *temporaryTables) count(o *temporaryTable) error {
	st := &x.m.temporary
	grown, undo := int64(o.handle.Table().Space().SizePages())*page.Size-o.bytes, st.growUndo(x.engine)
	if grown == 0 && undo == 0 {
		return nil
	}
	if err := x.space(grown + undo); err != nil {
		st.undo.Add(-undo)
		return err
	}
	o.bytes += grown
	x.undo += undo
	st.bytes.Add(grown)
	return nil
}

// settleUndo gives back what a transaction that has ended was counted for. It is the session's task that does so, which space belongs
// to, and not who has ended the transaction.
func (x *temporaryTables) settleUndo() {
	if x.undo != 0 && !x.began {
		_ = x.space(-x.undo)
		x.undo = 0
	}
}

// DropTemporary drops a temporary table of the session, if it is there.
func (s *Session) DropTemporary(schema, name string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.dropTemporary(Name{schema, name})
}

func (s *Session) dropTemporary(n Name) (err error) {
	if !s.HasTemporary(n.Schema, n.Table) {
		return nil
	}
	x := s.temp
	x.settleUndo()
	o := x.tables[n]
	delete(x.tables, n)
	o.handle.Release()
	s.m.temporary.tables.Add(-1)
	s.m.temporary.bytes.Add(-o.bytes)
	if x.engine.Err() == nil && s.m.Down() == nil { // else it is gone with all of the engine
		err = x.remove(o.stored)
	}
	_ = x.space(-o.bytes) // to give it back cannot fail
	return err
}

// DropTemporaries drops all temporary tables of the session, which has no transaction.
func (s *Session) DropTemporaries() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.dropTemporaries()
}

func (s *Session) dropTemporaries() (err error) {
	if s.temp == nil {
		return nil
	}
	for n := range s.temp.tables {
		err = errors.Join(err, s.dropTemporary(n))
	}
	s.temp = nil
	return err
}

// MoveTemporary gives a temporary table the name of another one, which is dropped if it is there.
func (s *Session) MoveTemporary(from, to Name) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if !s.HasTemporary(from.Schema, from.Table) {
		return table.ErrNoTable
	}
	if from == to {
		return nil
	}
	x := s.temp
	o := x.tables[from]
	var h *dict.Handle
	_, err := x.engine.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
		r, err := x.engine.Catalog.OpenTable(w.Trx(), temporarySchema, o.stored)
		if err != nil {
			return err
		}
		def := r.Table().Schema.Table.Clone()
		r.Release()
		def.Schema, def.Name = temporarySchema, o.stored
		if def.Options == nil {
			def.Options = map[string]string{}
		}
		def.Options[optionShown] = to.Schema + "\x00" + to.Table
		_, err = x.engine.Catalog.ReplaceTable(w, def)
		return err
	})
	if err == nil {
		h, err = x.engine.Catalog.OpenTableByID(nil, o.handle.Table().ID())
	}
	if err != nil {
		return err
	}
	if err := s.dropTemporary(to); err != nil {
		h.Release()
		return err
	}
	o.handle.Release()
	o.handle = h
	delete(x.tables, from)
	x.tables[to] = o
	return nil
}

// lost is the error of who uses a temporary table when its engine has failed.
func (x *temporaryTables) lost() error {
	return sqlerr.Newf(sqlerr.UnknownError, "The temporary tables of this session are lost, for their files could not be written "+
		"(%v): drop them, and make them anew", x.engine.Err())
}

// openTemporary opens the session's temporary table of the name; nil: it has none.
func (t *Txn) openTemporary(n Name) (*Table, error) {
	x := t.temp
	of := x.tables[n]
	if of == nil {
		return nil, nil
	}
	if x.engine.Err() != nil {
		return nil, x.lost()
	}
	for _, o := range x.opened {
		if o.name == n && o.temporary == of && o.handle == of.handle {
			o.serial = t.serial
			return o, nil
		}
	}
	if !x.began {
		x.settleUndo()
		x.work.Begin(trx.Options{Isolation: trx.ReadCommitted, Marks: t.eachTemporaryMark})
		x.work.Trx().BeginStatement()
		x.began = true
	}
	h, err := x.engine.Catalog.OpenTableByID(nil, of.handle.Table().ID())
	if err != nil {
		return nil, err
	}
	meta, err := t.m.meta(h)
	if err != nil {
		h.Release()
		return nil, err
	}
	o := &Table{name: n, serial: t.serial, handle: h, tbl: h.Table(), meta: meta, temporary: of}
	x.opened = append(x.opened, o)
	return o, nil
}

// eachTemporaryMark is eachMark of the changes of temporary tables.
func (t *Txn) eachTemporaryMark(yield func(uint64) bool) {
	for i := range t.savepoints {
		if !yield(t.savepoints[i].at.temporary) {
			return
		}
	}
	yield(t.statement.temporary)
}

// temporaryWork is the worker for rows of temporary tables, nil if the transaction has used none.
func (t *Txn) temporaryWork() *table.Worker {
	if t.temp == nil || !t.temp.began {
		return nil
	}
	return t.temp.work.Worker()
}

// worker is the one for the table's rows.
func (t *Txn) worker(o *Table) *table.Worker {
	if o.temporary != nil {
		return t.temp.work.Worker()
	}
	return t.Worker
}

// grew is called when a row of a temporary table was changed.
func (t *Txn) grew(o *Table) error {
	if err := t.temp.count(o.temporary); err != nil {
		return t.undoTo(t.statement, err)
	}
	return nil
}

// endTemporary ends what the transaction has done to temporary tables as the transaction has ended.
func (t *Txn) endTemporary(commits bool) {
	x := t.temp
	if x == nil {
		return
	}
	t.temp = nil
	for _, o := range x.opened {
		o.handle.Release()
	}
	clear(x.opened)
	x.opened = x.opened[:0]
	if !x.began {
		return
	}
	x.began = false
	var err error
	if commits {
		_, err = x.work.Commit()
	} else {
		err = x.work.Rollback()
	}
	if err != nil { // half of it may be there: the tables are lost, as they are if it was a failed file
		x.engine.Log.Fail(err)
	}
}
