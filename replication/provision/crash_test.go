package provision

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

var crashPoints = flag.Int("crash.points", race.Fewer(40, 8), "in how many places TestCrash crashes")

// smallWorld is the directory of a donor with little in it, made once.
var smallWorld *simfile.FS

func smallDonor(t testing.TB) *simfile.FS {
	t.Helper()
	if smallWorld == nil {
		s := simenv.New(1)
		s.Run(func() {
			fsys := simfile.New(s, 1)
			eng := openEngine(t, s, fsys)
			createSchema(t, eng, "db")
			for _, name := range []string{"a", "b"} {
				create(t, eng, plainTable("db", name))
				fill(t, eng, "db", name, 300, func(i int, _ *table.Table) []types.Value { return plainRow(int64(i)) })
			}
			fillHistory(t, eng, 5)
			if err := eng.Close(); err != nil {
				t.Fatal(err)
			}
			smallWorld = fsys
		})
	}
	return smallWorld
}

// simRun runs fn with a donor in a simulation.
func simRun(t testing.TB, seed uint64, fn func(e env.Env, d *donor)) (trace uint64) {
	t.Helper()
	world := smallDonor(t)
	s := simenv.New(seed)
	s.Run(func() {
		d := newDonor(t, s, world.CrashImageFor(s, seed), nil)
		fn(s, d)
		d.close()
	})
	return s.TraceHash()
}

// provisionSim receives into a file system, swaps and opens the engine.
func provisionSim(e env.Env, d *donor, fsys file.FS) (eng *storage.Engine, m Manifest, err error) {
	home, err := OpenHome(fsys)
	if err != nil {
		return nil, m, err
	}
	m, done := home.Received()
	if !done {
		if m, err = receive(receiverOptions(e, home, d.net)); err != nil {
			return nil, m, err
		}
		if err := home.Swap(nil); err != nil {
			return nil, m, err
		}
	}
	opt := engineOptions()
	opt.FS, opt.Env = home.Data(), e
	eng, err = storage.Open(opt)
	return eng, m, err
}

// TestCrash: whenever the machine of the receiver loses power, nothing half received
// is ever taken for data, and another run completes it.
func TestCrash(t *testing.T) {
	var total int64
	simRun(t, 1, func(e env.Env, d *donor) {
		fsys := simfile.New(e, 1)
		eng, m, err := provisionSim(e, d, fsys)
		if err != nil {
			t.Fatal(err)
		}
		total = fsys.Mutations()
		same(t, d.eng, eng, &m)
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	rng := rand.New(rand.NewPCG(uint64(*crashPoints), 5))
	for i := range *crashPoints {
		k := total - int64(i) // each of the last, where the swap is
		if i >= *crashPoints/2 {
			k = 1 + rng.Int64N(total)
		}
		seed := uint64(k)
		simRun(t, seed, func(e env.Env, d *donor) {
			if problem := crashOnce(t, e, d, seed, k, rng); problem != "" {
				t.Errorf("crash at change %d of %d: %s", k, total, problem)
			}
		})
	}
}

func crashOnce(t testing.TB, e env.Env, d *donor, seed uint64, k int64, rng *rand.Rand) string {
	fsys := simfile.New(e, seed)
	fsys.CrashAt(k)
	for life := 0; ; life++ {
		eng, m, err := provisionSim(e, d, fsys)
		if err == nil {
			same(t, d.eng, eng, &m)
			if err := eng.Close(); err != nil && !fsys.Crashed() {
				return err.Error()
			}
			names, err := fsys.List(".")
			if !fsys.Crashed() && (err != nil || len(names) != 2) {
				return fmt.Sprintf("left: %v, %v", names, err)
			}
			return ""
		}
		if !fsys.Crashed() {
			return fmt.Sprintf("life %d: %v", life, err)
		}
		fsys = fsys.CrashImage()
		if life == 0 && rng.IntN(2) == 0 {
			fsys.CrashAt(fsys.Mutations() + 1 + rng.Int64N(200)) // again, while going on
		}
		env.Sleep(e, time.Second)
	}
}

// TestSameSeed: a simulation of all this takes the same course again.
func TestSameSeed(t *testing.T) {
	run := func() uint64 {
		return simRun(t, 7, func(e env.Env, d *donor) {
			eng, _, err := provisionSim(e, d, simfile.New(e, 7))
			if err != nil {
				t.Fatal(err)
			}
			_ = eng.Close()
		})
	}
	if a, b := run(), run(); a != b {
		t.Errorf("trace hashes %x and %x", a, b)
	}
}
