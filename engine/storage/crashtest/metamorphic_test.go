package crashtest

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/race"
)

// variant is a way to run the same operations that must not be visible in them.
type variant struct {
	name         string
	poolPages    int64
	purgeTasks   int
	cleaner      buffer.CleanerOptions
	redo         int64
	restartEvery int // transactions; 0: never
	killEvery    int // like restartEvery, without a clean end
}

var variants = []variant{
	{name: "plain", poolPages: 2000, purgeTasks: 1},
	{name: "small pool", poolPages: 70, purgeTasks: 1},
	{name: "no purge, no cleaner", poolPages: 1000, purgeTasks: -1, cleaner: buffer.CleanerOptions{Off: true}},
	{name: "many purge tasks, busy cleaner", poolPages: 300, purgeTasks: 8, cleaner: buffer.CleanerOptions{Interval: time.Millisecond, IOCapacity: 100_000}},
	{name: "small log", poolPages: 500, purgeTasks: 2, redo: 4 << 20},
	{name: "restarts", poolPages: 200, purgeTasks: 2, restartEvery: 17},
	{name: "kills", poolPages: 200, purgeTasks: 2, killEvery: 23},
}

// TestMetamorphic runs the same random operations under different settings and
// demands the same results: rows, errors, snapshots.
func TestMetamorphic(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(max(1, *runs/10)); seed++ {
		var want string
		for i, v := range variants {
			got, err := metamorphicRun(seed, v)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, v.name, err)
			}
			if i == 0 {
				want = got
			} else if got != want {
				t.Errorf("seed %d: %q gives another result than %q", seed, v.name, variants[0].name)
			}
		}
	}
}

// TestDeterminism runs the whole engine twice from one seed: the schedule, the
// files and the results must be the same to the last step.
func TestDeterminism(t *testing.T) {
	for seed := uint64(100); seed < 100+race.Fewer(uint64(2), 1); seed++ {
		run := func() (uint64, uint64) {
			s := simenv.New(seed)
			s.Run(func() {
				rng := rand.New(rand.NewPCG(seed, 9))
				w := &world{env: s, model: newModel(), commits: env.NewMutex(s), early: true}
				fs := simfile.New(s, seed)
				if problem := w.live(fs, rng); problem != "" {
					t.Errorf("seed %d: %s", seed, problem)
				}
			})
			return s.TraceHash(), s.Steps()
		}
		hash1, steps1 := run()
		hash2, steps2 := run()
		if hash1 != hash2 || steps1 != steps2 {
			t.Fatalf("seed %d: two runs differ: hash %x after %d steps, %x after %d", seed, hash1, steps1, hash2, steps2)
		}
	}
}

func metamorphicRun(seed uint64, v variant) (digest string, err error) {
	s := simenv.New(seed)
	s.Run(func() {
		m := &metamorphic{v: v, sum: sha256.New(), rng: rand.New(rand.NewPCG(seed, 3))}
		m.w = &world{env: s, model: newModel(), commits: env.NewMutex(s)}
		m.fs = simfile.New(s, seed)
		if err = m.run(); err == nil {
			digest = fmt.Sprintf("%x", m.sum.Sum(nil))
		}
	})
	return digest, err
}

type metamorphic struct {
	v   variant
	w   *world
	fs  *simfile.FS
	rng *rand.Rand
	sum hash.Hash
}

func (m *metamorphic) options() storage.Options {
	redo := m.v.redo
	if redo == 0 {
		redo = 16 << 20
	}
	return storage.Options{FS: m.fs, Env: m.w.env, BufferPoolSize: m.v.poolPages * page.Size, RedoCapacity: redo,
		LogBufferSize: 1 << 20, PurgeTasks: m.v.purgeTasks, Cleaner: m.v.cleaner, LockWait: time.Second}
}

// run is one client's transactions, with a reader whose snapshot stays open for a
// while. A restart closes the snapshot and opens it again at its CSN where that is
// still possible, which it must be as long as nothing was purged past it.
func (m *metamorphic) run() error {
	if err := m.w.openWith(m.options(), true); err != nil {
		return err
	}
	c := m.client()
	var reader *trx.Trx
	for n := 1; n <= 120; n++ {
		if err := c.transaction(); err != nil {
			return err
		}
		if len(m.w.fails) > 0 {
			return fmt.Errorf("transaction %d: %s", n, m.w.fails[0])
		}
		if n%11 == 0 && reader == nil {
			reader = m.w.eng.Trx.Begin(trx.Options{})
			reader.Snapshot()
		}
		if n%11 == 7 && reader != nil {
			if err := m.note(reader); err != nil {
				return err
			}
			m.w.eng.Trx.End(reader)
			reader = nil
		}
		restart := m.v.restartEvery > 0 && n%m.v.restartEvery == 0
		kill := m.v.killEvery > 0 && n%m.v.killEvery == 0
		if (restart || kill) && reader == nil {
			if err := m.restart(kill); err != nil {
				return err
			}
			c.worker = m.w.eng.Tables.NewWorker()
		}
	}
	if reader != nil {
		m.w.eng.Trx.End(reader)
	}
	last := m.w.eng.Trx.Begin(trx.Options{})
	if err := m.note(last); err != nil {
		return err
	}
	m.w.eng.Trx.End(last)
	return m.w.eng.Close()
}

func (m *metamorphic) client() *client {
	return &client{w: m.w, rng: m.rng, worker: m.w.eng.Tables.NewWorker()}
}

// restart ends the engine and opens it again. A kill comes after the log was made
// durable: what was committed must be there.
func (m *metamorphic) restart(kill bool) error {
	want, _ := m.w.eng.Applied()
	if kill {
		if err := m.w.eng.Log.FlushTo(m.w.eng.Log.Published()); err != nil {
			return err
		}
		m.fs.Crash()
		_ = m.w.eng.Close()
		m.fs = m.fs.CrashImage()
	} else if err := m.w.eng.Close(); err != nil {
		return err
	}
	if err := m.w.openWith(m.options(), false); err != nil {
		return err
	}
	if got, _ := m.w.eng.Applied(); got != want {
		return fmt.Errorf("CSN %d after a restart at %d", got, want)
	}
	return nil
}

// note adds what the transaction's snapshot sees to the digest.
func (m *metamorphic) note(t *trx.Trx) error {
	worker := m.w.eng.Tables.NewWorker()
	worker.Use(t)
	var sc table.Scanner
	for n, tbl := range m.w.tables {
		for index := range tbl.Schema.Keys {
			got, err := scanRows(worker, &sc, tbl, t.Snapshot(), table.Range{Index: index})
			if err != nil {
				return err
			}
			fmt.Fprintln(m.sum, n, index, t.Snapshot().CSN)
			for _, id := range slices.Sorted(maps.Keys(got)) {
				fmt.Fprintln(m.sum, id, got[id].String())
			}
		}
	}
	return nil
}
