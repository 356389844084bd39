package log

import (
	"bytes"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// sample is a good file, with a mark.
func sample() []byte {
	mk := maker{term: 1}
	entries := []Entry{mk.empty(), mk.next(2, 30, 0), mk.next(0, 0, 0)}
	mk.term = 4
	entries = append(entries, mk.next(1, 100, 0), Entry{Index: 5, Term: 4, Type: ConfChangeV2, Data: []byte{1}})
	b := render(entries, nil)[0].bytes
	m := mark{sequence: 3, offset: headerSize + recordHeader, index: 2}
	m.encode(b[m.at():], 1)
	return b
}

// sampleLarge is the file of a large transaction, as the first one of a log that was purged.
func sampleLarge() []byte {
	all := bodies{}
	mk := maker{term: 1}
	b := render([]Entry{mk.large(all, 2, 200)}, all)[1].bytes
	m := mark{sequence: 1, offset: int64(len(b)), index: 2}
	m.encode(b[m.at():], 2)
	return b
}

// A file of any bytes is a log, or refused with an error that says why, and what Open takes
// for good stays good.
func FuzzOpen(f *testing.F) {
	good := sample()
	f.Add(good, uint16(0), false)
	f.Add(good[:len(good)-20], uint16(0), false)
	f.Add(good, uint16(headerSize+30), true)
	f.Add(good, uint16(530), true)
	f.Add(good, uint16(40), true)
	f.Add([]byte{}, uint16(0), false)
	large := sampleLarge()
	for _, at := range []uint16{0, 40, 530, 1030, headerSize + 1, headerSize + 60, headerSize + 140, 8192 + 7} {
		f.Add(large, at, at > 0)
	}
	f.Add(large[:len(large)-1], uint16(0), false)
	f.Add(append(large[:len(large):len(large)], 0), uint16(0), false)
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip bool) {
		b = bytes.Clone(b)
		if flip && int(at) < len(b) {
			b[at] ^= 1
		}
		if len(b) >= headerSize && at%3 == 0 {
			sum := headerChecksum(b)
			b[headerCRC], b[headerCRC+1], b[headerCRC+2], b[headerCRC+3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		fsys := simfile.New(env.Real(), 1)
		ok(fsys.MkdirAll("binlog"))
		number := uint64(1)
		if len(b) >= headerSize && b[32] == 2 {
			number = 2
		}
		h := must(fsys.Open("binlog/"+FileName(number), file.OpenOptions{Create: true}))
		must(h.WriteAt(b, 0))
		ok(h.Close())
		opt := options(fsys, env.Real())
		opt.Newest = entry.LargeVersion
		l, err := Open(opt)
		var damage *CorruptError
		if err != nil {
			if !errors.As(err, &damage) && !errors.Is(err, ErrWrongGroup) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		first, last := l.FirstIndex(), l.LastIndex()
		for lo := first; lo <= last; {
			got, err := l.Read(lo, last+1, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			lo += uint64(len(got))
		}
		large := l.Files()[0].Large
		if err := l.VerifyFile(number); err != nil && !(large && errors.As(err, &damage)) {
			t.Fatal(err) // only a body is not read when the log is opened
		}
		ok(l.Append([]Entry{{Index: last + 1, Term: l.LastTerm()}}))
		ok(l.Close())
		l = must(Open(opt))
		if l.LastIndex() != last+1 {
			t.Fatalf("the log ends at %d, not %d", l.LastIndex(), last+1)
		}
		ok(l.Close())
	})
}

// inspect reads of an envelope what entry.Parse reads.
func FuzzInspect(f *testing.F) {
	f.Add(data(entry.Envelope{Count: 3, First: 4, Term: 2, Time: 9}, 20), uint64(2))
	f.Add(data(entry.Envelope{Count: 6, First: 4, Term: 2, Time: 9}, 20), uint64(2))
	f.Add(data(entry.Envelope{Flags: entry.FlagRotate, FileVersion: 2}, 0), uint64(0))
	f.Add(data(entry.Envelope{Kind: entry.Large, Count: 3}, 0), uint64(0))
	f.Add((&maker{term: 2}).large(bodies{}, 1, 10).Data, uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, term uint64) {
		if len(data) == 0 {
			return
		}
		c, problem := inspect(Normal, term, len(data), data[:min(len(data), headSize)])
		e, stored, err := entry.Parse(data)
		if err == nil && e.Kind == entry.Large {
			l, lerr := entry.ParseLargeBody(stored)
			if problem == "" && (lerr != nil || *c.large != l) {
				t.Fatalf("%+v of %+v, %v", c.large, l, lerr)
			}
			if problem != "" && lerr == nil && l.Offset >= headerSize+recordHeader+uint32(len(data)) && l.Offset <= largeOffsetMax && l.Offset%largeAlign == 0 {
				t.Fatalf("a good description of a body: %s", problem)
			}
		} else if err == nil && c.large != nil {
			t.Fatal("a large transaction where there is none")
		}
		if err == nil && e.Kind != entry.Large && problem != "" {
			t.Fatalf("a good envelope: %s", problem)
		}
		if err != nil || problem != "" {
			return
		}
		count, first := e.Count, e.First
		if e.Term != term || count == 0 {
			count, first = 0, 0
		}
		if c.count == 0 {
			c.first = 0
		}
		if c.rotate != e.Rotate() || c.version != e.FileVersion || c.count != count || c.first != first || c.time != e.Time {
			t.Fatalf("%+v of %+v", c, e)
		}
	})
}

// TestInspectCount: an entry that names more transactions than it has room for is refused.
func TestInspectCount(t *testing.T) {
	for count, good := range map[uint32]bool{5: true, 6: false, 1<<32 - 10: false} {
		d := data(entry.Envelope{Count: count, First: 4, Term: 2, Time: 9}, 20)
		if _, problem := inspect(Normal, 2, len(d), d); good != (problem == "") {
			t.Errorf("%d transactions in 20 bytes: %q", count, problem)
		}
	}
}
