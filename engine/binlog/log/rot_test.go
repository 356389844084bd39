package log

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// unmarked makes a log of which the sync mark in the file covers the first entry only, the
// others being synced since, and returns how they lie in the file. Some end with zeros, as rows
// do whose last column is a small number.
func unmarked(s *simenv.Sim, fsys *simfile.FS, n, size int) []Position {
	l := must(Create(options(fsys, s), Start{}))
	mk := maker{term: 1}
	var at []Position
	for i := range n {
		var e Entry
		if i == n/2 {
			e = mk.empty()
		} else if e = mk.next(1, size, 0); i%3 != 0 {
			clear(e.Data[len(e.Data)-i%7-1:])
		}
		ok(l.Append([]Entry{e}))
		ok(l.Sync())
		at = append(at, must(l.Position(uint64(i)+1)))
	}
	return append(at, Position{File: 1, Offset: l.tail.offset})
}

// One bit of an acknowledged record that no mark in the file covers flips, and the process was
// killed, or power was lost: the start names the record. It does not matter which bit it is, nor
// whether other records follow.
func TestFlippedBit(t *testing.T) {
	for _, power := range []bool{false, true} {
		for _, size := range []int{50, 700} {
			simulate(t, 1, func(s *simenv.Sim) {
				fsys := simfile.New(s, 1)
				const n = 7
				at := unmarked(s, fsys, n, size)
				fsys = fsys.KillImage()
				if power {
					fsys.SyncAll()
					fsys = fsys.CrashImage()
					forgetSide(fsys)
				}
				for i := 1; i < n; i++ {
					for off := at[i].Offset; off < at[i+1].Offset; off++ {
						if off > at[i].Offset+100 && off%17 != 0 && off < at[i+1].Offset-10 {
							continue
						}
						for bit := range uint(8) {
							if (!power || off > at[i].Offset+recordHeader) && bit != uint(off%8) {
								continue // every bit of the header, the others in turns
							}
							ok(fsys.FlipBit("binlog/binlog.000001", off, bit))
							_, err := Open(options(fsys, s))
							var damage *CorruptError
							assert(errors.As(err, &damage) && damage.Offset == at[i].Offset && damage.Index == uint64(i)+1,
								"power lost: %v, bit %d of byte %d of entry %d at %d: %v", power, bit, off-at[i].Offset, i+1, at[i].Offset, err)
							ok(fsys.FlipBit("binlog/binlog.000001", off, bit))
						}
					}
				}
				l := must(Open(options(fsys, s)))
				assert(l.LastIndex() == n && l.TornEnd() == nil, "%d, %v", l.LastIndex(), l.TornEnd())
				ok(l.Close())
			})
		}
	}
}

// Power was lost, no mark covers them, and a sector of zeros, or zeros up to the end, lie where entries were that the
// engine has applied: that is damage, and the file is left as it is. Behind what is known it is a torn end.
func TestKnown(t *testing.T) {
	for _, opens := range []bool{false, true} { // the entry that is gone has opened a file
		simulate(t, 1, func(s *simenv.Sim) {
			fsys := simfile.New(s, 1)
			l := must(Create(options(fsys, s), Start{}))
			mk := maker{term: 1, version: entry.FileVersion}
			ok(l.Append([]Entry{mk.next(1, 100, 0)}))
			ok(l.Sync())
			flags := uint8(0)
			if opens {
				flags = entry.FlagRotate
			}
			ok(l.Append([]Entry{mk.next(1, 1500, flags)}))
			ok(l.Sync())
			at := must(l.Position(2))
			name := "binlog/" + FileName(at.File)
			fsys = fsys.CrashImage()
			forgetSide(fsys)
			f := must(fsys.Open(name, file.OpenOptions{}))
			if opens {
				must(f.WriteAt(make([]byte, must(f.Size())-at.Offset), at.Offset))
			} else {
				from := (at.Offset/sectorSize + 1) * sectorSize
				must(f.WriteAt(make([]byte, sectorSize), from))
			}
			// Of the marks in the file none covers the entry.
			must(f.WriteAt(make([]byte, termsOffset-markOffset), markOffset))
			ok(f.Close())
			before := must(file.ReadWhole(fsys, name, 64<<20))
			opt := options(fsys, s)
			opt.Known = 2
			_, err := Open(opt)
			var damage *CorruptError
			assert(errors.As(err, &damage) && damage.Index == 2, "opens a file: %t: %v", opens, err)
			there, err := fsys.Exists(name)
			ok(err)
			assert(there && bytes.Equal(before, must(file.ReadWhole(fsys, name, 64<<20))), "opens a file: %t: it was changed", opens)
			opt.Known = 1
			l = must(Open(opt))
			assert(l.LastIndex() == 1 && (l.TornEnd() != nil) == !opens, "opens a file: %t: up to %d, %v", opens, l.LastIndex(), l.TornEnd())
			ok(l.Close())
		})
	}
}

