package log

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// More terms in a file than its successor's header can name: those before are looked up on
// disk, and a file that is opened again names the right ones.
func TestManyTerms(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		m := newModel(s, 1)
		l := must(m.start(fsys, options(fsys, s)))
		mk := maker{}
		var entries []Entry
		for range 2 * (maxTerms + 40) {
			mk.term++
			var flags uint8
			if mk.index == maxTerms+40 {
				flags = entry.FlagRotate
			}
			entries = append(entries, mk.next(1, 3, flags))
		}
		ok(m.put(l, 0, entries))
		ok(m.sync(l))
		ok(l.Close())
		l = must(m.start(fsys, options(fsys, s)))
		assert(l.files[0].cut && len(l.files[0].began) == maxTerms, "%d terms", len(l.files[0].began))
		assert(must(l.Term(1)) == 1 && must(l.Term(41)) == 41, "terms on disk")
		m.committed, l.committed = 0, 0
		// The second file goes, the first one is opened again and followed by another.
		back := maker{index: maxTerms + 20, number: maxTerms + 20, term: 1000}
		ok(m.put(l, maxTerms+20, []Entry{back.next(1, 3, 0), back.next(1, 3, entry.FlagRotate)}))
		ok(m.sync(l))
		ok(l.Close())
		ok(must(m.start(fsys, options(fsys, s))).Close())
	})
}

// The boundaries in memory are few, however long the file and many the files.
func TestPointsAreFew(t *testing.T) {
	var p points
	for i := range 3 * pointsMax {
		p.add(place{index: uint64(i), offset: headerSize + int64(i)*pointSpacing})
	}
	if len(p.list) > pointsMax || p.spacing != 4*pointSpacing {
		t.Errorf("%d points, %d bytes apart", len(p.list), p.spacing)
	}
	for i := 1; i < len(p.list); i++ {
		if p.list[i].offset < p.list[i-1].offset+p.spacing {
			t.Fatalf("points %d and %d are too close", i-1, i)
		}
	}
	simulate(t, 1, func(s *simenv.Sim) {
		opt := options(simfile.New(s, 1), s)
		opt.Cache = -1
		l := must(Create(opt, Start{}))
		mk := maker{term: 1}
		for range 3 * indexedMax {
			ok(l.Append([]Entry{mk.next(1, 2*pointSpacing, entry.FlagRotate), mk.next(1, 10, 0), mk.next(1, 10, 0)}))
		}
		check := func() {
			indexed := 0
			for _, s := range l.files[:len(l.files)-1] {
				indexed += min(1, len(s.points.list))
			}
			assert(indexed <= indexedMax && indexed > indexedMax/2, "%d files are indexed", indexed)
		}
		check()
		ok(l.Close())
		l = must(Open(opt))
		for i := mk.index; i > 0; i-- {
			assert(must(l.Number(i)) == i, "number of %d", i)
		}
		check()
		assert(len(l.windows) <= windowsMax, "%d windows", len(l.windows))
		ok(l.Close())
	})
}

// A long entry, longer than any buffer, and what a Read of it and around it returns.
func TestLongEntries(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		opt := options(simfile.New(s, 1), s)
		for _, opt.Cache = range []int64{0, -1, 3 << 20} {
			ok(Destroy(opt))
			l := must(Create(opt, Start{}))
			mk := maker{term: 1}
			var all []Entry
			for _, size := range []int{10, 3 << 20, 10, readChunk, 5, bufferSize - recordHeader - entry.EnvelopeSize, 2 << 20, 20} {
				all = append(all, mk.next(1, size, 0))
			}
			ok(l.Append(all))
			for range 2 {
				for lo := range all {
					for _, limit := range []uint64{0, 100, 1 << 20, 4 << 20, 1 << 62} {
						got := must(l.Read(uint64(lo)+1, uint64(len(all))+1, limit))
						size := 0
						for _, e := range got {
							size += RecordOverhead + len(e.Data)
						}
						assert(sameEntries(got, all[lo:][:len(got)]), "entries from %d on differ", lo+1)
						assert(len(got) == 1 || len(got) > 1 && uint64(size) <= limit, "%d entries of %d bytes, limit %d", len(got), size, limit)
						if next := lo + len(got); next < len(all) {
							size += RecordOverhead + len(all[next].Data)
						} else {
							size = 1 << 30
						}
						assert(uint64(size) > min(limit, MaxRead), "there was room for one more")
					}
				}
				ok(l.Close())
				l = must(Open(opt))
			}
			ok(l.Close())
		}
		l := must(Open(opt))
		long := Entry{Index: 9, Term: 1, Type: ConfChange, Data: make([]byte, MaxData+1)}
		assert(l.Append([]Entry{long}) != nil, "an entry above the limit passed")
		ok(l.Close())
	})
}

