package log

import (
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
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip bool) {
		if flip && int(at) < len(b) {
			b[at] ^= 1
		}
		if len(b) >= headerSize && at%3 == 0 {
			sum := headerChecksum(b)
			b[headerCRC], b[headerCRC+1], b[headerCRC+2], b[headerCRC+3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		fsys := simfile.New(env.Real(), 1)
		ok(fsys.MkdirAll("binlog"))
		h := must(fsys.Open("binlog/binlog.000001", file.OpenOptions{Create: true}))
		must(h.WriteAt(b, 0))
		ok(h.Close())
		opt := options(fsys, env.Real())
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
		if err := l.VerifyFile(1); err != nil {
			t.Fatal(err)
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
	f.Add(data(entry.Envelope{Flags: entry.FlagRotate, FileVersion: 2}, 0), uint64(0))
	f.Add(data(entry.Envelope{Kind: entry.Large, Count: 3}, 0), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, term uint64) {
		if len(data) == 0 {
			return
		}
		c, problem := inspect(Normal, term, len(data), data[:min(len(data), entry.EnvelopeSize)])
		e, _, err := entry.Parse(data)
		if err == nil && problem != "" {
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
