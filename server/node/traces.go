package node

import (
	"fmt"
	"strconv"

	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/server/tracing"
)

// openTraces makes what takes spans, if a collector is named.
func (n *Node) openTraces() (err error) {
	endpoint := n.cfg.String("trace_endpoint")
	if endpoint == "" {
		return nil
	}
	n.traces, err = tracing.Open(tracing.Options{Endpoint: endpoint, Ratio: n.cfg.Float("trace_sample_ratio"),
		PerSecond: int(n.cfg.Int("trace_max_per_second")), Queue: int(n.cfg.Int("trace_queue_size")), Log: n.log})
	if err != nil {
		return fmt.Errorf("trace_endpoint %w", err)
	}
	return nil
}

// recorder is what statements and the group record spans with; nil: nothing.
func (n *Node) recorder() trace.Recorder {
	if n.traces == nil {
		return nil
	}
	return n.traces
}

// sendTraces begins to send spans, now that the node knows which member it is.
func (n *Node) sendTraces() {
	if n.traces != nil {
		n.traces.Start(tracing.Node{Group: uuid(n.group.Group()), Member: strconv.FormatUint(n.group.ID(), 10), Version: Version})
	}
}