// What comes before the damage can be read when it is asked for, and nothing is changed.
func TestSalvage(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		const n, bad = 7, 5
		at := unmarked(s, fsys, n, 50)
		fsys = fsys.KillImage()
		opt := options(fsys, s)
		opt.Salvage = true
		ok(fsys.FlipBit("binlog/binlog.000001", at[bad-1].Offset+recordHeader+3, 2))
		read := func() []byte { return must(file.ReadWhole(fsys, "binlog/binlog.000001", 64<<20)) }
		before := read()
		l := must(Open(opt))
		var damage *CorruptError
		assert(errors.As(l.Err(), &damage) && damage.Index == bad, "%v", l.Err())
		entries := must(l.Read(1, l.LastIndex()+1, 1<<20))
		assert(l.LastIndex() == bad-1 && len(entries) == bad-1, "up to %d, %d entries", l.LastIndex(), len(entries))
		assert(l.Append([]Entry{{Index: bad, Term: 9}}) != nil, "it takes entries")
		_ = l.Close()
		assert(bytes.Equal(before, read()), "the file was changed")
		// Where there is no damage it is a log as any.
		ok(fsys.FlipBit("binlog/binlog.000001", at[bad-1].Offset+recordHeader+3, 2))
		l = must(Open(opt))
		assert(l.Err() == nil && l.LastIndex() == n, "%v, up to %d", l.Err(), l.LastIndex())
		ok(l.Close())
	})
}

// The length of the last record is wrong, so that the record seems to reach into sectors that were
// never written: no torn write, though power was lost. The data end with zeros.
func TestWrongLength(t *testing.T) {
	for _, c := range []struct {
		what  string
		zeros int
		wrong uint32 // bits of the length
	}{
		{"one bit, and more zeros than lengths are tried", lengthsMax + 50, 1 << 11},
		{"two bits, and no zeros", 0, 3 << 11},
		{"two bits, and the last length that is tried", lengthsMax - 1, 3 << 11},
	} {
		simulate(t, 1, func(s *simenv.Sim) {
			fsys := simfile.New(s, 1)
			l := must(Create(options(fsys, s), Start{}))
			mk := maker{term: 1}
			ok(l.Append([]Entry{mk.next(1, 50, 0)}))
			ok(l.Sync())
			at := l.tail.offset
			e := mk.next(1, 1500, 0)
			clear(e.Data[len(e.Data)-c.zeros:])
			e.Data[len(e.Data)-c.zeros-1] = 'x'
			ok(l.Append([]Entry{e}))
			ok(l.Sync())
			fsys = fsys.CrashImage()
			forgetSide(fsys)
			for bit := range 32 {
				if c.wrong>>bit&1 != 0 {
					ok(fsys.FlipBit("binlog/binlog.000001", at+4+int64(bit/8), uint(bit%8)))
				}
			}
			_, err := Open(options(fsys, s))
			var damage *CorruptError
			assert(errors.As(err, &damage) && damage.Offset == at && damage.Index == 2, "%s: %v", c.what, err)
		})
	}
}

