package storage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
)

// recovery applies the redo log to the files. It works without a buffer pool:
// pages are read, brought up to date, kept as long as there is memory, and written
// back through the doublewrite file, a bounded batch of redo at a time, so that a
// crash in the middle only means that recovery starts again.
type recovery struct {
	opt    *Options
	spaces *space.Registry
	batch  *redo.Batch
	cache  *buffer.RecoveryCache // nil: nothing to apply so far
	tell   *Recovery
	// missing are tablespaces without a file for which redo was found: they must
	// be dropped further on in the log.
	missing map[uint32]bool
	// blank are pages of zeros for which changes were found but nothing they build
	// on: they must be cut off, or made anew, further on in the log.
	blank map[page.ID]bool
	// short are tablespaces whose file is shorter than the log says, since the disk has no room any more, and why: they must be cut to
	// what the file has further on in the log. Changes of pages behind its end were left out.
	short map[uint32]error

	first     page.LSN // where the log begins
	from, end page.LSN // of what the batch holds
}

// recoverRedo repairs torn pages, opens the log and applies what it holds.
func recoverRedo(opt *Options, spaces *space.Registry, logOpt redo.Options) (*redo.Log, error) {
	// A file that is missing, or not what it should be, is none to repair: whoever
	// needs it hears of it.
	ours := func(no uint32) bool {
		_, err := spaces.Probe(no)
		return !errors.Is(err, space.ErrNotFound) && !errors.Is(err, space.ErrForeign) && !errors.Is(err, space.ErrNewerFormat)
	}
	if _, err := buffer.RestoreTorn(opt.FS, spaces, ours); err != nil {
		return nil, fmt.Errorf("storage: repairing torn pages: %w", err)
	}
	r := &recovery{opt: opt, spaces: spaces, batch: redo.NewBatch(opt.RecoveryMemory), tell: opt.Recovery,
		missing: map[uint32]bool{}, blank: map[page.ID]bool{}, short: map[uint32]error{}}
	logOpt.OnRange = r.tell.redoRange
	log, err := redo.Open(logOpt, r.add)
	if err == nil {
		err = r.finish()
	}
	if r.cache != nil {
		if cerr := r.cache.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil && log.CheckpointLSN() < log.Published() {
		if err = log.FlushTo(log.Published()); err == nil {
			err = log.Checkpoint(log.Published())
		}
	}
	if err != nil {
		if log != nil {
			log.Fail(err)
			err = errors.Join(err, ignoreHalt(log.Close(), err))
		}
		return nil, fmt.Errorf("storage: recovery: %w", err)
	}
	return log, nil
}

// ignoreHalt drops the error with which a halted log closes: the reason is known.
func ignoreHalt(err, reason error) error {
	if errors.Is(err, reason) {
		return nil
	}
	return err
}

func (r *recovery) add(start, end page.LSN, payload []byte) error {
	if r.batch.Full() {
		if err := r.apply(); err != nil {
			return err
		}
	}
	if r.tell.groups.Add(1) == 1 {
		r.tell.begin(StageRedo)
		r.first = start
	}
	if r.batch.Empty() {
		r.from = start
	}
	r.end = end
	return r.batch.Add(end, payload)
}

func (r *recovery) finish() error {
	r.tell.begin(StageRedo) // there may have been nothing
	if err := r.apply(); err != nil {
		return err
	}
	if r.cache != nil {
		r.tell.begin(StagePages)
		if err := r.cache.Flush(); err != nil {
			return err
		}
	}
	for _, no := range slices.Sorted(maps.Keys(r.missing)) {
		return fmt.Errorf("%w: tablespace %d (%s); the redo log has changes of it", errMissing, no, r.spaces.Name(no))
	}
	for _, no := range slices.Sorted(maps.Keys(r.short)) {
		return r.short[no]
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.blank), func(a, b page.ID) int { return cmp.Compare(a.Uint64(), b.Uint64()) }) {
		return &page.CorruptError{ID: id, Problem: "page of zeros, to which the redo log has changes (tablespace<<32|number)", Expected: id.Uint64()}
	}
	return nil
}

// apply brings the pages of the batch up to date, in memory or on disk.
func (r *recovery) apply() (err error) {
	if r.batch.Empty() {
		return nil
	}
	if r.cache == nil {
		if r.cache, err = buffer.NewRecoveryCache(r.opt.Env, r.opt.FS, r.spaces, r.opt.RecoveryCache); err != nil {
			return err
		}
		r.tell.cache.Store(r.cache)
	}
	for _, op := range r.batch.SpaceOps() {
		if err := r.applySpaceOp(op.Op); err != nil {
			return err
		}
	}
	work := &pageWork{r: r, ids: r.batch.Pages()}
	if err := r.cache.Begin(work.ids); err != nil {
		return err
	}
	tasks := env.NewGroup(r.opt.Env)
	for range max(1, min(r.opt.RecoveryTasks, len(work.ids))) {
		tasks.Go("recovery", work.run)
	}
	tasks.Wait()
	if work.err != nil {
		return work.err
	}
	if err := r.cache.EndBatch(); err != nil {
		return err
	}
	r.tell.redoAt.Store(uint64(r.end))
	r.batch.Reset()
	return nil
}

