package btree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/internal/race"
)

// The concurrency tests check three things:
//
//  1. A task that owns its keys (key modulo the number of tasks) always sees what
//     it wrote itself, whatever the others do to the structure.
//  2. A scan is sorted, and misses no key that was there all the time.
//  3. Structure and books are sound in the end, and the content is the sum of what
//     the tasks think they left.

// stable keys are never deleted.
func stable(n int) bool { return n%10 == 0 }

func concKey(n int) string { return fmt.Sprintf("%05d", n) }

// churn is one writer.
type churn struct {
	a     *actor
	rng   *rand.Rand
	me    int
	tasks int
	keys  int
	size  int // of values, at most
	mine  map[string]string
	fail  func(format string, args ...any)
}

func (c *churn) run(rounds int) {
	for round := range rounds {
		n := c.rng.IntN(c.keys/c.tasks)*c.tasks + c.me
		k := concKey(n)
		puts := 6 // by turns the tree grows and shrinks
		if round*4/rounds%2 == 1 {
			puts = 1
		}
		var err error
		switch op := c.rng.IntN(10); {
		case op < puts:
			v := strings.Repeat(string(rune('a'+c.rng.IntN(26))), c.rng.IntN(c.size))
			err = c.a.put(k, 0, v)
			c.mine[k] = v
		case op < 8 && !stable(n):
			var found bool
			found, err = c.a.del(k)
			if _, had := c.mine[k]; had != found {
				c.fail("delete of %s: found %v, had %v", k, found, had)
			}
			delete(c.mine, k)
		case op < 9:
			err = c.rewrite(k)
		default:
			v, _, found, gerr := c.a.get(k)
			if want, had := c.mine[k]; gerr == nil && (found != had || v != want) {
				c.fail("get of %s: found %v, had %v", k, found, had)
			}
			err = gerr
		}
		if err != nil {
			c.fail("%v", err)
			return
		}
	}
}

// rewrite reads an entry, lets go, and comes back to change it.
func (c *churn) rewrite(k string) error {
	a := c.a
	a.m.BeginRead()
	exact, err := a.c.Seek([]byte(k), mtr.S)
	valid := err == nil && a.c.Valid()
	if err == nil {
		a.c.Leave()
	}
	a.m.Commit()
	if err != nil {
		return err
	}
	if err := a.m.Begin(); err != nil {
		return err
	}
	defer a.m.Commit()
	same, err := a.c.Return(mtr.X)
	if err != nil {
		return err
	}
	defer a.c.Leave()
	if _, had := c.mine[k]; had != exact || valid && exact && !same {
		c.fail("return to %s: exact %v, same %v, had %v", k, exact, same, had)
	}
	if exact && len(c.mine[k]) > 0 {
		if string(a.c.Key()) != k || string(a.c.Value()) != c.mine[k] {
			c.fail("return to %s is on %s", k, a.c.Key())
		}
		a.c.PatchValue(0, []byte("Z"))
		c.mine[k] = "Z" + c.mine[k][1:]
	}
	return nil
}

// scan goes through the tree in one direction and checks order and completeness
// of the stable keys.
func scan(a *actor, keys int, forward bool, there func(k string) bool, fail func(string, ...any)) {
	a.m.BeginRead()
	defer a.m.Commit()
	defer a.c.Reset()
	var err error
	if forward {
		err = a.c.First(mtr.S)
	} else {
		err = a.c.Last(mtr.S)
	}
	var seen []string
	for err == nil && a.c.Valid() {
		seen = append(seen, string(a.c.Key()))
		if forward {
			err = a.c.Next()
		} else {
			err = a.c.Prev()
		}
	}
	if err != nil {
		fail("scan: %v", err)
		return
	}
	if !forward {
		slices.Reverse(seen)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i-1] >= seen[i] {
			fail("scan: %s before %s", seen[i-1], seen[i])
		}
	}
	for n := 0; n < keys; n++ {
		if k := concKey(n); stable(n) && there(k) {
			if _, ok := slices.BinarySearch(seen, k); !ok {
				fail("scan missed %s", k)
			}
		}
	}
}

// storm runs writers and scanners over a tree that holds the stable keys.
func storm(w *world, tasks, keys, size, rounds, scans int, seed uint64, start func(name string, fn func()), wait func(), fail func(string, ...any)) {
	writers := make([]*churn, tasks)
	for i := range tasks {
		writers[i] = &churn{a: w.actor(), rng: rand.New(rand.NewPCG(seed, uint64(i))), me: i, tasks: tasks, keys: keys, size: size,
			mine: map[string]string{}, fail: fail}
	}
	for n := 0; n < keys; n++ {
		if k := concKey(n); stable(n) {
			w.must(w.self().put(k, 0, "stable"))
			writers[n%tasks].mine[k] = "stable"
		}
	}
	for i, c := range writers {
		start(fmt.Sprintf("writer %d", i), func() { c.run(rounds) })
	}
	for i := range 4 {
		a := w.actor()
		start(fmt.Sprintf("scanner %d", i), func() {
			for range scans {
				scan(a, keys, i%2 == 0, func(string) bool { return true }, fail)
			}
		})
	}
	wait()
	model := map[string]string{}
	for _, c := range writers {
		for k, v := range c.mine {
			model[k] = v
		}
	}
	w.check()
	w.same(model)
}

// TestStormSimulated interleaves tasks at every point where they can park, with a
// pool too small for the tree, for many seeds.
func TestStormSimulated(t *testing.T) {
	for seed := range race.Fewer(uint64(40), 8) {
		s := simenv.New(seed)
		s.YieldOdds = 2
		s.Run(func() {
			w := newWorld(t, s, 64, 8<<20)
			g := env.NewGroup(s)
			storm(w, 3, 300, 7000, 150, 3, seed, g.Go, g.Wait, func(f string, args ...any) {
				t.Errorf("seed %d: %s", seed, fmt.Sprintf(f, args...))
			})
			w.close()
		})
		if t.Failed() {
			t.Fatalf("repeat with seed %d", seed)
		}
	}
}

// TestStorm runs on the real scheduler; it is for the race detector and, without
// it, for optimistic reads.
func TestStorm(t *testing.T) {
	w := newWorld(t, env.Real(), 80, 8<<20)
	defer w.close()
	var wg sync.WaitGroup
	storm(w, 4, 1600, 3000, 800, 10, 1, func(_ string, fn func()) { wg.Go(fn) }, wg.Wait, t.Errorf)
	if s := w.pool.Stats(); s.Evicted == 0 {
		t.Errorf("the tree should not fit the pool: %+v", s)
	}
}