// Bits flip at some time in the lives of a log that is killed and loses power. What was
// acknowledged is there, or the start says what is damaged; then it is put right again.
func TestRotAndCrashes(t *testing.T) {
	flips, refused, torn := 0, 0, 0
	eachSeed(t, 40, func(s *simenv.Sim, seed uint64) {
		m := newModel(s, seed)
		fsys := simfile.New(s, seed)
		for range 10 {
			fsys, _ = m.live(fsys, 1+int64(m.rng.IntN(150)), 100)
			names, err := fsys.List("binlog")
			if len(names) < 2 || err != nil {
				continue // there is no log yet
			}
			name := "binlog/" + names[len(names)-2]
			if m.rng.IntN(6) == 0 {
				name = "binlog/" + SyncedMark
			}
			h := must(fsys.Open(name, file.OpenOptions{}))
			size := must(h.Size())
			ok(h.Close())
			if size == 0 {
				continue
			}
			off, bit := m.rng.Int64N(size), uint(m.rng.IntN(8))
			flips++
			before := fsys.KillImage() // as it was, and as durable as it was
			ok(fsys.FlipBit(name, off, bit))
			l, err := Open(m.large(fsys, options(fsys, s)))
			if err == nil && l.files[len(l.files)-1].large != nil {
				err = l.VerifyFile(l.files[len(l.files)-1].number) // a start reads no bodies
			}
			var damage *CorruptError
			switch {
			case errors.As(err, &damage):
				refused++
				fsys = before
				continue
			case errors.Is(err, ErrNoLog) && m.durable == 0:
				continue
			}
			if err != nil {
				panic(fmt.Sprintf("bit %d at %d of %s: %v", bit, off, name, err))
			}
			if l.TornEnd() != nil {
				torn++
			}
			m.recovered(l, fsys)
			ok(m.life(l, 5))
			fsys = fsys.CrashImage()
		}
	})
	if flips < 100 || refused < 20 || torn < 10 {
		t.Errorf("%d bits flipped, %d times it was found, %d torn ends", flips, refused, torn)
	}
}

// The side mark says what is durable after each sync, is lowered, durably, before anything is
// taken back, and says nothing about a log that comes after it in its directory.
func TestSideMark(t *testing.T) {
	for seed := range uint64(20) {
		simulate(t, seed, func(s *simenv.Sim) {
			fsys := simfile.New(s, seed)
			opt := options(fsys, s)
			l := must(Create(opt, Start{}))
			says := func(fsys *simfile.FS, want place) {
				side, err := openSide(&Options{FS: fsys, Dir: "binlog", Group: testGroup})
				ok(err)
				ok(side.f.Close())
				assert(side.at.sameEnd(want), "the mark says %+v, not %+v", side.at, want)
			}
			mk := maker{term: 1}
			for range 5 {
				ok(l.Append([]Entry{mk.next(1, 300, 0)}))
				says(fsys.KillImage(), l.synced)
				ok(l.Sync())
				says(fsys.KillImage(), l.tail)
				assert(l.side.exact(), "a mark of this run")
			}
			high := l.tail
			fsys.SyncAll()
			ok(l.Append([]Entry{{Index: 3, Term: 2}}))
			side, err := openSide(&Options{FS: fsys.CrashImage(), Dir: "binlog", Group: testGroup})
			ok(err)
			assert(high.behind(side.most), "after entries were taken back a slot says %+v", side.most)
			ok(l.Sync())
			says(fsys.KillImage(), l.tail)
			fsys.SyncAll()
			ok(l.Reset(Start{Index: 100, Term: 5}))
			says(fsys.KillImage(), l.tail)
			side, err = openSide(&Options{FS: fsys.CrashImage(), Dir: "binlog", Group: testGroup})
			ok(err)
			assert(side.most.file == 0 || side.most.sameEnd(l.tail), "after a reset a slot says %+v", side.most)
			ok(l.Append([]Entry{{Index: 101, Term: 5}}))
			ok(l.Close())
			fsys.SyncAll()
			ok(Destroy(opt))
			fsys = fsys.CrashImage()
			l = must(Create(options(fsys, s), Start{}))
			ok(l.Close())
			ok(must(Open(options(fsys.CrashImage(), s))).Close())
		})
	}
}

// A side mark that cannot be read or written for lack of space keeps nothing from working. Any
// other failure to write it halts the log as one to write an entry does.
func TestSideMarkFails(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := options(fsys, s)
		full := fsys.Inject(simfile.Fault{Ops: simfile.OpCreate | simfile.OpWrite, Name: SyncedMark, Err: file.ErrNoSpace})
		l := must(Create(opt, Start{}))
		mk := maker{term: 1}
		step := func() error {
			ok(l.Append([]Entry{mk.next(1, 300, 0)}))
			return l.Sync()
		}
		ok(step())
		assert(l.side.f == nil, "there was no space for it")
		full.Stop()
		ok(step())
		assert(l.side.exact(), "there is space again")
		full = fsys.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: SyncedMark, Err: file.ErrNoSpace})
		ok(step())
		full.Stop()
		ok(l.Append([]Entry{{Index: 1, Term: 2}}))
		ok(l.Sync())
		ok(fsys.BadSector("binlog/"+SyncedMark, 10))
		ok(fsys.BadSector("binlog/"+SyncedMark, sectorSize+10))
		l = must(Open(options(fsys, s)))
		assert(l.LastIndex() == 1 && l.side.at.file != 0, "%+v", l.side)
		fsys.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: SyncedMark, Err: errors.New("broken")})
		mk = maker{index: 1, term: 2}
		assert(step() != nil && l.Err() != nil, "the log goes on with a disk that fails")
	})
}

