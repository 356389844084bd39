// Package undotest is the lower half of an engine for tests of undo and of what
// stands on it: a simulated file system, redo log, tablespaces and buffer pool,
// with the recovery that brings them back after a crash.
package undotest

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Database is the identity of the rig's database.
var Database = space.DatabaseID{0x75, 0x6e, 0x64, 0x6f}

// Rig is the lower half of an engine.
type Rig struct {
	Env    env.Env
	FS     *simfile.FS
	Log    *redo.Log
	Reg    *space.Registry
	Pool   *buffer.Pool
	System *space.Space
	Undo   []*space.Space
	// Lazy keeps the page cleaner from writing pages before it must.
	Lazy bool
	// Recovered is the LSN up to which Open found redo: what was logged before is
	// there, nothing after.
	Recovered page.LSN
}

// Frames is the size of the rig's buffer pool in pages.
const Frames = 128

// New makes a database with the given number of undo tablespaces, everything in
// it durable. more, if set, adds to the system tablespace.
func New(fs *simfile.FS, e env.Env, undoSpaces int, more func(m *mtr.Mtr, system *space.Space) error) (*Rig, error) {
	return create(&Rig{Env: e, FS: fs}, undoSpaces, more)
}

// NewLazy is New with a Lazy rig: its tablespaces stay as they are at the start
// while the work fits the pool and the log, and the log holds the rest.
func NewLazy(fs *simfile.FS, e env.Env, undoSpaces int, more func(m *mtr.Mtr, system *space.Space) error) (*Rig, error) {
	return create(&Rig{Env: e, FS: fs, Lazy: true}, undoSpaces, more)
}

func create(r *Rig, undoSpaces int, more func(m *mtr.Mtr, system *space.Space) error) (*Rig, error) {
	fs, e := r.FS, r.Env
	var err error
	if r.Reg, err = space.New(space.Options{FS: fs, Env: e, Database: Database}); err != nil {
		return nil, err
	}
	if r.Log, err = redo.Create(r.redoOptions()); err != nil {
		return nil, err
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	m := mtr.New(r.Pool)
	create := func(no uint32, fill func(m *mtr.Mtr, sp *space.Space) error) (*space.Space, error) {
		if err := m.Begin(); err != nil {
			return nil, err
		}
		defer m.Commit()
		sp, err := r.Reg.Create(m, no)
		if err == nil && fill != nil {
			err = fill(m, sp)
		}
		return sp, err
	}
	if r.System, err = create(space.System, more); err != nil {
		return nil, err
	}
	for i := range undoSpaces {
		sp, err := create(space.FirstUndo+uint32(i), undo.CreateSpace)
		if err != nil {
			return nil, err
		}
		r.Undo = append(r.Undo, sp)
	}
	return r, r.Pool.FlushAll()
}

// Open recovers what the file system holds.
func Open(fs *simfile.FS, e env.Env, undoSpaces int) (*Rig, error) {
	return OpenUpTo(fs, e, undoSpaces, ^page.LSN(0))
}

// OpenUpTo recovers as if the redo log ended at the LSN. What it leaves cannot be
// recovered again.
func OpenUpTo(fs *simfile.FS, e env.Env, undoSpaces int, upTo page.LSN) (*Rig, error) {
	r := &Rig{Env: e, FS: fs}
	var err error
	if r.Reg, err = space.New(space.Options{FS: fs, Env: e, Database: Database}); err != nil {
		return nil, err
	}
	exists := func(no uint32) bool { ok, err := r.Reg.Exists(no); return ok && err == nil }
	if _, err := buffer.RestoreTorn(fs, r.Reg, exists); err != nil {
		return nil, err
	}
	batch := redo.NewBatch(256 << 20)
	r.Log, err = redo.Open(r.redoOptions(), func(_, end page.LSN, payload []byte) error {
		if end > upTo {
			return nil
		}
		r.Recovered = end
		return batch.Add(end, payload)
	})
	if err != nil {
		return nil, err
	}
	r.Recovered = max(r.Recovered, r.Log.CheckpointLSN())
	if err := r.replay(batch); err != nil {
		return nil, err
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	if r.System, err = r.Reg.Open(space.System); err != nil {
		return nil, err
	}
	for i := range undoSpaces {
		sp, err := r.Reg.Open(space.FirstUndo + uint32(i))
		if err != nil {
			return nil, err
		}
		r.Undo = append(r.Undo, sp)
	}
	return r, nil
}

func (r *Rig) redoOptions() redo.Options {
	return redo.Options{FS: r.FS, Env: r.Env, Dir: "redo", Capacity: redo.MinCapacity, BufferSize: redo.MinBufferSize,
		OnPressure: func() {
			if r.Pool != nil {
				r.Pool.Kick()
			}
		}}
}

func (r *Rig) start() (err error) {
	r.Pool, err = buffer.New(buffer.Options{Env: r.Env, Store: r.Reg, Log: r.Log, FS: r.FS,
		Size: Frames * page.Size, ReadAheadTasks: -1, Cleaner: buffer.CleanerOptions{Off: r.Lazy}})
	if err != nil {
		return err
	}
	r.Reg.Bind(r.Pool)
	r.Pool.Start()
	return nil
}

// replay brings the files up to date with the log.
func (r *Rig) replay(b *redo.Batch) error {
	for _, op := range b.SpaceOps() {
		var err error
		switch op.Op.Kind {
		case redo.KindSpaceCreate:
			_, err = r.Reg.Probe(op.Op.ID.Space)
		case redo.KindSpaceResize:
			err = r.Reg.RecoverResize(op.Op.ID.Space, op.Op.Pages)
		}
		if err != nil {
			return err
		}
	}
	p := make([]byte, page.Size)
	for _, id := range b.Pages() {
		clear(p)
		err := r.Reg.ReadPage(id, p)
		if err == nil {
			err = page.Verify(p, id)
		}
		if errors.Is(err, space.ErrBeyondEnd) {
			continue // cut off since
		}
		if err != nil && b.BeginsWithInit(id) {
			clear(p)
		} else if err != nil {
			return err
		}
		ops, _, _, err := b.Apply(id, p)
		if err != nil {
			return fmt.Errorf("page %v: %w", id, err)
		}
		if ops == 0 {
			continue
		}
		page.Seal(p)
		if err := r.Reg.WritePage(id, p); err != nil {
			return err
		}
	}
	for _, no := range append([]uint32{space.System}, r.undoFiles()...) {
		if err := r.Reg.SyncSpace(no); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rig) undoFiles() []uint32 {
	files, _ := r.Reg.Files()
	var nos []uint32
	for _, no := range files {
		if no >= space.FirstUndo {
			nos = append(nos, no)
		}
	}
	return nos
}

// Groups returns the ends of the groups in the redo log of fs from the checkpoint on.
func Groups(fs *simfile.FS, e env.Env) ([]page.LSN, error) {
	r := &Rig{Env: e, FS: fs}
	var ends []page.LSN
	l, err := redo.Open(r.redoOptions(), func(_, end page.LSN, _ []byte) error {
		ends = append(ends, end)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ends, l.Close()
}

// Close ends the rig in order.
func (r *Rig) Close() error { return errors.Join(r.Pool.Close(), r.Log.Close(), r.Reg.Close()) }

// Abandon ends the rig's tasks as a crash does.
func (r *Rig) Abandon() {
	r.Log.Fail(errors.New("crash"))
	_ = r.Pool.Close()
	_ = r.Log.Close()
}
