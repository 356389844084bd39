package txn

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWriteSet compares the set with a map, through truncations.
func TestWriteSet(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := WriteSet{max: 1 << 20}
		type saved struct {
			at   setMark
			keys []uint64
		}
		var want []uint64
		var marks []saved
		domain := 1 + rng.IntN(2000)
		for range 3000 {
			switch {
			case rng.IntN(100) == 0:
				marks = append(marks, saved{s.mark(), slices.Clone(want)})
			case len(marks) > 0 && rng.IntN(150) == 0:
				i := rng.IntN(len(marks))
				s.truncate(marks[i].at)
				want = slices.Clone(marks[i].keys)
				marks = marks[:i]
			case rng.IntN(1500) == 0:
				s.reset()
				want, marks = nil, nil
			default:
				h := uint64(rng.IntN(domain)) * 0x9e3779b97f4a7c15
				s.add(h)
				if !slices.Contains(want, h) {
					want = append(want, h)
				}
			}
			if !slices.Equal(s.Keys(), want) {
				t.Fatalf("seed %d: %d hashes, want %d", seed, len(s.Keys()), len(want))
			}
		}
	}
}

// TestWriteSetLimit: beyond the limit a transaction counts as one that writes
// everything, unless it goes back below.
func TestWriteSetLimit(t *testing.T) {
	s := WriteSet{max: 10}
	for i := range uint64(7) {
		s.add(i)
		s.add(i)
	}
	for i := range uint64(3) {
		s.refer(i)
		s.refer(i)
	}
	m := s.mark()
	if s.Everything() || len(s.Keys()) != 7 || len(s.References()) != 3 {
		t.Fatalf("%d keys, %d references, everything: %v", len(s.Keys()), len(s.References()), s.Everything())
	}
	s.add(3) // is there
	s.refer(100)
	s.add(100)
	if !s.Everything() || len(s.Keys()) != 7 || len(s.References()) != 3 {
		t.Fatal("the limit is not kept")
	}
	if s.truncate(m); s.Everything() {
		t.Error("everything, after a rollback")
	}
	s.add(200)
	if s.reset(); s.Everything() || len(s.Keys())+len(s.References()) != 0 {
		t.Error("not empty after reset")
	}
}

// TestWriteSetMemory: the steady state takes no memory.
func TestWriteSetMemory(t *testing.T) {
	s := WriteSet{max: 1 << 20}
	run := func() {
		for i := range uint64(500) {
			s.add(i * 77777)
			s.refer(i)
		}
		s.reset()
	}
	run()
	if n := testing.AllocsPerRun(20, run); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