// Only the newest place that was written tells where the log ended. One that is left behind since the newest slot has
// rotted, could not be written or could not be read is a lower bound, no more.
func TestSideMarkDoubt(t *testing.T) {
	flip := func(slot int64) func(fsys *simfile.FS, sync func()) {
		return func(fsys *simfile.FS, _ func()) { ok(fsys.FlipBit("binlog/"+SyncedMark, slot*sectorSize+50, 1)) }
	}
	for what, c := range map[string]struct {
		harm  func(fsys *simfile.FS, sync func())
		exact bool // after the next start
	}{
		"nothing":                 {func(*simfile.FS, func()) {}, true},
		"one slot has rotted":     {flip(0), false},
		"the other has":           {flip(1), false},
		"a slot has become zero":  {func(fsys *simfile.FS, _ func()) { zero(fsys, 0) }, false},
		"the other has become so": {func(fsys *simfile.FS, _ func()) { zero(fsys, 1) }, false},
		"there was no space for it": {func(fsys *simfile.FS, sync func()) {
			full := fsys.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: SyncedMark, Err: file.ErrNoSpace})
			sync()
			full.Stop()
		}, false},
	} {
		simulate(t, 1, func(s *simenv.Sim) {
			fsys := simfile.New(s, 1)
			l := must(Create(options(fsys, s), Start{}))
			mk := maker{term: 1}
			sync := func() {
				ok(l.Append([]Entry{mk.next(1, 300, 0)}))
				ok(l.Sync())
			}
			for range 7 {
				sync()
			}
			c.harm(fsys, sync)
			opt := options(fsys.KillImage(), s)
			side := must(openSide(&Options{FS: opt.FS, Dir: "binlog", Group: testGroup}))
			assert(side.exact() == c.exact, "%s: %+v", what, side)
			if side.f != nil {
				ok(side.f.Close())
			}
			last := l.LastIndex()
			l = must(Open(opt))
			assert(l.LastIndex() == last, "%s: up to %d", what, l.LastIndex())
			sync()
			sync()
			fsys = opt.FS.(*simfile.FS).KillImage()
			side = must(openSide(&Options{FS: fsys, Dir: "binlog", Group: testGroup}))
			assert(side.exact() && side.at.sameEnd(l.tail), "%s, and a start after that: %+v", what, side)
		})
	}
	// What cannot be read now is not there when it can be read again, beside slots that count from 1.
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		l := must(Create(options(fsys, s), Start{}))
		mk := maker{term: 1}
		for range 7 {
			ok(l.Append([]Entry{mk.next(1, 300, 0)}))
			ok(l.Sync())
		}
		fsys = fsys.KillImage()
		failing := fsys.Inject(simfile.Fault{Ops: simfile.OpRead, Name: SyncedMark, Times: 1, Err: errors.New("for now")})
		l = must(Open(options(fsys, s)))
		failing.Stop()
		side := must(openSide(&Options{FS: fsys.KillImage(), Dir: "binlog", Group: testGroup}))
		assert(side.exact() && side.at.sameEnd(l.tail), "the mark says %+v, and the log ends at %+v", side.at, l.tail)
	})
}

// forgetSide leaves the side mark as it was when it was made, as a loss of power may.
func forgetSide(fsys *simfile.FS) {
	opt := Options{FS: fsys, Dir: "binlog", Group: testGroup}
	ok(removeSide(&opt))
	var s sideMark
	ok(s.renew(&opt, place{}))
	ok(s.f.Close())
}

