package redo

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Many goroutines log groups of all sizes through a small ring and a small file,
// lap after lap, publishing out of order. All that the checkpoint has not passed
// is in the file as it was logged.
func TestConcurrentLogging(t *testing.T) {
	fsys := simfile.New(env.Real(), 1)
	opt := tiny(fsys, env.Real())
	var l *Log
	ckpt := make(chan struct{}, 1)
	opt.OnPressure = func() {
		select {
		case ckpt <- struct{}{}:
		default:
		}
	}
	l = must(create(opt))
	stop := make(chan struct{})
	var checkpointer sync.WaitGroup
	checkpointer.Add(1)
	go func() {
		defer checkpointer.Done()
		for {
			select {
			case <-ckpt:
				if err := l.Checkpoint(l.Published()); err != nil {
					t.Error(err)
				}
			case <-stop:
				return
			}
		}
	}()

	var mu sync.Mutex
	logged := map[page.LSN][]byte{}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 150 {
				size := 1 + rng.IntN(600)
				if rng.IntN(20) == 0 {
					size = opt.BufferSize - GroupHeaderSize
				}
				payload := payloadOf(uint64(w)<<32|uint64(i), size)
				if err := l.Admit(opt.BufferSize); err != nil {
					t.Error(err)
					return
				}
				start, end := l.Reserve(size)
				l.Fill(start, payload)
				mu.Lock()
				logged[start] = payload
				mu.Unlock()
				l.Publish(start, end)
				l.Unadmit(opt.BufferSize)
				if rng.IntN(8) == 0 {
					if err := l.FlushTo(end); err != nil || l.Flushed() < end {
						t.Errorf("FlushTo(%d): %v, flushed %d", end, err, l.Flushed())
					}
				}
			}
		}()
	}
	workers.Wait()
	close(stop)
	checkpointer.Wait()
	current := l.Current()
	if l.Published() != current {
		t.Fatalf("published %d, current %d", l.Published(), current)
	}
	if current < 5*page.LSN(opt.Capacity) {
		t.Fatalf("only %d bytes logged", current)
	}
	s := l.Stats()
	if s.LogWaits == 0 || s.AdmitWaits == 0 || s.Checkpoints == 0 || s.Admitted != 0 {
		t.Errorf("the test does not reach what it is for: %+v", s)
	}
	at := l.CheckpointLSN()
	ok(l.Close())
	if err := l.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	l, groups, err := reopen(opt)
	ok(err)
	for _, g := range groups {
		if g.start != at || !bytes.Equal(g.payload, logged[g.start]) {
			t.Fatalf("group [%d,%d) differs, expected one at %d", g.start, g.end, at)
		}
		at = g.end
	}
	if at != current {
		t.Fatalf("the log ends at %d, not %d", at, current)
	}
	ok(l.Close())
}

// A task that has reserved and does not publish holds back everybody's FlushTo
// behind it, and nobody's before it.
func TestPublishOutOfOrder(t *testing.T) {
	simulate(t, 1, func(s *simenv.Sim) {
		l := must(create(tiny(simfile.New(s, 1), s)))
		_, e1 := add(l, payloadOf(1, 10))
		s2, e2 := l.Reserve(20)
		s3, e3 := add(l, payloadOf(3, 30))
		assert(l.Published() == e1 && s3 == e2, "published %d", l.Published())
		ok(l.FlushTo(e1))
		g := env.NewGroup(s)
		done := 0
		for _, lsn := range []page.LSN{s2 + 1, e2, e3} {
			g.Go("flush", func() { ok(l.FlushTo(lsn)); done++ })
		}
		env.Sleep(s, time.Second)
		assert(done == 0 && l.Flushed() == e1, "%d flushes done", done)
		l.Fill(s2, payloadOf(2, 20))
		l.Publish(s2, e2)
		g.Wait()
		assert(l.Published() == e3 && l.Flushed() == e3, "published %d, flushed %d", l.Published(), l.Flushed())
		err := l.FlushTo(e3 + 1)
		assert(errors.Is(err, ErrFutureLSN), "FlushTo beyond the end: %v", err)
		ok(l.Close())
	})
}

// With the ring full, Reserve waits for the writer, also when the writer first
// has to wait for a group to be published.
func TestFullRing(t *testing.T) {
	for seed := range uint64(20) {
		simulate(t, seed, func(s *simenv.Sim) {
			opt := tiny(simfile.New(s, seed), s)
			l := must(create(opt))
			size := opt.BufferSize/4 - GroupHeaderSize
			s1, e1 := l.Reserve(size)
			for i := range 3 {
				add(l, payloadOf(uint64(i), size))
			}
			done := 0
			g := env.NewGroup(s)
			for i := range 6 {
				g.Go("reserve", func() { add(l, payloadOf(uint64(i), size)); done++ })
			}
			env.Sleep(s, time.Second)
			assert(done == 0, "%d groups went into a full ring", done)
			l.Fill(s1, payloadOf(9, size))
			l.Publish(s1, e1)
			g.Wait()
			ok(l.Close())
			_, groups, err := reopen(opt)
			ok(err)
			assert(len(groups) == 10, "%d groups", len(groups))
		})
	}
}

