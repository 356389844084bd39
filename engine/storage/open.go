package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/purge"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Names in the engine's directory.
const (
	lockName     = "trireme.lock"
	creatingName = "creating" // there while a new database is incomplete
	redoDir      = "redo"
	spacesDir    = "spaces"
	lsnDir       = "lsn"
	tempDir      = "tmp" // of sorts; what a crash has left there is waste
)

// ErrClosed: the engine is closed, or being closed. Who only looks at it may still ask.
var ErrClosed = table.ErrClosed

// Engine is an open storage engine. Its parts are for the layers above.
type Engine struct {
	Tables  *table.Engine
	Catalog *dict.Catalog
	Trx     *trx.System
	Locks   *lock.Table
	Pool    *buffer.Pool
	Log     *redo.Log
	Spaces  *space.Registry
	Purge   *purge.Purger

	opt     Options
	lock    io.Closer
	commits *env.Mutex // one session commits at a time
	unended unended
	// sessions counts those that were made.
	sessions atomic.Uint32

	settingsTurn *env.Mutex // held while settings are read or changed
	set          Settings   // those that no part keeps
}

// Open opens the database in the directory, or makes one if there is none, and
// recovers it. Errors name what is wrong, where, and what can be done: options out
// of their limits, file.ErrLocked for a directory in use, space.ErrForeign,
// page.ErrNewerFormat (nothing was changed then), *redo.CorruptError,
// *page.CorruptError, file.ErrNoSpace.
func Open(opt Options) (*Engine, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt.setDefaults()
	e := &Engine{opt: opt, commits: env.NewMutex(opt.Env), settingsTurn: env.NewMutex(opt.Env), set: opt.initialSettings()}
	err := opt.FS.MkdirAll(".")
	if err == nil {
		e.lock, err = opt.FS.Lock(lockName)
	}
	if err != nil {
		return nil, advise(fmt.Errorf("storage: locking the directory: %w", err))
	}
	if err := e.open(); err != nil {
		e.abandon(err)
		return nil, advise(err)
	}
	return e, nil
}

func (e *Engine) open() error {
	fresh, err := e.isFresh()
	if err != nil {
		return err
	}
	if err := removeAll(e.opt.FS, tempDir); err != nil {
		return fmt.Errorf("storage: removing temporary files: %w", err)
	}
	database := space.DatabaseID{}
	if !fresh {
		if database, err = e.identity(); err == nil {
			err = e.preflight(database)
		}
		if err != nil {
			return err
		}
	} else {
		for i := range database {
			database[i] = byte(e.opt.Env.Uint64())
		}
	}
	e.Spaces, err = space.New(space.Options{FS: e.opt.FS, Env: e.opt.Env, Dir: spacesDir, Database: database,
		OpenFiles: e.opt.OpenFiles, LSNMemory: e.opt.BufferPoolSize / lsnShare, ReserveExtents: e.opt.ReserveExtents, Direct: e.opt.DirectIO})
	if err != nil {
		return err
	}
	logOpt := redo.Options{FS: e.opt.FS, Env: e.opt.Env, Dir: redoDir, ID: database, Capacity: e.opt.RedoCapacity,
		BufferSize: e.opt.LogBufferSize, FlushInterval: e.opt.FlushInterval, OnPressure: e.onPressure}
	if fresh {
		e.Log, err = redo.Create(logOpt)
	} else {
		e.Log, err = recoverRedo(&e.opt, e.Spaces, logOpt)
	}
	if err != nil {
		return err
	}
	if err := e.openPool(); err != nil {
		return err
	}
	if fresh {
		if err := e.createSystem(database); err != nil {
			return fmt.Errorf("storage: creating a database: %w", err)
		}
	}
	if err := e.openSystem(fresh); err != nil {
		return err
	}
	if fresh {
		return e.endCreation()
	}
	return nil
}

// lsnShare is the part of the buffer pool that is kept besides it of the LSNs of pages: enough for
// 32 times the pool.
const lsnShare = 64

func (e *Engine) onPressure() {
	if e.Pool != nil {
		e.Pool.Kick()
	}
}

// isFresh reports whether there is no database yet. What is left of one whose
// creation was cut short is removed: nothing was ever stored in it.
func (e *Engine) isFresh() (bool, error) {
	fsys := e.opt.FS
	creating, err := fsys.Exists(creatingName)
	if err != nil {
		return false, err
	}
	there, err := fsys.Exists(systemFile())
	if err != nil {
		return false, err
	}
	if there && !creating {
		return false, nil
	}
	if !creating {
		if names, err := fsys.List(redoDir); err == nil && len(names) > 0 {
			return false, fmt.Errorf("storage: %w: there is a redo log, but no system tablespace (%s)", errMissing, systemFile())
		}
		f, err := fsys.Open(creatingName, file.OpenOptions{Create: true})
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = fsys.SyncDir(".")
		}
		if err == nil {
			err = removeAll(fsys, lsnDir) // of a database that was here
		}
		return true, err
	}
	for _, dir := range []string{redoDir, spacesDir, lsnDir} {
		if err := removeAll(fsys, dir); err != nil {
			return false, err
		}
	}
	return true, nil
}