// The last sector of an acknowledged record is lost, and the side mark with it or a slot of it: the record may have been torn,
// and may have been acknowledged. The start refuses it, however often one tries, and changes nothing. A log of a program that
// knew no side mark is opened, and so is one that ends with a good record, whatever has become of the mark. Salvage opens it.
func TestTornWithoutMark(t *testing.T) {
	remove := func(fsys *simfile.FS) { ok(fsys.Remove("binlog/" + SyncedMark)) }
	slot := func(hurt func(fsys *simfile.FS, slot int64), slots ...int64) func(*simfile.FS) {
		return func(fsys *simfile.FS) {
			for _, s := range slots {
				hurt(fsys, s)
			}
		}
	}
	flip := func(fsys *simfile.FS, slot int64) { ok(fsys.FlipBit("binlog/"+SyncedMark, slot*sectorSize+50, 1)) }
	bad := func(fsys *simfile.FS, slot int64) { ok(fsys.BadSector("binlog/"+SyncedMark, slot*sectorSize)) }
	for what, c := range map[string]struct {
		hurt    func(fsys *simfile.FS)
		version uint8
		refused string
	}{
		"there":                  {func(*simfile.FS) {}, 0, "These bytes were durable"},
		"missing":                {remove, 0, "is missing"},
		"missing, of an old log": {remove, entry.LargeVersion - 1, ""},
		"empty": {func(fsys *simfile.FS) {
			remove(fsys)
			ok(must(fsys.Open("binlog/"+SyncedMark, file.OpenOptions{Create: true})).Close())
		}, 0, "is damaged"},
		"without the newest slot":   {slot(zero, 0), 0, "is damaged"},
		"zeros":                     {slot(zero, 0, 1), 0, "is damaged"},
		"damaged in the newest":     {slot(flip, 0), 0, "is damaged"},
		"damaged":                   {slot(flip, 0, 1), 0, "is damaged"},
		"unreadable":                {slot(bad, 0, 1), 0, "cannot be read"},
		"as it was made":            {forgetSide, 0, ""}, // a loss of power may leave it so
		"damaged, but power is out": {func(fsys *simfile.FS) { forgetSide(fsys); flip(fsys, 1) }, 0, "is damaged"},
	} {
		for _, torn := range []bool{true, false} {
			simulate(t, 1, func(s *simenv.Sim) {
				fsys := simfile.New(s, 1)
				opt := options(fsys, s)
				opt.Preallocate = 1 << 20
				l := must(Create(opt, Start{Version: c.version}))
				mk := maker{term: 1}
				for range 3 {
					ok(l.Append([]Entry{mk.next(1, 700, 0)}))
					ok(l.Sync())
				}
				at, end := must(l.Position(3)), l.tail.offset
				assert(l.side.sequence%2 == 0, "the newest slot is the first")
				opt.FS = fsys.KillImage()
				fsys = opt.FS.(*simfile.FS)
				name := "binlog/" + FileName(at.File)
				if torn {
					f := must(fsys.Open(name, file.OpenOptions{}))
					must(f.WriteAt(make([]byte, end-end/sectorSize*sectorSize), end/sectorSize*sectorSize))
					ok(f.Close())
				}
				c.hurt(fsys)
				if c.refused == "" || !torn {
					l := must(Open(opt))
					assert((l.TornEnd() != nil) == torn, "%s: %v", what, l.TornEnd())
					ok(l.Close())
					l = must(Open(opt))
					assert(l.TornEnd() == nil && l.side.lost == "", "%s, and once more: %+v", what, l.side)
					ok(l.Close())
					return
				}
				before := must(file.ReadWhole(fsys, name, 1<<21))
				for range 2 {
					_, err := Open(opt)
					var damage *CorruptError
					assert(errors.As(err, &damage) && damage.Offset == at.Offset && damage.Index == 3 && strings.Contains(err.Error(), c.refused) &&
						damage.Doubt == (what != "there"), "%s: %v", what, err)
				}
				assert(string(before) == string(must(file.ReadWhole(fsys, name, 1<<21))), "%s: the file is another one", what)
				opt.Salvage = true
				l = must(Open(opt))
				assert(l.LastIndex() == 2 && l.Err() != nil, "%s: salvaged up to %d", what, l.LastIndex())
				_ = l.Close()
			})
		}
	}
}

