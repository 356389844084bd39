package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

type entry struct{ key, value []byte }

// drain reads all entries and compares them with what went in.
func drain(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Sorter, want []entry) {
	t.Helper()
	sort.SliceStable(want, func(i, j int) bool { return bytes.Compare(want[i].key, want[j].key) < 0 })
	var got []entry
	for {
		k, v, ok, err := s.Next()
		if err != nil {
			t.Fatalf("%v", err)
		}
		if !ok {
			break
		}
		got = append(got, entry{bytes.Clone(k), bytes.Clone(v)})
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	// Equal keys come in any order: compare as sets of values.
	for i := 0; i < len(want); {
		j := i
		values := map[string]int{}
		for ; j < len(want) && bytes.Equal(want[j].key, want[i].key); j++ {
			values[string(want[j].value)]++
		}
		for n := i; n < j; n++ {
			if !bytes.Equal(got[n].key, want[n].key) {
				t.Fatalf("entry %d has key %x, want %x", n, got[n].key, want[n].key)
			}
			values[string(got[n].value)]--
		}
		for v, n := range values {
			if n != 0 {
				t.Fatalf("value %x of key %x: %d too few", v, want[i].key, n)
			}
		}
		i = j
	}
}

func fill(t testing.TB, s *Sorter, n int, seed uint64) []entry {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var want []entry
	for range n {
		e := entry{make([]byte, r.IntN(40)), make([]byte, r.IntN(30))}
		for _, b := range [][]byte{e.key, e.value} {
			for i := range b {
				b[i] = byte(r.IntN(3))
			}
		}
		if err := s.Add(e.key, e.value); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	return want
}

func TestInMemory(t *testing.T) {
	s := New(Options{FS: file.OS(t.TempDir()), Env: env.Real(), Dir: "tmp"})
	want := fill(t, s, 5000, 1)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	drain(t, s, want)
	if st := s.Stats(); st.Runs != 0 || st.Entries != 5000 {
		t.Errorf("%+v", st)
	}
	if err := s.Add(nil, nil); err == nil {
		t.Error("entry taken after Finish")
	}
}

func TestRunsAndPasses(t *testing.T) {
	fsys := file.OS(t.TempDir())
	s := New(Options{FS: fsys, Env: env.Real(), Dir: "a/tmp", Memory: 1})
	want := fill(t, s, 120000, 2)
	if names, err := fsys.List("a/tmp"); err != nil || len(names) != 0 {
		t.Errorf("names in the directory: %q, %v", names, err)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	drain(t, s, want)
	if st := s.Stats(); st.Runs < 20 || st.Merges < 2 {
		t.Errorf("%+v: want several passes", st)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLargeEntries(t *testing.T) {
	s := New(Options{FS: file.OS(t.TempDir()), Env: env.Real(), Dir: ".", Memory: 1})
	defer s.Close()
	var want []entry
	for i := range 100 {
		e := entry{binary.BigEndian.AppendUint32(nil, uint32(i*37%100)), make([]byte, MaxEntry-4-i%2)}
		if err := s.Add(e.key, e.value); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	}
	if err := s.Add(nil, make([]byte, MaxEntry+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	drain(t, s, want)
}

func TestProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{FS: file.OS(dir), Env: env.Real(), Dir: "tmp", Memory: 1})
		defer s.Close()
		var want []entry
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			e := entry{
				rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "key"),
				bytes.Repeat([]byte{rapid.Byte().Draw(t, "value")}, rapid.IntRange(0, MaxEntry-12).Draw(t, "size")),
			}
			if err := s.Add(e.key, e.value); err != nil {
				t.Fatalf("%v", err)
			}
			want = append(want, e)
		}
		if err := s.Finish(); err != nil {
			t.Fatalf("%v", err)
		}
		drain(t, s, want)
	})
}

// A full disk and failing reads are errors; nothing is left behind.
func TestFaults(t *testing.T) {
	e := simenv.New(7)
	e.Run(func() {
		fsys := simfile.New(e, 7)
		fsys.SetCapacity(300 << 10)
		s := New(Options{FS: fsys, Env: e, Dir: "tmp", Memory: 1})
		var err error
		for i := 0; err == nil && i < 1<<20; i++ {
			err = s.Add(binary.BigEndian.AppendUint32(nil, uint32(-i)), make([]byte, 100))
		}
		if !errors.Is(err, file.ErrNoSpace) {
			t.Errorf("a full disk gave %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if names, err := fsys.List("tmp"); err != nil || len(names) != 0 {
			t.Errorf("left behind: %q, %v", names, err)
		}
	})
}

// Damaged blocks are errors, whatever the damage is.
func FuzzRunReader(f *testing.F) {
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 7, 7, 7}, uint32(3))
	fsys := file.OS(f.TempDir())
	rf, err := createRunFile(Options{FS: fsys, Env: env.Real(), Dir: "tmp"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, fix uint32) {
		if len(b) > 4096 {
			return
		}
		if len(b) > chunkHeader && fix%2 == 0 { // make the first block's checksum good
			binary.LittleEndian.PutUint32(b, uint32(len(b)-chunkHeader))
			binary.LittleEndian.PutUint32(b[4:], checksum(0, b[chunkHeader:]))
		}
		if len(b) > 0 {
			if _, err := rf.f.WriteAt(b, 0); err != nil {
				t.Fatal(err)
			}
		}
		r := runReader{f: rf, end: int64(len(b)), block: make([]byte, 4096)}
		for {
			ok, err := r.advance()
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if !ok {
				return
			}
		}
	})
}

func BenchmarkSort(b *testing.B) {
	for _, bench := range []struct {
		name   string
		memory int64
	}{{"memory", 1 << 30}, {"runs", 4 << 20}} {
		b.Run(bench.name, func(b *testing.B) {
			fsys := file.OS(b.TempDir())
			for b.Loop() {
				s := New(Options{FS: fsys, Env: env.Real(), Dir: "tmp", Memory: bench.memory})
				r := rand.New(rand.NewPCG(1, 0))
				var key [16]byte
				for range 500000 {
					binary.BigEndian.PutUint64(key[:], r.Uint64())
					if err := s.Add(key[:], key[:8]); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Finish(); err != nil {
					b.Fatal(err)
				}
				for ok := true; ok; {
					var err error
					if _, _, ok, err = s.Next(); err != nil {
						b.Fatal(err)
					}
				}
				s.Close()
			}
			b.ReportMetric(500000*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}
