package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Export is a file of the log, or the committed beginning of one, as another member
// takes it over. It stays readable when the file is purged.
type Export struct {
	Number uint64
	Size   int64
	// Next is the index behind the last entry in it.
	Next uint64
	// Closed: this is the whole file, and the next one has committed entries too. Else
	// the commit index lies in the file or at its end.
	Closed bool
	f      file.File
}

// Export opens a file for another member. Errors: ErrCompacted for one that was purged,
// ErrUnavailable for one of which nothing is committed.
func (l *Log) Export(number uint64) (*Export, error) {
	l.mu.RLock()
	s := l.segment(number)
	if first := l.files[0]; s == nil || s != first && s.first > l.committed {
		err := fmt.Errorf("%w: %s", ErrUnavailable, FileName(number))
		if number < first.number {
			err = fmt.Errorf("%w: %s was purged, the first file is %s", ErrCompacted, FileName(number), first.name())
		}
		l.mu.RUnlock()
		return nil, err
	}
	x := &Export{Number: number, Size: s.end, Next: s.next, Closed: s != l.files[len(l.files)-1] && s.next <= l.committed}
	committed := max(l.committed+1, s.first)
	l.mu.RUnlock()
	if !x.Closed && committed < x.Next {
		p, err := l.locate(committed)
		if err != nil {
			return nil, err
		}
		x.Size, x.Next = p.offset, p.index
	}
	var err error
	x.f, err = l.fs.Open(l.path(FileName(number)), file.OpenOptions{ReadOnly: true})
	return x, err
}

// ReadAt implements io.ReaderAt. Sync marks, which are the node's own, read as zeros.
func (x *Export) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	want := p[:max(0, min(int64(len(p)), x.Size-off))]
	n, err := x.f.ReadAt(want, off)
	if from, to := max(markOffset-off, 0), min(termsOffset-off, int64(n)); from < to {
		clear(want[from:to])
	}
	if err == nil && len(want) < len(p) {
		err = io.EOF
	}
	return n, err
}

// Close releases the file.
func (x *Export) Close() error { return x.f.Close() }

// Verify checks what the export gives as the member does that takes it over. reading is told of each piece that was
// read; its error ends the call. Errors: those of [Check.File], reading's.
func (x *Export) Verify(c *Check, reading func(bytes int) error) error {
	return c.File(exported{x.f, x, reading}, x.Number)
}

// exported is a file as it is exported.
type exported struct {
	file.File
	x       *Export
	reading func(bytes int) error
}

func (e exported) ReadAt(p []byte, off int64) (int, error) {
	n, err := e.x.ReadAt(p, off)
	if again := e.reading(n); again != nil {
		return 0, again
	}
	return n, err
}

func (e exported) Size() (int64, error) { return e.x.Size, nil }

// Check verifies files of a group's log, one after the other, as [Import] does, and keeps none.
type Check struct {
	opt  Options
	last *segment // the last file, or nil
	from uint64   // the first entry in them, or behind them
	end  place    // where the last one ends
}

// NewCheck returns a check that may begin with any file of a group's log.
func NewCheck(group [16]byte) *Check { return &Check{opt: Options{Group: group}.withDefaults()} }

// File reads a file and checks every record in it, the body of a large transaction, and that it follows the file
// before. Errors: *CorruptError, ErrWrongGroup, ErrNewerFormat, ErrMissingFile, the file's.
func (c *Check) File(f file.File, number uint64) error {
	if c.last != nil && number != c.last.number+1 {
		return fmt.Errorf("%w: %s, behind %s", ErrMissingFile, FileName(c.last.number+1), c.last.name())
	}
	s, end, err := checkFile(&c.opt, c.last, c.end, f, number)
	if err != nil {
		return err
	}
	if c.last == nil {
		c.from = s.first
	}
	c.last, c.end = s, end
	return nil
}

// Span is the first entry in the files, the one that follows them, and the last transaction up to there; zero before the first file.
func (c *Check) Span() (first, next, number uint64) { return c.from, c.end.index, c.end.number }

const partSuffix = ".part"

// Import receives files of another member's log, in their order, into a directory that
// has none or the first ones of them. A file gets its name, durably, once it is there
// whole and every record in it is verified. When the last one is in, Open opens the log.
//
// One task uses it.
type Import struct {
	opt  Options
	last *segment // the last file that is in, or nil
	end  place    // where it ends

	f      file.File
	number uint64
	size   int64
	offset int64
}