func (r *recovery) applySpaceOp(op redo.Op) error {
	no := op.ID.Space
	var err error
	switch op.Kind {
	case redo.KindSpaceCreate:
		// The file was durable before this was logged. One that is missing is not made
		// anew: what a bulk load wrote into it is not in the log.
		_, err = r.spaces.Probe(no)
	case redo.KindSpaceDrop:
		delete(r.missing, no)
		delete(r.short, no)
		r.forgetBlank(no, 0)
		r.cache.DropSpace(no)
		err = r.spaces.RecoverDrop(no)
	case redo.KindSpaceResize:
		r.forgetBlank(no, op.Pages)
		err = r.resize(no, op.Pages)
	}
	if errors.Is(err, space.ErrNotFound) {
		if op.Kind != redo.KindSpaceDrop {
			r.missing[no] = true
		}
		return nil
	}
	return err
}

// resize makes a tablespace's file as long as the log says. Room that a file had given back when the process ended may be taken by others by
// now: on a full disk a start goes on without it.
func (r *recovery) resize(no, pages uint32) error {
	if r.short[no] != nil {
		have, err := r.spaces.FilePages(no)
		if err != nil || have < pages {
			return err // it does not grow now: what was left out would be missing
		}
		delete(r.short, no)
	}
	err := r.spaces.RecoverResize(no, pages)
	if errors.Is(err, space.ErrNoSpace) {
		r.short[no], err = err, nil
	}
	return err
}

// forgetBlank forgets the blank pages of a tablespace from a number on.
func (r *recovery) forgetBlank(space, from uint32) {
	maps.DeleteFunc(r.blank, func(id page.ID, _ bool) bool { return id.Space == space && id.No >= from })
}

// pageWork is the pages of a batch, shared by tasks.
type pageWork struct {
	r    *recovery
	ids  []page.ID
	mu   sync.Mutex // guards what follows, and what the pages add to r
	next int
	err  error
}

func (w *pageWork) take() (page.ID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.next == len(w.ids) {
		return page.ID{}, false
	}
	w.next++
	w.r.tell.redoAt.Store(uint64(w.r.from) + uint64(w.r.end-w.r.from)*uint64(w.next-1)/uint64(len(w.ids)))
	return w.ids[w.next-1], true
}

func (w *pageWork) run() {
	spare := make([]byte, page.Size)
	for {
		id, ok := w.take()
		if !ok {
			return
		}
		if err := w.one(id, spare); err != nil {
			w.mu.Lock()
			if w.err == nil {
				w.err = err
			}
			w.mu.Unlock()
		}
	}
}

// one brings a page up to date.
func (w *pageWork) one(id page.ID, spare []byte) error {
	r := w.r
	p, known := r.cache.Get(id, spare)
	if !known {
		there, err := w.read(id, p)
		if err != nil || !there {
			r.cache.Leave(id)
			return err
		}
	}
	if _, _, _, err := r.batch.Apply(id, p); err != nil {
		return err
	}
	// A page that lacks nothing is written too: it may be so in the system's cache
	// only, where a process left it that was killed before its sync, or whose sync
	// failed. The log is given up in the end.
	return r.cache.Done(id, p)
}

// read reads the page that the batch's changes build on. there is false for a page that has
// gone, as the log tells further on.
func (w *pageWork) read(id page.ID, p []byte) (there bool, err error) {
	r := w.r
	err = r.spaces.ReadPage(id, p)
	init := r.batch.BeginsWithInit(id)
	switch {
	case errors.Is(err, space.ErrBeyondEnd):
		return false, nil // the file was cut after these changes
	case errors.Is(err, space.ErrNotFound):
		w.mu.Lock()
		r.missing[id.Space] = true
		w.mu.Unlock()
		return false, nil
	case err != nil:
		return false, err
	case init && page.Verify(p, id) != nil:
		clear(p) // a torn write of a page that the log makes anew
	case !init:
		if err := page.Verify(p, id); err != nil {
			return false, err
		}
		// The log has all changes from first on: a page of then or later lacks none of them.
		if page.GetLSN(p) < r.first {
			if err := r.spaces.CheckLSN(id, p); err != nil {
				return false, err
			}
		}
		if page.IsZero(p) {
			w.mu.Lock()
			r.blank[id] = true
			w.mu.Unlock()
			return false, nil
		}
	}
	w.mu.Lock()
	delete(r.blank, id)
	w.mu.Unlock()
	return true, nil
}
