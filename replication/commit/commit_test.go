package commit

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
)

// A transaction depends on the newest one that wrote one of its keys or of those that it
// refers to, as long as the history knows; never on less.
func TestHistory(t *testing.T) {
	for seed := uint64(1); seed <= race.Fewer(uint64(200), 40); seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		limit := 1 + rng.IntN(60)
		h := newHistory(limit)
		floor := rng.Uint64N(5)
		h.reset(floor)
		wrote := map[uint64]uint64{}
		seen := map[uint64]bool{} // keys since the history can have been emptied
		for number := floor + 1; number < floor+200; number++ {
			if rng.IntN(40) == 0 {
				if got := h.all(number); got != number-1 {
					t.Fatalf("seed %d: barrier %d depends on %d", seed, number, got)
				}
				for k := range wrote {
					wrote[k] = number
				}
				floor = number
				clear(seen)
				continue
			}
			keys, refs := pick(rng), pick(rng)
			want := floor
			for _, k := range append(append([]uint64(nil), keys...), refs...) {
				want = max(want, wrote[k])
			}
			got := h.add(number, keys, refs)
			if got < want || got >= number {
				t.Fatalf("seed %d: transaction %d depends on %d; it must be at least %d", seed, number, got, want)
			}
			for _, k := range keys {
				wrote[k] = number
				seen[k] = true
			}
			if len(seen)+4 <= limit && got != want {
				t.Fatalf("seed %d: transaction %d depends on %d, not on %d, with %d keys of %d", seed, number, got, want, len(seen), limit)
			}
		}
	}
}

func pick(rng *rand.Rand) []uint64 {
	var keys []uint64
	for range rng.IntN(4) {
		k := rng.Uint64N(40)
		if !contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func contains(keys []uint64, k uint64) bool {
	for _, x := range keys {
		if x == k {
			return true
		}
	}
	return false
}

// What is encoded decodes; what does not shrink, or is short, stays plain.
func TestEncode(t *testing.T) {
	random := make([]byte, 4000)
	for i := range random {
		random[i] = byte(rand.Uint64())
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		body  []byte
		set   Compression
		codec entry.Codec
		alone bool // it is one transaction, not two
	}{
		{"repetitive", bytes.Repeat([]byte("a row much like the others "), 100), Compression{}, entry.Zstd, false},
		{"at a higher level", bytes.Repeat([]byte("a row much like the others "), 100), Compression{Level: 9}, entry.Zstd, false},
		{"random", random, Compression{}, entry.Plain, false},
		{"short", []byte("not long"), Compression{}, entry.Plain, false},
		{"off", bytes.Repeat([]byte("x"), 1000), Compression{Off: true}, entry.Plain, false},
		{"below the threshold", bytes.Repeat([]byte("x"), 1000), Compression{Threshold: 2000}, entry.Plain, false},
		{"of two, not long", bytes.Repeat([]byte("x"), 300), Compression{}, entry.Zstd, false},
		{"alone, not long", bytes.Repeat([]byte("x"), 300), Compression{}, entry.Plain, true},
		{"alone and long", bytes.Repeat([]byte("x"), 600), Compression{}, entry.Zstd, true},
		{"alone, with a threshold", bytes.Repeat([]byte("x"), 300), Compression{Threshold: 200}, entry.Zstd, true},
	} {
		var e encoder
		e.configure(c.set)
		if err := e.prepare(); err != nil {
			t.Fatal(err)
		}
		of := entry.Envelope{Kind: entry.Transactions, Term: 3, First: 7, Count: 2, Time: 99}
		if c.alone {
			of.First, of.Count = 8, 1
		}
		data := e.entry(&of, c.body)
		env, body, err := entry.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if env.Codec != c.codec || env.Term != 3 || env.Last() != 8 || env.Time != 99 {
			t.Errorf("%s: %+v", c.name, env)
		}
		if body, err = env.Unpack(z, body, nil); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(body, c.body) {
			t.Errorf("%s: the body came back changed", c.name)
		}
	}
}

// A token tells its age.
func TestTokenTime(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)
	ms := uint64(at.UnixMilli())
	token := entry.Token{byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms), 0x70, 1}
	if got := tokenTime(token); got != at.UnixMicro() {
		t.Errorf("%d, want %d", got, at.UnixMicro())
	}
}

// Transactions contend while some begin to wait for row locks, not while a wait just
// goes on.
func TestContended(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		locks := lock.New(lock.Options{Env: sim})
		p := New(Options{Env: sim, Engine: &storage.Engine{Locks: locks}})
		contended := func(want bool) {
			t.Helper()
			if got := p.contended(); got != want {
				t.Errorf("contended is %v", got)
			}
		}
		contended(false)
		var owners [3]lock.Owner
		ask := func(i int, want lock.Result) {
			t.Helper()
			locks.Begin(&owners[i], uint64(i+1), lock.TxnOptions{})
			if got, err := locks.Acquire(&owners[i], lock.Request{Index: 1, Key: []byte("k"), Mode: lock.RecordX}); got != want || err != nil {
				t.Errorf("owner %d: %v, %v", i, got, err)
			}
		}
		ask(0, lock.Granted)
		contended(false)
		ask(1, lock.MustWait)
		contended(true)
		env.Sleep(sim, contention)
		contended(true)
		env.Sleep(sim, time.Millisecond)
		contended(false)
		ask(2, lock.MustWait)
		contended(true)
		for i := range slices.Backward(owners[:]) {
			if i > 0 {
				locks.Cancel(&owners[i])
			}
			locks.ReleaseAll(&owners[i], 0)
		}
		contended(false)
	})
}

// A second entry goes beside the first with as many transactions, or while
// transactions contend.
func TestOpen(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		p := New(Options{Env: sim, Engine: &storage.Engine{Locks: lock.New(lock.Options{Env: sim})}})
		for _, c := range []struct {
			queued int
			doubt  []int
			want   bool
		}{{1, nil, true}, {1, []int{1}, true}, {1, []int{2}, false}, {2, []int{2}, true}, {3, []int{9, 2}, false}} {
			p.queue, p.doubt = txnQueue{}, nil
			for range c.queued {
				p.queue.push(&txn.Txn{})
			}
			for _, n := range c.doubt {
				p.doubt = append(p.doubt, &Proposal{txns: make([]*txn.Txn, n)})
			}
			if got := p.open(); got != c.want {
				t.Errorf("%+v: open is %v", c, got)
			}
			for q := &p.queue; q.head != nil; q.pop() {
			}
			if p.queue.count != 0 {
				t.Errorf("an empty queue counts %d", p.queue.count)
			}
		}
	})
}

// lostBodies are bodies that are not here any more.
type lostBodies struct{ Bodies }

func (lostBodies) Pin(*entry.LargeBody) bool { return false }
func (lostBodies) Unpin(*entry.LargeBody)    {}

// A large transaction whose body was lost while it was queued is not proposed; its session hears it.
func TestLostBody(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		p := New(Options{Env: sim, Engine: &storage.Engine{Locks: lock.New(lock.Options{Env: sim})}, Bodies: lostBodies{}})
		x := &txn.Txn{Body: &entry.LargeBody{}, Waiter: sim.NewParker()}
		if again := p.try(&Proposal{p: p, txns: []*txn.Txn{x}}); again != nil || !x.Done.Load() || x.Err != errLostBody {
			t.Errorf("%v; the session hears %v", again, x.Err)
		}
	})
}