// NewImport goes on with what is in the directory.
func NewImport(opt Options) (*Import, error) {
	opt = opt.withDefaults()
	if err := opt.FS.MkdirAll(opt.Dir); err != nil {
		return nil, err
	}
	if err := opt.FS.SyncDir("."); err != nil {
		return nil, err
	}
	numbers, err := list(&opt, tempSuffix)
	if err == nil {
		_, err = contiguous(&opt, numbers)
	}
	if err == nil {
		err = removeSide(&opt) // it was another log's
	}
	if err != nil {
		return nil, err
	}
	im := &Import{opt: opt}
	for _, n := range numbers {
		f, err := opt.FS.Open(opt.path(FileName(n)), file.OpenOptions{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		s, end, err := im.check(f, n)
		f.Close()
		if err != nil {
			return nil, err
		}
		im.last, im.end = s, end
	}
	return im, nil
}

// Last is the number of the last file that is in, 0 if there is none, and its size.
func (im *Import) Last() (number uint64, size int64) {
	if im.last == nil {
		return 0, 0
	}
	return im.last.number, im.last.end
}

// Begin starts to receive a file, which follows the last one, or goes on after a cut: offset is
// where the next Write belongs.
func (im *Import) Begin(number uint64, size int64) (offset int64, err error) {
	if im.f != nil {
		return 0, errors.New("binlog: a file is being imported already")
	}
	if im.last != nil && number != im.last.number+1 {
		return 0, fmt.Errorf("%w: %s, behind %s", ErrMissingFile, FileName(im.last.number+1), im.last.name())
	}
	if number == 0 || size < headerSize {
		return 0, fmt.Errorf("binlog: a file %d of %d bytes cannot be imported", number, size)
	}
	f, err := im.opt.FS.Open(im.part(number), file.OpenOptions{Create: true})
	if err != nil {
		return 0, err
	}
	im.f, im.number, im.size = f, number, size
	if im.offset, err = f.Size(); err == nil && im.offset > size {
		im.offset = 0
		err = f.Truncate(0)
	}
	if err != nil {
		im.Close()
		return 0, err
	}
	return im.offset, nil
}

func (im *Import) part(number uint64) string { return im.opt.path(FileName(number)) + partSuffix }

// Write adds the next bytes of the file.
func (im *Import) Write(p []byte) (int, error) {
	if im.f == nil || int64(len(p)) > im.size-im.offset {
		return 0, errors.New("binlog: more bytes than the imported file has")
	}
	n, err := im.f.WriteAt(p, im.offset)
	if err == nil {
		im.offset += int64(n)
	}
	return n, err
}

// Finish verifies the file and takes it in. If it is not what it should be it is
// thrown away; then the error is a *CorruptError, ErrWrongGroup or ErrNewerFormat.
func (im *Import) Finish() error {
	if im.f == nil || im.offset != im.size {
		return errors.New("binlog: the imported file is not complete")
	}
	s, end, err := im.check(im.f, im.number)
	if err != nil {
		im.discard()
		return err
	}
	if err := im.f.Sync(); err != nil {
		im.discard() // what was lost would not be missed before the system forgets it
		return err
	}
	if err := im.f.Close(); err != nil {
		return err
	}
	im.f = nil
	if err := im.opt.FS.Rename(im.part(im.number), im.opt.path(s.name())); err != nil {
		return err
	}
	if err := im.opt.FS.SyncDir(im.opt.Dir); err != nil {
		return err
	}
	im.last, im.end = s, end
	return nil
}

// check reads a whole file, which must follow the last one.
func (im *Import) check(f file.File, number uint64) (*segment, place, error) {
	return checkFile(&im.opt, im.last, im.end, f, number)
}

// checkFile reads a whole file, which must follow last, if there is one, that ends at before.
func checkFile(opt *Options, last *segment, before place, f file.File, number uint64) (*segment, place, error) {
	s, m, err := readSegment(f, number, opt)
	if err != nil {
		return nil, place{}, err
	}
	if !m.blank {
		return nil, place{}, &CorruptError{File: s.name(), Offset: markOffset, What: "an imported file has a sync mark"}
	}
	if last != nil {
		begin := s.start()
		begin.file, begin.offset = last.number, s.sizeBefore
		if begin != before || s.version < last.version {
			return nil, place{}, &CorruptError{File: s.name(), What: fmt.Sprintf("the file does not follow %s", last.name())}
		}
	}
	end, err := verify(f, s, s.end)
	if err == nil {
		err = s.verifyBody(f)
	}
	s.next = end.index
	return s, end, err
}

func (im *Import) discard() {
	im.Close()
	_ = im.opt.FS.Remove(im.part(im.number)) // the next Begin begins again with what stays
}

// Close stops. What was received of an unfinished file stays, for the next time.
func (im *Import) Close() {
	if im.f != nil {
		im.f.Close()
		im.f = nil
	}
}

// Destroy removes all files of a log that is not open, the newest first. A crash leaves
// some, from the beginning on.
func Destroy(opt Options) error {
	opt = opt.withDefaults()
	numbers, err := list(&opt, tempSuffix, partSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := removeSide(&opt); err != nil {
		return err
	}
	l := &Log{env: opt.Env, fs: opt.FS, opt: opt, turn: env.NewMutex(opt.Env)}
	for i := len(numbers) - 1; i >= 0; i-- {
		if err := l.unlink(&segment{header: header{number: numbers[i]}}); err != nil {
			return err
		}
	}
	return nil
}
