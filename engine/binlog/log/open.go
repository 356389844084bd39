package log

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Create makes a log without entries. Error: ErrExists.
func Create(opt Options, start Start) (*Log, error) {
	opt = opt.withDefaults()
	if err := opt.FS.MkdirAll(opt.Dir); err != nil {
		return nil, err
	}
	numbers, err := list(&opt, tempSuffix, partSuffix)
	if err != nil {
		return nil, err
	}
	if len(numbers) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrExists, opt.Dir)
	}
	if err := opt.FS.SyncDir("."); err != nil {
		return nil, err
	}
	return create(opt, start)
}

func create(opt Options, start Start) (*Log, error) {
	l := newLog(opt)
	// What an old one says would be about a log that was there before.
	if err := l.side.renew(&opt, place{}); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	h := start.header(&opt)
	f, err := createFile(&opt, &h)
	if err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	l.begin(f, &h)
	if err := l.noteSynced(); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	return l, nil
}

// header is that of the first file of a log.
func (s Start) header(opt *Options) header {
	if s.Version == 0 {
		s.Version = opt.Newest
	}
	return header{version: s.Version, group: opt.Group, number: max(s.File, 1), first: s.Index + 1, termBefore: s.Term,
		numberBefore: s.Number, chainBefore: s.Checksum}
}

func newLog(opt Options) *Log {
	return &Log{env: opt.Env, fs: opt.FS, opt: opt, turn: env.NewMutex(opt.Env), purging: env.NewMutex(opt.Env),
		cache: cache{limit: opt.Cache}}
}

// begin makes f, a file with its header only, all of the log.
func (l *Log) begin(f file.File, h *header) {
	l.f, l.allocated, l.marked, l.markLoose, l.dirty, l.scrap = f, headerSize, mark{}, false, false, false
	s := &segment{header: *h, end: headerSize, next: h.first}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = []*segment{s}
	l.tail, l.synced = s.start(), s.start()
	l.committed, l.syncedTo = h.first-1, h.first-1
	l.cursors = [cursorsMax]place{}
	l.cache.reset(h.first)
}

// Reset throws everything away and begins anew behind start. A crash may leave some
// of the old log, from its beginning on, or nothing: the caller knows by itself what
// it was about to do.
func (l *Log) Reset(start Start) error {
	l.purging.Lock()
	defer l.purging.Unlock()
	l.turn.Lock()
	defer l.turn.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.lowerSide(place{}); err != nil {
		return l.halt(fmt.Errorf("reset: %w", err))
	}
	l.mu.Lock()
	gone := append(append([]*segment(nil), l.doomed...), l.files...)
	l.doomed = nil
	l.taken++
	l.mu.Unlock()
	for i := len(gone) - 1; i >= 0; i-- {
		if err := l.unlink(gone[i]); err != nil {
			return l.halt(fmt.Errorf("reset: %w", err))
		}
	}
	h := start.header(&l.opt)
	f, err := createFile(&l.opt, &h)
	if err != nil {
		return l.halt(fmt.Errorf("reset: %w", err))
	}
	l.f.Close()
	l.begin(f, &h)
	if err := l.noteSynced(); err != nil {
		return l.halt(fmt.Errorf("reset: %w", err))
	}
	return nil
}

// list returns the numbers of the files in the directory, ascending, and removes what a
// crash left of files that were being made, known by their suffixes.
func list(opt *Options, leftovers ...string) ([]uint64, error) {
	names, err := opt.FS.List(opt.Dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		if n, ok := FileNumber(name); ok {
			numbers = append(numbers, n)
		}
		for _, suffix := range leftovers {
			if base, ok := strings.CutSuffix(name, suffix); ok {
				if _, ok = FileNumber(base); !ok {
					continue
				}
				if err := opt.FS.Remove(opt.path(name)); err != nil {
					return nil, err
				}
			}
		}
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
	return numbers, nil
}

// contiguous checks that no file is missing in between. With an error good is how many files there are before the first gap.
func contiguous(opt *Options, numbers []uint64) (good int, err error) {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] != numbers[i-1]+1 {
			return i, fmt.Errorf("%w: %s, between %s and %s in %s; empty the node's data directory and let it be provisioned "+
				"from another member", ErrMissingFile, FileName(numbers[i-1]+1), FileName(numbers[i-1]), FileName(numbers[i]), opt.Dir)
		}
	}
	return len(numbers), nil
}

