package space

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// System is the number of the system tablespace, FirstUndo the least number of
// an undo tablespace.
const (
	System    uint32 = 0
	FirstUndo uint32 = 0xFFFF0000
)

// Options configure a registry. FS and Env are required.
type Options struct {
	FS  file.FS
	Env env.Env
	// Dir holds the files; "" means "spaces".
	Dir string
	// Database is the identity that every file must carry.
	Database DatabaseID
	// OpenFiles is innodb_open_files: how many files are kept open, apart from
	// those that are in use; 0 means 4000.
	OpenFiles int
	// ReserveExtents bounds what each tablespace keeps back for rollback and
	// purge, in extents; 0 means 4. See [Use].
	ReserveExtents int
	// Direct opens the files for I/O past the page cache.
	Direct bool
	// LSNMemory is what may be kept in memory of the LSNs of pages, in bytes: 8 for each page
	// of what is in use; at least 256 KiB.
	LSNMemory int64
}

// Registry owns the tablespace files of a database. It implements buffer.Store.
// All methods are safe for concurrent use.
type Registry struct {
	opt  Options
	pool *buffer.Pool

	mu      sync.Mutex // guards what follows and the fields of handles
	handles map[uint32]*handle
	lru     handle // ring of the open handles, most recently used first
	open    int
	spaces  map[uint32]*Space
	unread  readError // the last one

	readErrors atomic.Uint64
	written    *written
}

// readError is an error of the disk in the place of a page.
type readError struct {
	name   string
	offset int64
	err    error
}

var _ buffer.Store = (*Registry)(nil)

// handle is one file, open or not. A pinned handle keeps its file.
type handle struct {
	no      uint32
	opening *env.Mutex    // held while the file is opened or closed
	pages   atomic.Uint32 // size of the file in whole pages

	f          file.File // nil: closed
	pins       int
	written    bool // since the last sync
	unsynced   []writtenPage
	dropped    bool
	err        error      // the file could not be synced when it was closed
	idle       env.Parker // woken when a dropped handle loses its last pin
	prev, next *handle
}

// writtenPage is a page that was written with an LSN.
type writtenPage struct {
	no  uint32
	lsn page.LSN
}

// New returns a registry for the files in the directory, which it makes if
// needed. [Registry.Bind] must be called before spaces are opened or dropped.
func New(opt Options) (*Registry, error) {
	if opt.Dir == "" {
		opt.Dir = "spaces"
	}
	if opt.OpenFiles <= 0 {
		opt.OpenFiles = 4000
	}
	if opt.ReserveExtents <= 0 {
		opt.ReserveExtents = 4
	}
	if err := opt.FS.MkdirAll(opt.Dir); err != nil {
		return nil, fmt.Errorf("space: making the directory of tablespaces: %w", err)
	}
	if err := opt.FS.SyncDir(path.Dir(opt.Dir)); err != nil {
		return nil, fmt.Errorf("space: making the directory of tablespaces: %w", err)
	}
	r := &Registry{opt: opt, handles: map[uint32]*handle{}, spaces: map[uint32]*Space{}}
	r.lru.prev, r.lru.next = &r.lru, &r.lru
	var err error
	if r.written, err = newWritten(&r.opt, opt.LSNMemory); err != nil {
		return nil, err
	}
	return r, nil
}

// Bind tells the registry which pool caches its pages.
func (r *Registry) Bind(pool *buffer.Pool) { r.pool = pool }

// Name is the name of the file of tablespace no.
func (r *Registry) Name(no uint32) string { return r.opt.name(no) }

func (o *Options) name(no uint32) string { return fmt.Sprintf("%s/%08x.trd", o.Dir, no) }

// ReadPage implements buffer.Store. It returns [ErrBeyondEnd] for a page that the
// file does not reach, and [ErrNotFound] if there is no such file.
func (r *Registry) ReadPage(id page.ID, p []byte) error {
	h, err := r.acquire(id.Space)
	if err != nil {
		if errors.Is(err, syscall.EIO) { // the file cannot be opened, or the start of it not be read
			r.noteReadError(id, err)
		}
		return err
	}
	defer r.release(h)
	if id.No >= h.pages.Load() {
		return fmt.Errorf("space: page %v: %w", id, ErrBeyondEnd)
	}
	n, err := h.f.ReadAt(p[:page.Size], int64(id.No)*page.Size)
	switch {
	case n == page.Size:
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("space: page %v: %w", id, ErrBeyondEnd)
	}
	r.noteReadError(id, err)
	return fmt.Errorf("space: reading page %v: %w", id, err)
}

