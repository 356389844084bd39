package log

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testGroup = [16]byte{1, 2, 3}

func options(fsys file.FS, e env.Env) Options {
	return Options{FS: fsys, Env: e, Group: testGroup, Preallocate: 16 << 10}
}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	ok(err)
	return v
}

func assert(cond bool, format string, args ...any) {
	if !cond {
		panic(fmt.Sprintf(format, args...))
	}
}

// simulate runs main in a simulation and names the seed if it fails.
func simulate(t *testing.T, seed uint64, main func(s *simenv.Sim)) uint64 {
	t.Helper()
	s := simenv.New(seed)
	s.StepLimit = 5_000_000
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d: %v", seed, r)
		}
	}()
	s.Run(func() { main(s) })
	return s.TraceHash()
}

// data makes the data of an entry with count transactions from first on and a body of
// n bytes.
func data(e entry.Envelope, n int) []byte {
	if e.Kind == 0 {
		e.Kind = entry.Mark
		if e.Count > 0 {
			e.Kind = entry.Transactions
		}
	}
	e.RawLength = uint32(n)
	b := make([]byte, entry.EnvelopeSize+n)
	e.Put(b)
	salt := e.First*31 + e.Term
	for i := range b[entry.EnvelopeSize:] {
		salt = salt*6364136223846793005 + 1442695040888963407
		b[entry.EnvelopeSize+i] = byte(salt >> 56)
	}
	return b
}

func sameEntries(a, b []Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Index != b[i].Index || a[i].Term != b[i].Term || a[i].Type != b[i].Type || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

// maker makes entries that follow each other.
type maker struct {
	index, term, number uint64
	version             uint8 // that an entry asks for that opens a file
}

func (m *maker) next(count uint32, size int, flags uint8) Entry {
	m.index++
	e := entry.Envelope{Flags: flags, Term: m.term, First: m.number, Count: count, Time: int64(m.index) * 1e6}
	if count > 0 {
		e.First = m.number + 1
	}
	if flags&entry.FlagRotate != 0 {
		e.FileVersion = m.version
	}
	m.number += uint64(count)
	return Entry{Index: m.index, Term: m.term, Data: data(e, max(size, entry.MinTxn*int(count)))}
}

func (m *maker) empty() Entry {
	m.index++
	return Entry{Index: m.index, Term: m.term}
}

func TestBasics(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := options(fsys, s)
		_, err := Open(opt)
		assert(errors.Is(err, ErrNoLog), "%v", err)
		l := must(Create(opt, Start{}))
		_, err = Create(opt, Start{})
		assert(errors.Is(err, ErrExists), "%v", err)
		m := maker{term: 1}
		all := []Entry{m.empty()}
		for i := range 200 {
			var flags uint8
			if i%50 == 49 {
				flags = entry.FlagRotate
			}
			if i == 120 {
				m.term = 3
			}
			all = append(all, m.next(uint32(i%3), i*i%3000, flags))
		}
		ok(l.Append(all[:100]))
		ok(l.Sync())
		ok(l.Append(all[100:]))
		assert(l.SyncedIndex() >= 100 && l.LastIndex() == 201, "%d", l.LastIndex())
		ok(l.Sync())
		check := func(l *Log) {
			got := must(l.Read(1, 202, 1<<30))
			for len(got) < len(all) {
				got = append(got, must(l.Read(uint64(len(got))+1, 202, 1<<30))...)
			}
			assert(sameEntries(got, all), "entries differ")
			number := uint64(0)
			for _, e := range all {
				if len(e.Data) > 0 {
					env, _, err := entry.Parse(e.Data)
					ok(err)
					for n := number + 1; n <= env.Last(); n++ {
						assert(must(l.IndexOf(n)) == e.Index, "index of %d", n)
					}
					number = env.Last()
				}
				assert(must(l.Term(e.Index)) == e.Term, "term of %d", e.Index)
				assert(must(l.Number(e.Index)) == number, "number of %d", e.Index)
				pos := must(l.Position(e.Index))
				assert(must(l.Find(pos)) == e.Index, "find %v", pos)
			}
		}
		check(l)
		ok(l.Close())
		l = must(Open(opt))
		check(l)
		ok(l.Close())
		opt.Cache = -1
		l = must(Open(opt))
		check(l)
		assert(len(l.Files()) == 5, "%v", l.Files())
		ok(l.Close())
		l = must(Open(options(fsys.CrashImage(), s)))
		check(l)
		ok(l.Append([]Entry{{Index: 60, Term: 4}}))
		all = append(all[:59:59], Entry{Index: 60, Term: 4})
		assert(l.LastIndex() == 60 && len(l.Files()) == 2, "%d", l.LastIndex())
		got := must(l.Read(1, 61, 1<<30))
		assert(sameEntries(got, all[:len(got)]), "entries differ")
		ok(l.Close())
	})
}

// A reader that began before entries were taken back leaves no place behind that may lie in the middle of what was
// written there since.
func TestReaderBesideTruncation(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		opt := options(simfile.New(s, 1), s)
		opt.Cache = -1
		l := must(Create(opt, firstFile))
		m := maker{term: 1}
		for range 40 {
			ok(l.Append([]Entry{m.next(1, 4000, 0)}))
		}
		ok(l.Sync())
		l.mu.RLock()
		taken, seg := l.taken, *l.files[0]
		l.mu.RUnlock()
		f := must(l.fs.Open(l.path(seg.name()), file.OpenOptions{ReadOnly: true}))
		defer f.Close()
		was := must(l.seek(f, taken, &seg, func(p place) bool { return p.index > 30 }))
		m = maker{index: 9, term: 2, number: 9}
		for range 40 {
			ok(l.Append([]Entry{m.next(1, 4500, 0)}))
		}
		ok(l.Sync())
		l.remember(taken, was)
		l.learn(taken, &seg, &points{list: []place{was}})
		for lo := uint64(30); lo < 50; lo++ {
			if _, err := l.Read(lo, lo+1, 1); err != nil {
				t.Fatalf("entry %d: %v", lo, err)
			}
		}
		ok(l.Close())
	})
}

// The open file is agreed on when it can no longer be taken back, and its version with it.
func TestTail(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		l := must(Create(options(simfile.New(s, 1), s), firstFile))
		is := func(want Tail) {
			t.Helper()
			if got := l.Tail(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		is(Tail{Size: headerSize, Version: 1, Agreed: true})
		m := maker{term: 1, version: 2}
		ok(l.Append([]Entry{m.next(1, 10, 0), m.next(1, 10, entry.FlagRotate)}))
		size := int64(headerSize + recordHeader + entry.EnvelopeSize + 10)
		is(Tail{Last: 2, Size: size, Version: 2})
		ok(l.Sync())
		l.SetCommitted(1)
		is(Tail{Last: 2, Size: size, Version: 2})
		ok(l.Append([]Entry{{Index: 2, Term: 2}}))
		is(Tail{Last: 2, Size: size + recordHeader, Version: 1, Agreed: true})
		m = maker{index: 2, term: 2, number: 1, version: 2}
		ok(l.Append([]Entry{m.next(1, 10, entry.FlagRotate)}))
		ok(l.Sync())
		l.SetCommitted(3)
		is(Tail{Last: 3, Size: size, Version: 2, Agreed: true})
		ok(l.Close())
	})
}