// Open opens the log and repairs what a crash has left: it finishes a rotation, cuts
// a torn end, and makes what is left durable. Errors: ErrNoLog, ErrWrongGroup,
// ErrNewerFormat, ErrMissingFile, *CorruptError.
func Open(opt Options) (*Log, error) {
	opt = opt.withDefaults()
	numbers, err := list(&opt, tempSuffix, partSuffix)
	if err == nil && len(numbers) == 0 || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoLog, opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	l := newLog(opt)
	o := opening{l: l}
	l.side, err = openSide(&opt)
	if err == nil {
		err = o.loadReadable(numbers)
	}
	if err == nil {
		err = o.repair()
	}
	if err != nil {
		_ = l.closeFiles()
		return nil, err
	}
	return l, nil
}

// opening is the state of an Open.
type opening struct {
	l     *Log
	marks []openMark
}

// openMark is what the mark sectors of a file say.
type openMark struct {
	mark
	blank bool
	size  int64
}

// loadReadable loads the files. With [Options.Salvage], where a file is missing or its beginning cannot be read, it loads those of the last
// run of files that begins with the entry that is needed or an earlier one, or of the last run at all.
func (o *opening) loadReadable(numbers []uint64) error {
	var best []uint64
	var first error // why there is more than one run
	for rest := numbers; len(rest) > 0; {
		run, next, err := o.run(rest)
		if err == nil && first == nil && len(run) == len(numbers) {
			return nil
		}
		if err != nil && !o.salvages(err) {
			return err
		}
		if first == nil {
			first = err
		}
		last := next == len(rest)
		if len(run) > 0 && (o.l.files[0].first <= o.l.opt.Needed || last && best == nil) {
			best = run
		}
		rest = rest[next:]
	}
	if best == nil {
		return first
	}
	o.l.files, o.marks = nil, nil
	if _, err := o.load(best); err != nil {
		return err
	}
	o.l.unreadable = first
	if best[len(best)-1] != numbers[len(numbers)-1] {
		_ = o.l.halt(&CorruptError{File: FileName(best[len(best)-1] + 1), Index: o.l.opt.Needed, What: "the file is missing, or its beginning is damaged"})
	}
	return nil
}

// run loads the first files that follow each other, and returns which they are and how many files they and the bad one behind them are.
// Error: what is behind them; the file before the bad one may not be whole.
func (o *opening) run(numbers []uint64) (run []uint64, next int, err error) {
	good, err := contiguous(&o.l.opt, numbers)
	run, next = numbers[:good], good
	for shorter := false; len(run) > 0; shorter = true {
		o.l.files, o.marks = nil, nil
		bad, e := o.load(run)
		if e == nil {
			break
		}
		if !shorter {
			next, err = bad+1, e
		}
		if run = run[:bad]; !o.l.opt.Salvage {
			break
		}
	}
	return run, next, err
}

// salvages reports whether the log is opened all the same where a file is missing or cannot be read.
func (o *opening) salvages(err error) bool {
	var damage *CorruptError
	return o.l.opt.Salvage && (errors.As(err, &damage) || errors.Is(err, ErrMissingFile))
}

