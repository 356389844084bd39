package simfile

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// handle is an open file.
type handle struct {
	fs       *FS
	ino      *inode
	name     string
	readOnly bool
	closed   bool // guarded by fs.mu

	syncing *env.Mutex // held while a Sync runs
	lost    error      // that the first failed Sync was injected with; guarded by syncing
}

// Name implements [file.File].
func (h *handle) Name() string { return h.name }

// usable checks that a call can be made at all.
//
// REQUIRES: h.fs.mu.
func (h *handle) usable(changes bool) error {
	switch {
	case h.fs.crashed:
		return file.ErrCrashed
	case h.closed:
		return fs.ErrClosed
	case changes && h.readOnly:
		return fs.ErrPermission
	}
	return nil
}

// ReadAt implements [file.File].
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	injected, err := h.fs.enter(OpRead, h.name)
	if err != nil {
		return 0, err
	}
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	err = h.usable(false)
	switch {
	case err != nil:
		return 0, fail(OpRead, h.name, err)
	case off < 0:
		return 0, fail(OpRead, h.name, fs.ErrInvalid)
	case injected != nil:
		return 0, fail(OpRead, h.name, injected)
	}
	n := int(max(0, min(int64(len(p)), h.ino.size-off)))
	if h.ino.unreadable(off, int64(n), true) {
		return 0, fail(OpRead, h.name, syscall.EIO)
	}
	h.ino.cur.readAt(p[:n], off)
	h.fs.stats.Reads.Add(1)
	h.fs.stats.ReadBytes.Add(int64(n))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements [file.File].
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	s := h.fs
	injected, err := s.enter(OpWrite, h.name)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := h.usable(true); err != nil {
		return 0, fail(OpWrite, h.name, err)
	}
	if off < 0 {
		return 0, fail(OpWrite, h.name, fs.ErrInvalid)
	}
	s.stats.Writes.Add(1)
	lies, _ := injected.(*lie)
	if lies != nil {
		injected = nil
	}
	if injected != nil {
		n := s.rng.IntN(len(p) + 1)
		if n < len(p) {
			n = max(0, n-int((off+int64(n))%SectorSize))
		}
		p = p[:n]
		if s.rng.IntN(2) == 0 {
			p = nil
		}
	}
	if h.ino.unreadable(off, int64(len(p)), false) {
		return 0, fail(OpWrite, h.name, syscall.EIO)
	}
	end := off + int64(len(p))
	if end > maxFileSize || end < off {
		return 0, fail(OpWrite, h.name, errTooBig)
	}
	if len(p) > 0 {
		if err := s.resize(max(0, end-h.ino.size)); err != nil {
			return 0, fail(OpWrite, h.name, err)
		}
	}
	crashing := s.change()
	if lies != nil {
		h.ino.loseWrite(p, off, lies.by)
	} else {
		h.ino.write(p, off)
	}
	if err := s.settle(crashing, OpWrite, h.name, injected); err != nil {
		return 0, err
	}
	s.stats.WriteBytes.Add(int64(len(p)))
	return len(p), nil
}

// Sync implements [file.File]. It covers what was written before the call, not
// what is written while it runs.
func (h *handle) Sync() error {
	s := h.fs
	s.env.Yield()
	h.syncing.Lock()
	defer h.syncing.Unlock()
	s.mu.Lock()
	err := h.usable(false)
	if err == nil {
		err = h.lost
	}
	if err != nil {
		s.mu.Unlock()
		return fail(OpSync, h.name, err)
	}
	s.stats.Syncs.Add(1)
	delay, injected := s.match(OpSync, h.name)
	point := h.ino.beginSync()
	s.mu.Unlock()

	if delay > 0 {
		env.Sleep(s.env, delay)
	} else {
		s.env.Yield()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return fail(OpSync, h.name, file.ErrCrashed)
	}
	crashing := s.change()
	_, lies := injected.(*lie)
	if lies {
		injected = nil
	}
	switch {
	case crashing, lies: // as far as it got: nothing is sure
	case injected != nil:
		h.lost = injected
		h.ino.failSync(point, s.rng)
	default:
		h.ino.endSync(point)
	}
	return s.settle(crashing, OpSync, h.name, injected)
}

// Truncate implements [file.File].
func (h *handle) Truncate(size int64) error {
	return h.resize(OpTruncate, size, func() int64 { return size })
}

// Allocate implements [file.File].
func (h *handle) Allocate(off, n int64) error {
	if off < 0 || n < 0 || off+n < off {
		return fail(OpAllocate, h.name, fs.ErrInvalid)
	}
	err := h.resize(OpAllocate, off+n, func() int64 {
		if n == 0 {
			return h.ino.size
		}
		return max(h.ino.size, off+n)
	})
	if n > 0 {
		h.fs.stats.Allocates.Add(1)
		if err == nil {
			h.fs.stats.AllocatedBytes.Add(n)
		}
	}
	return err
}

func (h *handle) resize(op Op, limit int64, size func() int64) error {
	s := h.fs
	return s.perform(op, h.name, func() error {
		err := h.usable(true)
		switch {
		case err != nil:
			return err
		case limit < 0:
			return fs.ErrInvalid
		case limit > maxFileSize:
			return errTooBig
		}
		return nil
	}, func() error {
		to := size()
		if err := s.resize(to - h.ino.size); err != nil {
			return err
		}
		h.ino.resize(to)
		return nil
	})
}

// Size implements [file.File].
func (h *handle) Size() (int64, error) {
	h.fs.env.Yield()
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable(false); err != nil {
		return 0, fail(OpRead, h.name, err)
	}
	return h.ino.size, nil
}

// Close implements [file.File].
func (h *handle) Close() error {
	h.fs.env.Yield()
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.usable(false); err != nil {
		return fail(OpOpen, h.name, err)
	}
	h.closed = true
	h.ino.open--
	h.fs.release(h.ino)
	return nil
}

// release gives back the space of a file that has neither name nor opener.
//
// REQUIRES: s.mu.
func (s *FS) release(ino *inode) {
	if ino != nil && !ino.named && ino.open == 0 {
		s.used -= ino.size
	}
}
