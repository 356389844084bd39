package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// measureAllocs counts allocations of the steady paths. What background tasks
// allocate counts too; averages are rounded down, as testing.AllocsPerRun does.
func measureAllocs(c *config, r *report) (err error) {
	dir, err := subdir(c, "allocs")
	if err != nil {
		return err
	}
	rows := min(c.rows, 100_000)
	o, err := openOurs(dir, inMemory(rows))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close(), os.RemoveAll(dir)) }()
	if err := o.load(rows); err != nil {
		return err
	}
	if err := o.settle(); err != nil {
		return err
	}
	var failed error
	note := func(err error) { failed = errors.Join(failed, err) }
	random := rng(1)
	get := o.reader()
	r.atMost("allocations a point read", testing.AllocsPerRun(20_000, func() {
		note(get.get(int64(random.below(rows)) * idStep))
	}), 0, "%.0f")
	scan := o.scanner(wholeRow)
	perScan := testing.AllocsPerRun(5, func() {
		_, _, err := scan.scan()
		note(err)
	})
	r.atMost("allocations a scanned row", math.Floor(perScan/float64(rows)), 0, "%.0f")
	r.note("A scan of %d rows allocates %.0f times, the timers of background tasks meanwhile included.", rows, perScan)
	w, ids := o.writer(), newFreshIDs(rows)
	next := func(int) int64 { return ids.next() }
	perBatch := testing.AllocsPerRun(200, func() { note(w.batch(insertRows, next)) })
	r.atMost("allocations an inserted row", perBatch/insertRows, 3, "%.2f")
	u := o.updater()
	r.atMost("allocations an update with its commit", testing.AllocsPerRun(5000, func() {
		note(u.update(int64(random.below(rows)) * idStep))
	}), 6, "%.0f")
	return failed
}

// updater changes a number of a row, in transactions of its own.
type updater struct {
	o       *ours
	s       *storage.Session
	key     []byte
	changes []record.Change
	n       int64
}

func (o *ours) updater() *updater {
	return &updater{o: o, s: o.eng.NewSession(), changes: make([]record.Change, 1)}
}

func (u *updater) update(id int64) error {
	u.n++
	u.s.Begin(trx.Options{})
	u.key = u.o.tbl.Schema.Keys[0].AppendKey(u.key[:0], types.NewInt(id))
	u.changes[0] = record.Change{Column: colState, Value: types.NewInt(u.n % 1_000_000)}
	if err := u.s.Worker().Update(u.o.tbl, u.key, u.changes); err != nil {
		return err
	}
	_, err := u.s.Commit()
	return err
}

// figures are what a child process has measured.
type figures struct {
	HeapInuse, HeapSys         float64 // MiB
	Pool, Data, RSS, PeakRSS   float64 // MiB
	Rate                       float64 // transactions a second
	SyncPages, AsyncPages      float64 // written, by reason
	AdaptivePages, LRUPages    float64
	WaitFree, Reads            float64
	CheckpointAgePct, DirtyPct float64
}

const mib = 1 << 20

// inChild measures a part in a process of its own, whose memory is only our
// engine's.
func inChild(c *config, part string) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	cmd := exec.Command(self, "-part", part, "-dir", c.dir, "-rows", strconv.Itoa(c.rows),
		"-mixed", c.mixed.String(), "-heappool", strconv.FormatInt(c.poolHeap, 10), "-profile", c.profile)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return f, err
	}
	return f, json.Unmarshal(out.Bytes(), &f)
}

