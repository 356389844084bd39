package redo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

const (
	fileName = "redo.log"
	// newName is a log file in the making. It replaces fileName by rename once it
	// is complete and durable; one that is found at start-up is waste.
	newName = "redo.log.new"
)

// Create makes an empty log and opens it. It fails with fs.ErrExist if there is
// one. After a crash in it either there is no log or an empty one.
func Create(opt Options) (*Log, error) { return create(opt.withDefaults()) }

func create(opt Options) (*Log, error) {
	if err := opt.FS.MkdirAll(opt.Dir); err != nil {
		return nil, err
	}
	name := path.Join(opt.Dir, fileName)
	if there, err := opt.FS.Exists(name); err != nil {
		return nil, err
	} else if there {
		return nil, fmt.Errorf("redo: %s: %w", name, fs.ErrExist)
	}
	s := slot{
		shape: shape{start: opt.StartLSN, capacity: opt.Capacity},
		id:    opt.ID, epoch: uint32(opt.Env.Uint64()), checkpoint: opt.StartLSN, flushed: opt.StartLSN,
	}
	if s.id == ([16]byte{}) {
		binary.LittleEndian.PutUint64(s.id[:], opt.Env.Uint64())
		binary.LittleEndian.PutUint64(s.id[8:], opt.Env.Uint64())
	}
	f, err := makeFile(opt, &s, nil)
	if err != nil {
		return nil, err
	}
	if f, err = installFile(opt, f); err != nil {
		return nil, err
	}
	if err := opt.FS.SyncDir(path.Dir(opt.Dir)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := newLog(opt, f, s, []epochStart{{s.start, s.epoch}}, s.start)
	l.start()
	return l, nil
}

// makeFile makes a complete and durable log file under newName, with both blocks
// holding s. fill writes its log bytes. On error nothing is left.
func makeFile(opt Options, s *slot, fill func(file.File) error) (file.File, error) {
	name := path.Join(opt.Dir, newName)
	if err := removeIfThere(opt.FS, name); err != nil {
		return nil, err
	}
	f, err := opt.FS.Open(name, file.OpenOptions{Exclusive: true})
	if err != nil {
		return nil, err
	}
	err = f.Allocate(0, headerSize+s.capacity)
	if err == nil && fill != nil {
		err = fill(f)
	}
	for block := uint64(0); block < 2 && err == nil; block++ {
		s.sequence++
		err = s.write(f, s.sequence%2)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), removeIfThere(opt.FS, name))
	}
	return f, nil
}

