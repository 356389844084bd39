package lob

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
)

var testDB = space.DatabaseID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// world is an engine's lower half over a file system.
type world struct {
	e    env.Env
	fs   file.FS
	log  *redo.Log
	pool *buffer.Pool
	reg  *space.Registry
	end  page.LSN // where the log ended when it was opened
}

// boot opens what the file system holds, after recovery, or makes it.
func boot(e env.Env, fs file.FS) (*world, error) {
	w := &world{e: e, fs: fs}
	var err error
	if w.reg, err = space.New(space.Options{FS: fs, Env: e, Database: testDB}); err != nil {
		return nil, err
	}
	ropt := redo.Options{FS: fs, Env: e, Dir: "redo", Capacity: redo.MinCapacity, BufferSize: redo.MinBufferSize,
		OnPressure: func() {
			if w.pool != nil {
				w.pool.Kick()
			}
		}}
	there, err := fs.Exists("redo/redo.log")
	if err != nil {
		return nil, err
	}
	if there {
		err = w.recover(ropt)
	} else {
		w.log, err = redo.Create(ropt)
	}
	if err != nil {
		return nil, err
	}
	w.pool, err = buffer.New(buffer.Options{Env: e, Store: w.reg, Log: w.log, FS: fs, Size: 96 * page.Size})
	if err != nil {
		return nil, err
	}
	w.reg.Bind(w.pool)
	w.pool.Start()
	return w, nil
}

func (w *world) close() error {
	return errors.Join(w.pool.Close(), w.log.Close(), w.reg.Close())
}

// recover replays the log as the engine does, all pages in memory.
func (w *world) recover(opt redo.Options) error {
	exists := func(no uint32) bool { ok, err := w.reg.Exists(no); return ok && err == nil }
	if _, err := buffer.RestoreTorn(w.fs, w.reg, exists); err != nil {
		return err
	}
	r := replay{w: w, pages: map[page.ID]*replayed{}}
	var err error
	w.log, err = redo.Open(opt, func(_, end page.LSN, payload []byte) error {
		w.end = end
		for len(payload) > 0 {
			op, rest, err := redo.Decode(payload)
			if err != nil {
				return err
			}
			if err := r.apply(op, end); err != nil {
				return err
			}
			payload = rest
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.end = max(w.end, w.log.CheckpointLSN())
	return r.write()
}

type replay struct {
	w     *world
	pages map[page.ID]*replayed
}

type replayed struct {
	data   []byte
	onDisk page.LSN
	absent bool // the file does not reach it
}

func (r *replay) apply(op redo.Op, end page.LSN) error {
	switch op.Kind {
	case redo.KindSpaceCreate:
		_, err := r.w.reg.Probe(op.ID.Space)
		if errors.Is(err, space.ErrNotFound) {
			return nil // dropped further on
		}
		return err
	case redo.KindSpaceDrop:
		maps.DeleteFunc(r.pages, func(id page.ID, _ *replayed) bool { return id.Space == op.ID.Space })
		return r.w.reg.RecoverDrop(op.ID.Space)
	case redo.KindSpaceResize:
		err := r.w.reg.RecoverResize(op.ID.Space, op.Pages)
		if errors.Is(err, space.ErrNotFound) {
			return nil
		}
		return err
	}
	p := r.pages[op.ID]
	if p == nil {
		p = &replayed{data: make([]byte, page.Size)}
		r.pages[op.ID] = p
		err := r.w.reg.ReadPage(op.ID, p.data)
		switch {
		case errors.Is(err, space.ErrBeyondEnd), errors.Is(err, space.ErrNotFound):
			p.absent = true
		case err != nil:
			return err
		default:
			if err := page.Verify(p.data, op.ID); err != nil {
				return err
			}
			p.onDisk = page.GetLSN(p.data)
		}
	}
	if p.onDisk >= end || p.absent && op.Kind != redo.KindInit {
		return nil
	}
	p.absent = false
	if err := redo.Apply(op, p.data); err != nil {
		return err
	}
	page.SetLSN(p.data, end)
	return nil
}

func (r *replay) write() error {
	ids := slices.SortedFunc(maps.Keys(r.pages), func(a, b page.ID) int {
		return int(int64(a.Uint64()>>1) - int64(b.Uint64()>>1))
	})
	for _, id := range ids {
		p := r.pages[id]
		if p.absent {
			continue
		}
		page.Seal(p.data)
		err := r.w.reg.WritePage(id, p.data)
		if err == nil {
			err = r.w.reg.SyncSpace(id.Space)
		}
		if err != nil && !errors.Is(err, space.ErrNotFound) {
			return err
		}
	}
	return nil
}

// do runs fn in a mini-transaction and returns the LSN of its end.
func (w *world) do(fn func(m *mtr.Mtr) error) (page.LSN, error) {
	m := mtr.New(w.pool)
	if err := m.Begin(); err != nil {
		return 0, err
	}
	err := fn(m)
	return m.Commit(), err
}

// fataler is what testing.T and rapid.T share.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// setUp makes a space with a segment for values.
func (w *world) setUp() (*space.Space, uint32, error) {
	var sp *space.Space
	var seg uint32
	_, err := w.do(func(m *mtr.Mtr) (err error) {
		if sp, err = w.reg.Create(m, 5); err == nil {
			seg, err = sp.CreateSegment(m)
		}
		return err
	})
	return sp, seg, err
}

// audit checks the space against the values that refs name, which hold all pages
// of the segment.
func (w *world) audit(sp *space.Space, refs ...Ref) (found []string) {
	report := func(f space.Finding) { found = append(found, f.String()) }
	c, err := sp.NewCheck(report)
	if err != nil {
		return []string{err.Error()}
	}
	for _, ref := range refs {
		if err := Check(w.pool, ref, report, c.Reach); err != nil {
			return append(found, err.Error())
		}
	}
	c.Finish()
	return found
}

func newWorld(t testing.TB) (*world, *simfile.FS, *space.Space, uint32) {
	t.Helper()
	fs := simfile.New(env.Real(), 1)
	w, err := boot(env.Real(), fs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil && w.log.Err() == nil {
			t.Error(err)
		}
	})
	sp, seg, err := w.setUp()
	if err != nil {
		t.Fatal(err)
	}
	return w, fs, sp, seg
}