func runChild(c *config) error {
	var f figures
	var err error
	switch c.part {
	case "heap":
		f, err = heapFigures(c)
	case "larger":
		f, err = largerFigures(c)
	default:
		err = fmt.Errorf("there is no part %q", c.part)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// measureHeap loads the table into a large pool and looks at the Go heap.
func measureHeap(c *config, r *report) error {
	f, err := inChild(c, "heap")
	if err != nil {
		return err
	}
	r.atMost(fmt.Sprintf("Go heap with a pool of %.0f GiB", f.Pool/1024), f.HeapInuse, 64, "%.1f MiB")
	r.note("The Go heap is runtime.MemStats.HeapInuse after loading; the runtime holds %.0f MiB for it.", f.HeapSys)
	return nil
}

func heapFigures(c *config) (f figures, err error) {
	dir, err := subdir(c, "heap")
	if err != nil {
		return f, err
	}
	o, err := openOurs(dir, storage.Options{BufferPoolSize: c.poolHeap, RedoCapacity: 1 << 30})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := o.load(c.rows); err != nil {
		return f, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Pool = float64(c.poolHeap) / mib
	f.HeapInuse, f.HeapSys = float64(m.HeapInuse)/mib, float64(m.HeapSys)/mib
	return f, nil
}

// measureLarger runs a mixed load on data four times as large as the pool.
func measureLarger(c *config, r *report) error {
	f, err := inChild(c, "larger")
	if err != nil {
		return err
	}
	r.atMost("peak resident memory above the pool, data 4x the pool", f.PeakRSS-f.Pool, 256, "%.0f MiB")
	r.atMost("pages flushed in sync, mixed load in steady state", f.SyncPages, 0, "%.0f")
	r.note("Mixed load: two goroutines, half reads and half updates of random rows, each a transaction; data of %.0f MiB, pool of %.0f MiB, "+
		"default redo log. In the measured time pages were written for: adaptive rate %.0f, async watermark %.0f, LRU list %.0f; waits for a free frame: %.0f; "+
		"checkpoint age at the end %.0f %% of the log.",
		f.Data, f.Pool, f.AdaptivePages, f.AsyncPages, f.LRUPages, f.WaitFree, f.CheckpointAgePct)
	fmt.Fprintf(os.Stderr, "  mixed load: %.0f transactions/s, %.0f page reads, RSS %.0f MiB, peak %.0f MiB, dirty %.0f %%\n", f.Rate, f.Reads, f.RSS, f.PeakRSS, f.DirtyPct)
	return nil
}

func largerFigures(c *config) (f figures, err error) {
	dir, err := subdir(c, "larger")
	if err != nil {
		return f, err
	}
	perRow := int64(rowBytes + rowBytes/8) // with header, key and slot
	pool := max(int64(c.rows)*perRow/4, buffer.MinSize*4)
	o, err := openOurs(dir, storage.Options{BufferPoolSize: pool})
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := o.load(c.rows); err != nil {
		return f, err
	}
	f.Pool = float64(pool) / mib
	f.Data = float64(o.tbl.Space().SizePages()) * 16384 / mib
	var before buffer.Stats
	n, took, err := mixedLoad(c, o, func() { before = o.eng.Pool.Stats() })
	if err != nil {
		return f, err
	}
	s := o.eng.Pool.Stats()
	f.Rate = float64(n) / took.Seconds()
	f.SyncPages = float64(s.FlushSyncPages - before.FlushSyncPages)
	f.AsyncPages = float64(s.FlushAsyncPages - before.FlushAsyncPages)
	f.AdaptivePages = float64(s.FlushAdaptivePages - before.FlushAdaptivePages)
	f.LRUPages = float64(s.LRUFlushPages - before.LRUFlushPages)
	f.WaitFree = float64(s.WaitFree - before.WaitFree)
	f.Reads = float64(s.Reads - before.Reads)
	f.CheckpointAgePct = float64(s.CheckpointAge) * 100 / float64(o.eng.Log.Capacity())
	f.DirtyPct = float64(s.PagesDirty) * 100 / float64(s.PagesTotal)
	f.RSS = float64(procField("/proc/self/status", "VmRSS:")) / 1024
	f.PeakRSS = float64(procField("/proc/self/status", "VmHWM:")) / 1024
	return f, nil
}

// mixedLoad runs two goroutines for a warm-up of a quarter of the time and then
// for the time itself, which warm announces.
func mixedLoad(c *config, o *ours, warm func()) (n int, took time.Duration, err error) {
	turn := func(d time.Duration) (int, time.Duration, error) {
		var wg sync.WaitGroup
		var units [2]int
		var errs [2]error
		start := time.Now()
		for i := range units {
			get, up, random := o.reader(), o.updater(), rng(i+1)
			wg.Add(1)
			go func() {
				defer wg.Done()
				units[i], _, errs[i] = timed(d, func() (int, error) {
					if err := get.get(int64(random.below(c.rows)) * idStep); err != nil {
						return 0, err
					}
					return 2, up.update(int64(random.below(c.rows)) * idStep)
				})
			}()
		}
		wg.Wait()
		return units[0] + units[1], time.Since(start), errors.Join(errs[:]...)
	}
	if _, _, err := turn(c.mixed / 4); err != nil {
		return 0, 0, err
	}
	warm()
	err = c.profiled("mixed", func() error {
		n, took, err = turn(c.mixed)
		return err
	})
	return n, took, err
}
