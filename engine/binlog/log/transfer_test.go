package log

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// transfer copies the donor's files from number on, up to its commit index, in pieces, and
// goes on where it was cut.
func transfer(donor *Log, opt Options, from uint64) error {
	im, err := NewImport(opt)
	if err != nil {
		return err
	}
	defer im.Close()
	last, _ := im.Last()
	for n := max(from, last+1); ; n++ {
		x, err := donor.Export(n)
		if errors.Is(err, ErrUnavailable) {
			return nil
		}
		ok(err)
		err = receive(im, x)
		ok(x.Close())
		if err != nil || !x.Closed {
			return err
		}
	}
}

func receive(im *Import, x *Export) error {
	offset, err := im.Begin(x.Number, x.Size)
	if err != nil {
		return err
	}
	b := make([]byte, 1000)
	for offset < x.Size {
		n, err := x.ReadAt(b, offset)
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := im.Write(b[:n]); err != nil {
			return err
		}
		offset += int64(n)
	}
	return im.Finish()
}

// donor makes a log of four files, all but the last entries committed.
func donor(s *simenv.Sim, seed uint64) (*Log, []Entry) {
	opt := options(simfile.New(s, seed), s)
	opt.Dir = "donor"
	l := must(Create(opt, firstFile))
	mk := maker{term: 1}
	var all []Entry
	for i := range 40 {
		var flags uint8
		if i%10 == 9 {
			flags = entry.FlagRotate
			mk.term++
			mk.version = uint8(min(i/10, entry.FileVersion)) // 0 stands for the first
		}
		all = append(all, mk.next(uint32(i%3), i*53%900, flags))
	}
	ok(l.Append(all[:20]))
	ok(l.Sync())
	ok(l.Append(all[20:]))
	ok(l.Sync())
	l.SetCommitted(37)
	return l, all
}

// A member that takes over files from the middle on has the group's files, byte for byte,
// and goes on like the others.
func TestImport(t *testing.T) {
	for k := int64(1); ; k++ {
		crashed := false
		simulate(t, uint64(k), func(s *simenv.Sim) {
			from, all := donor(s, 1)
			fsys := simfile.New(s, uint64(k))
			fsys.CrashAt(k)
			err := transfer(from, options(fsys, s), 2)
			fsys.CrashAt(0)
			crashed = fsys.Crashed()
			assert(err == nil || errors.Is(err, file.ErrCrashed), "%v", err)
			for tries := 0; err != nil; tries++ {
				if tries%2 == 0 {
					fsys = fsys.CrashImage()
				}
				err = transfer(from, options(fsys, s), 2)
				var damage *CorruptError // of what was received before the crash
				assert(err == nil || errors.As(err, &damage) && tries < 5, "%v", err)
			}
			to := must(Open(options(fsys, s)))
			assert(to.FirstIndex() == 10 && to.LastIndex() == 37, "%d to %d", to.FirstIndex(), to.LastIndex())
			ok(to.Append(all[37:]))
			rotate := maker{index: 40, term: 9, number: from.LastNumber()}
			last := rotate.next(1, 5, entry.FlagRotate)
			for _, l := range []*Log{from, to} {
				ok(l.Append([]Entry{last}))
				ok(l.Sync())
				l.SetCommitted(41)
			}
			for n := uint64(2); n <= 5; n++ {
				assert(must(from.HashFile(n)) == must(to.HashFile(n)), "file %d differs", n)
				ok(to.VerifyFile(n))
			}
			for i, f := range to.Files() {
				assert(f.Version == from.Files()[i+1].Version && to.Tail().Version == entry.FileVersion, "%+v", f)
			}
			for i := uint64(9); i <= 41; i++ {
				assert(must(from.Term(i)) == must(to.Term(i)) && must(from.Number(i)) == must(to.Number(i)), "entry %d", i)
			}
			ok(from.Close())
			ok(to.Close())
		})
		if !crashed {
			return
		}
	}
}

