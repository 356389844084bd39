package space

import (
	"errors"
	"fmt"
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
)

var testDB = DatabaseID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// world is an engine's lower half over a file system.
type world struct {
	e    env.Env
	fs   file.FS
	log  *redo.Log
	pool *buffer.Pool
	reg  *Registry
	opt  Options
	end  page.LSN // where the log ended when it was opened
}

// boot opens what the file system holds, after recovery, or makes it.
func boot(e env.Env, fs file.FS, opt Options) (*world, error) {
	opt.FS, opt.Env, opt.Database = fs, e, testDB
	w := &world{e: e, fs: fs, opt: opt}
	var err error
	if w.reg, err = New(opt); err != nil {
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
		if errors.Is(err, ErrNotFound) {
			return nil // dropped further on
		}
		return err
	case redo.KindSpaceDrop:
		maps.DeleteFunc(r.pages, func(id page.ID, _ *replayed) bool { return id.Space == op.ID.Space })
		return r.w.reg.RecoverDrop(op.ID.Space)
	case redo.KindSpaceResize:
		err := r.w.reg.RecoverResize(op.ID.Space, op.Pages)
		if errors.Is(err, ErrNotFound) {
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
		case errors.Is(err, ErrBeyondEnd), errors.Is(err, ErrNotFound):
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
		if err != nil && !errors.Is(err, ErrNotFound) {
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

// must is do for what cannot fail.
func (w *world) must(t fataler, fn func(m *mtr.Mtr) error) {
	t.Helper()
	if _, err := w.do(fn); err != nil {
		t.Fatal(err)
	}
}

// check returns the findings of a full check against what segments should hold.
func (w *world) check(s *Space, segs map[uint32]map[uint32]uint64) []string {
	var found []string
	c, err := s.NewCheck(func(f Finding) { found = append(found, f.String()) })
	if err != nil {
		return append(found, err.Error())
	}
	for _, seg := range slices.Sorted(maps.Keys(segs)) {
		for _, no := range slices.Sorted(maps.Keys(segs[seg])) {
			c.Reach(seg, no)
		}
		used, held, err := s.SegmentPages(seg)
		if err != nil || int(used) != len(segs[seg]) || held < used {
			found = append(found, fmt.Sprintf("segment %d: SegmentPages gives %d of %d, %v; want %d", seg, used, held, err, len(segs[seg])))
		}
	}
	c.Finish()
	return found
}

func newWorld(t testing.TB, opt Options) (*world, *simfile.FS) {
	t.Helper()
	fs := simfile.New(env.Real(), 1)
	w, err := boot(env.Real(), fs, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil && w.log.Err() == nil {
			t.Error(err)
		}
	})
	return w, fs
}

// newSpaceIn creates a tablespace.
func newSpaceIn(t fataler, w *world, no uint32) *Space {
	t.Helper()
	var s *Space
	w.must(t, func(m *mtr.Mtr) (err error) {
		s, err = w.reg.Create(m, no)
		return err
	})
	return s
}