// A group that takes nearly the whole ring waits for the little before it, which
// is published while the writer is idle.
func TestLargeGroupBehindASmallOne(t *testing.T) {
	simulate(t, 9, func(s *simenv.Sim) {
		opt := tiny(simfile.New(s, 9), s)
		opt.FlushInterval = time.Hour
		l := must(create(opt))
		s1, e1 := l.Reserve(500)
		g := env.NewGroup(s)
		g.Go("large", func() { add(l, payloadOf(1, 4000)) })
		env.Sleep(s, time.Second)
		l.Fill(s1, payloadOf(2, 500))
		l.Publish(s1, e1)
		g.Wait()
		assert(s.Monotonic() < time.Minute, "took %v", s.Monotonic())
		ok(l.Close())
	})
}

// While one flushes, those who come too late for it wait; then one of them
// flushes for all of them.
func TestGroupFlush(t *testing.T) {
	simulate(t, 10, func(s *simenv.Sim) {
		fsys := simfile.New(s, 10)
		opt := tiny(fsys, s)
		opt.FlushInterval = time.Hour
		l := must(create(opt))
		fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: time.Second})
		before := l.Stats().Syncs
		g := env.NewGroup(s)
		flush := func() {
			_, end := add(l, payloadOf(1, 100))
			ok(l.FlushTo(end))
		}
		g.Go("first", flush)
		env.Sleep(s, 500*time.Millisecond)
		for range 10 {
			g.Go("late", flush)
		}
		g.Wait()
		syncs := l.Stats().Syncs - before
		assert(syncs == 2 && s.Monotonic() < time.Minute, "%d syncs, %v", syncs, s.Monotonic())
		ok(l.Close())
	})
}

func TestReserveRefusesWhatCannotFit(t *testing.T) {
	l := must(create(tiny(simfile.New(env.Real(), 1), env.Real())))
	for _, n := range []int{0, -1, 4<<10 - GroupHeaderSize + 1, MaxPayload + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Reserve(%d) does not panic", n)
				}
			}()
			l.Reserve(n)
		}()
	}
	ok(l.Close())
}

// What was admitted keeps the log from overrunning its checkpoint; waiters get in
// in order, by a checkpoint, by another's Unadmit, or out by a failure.
func TestAdmit(t *testing.T) {
	simulate(t, 3, func(s *simenv.Sim) {
		opt := tiny(simfile.New(s, 1), s)
		pressure := 0
		opt.OnPressure = func() { pressure++ }
		l := must(create(opt))
		limit := int(opt.Capacity - margin)
		ok(l.admitSlowly(100)) // nobody to wait for
		l.Unadmit(100)
		ok(l.Admit(limit))
		var order []int
		g := env.NewGroup(s)
		for i, n := range []int{limit / 2, limit / 4, limit / 2} {
			g.Go("admit", func() {
				if err := l.Admit(n); err == nil {
					order = append(order, i)
				} else {
					order = append(order, -i)
				}
			})
			env.Sleep(s, time.Millisecond)
		}
		assert(len(order) == 0 && pressure == 3, "%d admitted, %d calls of OnPressure", len(order), pressure)

		l.Unadmit(limit / 4) // not enough for the first; the second must not overtake
		env.Sleep(s, time.Millisecond)
		assert(len(order) == 0, "overtaken: %v", order)
		l.Unadmit(limit/2 - limit/4)
		env.Sleep(s, time.Millisecond)
		assert(len(order) == 1 && order[0] == 0, "order %v", order)

		// Logging half of it takes the room for good, until a checkpoint.
		var end page.LSN
		for range 4 {
			_, end = add(l, payloadOf(1, limit/8-GroupHeaderSize))
		}
		l.Unadmit(limit - limit/2)
		env.Sleep(s, time.Millisecond)
		assert(len(order) == 1, "order %v", order)
		ok(l.Checkpoint(end))
		env.Sleep(s, time.Millisecond)
		assert(len(order) == 2 && order[1] == 1, "order %v", order)
		assert(l.CheckpointLSN() == end && l.Age() == 0, "checkpoint %d", l.CheckpointLSN())

		l.Fail(errors.New("disk on fire"))
		g.Wait()
		assert(len(order) == 3 && order[2] == -2, "order %v", order)
		assert(l.Admit(1) != nil, "admitted by a failed log")
	})
}

