package backup

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
)

// Backup is a backup to be read.
type Backup struct {
	Info *Info
	fsys file.FS
}

// Open reads what a backup is. Errors: [ErrNoBackup], [ErrDamaged].
func Open(fsys file.FS) (*Backup, error) {
	info, err := readInfo(fsys)
	if err != nil {
		return nil, err
	}
	return &Backup{info, fsys}, nil
}

// reader reads a file from its beginning to its end.
type reader struct {
	io.Reader
	io.Closer
}

func (b *Backup) open(name string) (io.ReadCloser, error) {
	i := slices.IndexFunc(b.Info.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return nil, damaged("it has no file %s", name)
	}
	f, err := b.fsys.Open(name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return reader{io.NewSectionReader(f, 0, b.Info.Files[i].Bytes), f}, nil
}

// Verify reads all files, compares them with their lengths and checksums, and checks the log as a restore does. done, if not
// nil, is told of the bytes that were compared. Error: [ErrDamaged], which names the files.
func (b *Backup) Verify(done func(bytes int64)) error {
	if err := b.VerifyData(done); err != nil {
		return errors.Join(err, b.compare(b.logs(), done))
	}
	err := b.compare(b.logs(), done)
	if err == nil {
		err = b.verifyLog()
	}
	if err != nil {
		err = fmt.Errorf("%w\nThe data are whole: --until=%d restores them without the log, up to transaction %d", err, b.Info.Snapshot, b.Info.Snapshot)
	}
	return err
}

// VerifyData is Verify of the files that a restore to the snapshot's own transaction needs: all but those of the log.
func (b *Backup) VerifyData(done func(bytes int64)) error {
	return b.compare(slices.DeleteFunc(slices.Clone(b.Info.Files), isLog), done)
}

// VerifySums is Verify without what is in the files.
func (b *Backup) VerifySums(done func(bytes int64)) error { return b.compare(b.Info.Files, done) }

// compare compares files with their lengths and checksums.
func (b *Backup) compare(files []File, done func(bytes int64)) error {
	var bad []error
	buf := make([]byte, 1<<20)
	for _, f := range files {
		err := b.verify(&f, buf, done)
		if err != nil && !errors.Is(err, ErrDamaged) {
			err = damaged("%s: %v", f.Name, err)
		}
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

func isLog(f File) bool { _, ok := logNumber(f.Name); return ok }

// logs are the files of the log in their order.
func (b *Backup) logs() []File {
	files := slices.DeleteFunc(slices.Clone(b.Info.Files), func(f File) bool { return !isLog(f) })
	slices.SortFunc(files, func(x, y File) int {
		m, _ := logNumber(x.Name)
		n, _ := logNumber(y.Name)
		return cmp.Compare(m, n)
	})
	return files
}

// verifyLog checks what is in the files of the log: that they are whole, follow each other and the data, and end where
// the backup says. A checksum proves only that they are what the member had.
func (b *Backup) verifyLog() error {
	archive, err := provision.OpenArchive(b.open)
	if err != nil {
		return damaged("%v", err)
	}
	m := archive.Manifest()
	check := log.NewCheck(m.Group)
	for _, f := range b.logs() {
		number, _ := logNumber(f.Name)
		in, err := b.fsys.Open(f.Name, file.OpenOptions{ReadOnly: true})
		if err == nil {
			err = errors.Join(check.File(in, number), in.Close())
		}
		if err != nil {
			return damagedLog(f.Name, err)
		}
	}
	switch first, next, last := check.Span(); {
	case next == 0:
		return damaged("it has no log")
	case first > m.Position.Index+1:
		return damaged("its log begins with entry %d, and its data are as of entry %d", first, m.Position.Index)
	case last != b.Info.Last:
		return damaged("its log ends with transaction %d, and %s says %d", last, InfoName, b.Info.Last)
	}
	return nil
}

// damagedLog says that a file of the log is no part of one. What a node is to do then is not what a backup's reader is.
func damagedLog(name string, err error) error {
	var at *log.CorruptError
	if errors.As(err, &at) {
		return damaged("%s: it was damaged before it was sent: %s", name, at.Where())
	}
	return damaged("%s: %v", name, err)
}

func (b *Backup) verify(f *File, buf []byte, done func(int64)) error {
	in, err := b.fsys.Open(f.Name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	size, err := in.Size()
	if err != nil {
		return err
	}
	if size != f.Bytes {
		return damaged("%s has %d bytes instead of %d", f.Name, size, f.Bytes)
	}
	sum := sha256.New()
	for at := int64(0); at < size; {
		n, err := in.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if err != nil && err != io.EOF {
			return err
		}
		if n == 0 {
			return damaged("%s ends at byte %d", f.Name, at)
		}
		_, _ = sum.Write(buf[:n])
		if at += int64(n); done != nil {
			done(int64(n))
		}
	}
	if got := Sum(sum.Sum(nil)); got != f.Sum {
		return damaged("%s is not what was written: its SHA-256 is %x instead of %x", f.Name, got[:8], f.Sum[:8])
	}
	return nil
}

// Options say what to make of a backup. Those of Data, Env and the member are required.
type Options struct {
	Data    file.FS // the new member's directory: empty
	Env     env.Env
	Storage storage.Options
	// Until is the last transaction that is restored; 0: all.
	Until uint64
	// More are logs that go on where the backup's ends: those of members as they were
	// later.
	More []*log.Log

	Group  [16]byte // of the new group, drawn at random
	Member uint64   // the same
	Addr   string   // of the member

	// Watch, if not nil, is told every second how far the data are.
	Watch func(provision.Progress)
}

// Restore makes a new group's first member of a verified backup (its data alone may be, where DataAlone), and returns the last
// transaction that it has. See [group.Restore] for what the directory is after an error.
func (b *Backup) Restore(o Options) (last uint64, err error) {
	archive, err := provision.OpenArchive(b.open)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r := &group.Restore{FS: o.Data, Env: o.Env, Storage: o.Storage, Archive: archive, Until: o.Until,
		Group: o.Group, Member: o.Member, Addr: o.Addr}
	if err := r.Prepare(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	opt := log.Options{FS: o.Data, Env: o.Env, Dir: group.RestoreScratch, Group: archive.Manifest().Group, Preallocate: -1}
	if err := log.Destroy(opt); err != nil {
		return 0, err
	}
	if !b.DataAlone(o.Until) {
		l, failed := b.log(opt)
		if failed != nil {
			return 0, failed
		}
		defer func() {
			if err = errors.Join(err, l.Close()); err == nil {
				err = errors.Join(log.Destroy(opt), o.Data.Remove(group.RestoreScratch))
			}
		}()
		r.Logs = append([]*log.Log{l}, o.More...)
	}
	full := watch(r, o.Watch)
	if last, err = r.Run(); full() && err != nil {
		err = fmt.Errorf("the data do not fit: %w; make room, and restore again", file.ErrNoSpace)
	}
	return last, err
}

// DataAlone reports whether a restore up to a transaction needs no log, since the data are as of that one.
func (b *Backup) DataAlone(until uint64) bool { return until != 0 && until == b.Info.Snapshot }

// watch tells fn how far a restore is, and stops it if the disk is full: nobody makes room
// for a restore that says nothing. ended ends that and reports whether it was so.
func watch(r *group.Restore, fn func(provision.Progress)) (ended func() bool) {
	stop, full := make(chan struct{}), make(chan bool)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				full <- false
				return
			case <-tick.C:
			}
			p, ok := r.Progress()
			if ok && fn != nil {
				fn(p)
			}
			if ok && p.Phase == provision.WaitingForSpace {
				r.Stop()
				<-stop
				full <- true
				return
			}
		}
	}()
	return func() bool {
		close(stop)
		return <-full
	}
}

// log takes the backup's log over.
func (b *Backup) log(opt log.Options) (*log.Log, error) {
	im, err := log.NewImport(opt)
	if err != nil {
		return nil, err
	}
	defer im.Close()
	files := b.logs()
	for i := range files {
		if err := b.take(im, &files[i]); err != nil {
			var corrupt *log.CorruptError
			if errors.As(err, &corrupt) {
				return nil, damagedLog(files[i].Name, err)
			}
			return nil, fmt.Errorf("%s: %w", files[i].Name, err)
		}
	}
	return log.Open(opt)
}

func (b *Backup) take(im *log.Import, f *File) error {
	number, _ := logNumber(f.Name)
	in, err := b.open(f.Name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if _, err := im.Begin(number, f.Bytes); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(im, struct{ io.Reader }{in}, make([]byte, 256<<10)); err != nil {
		return err
	}
	return im.Finish()
}