func systemFile() string { return spaceFile(space.System) }

func spaceFile(no uint32) string { return fmt.Sprintf("%s/%08x.trd", spacesDir, no) }

func isUndo(no uint32) bool { return no >= space.FirstUndo }

// removeAll removes the files of a directory.
func removeAll(fsys file.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := fsys.Remove(dir + "/" + name); err != nil {
			return err
		}
	}
	return fsys.SyncDir(dir)
}

// identity reads the database's id from the system tablespace.
func (e *Engine) identity() (space.DatabaseID, error) {
	id, err := space.Probe(e.opt.FS, systemFile())
	if err != nil {
		return space.DatabaseID{}, fmt.Errorf("storage: system tablespace: %w", err)
	}
	return id.Database, nil
}

func (e *Engine) openPool() error {
	var err error
	e.Pool, err = buffer.New(buffer.Options{Env: e.opt.Env, Store: e.Spaces, Log: e.Log, FS: e.opt.FS,
		Size: e.opt.BufferPoolSize, SizeMax: e.opt.BufferPoolSizeMax, Cleaner: e.opt.Cleaner,
		OldBlocksPct: e.opt.OldBlocksPct, OldBlocksTime: e.opt.OldBlocksTime, ReadAheadTasks: e.opt.ReadAheadTasks, Validate: validatePage})
	if err != nil {
		return err
	}
	e.Spaces.Bind(e.Pool)
	e.Pool.Start()
	return nil
}

// validatePage checks what cursors rely on in pages that were read.
func validatePage(p []byte) error {
	if page.GetType(p) == page.TypeIndex {
		return btree.ValidateNode(p)
	}
	return nil
}

// createSystem makes the system and undo tablespaces.
func (e *Engine) createSystem(database space.DatabaseID) error {
	m := mtr.New(e.Pool)
	if err := m.Begin(); err != nil {
		return err
	}
	sp, err := e.Spaces.Create(m, space.System)
	if err == nil {
		err = trx.Create(m, sp, database)
	}
	if err == nil {
		err = trx.SetUndoSpaces(m, e.opt.UndoTablespaces)
	}
	m.Commit()
	for i := 0; i < e.opt.UndoTablespaces && err == nil; i++ {
		if err = m.Begin(); err != nil {
			break
		}
		if sp, err = e.Spaces.Create(m, space.FirstUndo+uint32(i)); err == nil {
			err = undo.CreateSpace(m, sp)
		}
		m.Commit()
	}
	return err
}

func (e *Engine) openSystem(fresh bool) error {
	if _, err := e.Spaces.Open(space.System); err != nil {
		return err
	}
	undoSpaces, err := e.undoSpaces()
	if err != nil {
		return err
	}
	e.Locks = lock.New(lock.Options{Env: e.opt.Env, WaitTimeout: e.opt.LockWait, MemoryMax: e.opt.LockMemory,
		NoDeadlockDetect: e.opt.NoDeadlockDetect, FIFO: e.opt.LockFIFO})
	e.Trx, err = trx.Open(trx.SystemOptions{Pool: e.Pool, Locks: e.Locks,
		Undo: undo.Options{Spaces: undoSpaces, MaxStreams: e.opt.MaxStreams}})
	if err != nil {
		return err
	}
	e.Tables = &table.Engine{Env: e.opt.Env, FS: e.opt.FS, Pool: e.Pool, Spaces: e.Spaces, Locks: e.Locks, Trx: e.Trx, Undo: e.Trx.Undo(), Usages: &table.Usages{}}
	if fresh {
		if err := dict.Bootstrap(e.Tables); err != nil {
			return err
		}
	}
	if e.Catalog, err = dict.Open(e.Tables, dict.Options{CacheSize: e.opt.TableCache, CacheBytes: e.opt.TableCacheBytes, Shown: e.opt.Shown}); err != nil {
		return err
	}
	e.Tables.Lookup = e.Catalog.Lookup
	if err := e.unended.rollbackFirst(e); err != nil {
		return fmt.Errorf("storage: rolling back what was not committed: %w", err)
	}
	if err := e.removeOrphans(); err != nil {
		return err
	}
	if err := e.Catalog.Sweep(); err != nil {
		return err
	}
	e.Purge = purge.New(purge.Options{Tables: e.Tables, Tasks: e.opt.PurgeTasks, Interval: e.opt.PurgeInterval,
		UndoSpaces: undoSpaces, UndoSizeMax: e.opt.UndoSizeMax})
	e.Purge.Start()
	e.opt.Recovery.begin(StageOpen)
	e.unended.start()
	return nil
}

