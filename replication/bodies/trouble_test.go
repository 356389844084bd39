package bodies

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A failed sync on a member that the commit needs costs one more transfer, whether it was of a piece or of
// the whole body.
func TestFailedSyncNeeded(t *testing.T) {
	for _, frames := range []int{2, 20} {
		run(t, 15, 3, simnettest.Options{}, func(r *rig) {
			r.nodes[2].down()
			bad := r.nodes[1]
			in := bad.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1})
			s := r.nodes[0].session()
			for range frames {
				s.write(1_000_000)
				env.Sleep(r.sim, 50*time.Millisecond)
			}
			if frames > 2 {
				r.until("a piece is lost", func() bool { return in.Hits() == 1 })
				env.Sleep(r.sim, time.Second)
			}
			began := r.sim.Monotonic()
			l, err := s.finish()
			if wait := r.sim.Monotonic() - began; err != nil || in.Hits() != 1 || wait > wantAfter+time.Second {
				r.fatalf("%v, after %v; %d syncs failed", err, wait, in.Hits())
			}
			r.commit(l)
			s.abort()
		})
	}
}
