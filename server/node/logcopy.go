package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// LogCopy is a directory for a copy of a node's log, into which a tool looks while the node runs. Its closed files are links: as long
// as it is there, what the node removes of its log takes space. So it is locked while the tool runs, and one whose lock
// is free is removed by the next tool, and by a start of the node.
type LogCopy struct {
	Dir  string
	lock *os.File
}

const logCopyPrefix = "#tmp-binlog-"

// NewLogCopy makes an empty directory in the first of some directories that takes one.
func NewLogCopy(parents ...string) (c *LogCopy, err error) {
	for _, parent := range parents {
		sweepLogCopies(parent)
		if c, err = newLogCopy(parent); err == nil {
			return c, nil
		}
	}
	return nil, err
}

func newLogCopy(parent string) (*LogCopy, error) {
	for {
		dir, err := os.MkdirTemp(parent, logCopyPrefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockDirectory(dir)
		if err == nil && sameDirectory(lock, dir) {
			return &LogCopy{dir, lock}, nil
		}
		if lock != nil {
			_ = lock.Close()
		}
		// Somebody has taken it for one that was left behind, before it was locked.
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, os.Remove(dir))
		}
	}
}

// Remove removes the directory.
func (c *LogCopy) Remove() error {
	err := os.RemoveAll(c.Dir)
	_ = c.lock.Close()
	return err
}

// lockDirectory opens a directory and locks it: unix.EWOULDBLOCK says that somebody has.
func lockDirectory(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func sameDirectory(f *os.File, dir string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(dir)
	return err == nil && os.SameFile(a, b)
}

// sweepLogCopies removes copies that tools have left in a directory, since they were killed. What cannot be removed stays for the
// next time.
func sweepLogCopies(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), logCopyPrefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if lock, err := lockDirectory(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
}