// The room below a checkpoint becomes free when the checkpoint is durable, not
// before; a flush may run meanwhile. Slots go to the two blocks in turn.
func TestCheckpointIsDurableFirst(t *testing.T) {
	simulate(t, 7, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		l := must(create(tiny(fsys, s)))
		limit := int(l.Capacity() - margin)
		_, end := add(l, payloadOf(1, 4000))
		ok(l.FlushTo(end))
		old := l.slot.sequence
		fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: time.Second})
		g := env.NewGroup(s)
		admitted := false
		g.Go("checkpoint", func() { ok(l.Checkpoint(end)) })
		g.Go("admit", func() { ok(l.Admit(limit)); admitted = true })
		env.Sleep(s, 900*time.Millisecond)
		assert(l.CheckpointLSN() == StartLSN && !admitted, "checkpoint %d, admitted %v", l.CheckpointLSN(), admitted)
		g.Wait()
		assert(l.CheckpointLSN() == end && admitted, "checkpoint %d, admitted %v", l.CheckpointLSN(), admitted)

		b := make([]byte, headerSize)
		must(l.file.ReadAt(b, 0))
		for i := range uint64(2) {
			block := (old + i) % 2
			found, problem := decodeSlot(b[block*blockSize:])
			assert(problem == "" && found.sequence == old+i, "block %d: %q, sequence %d", block, problem, found.sequence)
		}
		ok(l.Close())
	})
}

// A busy log brings its bound up to date with the syncs that it makes anyway.
func TestBoundFollows(t *testing.T) {
	simulate(t, 8, func(s *simenv.Sim) {
		l := must(create(tiny(simfile.New(s, 1), s)))
		for l.Age() < l.Capacity()/2 {
			_, end := add(l, payloadOf(1, 1000))
			ok(l.FlushTo(end))
			lag := uint64(end) - l.bound.Load()
			assert(lag <= l.boundLag()+2100, "the bound trails by %d", lag)
		}
		assert(l.CheckpointLSN() == StartLSN, "checkpoint %d", l.CheckpointLSN())
		ok(l.Close())
	})
}

// A resize while others log loses nothing and lets in who waits.
func TestResizeWhileLogging(t *testing.T) {
	for seed := range uint64(10) {
		simulate(t, seed, func(s *simenv.Sim) {
			opt := tiny(simfile.New(s, seed), s)
			l := must(create(opt))
			g := env.NewGroup(s)
			for i := range 4 {
				g.Go("log", func() {
					for range 20 {
						ok(l.Admit(2000))
						_, end := add(l, payloadOf(uint64(i), 1500))
						l.Unadmit(2000)
						ok(l.FlushTo(end))
					}
				})
			}
			for l.Capacity() < 4*opt.Capacity {
				env.Sleep(s, time.Millisecond)
				ok(l.resize(l.Capacity() + 20_000)) // there is no checkpoint
			}
			g.Wait()
			end := l.Current()
			ok(l.Close())
			opt.Capacity *= 4
			l, groups, err := reopen(opt)
			ok(err)
			assert(len(groups) == 80 && groups[79].end == end, "%d groups", len(groups))
			ok(l.Close())
		})
	}
}

// OnPressure comes when the age crosses three quarters, once per crossing.
func TestPressureByAge(t *testing.T) {
	simulate(t, 4, func(s *simenv.Sim) {
		opt := tiny(simfile.New(s, 1), s)
		pressure := 0
		opt.OnPressure = func() { pressure++ }
		l := must(create(opt))
		for lap := range 3 {
			for l.Age() < l.asyncAge() {
				assert(pressure == lap, "called at age %d", l.Age())
				ok(l.Admit(2000))
				add(l, payloadOf(1, 1500))
				l.Unadmit(2000)
			}
			for range 2 {
				ok(l.Admit(100))
				l.Unadmit(100)
			}
			assert(pressure == lap+1, "%d calls", pressure)
			ok(l.Checkpoint(l.Published()))
		}
		ok(l.Close())
	})
}

