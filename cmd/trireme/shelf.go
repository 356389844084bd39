package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/backup"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
)

// shelf is a directory of backups, each in a directory of its own that is named by the time
// at which it was begun.
//
//   - A directory with such a name holds a backup that was whole when it was verified. One that is
//     being made, or removed, has the name with partSuffix behind it, and what an interrupted run
//     has left of that the next one removes.
//   - An old backup goes only when a new one is there, and only if it is of the same group, has
//     nothing that the new one lacks at its end, and nothing else lies in its directory.
//   - What has another name, or holds what no backup does, is never touched.
//   - Names ascend, whatever the clock does: a later backup has a later name.
type shelf struct {
	dir string
	// Old backups that go: all but keep of the group's, those that go furthest and of these the newest; of them those
	// that are older than age. Neither is set: none.
	keep int
	age  time.Duration

	now    func() time.Time
	fsys   func(dir string) file.FS
	rename func(from, to string) error // of directories
	verify func(b *backup.Backup) error
	warn   func(format string, a ...any)
}

func newShelf(dir string) *shelf {
	return &shelf{dir: dir, now: time.Now, fsys: func(dir string) file.FS { return file.OS(dir) }, rename: os.Rename, verify: verifyAll,
		warn: func(format string, a ...any) { fmt.Fprintf(os.Stderr, "trireme: "+format+"\n", a...) }}
}

const (
	shelfName  = "2006-01-02T15-04-05Z" // of UTC
	partSuffix = ".part"
	shelfLock  = "trireme-backup.lock"
)

// errOthers says that a backup is being made already.
var errOthers = errors.New("another backup is being made")

// shelved reads the name of a backup's directory.
func shelved(name string) (begun time.Time, ok bool) {
	begun, err := time.Parse(shelfName, name)
	return begun, err == nil && begun.Format(shelfName) == name
}

// add lets fill make a backup in a directory that does not exist, checks it, and removes what is
// old. It returns the backup's name. An error of that removal comes with a name.
func (s *shelf) add(ctx context.Context, fill func(dir string) (*backup.Info, error)) (name string, removed []string, err error) {
	root := s.fsys(s.dir)
	if err := root.MkdirAll("."); err != nil {
		return "", nil, err
	}
	lock, err := root.Lock(shelfLock)
	if errors.Is(err, file.ErrLocked) {
		return "", nil, fmt.Errorf("%w into %s: %w", errOthers, s.dir, err)
	}
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = lock.Close() }()
	if err := s.clean(root); err != nil {
		return "", nil, err
	}
	if name, err = s.next(root); err != nil {
		return "", nil, err
	}
	part := name + partSuffix
	info, err := s.produce(ctx, filepath.Join(s.dir, part), fill)
	if err != nil {
		if again := s.discard(root, part); again != nil {
			s.warn("what was made of %s stays, and the next run removes it: %v", part, again)
		}
		return "", nil, err
	}
	if err := s.rename(filepath.Join(s.dir, part), filepath.Join(s.dir, name)); err != nil {
		return "", nil, errors.Join(err, s.discard(root, part))
	}
	if err := root.SyncDir("."); err != nil {
		return "", nil, err
	}
	removed, err = s.removeOld(root, name, info)
	return name, removed, err
}

