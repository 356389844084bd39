package log

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// bodies are those of large transactions, as they were made.
type bodies map[entry.StreamID][]byte

// large makes the entry of a large transaction with so many frames of so many bytes of events,
// and its body.
func (m *maker) large(all bodies, frames, size int) Entry {
	m.index++
	m.number++
	var x body.Index
	var b []byte
	for i := range frames {
		var h body.Header
		events := data(entry.Envelope{First: uint64(len(all)), Term: uint64(i)}, max(size, 1))
		b, h = body.AppendFrame(b, nil, x.Chain(), events[entry.EnvelopeSize:], 1+i)
		x.Add(h, 0)
	}
	l := x.Describe()
	l.ID = entry.StreamID{Term: m.term, Member: 1, Start: 7, Number: uint64(len(all)) + 1}
	l.Offset += uint32(len(all)%3) * largeAlign
	all[l.ID] = b
	e := entry.Envelope{Kind: entry.Large, Flags: entry.FlagRotate, FileVersion: entry.LargeVersion, Term: m.term, First: m.number,
		Count: 1, Time: int64(m.index) * 1e6}
	txn := entry.Txn{Number: m.number, DependsOn: m.number - 1, Time: e.Time}
	text := entry.AppendLarge(nil, &l, &txn, e.Time)
	e.RawLength = uint32(len(text))
	d := make([]byte, entry.EnvelopeSize, entry.EnvelopeSize+len(text))
	e.Put(d)
	d = append(d, text...)
	got, stored, err := entry.Parse(d)
	ok(err)
	_, _, err = entry.ParseLarge(&got, stored)
	ok(err)
	return Entry{Index: m.index, Term: m.term, Data: d}
}

// stage has the bodies in files, as a member does that has received them. It makes a file when
// it is asked for it.
type stage struct {
	fs    file.FS
	all   bodies
	lacks func() bool // whether a body is not there
	taken string
}

func (s *stage) Take(b *entry.LargeBody) (string, error) {
	assert(s.taken == "", "%s was not given back", s.taken)
	if s.lacks != nil && s.lacks() {
		return "", fmt.Errorf("%w: stream %v", ErrNoBody, b.ID)
	}
	name := fmt.Sprintf("ml/ML_%d", b.ID.Number)
	if err := s.make(name, b); err != nil {
		return "", err
	}
	s.taken = name
	return name, nil
}

