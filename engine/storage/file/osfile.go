package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// osFile is an open file of a [Disk]. os.File repeats short transfers and
// interrupted calls, and keeps the descriptor alive against a concurrent Close.
type osFile struct {
	f        *os.File
	disk     *Disk
	name     string
	readOnly bool
	counts   *fileCount
	direct   atomic.Bool // O_DIRECT is set on the descriptor

	syncing sync.Mutex // held while a sync runs
	lost    error      // of the first sync that failed
}

// Name implements [File].
func (f *osFile) Name() string { return f.name }

// ReadAt implements [File].
func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err != nil && errors.Is(err, unix.EINVAL) && f.unsetDirect() {
		n, err = f.f.ReadAt(p, off)
	}
	f.disk.stats.Reads.Add(1)
	f.disk.stats.ReadBytes.Add(int64(n))
	f.counts.reads.Add(1)
	f.counts.readBytes.Add(uint64(n))
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, f.fail("read", off, err)
}

// WriteAt implements [File].
func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	if f.readOnly {
		return 0, pathError("write", f.name, fs.ErrPermission)
	}
	n, err := f.f.WriteAt(p, off)
	if err != nil && errors.Is(err, unix.EINVAL) && f.unsetDirect() {
		n, err = f.f.WriteAt(p, off)
	}
	f.disk.stats.Writes.Add(1)
	f.disk.stats.WriteBytes.Add(int64(n))
	f.counts.writes.Add(1)
	f.counts.writeBytes.Add(uint64(n))
	if err != nil {
		return n, f.fail("write", off, err)
	}
	return n, nil
}

// fail wraps an error of a read or write; a negative offset is the caller's.
func (f *osFile) fail(op string, off int64, err error) error {
	if off < 0 {
		err = fs.ErrInvalid
	}
	return pathError(op, f.name, err)
}

// unsetDirect turns direct I/O off after a request that it does not allow, and
// reports whether that makes another attempt worthwhile.
func (f *osFile) unsetDirect() bool {
	if !f.direct.Swap(false) {
		return false
	}
	err := control(f.f, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&^unix.O_DIRECT)
		return err
	})
	return err == nil
}

// Sync implements [File] with fdatasync, which also writes the metadata that is
// needed to read the data back, the size above all. Linux tells a failed write-back once for each
// descriptor: of two syncs at once one gets the error and the other nil, and so does a later one.
// Therefore each waits for the one before it and does not succeed where that failed.
func (f *osFile) Sync() error {
	f.disk.stats.Syncs.Add(1)
	f.counts.syncs.Add(1)
	f.syncing.Lock()
	defer f.syncing.Unlock()
	if f.lost == nil {
		f.lost = pathError("sync", f.name, control(f.f, f.disk.datasync))
	}
	return f.lost
}

// Truncate implements [File].
func (f *osFile) Truncate(size int64) error {
	switch {
	case size < 0:
		return pathError("truncate", f.name, fs.ErrInvalid)
	case f.readOnly:
		return pathError("truncate", f.name, fs.ErrPermission)
	}
	return pathError("truncate", f.name, f.f.Truncate(size))
}

// Size implements [File].
func (f *osFile) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, pathError("stat", f.name, err)
	}
	return info.Size(), nil
}

// Close implements [File].
func (f *osFile) Close() error { return pathError("close", f.name, f.f.Close()) }

// Allocate implements [File].
func (f *osFile) Allocate(off, n int64) error {
	switch {
	case off < 0 || n < 0 || off+n < off:
		return pathError("allocate", f.name, fs.ErrInvalid)
	case f.readOnly:
		return pathError("allocate", f.name, fs.ErrPermission)
	}
	size, err := f.Size()
	if err != nil || n == 0 {
		return err
	}
	f.disk.stats.Allocates.Add(1)
	err = control(f.f, func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = f.zeroFill(max(off, size), off+n)
	}
	if err != nil {
		// What was reserved on the way to the error is not wanted.
		if now, serr := f.Size(); serr == nil && now > size {
			f.f.Truncate(size)
		}
		return pathError("allocate", f.name, err)
	}
	f.disk.stats.AllocatedBytes.Add(n)
	return nil
}

var zeros = AlignedBuffer(256 << 10)

// zeroFill writes zeros from off to end, for file systems that cannot reserve.
func (f *osFile) zeroFill(off, end int64) error {
	for off < end {
		n, err := f.f.WriteAt(zeros[:min(int64(len(zeros)), end-off)], off)
		if err != nil && errors.Is(err, unix.EINVAL) && f.unsetDirect() {
			continue
		}
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// control calls fn with the descriptor until a signal does not interrupt it.
func control(f *os.File, fn func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = fn(int(fd)); result != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return fs.ErrClosed // its only reason, by an internal name
	}
	return result
}
