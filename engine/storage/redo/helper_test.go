package redo

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tiny returns options whose ring and file are far below what users may ask for,
// so that a short test laps both many times.
func tiny(fsys file.FS, e env.Env) Options {
	opt := Options{FS: fsys, Env: e, Dir: "redo", FlushInterval: 50 * time.Millisecond}.withDefaults()
	opt.BufferSize = 4 << 10
	opt.Capacity = margin + 24<<10
	return opt
}

// simulate runs main in a simulation and names the seed if it fails.
func simulate(t *testing.T, seed uint64, main func(s *simenv.Sim)) uint64 {
	t.Helper()
	s := simenv.New(seed)
	s.StepLimit = 2_000_000
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("seed %d: %v", seed, r)
		}
	}()
	s.Run(func() { main(s) })
	return s.TraceHash()
}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	ok(err)
	return v
}

func assert(cond bool, format string, args ...any) {
	if !cond {
		panic(fmt.Sprintf(format, args...))
	}
}

// payloadOf makes n bytes that depend on salt.
func payloadOf(salt uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		salt = salt*6364136223846793005 + 1442695040888963407
		b[i] = byte(salt >> 56)
	}
	b[0] = byte(KindWrite)
	return b
}

// add logs one group without waiting for capacity.
func add(l *Log, payload []byte) (start, end page.LSN) {
	start, end = l.Reserve(len(payload))
	l.Fill(start, payload)
	l.Publish(start, end)
	return start, end
}

type scanned struct {
	start, end page.LSN
	payload    []byte
}

type collector []scanned

func (c *collector) scan(start, end page.LSN, payload []byte) error {
	*c = append(*c, scanned{start, end, bytes.Clone(payload)})
	return nil
}

// reopen opens the log and returns what the scan saw.
func reopen(opt Options) (*Log, collector, error) {
	var c collector
	l, err := open(opt, c.scan)
	return l, c, err
}

// damage flips a bit of the log file.
func damage(fsys file.FS, off int64) {
	f := must(fsys.Open("redo/"+fileName, file.OpenOptions{}))
	b := make([]byte, 1)
	must(f.ReadAt(b, off))
	b[0] ^= 0x10
	must(f.WriteAt(b, off))
	ok(f.Sync())
	ok(f.Close())
}