// make makes the file, with garbage before the body and behind it, unless it is there.
func (s *stage) make(name string, b *entry.LargeBody) error {
	if s.holds(name, b) {
		return nil
	}
	if err := s.fs.MkdirAll("ml"); err != nil {
		return err
	}
	f, err := s.fs.Open(name, file.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	defer f.Close()
	all := bytes.Repeat([]byte{0xAA}, int(b.Offset))
	all = append(all, s.all[b.ID]...)
	all = append(all, make([]byte, b.ID.Number%2*700)...)
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(all, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = s.fs.SyncDir("ml")
	}
	return err
}

// holds reports whether the body is in the file.
func (s *stage) holds(name string, b *entry.LargeBody) bool {
	f, err := s.fs.Open(name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		return false
	}
	defer f.Close()
	return body.Verify(f, b) == nil
}

func (s *stage) Taken(b *entry.LargeBody, moved bool) {
	assert(s.taken != "", "it was not taken")
	here := s.holds(s.taken, b)
	sim, _ := s.fs.(*simfile.FS)
	assert(sim != nil && sim.Crashed() || here != moved, "%s: moved %v, the body is there: %v", s.taken, moved, here)
	s.taken = ""
}

// largeOptions are options of a log that knows large transactions.
func largeOptions(fsys *simfile.FS, s *simenv.Sim, all bodies) Options {
	opt := options(fsys, s)
	opt.Newest, opt.Bodies = entry.LargeVersion, &stage{fs: fsys, all: all}
	return opt
}

// renamesFail has files with bodies not renamed, so that they are copied.
func renamesFail(fsys *simfile.FS) *simfile.Injection {
	return fsys.Inject(simfile.Fault{Ops: simfile.OpRename, Name: "ML_*", Err: syscall.EXDEV})
}

// largeLog appends what shows a log with large transactions: the first entry is one, two follow
// each other, others follow with the flag and without.
func largeLog(mk *maker, all bodies) []Entry {
	return []Entry{mk.large(all, 3, 500), mk.empty(), mk.next(2, 100, 0), mk.large(all, 1, 3000), mk.large(all, 2, 10),
		mk.next(1, 50, 0), mk.large(all, 2, 900), mk.next(1, 20, entry.FlagRotate), mk.next(1, 20, 0)}
}

// readBody reads a body through the log, and checks it against the one that was made.
func readBody(l *Log, all bodies, index uint64) {
	b := must(l.OpenBody(index))
	ok(body.Verify(b, &b.LargeBody))
	assert(b.Index == index, "entry %d", b.Index)
	got := make([]byte, b.Stored)
	must(b.ReadAt(got, int64(b.Offset)))
	assert(bytes.Equal(got, all[b.ID]), "the body of entry %d differs", index)
	ok(b.Close())
}

// The file of a large transaction holds it and nothing else, and all ways into the log know it.
// It is the same whether the body was moved or copied.
func TestLarge(t *testing.T) {
	for _, copies := range []bool{false, true} {
		simulate(t, 1, func(s *simenv.Sim) {
			fsys := simfile.New(s, 1)
			m := newModel(s, 1)
			if copies {
				renamesFail(fsys)
			}
			l := must(m.start(fsys, options(fsys, s)))
			mk := maker{term: 1}
			all := largeLog(&mk, m.bodies)
			ok(m.put(l, 0, all[:1]))
			assert(l.SyncedIndex() == 1 && l.Tail().Size > 8192, "synced up to %d", l.SyncedIndex())
			start := must(l.StartAt(1))
			assert(start.File == 3 && start.Version == 3, "%+v", start)
			ok(m.put(l, 1, all[1:]))
			ok(m.sync(l))
			for range 2 {
				var large []bool
				for _, f := range l.Files() {
					large = append(large, f.Large)
					ok(l.VerifyFile(f.Number))
				}
				assert(fmt.Sprint(large) == "[false true false true true false true false]", "%v", large)
				for _, i := range []uint64{1, 4, 5, 7} {
					readBody(l, m.bodies, i)
				}
				for i, want := range map[uint64]error{2: ErrNoBody, 3: ErrNoBody, 0: ErrCompacted, 10: ErrUnavailable} {
					_, err := l.OpenBody(i)
					assert(errors.Is(err, want), "entry %d: %v", i, err)
				}
				_, err := l.Find(Position{File: 2, Offset: 8192})
				assert(errors.Is(err, ErrBadPosition), "%v", err)
				ok(m.is(l, fsys, all))
				if st := l.Stats(); st.Large != 0 {
					assert(st.Large == 4 && (st.LargeCopied == 4) == copies, "%+v", st)
				}
				ok(l.Close())
				l = must(m.start(fsys, options(fsys, s)))
			}
			assert(len(must(fsys.List("ml"))) == 0, "bodies are left")
			ok(l.Close())
		})
	}
}

// The disk is read for a record, not for the body behind it.
func TestLargeIsReadInPart(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		all := bodies{}
		opt := largeOptions(fsys, s, all)
		opt.Cache = -1
		l := must(Create(opt, Start{}))
		mk := maker{term: 1}
		ok(l.Append([]Entry{mk.next(1, 10, 0), mk.large(all, 4, 1<<20), mk.next(1, 10, 0)}))
		ok(l.Sync())
		few := func(most int64, what string, act func()) {
			before := fsys.Stats().ReadBytes.Load()
			act()
			n := fsys.Stats().ReadBytes.Load() - before
			assert(n <= most, "%s: %d bytes were read", what, n)
		}
		few(100_000, "Read", func() { must(l.Read(2, 3, 1<<62)) })
		few(100_000, "ReadSmall", func() { must(l.ReadSmall(2, 3, 1<<62, 1000)) })
		few(100_000, "Find", func() { must(l.Find(must(l.Position(2)))) })
		few(100_000, "OpenBody", func() { ok(must(l.OpenBody(2)).Close()) })
		few(200_000, "a start", func() {
			fsys = fsys.KillImage()
			opt = largeOptions(fsys, s, all)
			ok(must(Open(opt)).Close())
		})
		ok(l.Close())
	})
}