func (r *Registry) noteReadError(id page.ID, err error) {
	r.mu.Lock()
	r.unread = readError{r.Name(id.Space), int64(id.No) * page.Size, err}
	r.mu.Unlock()
	r.readErrors.Add(1)
}

// Unsound implements buffer.Store: a page with a wrong checksum, or an old one, counts as an error of the disk.
func (r *Registry) Unsound(id page.ID, err error) {
	if !errors.Is(err, page.ErrNewerFormat) {
		r.noteReadError(id, err)
	}
}

// ReadErrors is how many reads of pages have ended with an error of the disk, or with what was not written there.
func (r *Registry) ReadErrors() uint64 { return r.readErrors.Load() }

// LastReadError is where the last of them was, and the error.
func (r *Registry) LastReadError() (name string, offset int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread.name, r.unread.offset, r.unread.err
}

// WritePage implements buffer.Store. Writes to a tablespace that is being dropped,
// and of pages that were cut off the file, are left out: nothing reads them again.
func (r *Registry) WritePage(id page.ID, p []byte) error {
	h, err := r.acquire(id.Space)
	if err != nil {
		if errors.Is(err, errDropped) {
			return nil
		}
		return err
	}
	defer r.release(h)
	if id.No >= h.pages.Load() {
		return nil
	}
	r.mu.Lock()
	h.written = true
	h.unsynced = append(h.unsynced, writtenPage{id.No, page.GetLSN(p)})
	r.mu.Unlock()
	if _, err := h.f.WriteAt(p[:page.Size], int64(id.No)*page.Size); err != nil {
		return fmt.Errorf("space: writing page %v: %w", id, err)
	}
	return nil
}

// CheckLSN implements buffer.Store: it looks whether a page that was read, and is sound, is as
// new as it was written. Error: a *page.CorruptError.
func (r *Registry) CheckLSN(id page.ID, p []byte) error {
	lsn := page.GetLSN(p)
	last, lost := r.written.lsn(id)
	switch {
	case lost != 0:
		return &page.CorruptError{ID: id, Problem: "perhaps older than what was written: the disk has lost writes of this part of the file, or it is an old one (LSN)", Expected: uint64(lost), Found: uint64(lsn)}
	case lsn < last:
		return &page.CorruptError{ID: id, Problem: "older than what was written, of which the disk has lost a write, or part of the file is an old one (LSN)", Expected: uint64(last), Found: uint64(lsn)}
	}
	return nil
}

// SaveLSNs writes now and then what CheckLSN will have to know after the next start.
func (r *Registry) SaveLSNs() { r.written.save(false) }

// SyncSpace implements buffer.Store.
func (r *Registry) SyncSpace(no uint32) error {
	h, err := r.acquire(no)
	if err != nil {
		if errors.Is(err, errDropped) {
			return nil
		}
		return err
	}
	defer r.release(h)
	r.mu.Lock()
	h.written = false
	pages := h.unsynced
	h.unsynced = nil
	r.mu.Unlock()
	if err := h.f.Sync(); err != nil {
		r.mu.Lock()
		h.written = true // closed and opened again it must not sync as if nothing had been lost
		r.mu.Unlock()
		return fmt.Errorf("space: syncing tablespace %d: %w", no, err)
	}
	r.written.note(no, pages, h.pages.Load)
	r.mu.Lock()
	if h.unsynced == nil {
		h.unsynced = pages[:0]
	}
	r.mu.Unlock()
	return nil
}

// errDropped tells a tablespace that is being dropped from one that never was.
var errDropped = fmt.Errorf("space: dropped: %w", ErrNotFound)

// acquire pins the file of a tablespace and opens it if it is not open.
func (r *Registry) acquire(no uint32) (*handle, error) {
	r.mu.Lock()
	h := r.handleLocked(no)
	if h.dropped {
		r.mu.Unlock()
		return nil, errDropped
	}
	if h.err != nil {
		r.mu.Unlock()
		return nil, h.err
	}
	h.pins++
	if h.f != nil {
		r.toFront(h)
		r.mu.Unlock()
		return h, nil
	}
	r.mu.Unlock()
	if err := r.openHandle(h); err != nil {
		r.release(h)
		return nil, err
	}
	return h, nil
}

