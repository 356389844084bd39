package discovery

import (
	"context"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/replication/transport"
)

// gate is a transport's handler that hands everything on to another one, once there
// is one. Before, it takes nothing.
type gate struct {
	inner atomic.Pointer[transport.Handler]
}

var _ transport.Handler = (*Bootstrap)(nil)

func (g *gate) set(h transport.Handler) { g.inner.Store(&h) }

func (g *gate) with(f func(h transport.Handler)) {
	if h := g.inner.Load(); h != nil {
		f(*h)
	}
}

// errEmpty is what a node without a group answers.
var errEmpty = &transport.Failure{Text: "the node belongs to no group yet"}

// Receive implements [transport.Handler].
func (g *gate) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	g.with(func(h transport.Handler) { h.Receive(from, incarnation, msgs) })
}

// ReportUnreachable implements [transport.Handler].
func (g *gate) ReportUnreachable(id uint64) {
	g.with(func(h transport.Handler) { h.ReportUnreachable(id) })
}

// ReportGone implements [transport.Handler].
func (g *gate) ReportGone(id, incarnation uint64) {
	g.with(func(h transport.Handler) { h.ReportGone(id, incarnation) })
}

// ReportRefused implements [transport.Handler].
func (g *gate) ReportRefused(id uint64) {
	g.with(func(h transport.Handler) { h.ReportRefused(id) })
}

// ReportConnected implements [transport.Handler].
func (g *gate) ReportConnected(id uint64) {
	g.with(func(h transport.Handler) { h.ReportConnected(id) })
}

// ReportReached implements [transport.Handler].
func (g *gate) ReportReached(id uint64) {
	g.with(func(h transport.Handler) { h.ReportReached(id) })
}

// ReportRejected implements [transport.Handler].
func (g *gate) ReportRejected(id uint64, r *transport.Rejection) {
	g.with(func(h transport.Handler) { h.ReportRejected(id, r) })
}

// Answer implements [transport.Handler].
func (g *gate) Answer(ctx context.Context, kind string, payload []byte) ([]byte, error) {
	if h := g.inner.Load(); h != nil {
		return (*h).Answer(ctx, kind, payload)
	}
	return nil, errEmpty
}

// Bulk implements [transport.Handler].
func (g *gate) Bulk(ctx context.Context, kind string, payload []byte, w transport.BulkWriter) error {
	if h := g.inner.Load(); h != nil {
		return (*h).Bulk(ctx, kind, payload, w)
	}
	return errEmpty
}