// A body that is missing stops its entry and what is behind it, nothing before and not the log.
func TestNoBody(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		all := bodies{}
		opt := largeOptions(fsys, s, all)
		lacks := true
		opt.Bodies.(*stage).lacks = func() bool { return lacks }
		l := must(Create(opt, Start{}))
		mk := maker{term: 1}
		entries := []Entry{mk.next(1, 10, 0), mk.next(1, 10, 0), mk.large(all, 1, 100), mk.next(1, 10, 0)}
		for range 2 {
			err := l.Append(entries)
			assert(errors.Is(err, ErrNoBody) && l.Err() == nil && l.LastIndex() == 2, "%v, up to %d", err, l.LastIndex())
			ok(l.Sync())
			assert(l.SyncedIndex() == 2 && len(l.Files()) == 1, "synced up to %d", l.SyncedIndex())
		}
		lacks = false
		ok(l.Append(entries))
		assert(l.LastIndex() == 4, "up to %d", l.LastIndex())
		ok(l.Close())
		opt.Bodies = nil
		l = must(Open(opt))
		err := l.Append([]Entry{mk.large(all, 1, 100)})
		assert(errors.Is(err, ErrNoBody) && l.Err() == nil, "%v", err)
		ok(l.Close())
		// Half a body is none.
		opt.Bodies = cut{&stage{fs: fsys, all: all}}
		l = must(Open(opt))
		mk.index, mk.number = mk.index-1, mk.number-1
		err = l.Append([]Entry{mk.large(all, 1, 100)})
		assert(errors.Is(err, ErrNoBody) && l.Err() == nil, "%v", err)
		ok(l.Close())
	})
}

// cut gives files that are a byte too short.
type cut struct{ *stage }

func (c cut) Take(b *entry.LargeBody) (string, error) {
	name, err := c.stage.Take(b)
	ok(err)
	f := must(c.fs.Open(name, file.OpenOptions{}))
	ok(f.Truncate(fileEnd(b) - 1))
	return name, f.Close()
}

func (c cut) Taken(*entry.LargeBody, bool) {}

// An old program does not take what it does not know, and entries that are none are refused.
func TestLargeRefused(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		all := bodies{}
		opt := largeOptions(simfile.New(s, 1), s, all)
		opt.Newest = entry.LargeVersion - 1
		l := must(Create(opt, Start{}))
		good := (&maker{term: 1}).large(all, 1, 10)
		err := l.Append([]Entry{good})
		assert(errors.Is(err, ErrNewerFormat), "%v", err)
		ok(l.Close())
		opt.Newest, opt.Dir = entry.LargeVersion, "newer"
		l = must(Create(opt, Start{}))
		at := func(i int) int { return entry.EnvelopeSize + i }
		for _, i := range []int{1, 2, 3, at(32 + 7), at(57), at(59), at(60)} {
			e := good
			e.Data = bytes.Clone(good.Data)
			switch i {
			case 1:
				e.Data[1] = byte(entry.Zstd)
			case 2, 3, at(57), at(60):
				e.Data[i] = 0
			default:
				e.Data[i] ^= 0x80
			}
			err := l.Append([]Entry{e})
			assert(errors.Is(err, ErrInvalid), "byte %d: %v", i, err)
		}
		e := good
		e.Data = good.Data[:at(entry.LargeSize)-1]
		assert(errors.Is(l.Append([]Entry{e}), ErrInvalid), "it is cut off")
		ok(l.Append([]Entry{good}))
		ok(l.Close())
	})
}

// The disk is full at each change of the way of a body into the log in turn. The log and the
// body stay, and the next attempt does it.
func TestFullDiskInLarge(t *testing.T) {
	ops := simfile.OpWrite | simfile.OpAllocate | simfile.OpSync | simfile.OpCreate | simfile.OpRename | simfile.OpTruncate
	for _, copies := range []bool{false, true} {
		refused, halted := 0, 0
		for k, hit := 0, true; hit; k++ {
			simulate(t, uint64(k), func(s *simenv.Sim) {
				fsys := simfile.New(s, 1)
				m := newModel(s, 1)
				l := must(m.start(fsys, options(fsys, s)))
				ok(filesOf(2)(m, l))
				ok(m.sync(l))
				mk := maker{index: m.last(), term: 1, number: l.LastNumber()}
				e := mk.large(m.bodies, 2, 700)
				c, _ := inspect(e.Type, e.Term, len(e.Data), e.Data)
				ok(l.opt.Bodies.(*stage).make("ml/ML_1", c.large))
				if copies {
					defer renamesFail(fsys).Stop()
				}
				in := fsys.Inject(simfile.Fault{Ops: ops, Skip: k, Times: 1, Err: file.ErrNoSpace})
				err := m.put(l, m.last(), []Entry{e, mk.next(1, 10, 0)})
				hit = in.Hits() > 0
				in.Stop()
				if err != nil { // the disk was full at a sync, which is no answer of a disk
					halted++
					assert(l.Err() != nil, "%v", err)
					return
				}
				refused += m.refused
				rest := []Entry{e, mk.next(1, 10, 0)}
				if m.last() < e.Index {
					ok(m.put(l, m.last(), rest[:1]))
				}
				ok(l.VerifyFile(must(l.Position(e.Index)).File))
				ok(m.sync(l))
				ok(l.Close())
				ok(must(m.start(fsys.CrashImage(), options(fsys, s))).Close())
			})
		}
		if refused < 4 || halted > 4 {
			t.Errorf("copied %v: refused %d times, halted %d times", copies, refused, halted)
		}
	}
}

