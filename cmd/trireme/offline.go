package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	_ "github.com/triremedb/trireme/engine/types/collation" // comparisons of text
	_ "github.com/triremedb/trireme/engine/types/json"      // and of documents
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/server/node"
)

// lockName is the file that a running node holds locked.
const lockName = "trireme.lock"

// dataDirectory finds the directory of a node's data without touching anything. Where nothing says which one is in use, a
// single one is taken: in a copy of a node's directory, say.
func dataDirectory(dir string) (string, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	name, err := provision.CurrentDir(file.OS(dir))
	if errors.Is(err, provision.ErrHome) {
		var found []string
		for _, e := range names {
			if n, ok := strings.CutPrefix(e.Name(), "data."); ok {
				if _, bad := strconv.ParseUint(n, 10, 63); bad == nil {
					found = append(found, e.Name())
				}
			}
		}
		if len(found) == 1 {
			name, err = found[0], nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not the directory of a node: it has no data in it", dir)
	}
	return filepath.Join(dir, name), err
}

// openLog opens a copy of the log of a node: opening repairs what a crash has left, which
// is for the node to do. Closed files are linked, not copied, where that is possible. done
// removes the copy, and so does a signal.
func openLog(dir string) (l *log.Log, group [16]byte, done func() error, err error) {
	data, err := dataDirectory(dir)
	if err != nil {
		return nil, group, nil, err
	}
	return openCopy(dir, data, log.Options{Copied: true})
}

func openCopy(dir, data string, o log.Options) (l *log.Log, group [16]byte, done func() error, err error) {
	c, err := node.NewLogCopy(dir, os.TempDir())
	if err != nil {
		return nil, group, nil, err
	}
	copied := c.Dir
	clean := untilInterrupted(c.Remove)
	defer func() {
		if err != nil {
			err = errors.Join(err, clean())
		}
	}()
	if group, err = copyLog(filepath.Join(data, "binlog"), filepath.Join(copied, "binlog")); err != nil {
		return nil, group, nil, err
	}
	o.FS, o.Env, o.Group, o.Preallocate = file.OS(copied), env.Real(), group, -1
	l, err = log.Open(o)
	return l, group, clean, err
}

// copyLog copies the files of a log, and returns the group's id from the newest one's header.
func copyLog(from, to string) (group [16]byte, err error) {
	if err := os.Mkdir(to, 0o700); err != nil {
		return group, err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return group, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := log.FileNumber(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return group, log.ErrNoLog
	}
	// First what is known to be durable, which is below the end of the files that follow.
	if err := copyFile(filepath.Join(from, log.SyncedMark), filepath.Join(to, log.SyncedMark)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return group, err
	}
	for i, name := range names {
		src, dst := filepath.Join(from, name), filepath.Join(to, name)
		// Opening the copy may write to its last two files, which are the node's own if they are links.
		if i < len(names)-2 && os.Link(src, dst) == nil {
			continue
		}
		if err := copyFile(src, dst); err != nil {
			if errors.Is(err, fs.ErrNotExist) && i == 0 {
				continue // purged meanwhile
			}
			return group, err
		}
	}
	f, err := os.Open(filepath.Join(to, names[len(names)-1]))
	if err != nil {
		return group, err
	}
	defer func() { _ = f.Close() }()
	_, err = f.ReadAt(group[:], 16)
	return group, err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func runCheck(args []string) error {
	f := flags("check [options]", "Checks the data of a node that is stopped: every page, tree, row and index entry, the log, and who it is in the group.\n"+
		"Whatever a start of the node would refuse is found. "+
		"It recovers first, as a start of the node would. Findings are printed; with any it exits with 1.")
	datadir := f.String("datadir", "data", "the node's `directory`")
	pool := f.Int64("buffer-pool", 256, "memory for pages, in `MiB`")
	skipLog := f.Bool("skip-binlog", false, "leave out the log")
	if err := parse(f, args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return misuse(f, "unexpected %q", f.Arg(0))
	}
	if *pool < 1 {
		return misuse(f, "-buffer-pool is %d: the least is 1", *pool)
	}
	if _, err := dataDirectory(*datadir); err != nil {
		return err
	}
	root := file.OS(*datadir)
	lock, err := root.Lock(lockName)
	if err != nil {
		return fmt.Errorf("%w: stop the node first", err)
	}
	defer func() { _ = lock.Close() }()
	findings := 0
	report := func(finding string) {
		findings++
		fmt.Println(finding)
	}
	if err := group.CheckFiles(root, env.Real()); err != nil {
		report(err.Error())
	}
	d, err := checkData(root, *pool<<20, report)
	if err != nil {
		return err
	}
	if !*skipLog {
		if err := d.checkLog(*datadir, report); err != nil {
			return err
		}
	}
	if findings > 0 {
		return fmt.Errorf("%d %s", findings, plural(findings, "finding"))
	}
	fmt.Println("nothing found")
	return nil
}

// checkedData are data that were checked.
type checkedData struct {
	group.DataCheck
	dir string
}

// defaultOpenFiles is innodb_open_files of a node that is given none.
const defaultOpenFiles = 4000

func checkData(root file.FS, pool int64, report func(string)) (d checkedData, err error) {
	home, err := group.OpenHome(root, env.Real())
	if err != nil {
		return d, err
	}
	eng, err := storage.Open(storage.Options{FS: home.Data(), Env: env.Real(), BufferPoolSize: pool, PurgeTasks: -1, OpenFiles: node.OpenFiles(defaultOpenFiles)})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	number, pos := eng.Applied()
	fmt.Printf("data up to transaction %d, entry %d\n", number, pos.Index)
	d.dir = home.Dir()
	if d.DataCheck, err = group.CheckData(root, home.Data(), env.Real(), eng); err != nil {
		report(err.Error())
	}
	return d, eng.Check(table.CheckQuiet, report)
}

// checkLog looks at the log as a start would, and reads all of it.
func (d *checkedData) checkLog(dir string, report func(string)) error {
	l, _, done, err := openCopy(dir, filepath.Join(dir, d.dir), log.Options{Known: d.Known})
	switch {
	case errors.Is(err, file.ErrNoSpace), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the log is not checked, for want of space for a copy beside it: make some, or leave it out with -skip-binlog: %w", err)
	case err != nil:
		report("the log: " + err.Error())
		return nil
	}
	if err := d.Log(l); err != nil {
		report(err.Error())
	}
	for _, f := range l.Files() {
		if err := l.VerifyFile(f.Number); err != nil {
			report(err.Error())
		}
	}
	fmt.Printf("log up to transaction %d, entry %d\n", l.LastNumber(), l.LastIndex())
	return errors.Join(l.Close(), done())
}
