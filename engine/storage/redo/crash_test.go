package redo

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
)

// history is what was done to a log over all its lives.
type history struct {
	groups  map[page.LSN][]byte // by start LSN, of the line of history that holds
	starts  []page.LSN          // of groups, ascending
	durable page.LSN            // highest LSN for which a FlushTo has returned
	ckpt    page.LSN            // highest checkpoint that has returned
	tried   page.LSN            // highest checkpoint that was asked for
	salt    uint64
}

// recovered checks what an Open has found against the three promises:
//
//  1. the groups are those that were logged, from the checkpoint on, without a gap;
//  2. nothing is missing for which FlushTo had returned;
//  3. the checkpoint is one that was asked for, and not older than one granted.
func (h *history) recovered(l *Log, found collector) {
	at := l.CheckpointLSN()
	assert(at >= h.ckpt && at <= max(h.tried, StartLSN), "checkpoint %d, granted %d, tried %d", at, h.ckpt, h.tried)
	for _, g := range found {
		for at < g.start && h.groups[at] == nil {
			at += epochGroupSize // the log's own groups are not scanned
		}
		assert(g.start == at, "group at %d, expected at %d", g.start, at)
		assert(bytes.Equal(g.payload, h.groups[at]), "group at %d is not what was logged", at)
		at = g.end
	}
	assert(h.groups[at] == nil || at >= h.durable, "the log ends at %d, durable was %d", at, h.durable)
	assert(l.Current() >= h.durable, "recovered up to %d, durable was %d", l.Current(), h.durable)
	for start := range h.groups {
		if start >= at {
			delete(h.groups, start) // the crash took it
		}
	}
	for n := len(h.starts); n > 0 && h.starts[n-1] >= at; n-- {
		h.starts = h.starts[:n-1]
	}
	h.durable, h.ckpt, h.tried = l.Flushed(), l.CheckpointLSN(), l.CheckpointLSN()
}

// work runs writers, a checkpointer and a resizer until the log fails or they are done.
func (h *history) work(s *simenv.Sim, l *Log, rng *rand.Rand, groups int) {
	g := env.NewGroup(s)
	working := 3
	for range working {
		seed := rng.Uint64()
		g.Go("worker", func() {
			h.logGroups(s, l, rand.New(rand.NewPCG(seed, 0)), groups/3)
			working--
		})
	}
	seed := rng.Uint64()
	g.Go("checkpointer", func() {
		rng := rand.New(rand.NewPCG(seed, 0))
		pace := 1 + rng.IntN(200)
		for working > 0 && l.Err() == nil {
			env.Sleep(s, time.Duration(1+rng.IntN(pace))*time.Millisecond)
			lsn := h.somewhere(l, rng)
			h.tried = max(h.tried, lsn)
			if l.Checkpoint(lsn) == nil {
				h.ckpt = max(h.ckpt, lsn)
				h.durable = max(h.durable, lsn)
			}
		}
	})
	g.Go("resizer", func() {
		for n := int64(0); working > 0 && l.Err() == nil; n++ {
			env.Sleep(s, 40*time.Millisecond)
			_ = l.resize(margin + 24<<10 + n%3*5000)
		}
	})
	g.Wait()
}

// somewhere draws a place for the next checkpoint: the published LSN, or the start
// of a group between the last checkpoint and there.
func (h *history) somewhere(l *Log, rng *rand.Rand) page.LSN {
	lsn := l.Published()
	if len(h.starts) > 0 && rng.IntN(2) == 0 {
		from, _ := slices.BinarySearch(h.starts, l.CheckpointLSN())
		if from < len(h.starts) {
			lsn = min(lsn, h.starts[from+rng.IntN(len(h.starts)-from)])
		}
	}
	return lsn
}