// The side mark is there after every loss of power, with both slots, from the moment on that the log is there.
func TestSideMarkOutlivesPower(t *testing.T) {
	eachSeed(t, 40, func(s *simenv.Sim, seed uint64) {
		m := newModel(s, seed)
		fsys := simfile.New(s, seed)
		for range 10 {
			fsys, _ = m.live(fsys, 1+int64(m.rng.IntN(60)), 100)
			fsys = fsys.CrashImage()
			numbers, err := list(&Options{FS: fsys, Dir: "binlog"})
			if err != nil || len(numbers) == 0 {
				continue
			}
			side := must(openSide(&Options{FS: fsys, Dir: "binlog", Group: testGroup}))
			assert(side.lost == "", "the mark %s", side.lost)
			ok(side.f.Close())
		}
	})
}

// zero makes a slot of the side mark zeros.
func zero(fsys *simfile.FS, slot int64) {
	f := must(fsys.Open("binlog/"+SyncedMark, file.OpenOptions{}))
	must(f.WriteAt(make([]byte, sectorSize), slot*sectorSize))
	ok(f.Close())
}

// What a loss of power leaves of a group lacks whole sectors, or the file's end. Anything else is
// damage, unless the file is a copy that was made while a node wrote to it.
func TestTornShapes(t *testing.T) {
	const small, large = 1500, directSize + 1000
	for _, c := range []struct {
		what     string
		size     int
		from, to int64 // zeros, from the record's beginning on; to a sector's end if not 0
		cut      int64 // the file ends here instead, from the record's beginning on
		torn     bool
		copied   bool
	}{
		{"the first sector", small, 0, 1, 0, true, false},
		{"a sector in the middle", small, 700, 701, 0, true, false},
		{"the last sector", small, small, small + 1, 0, true, false},
		{"everything behind the first sector", small, 500, 4000, 0, true, false},
		{"the end of the file", small, 0, 0, 800, true, false},
		{"the file ends in the header", small, 0, 0, 10, true, false},
		{"the data's beginning, written apart", large, recordHeader, recordHeader + 1, 0, true, false},
		{"the data's beginning, written together", small, recordHeader, recordHeader + 1, 0, false, false},
		{"the end of a sector", small, 800, 801, 0, false, false},
		{"the end of a sector and all behind it", small, 800, 4000, 0, true, false},
		{"all behind a place in the last sector", small, small + 20, 4000, 0, false, false},
		{"the same in a copy", small, small + 20, 4000, 0, true, true},
		{"the header's end and all behind it, in a copy", small, 10, 4000, 0, true, true},
	} {
		simulate(t, 1, func(s *simenv.Sim) {
			fsys := simfile.New(s, 1)
			opt := options(fsys, s)
			opt.Preallocate, opt.Copied = 1<<20, c.copied
			l := must(Create(opt, Start{}))
			mk := maker{term: 1}
			ok(l.Append([]Entry{mk.next(1, 100, 0)}))
			ok(l.Sync())
			at := l.tail.offset
			ok(l.Append([]Entry{mk.next(1, c.size, 0)}))
			fsys.SyncAll()
			fsys = fsys.CrashImage()
			forgetSide(fsys)
			f := must(fsys.Open("binlog/binlog.000001", file.OpenOptions{}))
			if c.cut != 0 {
				ok(f.Truncate(at + c.cut))
			} else {
				from, to := at+c.from, (at+c.to+sectorSize-1)/sectorSize*sectorSize
				if start := from / sectorSize * sectorSize; c.torn && !c.copied && c.size == small && c.from > 0 && c.to < 4000 {
					from = max(start, at)
				}
				must(f.WriteAt(make([]byte, to-from), from))
			}
			ok(f.Close())
			opt.FS = fsys
			l, err := Open(opt)
			var damage *CorruptError
			if !c.torn {
				assert(errors.As(err, &damage) && damage.Offset == at && damage.Index == 2, "%s: %v", c.what, err)
				return
			}
			ok(err)
			torn := l.TornEnd()
			assert(torn != nil && torn.Offset == at && torn.Index == 2 && torn.Number == 1 && torn.Bytes > 0 && l.LastIndex() == 1 &&
				l.Stats().TornBytes == torn.Bytes, "%s: %v", c.what, torn)
			ok(l.Append([]Entry{{Index: 2, Term: 1}}))
			ok(l.Close())
			l = must(Open(opt))
			assert(l.TornEnd() == nil && l.LastIndex() == 2, "%s: %v", c.what, l.TornEnd())
			ok(l.Close())
		})
	}
}
