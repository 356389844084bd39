package group_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// overheard is a handler that knows which process of each member has sent something last.
type overheard struct {
	transport.Handler
	process map[uint64]uint64
}

func (h *overheard) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	h.process[from] = incarnation
	h.Handler.Receive(from, incarnation, msgs)
}

// Whoever hears two leaders of one term stops, and no start in its directory takes part in either: only a directory that was
// emptied, or one that an operator keeps, comes up again. The member with the lead is no exception.
func TestStopBetweenTwoLeadersStays(t *testing.T) {
	for _, leads := range []bool{false, true} {
		handlers := map[uint64]*overheard{}
		options := func(o *group.Options) {
			listen := o.Transport
			o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
				handlers[o.ID] = &overheard{h, map[uint64]uint64{}}
				return listen(id, handlers[o.ID])
			}
		}
		simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			n, rival := r.others(l)[0], r.others(l)[1]
			r.writes("before", 3, r.nodes...)
			if leads {
				n = l
			}
			env.Sleep(r.sim, time.Second)
			h := handlers[n.id]
			h.Receive(rival.id, h.process[rival.id], []*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: proto.Uint64(rival.id),
				To: proto.Uint64(n.id), Term: proto.Uint64(n.node.Status().Term)}})
			r.stopped(n)
			if err := n.node.Err(); !errors.Is(err, group.ErrTwoLeaders) || !strings.Contains(err.Error(), "docs/operations-group.md") {
				t.Errorf("leads %v: it has stopped: %v", leads, err)
			}
			n.kill()
			start := func() (*group.Node, error) {
				return group.Open(group.Options{Env: r.sim, FS: n.fs, Group: [16]byte{9}, ID: n.id, Founders: r.members(), LogPreallocate: 64 << 10,
					Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1},
					Transport: func(id transport.Identity, h transport.Handler) (tr transport.Transport, err error) {
						n.net, err = r.net.Listen(simnettest.Config{Addr: n.addr, Identity: id, LogFormat: group.LogFormat}, h)
						return n.net, err
					}})
			}
			for range 2 {
				if _, err := start(); !errors.Is(err, group.ErrTwoLeaders) {
					t.Fatalf("leads %v: it starts again: %v", leads, err)
				}
			}
			if err := group.CheckFiles(n.fs, r.sim); !errors.Is(err, group.ErrTwoLeaders) {
				t.Errorf("leads %v: a check says %v", leads, err)
			}
			if leads { // it is the one that is kept
				made := n.fs.KillImage()
				if _, err := run(regroup(r, made)); err != nil {
					t.Errorf("it does not become the first of a new group: %v", err)
				} else if err := group.CheckFiles(made, r.sim); err != nil {
					t.Errorf("the first of a new group: %v", err)
				}
			}
			if err := n.fs.Remove("two-leaders"); err != nil {
				t.Error(err)
			} else if n.node, err = start(); err != nil {
				t.Errorf("leads %v: an operator has looked, and it does not start: %v", leads, err)
			}
		})
	}
}
