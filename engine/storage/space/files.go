package space

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// DatabaseID is drawn when a database is created; all its files carry it.
type DatabaseID [16]byte

// Identity is what the first sector of a tablespace file says about it.
type Identity struct {
	Format   uint32
	Space    uint32
	Database DatabaseID
}

// sector is how much of a file is read to identify it.
const sector = file.Alignment

// initialPages is the size of a new file: room for a small table and the reserve.
const initialPages = 8

// Probe reads the identity of a tablespace file. A file that is something else
// gives [ErrForeign], one from a newer program [ErrNewerFormat].
func Probe(fsys file.FS, name string) (Identity, error) {
	f, err := fsys.Open(name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		return Identity{}, notFound(err)
	}
	id, err := identify(f)
	return id, errors.Join(err, f.Close())
}

// Probe reads the identity of the tablespace's file and checks that it is what the
// name says, without opening the space.
func (r *Registry) Probe(no uint32) (Identity, error) {
	id, err := Probe(r.opt.FS, r.Name(no))
	if err == nil {
		err = id.check(no, r.opt.Database)
	}
	return id, err
}

func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

func identify(f file.File) (Identity, error) {
	b := file.AlignedBuffer(sector)
	if n, err := f.ReadAt(b, 0); err != nil && (n < 512 || !errors.Is(err, io.EOF)) {
		if errors.Is(err, io.EOF) {
			return Identity{}, fmt.Errorf("%s: %w: it is too short", f.Name(), ErrForeign)
		}
		return Identity{}, fmt.Errorf("identifying tablespace file: %w", err)
	}
	id, err := parseIdentity(b)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.Name(), err)
	}
	return id, err
}

// parseIdentity reads the identity from the first sector of page 0.
func parseIdentity(b []byte) (Identity, error) {
	if string(b[offMagic:offMagic+len(fileMagic)]) != fileMagic {
		return Identity{}, ErrForeign
	}
	id := Identity{Format: le.Uint32(b[offFormat:]), Space: le.Uint32(b[offSpaceNo:])}
	copy(id.Database[:], b[offDBID:])
	switch {
	case id.Format > FormatVersion:
		return id, fmt.Errorf("%w: format %d, known are 1 to %d", ErrNewerFormat, id.Format, FormatVersion)
	case id.Format == 0:
		return id, ErrForeign
	}
	return id, nil
}

// check refuses a file of another database or another tablespace.
func (id Identity) check(no uint32, db DatabaseID) error {
	if id.Database != db {
		return fmt.Errorf("%w: it belongs to database %x, this one is %x", ErrForeign, id.Database, db)
	}
	if id.Space != no {
		return fmt.Errorf("%w: it is tablespace %d", ErrForeign, id.Space)
	}
	return nil
}

// openFile opens and identifies the file of a tablespace.
func (r *Registry) openFile(no uint32) (file.File, error) {
	f, err := r.opt.FS.Open(r.Name(no), file.OpenOptions{Direct: r.opt.Direct})
	if err != nil {
		return nil, fmt.Errorf("space: opening tablespace %d: %w", no, notFound(err))
	}
	id, err := identify(f)
	if err == nil {
		err = id.check(no, r.opt.Database)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("space: opening tablespace %d: %w", no, err), f.Close())
	}
	return f, nil
}

// createFile makes the file of a tablespace durably, with page 0 as of an empty
// space. After a crash the file is missing, unfinished (see [Registry.Orphans]) or
// whole.
func (r *Registry) createFile(no uint32) (file.File, error) {
	name := r.Name(no)
	f, err := r.opt.FS.Open(name, file.OpenOptions{Create: true, Exclusive: true, Direct: r.opt.Direct})
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: %w", ErrExists, err)
		}
		return nil, spaceError(fmt.Errorf("space: creating tablespace %d: %w", no, err))
	}
	if err = r.fillFile(f, no); err != nil {
		err = spaceError(fmt.Errorf("space: creating tablespace %d: %w", no, err))
		return nil, errors.Join(err, f.Close(), r.opt.FS.Remove(name))
	}
	return f, nil
}