// load reads the headers of all files and checks that they follow each other. With an error bad is the last of them that
// cannot be part of a log.
func (o *opening) load(numbers []uint64) (bad int, err error) {
	for i, n := range numbers {
		s, m, err := o.readHeader(n)
		if err != nil {
			return i, err
		}
		if i > 0 {
			if err := o.l.files[i-1].join(s); err != nil {
				return i - 1, err
			}
		}
		o.l.files = append(o.l.files, s)
		o.marks = append(o.marks, m)
	}
	for i, s := range o.l.files[:len(numbers)-1] {
		m := &o.marks[i]
		switch last := i == len(numbers)-2; {
		case m.size < s.end:
			return i, &CorruptError{File: s.name(), Offset: m.size, What: fmt.Sprintf("the file has %d bytes, it should have %d", m.size, s.end)}
		case !last && m.size > s.end:
			return i, &CorruptError{File: s.name(), Offset: s.end, What: fmt.Sprintf("the file has %d bytes, it should have %d", m.size, s.end)}
		case !last && !m.blank:
			return i, &CorruptError{File: s.name(), Offset: markOffset, What: "a closed file has a sync mark"}
		}
	}
	return 0, nil
}

// readHeader reads the header block of a file, and the clock in its first entry.
func (o *opening) readHeader(number uint64) (*segment, openMark, error) {
	f, err := o.l.fs.Open(o.l.path(FileName(number)), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, openMark{}, err
	}
	defer f.Close()
	return readSegment(f, number, &o.l.opt)
}

// readSegment reads what the beginning of a file says. It ends where the file ends.
func readSegment(f file.File, number uint64, opt *Options) (*segment, openMark, error) {
	name := FileName(number)
	b := make([]byte, headerSize+recordHeader+headSize)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, openMark{}, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, openMark{}, err
	}
	h, err := decodeHeader(b[:n], opt.Newest)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return nil, openMark{}, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return nil, openMark{}, &CorruptError{File: name, What: err.Error()}
	case h.number != number:
		return nil, openMark{}, &CorruptError{File: name, What: fmt.Sprintf("the header is that of %s", FileName(h.number))}
	case h.group != opt.Group:
		return nil, openMark{}, fmt.Errorf("%w: %s is of group %x, this is group %x", ErrWrongGroup, name, h.group, opt.Group)
	}
	m, blank, damaged := decodeMarks(b, number)
	if damaged {
		return nil, openMark{}, &CorruptError{File: name, Offset: markOffset, What: "both sync marks are unreadable"}
	}
	s := &segment{header: h, end: size, next: h.first}
	s.learnFirst(b[headerSize:n])
	return s, openMark{mark: m, blank: blank, size: size}, nil
}

// learnFirst takes down what the first record says, of which b are the first bytes. The
// record's checksum is not looked at.
func (s *segment) learnFirst(b []byte) {
	if len(b) < recordHeader {
		return
	}
	r, head := decodeRecord(b), b[recordHeader:]
	if r.index != s.first || len(head) < min(r.length, headSize) {
		return
	}
	if c, problem := inspect(r.typ, r.term, r.length, head); problem == "" {
		s.firstTime, s.large = c.time, c.large
	}
}

// join checks that next can follow s, and takes from it how s ends.
func (s *segment) join(next *segment) error {
	h := &next.header
	if h.first < s.first || h.termBefore < s.termBefore || h.numberBefore < s.numberBefore || h.sizeBefore < headerSize || h.version < s.version {
		return &CorruptError{File: next.name(), What: fmt.Sprintf("the file does not follow %s", s.name())}
	}
	if s.large != nil && (h.sizeBefore != fileEnd(s.large) || h.first != s.first+1) {
		return &CorruptError{File: next.name(), What: fmt.Sprintf("the file does not follow %s, a large transaction", s.name())}
	}
	s.end, s.next = h.sizeBefore, h.first
	s.began, s.cut = h.terms, h.termCount > uint32(len(h.terms))
	if len(s.began) > 0 && s.began[0].index < s.first {
		return &CorruptError{File: next.name(), What: "the header's terms do not belong to the file before"}
	}
	return nil
}

