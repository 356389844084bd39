package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OnScarce has fn called when something could not be opened for want of a file descriptor, for the first, the second time, and
// so on. It waits a moment, and says whether it is to be tried again. A lack of descriptors passes: connections end, and the cache of
// table files closes some; while an engine that cannot open a file may have to halt. fn is called by many tasks at a time, and must
// not open files.
//
// REQUIRES: the file system is not in use yet.
func (d *Disk) OnScarce(fn func(name string, err error, times int) (again bool)) { d.scarce = fn }

func isScarce(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// open opens a file. The kernel looks for a descriptor before it makes a file, so that nothing has happened when there is none.
func (d *Disk) open(name, path string, flags int) (*os.File, error) {
	return patiently(d, name, func() (*os.File, error) { return os.OpenFile(path, flags, filePerm) })
}

// patiently repeats what opens a file while there is no descriptor.
func patiently[T any](d *Disk, name string, open func() (T, error)) (T, error) {
	v, err := open()
	for times := 1; isScarce(err) && d.scarce != nil && d.scarce(name, err, times); times++ {
		v, err = open()
	}
	return v, err
}