func (h *history) logGroups(s *simenv.Sim, l *Log, rng *rand.Rand, groups int) {
	for range groups {
		if rng.IntN(4) == 0 {
			env.Sleep(s, time.Duration(rng.IntN(10))*time.Millisecond)
		}
		size := 1 + rng.IntN(400)
		if rng.IntN(10) == 0 {
			size = 1 + rng.IntN(4<<10-GroupHeaderSize)
		}
		h.salt++
		payload := payloadOf(h.salt, size)
		if l.Admit(4<<10) != nil {
			return
		}
		start, end := l.Reserve(size)
		h.groups[start] = payload
		h.starts = append(h.starts, start)
		s.Yield()
		l.Fill(start, payload)
		s.Yield()
		l.Publish(start, end)
		l.Unadmit(4 << 10)
		if rng.IntN(4) == 0 && l.FlushTo(end) == nil {
			h.durable = max(h.durable, end)
		}
	}
}

// life opens the log on fsys, works, and loses power at the k-th change (0: not).
// It returns the disk that is left and how many changes there were.
func (h *history) life(s *simenv.Sim, fsys *simfile.FS, rng *rand.Rand, k int64, groups int) (*simfile.FS, int64) {
	fsys.CrashAt(k)
	if rng.IntN(2) == 0 {
		fsys.Inject(simfile.Fault{Ops: simfile.OpWrite | simfile.OpSync, Jitter: 8 * time.Millisecond})
	}
	opt := tiny(fsys, s)
	opt.Capacity += int64(rng.IntN(3)) * 5000 // resized at most openings
	l, found, err := reopen(opt)
	if err == nil {
		h.recovered(l, found)
		// Almost no margin, so that live log is soon overwritten if it can be.
		l.limit.Store(l.Capacity() - 1000)
		h.work(s, l, rng, groups)
		err = l.Close()
		if err == nil {
			h.durable = l.Current()
		}
	}
	assert(err == nil || errors.Is(err, file.ErrCrashed), "%v", err)
	if rng.IntN(4) == 0 && fsys.Crashed() {
		return fsys.KillImage(), fsys.Mutations()
	}
	return fsys.CrashImage(), fsys.Mutations()
}

func newHistory() *history { return &history{groups: map[page.LSN][]byte{}} }

func (h *history) create(s *simenv.Sim, seed uint64) *simfile.FS {
	fsys := simfile.New(s, seed)
	ok(must(create(tiny(fsys, s))).Close())
	return fsys.CrashImage()
}

// Power is lost at every change of one short life in turn.
func TestCrashAtEveryCall(t *testing.T) {
	var calls int64 // of a life that ends by itself
	simulate(t, 11, func(s *simenv.Sim) {
		h := newHistory()
		_, calls = h.life(s, h.create(s, 11), rand.New(rand.NewPCG(11, 0)), 0, 30)
	})
	for k := int64(1); k <= calls; k++ {
		simulate(t, 11, func(s *simenv.Sim) {
			h := newHistory()
			rng := rand.New(rand.NewPCG(11, 0))
			fsys, _ := h.life(s, h.create(s, 11), rng, k, 30)
			fsys, _ = h.life(s, fsys, rng, 0, 6)
			h.life(s, fsys, rng, 0, 0)
		})
	}
}

// Many lives, each ended by a crash somewhere, on what the one before has left.
func TestManyCrashes(t *testing.T) {
	for seed := range uint64(60) {
		simulate(t, seed, func(s *simenv.Sim) {
			h := newHistory()
			rng := rand.New(rand.NewPCG(seed, 0))
			fsys := h.create(s, seed)
			for range 6 {
				fsys, _ = h.life(s, fsys, rng, 1+int64(rng.IntN(60)), 200)
			}
			h.life(s, fsys, rng, 0, 0)
		})
	}
}

// Power is lost while the log is made, or while it is resized: what is left is no
// log or a whole one.
func TestCrashInCreate(t *testing.T) {
	for k := int64(1); ; k++ {
		crashed := false
		simulate(t, uint64(k), func(s *simenv.Sim) {
			fsys := simfile.New(s, uint64(k))
			fsys.CrashAt(k)
			l, err := create(tiny(fsys, s))
			if err == nil {
				err = l.Close()
			}
			crashed = fsys.Crashed()
			assert(crashed == errors.Is(err, file.ErrCrashed), "%v", err)
			opt := tiny(fsys.CrashImage(), s)
			l, _, err = reopen(opt)
			if err != nil {
				assert(crashed, "a log that was made is gone: %v", err)
				l = must(create(opt))
			}
			assert(l.CheckpointLSN() == StartLSN, "checkpoint %d", l.CheckpointLSN())
			ok(l.Close())
		})
		if !crashed {
			return
		}
	}
}

