package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Confined is a directory whose files statements may name: neither "..", nor a symbolic link at any level, leads out of it, also if others change
// it meanwhile. What it opens are regular files.
type Confined struct {
	path string
	root *os.Root
}

// Confine opens a directory, given by an absolute path.
func Confine(dir string) (*Confined, error) {
	if !filepath.IsAbs(dir) {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not an absolute path")}
	}
	// The path as the operator has written it may lead through links of the operator's.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Confined{path: filepath.Clean(dir), root: root}, nil
}

// Path is the directory's.
func (c *Confined) Path() string { return c.path }

// Inside is the name within the directory of what has an absolute path. ok is false if it is not in there by that path.
func (c *Confined) Inside(path string) (name string, ok bool) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", false
	}
	name, err := filepath.Rel(c.path, filepath.Clean(path))
	if err != nil || name == "." || !filepath.IsLocal(name) {
		return "", false
	}
	return name, true
}

// Create makes a file that is not there yet, to be written from its beginning on. Error: fs.ErrExist.
func (c *Confined) Create(name string) (io.WriteCloser, error) {
	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return nil, err // not f, which is a nil of its own type
	}
	return f, nil
}

// Open opens a regular file for reading, which has size bytes now. Errors besides: fs.ErrInvalid, it is another one. It does not wait for
// who would write to a pipe.
func (c *Confined) Open(name string) (f io.ReadCloser, size int64, err error) {
	o, err := c.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	i, err := o.Stat()
	if err != nil || !i.Mode().IsRegular() {
		_ = o.Close()
		return nil, 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return o, i.Size(), nil
}

// Reason is the system's number of an error, and its text as the C library has it. One without a number, as that of a link which leads out
// of the directory, is EACCES.
func Reason(err error) (number int, text string) {
	n := syscall.EACCES
	_ = errors.As(err, &n)
	text = n.Error()
	return int(n), strings.ToUpper(text[:1]) + text[1:]
}

// Remove unlinks a file.
func (c *Confined) Remove(name string) error { return c.root.Remove(name) }
