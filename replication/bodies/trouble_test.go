package bodies

import (
	"errors"
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

// A sync of a piece that fails while the whole body is synced fails it, though the second sync does not: on the
// leader, and on a member that receives it.
func TestFailedSyncBeside(t *testing.T) {
	slow := simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Delay: 5 * time.Second, Times: 1}
	begin := func(r *rig, n *node) *session {
		r.nodes[2].down()
		in := n.fs.Inject(slow)
		s := r.nodes[0].session()
		for s.b.Status().Stored < syncEveryOwn {
			s.write(1_000_000)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		r.until("a piece is being synced", func() bool { return in.Hits() == 1 })
		return s
	}
	run(t, 16, 3, simnettest.Options{}, func(r *rig) {
		s := begin(r, r.nodes[0])
		l, err := s.finish()
		if !errors.Is(err, file.ErrCrashed) || r.nodes[0].store.Pin(&l) {
			r.fatalf("COMMIT: %v", err)
		}
		s.abort()
	})
	run(t, 17, 3, simnettest.Options{}, func(r *rig) {
		s := begin(r, r.nodes[1])
		l, err := s.finish()
		if err != nil || !r.nodes[1].store.Pin(&l) {
			r.fatalf("COMMIT: %v", err)
		}
		env.Sleep(r.sim, 10*time.Second)
		if !r.nodes[1].store.Has(&l) {
			r.fatalf("a body is gone that Raft was given")
		}
		r.commit(l)
		s.abort()
	})
}
