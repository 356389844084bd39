package commit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// rememberer is an engine with a memory of tokens.
func rememberer(t *testing.T, test func(k *Tokens, do func(add []Use, before int64))) {
	t.Helper()
	s := simenv.New(1)
	s.Run(func() {
		e, err := storage.Open(storage.Options{FS: simfile.New(s, 1), Env: s, BufferPoolSize: 2 << 20, RedoCapacity: 8 << 20,
			LogBufferSize: 1 << 20, RecoveryTasks: 1})
		if err != nil {
			t.Error(err)
			return
		}
		k := NewTokens(e, time.Hour)
		test(k, func(add []Use, before int64) {
			w, err := k.Remember(add, before)
			if err == nil && w != nil {
				w.StartCommit()
				_, pos := e.Applied()
				err = e.Trx.CommitGroup([]trx.Commit{{Trx: w}}, pos)
				e.Trx.End(w)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Of many old tokens few are forgotten at a time, the earliest used first, and in the end all that were used before a time and none
// else, however long before their use, or up to a minute after it, they were made.
func TestForgetFew(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 5))
		rememberer(t, func(k *Tokens, do func([]Use, int64)) {
			begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
			minute := time.Minute.Microseconds()
			before := begin + 30*minute
			used := map[entry.Token]int64{}
			var add []Use
			for i := range []int{100, 20_000, 30_000, 8000}[seed] {
				at := begin + rng.Int64N(60*minute)
				if seed == 3 && i < 5000 {
					at = begin + 7*minute // many at once
				}
				token := madeFrom(at + minute - rng.Int64N(60*minute))
				binary.LittleEndian.PutUint64(token[8:], uint64(i))
				add, used[token] = append(add, Use{Token: token, Number: uint64(i + 1), Time: at}), at
			}
			do(add, 0)
			cuts, err := k.Cuts(before)
			if err != nil || !slices.IsSorted(cuts) || len(cuts) == 0 || cuts[len(cuts)-1] != before {
				t.Fatalf("seed %d: %d cuts up to %d, %v", seed, len(cuts), before, err)
			}
			for _, until := range cuts {
				if n := count(used, until); n == 0 || n > forgetLeast && (seed != 3 || n > forgetLeast+5000) {
					t.Errorf("seed %d: %d are forgotten at once", seed, n)
				}
				do(nil, until)
				for token, at := range used {
					if at < until {
						delete(used, token)
					}
				}
			}
			for _, u := range add {
				_, found, err := k.Lookup(u.Token)
				if err != nil || found != (u.Time >= before) {
					t.Fatalf("seed %d: a token used at %d, where those before %d are forgotten, is found: %t, %v", seed, u.Time-begin, before-begin, found, err)
				}
			}
			if cuts, err := k.Cuts(before); len(cuts) != 0 || err != nil {
				t.Errorf("seed %d: more is to be forgotten, %v, %v", seed, cuts, err)
			}
		})
	}
}

func count(used map[entry.Token]int64, before int64) (n int) {
	for _, at := range used {
		if at < before {
			n++
		}
	}
	return n
}

// Looking for old tokens reads no young ones: it takes as long among many as among few.
func TestForgettingReadsOldTokens(t *testing.T) {
	rememberer(t, func(k *Tokens, do func([]Use, int64)) {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		reads := map[int]uint64{}
		for _, n := range []int{10, 40_000} {
			var add []Use
			for i := range n {
				token := madeFrom(now)
				copy(token[6:], fmt.Sprintf("%d-%d", n, i))
				add = append(add, Use{Token: token, Number: uint64(i + 1), Time: now})
			}
			do(add, 0)
			was := k.engine.Stats().Buffer.Reads
			if _, found, err := k.Youngest(now - time.Hour.Microseconds()); found || err != nil {
				t.Fatal(found, err)
			}
			reads[n] = k.engine.Stats().Buffer.Reads - was
		}
		if reads[40_000] > reads[10]+5 {
			t.Errorf("pages read from disk, by the number of young tokens: %v", reads)
		}
	})
}

// What is remembered of a token is told whatever this node's clock shows: it may be that of the client that is right.
func TestRememberedWhateverTheClock(t *testing.T) {
	rememberer(t, func(k *Tokens, do func([]Use, int64)) {
		at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		used, other := madeFrom(at), madeFrom(at)
		used[8], other[8] = 1, 2
		do([]Use{{Token: used, Number: 7, Time: at}}, 0)
		for _, off := range []time.Duration{-100 * time.Hour, -2 * time.Hour, 0, 2 * time.Hour} {
			var is *TokenUsedError
			if err := k.check(used, at+off.Microseconds()); !errors.As(err, &is) || is.Number != 7 {
				t.Errorf("by a clock that is %v off: %v", off, err)
			}
		}
		for off, want := range map[time.Duration]error{-2 * time.Hour: ErrTokenAhead, 0: nil, 2 * time.Hour: ErrTokenExpired} {
			if err := k.check(other, at+off.Microseconds()); !errors.Is(err, want) {
				t.Errorf("one that is not remembered, by a clock that is %v off: %v", off, err)
			}
		}
	})
}