// installFile gives the new file its name, durably, and opens it by that name,
// so that errors name it right. It closes f.
func installFile(opt Options, f file.File) (file.File, error) {
	name := path.Join(opt.Dir, fileName)
	err := f.Close()
	if err == nil {
		err = opt.FS.Rename(path.Join(opt.Dir, newName), name)
	}
	if err == nil {
		err = opt.FS.SyncDir(opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	return opt.FS.Open(name, file.OpenOptions{})
}

func removeIfThere(fsys file.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Probe reads the log's header without changing anything, and returns the ID of its
// database. Errors: those of [Open] that come of the header and the file's size.
func Probe(fsys file.FS, dir string) (id [16]byte, err error) {
	name := path.Join(dir, fileName)
	f, err := fsys.Open(name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		return id, err
	}
	s, err := readSlots(f)
	if err == nil {
		err = checkSize(f, s)
	}
	return s.id, errors.Join(named(err, name), f.Close())
}

// named completes a *CorruptError.
func named(err error, name string) error {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		corrupt.File = name
	}
	return err
}

func checkSize(f file.File, s slot) error {
	size, err := f.Size()
	if err == nil && size < headerSize+s.capacity {
		err = &CorruptError{Offset: size, Problem: fmt.Sprintf("file is shorter than its %d bytes", headerSize+s.capacity)}
	}
	return err
}

// Open opens the log and calls scan for each group from the checkpoint on, in LSN
// order: [start, end) is the group, payload its ops, valid during the call. An
// error of scan ends Open with it; scan may be nil.
//
// The log ends at the first group that is not whole. If that lies below the
// bound the error is a *[CorruptError]. When Open returns all that was scanned is
// durable, and nothing that the crash left behind it can come back.
//
// If Options.Capacity differs from the file's, the log is resized, unless its
// live part does not fit; see [Log.Resize].
func Open(opt Options, scan func(start, end page.LSN, payload []byte) error) (*Log, error) {
	return open(opt.withDefaults(), scan)
}

func open(opt Options, scan func(start, end page.LSN, payload []byte) error) (*Log, error) {
	name := path.Join(opt.Dir, fileName)
	f, err := opt.FS.Open(name, file.OpenOptions{})
	if err != nil {
		return nil, err
	}
	// A process that was killed may have given the file its name and not made that durable:
	// after a resize the name would lead back to the old file.
	for _, dir := range []string{opt.Dir, path.Dir(opt.Dir)} {
		if err := opt.FS.SyncDir(dir); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	l, err := recoverLog(opt, f, scan)
	if err != nil {
		return nil, errors.Join(named(err, name), f.Close())
	}
	if err := l.resize(opt.Capacity); err != nil && !errors.Is(err, ErrTooSmall) && !errors.Is(err, file.ErrNoSpace) {
		return nil, errors.Join(err, l.file.Close())
	}
	if err := removeIfThere(opt.FS, path.Join(opt.Dir, newName)); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	l.start()
	return l, nil
}

func recoverLog(opt Options, f file.File, scan func(start, end page.LSN, payload []byte) error) (*Log, error) {
	s, err := readSlots(f)
	if err != nil {
		return nil, err
	}
	if opt.ID != ([16]byte{}) && opt.ID != s.id {
		return nil, fmt.Errorf("%w: %x, not %x", ErrWrongID, s.id, opt.ID)
	}
	if err := checkSize(f, s); err != nil {
		return nil, err
	}
	sc := newScanner(f, s)
	sc.found = func(end page.LSN) { opt.OnRange(s.checkpoint, end) }
	sc.found(s.flushed)
	end, err := sc.run(s.checkpoint, scan)
	if err != nil {
		return nil, err
	}
	epochs, end, err := beginEpoch(f, s, sc.epochs, end)
	if err != nil {
		return nil, err
	}
	l := newLog(opt, f, s, epochs, end)
	if err := l.saveBound(); err != nil {
		return nil, err
	}
	return l, nil
}

// rewrite writes the bytes of [from, to) once more. The crashed process may have
// had a failed sync, after which the operating system holds bytes to be clean
// that are not on disk, and shows them to us. Written again they are dirty, and
// the next sync is worth something.
func rewrite(f file.File, sh shape, from, to page.LSN) error {
	return copyLog(f, sh, f, sh, from, to)
}

// copyLog copies the log bytes [from, to) from one file into another.
func copyLog(src file.File, srcShape shape, dst file.File, dstShape shape, from, to page.LSN) error {
	buf := make([]byte, min(writeMax, max(to, from)-from))
	for from < to {
		srcOff, srcRun := srcShape.place(from)
		dstOff, dstRun := dstShape.place(from)
		b := buf[:min(int64(len(buf)), int64(to-from), srcRun, dstRun)]
		if _, err := src.ReadAt(b, srcOff); err != nil {
			return fmt.Errorf("redo: read at LSN %d: %w", from, err)
		}
		if _, err := dst.WriteAt(b, dstOff); err != nil {
			return fmt.Errorf("redo: write at LSN %d: %w", from, err)
		}
		from += page.LSN(len(b))
	}
	return nil
}

// beginEpoch appends the group that begins a new epoch and makes it and all
// before it durable. See DESIGN.md for why.
func beginEpoch(f file.File, s slot, epochs []epochStart, end page.LSN) ([]epochStart, page.LSN, error) {
	old := epochs[len(epochs)-1].epoch
	g := make([]byte, epochGroupSize)
	payload := g[GroupHeaderSize:]
	payload[0] = byte(kindEpoch)
	binary.LittleEndian.PutUint32(payload[1:], old+1)
	binary.LittleEndian.PutUint32(g, uint32(len(payload)))
	binary.LittleEndian.PutUint32(g[4:], checksum(old, end, payload))
	if uint64(end-s.checkpoint)+epochGroupSize > uint64(s.capacity) {
		return nil, 0, fmt.Errorf("redo: no room left to begin a new epoch at LSN %d, checkpoint %d", end, s.checkpoint)
	}
	for from, b := end, g; len(b) > 0; {
		off, run := s.place(from)
		n := min(int64(len(b)), run)
		if _, err := f.WriteAt(b[:n], off); err != nil {
			return nil, 0, err
		}
		from, b = from+page.LSN(n), b[n:]
	}
	if err := f.Sync(); err != nil {
		return nil, 0, err
	}
	end += epochGroupSize
	return append(epochs, epochStart{end, old + 1}), end, nil
}

const epochGroupSize = GroupHeaderSize + 5

// scanner reads groups from the checkpoint on.
type scanner struct {
	f      file.File
	slot   slot
	epochs []epochStart
	limit  page.LSN // no group reaches beyond
	// settled: what lies behind the bound is durable, or nobody uses it.
	settled bool
	found   func(end page.LSN) // is told the end of the log by settle
	buf     []byte
	at      page.LSN // of buf[0]
}

func newScanner(f file.File, s slot) *scanner {
	return &scanner{
		f: f, slot: s, epochs: []epochStart{{s.checkpoint, s.epoch}},
		limit: s.checkpoint + page.LSN(s.capacity),
		buf:   make([]byte, 0, min(4*MinBufferSize, s.capacity)), at: s.checkpoint,
	}
}

// run passes the groups from the LSN at on to scan and returns the end of the log.
// Groups behind the bound are made durable before scan sees the first of them: its
// user writes pages by them.
func (sc *scanner) run(at page.LSN, scan func(start, end page.LSN, payload []byte) error) (page.LSN, error) {
	for {
		if at >= sc.slot.flushed && !sc.settled {
			if err := sc.settle(at); err != nil {
				return 0, err
			}
		}
		payload, bad, err := sc.group(at)
		if err != nil {
			return 0, err
		}
		if bad != nil && at >= sc.slot.flushed {
			return at, nil
		}
		if bad != nil {
			bad.LSN, bad.Bound = at, sc.slot.flushed
			bad.Offset, _ = sc.slot.place(at)
			return 0, bad
		}
		end := at + GroupHeaderSize + page.LSN(len(payload))
		if Kind(payload[0]) == kindEpoch && len(payload) == epochGroupSize-GroupHeaderSize {
			sc.epochs = append(sc.epochs, epochStart{end, binary.LittleEndian.Uint32(payload[1:])})
		} else if scan != nil {
			if err := scan(at, end, payload); err != nil {
				return 0, err
			}
		}
		at = end
	}
}

// settle makes the log durable from at, a place at or behind the bound, to its end.
func (sc *scanner) settle(at page.LSN) error {
	sc.settled = true
	ahead := newScanner(sc.f, sc.slot)
	ahead.settled, ahead.at, ahead.epochs = true, at, slices.Clone(sc.epochs)
	end, err := ahead.run(at, nil)
	if err == nil {
		sc.found(end)
		err = rewrite(sc.f, sc.slot.shape, sc.slot.flushed, end)
	}
	if err == nil {
		err = sc.f.Sync()
	}
	return err
}

// group returns the payload of the group at lsn, or what is wrong with it.
func (sc *scanner) group(lsn page.LSN) (payload []byte, bad *CorruptError, err error) {
	h, err := sc.bytes(lsn, GroupHeaderSize)
	if err != nil {
		return nil, nil, err
	}
	if h == nil {
		return nil, &CorruptError{Problem: "log reaches its capacity"}, nil
	}
	n := binary.LittleEndian.Uint32(h)
	found := binary.LittleEndian.Uint32(h[4:])
	if n < 1 || n > MaxPayload {
		return nil, &CorruptError{Problem: "length", Expected: MaxPayload, Found: n}, nil
	}
	g, err := sc.bytes(lsn, GroupHeaderSize+int(n))
	if err != nil {
		return nil, nil, err
	}
	if g == nil {
		return nil, &CorruptError{Problem: "length reaches beyond the capacity", Expected: uint32(sc.limit - lsn), Found: n}, nil
	}
	payload = g[GroupHeaderSize:]
	if sum := checksum(sc.epochs[len(sc.epochs)-1].epoch, lsn, payload); sum != found {
		return nil, &CorruptError{Problem: "checksum", Expected: sum, Found: found}, nil
	}
	return payload, nil, nil
}

// bytes returns [lsn, lsn+n), or nil if that goes beyond the limit. It is valid
// until the next call. lsn never falls.
func (sc *scanner) bytes(lsn page.LSN, n int) ([]byte, error) {
	if lsn+page.LSN(n) > sc.limit {
		return nil, nil
	}
	skip := int(lsn - sc.at)
	if skip+n > len(sc.buf) {
		kept := copy(sc.buf, sc.buf[skip:])
		sc.buf, sc.at, skip = sc.buf[:kept], lsn, 0
		if err := sc.fill(); err != nil {
			return nil, err
		}
	}
	return sc.buf[skip : skip+n], nil
}

// fill reads as much as the buffer takes.
func (sc *scanner) fill() error {
	for len(sc.buf) < cap(sc.buf) {
		from := sc.at + page.LSN(len(sc.buf))
		off, run := sc.slot.place(from)
		n := min(int64(cap(sc.buf)-len(sc.buf)), run, int64(sc.limit-from))
		if n == 0 {
			return nil
		}
		b := sc.buf[len(sc.buf) : len(sc.buf)+int(n)]
		if got, err := sc.f.ReadAt(b, off); err != nil && (got < len(b) || err != io.EOF) {
			return fmt.Errorf("redo: read at LSN %d: %w", from, err)
		}
		sc.buf = sc.buf[:len(sc.buf)+int(n)]
	}
	return nil
}