// produce makes a backup and verifies all of it.
func (s *shelf) produce(ctx context.Context, dir string, fill func(dir string) (*backup.Info, error)) (*backup.Info, error) {
	info, err := fill(dir)
	if err != nil {
		return nil, err
	}
	checked := make(chan error, 1) // a check that is not waited for ends with the process
	go func() {
		b, err := backup.Open(s.fsys(dir))
		if err == nil {
			err = s.verify(b)
		}
		checked <- err
	}()
	select {
	case err := <-checked:
		return info, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// next is the name of the next backup.
func (s *shelf) next(root file.FS) (string, error) {
	names, err := root.List(".")
	if err != nil {
		return "", err
	}
	now := s.now().UTC().Truncate(time.Second)
	var last time.Time
	for _, name := range names {
		if begun, ok := shelved(strings.TrimSuffix(name, partSuffix)); ok && begun.After(last) {
			last = begun
		}
	}
	if now.After(last) {
		return now.Format(shelfName), nil
	}
	next := last.Add(time.Second).Format(shelfName)
	if _, ok := shelved(next); !ok {
		return "", fmt.Errorf("there is no name after %s: rename that directory", last.Format(shelfName))
	}
	s.warn("this machine's clock tells %s, and the newest backup is of %s: the new one is named %s", now.Format(shelfName), last.Format(shelfName), next)
	return next, nil
}

// clean removes what interrupted runs have left.
func (s *shelf) clean(root file.FS) error {
	names, err := root.List(".")
	if err != nil {
		return err
	}
	for _, name := range names {
		begun, ok := strings.CutSuffix(name, partSuffix)
		if !ok {
			continue
		}
		if _, ok := shelved(begun); !ok {
			continue
		}
		if err := s.discard(root, name); err != nil {
			return fmt.Errorf("removing %s, which was not finished: %w", name, err)
		}
	}
	return nil
}

// alien is the name of something in a backup's directory that is no part of one, if there is
// any; known are the names that are.
func alien(names []string, known func(string) bool) string {
	if i := slices.IndexFunc(names, func(n string) bool { return !known(n) }); i >= 0 {
		return names[i]
	}
	return ""
}

// ofBackup reports whether a file that is being made may have this name.
func ofBackup(name string) bool {
	rest, isLog := strings.CutPrefix(name, group.BackupLogPrefix)
	if isLog {
		_, isLog = log.FileNumber(rest)
	}
	return isLog || provision.IsDumpName(name) || name == backup.InfoName || name == backup.InfoName+".new"
}

// discard removes the directory of a backup that is none, or none any more, if there is one.
func (s *shelf) discard(root file.FS, part string) error {
	dir := s.fsys(filepath.Join(s.dir, part))
	names, err := dir.List(".")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil // a file is none of ours
	case err != nil:
		return err
	}
	if name := alien(names, ofBackup); name != "" {
		s.warn("%s is left as it is: %s in it is no part of a backup", part, name)
		return nil
	}
	for _, name := range names {
		if err := dir.Remove(name); err != nil {
			return err
		}
	}
	if err := root.Remove(part); err != nil {
		return err
	}
	return root.SyncDir(".")
}

// onShelf is a backup in a directory of its own.
type onShelf struct {
	name  string
	begun time.Time
	info  *backup.Info
}

// ofGroup lists the backups of a group that are whole, those that go furthest first, and of those that go as far the newest. Of
// others it warns with a text.
func (s *shelf) ofGroup(names []string, group, other string) (all []onShelf) {
	for _, name := range names {
		begun, ok := shelved(name)
		if !ok {
			continue
		}
		b, err := backup.Open(s.fsys(filepath.Join(s.dir, name)))
		if err != nil {
			s.warn(other, name, err)
			continue
		}
		if b.Info.Group == group { // else what is left of another group, maybe
			all = append(all, onShelf{name, begun, b.Info})
		}
	}
	slices.SortFunc(all, func(a, b onShelf) int {
		return cmp.Or(cmp.Compare(b.info.Last, a.info.Last), strings.Compare(b.name, a.name))
	})
	return all
}

// errOlder says that a backup has less than one that was made before it.
var errOlder = errors.New("the new backup is whole, but has less than one that was made before")

// removeOld removes old backups of the group. newest, which was just made, stays, and so does what has more than it.
func (s *shelf) removeOld(root file.FS, newest string, info *backup.Info) (removed []string, err error) {
	names, err := root.List(".")
	if err != nil {
		return nil, err
	}
	all := s.ofGroup(names, info.Group, "%s is not counted, and stays: %v")
	for kept, b := range all {
		if s.keep == 0 && s.age == 0 || kept < max(s.keep, 1) || b.name == newest || b.info.Last > info.Last || s.age > 0 && !s.old(b.begun, b.info, info) {
			continue
		}
		gone, err := s.remove(root, b.name, b.info)
		if err != nil {
			return removed, fmt.Errorf("the new backup is whole, but an old one could not be removed: %w", err)
		}
		if gone {
			removed = append(removed, b.name)
		}
	}
	if len(all) > 0 && all[0].info.Last > info.Last {
		best := all[0]
		return removed, fmt.Errorf("%w: it ends with transaction %d, and %s with %d, so that the member it is of had not heard of all; "+
			"no backup that has more was removed: make another one, of a member that hears the leader", errOlder, info.Last, best.name, best.info.Last)
	}
	return removed, nil
}

// old reports whether a backup's age is up, by this machine's clock and by those of the members
// that made it and the new one: one clock that is wrong removes nothing.
func (s *shelf) old(begun time.Time, old, newest *backup.Info) bool {
	return s.now().Sub(begun) > s.age && newest.Taken.Sub(old.Taken) > s.age
}

// remove removes a backup, unless something else lies beside it.
func (s *shelf) remove(root file.FS, name string, info *backup.Info) (gone bool, err error) {
	names, err := s.fsys(filepath.Join(s.dir, name)).List(".")
	if err != nil {
		return false, err
	}
	known := func(n string) bool {
		return n == backup.InfoName || slices.ContainsFunc(info.Files, func(f backup.File) bool { return f.Name == n })
	}
	if other := alien(names, known); other != "" {
		s.warn("%s stays, though it is old: %s in it is no part of the backup", name, other)
		return false, nil
	}
	if err := s.rename(filepath.Join(s.dir, name), filepath.Join(s.dir, name+partSuffix)); err != nil {
		return false, err
	}
	if err := root.SyncDir("."); err != nil {
		return false, err
	}
	return true, s.discard(root, name+partSuffix)
}

// latest is the name of the newest backup; where others of its group go further, of that which goes furthest.
func (s *shelf) latest() (string, error) {
	names, err := s.whole()
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("there is no backup in %s", s.dir)
	}
	if err != nil {
		return "", err
	}
	newest := names[len(names)-1]
	b, err := backup.Open(s.fsys(filepath.Join(s.dir, newest)))
	if err != nil {
		return "", err
	}
	best := s.ofGroup(names, b.Info.Group, "%s is passed over: %v")
	if len(best) == 0 || best[0].info.Last == b.Info.Last {
		return newest, nil
	}
	s.warn("%s is newer, but has less: it ends with transaction %d, and %s with %d", newest, b.Info.Last, best[0].name, best[0].info.Last)
	return best[0].name, nil
}

// whole are the names of backups, the oldest first.
func (s *shelf) whole() (all []string, err error) {
	names, err := s.fsys(s.dir).List(".")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if _, ok := shelved(name); !ok {
			continue
		}
		if _, err := backup.Open(s.fsys(filepath.Join(s.dir, name))); err != nil {
			s.warn("%s is passed over: %v", name, err)
			continue
		}
		all = append(all, name)
	}
	return all, nil
}

// list tells the backups, the oldest first.
func (s *shelf) list(out io.Writer) error {
	names, err := s.fsys(s.dir).List(".")
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row(w, "backup", "taken", "group", "can be restored to", "size")
	for _, name := range names {
		if _, ok := shelved(name); !ok {
			continue
		}
		b, err := backup.Open(s.fsys(filepath.Join(s.dir, name)))
		if err != nil {
			s.warn("%s is none: %v", name, err)
			continue
		}
		row(w, name, b.Info.Taken.Format(time.RFC3339), b.Info.Group, fmt.Sprintf("%d to %d", b.Info.Snapshot, b.Info.Last), size(uint64(b.Info.Bytes())))
	}
	return w.Flush()
}