// handleLocked returns the entry of a tablespace, made if it is not there.
func (r *Registry) handleLocked(no uint32) *handle {
	h := r.handles[no]
	if h == nil {
		h = &handle{no: no, opening: env.NewMutex(r.opt.Env)}
		r.handles[no] = h
	}
	return h
}

// openHandle opens the file of a pinned handle, unless another task has.
func (r *Registry) openHandle(h *handle) error {
	h.opening.Lock()
	defer h.opening.Unlock()
	r.mu.Lock()
	done, failed := h.f != nil, h.err
	r.mu.Unlock()
	if done || failed != nil {
		return failed
	}
	f, err := r.openFile(h.no)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.adopt(h, f, size)
	return nil
}

// adopt gives a pinned handle its open file.
func (r *Registry) adopt(h *handle, f file.File, size int64) {
	h.pages.Store(uint32(min(size/page.Size, maxExtents*ExtentPages)))
	r.mu.Lock()
	h.f = f
	h.prev, h.next = h, h
	r.toFront(h)
	r.open++
	r.mu.Unlock()
}

// release unpins a handle, and closes the files that are too many.
func (r *Registry) release(h *handle) {
	r.mu.Lock()
	h.pins--
	if h.pins == 0 {
		if h.idle != nil {
			h.idle.Unpark()
		}
		if h.f == nil && !h.dropped && h.err == nil && r.handles[h.no] == h {
			delete(r.handles, h.no)
		}
	}
	for r.open > r.opt.OpenFiles {
		victim := r.victimLocked()
		if victim == nil {
			break
		}
		f, written := victim.f, victim.written
		r.detachLocked(victim)
		r.mu.Unlock()
		err := closeFile(f, written)
		r.mu.Lock()
		if err != nil && victim.err == nil {
			victim.err = fmt.Errorf("space: closing tablespace %d: %w", victim.no, err)
		}
		if victim.pins == 0 && victim.err == nil && r.handles[victim.no] == victim && !victim.dropped {
			delete(r.handles, victim.no)
		}
		victim.opening.Unlock()
	}
	r.mu.Unlock()
}

// victimLocked returns the least recently used handle that is not in use, with
// its opening mutex taken; nil if there is none.
func (r *Registry) victimLocked() *handle {
	for h := r.lru.prev; h != &r.lru; h = h.prev {
		if h.pins == 0 && !h.dropped && h.opening.TryLock() {
			return h
		}
	}
	return nil
}

// detachLocked takes the file from a handle.
func (r *Registry) detachLocked(h *handle) {
	h.prev.next, h.next.prev = h.next, h.prev
	h.prev, h.next = nil, nil
	h.f, h.written, h.unsynced = nil, false, nil
	r.open--
}

// closeFile closes a file so that a failed write-back cannot go unnoticed: an
// error that the system meets later is reported only to files open by then.
func closeFile(f file.File, written bool) error {
	var err error
	if written {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// toFront makes an open handle the most recently used.
func (r *Registry) toFront(h *handle) {
	h.prev.next, h.next.prev = h.next, h.prev
	h.prev, h.next = &r.lru, r.lru.next
	h.prev.next, h.next.prev = h, h
}

// Get returns an open space, or nil.
func (r *Registry) Get(no uint32) *Space {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spaces[no]
}

// List returns the numbers of the open spaces in ascending order.
func (r *Registry) List() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	nos := make([]uint32, 0, len(r.spaces))
	for no := range r.spaces {
		nos = append(nos, no)
	}
	sort.Slice(nos, func(i, j int) bool { return nos[i] < nos[j] })
	return nos
}

// OpenFiles is the number of files that are open now.
func (r *Registry) OpenFiles() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open
}

// Exists reports whether there is a file for the tablespace, whatever it holds.
func (r *Registry) Exists(no uint32) (bool, error) {
	ok, err := r.opt.FS.Exists(r.Name(no))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("space: looking for tablespace %d: %w", no, err)
	}
	return ok, nil
}

// Close closes the files after syncing those that were written to.
//
// REQUIRES: no work on any space, then or later.
func (r *Registry) Close() error {
	r.mu.Lock()
	var files []*handle
	for h := r.lru.next; h != &r.lru; h = h.next {
		files = append(files, h)
	}
	r.spaces = map[uint32]*Space{}
	r.mu.Unlock()
	var all error
	for _, h := range files {
		r.mu.Lock()
		f, written := h.f, h.written
		r.detachLocked(h)
		delete(r.handles, h.no)
		r.mu.Unlock()
		all = errors.Join(all, closeFile(f, written))
	}
	r.written.save(true)
	return all
}
