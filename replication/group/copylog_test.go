package group

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// Copying a log ends with who wants it: a restore that is stopped does not wait for the rest.
func TestCopyLogEnds(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		fsys := simfile.New(sim, 1)
		from, err := log.Create(log.Options{FS: fsys, Env: sim, Dir: "from", Group: [16]byte{1}, Preallocate: -1}, log.Start{})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = from.Close() }()
		if err := from.Append([]log.Entry{{Index: 1, Term: 1}, {Index: 2, Term: 1}}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for _, want := range []error{nil, context.Canceled} {
			opt := log.Options{FS: fsys, Env: sim, Dir: "to", Group: [16]byte{2}, Preallocate: -1}
			if _, err := copyLog(ctx, opt, log.Start{}, 0, from); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			if err := log.Destroy(opt); err != nil {
				t.Error(err)
			}
			cancel()
		}
	})
}
