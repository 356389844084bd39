package simfile

import (
	"io"
	"io/fs"
	"path"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Open implements [file.FS].
func (s *FS) Open(name string, opt file.OpenOptions) (file.File, error) {
	create := opt.Create || opt.Exclusive
	ino, err := s.obtain(OpOpen, name, create, opt.Exclusive)
	if err != nil {
		return nil, err
	}
	return &handle{fs: s, ino: ino, name: name, readOnly: opt.ReadOnly, syncing: env.NewMutex(s.env)}, nil
}

// obtain finds a file, or makes it, and counts an opener. The call is of kind op
// if the file is there and of kind OpCreate if not.
func (s *FS) obtain(op Op, name string, create, exclusive bool) (*inode, error) {
	if create {
		s.mu.Lock()
		if s.tree.cur[name] == nil {
			op = OpCreate
		}
		s.mu.Unlock()
	}
	injected, err := s.enter(op, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return nil, fail(op, name, file.ErrCrashed)
	}
	if err := s.tree.parent(name); err != nil {
		return nil, fail(op, name, err)
	}
	ino := s.tree.cur[name]
	switch {
	case ino == nil && !create:
		return nil, fail(op, name, fs.ErrNotExist)
	case ino != nil && exclusive:
		return nil, fail(op, name, fs.ErrExist)
	case ino != nil && ino.dir:
		return nil, fail(op, name, errIsDir)
	case ino != nil && injected == nil:
		ino.open++
		return ino, nil
	case ino != nil:
		return nil, fail(op, name, injected)
	}
	crashing := s.change()
	if injected == nil {
		ino = &inode{named: true, open: 1}
		s.tree.do(nameOp{to: name, ino: ino})
	}
	return ino, s.settle(crashing, op, name, injected)
}

// Remove implements [file.FS].
func (s *FS) Remove(name string) error {
	var ino *inode
	return s.perform(OpRemove, name, func() (err error) {
		ino, err = s.tree.lookup(name)
		switch {
		case err != nil:
			return err
		case name == ".":
			return fs.ErrInvalid
		case ino.dir && len(s.tree.list(name)) > 0:
			return errNotEmpty
		}
		return nil
	}, func() error {
		s.tree.do(nameOp{from: name})
		ino.named = false
		s.release(ino)
		return nil
	})
}

// Rename implements [file.FS]. It moves files only.
func (s *FS) Rename(from, to string) error {
	var ino, replaced *inode
	return s.perform(OpRename, from, func() (err error) {
		if ino, err = s.tree.lookup(from); err != nil {
			return err
		}
		if err := s.tree.parent(to); err != nil {
			return err
		}
		replaced = s.tree.cur[to]
		if ino.dir || replaced != nil && replaced.dir {
			return errIsDir
		}
		return nil
	}, func() error {
		if replaced == ino {
			return nil
		}
		s.tree.do(nameOp{from: from, to: to, ino: ino})
		if replaced != nil {
			replaced.named = false
			s.release(replaced)
		}
		return nil
	})
}

// List implements [file.FS].
func (s *FS) List(dir string) ([]string, error) {
	injected, err := s.enter(OpList, dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return nil, fail(OpList, dir, file.ErrCrashed)
	}
	if _, err := s.tree.directory(dir); err != nil {
		return nil, fail(OpList, dir, err)
	}
	if injected != nil {
		return nil, fail(OpList, dir, injected)
	}
	return s.tree.list(dir), nil
}

// MkdirAll implements [file.FS].
func (s *FS) MkdirAll(dir string) error {
	if !fs.ValidPath(dir) {
		return fail(OpMkdir, dir, fs.ErrInvalid)
	}
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if err := s.mkdir(dir[:i]); err != nil {
			return err
		}
	}
	return nil
}

// mkdir makes one directory if it is missing.
func (s *FS) mkdir(dir string) error {
	s.mu.Lock()
	ino := s.tree.cur[dir]
	crashed := s.crashed
	s.mu.Unlock()
	if ino != nil && ino.dir && !crashed {
		return nil
	}
	return s.perform(OpMkdir, dir, func() error {
		if ino := s.tree.cur[dir]; ino != nil && !ino.dir {
			return errNotDir
		}
		return s.tree.parent(dir)
	}, func() error {
		if s.tree.cur[dir] == nil {
			s.tree.do(nameOp{to: dir, ino: &inode{dir: true, named: true}})
		}
		return nil
	})
}

// SyncDir implements [file.FS].
func (s *FS) SyncDir(dir string) error {
	s.stats.DirSyncs.Add(1)
	injected, err := s.enter(OpSyncDir, dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return fail(OpSyncDir, dir, file.ErrCrashed)
	}
	if _, err := s.tree.directory(dir); err != nil {
		return fail(OpSyncDir, dir, err)
	}
	crashing := s.change()
	if injected == nil && !crashing {
		s.tree.syncDir(dir)
	}
	return s.settle(crashing, OpSyncDir, dir, injected)
}

// Exists implements [file.FS].
func (s *FS) Exists(name string) (bool, error) {
	injected, err := s.enter(OpList, name)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.crashed:
		return false, fail(OpList, name, file.ErrCrashed)
	case !fs.ValidPath(name):
		return false, fail(OpList, name, fs.ErrInvalid)
	case injected != nil:
		return false, fail(OpList, name, injected)
	}
	return s.tree.cur[path.Clean(name)] != nil, nil
}

// Lock implements [file.FS]. A crash image holds no locks.
func (s *FS) Lock(name string) (io.Closer, error) {
	ino, err := s.obtain(OpLock, name, true, false)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[ino] {
		ino.open--
		return nil, fail(OpLock, name, file.ErrLocked)
	}
	s.locks[ino] = true
	return &fileLock{fs: s, ino: ino}, nil
}

type fileLock struct {
	fs  *FS
	ino *inode
}

// Close gives the lock back.
func (l *fileLock) Close() error {
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.ino == nil {
		return fs.ErrClosed
	}
	delete(l.fs.locks, l.ino)
	l.ino.open--
	l.fs.release(l.ino)
	l.ino = nil
	return nil
}
