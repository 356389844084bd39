package trx

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// TestIDTable compares the table of ids with a map, under random commits,
// rollbacks and moves of the horizon.
func TestIDTable(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var watermark atomic.Uint64
		var tab idTable
		first := uint64(1 + rng.IntN(3000))
		watermark.Store(1)
		tab.init(first, ^uint64(0), &watermark)
		model := map[uint64]uint64{}
		csn, horizon := uint64(50), uint64(0)
		for id := uint64(1); id < first; id += 1 + uint64(rng.IntN(700)) { // from before the start
			model[id] = 1 + uint64(rng.IntN(50))
			tab.recover(id, model[id])
		}
		var active []uint64
		for range 20_000 {
			switch n := rng.IntN(10); {
			case n < 5:
				tab.mu.Lock()
				id := tab.next
				tab.next++
				tab.add(id, &Trx{})
				tab.mu.Unlock()
				model[id] = activeMark
				active = append(active, id)
			case n < 9 && len(active) > 0:
				i := rng.IntN(min(len(active), 30)) // now and then one stays long
				if rng.IntN(2) == 0 {
					i = len(active) - 1
				}
				id := active[i]
				active = append(active[:i], active[i+1:]...)
				v := forgotten
				if rng.IntN(4) != 0 {
					csn++
					v = csn
				}
				model[id] = v
				tab.mu.Lock()
				tab.settle(id, v)
				tab.finish(id)
				tab.mu.Unlock()
			case rng.IntN(20) == 0:
				horizon += uint64(rng.Int64N(int64(csn-horizon) + 1))
				tab.advance(horizon)
			}
			id := 1 + rng.Uint64N(tab.next)
			want, got := model[id], tab.lookup(id)
			if got != want && (got > horizon || want > horizon) {
				t.Fatalf("seed %d: id %d gives %d, want %d, horizon %d", seed, id, got, want, horizon)
			}
			if id < watermark.Load() && want > horizon {
				t.Fatalf("seed %d: id %d, CSN %d, is below the watermark at horizon %d", seed, id, want, horizon)
			}
			if (tab.owner(id) != nil) != (want == activeMark) {
				t.Fatalf("seed %d: owner of %d, CSN %d", seed, id, want)
			}
		}
		for _, id := range active {
			tab.settle(id, forgotten)
			tab.finish(id)
		}
		tab.advance(csn)
		if watermark.Load() != tab.next {
			t.Fatalf("seed %d: watermark %d, next %d", seed, watermark.Load(), tab.next)
		}
		tab.sweep(csn)
		if len(tab.live) > 1 {
			t.Fatalf("seed %d: %d chunks are left", seed, len(tab.live))
		}
	}
}

// TestIDTableKeepsLittle: one old transaction keeps its chunk, not all after it.
func TestIDTableKeepsLittle(t *testing.T) {
	var watermark atomic.Uint64
	var tab idTable
	watermark.Store(1)
	tab.init(1, ^uint64(0), &watermark)
	for csn := range uint64(200_000) {
		tab.mu.Lock()
		id := tab.next
		tab.next++
		tab.add(id, nil)
		if id != 5 {
			tab.settle(id, csn)
			tab.finish(id)
		}
		tab.mu.Unlock()
		if csn%64 == 0 {
			tab.advance(csn)
		}
	}
	if len(tab.live) > 6 || watermark.Load() != 5 {
		t.Errorf("%d chunks, watermark %d", len(tab.live), watermark.Load())
	}
}

func FuzzSystemPage(f *testing.F) {
	p := make([]byte, 16384)
	f.Add(p[:300])
	f.Fuzz(func(t *testing.T, b []byte) {
		p := make([]byte, 16384)
		copy(p, b)
		if sp, err := decodeSystemPage(p); err == nil && sp.floor > sp.csn {
			t.Fatalf("%+v", sp)
		}
		copy(p[offMagic:], sysMagic)
		p[12] = 11
		le.PutUint32(p[offFormat:], 1)
		_, _ = decodeSystemPage(p)
	})
}
