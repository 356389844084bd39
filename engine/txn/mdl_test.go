package txn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/lock"
)

// TestMetadataScripts runs testdata/mdl. A file has one set of locks and a virtual
// clock. The lines of a block "run" are
//
//	A MODE NAME [LIMIT]        where MODE is shared, shared_write, shared_read_only or exclusive
//	A named LOCK [LIMIT]       exclusive, on a named lock
//	A release [NAME]           A interrupt
//	A sleep DURATION           locks
//	A with B                   makes both owners of one side
//	A again                    begins again when its wait closes a circle
//
// where A is an owner. A name is schema.table or a schema. The output has a line for
// each statement and an indented one for each wait that ended because of it.
func TestMetadataScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/mdl", func(t *testing.T, path string) {
		sim := simenv.New(1)
		sim.Run(func() {
			s := &metadataScript{env: sim, locks: newMetadataLocks(sim), owners: map[string]*metadataOwner{}}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(d.Input) })
		})
	})
}

type metadataScript struct {
	env    env.Env
	locks  *metadataLocks
	owners map[string]*metadataOwner
	ended  []string
}

func (s *metadataScript) run(input string) string {
	var out strings.Builder
	for _, line := range strings.Split(input, "\n") {
		answer := s.exec(strings.Fields(line))
		env.Sleep(s.env, time.Nanosecond) // everybody runs until he waits
		fmt.Fprintf(&out, "%s: %s\n", line, answer)
		sort.Strings(s.ended)
		for _, e := range s.ended {
			fmt.Fprintf(&out, "  %s\n", e)
		}
		s.ended = nil
	}
	return out.String()
}

func (s *metadataScript) owner(name string) *metadataOwner {
	o := s.owners[name]
	if o == nil {
		o = &metadataOwner{id: uint64(name[0]), client: uint64(name[0]), lasting: true}
		s.owners[name] = o
	}
	return o
}

func (s *metadataScript) exec(f []string) string {
	if f[0] == "locks" {
		list := s.locks.list()
		sortLocks(list)
		var b strings.Builder
		for _, l := range list {
			fmt.Fprintf(&b, "\n  %v %v session %d granted %v", l.Name, l.Mode, l.Session, l.Granted)
		}
		return b.String()
	}
	o := s.owner(f[0])
	switch f[1] {
	case "release":
		if len(f) > 2 {
			schema, table, _ := strings.Cut(f[2], ".")
			s.locks.releaseName(o, Name{schema, table})
			return "ok"
		}
		s.locks.releaseFrom(o, 0)
		return "ok"
	case "again":
		o.again = true
		return "ok"
	case "with":
		o.side = 1
		s.owner(f[2]).side = 1
		return "ok"
	case "interrupt":
		s.locks.interrupt(o)
		return "ok"
	case "sleep":
		d, _ := time.ParseDuration(f[2])
		env.Sleep(s.env, d)
		return "ok"
	}
	schema, table, _ := strings.Cut(f[2], ".")
	mode := Shared
	if f[1] == "named" {
		schema, table, mode = namedSchema, f[2], Exclusive
	} else {
		for mode.String() != strings.ToUpper(f[1]) {
			mode++
		}
	}
	limit := time.Hour
	if len(f) > 3 {
		limit, _ = time.ParseDuration(f[3])
	}
	state, finished := "waits", false
	s.env.Go("owner", func() {
		err := s.locks.acquire(o, Name{schema, table}, mode, limit)
		finished = true
		if state == "waits" {
			state = answerOf(err)
			return
		}
		s.ended = append(s.ended, f[0]+" "+answerOf(err))
	})
	env.Sleep(s.env, time.Nanosecond)
	answer := state
	if !finished {
		state = "late"
	}
	return answer
}

func answerOf(err error) string {
	switch {
	case err == nil:
		return "granted"
	case errors.Is(err, lock.ErrDeadlock):
		return "deadlock"
	case errors.Is(err, lock.ErrTimeout):
		return "timeout"
	case errors.Is(err, lock.ErrInterrupted):
		return "interrupted"
	}
	return err.Error()
}

// beside reports whether owners of other sides may have a name in the modes.
func beside(a, b MetadataMode) bool {
	switch {
	case a == Exclusive || b == Exclusive:
		return false
	case a == NoWrite:
		return b != SharedWrite
	case b == NoWrite:
		return a != SharedWrite
	}
	return true
}