// A failed write or sync halts the log: everybody who waits hears of it, and
// nothing is written any more.
func TestFailedIO(t *testing.T) {
	disk := errors.New("disk error")
	for _, op := range []simfile.Op{simfile.OpWrite, simfile.OpSync} {
		for seed := range uint64(10) {
			simulate(t, seed, func(s *simenv.Sim) {
				fsys := simfile.New(s, seed)
				opt := tiny(fsys, s)
				l := must(create(opt))
				_, e1 := add(l, payloadOf(1, 100))
				ok(l.FlushTo(e1))
				fsys.Inject(simfile.Fault{Ops: op, Err: disk})
				g := env.NewGroup(s)
				for i := range 5 {
					g.Go("flush", func() {
						_, end := add(l, payloadOf(uint64(i), 3000))
						err := l.FlushTo(end)
						assert(errors.Is(err, disk), "FlushTo: %v", err)
					})
				}
				g.Go("admit", func() {
					err := l.Admit(int(opt.Capacity - margin))
					if err == nil {
						err = l.Admit(1000)
					}
					assert(errors.Is(err, disk), "Admit: %v", err)
				})
				g.Wait()
				assert(errors.Is(l.Err(), disk), "Err: %v", l.Err())
				l.Fail(errors.New("second"))
				assert(errors.Is(l.Err(), disk), "Err after a second failure: %v", l.Err())
				before := fsys.Mutations()
				for range 10 {
					add(l, payloadOf(1, 4000)) // must not hang
				}
				assert(l.FlushTo(e1) == nil, "what is durable stays so")
				assert(errors.Is(l.Checkpoint(e1), disk), "Checkpoint")
				env.Sleep(s, time.Second)
				assert(errors.Is(l.Close(), disk), "Close")
				assert(fsys.Mutations() == before, "a failed log writes")
			})
		}
	}
}

// The flusher task makes groups durable by itself, and then brings the bound up
// to date, once.
func TestPeriodicFlush(t *testing.T) {
	simulate(t, 5, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		l := must(create(tiny(fsys, s)))
		_, end := add(l, payloadOf(1, 100))
		env.Sleep(s, 3*l.options.FlushInterval)
		assert(l.Flushed() == end && l.bound.Load() == uint64(end), "flushed %d, bound %d", l.Flushed(), l.bound.Load())
		before := fsys.Mutations()
		env.Sleep(s, time.Minute)
		assert(fsys.Mutations() == before, "an idle log writes")
		ok(l.Close())
	})
}

func TestCreate(t *testing.T) {
	simulate(t, 6, func(s *simenv.Sim) {
		fsys := simfile.New(s, 1)
		opt := tiny(fsys, s)
		opt.StartLSN = 1 << 40
		_, err := open(opt, nil)
		assert(errors.Is(err, fs.ErrNotExist), "Open of nothing: %v", err)
		fsys.SetCapacity(50 << 10)
		_, err = create(opt)
		assert(errors.Is(err, file.ErrNoSpace), "Create without space: %v", err)
		fsys.SetCapacity(0)
		l := must(create(opt))
		assert(l.Current() == 1<<40 && l.ID() != [16]byte{}, "LSN %d", l.Current())
		_, err = create(opt)
		assert(errors.Is(err, fs.ErrExist), "second Create: %v", err)
		opt.ID = l.ID()
		ok(l.Close())
		ok(must(open(opt, nil)).Close())
		opt.ID[3]++
		_, err = open(opt, nil)
		assert(errors.Is(err, ErrWrongID), "Open with another ID: %v", err)
		opt.ID = [16]byte{}
		boom := errors.New("boom")
		l = must(open(opt, nil))
		add(l, payloadOf(1, 10))
		ok(l.Close())
		_, err = open(opt, func(_, _ page.LSN, _ []byte) error { return boom })
		assert(errors.Is(err, boom), "error of scan: %v", err)
	})
}

func TestOptions(t *testing.T) {
	o := Options{BufferSize: 3 << 20, Capacity: 1}.withDefaults()
	if o.BufferSize != 4<<20 || o.Capacity != MinCapacity || o.FlushInterval != time.Second {
		t.Errorf("%+v", o)
	}
	o = Options{}.withDefaults()
	if o.BufferSize != DefaultBufferSize || o.Capacity != DefaultCapacity || o.StartLSN != StartLSN {
		t.Errorf("%+v", o)
	}
}

func TestNoAllocations(t *testing.T) {
	e := env.Real()
	l := must(Create(Options{FS: simfile.New(e, 1), Env: e, Dir: "redo", FlushInterval: time.Hour}))
	payload := payloadOf(1, 200)
	n := testing.AllocsPerRun(100, func() {
		ok(l.Admit(1000))
		add(l, payload)
		l.Unadmit(1000)
	})
	if n != 0 {
		t.Errorf("%v allocations per group", n)
	}
	ok(l.Close())
}

func TestStatsNames(t *testing.T) {
	seen := map[string]bool{}
	Stats{}.Each(func(name string, v int64) {
		if seen[name] || v != 0 {
			t.Errorf("%s = %d", name, v)
		}
		seen[name] = true
	})
}
