package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	filePerm = 0o640
	dirPerm  = 0o750
)

// Disk is the operating system's file system below one directory.
type Disk struct {
	root     string
	stats    Stats
	files    fileCounts
	datasync func(fd int) error                                   // fdatasync, but for tests
	scarce   func(name string, err error, times int) (again bool) // nil: it is not tried again
}

var _ FS = (*Disk)(nil)

// OS returns the file system below the directory root. The directory may be made
// later with MkdirAll("."). Names that lead out of it are refused; symbolic links
// inside it are followed, so that an operator can put a directory on another disk.
func OS(root string) *Disk { return &Disk{root: root, datasync: fdatasync} }

// Stats counts the work done so far.
func (d *Disk) Stats() *Stats { return &d.stats }

// path is where name is on the machine.
func (d *Disk) path(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", pathError(op, name, fs.ErrInvalid)
	}
	return filepath.Join(d.root, filepath.FromSlash(name)), nil
}

// Open implements [FS].
func (d *Disk) Open(name string, opt OpenOptions) (File, error) {
	path, err := d.path("open", name)
	if err != nil {
		return nil, err
	}
	flags := os.O_RDWR
	if opt.ReadOnly {
		flags = os.O_RDONLY
	}
	if opt.Create || opt.Exclusive {
		flags |= os.O_CREATE
	}
	if opt.Exclusive {
		flags |= os.O_EXCL
	}
	f, direct, err := d.openFile(name, path, flags, opt.Direct)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err != nil {
		f.Close()
		return nil, pathError("open", name, err)
	}
	of := &osFile{f: f, disk: d, name: name, readOnly: opt.ReadOnly, counts: d.files.of(name)}
	of.direct.Store(direct)
	return of, nil
}

// openFile opens path, with O_DIRECT if asked for and possible.
func (d *Disk) openFile(name, path string, flags int, direct bool) (*os.File, bool, error) {
	if direct {
		f, err := d.open(name, path, flags|unix.O_DIRECT)
		if !errors.Is(err, unix.EINVAL) {
			return f, err == nil, err
		}
		// Refused for O_DIRECT's sake, but Linux has made the file by then.
		flags &^= os.O_EXCL
	}
	f, err := d.open(name, path, flags)
	return f, false, err
}

// Remove implements [FS].
func (d *Disk) Remove(name string) error {
	path, err := d.path("remove", name)
	if err != nil {
		return err
	}
	if name == "." {
		return pathError("remove", name, fs.ErrInvalid)
	}
	if err = os.Remove(path); err == nil {
		d.files.forget(name)
	}
	return pathError("remove", name, err)
}

// Rename implements [FS].
func (d *Disk) Rename(from, to string) error {
	oldPath, err := d.path("rename", from)
	if err != nil {
		return err
	}
	newPath, err := d.path("rename", to)
	if err != nil {
		return err
	}
	err = refuseDirectory(oldPath)
	if err == nil {
		err = os.Rename(oldPath, newPath)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: cause(err)}
	}
	d.files.rename(from, to)
	return nil
}

// refuseDirectory keeps Rename to files, whose replacement is atomic.
func refuseDirectory(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	return err
}

// List implements [FS].
func (d *Disk) List(dir string) ([]string, error) {
	path, err := d.path("list", dir)
	if err != nil {
		return nil, err
	}
	entries, err := patiently(d, dir, func() ([]os.DirEntry, error) { return os.ReadDir(path) })
	if err != nil {
		return nil, pathError("list", dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// MkdirAll implements [FS].
func (d *Disk) MkdirAll(dir string) error {
	path, err := d.path("mkdir", dir)
	if err != nil {
		return err
	}
	var made []string // what is missing of the root and above, the root first
	if dir == "." {
		made = missing(path)
	}
	if err := os.MkdirAll(path, dirPerm); err != nil {
		return pathError("mkdir", dir, err)
	}
	for _, m := range made {
		if err := d.syncDir(filepath.Dir(m), dir); err != nil && !errors.Is(err, fs.ErrPermission) { // one may write where one may not read
			return err
		}
	}
	return nil
}

// missing lists the directories that are to be made for a path, itself first.
func missing(path string) (all []string) {
	for {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return all
		}
		all = append(all, path)
		above := filepath.Dir(path)
		if above == path {
			return all
		}
		path = above
	}
}

// SyncDir implements [FS].
func (d *Disk) SyncDir(dir string) error {
	path, err := d.path("sync directory", dir)
	if err != nil {
		return err
	}
	return d.syncDir(path, dir)
}

func (d *Disk) syncDir(path, dir string) error {
	d.stats.DirSyncs.Add(1)
	f, err := d.open(dir, path, os.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return pathError("sync directory", dir, err)
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return pathError("sync directory", dir, err)
}

// Exists implements [FS].
func (d *Disk) Exists(name string) (bool, error) {
	path, err := d.path("stat", name)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, pathError("stat", name, err)
}

// Lock implements [FS]. The file holds the holder's process number for people to
// read; what locks is flock, which the kernel gives back when the process ends.
func (d *Disk) Lock(name string) (io.Closer, error) {
	path, err := d.path("lock", name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	err = control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		err = writeHolder(f)
	} else if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w (%s)", ErrLocked, readHolder(f))
	}
	if err != nil {
		f.Close()
		return nil, pathError("lock", name, err)
	}
	return held{f}, nil
}

// held is a file that is locked.
type held struct{ *os.File }

// Close gives back the lock, and not by closing alone: a process that is being started by this one has a copy of the
// descriptor, until it runs its program, and with it the lock.
func (h held) Close() error {
	err := control(h.File, func(fd int) error { return unix.Flock(fd, unix.LOCK_UN) })
	return errors.Join(err, h.File.Close())
}

// bootID is the kernel's name for its run.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

// BootID implements [FS].
func (d *Disk) BootID() string { return bootID() }

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readHolder(f *os.File) string {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n]))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "process unknown"
}

// pathError names the operation and the file; nil stays nil. A full disk becomes
// ErrNoSpace, a lack of file descriptors ErrNoDescriptors.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: cause(err)}
}

// cause strips what the os package wraps around a system error: it would repeat
// the operation, with a path of the machine in place of the name.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	case errors.As(err, &se):
		err = se.Err
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if isScarce(err) {
		return fmt.Errorf("%w: %w", ErrNoDescriptors, err)
	}
	return err
}