// A large transaction is taken back, by an entry that opens a file and by one that does not, and
// by another large one. A reader who has it open reads on.
func TestLargeIsTakenBack(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		m := newModel(s, 1)
		l := must(m.start(fsys, options(fsys, s)))
		mk := maker{term: 1}
		ok(m.put(l, 0, []Entry{mk.next(1, 10, 0), mk.large(m.bodies, 2, 400), mk.large(m.bodies, 1, 10), mk.empty()}))
		open := must(l.OpenBody(2))
		for i, second := range []func(mk *maker) Entry{
			func(mk *maker) Entry { return mk.next(1, 20, 0) },
			func(mk *maker) Entry { return mk.next(1, 20, entry.FlagRotate) },
			func(mk *maker) Entry { return mk.large(m.bodies, 1, 30) },
			func(mk *maker) Entry { return mk.empty() },
		} {
			mk := maker{index: 1, term: uint64(i) + 2, number: 1}
			ok(m.put(l, 1, []Entry{second(&mk), mk.large(m.bodies, 2, 50), mk.next(1, 20, 0)}))
			ok(m.is(l, fsys, m.entries))
			// What follows a large transaction is taken back, and it is the last one again.
			mk = maker{index: 3, term: uint64(i) + 2, number: l.LastNumber() - 1}
			mk.term += 10
			ok(m.put(l, 3, []Entry{mk.empty()}))
			ok(m.is(l, fsys, m.entries))
			m.term = mk.term
			ok(l.Close())
			l = must(m.start(fsys, options(fsys, s)))
			m.committed, l.committed = 0, 0
		}
		ok(body.Verify(open, &open.LargeBody))
		damage := fmt.Errorf("%w: here", body.ErrCorrupt)
		assert(open.Damaged(damage) == damage && l.Err() == nil, "a file that is gone is damaged")
		ok(open.Close())
		ok(l.Close())
	})
}

// Damage in a body is found by those who read it, and halts the log if they say so.
func TestDamagedBody(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		m := newModel(s, 1)
		l := must(m.start(fsys, options(fsys, s)))
		mk := maker{term: 1}
		ok(m.put(l, 0, largeLog(&mk, m.bodies)))
		ok(l.Sync())
		l.SetCommitted(l.LastIndex())
		var damage *CorruptError
		for _, off := range []int64{8000, 8192 + 300} { // before the body, and in it
			ok(fsys.FlipBit("binlog/binlog.000002", off, 3))
			err := l.VerifyFile(2)
			assert(errors.As(err, &damage) && damage.Index == 1 && l.Err() == nil, "%v", err)
			err = transfer(l, func() Options { o := largeOptions(fsys, s, nil); o.Dir = "to"; return o }(), 2)
			assert(errors.As(err, &damage), "%v", err)
			if off < 8192 {
				ok(fsys.FlipBit("binlog/binlog.000002", off, 3))
			}
		}
		b := must(l.OpenBody(1))
		assert(b.Damaged(nil) == nil && l.Err() == nil, "no damage is damage")
		err := b.Damaged(body.Verify(b, &b.LargeBody))
		assert(errors.As(err, &damage) && errors.As(l.Err(), &damage) && damage.Offset == 8192, "%v, %v", err, l.Err())
		ok(b.Close())
		_ = l.Close()
	})
}

