package group

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
)

// A member whose log ends before the group's begins cannot know whether the two are of one past, and nobody has the entries any more that
// would tell. It takes the group's data, as it must after any longer absence, and keeps the newest files of its own log
// aside: if the others were put back from old copies, nobody else has these transactions.

const (
	// formerName is a directory in the form of a member's, for trireme binlog, that has nothing but such files.
	formerName = "former"
	// formerMax bounds them in bytes.
	formerMax = 256 << 20
	// formerTries is how often a full disk is waited for.
	formerTries = 40
)

// unproven is what a member had whose log ends before the one begins that came with new data.
type unproven struct {
	number, index, begins uint64
	files                 formerFiles
	tries                 int    // how often the disk was full
	kept                  string // which files were kept, or why none
}

// formerFiles are files of a log that are moved to the directory of such files.
type formerFiles struct {
	names []string
	found bool // the directory is empty, and names are known
}

// former is what is to be done with the member's own data before they are removed. It may be called again: on a full disk.
func (p *provisioning) former() func(dir string) error {
	u := p.unproven
	if u == nil {
		return nil
	}
	return func(dir string) error {
		err := u.files.keep(p.n.opt.FS, path.Join(dir, logDirName))
		switch {
		case errors.Is(err, file.ErrNoSpace) && u.tries < formerTries: // later what is kept is in the way of what frees the disk
			u.tries++
			return err
		case err != nil:
			u.kept = fmt.Sprintf("could not be kept: %v", err)
		case len(u.files.names) == 0:
			u.kept = fmt.Sprintf("its newest file is larger than %d MiB, and is not kept", formerMax>>20)
		default:
			u.kept = fmt.Sprintf("the newest files, %d, are kept in the directory named %s (trireme binlog -datadir shows what is in it), until it is removed or this happens again", len(u.files.names), formerName)
		}
		return nil
	}
}

// keep moves the newest files of the log in a directory to the directory of such files, which is emptied before, durably. They are not in
// use any more.
func (f *formerFiles) keep(fsys file.FS, from string) error {
	if !f.found {
		if err := file.RemoveTree(fsys, formerName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		names, err := newestLogFiles(fsys, from)
		if err != nil {
			return err
		}
		f.names, f.found = names, true
	}
	to := path.Join(formerName, "data.1", logDirName)
	err := fsys.MkdirAll(to)
	for _, made := range []string{path.Dir(to), formerName, "."} {
		if err == nil {
			err = fsys.SyncDir(made)
		}
	}
	if err != nil {
		return err
	}
	return moveFiles(fsys, from, to, f.names...)
}

// newestLogFiles are the names of the newest files of a log, as many as may be kept, and up to one that cannot be read.
func newestLogFiles(fsys file.FS, dir string) (names []string, err error) {
	all, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range all {
		if n, ok := log.FileNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	size := int64(0)
	for _, number := range slices.Backward(numbers) {
		name := log.FileName(number)
		n, err := file.SizeOf(fsys, path.Join(dir, name))
		if size += n; err != nil || size > formerMax {
			break
		}
		names = append(names, name)
	}
	return names, nil
}