// repair brings the last files into the state in which appending goes on.
func (o *opening) repair() error {
	l := o.l
	// The names that were found may not be durable yet.
	if err := l.fs.SyncDir(l.opt.Dir); err != nil {
		return err
	}
	if n := len(l.files); n > 1 {
		if err := o.finishRotation(n - 2); err != nil {
			return err
		}
	}
	if err := o.openLast(); err != nil {
		return err
	}
	if l.Err() == nil {
		if err := l.side.renew(&l.opt, l.synced); err != nil {
			return err
		}
	}
	l.committed = l.files[0].first - 1
	if l.Err() != nil {
		return nil // salvaged
	}
	if s := l.files[len(l.files)-1]; len(l.files) > 1 && s.next == s.first {
		// The entry that opened it did not make it to the disk; another one may
		// come in its place, and not open a file.
		l.marked = o.marks[len(l.files)-1].mark
		if err := l.takeBack(l.files[len(l.files)-2].endPlace(s)); err != nil {
			return err
		}
	}
	return l.settle()
}

// endPlace is the end of a file as the header of the next one knows it.
func (s *segment) endPlace(next *segment) place {
	p := next.start()
	p.file, p.offset = s.number, s.end
	return p
}

// verifyBefore checks all records of a file and that the next one goes on where it ends.
func (s *segment) verifyBefore(f file.File, next *segment) error {
	end, err := verify(f, s, s.end)
	if err == nil && end != s.endPlace(next) {
		err = &CorruptError{File: s.name(), Offset: s.end, What: "the next file does not go on where this one ends"}
	}
	return err
}

// finishRotation makes sure that the last but one file is closed, durably.
func (o *opening) finishRotation(i int) error {
	l, s, m := o.l, o.l.files[i], &o.marks[i]
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{})
	if err != nil {
		return err
	}
	defer f.Close()
	if !m.blank || m.size > s.end {
		// It was durable whole before the next file came to be.
		if err := s.verifyBefore(f, l.files[i+1]); err != nil {
			return err
		}
	}
	return seal(f, s.end)
}

// proven are the places in the last file up to which it was durable, by its own mark and by
// the side mark, which may name the file before. Error: the side mark's file is missing.
func (o *opening) proven(s *segment, m *openMark) (marks []place, err error) {
	if m.offset != 0 {
		marks = append(marks, place{offset: m.offset, index: m.index})
	}
	switch side := &o.l.side.at; {
	case side.file > s.number:
		return nil, &CorruptError{File: FileName(side.file), Offset: side.offset, Index: side.index,
			What: fmt.Sprintf("the log ends with %s", s.name()), Why: SyncedMark + " says that the file was durable up to there"}
	case side.file == s.number:
		marks = append(marks, *side)
	}
	return marks, nil
}

