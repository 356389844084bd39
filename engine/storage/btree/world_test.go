package btree

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
)

const testIndex = 77

// failer is what tests and rapid's T have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// world is an engine's lower half over a simulated file system, with one tree.
type world struct {
	t    failer
	e    env.Env
	fs   *simfile.FS
	log  *redo.Log
	pool *buffer.Pool
	reg  *space.Registry
	sp   *space.Space
	tree *Tree
	m    *mtr.Mtr
	c    *Cursor

	halted bool // the log was closed under the pool
}

var testDB = space.DatabaseID{7}

func redoOptions(w *world, capacity int64) redo.Options {
	return redo.Options{FS: w.fs, Env: w.e, Dir: "redo", Capacity: capacity, BufferSize: redo.MinBufferSize,
		OnPressure: func() {
			if w.pool != nil {
				w.pool.Kick()
			}
		}}
}

// newWorld makes a world with a pool of the given number of pages.
func newWorld(t failer, e env.Env, frames int, logCapacity int64) *world {
	t.Helper()
	w := &world{t: t, e: e, fs: simfile.New(e, 1)}
	var err error
	w.reg, err = space.New(space.Options{FS: w.fs, Env: e, Database: testDB})
	w.must(err)
	w.log, err = redo.Create(redoOptions(w, logCapacity))
	w.must(err)
	w.pool, err = buffer.New(buffer.Options{Env: e, Store: w.reg, Log: w.log, FS: w.fs, Size: int64(frames) * page.Size,
		Cleaner: buffer.CleanerOptions{Off: true}})
	w.must(err)
	w.reg.Bind(w.pool)
	w.pool.Start()
	w.m = mtr.New(w.pool)
	w.must(w.m.Begin())
	w.sp, err = w.reg.Create(w.m, 1)
	w.must(err)
	w.m.Commit()
	w.newTree()
	return w
}