// undoSpaces opens the undo tablespaces, in the order of their numbers.
func (e *Engine) undoSpaces() ([]*space.Space, error) {
	nos, err := e.Spaces.Files()
	if err != nil {
		return nil, err
	}
	var spaces []*space.Space
	for _, no := range nos {
		if !isUndo(no) {
			continue
		}
		if want := space.FirstUndo + uint32(len(spaces)); no != want {
			return nil, missingUndo(want)
		}
		sp, err := e.Spaces.Open(no)
		if err != nil {
			return nil, err
		}
		spaces = append(spaces, sp)
	}
	if n, err := trx.UndoSpaces(e.Pool); err != nil {
		return nil, err
	} else if len(spaces) < n {
		return nil, missingUndo(space.FirstUndo + uint32(len(spaces)))
	}
	return spaces, nil
}

func missingUndo(no uint32) error {
	return fmt.Errorf("storage: %w: undo tablespace %d (%s)", errMissing, no-space.FirstUndo, spaceFile(no))
}

// removeOrphans deletes tablespaces that no table claims: of tables whose creation
// did not commit, and of tables dropped just before a crash.
func (e *Engine) removeOrphans() error {
	known, err := e.Catalog.KnownSpaces()
	if err != nil {
		return err
	}
	orphans, err := e.Spaces.Orphans(func(no uint32) bool {
		return no == space.System || no >= space.FirstUndo || known[no]
	})
	if err != nil || len(orphans) == 0 {
		return err
	}
	// A snapshot of before a drop would find the table in the catalogue and not its file: none
	// can be opened from now on, nor after another start.
	if _, err := e.Trx.PurgeLimit(); err != nil {
		return err
	}
	for _, no := range orphans {
		// A crash may have left the file and taken back that its number was given. Were
		// it given again, the next recovery would apply this drop to the new tablespace
		// first, and with it lose what a bulk load does not write into the log.
		if err := e.Trx.RaiseNumber(trx.SpaceNo, uint64(no)+1); err != nil {
			return err
		}
		if err := e.dropSpace(no); err != nil {
			return err
		}
	}
	return nil
}

// dropSpace deletes a tablespace; the log says so first.
func (e *Engine) dropSpace(no uint32) error {
	m := mtr.New(e.Pool)
	if err := m.Begin(); err != nil {
		return err
	}
	m.LogSpaceDrop(no)
	if err := e.Log.FlushTo(m.Commit()); err != nil {
		return err
	}
	return e.Spaces.RemoveOrphan(no)
}

// endCreation makes a new database durable and says that it is complete.
func (e *Engine) endCreation() error {
	if err := e.Pool.FlushAll(); err != nil {
		return err
	}
	if err := e.opt.FS.Remove(creatingName); err != nil {
		return err
	}
	return e.opt.FS.SyncDir(".")
}

// Err is what halted the engine, a *redo.HaltError, or nil.
func (e *Engine) Err() error { return e.Log.Err() }

// Applied is the position of the layer above's log up to which the data contains
// it, and the CSN of the last transaction there.
func (e *Engine) Applied() (csn uint64, pos trx.Position) { return e.Trx.Applied() }

// Sync makes every commit so far durable. A commit alone does not wait for the
// disk: without a group's log to apply again, what was committed within
// Options.FlushInterval before a crash may be lost, the last first.
func (e *Engine) Sync() error { return e.Log.FlushTo(e.Trx.CommitLSN()) }

// Close ends the engine's tasks and makes everything durable, so that the next
// Open has nothing to redo. No session may be at work, and no transaction may run but for
// reads of the catalogue, checks and hashes: those that are under way end early, and from
// then on they fail with [ErrClosed]. A transaction that Leaves says may be left as it is: the next
// Open takes it back, as it goes on with what it takes back now. If the engine has halted, or halts in Close, the error
// says so; all is closed even then.
func (e *Engine) Close() error {
	e.unended.end()
	e.Purge.Stop()
	e.Catalog.Close()
	e.Tables.Shut()
	err := e.Pool.Close()
	halt := e.Log.Err()
	if halt != nil {
		err = halt
	}
	return errors.Join(err, e.closeFiles(halt))
}

// abandon closes what was opened before an error.
func (e *Engine) abandon(reason error) {
	e.unended.end()
	if e.Purge != nil {
		e.Purge.Stop()
	}
	if e.Log != nil {
		e.Log.Fail(reason)
	}
	if e.Catalog != nil {
		e.Catalog.Close()
	}
	if e.Pool != nil {
		_ = e.Pool.Close()
	}
	_ = e.closeFiles(reason)
}

func (e *Engine) closeFiles(halt error) error {
	var err error
	if e.Log != nil {
		if err = e.Log.Close(); halt != nil {
			err = nil // it repeats why the engine was halted
		}
	}
	if e.Spaces != nil {
		err = errors.Join(err, e.Spaces.Close())
	}
	return errors.Join(err, e.lock.Close())
}

// TablesSize is how many bytes the files of tables in an engine's directory have; those that cannot be
// looked at do not count.
func TablesSize(fsys file.FS) (bytes int64) {
	names, _ := fsys.List(spacesDir)
	for _, name := range names {
		if size, err := file.SizeOf(fsys, path.Join(spacesDir, name)); err == nil {
			bytes += size
		}
	}
	return bytes
}
