package apply

import (
	"time"

	"github.com/triremedb/trireme/internal/trace"
)

// beginSpan notes that a worker has taken a transaction that is part of a trace. ahead is for how long it has been
// applied by then, if that began before its commit.
func (a *Applier) beginSpan(j *job, ahead time.Duration) {
	waited := a.opt.Env.Monotonic() - j.item.queued
	attributes := make([]trace.Attribute, 0, 7) // all of them
	j.span = &trace.Span{Context: a.opt.Trace.Child(j.Trace), Parent: j.Trace.Span, Kind: trace.Consumer, Name: "apply",
		Start: a.opt.Env.Now(), Attributes: append(attributes,
			trace.Attribute{Key: "trireme.member", Number: int64(a.opt.Member)},
			trace.Attribute{Key: "trireme.transaction", Number: int64(j.Number)},
			trace.Attribute{Key: "trireme.log_index", Number: int64(j.item.Index)},
			trace.Attribute{Key: "trireme.wait_us", Number: waited.Microseconds()})}
	if j.isLarge() {
		j.span.Attributes = append(j.span.Attributes, trace.Attribute{Key: "trireme.large_bytes", Number: j.item.large.Plain},
			trace.Attribute{Key: "trireme.ahead_us", Number: ahead.Microseconds()})
	}
}

// endSpans tells of transactions that are visible now.
func (a *Applier) endSpans(jobs []*job) {
	var now time.Time
	for _, j := range jobs {
		if j.span == nil {
			continue
		}
		if now.IsZero() {
			now = a.opt.Env.Now()
		}
		j.span.End = now
		a.opt.Trace.Record(j.span)
		j.span = nil
	}
}
