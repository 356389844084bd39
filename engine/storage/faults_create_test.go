package storage_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/race"
)

func smallOptions(e env.Env, fs file.FS) storage.Options {
	return storage.Options{FS: fs, Env: e, BufferPoolSize: 2 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, PurgeTasks: -1}
}

// TestCreationInterrupted loses power, or meets an error, at every call that the
// creation of a database makes. The next start makes a database, or goes on with
// the one that is complete.
func TestCreationInterrupted(t *testing.T) {
	calls := int64(0)
	s := simenv.New(1)
	s.Run(func() {
		fs := simfile.New(s, 1)
		eng, err := storage.Open(smallOptions(s, fs))
		if err != nil {
			t.Errorf("creating: %v", err)
			return
		}
		calls = fs.Mutations()
		_ = eng.Close()
	})
	if calls < 20 {
		t.Fatalf("creation made %d calls", calls)
	}
	for k := int64(1); k <= calls+1; k += race.Fewer(int64(1), 5) {
		if problem := interruptCreation(k, uint64(k)); problem != "" {
			t.Fatalf("call %d of %d: %s", k, calls, problem)
		}
	}
}

// interruptCreation ends the first start at the k-th change, and with some seeds
// the second one soon after.
func interruptCreation(k int64, seed uint64) (problem string) {
	s := simenv.New(seed)
	s.Run(func() {
		fs := simfile.New(s, seed)
		fs.CrashAt(k)
		eng, err := storage.Open(smallOptions(s, fs))
		if err != nil && !errors.Is(err, file.ErrCrashed) {
			problem = fmt.Sprintf("error of the crash: %v", err)
			return
		}
		fs.Crash()
		if err == nil {
			_ = eng.Close()
		}
		fs = fs.CrashImage()
		if seed%3 == 0 {
			fs.CrashAt(1 + int64(seed%37))
			if eng, err := storage.Open(smallOptions(s, fs)); err == nil {
				fs.Crash()
				_ = eng.Close()
			}
			fs.Crash()
			fs = fs.CrashImage()
		}
		for _, name := range []string{"x", "y"} {
			if problem = useNew(smallOptions(s, fs), name); problem != "" {
				return
			}
		}
	})
	return problem
}

// useNew opens a database and makes something in it.
func useNew(opt storage.Options, name string) string {
	eng, err := storage.Open(opt)
	if err != nil {
		return fmt.Sprintf("opening: %v", err)
	}
	_, err = eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
		_, err := eng.Catalog.CreateSchema(w, dict.Schema{Name: name})
		return err
	})
	if err != nil {
		return fmt.Sprintf("using: %v", err)
	}
	problem := ""
	err = eng.Check(table.CheckQuiet, func(f string) { problem = "check: " + f })
	if problem == "" && err != nil {
		problem = fmt.Sprintf("check: %v", err)
	}
	if there, err := opt.FS.Exists("creating"); there || err != nil {
		return fmt.Sprintf("the mark of creation is there: %v, %v", there, err)
	}
	if err := eng.Close(); err != nil {
		return fmt.Sprintf("closing: %v", err)
	}
	return problem
}

// TestCreationFails meets an error, not a crash, in creation: a full disk or one
// that fails. The same process may try again.
func TestCreationFails(t *testing.T) {
	for n, fault := range []error{file.ErrNoSpace, errors.New("medium error")} {
		for skip := n; skip < 60; skip += race.Fewer(2, 10) {
			s := simenv.New(uint64(skip))
			s.Run(func() {
				fs := simfile.New(s, 1)
				in := fs.Inject(simfile.Fault{Ops: simfile.OpWrite | simfile.OpSync | simfile.OpAllocate | simfile.OpCreate | simfile.OpSyncDir |
					simfile.OpRename | simfile.OpRemove | simfile.OpMkdir, Skip: skip, Err: fault})
				eng, err := storage.Open(smallOptions(s, fs))
				if err == nil {
					_ = eng.Close()
				} else if !errors.Is(err, fault) {
					t.Errorf("call %d: %v", skip, err)
				}
				in.Stop()
				if problem := useNew(smallOptions(s, fs), "z"); problem != "" {
					t.Errorf("%v at call %d: %s", fault, skip, problem)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}