// openLast reads the last file whole. A bad record behind what is proven to have been durable
// is the torn end, if it looks like one.
func (o *opening) openLast() error {
	l := o.l
	i := len(l.files) - 1
	s, m := l.files[i], &o.marks[i]
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{})
	if err != nil {
		return err
	}
	l.f, l.allocated, l.marked = f, m.size, m.mark
	sc := scanner{f: f, name: s.name(), at: s.start(), end: m.size}
	marks, err := o.proven(s, m)
	if err != nil && !o.salvage(err) {
		return err
	}
	whole := int64(headerSize)
	for _, p := range marks {
		whole = max(whole, p.offset)
	}
	if s.large != nil {
		// It got its name when it was durable whole, so that no crash has torn it.
		whole, s.large = max(whole, m.size), nil
	}
	s.began = nil
	for {
		before := sc.at
		r, c, err := sc.next(true)
		var bad *badRecord
		if errors.As(err, &bad) {
			if before.offset < whole {
				err = sc.known(err)
			} else {
				err = o.cutTorn(&sc, bad)
			}
			if err != nil && !o.salvage(err) {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		for _, p := range marks {
			if before.offset < p.offset && sc.at.offset > p.offset || sc.at.offset == p.offset && !p.marks(sc.at) {
				return &CorruptError{File: s.name(), Offset: p.offset, Index: before.index, What: "the sync mark is not the end of an entry"}
			}
		}
		if before.index == s.first {
			s.firstTime, s.large = c.time, c.large
		}
		s.note(before, r.term)
		l.opt.Checked(sc.at.offset, m.size)
	}
	s.end, s.next = sc.at.offset, sc.at.index
	l.tail = sc.at
	l.cache.reset(l.tail.index)
	if i > 0 && s.next == s.first && s.first <= l.opt.Known {
		err := &CorruptError{File: s.name(), Offset: headerSize, Index: s.first, What: "the entry that opened the file is not there", Why: l.opt.known()}
		if !o.salvage(err) {
			return err
		}
	}
	if l.Err() != nil {
		return nil // salvaged
	}
	return o.makeDurable(whole)
}

// salvage reports whether the log is opened all the same with what comes before the damage.
func (o *opening) salvage(err error) bool {
	var damage *CorruptError
	if !o.l.opt.Salvage || !errors.As(err, &damage) {
		return false
	}
	_ = o.l.halt(damage)
	return true
}

// marks reports whether a mark for p can be one for end. That of the header knows no checksum.
func (p place) marks(end place) bool {
	return p.index == end.index && (p.file == 0 || p.chain == end.chain)
}

// cutTorn judges what lies behind the last good record. Nothing but zeros is no end that was
// torn.
func (o *opening) cutTorn(sc *scanner, bad *badRecord) error {
	l := o.l
	t := tail{f: sc.f, at: bad.at, size: sc.end, exact: l.side.exact() || l.opt.Copied}
	if t.measure(); t.cause != nil || t.end == t.at.offset {
		return t.cause
	}
	if bad.at.index <= l.opt.Known {
		return &CorruptError{File: sc.name, Offset: bad.at.offset, Index: bad.at.index, What: bad.what, Why: l.opt.known()}
	}
	torn, why := t.judge()
	switch {
	case t.cause != nil:
		return t.cause
	case !torn:
		return &CorruptError{File: sc.name, Offset: bad.at.offset, Index: bad.at.index, What: bad.what,
			Why: "A record that a crash has torn lacks whole sectors, and " + why}
	case !t.exact && l.side.lost != "" && l.files[len(l.files)-1].version >= entry.LargeVersion:
		return &CorruptError{File: sc.name, Offset: bad.at.offset, Index: bad.at.index, What: bad.what, Doubt: true,
			Why: fmt.Sprintf("A crash may have torn that record, but %s, which says up to where the log was durable, %s. "+
				"What is whole ends with transaction %d", SyncedMark, l.side.lost, t.at.number)}
	}
	l.torn = &TornEnd{File: sc.name, Offset: t.at.offset, Bytes: t.end - t.at.offset, Index: t.at.index, Number: t.at.number,
		What: bad.what, Why: why}
	return nil
}

// known says why a record up to Known was durable.
func (o *Options) known() string {
	return fmt.Sprintf("Entry %d was applied, or was stored to be committed, which it is only once it is durable", o.Known)
}

// makeDurable writes what lies between the mark and the end once more, unchanged, and
// cuts off what lies behind it. After a sync that failed, the operating system may show
// bytes that are not on disk and take them for clean.
func (o *opening) makeDurable(from int64) error {
	l := o.l
	b := make([]byte, min(bufferSize, l.tail.offset-from))
	for off := from; off < l.tail.offset; {
		n := min(int64(len(b)), l.tail.offset-off)
		if _, err := l.f.ReadAt(b[:n], off); err != nil {
			return err
		}
		if _, err := l.f.WriteAt(b[:n], off); err != nil {
			return err
		}
		off += n
	}
	if l.allocated > l.tail.offset {
		if err := l.f.Truncate(l.tail.offset); err != nil {
			return err
		}
		l.allocated = l.tail.offset
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.setSynced()
	return nil
}
