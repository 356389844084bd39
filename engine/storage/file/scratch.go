package file

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sync"
)

// Scratch is a directory of a file system as one of its own, for files that nobody needs when the process has ended:
// nothing in it is ever synced. What an earlier process has left there is removed first. The directory is made by the first
// file in it. Error: that of removing.
//
// It is locked by nobody but this process: who has the file system has the directory.
func Scratch(fsys FS, dir string) (FS, error) {
	if err := removeTree(fsys, dir); err != nil {
		return nil, err
	}
	return &scratch{FS: fsys, dir: dir, locks: map[string]bool{}}, nil
}

// removeTree removes a directory and what is in it.
func removeTree(fsys FS, name string) error {
	there, err := fsys.Exists(name)
	if err != nil || !there {
		return err
	}
	names, err := fsys.List(name)
	if err != nil { // it is a file
		return fsys.Remove(name)
	}
	for _, n := range names {
		if err := removeTree(fsys, name+"/"+n); err != nil {
			return err
		}
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

type scratch struct {
	FS
	dir string

	mu    sync.Mutex
	locks map[string]bool
}

func (s *scratch) at(name string) string { return path.Join(s.dir, name) }

func (s *scratch) Open(name string, opt OpenOptions) (File, error) {
	f, err := s.FS.Open(s.at(name), opt)
	if err != nil {
		return nil, err
	}
	return &scratchFile{f, name}, nil
}

func (s *scratch) Remove(name string) error          { return s.FS.Remove(s.at(name)) }
func (s *scratch) Rename(from, to string) error      { return s.FS.Rename(s.at(from), s.at(to)) }
func (s *scratch) List(dir string) ([]string, error) { return s.FS.List(s.at(dir)) }
func (s *scratch) MkdirAll(dir string) error         { return s.FS.MkdirAll(s.at(dir)) }
func (s *scratch) SyncDir(string) error              { return nil }
func (s *scratch) Exists(name string) (bool, error)  { return s.FS.Exists(s.at(name)) }

func (s *scratch) Lock(name string) (io.Closer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[name] {
		return nil, ErrLocked
	}
	s.locks[name] = true
	return &scratchLock{s, name}, nil
}

type scratchLock struct {
	s    *scratch
	name string
}

func (l *scratchLock) Close() error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	delete(l.s.locks, l.name)
	return nil
}

type scratchFile struct {
	File
	name string
}

func (f *scratchFile) Sync() error  { return nil }
func (f *scratchFile) Name() string { return f.name }
