package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// ErrTooLong says that a file has more bytes than it may have.
var ErrTooLong = errors.New("the file is too long")

// ReadWhole returns what a small file holds. Errors: [io/fs.ErrNotExist], [ErrTooLong] if
// that is more than limit bytes, those of reading.
func ReadWhole(fsys FS, name string, limit int64) (b []byte, err error) {
	f, err := fsys.Open(name, OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	switch {
	case err != nil:
	case size > limit:
		err = fmt.Errorf("%s: %w: it has %d bytes, at most %d are read", name, ErrTooLong, size, limit)
	default:
		b = make([]byte, size)
		n := 0
		if n, err = f.ReadAt(b, 0); err == io.EOF {
			b, err = b[:n], nil
		}
	}
	return b, errors.Join(err, f.Close())
}

// WriteWhole gives a small file its content, durably: after a crash, or an error, it has the
// old one or the new one, whole. Its name with ".new" behind it is written first.
func WriteWhole(fsys FS, name string, content []byte) error {
	temporary := name + ".new"
	f, err := fsys.Open(temporary, OpenOptions{Create: true})
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil && len(content) > 0 {
		_, err = f.WriteAt(content, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(temporary, name)
	}
	if err == nil {
		err = fsys.SyncDir(path.Dir(name))
	}
	return err
}

// RemoveTree removes a directory with all that is in it, or a file, and leaves it to the caller to make that
// durable. What is below is durably gone first. It is no error if there is nothing of that name.
func RemoveTree(fsys FS, name string) error {
	err := fsys.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	names, lerr := fsys.List(name)
	if lerr != nil || len(names) == 0 {
		return err
	}
	for _, n := range names {
		if err := RemoveTree(fsys, path.Join(name, n)); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(name); err != nil {
		return err
	}
	return fsys.Remove(name)
}

// SizeOf is how many bytes a file has.
func SizeOf(fsys FS, name string) (int64, error) {
	f, err := fsys.Open(name, OpenOptions{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
}