// A start finds what is wrong with the file of a large transaction, last or not, and never takes it
// for torn.
func TestDamagedLarge(t *testing.T) {
	for _, last := range []bool{true, false} {
		for _, c := range []struct {
			what string
			hurt func(f file.File)
		}{
			{"cut off", func(f file.File) { ok(f.Truncate(must(f.Size()) - 1)) }},
			{"cut off in the space", func(f file.File) { ok(f.Truncate(6000)) }},
			{"grown", func(f file.File) { ok(f.Truncate(must(f.Size()) + 1)) }},
			{"no record", func(f file.File) { must(f.WriteAt(make([]byte, 512), headerSize)) }},
		} {
			simulate(t, 1, func(s *simenv.Sim) {
				fsys := simfile.New(s, 1)
				all := bodies{}
				opt := largeOptions(fsys, s, all)
				l := must(Create(opt, Start{}))
				mk := maker{term: 1}
				ok(l.Append([]Entry{mk.next(1, 10, 0), mk.large(all, 2, 300)}))
				if !last {
					ok(l.Append([]Entry{mk.empty(), mk.next(1, 10, entry.FlagRotate)}))
				}
				ok(l.Sync())
				ok(l.Close())
				ok(fsys.Remove("binlog/" + SyncedMark))
				f := must(fsys.Open("binlog/binlog.000002", file.OpenOptions{}))
				c.hurt(f)
				ok(f.Close())
				l, err := Open(opt)
				var damage *CorruptError
				if c.what == "no record" && !last {
					_, err = l.Read(2, 3, 1<<20) // a start does not read it
				}
				assert(errors.As(err, &damage) && damage.File == "binlog.000002", "%s, last %v: %v", c.what, last, err)
				if last {
					opt.Salvage = true
					l = must(Open(opt))
					assert(l.Err() != nil && l.LastIndex() >= 1, "up to %d", l.LastIndex())
				}
				if l != nil {
					_ = l.Close()
				}
			})
		}
	}
}

// A member takes over files with large transactions, up to one as the last, and goes on.
func TestImportLarge(t *testing.T) {
	for committed := uint64(1); committed <= 9; committed++ {
		simulate(t, committed, func(s *simenv.Sim) {
			all := bodies{}
			opt := largeOptions(simfile.New(s, 1), s, all)
			from := must(Create(opt, Start{}))
			mk := maker{term: 1}
			entries := largeLog(&mk, all)
			ok(from.Append(entries))
			ok(from.Sync())
			from.SetCommitted(committed)
			fsys := simfile.New(s, 2)
			opt = largeOptions(fsys, s, all)
			ok(transfer(from, opt, 1))
			fsys = fsys.CrashImage()
			opt = largeOptions(fsys, s, all)
			to := must(Open(opt))
			assert(to.LastIndex() == committed, "up to %d, not %d", to.LastIndex(), committed)
			ok(to.Append(entries[committed:]))
			ok(to.Sync())
			last := mk.next(1, 5, entry.FlagRotate)
			for _, l := range []*Log{from, to} {
				ok(l.Append([]Entry{last}))
				ok(l.Sync())
				l.SetCommitted(last.Index)
			}
			for _, f := range from.Files() {
				if f.Closed {
					assert(must(from.HashFile(f.Number)) == must(to.HashFile(f.Number)), "file %d differs", f.Number)
				}
				ok(to.VerifyFile(f.Number))
			}
			removed := must(to.Purge(Retention{Keep: last.Index, MaxBytes: 1}))
			assert(len(removed) == 8 && to.FirstIndex() == 10 || len(to.Files()) == 1, "%v", removed)
			ok(from.Close())
			ok(to.Close())
			ok(Destroy(opt))
		})
	}
}

// Power is lost, or the process killed, at every change on the way of bodies into the log and out
// of it.
func TestCrashInLarge(t *testing.T) {
	put := func(after uint64, make func(mk *maker, all bodies) []Entry) func(m *model, l *Log) error {
		return func(m *model, l *Log) error {
			m.term++
			mk := maker{index: after, term: m.term, number: after}
			return m.put(l, after, make(&mk, m.bodies))
		}
	}
	two := func(mk *maker, all bodies) []Entry {
		return []Entry{mk.next(1, 10, 0), mk.large(all, 2, 300), mk.large(all, 1, 20), mk.next(1, 10, 0)}
	}
	copied := func(act func(m *model, l *Log) error) func(m *model, l *Log) error {
		return func(m *model, l *Log) error {
			defer renamesFail(l.fs.(*simfile.FS)).Stop()
			return act(m, l)
		}
	}
	none := func(*model, *Log) error { return nil }
	crashDuring(t, none, put(0, two))
	crashDuring(t, none, copied(put(0, two)))
	crashDuring(t, filesOf(2), put(7, two))
	small := func(flags uint8) func(mk *maker, all bodies) []Entry {
		return func(mk *maker, all bodies) []Entry { return []Entry{mk.next(1, 10, flags), mk.next(1, 10, 0)} }
	}
	for _, after := range []uint64{1, 2, 3} {
		crashDuring(t, put(0, two), put(after, small(0)))
	}
	crashDuring(t, put(0, two), put(1, small(entry.FlagRotate)))
	crashDuring(t, put(0, two), put(2, small(entry.FlagRotate)))
	crashDuring(t, put(0, two), put(1, two))
	crashDuring(t, put(0, two), put(2, func(mk *maker, all bodies) []Entry { return []Entry{mk.large(all, 1, 40)} }))
}
