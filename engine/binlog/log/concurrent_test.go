package log

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// readers run beside one task that appends, takes back what is not committed, rotates and
// purges. Properties:
//
//  1. what is read of committed entries is what was appended, and of others consistent in itself;
//  2. positions, numbers and terms agree with the entries;
//  3. a reader meets no error but that entries are gone or not there;
//  4. a body that is open stays whole.
func concurrently(e env.Env, fsys file.FS, seed uint64, rounds int) {
	opt := options(fsys, e)
	opt.Cache = 20_000
	all := bodies{}
	opt.Newest, opt.Bodies = entry.LargeVersion, &stage{fs: fsys, all: all}
	l := must(Create(opt, Start{}))
	var stop atomic.Bool
	readers := env.NewGroup(e)
	for i := range uint64(3) {
		readers.Go("reader", func() {
			rng := rand.New(rand.NewPCG(seed, i))
			for !stop.Load() {
				look(l, rng)
				e.Yield()
			}
		})
	}
	readers.Go("purger", func() {
		for !stop.Load() {
			c := l.Committed()
			must(l.Purge(Retention{Keep: c - min(c, 30), MaxBytes: 1}))
			env.Sleep(e, time.Millisecond)
		}
	})
	rng := rand.New(rand.NewPCG(seed, 99))
	mk := maker{term: 1}
	for range rounds {
		if rng.IntN(6) == 0 && mk.index > l.Committed() {
			mk.index = l.Committed() + rng.Uint64N(mk.index-l.Committed())
			mk.number = mk.index
			mk.term++
		}
		var entries []Entry
		for range 1 + rng.IntN(4) {
			switch rng.IntN(12) {
			case 0:
				entries = append(entries, mk.next(1, rng.IntN(3000), entry.FlagRotate))
			case 1:
				entries = append(entries, mk.large(all, 1+rng.IntN(3), rng.IntN(900)))
			default:
				entries = append(entries, mk.next(1, rng.IntN(3000), 0))
			}
		}
		ok(l.Append(entries))
		if rng.IntN(3) == 0 {
			ok(l.Sync())
			l.SetCommitted(l.Committed() + rng.Uint64N(mk.index-l.Committed()+1))
		}
	}
	stop.Store(true)
	readers.Wait()
	ok(l.Close())
	ok(must(Open(opt)).Close())
}

// gone reports whether an error is one that a reader may meet.
func gone(err error) bool { return errors.Is(err, ErrCompacted) || errors.Is(err, ErrUnavailable) }

// look reads at random places. Entry i holds transaction i.
func look(l *Log, rng *rand.Rand) {
	first, committed, last := l.FirstIndex(), l.Committed(), l.LastIndex()
	if first > last {
		return
	}
	lo := first + rng.Uint64N(last-first+1)
	got, err := l.Read(lo, lo+1+rng.Uint64N(last-lo+1), rng.Uint64N(10_000))
	assert(err == nil || gone(err), "%v", err)
	for i, e := range got {
		env, _, err := entry.Parse(e.Data)
		ok(err)
		assert(e.Index == lo+uint64(i) && env.First == e.Index && env.Term == e.Term, "entry %d", e.Index)
		assert(i == 0 || e.Term >= got[i-1].Term, "terms fall")
	}
	if len(got) == 0 || lo > committed {
		return
	}
	term, err := l.Term(lo)
	assert(err == nil && term == got[0].Term || gone(err), "term of %d: %d, %v", lo, term, err)
	if entry.Kind(got[0].Data[0]) == entry.Large {
		b, err := l.OpenBody(lo)
		assert(err == nil && b.Index == lo || gone(err), "body of %d: %v", lo, err)
		if err == nil {
			ok(b.Damaged(body.Verify(b, &b.LargeBody))) // though it may be purged by now
			ok(b.Close())
		}
	}
	number, err := l.Number(lo)
	assert(err == nil && number == lo || gone(err), "number of %d: %d, %v", lo, number, err)
	index, err := l.IndexOf(lo)
	assert(err == nil && index == lo || gone(err), "index of %d: %d, %v", lo, index, err)
	pos, err := l.Position(lo)
	if err == nil {
		index, err = l.Find(pos)
	}
	assert(err == nil && index == lo || gone(err), "position of %d: %v, %d, %v", lo, pos, index, err)
	for _, f := range l.Files() {
		if err := l.VerifyFile(f.Number); rng.IntN(20) == 0 {
			assert(err == nil || gone(err), "%s: %v", f.Name, err)
		}
	}
}

func TestConcurrentSimulated(t *testing.T) {
	for seed := range uint64(4) {
		simulate(t, seed, func(s *simenv.Sim) { concurrently(s, simfile.New(s, seed), seed, 100) })
	}
}

func TestConcurrentReal(t *testing.T) {
	concurrently(env.Real(), file.OS(t.TempDir()), 1, 120)
}