// The cache never holds more than its limit, counted in its own measure.
func TestCacheLimit(t *testing.T) {
	c := cache{limit: 10_000}
	next := uint64(5)
	for i := range 5000 {
		switch i % 97 {
		case 0:
			next -= min(next-1, uint64(i%50))
			c.truncate(next)
		case 50:
			c.purge(next - min(next, 3))
		}
		c.push(next, &recent{data: make([]byte, i*31%700), term: next})
		next++
		bytes := int64(0)
		for j := c.first; j < c.next; j++ {
			if r := c.at(j); r.term != j {
				t.Fatalf("entry %d is %d", j, r.term)
			}
			bytes += int64(len(c.at(j).data)) + recentSize
		}
		if bytes != c.bytes || bytes > c.limit || c.next != next || len(c.ring) > 256 {
			t.Fatalf("%d bytes, counted %d, next %d of %d, ring of %d", bytes, c.bytes, c.next, next, len(c.ring))
		}
	}
}

// An append and a sync allocate nothing in the steady state.
func TestAppendAllocates(t *testing.T) {
	opt := options(file.OS(t.TempDir()), env.Real())
	opt.Preallocate, opt.Cache = 1<<20, 100_000
	l := must(Create(opt, Start{}))
	mk := maker{term: 1}
	entries := make([]Entry, 8)
	var prepared []Entry
	for range 9000 {
		prepared = append(prepared, mk.next(1, 100, 0))
	}
	at := 0
	step := func() {
		copy(entries, prepared[at:])
		at += len(entries)
		ok(l.Append(entries))
	}
	for range 300 {
		step()
	}
	if n := testing.AllocsPerRun(500, step); n > 0.1 {
		t.Errorf("%v allocations for an append of %d entries", n, len(entries))
	}
	ok(l.Sync())
	s := l.Stats()
	if s.Entries != int64(at) || s.Syncs == 0 || s.Files != 1 || s.Bytes != s.FileBytes-headerSize || s.Cached == 0 || s.SyncMax == 0 || s.SyncTime < s.SyncMax {
		t.Errorf("%+v", s)
	}
	ok(l.Close())
}

// Reserved space is written with zeros before it is needed, in steps, and never beyond
// what is reserved.
func TestFill(t *testing.T) {
	fsys := file.OS(t.TempDir())
	opt := options(fsys, env.Real())
	opt.Preallocate = 3 * fillStep / 2
	l := must(Create(opt, Start{}))
	mk := maker{term: 1}
	steps := map[int64]bool{}
	for i := range 2000 {
		size := 300
		if i%500 == 400 {
			size = directSize + i // these are not filled up
		}
		ok(l.Append([]Entry{mk.next(1, size, 0)}))
		if l.filled > l.allocated || size == 300 && l.filled < l.tail.offset {
			t.Fatalf("entry %d ends at %d: filled up to %d of %d", i, l.tail.offset, l.filled, l.allocated)
		}
		steps[l.filled] = true
	}
	ok(l.Sync())
	if want := int(l.tail.offset / (fillStep / 2)); len(steps) < 10 || len(steps) > want {
		t.Errorf("%d times for %d bytes", len(steps), l.tail.offset)
	}
	rest := make([]byte, l.allocated-l.tail.offset)
	if _, err := l.f.ReadAt(rest, l.tail.offset); err != nil || len(bytes.Trim(rest, "\x00")) > 0 {
		t.Errorf("behind the end are %q, %v", bytes.Trim(rest, "\x00"), err)
	}
	ok(l.f.Close()) // as a killed process does
	l = must(Open(opt))
	if n := l.LastIndex(); n != 2000 {
		t.Errorf("%d entries are left", n)
	}
	ok(l.Append([]Entry{mk.next(1, 300, 0)}))
	ok(l.Close())
}

func ExampleFileName() {
	fmt.Println(FileName(7), FileName(1234567))
	fmt.Println(FileNumber("binlog.000007"))
	fmt.Println(FileNumber("binlog.7"))
	// Output:
	// binlog.000007 binlog.1234567
	// 7 true
	// 7 false
}