// TestMetadataLoad has owners lock names in any order: nobody is with one who keeps him
// out, unless they are of one side, and everybody comes to an end without a timeout.
func TestMetadataLoad(t *testing.T) {
	for seed := range uint64(30) {
		sim := simenv.New(seed)
		sim.StepLimit = 2_000_000
		sim.Run(func() {
			l := newMetadataLocks(sim)
			type holder struct {
				owner *metadataOwner
				mode  MetadataMode
			}
			holders := map[Name][]holder{}
			g := env.NewGroup(sim)
			deadlocks := 0
			for n := range 6 {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				g.Go("owner", func() {
					o := &metadataOwner{id: uint64(n)}
					if seed%3 == 2 && n < 2 {
						o.side = 1
					}
					for range 40 {
						var held []Name
						for range 1 + rng.IntN(3) {
							name := Name{"s", fmt.Sprint(rng.IntN(4))}
							mode := []MetadataMode{Shared, Shared, Shared, SharedWrite, NoWrite, Exclusive, Exclusive}[rng.IntN(7)]
							err := l.acquire(o, name, mode, time.Hour)
							if errors.Is(err, lock.ErrDeadlock) {
								deadlocks++
								break
							}
							if err != nil {
								t.Errorf("seed %d: %v", seed, err)
								return
							}
							held = append(held, name)
							holders[name] = append(holders[name], holder{o, mode})
							for _, h := range holders[name] {
								if !h.owner.with(o) && !beside(h.mode, mode) {
									t.Errorf("seed %d: %v beside %v", seed, mode, h.mode)
								}
							}
							env.Sleep(sim, time.Duration(rng.IntN(3))*time.Millisecond)
						}
						for _, name := range held {
							holders[name] = slices.DeleteFunc(holders[name], func(h holder) bool { return h.owner == o })
						}
						l.releaseFrom(o, 0)
					}
				})
			}
			g.Wait()
			if left := l.list(); len(left) > 0 {
				t.Errorf("seed %d: locks are left: %v", seed, left)
			}
			if deadlocks == 0 && seed == 0 {
				t.Error("no deadlocks: the test is too tame")
			}
		})
	}
}

// TestMetadataThreads has owners come and go at once: whoever has a name for himself is alone
// with it, and nobody changes rows beside who lets nobody do so, also where others had the name in a slot.
func TestMetadataThreads(t *testing.T) {
	l := newMetadataLocks(env.Real())
	var users [4]atomic.Int64 // of a name; one for himself counts 1000
	var turns sync.WaitGroup
	for id := range uint64(8) {
		turns.Go(func() {
			rng := rand.New(rand.NewPCG(1, id))
			o := &metadataOwner{id: id, waits: new(lock.Waits)}
			for range 3000 {
				name, mode, weight := rng.IntN(len(users)), Shared, int64(1)
				switch {
				case id < 2 && rng.IntN(8) == 0:
					mode, weight = Exclusive, 1_000_000_000
				case id < 4 && rng.IntN(8) == 0:
					mode, weight = NoWrite, 1_000_000
				case rng.IntN(3) == 0:
					mode, weight = SharedWrite, 1000
				}
				full := Name{"s", fmt.Sprint(name)}
				err := error(nil)
				if mode == SharedWrite { // a transaction opens the table first
					err = l.acquire(o, full, Shared, time.Minute)
				}
				if err == nil {
					err = l.acquire(o, full, mode, time.Minute)
				}
				if err != nil {
					t.Error(err)
					return
				}
				n := users[name].Add(weight)
				switch writers, readers := n/1000%1000, n/1_000_000%1000; {
				case n >= 1_000_000_000 && n != 1_000_000_000, writers > 0 && readers > 0:
					t.Errorf("users of a name: %d", n)
				}
				if rng.IntN(4) == 0 {
					runtime.Gosched()
				}
				users[name].Add(-weight)
				l.releaseFrom(o, 0)
			}
		})
	}
	turns.Wait()
	if left := l.list(); len(left) > 0 {
		t.Errorf("locks are left: %v", left)
	}
	for i := range l.shards {
		if n := l.shards[i].exclusive.Load(); n != 0 {
			t.Errorf("shard %d counts %d exclusive locks", i, n)
		}
	}
}