func (r *Registry) fillFile(f file.File, no uint32) error {
	if err := f.Allocate(0, initialPages*page.Size); err != nil {
		return err
	}
	p := file.AlignedBuffer(page.Size)
	page.Init(p, page.ID{Space: no}, page.TypeSpaceHeader)
	putEmpty(p, no, r.opt.Database)
	page.Seal(p)
	if _, err := f.WriteAt(p, 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return r.opt.FS.SyncDir(r.opt.Dir)
}

// putEmpty fills in the body of page 0 of an empty space.
func putEmpty(p []byte, no uint32, db DatabaseID) {
	putIdentity(p, no, db)
	h := newHeader()
	h.put(p[offState:])
	d := firstDesc()
	d.put(p[offExtents:])
}

// spaceError makes a full disk recognisable as [ErrNoSpace].
func spaceError(err error) error {
	if errors.Is(err, file.ErrNoSpace) && !errors.Is(err, ErrNoSpace) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// Create makes tablespace no: the file durably at once, its pages in m. A crash
// before m's redo is durable leaves a file that [Registry.Orphans] finds. Errors:
// [ErrExists], [ErrNoSpace], and those of the file system and the pool; the file
// is gone then.
//
// REQUIRES: no was never used before in this database.
func (r *Registry) Create(m *mtr.Mtr, no uint32) (*Space, error) {
	f, err := r.createFile(no)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	h := r.handleLocked(no)
	h.pins++
	r.mu.Unlock()
	r.adopt(h, f, initialPages*page.Size)
	defer r.release(h)

	m.LogSpaceCreate(no)
	p0, err := m.GetNew(page.ID{Space: no}, page.TypeSpaceHeader)
	if err != nil {
		m.LogSpaceDrop(no)
		return nil, errors.Join(fmt.Errorf("space: creating tablespace %d: %w", no, err), r.discard(h))
	}
	image := make([]byte, page.Size)
	putEmpty(image, no, r.opt.Database)
	m.Write(p0, offMagic, image[offMagic:offState+headerSize])
	m.Write(p0, offExtents, image[offExtents:offExtents+descSize])
	s := newSpace(r, no, 1)
	r.mu.Lock()
	r.spaces[no] = s
	r.mu.Unlock()
	return s, nil
}

// discard removes a file that was just created.
func (r *Registry) discard(h *handle) error {
	r.mu.Lock()
	f := h.f
	r.detachLocked(h)
	r.mu.Unlock()
	return errors.Join(f.Close(), r.opt.FS.Remove(r.Name(h.no)))
}

// Open returns the space, read from its page 0 if it is not open yet. A file that
// is shorter than its header says gives a *page.CorruptError.
func (r *Registry) Open(no uint32) (*Space, error) {
	if s := r.Get(no); s != nil {
		return s, nil
	}
	h, err := r.acquire(no)
	if err != nil {
		return nil, err
	}
	defer r.release(h)
	m := mtr.New(r.pool)
	m.BeginRead()
	defer m.Commit()
	p0, err := m.Get(page.ID{Space: no}, mtr.S)
	if err != nil {
		return nil, fmt.Errorf("space: opening tablespace %d: %w", no, err)
	}
	hdr, err := readHeader(p0.Data, no, r.opt.Database)
	if err != nil {
		return nil, fmt.Errorf("space: opening tablespace %d: %w", no, err)
	}
	if n := h.pages.Load(); n < hdr.size {
		return nil, corrupt(no, 0, "file is shorter than its header says (pages)", uint64(hdr.size), uint64(n))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.spaces[no]; s != nil {
		return s, nil
	}
	s := newSpace(r, no, hdr.size)
	r.spaces[no] = s
	return s, nil
}

// readHeader checks page 0 and returns its changing part.
func readHeader(p []byte, no uint32, db DatabaseID) (header, error) {
	if t := page.GetType(p); t != page.TypeSpaceHeader {
		return header{}, corrupt(no, 0, "page type", uint64(page.TypeSpaceHeader), uint64(t))
	}
	id, err := parseIdentity(p)
	if err == nil {
		err = id.check(no, db)
	}
	if err != nil {
		return header{}, err
	}
	h := getHeader(p)
	if !h.sane() {
		return header{}, corrupt(no, 0, "space header contradicts itself (size)", 0, uint64(h.size))
	}
	return h, nil
}

// Drop removes a tablespace with its cached pages. What is cached but not written
// is discarded. The file is gone for good when Drop returns nil.
//
// REQUIRES: the redo of its SPACE_DROP is durable; nobody works on the space.
func (r *Registry) Drop(no uint32) error {
	r.mu.Lock()
	delete(r.spaces, no)
	h := r.handleLocked(no)
	h.dropped = true
	for h.pins > 0 {
		if h.idle == nil {
			h.idle = r.opt.Env.NewParker()
		}
		r.mu.Unlock()
		h.idle.Park()
		r.mu.Lock()
	}
	r.mu.Unlock()
	if r.pool != nil {
		r.pool.DropSpace(no)
	}
	h.opening.Lock()
	defer h.opening.Unlock()
	r.mu.Lock()
	f := h.f
	if f != nil {
		r.detachLocked(h)
	}
	r.mu.Unlock()
	var err error
	if f != nil {
		err = f.Close()
	}
	if err = errors.Join(err, r.removeFile(no)); err != nil {
		return err
	}
	r.written.drop(no)
	r.mu.Lock()
	delete(r.handles, no)
	r.mu.Unlock()
	return nil
}

// removeFile unlinks a tablespace's file durably, if there is one.
func (r *Registry) removeFile(no uint32) error {
	err := r.opt.FS.Remove(r.Name(no))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = r.opt.FS.SyncDir(r.opt.Dir)
	}
	if err != nil {
		return fmt.Errorf("space: removing tablespace %d: %w", no, err)
	}
	return nil
}

// RecoverDrop replays SPACE_DROP: it removes the file if it is there.
//
// REQUIRES: nobody works on the space.
func (r *Registry) RecoverDrop(no uint32) error { return r.Drop(no) }

// RecoverResize replays SPACE_RESIZE: it makes the file at least that long. It
// never cuts it; what is too much serves later growth.
func (r *Registry) RecoverResize(no uint32, pages uint32) error {
	h, err := r.acquire(no)
	if err != nil {
		return err
	}
	defer r.release(h)
	return r.extend(h, pages, pages)
}

// FilePages is how many pages a tablespace's file has. Error: [ErrNotFound].
func (r *Registry) FilePages(no uint32) (uint32, error) {
	h, err := r.acquire(no)
	if err != nil {
		return 0, err
	}
	defer r.release(h)
	return h.pages.Load(), nil
}

// extend makes a pinned handle's file want pages long, or at least need, and
// returns [ErrNoSpace] if that cannot be.
//
// REQUIRES: nobody else changes the file's size meanwhile.
func (r *Registry) extend(h *handle, need, want uint32) error {
	have := h.pages.Load()
	if have >= need {
		return nil
	}
	if need > maxExtents*ExtentPages {
		return fmt.Errorf("space: tablespace %d has the greatest size: %w", h.no, ErrNoSpace)
	}
	target := min(max(need, want), maxExtents*ExtentPages)
	err := h.f.Allocate(int64(have)*page.Size, int64(target-have)*page.Size)
	if target > need && errors.Is(err, file.ErrNoSpace) {
		target = need
		err = h.f.Allocate(int64(have)*page.Size, int64(target-have)*page.Size)
	}
	if err != nil {
		return spaceError(fmt.Errorf("space: extending tablespace %d to %d pages: %w", h.no, target, err))
	}
	h.pages.Store(target)
	return nil
}

// Files returns the numbers of the tablespace files in the directory, by name
// alone, in ascending order.
func (r *Registry) Files() ([]uint32, error) {
	names, err := r.opt.FS.List(r.opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("space: listing tablespaces: %w", err)
	}
	var nos []uint32
	for _, name := range names {
		base, ok := strings.CutSuffix(name, ".trd")
		if !ok || len(base) != 8 {
			continue
		}
		if no, err := strconv.ParseUint(base, 16, 32); err == nil && fmt.Sprintf("%08x", no) == base {
			nos = append(nos, uint32(no))
		}
	}
	return nos, nil
}

// Orphans returns the files of this database that known does not claim, and files
// whose creation was cut short: left by a crash between a file's creation and its
// entry in the catalogue. Files of other databases are not touched.
//
// REQUIRES: redo has been applied; no space is being created.
func (r *Registry) Orphans(known func(no uint32) bool) ([]uint32, error) {
	nos, err := r.Files()
	if err != nil {
		return nil, err
	}
	var orphans []uint32
	for _, no := range nos {
		if known(no) {
			continue
		}
		id, err := Probe(r.opt.FS, r.Name(no))
		ours := err == nil && id.check(no, r.opt.Database) == nil
		if errors.Is(err, ErrForeign) {
			if ours, err = r.unfinished(no); err != nil {
				return nil, err
			}
		} else if err != nil && !errors.Is(err, ErrNewerFormat) {
			return nil, fmt.Errorf("space: %w", err)
		}
		if ours {
			orphans = append(orphans, no)
		}
	}
	return orphans, nil
}

// RemoveOrphan removes a file that [Registry.Orphans] returned.
func (r *Registry) RemoveOrphan(no uint32) error {
	if err := r.Drop(no); err != nil {
		return err
	}
	return r.written.high.store() // another will have its number
}

// unfinished reports whether the file is one that createFile was still filling:
// no longer than a new one, and zeros from the identity on in the first sector.
func (r *Registry) unfinished(no uint32) (bool, error) {
	f, err := r.opt.FS.Open(r.Name(no), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return false, fmt.Errorf("space: looking at tablespace %d: %w", no, err)
	}
	size, err := f.Size()
	short := err == nil && size <= initialPages*page.Size
	if short {
		b := file.AlignedBuffer(sector)
		var n int
		n, err = f.ReadAt(b, 0)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		for _, c := range b[:min(n, 512)] {
			short = short && c == 0
		}
	}
	return short && err == nil, errors.Join(err, f.Close())
}
