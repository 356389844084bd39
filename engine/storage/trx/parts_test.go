package trx_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/storage/trx"
)

// TestPartsOfTheLists opens and closes snapshots of transactions in all parts and
// compares what the system says of them with a model.
func TestPartsOfTheLists(t *testing.T) {
	s := open(t)
	rng := rand.New(rand.NewPCG(5, 5))
	var running []*trx.Trx
	var csns []uint64
	for range 3000 {
		switch n := len(running); {
		case rng.IntN(5) == 0:
			s.set(t, rng.IntN(ownRow), 1)
		case n == 0 || n < 40 && rng.IntN(2) == 0:
			r := s.sys.Begin(trx.Options{Part: rng.Uint32N(20)})
			running, csns = append(running, r), append(csns, r.Snapshot().CSN)
		default:
			i := rng.IntN(n)
			s.sys.End(running[i])
			running[i], csns[i] = running[n-1], csns[n-1]
			running, csns = running[:n-1], csns[:n-1]
		}
		want, seen := s.sys.LastCommitted(), map[*trx.Trx]bool{}
		for _, csn := range csns {
			want = min(want, csn)
		}
		s.sys.Running(func(r *trx.Trx) { seen[r] = true })
		if got := s.sys.OldestSnapshot(); got != want {
			t.Fatalf("oldest snapshot %d, want %d", got, want)
		}
		if n := len(running); s.sys.Count() != n || s.sys.OpenSnapshots() != n || len(seen) != n {
			t.Fatalf("%d transactions, %d snapshots, %d running; want %d", s.sys.Count(), s.sys.OpenSnapshots(), len(seen), n)
		}
	}
}

// TestPurgeStaysBelowSnapshots takes snapshots in all parts while the purge limit
// moves: no open snapshot is ever below it.
func TestPurgeStaysBelowSnapshots(t *testing.T) {
	s := open(t)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for part := range uint32(4) {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				r := s.sys.Begin(trx.Options{Part: part})
				csn := r.Snapshot().CSN
				if limit, err := s.sys.PurgeLimit(); err != nil || limit > csn {
					t.Errorf("purge limit %d with a snapshot at %d: %v", limit, csn, err)
				}
				if oldest := s.sys.OldestSnapshot(); oldest > csn {
					t.Errorf("oldest snapshot %d with one at %d", oldest, csn)
				}
				s.sys.End(r)
			}
		}()
	}
	for i := range 300 {
		s.set(t, i%ownRow, 1)
	}
	close(done)
	readers.Wait()
}