// A failed sync, after which the operating system shows bytes that are not on
// disk and holds them to be clean: the next life makes them durable all the same.
func TestRestartAfterFailedSync(t *testing.T) {
	failed := 0
	for seed := range uint64(40) {
		simulate(t, seed, func(s *simenv.Sim) {
			h := newHistory()
			rng := rand.New(rand.NewPCG(seed, 0))
			fsys := h.create(s, seed)
			h.life(s, fsys, rng, 0, 10)
			in := fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Skip: 4 + rng.IntN(8), Err: io.ErrShortWrite})
			l, found, err := reopen(tiny(fsys, s))
			if err == nil {
				h.recovered(l, found)
				h.work(s, l, rng, 30)
				if l.Close() == nil {
					h.durable = l.Current()
				}
			}
			failed += in.Hits()
			in.Stop()
			for range 2 {
				l, found, err = reopen(tiny(fsys, s))
				ok(err)
				h.recovered(l, found)
				fsys = fsys.CrashImage() // without Close
			}
		})
	}
	if failed < 20 {
		t.Errorf("only %d syncs have failed", failed)
	}
}

// A sync fails once, slowly, while others of the file are on their way: nobody takes their success
// for that of the lost bytes. What was called durable, or is below a checkpoint, is on the disk.
func TestSyncsBesideAFailedOne(t *testing.T) {
	failed := 0
	for seed := range uint64(300) {
		simulate(t, seed, func(s *simenv.Sim) {
			h := newHistory()
			rng := rand.New(rand.NewPCG(seed, 1))
			fsys := h.create(s, seed)
			l, found, err := reopen(tiny(fsys, s))
			ok(err)
			h.recovered(l, found)
			h.work(s, l, rng, 6)
			fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Name: fileName, Jitter: 4 * time.Millisecond})
			in := fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Name: fileName, Skip: rng.IntN(6), Times: 1,
				Delay: time.Duration(rng.IntN(4)) * time.Millisecond, Err: syscall.EIO})
			g := env.NewGroup(s)
			for range 2 {
				seed := rng.Uint64()
				g.Go("worker", func() { h.logGroups(s, l, rand.New(rand.NewPCG(seed, 0)), 12) })
			}
			g.Go("checkpointer", func() {
				for range 8 {
					env.Sleep(s, time.Duration(rng.IntN(4))*time.Millisecond)
					lsn := min(l.Flushed(), h.somewhere(l, rng))
					h.tried = max(h.tried, lsn)
					if l.Checkpoint(lsn) == nil {
						h.ckpt = max(h.ckpt, lsn)
						h.durable = max(h.durable, lsn)
					}
				}
			})
			g.Wait()
			failed += in.Hits()
			assert(in.Hits() == 0 || l.Err() != nil, "the log goes on after a failed sync")
			assert(l.Flushed() >= h.durable, "durable %d, flushed %d", h.durable, l.Flushed())
			h.durable = max(h.durable, l.Flushed())
			_ = l.Close()
			l, found, err = reopen(tiny(fsys.CrashImage(), s))
			ok(err)
			h.recovered(l, found)
			ok(l.Close())
		})
	}
	if failed < 200 {
		t.Errorf("only %d syncs have failed", failed)
	}
}

// The same seed gives the same run and the same bytes.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) string {
		var digest string
		trace := simulate(t, seed, func(s *simenv.Sim) {
			h := newHistory()
			rng := rand.New(rand.NewPCG(seed, 0))
			fsys, n := h.life(s, h.create(s, seed), rng, 50, 100)
			f := must(fsys.Open("redo/"+fileName, file.OpenOptions{}))
			sum := fnv.New64a()
			b := make([]byte, must(f.Size()))
			must(f.ReadAt(b, 0))
			sum.Write(b)
			digest = fmt.Sprintf("%d changes, file %x", n, sum.Sum64())
		})
		return fmt.Sprintf("%s, trace %x", digest, trace)
	}
	if a, b := run(21), run(21); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := run(21), run(22); a == b {
		t.Errorf("two seeds, one run: %s", a)
	}
}
