package group_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// noBodies is the transport of a member that gets no bodies of large transactions while it is the one
// that is shut.
type noBodies struct {
	transport.Transport
	member uint64
	shut   *uint64
}

func (t noBodies) OpenBulk(ctx context.Context, c transport.Call) (transport.BulkReader, error) {
	if *t.shut == t.member && strings.HasPrefix(c.Kind, "large-") {
		return nil, errors.New("no bodies")
	}
	return t.Transport.OpenBulk(ctx, c)
}

// A member that waits for the body of an entry until all logs have been purged of it is given its
// data by another.
func TestPurgedBody(t *testing.T) {
	for seed := range uint64(3) {
		shut := uint64(0)
		options := func(o *group.Options) {
			o.LargeThreshold, o.LogFileSize, o.LogKeep, o.PurgeInterval = 200, 8<<10, 16<<10, time.Second
			open := o.Transport
			o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
				tr, err := open(id, h)
				return noBodies{tr, o.ID, &shut}, err
			}
		}
		simulate(t, seed, 3, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			behind := r.others(l)[0]
			createFruit(t, l.node)
			shut = behind.id
			var acked uint64
			for i := range 300 {
				acked = insertTraced(t, l.node, 1_000_000_000+i) // some 300 bytes
			}
			env.Sleep(r.sim, 3*time.Second)
			for i := range 20 {
				acked = insertTraced(t, l.node, i)
			}
			if !r.within(time.Minute, func() bool { return behind.node != nil && behind.node.Status().Number >= acked }) {
				t.Errorf("seed %d: member %d stays behind transaction %d: %+v", seed, behind.id, acked, behind.node.Status())
			}
		})
	}
}