// What comes from a peer is checked before it gets a name.
func TestImportRefuses(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		from, _ := donor(s, 1)
		opt := options(simfile.New(s, 2), s)
		bytesOf := func(n uint64) []byte {
			x := must(from.Export(n))
			b := make([]byte, x.Size)
			must(x.ReadAt(b, 0))
			ok(x.Close())
			return b
		}
		try := func(n uint64, b []byte) error {
			im := must(NewImport(opt))
			defer im.Close()
			if _, err := im.Begin(n, int64(len(b))); err != nil {
				return err
			}
			_, err := im.Write(b)
			ok(err)
			return im.Finish()
		}
		var damage *CorruptError
		good := bytesOf(2)
		for _, at := range []int{0, 9, 40, 300, markOffset + 3, 2000, headerSize, headerSize + 5, len(good) - 1} {
			b := bytes.Clone(good)
			b[at] ^= 8
			err := try(2, b)
			assert(errors.As(err, &damage) || errors.Is(err, ErrNewerFormat), "byte %d: %v", at, err)
		}
		assert(errors.As(try(2, good[:len(good)-3]), &damage), "a record that is cut off")
		assert(errors.As(try(3, good), &damage), "a file under another number")
		other := opt
		other.Group[0]++
		im := must(NewImport(other))
		must(im.Begin(2, int64(len(good))))
		must(im.Write(good))
		assert(errors.Is(im.Finish(), ErrWrongGroup), "a foreign file")
		old := opt
		old.Newest, old.Dir = entry.FirstVersion, "old"
		im = must(NewImport(old))
		newer := bytesOf(4)
		must(im.Begin(4, int64(len(newer))))
		must(im.Write(newer))
		assert(errors.Is(im.Finish(), ErrNewerFormat), "a file of a newer format")
		im.Close()
		ok(try(2, good))
		assert(errors.Is(try(4, bytesOf(4)), ErrMissingFile), "a gap")
		assert(errors.As(try(3, good), &damage), "a file that does not follow")
		ok(try(3, bytesOf(3)))
		im = must(NewImport(opt))
		_, err := im.Write([]byte{1})
		assert(err != nil, "bytes of no file")
		must(im.Begin(4, 5000))
		_, err = im.Write(make([]byte, 5001))
		assert(err != nil, "more bytes than announced")
		assert(im.Finish() != nil, "less bytes than announced")
		im.Close()
		ok(must(Open(opt)).Close()) // without what was not finished
		ok(Destroy(opt))
		_, err = Open(opt)
		assert(errors.Is(err, ErrNoLog), "%v", err)
		ok(from.Close())
	})
}

// What a failed sync may have lost is not taken for received: the file is received anew.
func TestImportAfterFailedSync(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		from, _ := donor(s, 1)
		fsys := simfile.New(s, 2)
		in := fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "*" + partSuffix, Times: 1, Err: syscall.EIO})
		err := transfer(from, options(fsys, s), 2)
		assert(errors.Is(err, syscall.EIO) && in.Hits() == 1, "%v", err)
		im := must(NewImport(options(fsys, s)))
		assert(must(im.Begin(2, 1<<20)) == 0, "the file goes on behind what was lost")
		im.Close()
		ok(transfer(from, options(fsys, s), 2))
		image := fsys.CrashImage()
		to := must(Open(options(image, s)))
		for n := uint64(2); n <= 4; n++ {
			ok(to.VerifyFile(n))
		}
		ok(to.Close())
		ok(from.Close())
	})
}

// The head of the open file is a prefix of the file, without marks, and ends at the commit
// index.
func TestExportOpenFile(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		from, all := donor(s, 1)
		for committed := uint64(37); committed <= 40; committed++ {
			from.SetCommitted(committed)
			n := uint64(4)
			if committed >= 40 {
				n = 5
			}
			x := must(from.Export(n))
			want := render(all[:committed], nil)
			b := make([]byte, x.Size)
			read := must(x.ReadAt(b, 0))
			if committed == 38 {
				p := make([]byte, 100) // across the edges of the marks
				for _, at := range []int64{500, 1000, 1500} {
					must(x.ReadAt(p, at))
					assert(bytes.Equal(p, b[at:at+100]), "at %d", at)
				}
			}
			assert(!x.Closed && must(from.Export(n-1)).Closed, "closed")
			assert(read == len(b) && bytes.Equal(b, want[n-1].bytes), "committed %d: %d bytes, want %d", committed, len(b), len(want[n-1].bytes))
			_, err := x.ReadAt(b, 1)
			assert(err == io.EOF, "%v", err)
			ok(x.Close())
		}
		_, err := from.Export(99)
		assert(errors.Is(err, ErrUnavailable), "%v", err)
		must(from.Purge(Retention{Keep: 15, MaxBytes: 1}))
		_, err = from.Export(1)
		assert(errors.Is(err, ErrCompacted), "%v", err)
		ok(from.Close())
	})
}

// Reset and Create in the middle of a file: the headers tell of the file before, so that
// the second file from there on is the group's.
func TestReset(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		from, all := donor(s, 1)
		to := must(Create(options(simfile.New(s, 3), s), Start{}))
		ok(to.Append(all[:5]))
		ok(to.Reset(must(from.StartAt(24))))
		_, err := to.Read(5, 6, 1)
		assert(errors.Is(err, ErrCompacted), "%v", err)
		ok(to.Append(all[24:]))
		mk := maker{index: 40, term: 9, number: from.LastNumber()}
		last := mk.next(1, 5, entry.FlagRotate)
		for _, l := range []*Log{from, to} {
			ok(l.Append([]Entry{last}))
			ok(l.Sync())
			l.SetCommitted(41)
		}
		assert(must(from.HashFile(4)) != must(to.HashFile(4)), "file 4 is the same")
		assert(must(from.HashFile(5)) == must(to.HashFile(5)), "file 5 differs")
		got := must(to.Read(25, 41, MaxRead))
		assert(sameEntries(got, all[24:]), "entries differ")
		ok(from.Close())
		ok(to.Close())
	})
}
