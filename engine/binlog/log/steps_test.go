package log

import (
	"errors"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// crashDuring loses power at every change that act makes in turn, some times each, and
// checks what is left.
func crashDuring(t *testing.T, prepare, act func(m *model, l *Log) error) {
	t.Helper()
	for k, crashed := int64(1), true; crashed; k++ {
		for seed := range 4 * *moreSeeds {
			simulate(t, *firstSeed+seed, func(s *simenv.Sim) {
				m := newModel(s, seed)
				fsys := simfile.New(s, seed*100+uint64(k))
				l := must(m.start(fsys, options(fsys, s)))
				ok(prepare(m, l))
				fsys.CrashAt(fsys.Mutations() + k)
				err := act(m, l)
				crashed = fsys.Crashed()
				assert(err == nil && !crashed || errors.Is(err, file.ErrCrashed), "%v", err)
				_ = l.Close()
				if seed%2 == 0 {
					fsys = fsys.CrashImage()
				} else {
					fsys = fsys.KillImage()
				}
				for range 2 {
					l = must(m.start(fsys, options(fsys, s)))
					ok(m.life(l, 3))
					fsys = fsys.CrashImage()
				}
				ok(must(m.start(fsys, options(fsys, s))).Close())
			})
		}
	}
}

// filesOf returns entries that make n more files of one group each, the last file with a
// group that is not synced.
func filesOf(n int) func(m *model, l *Log) error {
	return func(m *model, l *Log) error {
		for i := range n {
			mk := maker{index: m.last(), term: m.term, number: l.LastNumber()}
			var flags uint8
			if i > 0 {
				flags = entry.FlagRotate
			}
			if err := m.put(l, m.last(), []Entry{mk.next(1, 700, flags), mk.next(1, 30, 0)}); err != nil {
				return err
			}
			if err := l.Sync(); err != nil {
				return err
			}
			m.durable = m.last()
			if err := m.put(l, m.last(), []Entry{mk.next(1, 300, 0), mk.next(1, 900, 0)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// conflict puts one entry of a new term behind entry after.
func conflict(after uint64, flags uint8) func(m *model, l *Log) error {
	return func(m *model, l *Log) error {
		m.term++
		mk := maker{index: after, term: m.term}
		mk.number = after // each entry of filesOf is one transaction
		return m.put(l, after, []Entry{mk.next(1, 100, flags), mk.next(1, 600, 0)})
	}
}

func TestCrashInTruncation(t *testing.T) {
	for _, after := range []uint64{0, 3, 4, 6, 13, 15} {
		crashDuring(t, filesOf(4), conflict(after, 0))
	}
	crashDuring(t, filesOf(4), conflict(4, entry.FlagRotate))
	crashDuring(t, filesOf(4), conflict(5, entry.FlagRotate))
}

func TestCrashInRotation(t *testing.T) {
	crashDuring(t, filesOf(2), filesOf(3))
	crashDuring(t, func(*model, *Log) error { return nil }, filesOf(3))
}

func TestCrashInPurge(t *testing.T) {
	prepare := func(m *model, l *Log) error {
		ok(filesOf(5)(m, l))
		ok(l.Sync())
		m.durable, m.committed = m.last(), m.last()
		l.SetCommitted(m.committed)
		return nil
	}
	crashDuring(t, prepare, func(m *model, l *Log) error {
		m.mayPurge = 13
		removed, err := l.Purge(Retention{Keep: 14, MaxBytes: 1})
		assert(err != nil || len(removed) == 3, "%v", removed)
		if err == nil {
			m.purged = l.FirstIndex()
		}
		return err
	})
}

func TestCrashInClose(t *testing.T) {
	crashDuring(t, filesOf(2), func(m *model, l *Log) error { return l.Close() })
}

// A file system that has lost nothing yet may do so later: Open makes durable what it
// finds, names too.
func TestFoundIsMadeDurable(t *testing.T) {
	for seed := range uint64(30) {
		simulate(t, seed, func(s *simenv.Sim) {
			m := newModel(s, seed)
			fsys := simfile.New(s, seed)
			in := fsys.Inject(simfile.Fault{Ops: simfile.OpSyncDir, Skip: 1, Err: syscall.EIO})
			_, err := Create(options(fsys, s), firstFile)
			assert(errors.Is(err, syscall.EIO), "%v", err)
			in.Stop()
			l := must(m.start(fsys, options(fsys, s)))
			ok(m.put(l, 0, []Entry{{Index: 1, Term: 1}}))
			ok(m.sync(l))
			fsys = fsys.CrashImage()
			must(m.start(fsys, options(fsys, s)))
		})
	}
}

// A purge that fails goes on when it is asked for again.
func TestPurgeGoesOn(t *testing.T) {
	for _, op := range []simfile.Op{simfile.OpRemove, simfile.OpSyncDir} {
		for skip := range 3 {
			simulate(t, 1, func(s *simenv.Sim) {
				m := newModel(s, 1)
				fsys := simfile.New(s, 1)
				l := must(m.start(fsys, options(fsys, s)))
				ok(filesOf(5)(m, l))
				ok(m.sync(l))
				l.SetCommitted(m.last())
				in := fsys.Inject(simfile.Fault{Ops: op, Skip: skip, Times: 2, Err: syscall.EIO})
				first, err := l.Purge(Retention{Keep: 14, MaxBytes: 1})
				assert(errors.Is(err, syscall.EIO) && len(first) == skip, "%v, %v", first, err)
				_, err = l.Purge(Retention{})
				assert(errors.Is(err, syscall.EIO), "%v", err)
				rest := must(l.Purge(Retention{}))
				assert(len(first)+len(rest) == 3 && in.Hits() == 2, "%v, %v", first, rest)
				ok(m.put(l, m.last(), m.more(m.last())))
				ok(l.Close())
				assert(must(Open(options(fsys.CrashImage(), s))).FirstIndex() == 13, "files are back")
			})
		}
	}
}