// newTree makes another tree and points the cursor at it.
func (w *world) newTree() {
	w.t.Helper()
	w.must(w.m.Begin())
	root, err := Create(w.m, w.sp, testIndex)
	w.must(err)
	w.m.Commit()
	w.tree = Open(w.pool, w.sp, testIndex, root)
	w.c = w.tree.NewCursor(w.m)
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

// close ends the world's tasks and frees its memory.
func (w *world) close() {
	w.t.Helper()
	if err := errors.Join(w.pool.Close(), w.log.Close(), w.reg.Close()); !w.halted {
		w.must(err)
	}
}

// actor is one task's mini-transaction and cursor.
type actor struct {
	w *world
	m *mtr.Mtr
	c *Cursor
}

func (w *world) actor() *actor {
	m := mtr.New(w.pool)
	return &actor{w, m, w.tree.NewCursor(m)}
}

func (w *world) self() *actor { return &actor{w, w.m, w.c} }

// put inserts or updates an entry as the table layer does: optimistically first,
// and after MakeRoom if there is no room.
func (a *actor) put(key string, flags byte, value string) error {
	k, v := []byte(key), []byte(value)
	for {
		if err := a.m.Begin(); err != nil {
			return err
		}
		exact, err := a.c.SeekLeaf(k, mtr.X)
		if err != nil {
			a.m.Commit()
			return err
		}
		done := true
		switch {
		case exact && a.c.FitsUpdate(len(v)):
			a.c.Update(flags, v)
		case !exact && a.c.Fits(len(k), len(v)):
			a.c.Insert(k, flags, v)
		default:
			done = false
		}
		a.c.Leave()
		a.m.Commit()
		if done {
			return nil
		}
		if err := a.w.tree.MakeRoom(k, len(v)); err != nil {
			return err
		}
	}
}

// del removes an entry, if it is there, and shrinks the tree.
func (a *actor) del(key string) (found bool, err error) {
	if err := a.m.Begin(); err != nil {
		return false, err
	}
	found, err = a.c.SeekLeaf([]byte(key), mtr.X)
	low := false
	if err == nil {
		if found {
			a.c.Remove()
		}
		low = found && a.c.Thin()
		a.c.Leave()
	}
	a.m.Commit()
	if err == nil && low {
		err = a.w.tree.Shrink([]byte(key))
	}
	return found, err
}

// get looks an entry up.
func (a *actor) get(key string) (value string, flags byte, found bool, err error) {
	a.m.BeginRead()
	defer a.m.Commit()
	defer a.c.Reset()
	if found, err = a.c.SeekLeaf([]byte(key), mtr.S); found {
		value, flags = string(a.c.Value()), a.c.Flags()
	}
	return value, flags, found, err
}

// check fails the test for anything that the tree's or the space's checker finds.
func (w *world) check() Summary {
	w.t.Helper()
	sc, err := w.sp.NewCheck(func(f space.Finding) { w.t.Errorf("space: %v", f) })
	w.must(err)
	sum, err := w.tree.Check(func(f Finding) { w.t.Errorf("%v", f) }, sc.Reach, nil)
	w.must(err)
	sc.Finish()
	return sum
}

// content reads the whole tree forwards.
func (w *world) content() (keys, values []string) {
	w.t.Helper()
	w.m.BeginRead()
	defer w.m.Commit()
	defer w.c.Reset()
	w.must(w.c.First(mtr.S))
	for w.c.Valid() {
		for i := range w.c.LeafLen() {
			_, _, v := w.c.At(i)
			keys = append(keys, string(w.c.AppendKey(nil, i)))
			values = append(values, string(v))
		}
		w.must(w.c.NextLeaf())
	}
	return keys, values
}

// same compares the tree with a map.
func (w *world) same(model map[string]string) {
	w.t.Helper()
	keys, values := w.content()
	want := slices.Sorted(maps.Keys(model))
	if !slices.Equal(keys, want) {
		w.t.Fatalf("%d keys, want %d:\n%.300q\n%.300q", len(keys), len(want), keys, want)
	}
	for i, k := range keys {
		if values[i] != model[k] {
			w.t.Fatalf("%q holds %.40q, want %.40q", k, values[i], model[k])
		}
	}
}

// compareWithRedo closes the log and rebuilds all pages from it alone, then compares them
// with the pages in memory, but for checksums and LSNs.
func (w *world) compareWithRedo(logCapacity int64) {
	w.t.Helper()
	pages := map[page.ID][]byte{}
	w.m.BeginRead()
	for no := range w.sp.SizePages() {
		p, err := w.m.Get(w.sp.ID(no), mtr.S)
		w.must(err)
		pages[w.sp.ID(no)] = bytes.Clone(p.Data)
		w.m.Release(p)
	}
	w.m.Commit()
	w.must(w.log.Close())
	w.halted = true
	rebuilt := map[page.ID][]byte{}
	log, err := redo.Open(redoOptions(w, logCapacity), func(_, _ page.LSN, payload []byte) error {
		for len(payload) > 0 {
			op, rest, err := redo.Decode(payload)
			if err != nil {
				return err
			}
			payload = rest
			if !op.Kind.OfPage() {
				continue
			}
			if rebuilt[op.ID] == nil {
				rebuilt[op.ID] = make([]byte, page.Size)
			}
			if err := redo.Apply(op, rebuilt[op.ID]); err != nil {
				return fmt.Errorf("%v: %w", op, err)
			}
		}
		return nil
	})
	w.must(err)
	w.must(log.Close())
	nodes := 0
	for id, want := range pages {
		got := rebuilt[id]
		if page.GetType(want) != page.TypeIndex {
			continue
		}
		nodes++
		if got == nil {
			w.t.Fatalf("page %v is not in the log", id)
		}
		clear(want[page.OffLSN : page.OffLSN+8])
		clear(got[page.OffLSN : page.OffLSN+8])
		if !bytes.Equal(want[4:], got[4:]) {
			for i := 4; i < page.Size; i++ {
				if want[i] != got[i] {
					w.t.Fatalf("page %v differs from its redo at byte %d", id, i)
				}
			}
		}
	}
	if nodes == 0 {
		w.t.Fatal("no node compared")
	}
}
