package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/txn"
)

// Bodies are the bodies of large transactions, which lie in files of their own and do not
// pass through the pipeline.
type Bodies interface {
	// Finish waits until a majority of the group has the whole body on disk, and describes it.
	// It ends with the context's cause, with what stop returns, which it asks now and then, or with an [ErrNotLeader] when this node has lost the lead.
	Finish(ctx context.Context, b *body.File, stop func() error) (entry.LargeBody, error)
	// Pin keeps a body that Finish has described for the log, whatever its session does. Unpin
	// takes that back: its entry was refused. Pin is false if the body is not here any more.
	Pin(l *entry.LargeBody) bool
	Unpin(l *entry.LargeBody)
}

// errLostBody says that a body that Finish has described is not to be relied on any more.
var errLostBody = errors.New("commit: this node cannot sync or read the file of the large transaction, as its log says; it is rolled back")

// pin keeps the body of a proposal, if it has one, from before Raft is given the entry.
func (p *Pipeline) pin(pr *Proposal) error {
	if l := pr.txns[0].Body; l != nil && !p.opt.Bodies.Pin(l) {
		return errLostBody
	}
	return nil
}

// unpin ends pin for a proposal that is not in the log.
func (p *Pipeline) unpin(pr *Proposal) {
	if l := pr.txns[0].Body; l != nil {
		p.opt.Bodies.Unpin(l)
	}
}

// finishBody makes ready to propose a transaction whose events are in a body. Its entry is
// small: others wait for neither its bytes nor their compression.
func (p *Pipeline) finishBody(ctx context.Context, t *txn.Txn) error {
	if p.opt.Bodies == nil || !t.Large() {
		return nil
	}
	b, err := t.SealEvents()
	if err != nil {
		return err
	}
	if err := p.over(ctx); err != nil {
		return err
	}
	began := p.env.Monotonic()
	l, err := p.opt.Bodies.Finish(ctx, b, t.Killed)
	if err != nil {
		return err
	}
	t.Body, t.BodyWait = &l, p.env.Monotonic()-began
	return nil
}

// encodeLarge makes the entry of a transaction that has a body. It opens a file, which the
// body is in. Error: a member has come since whose program does not know such entries.
func (p *Pipeline) encodeLarge(pr *Proposal, e *entry.Envelope) error {
	t := pr.txns[0]
	version := p.opt.Proposer.Opens()
	if version < entry.LargeVersion {
		return fmt.Errorf("%w: a member's program is too old for transactions as large as this one", event.ErrTooLarge)
	}
	e.Kind, e.Codec, e.Count = entry.Large, entry.Plain, 1
	e.Flags |= entry.FlagRotate
	e.FileVersion = version
	x := p.describe(t, pr.first, e, version)
	pr.time = e.Time
	p.body = entry.AppendLarge(p.body[:0], t.Body, &x, e.Time)
	e.RawLength = uint32(len(p.body))
	pr.Data = make([]byte, entry.EnvelopeSize+len(p.body))
	e.Put(pr.Data)
	copy(pr.Data[entry.EnvelopeSize:], p.body)
	p.stats.Large.Add(1)
	p.enc.stats.StoredBytes.Add(uint64(t.Body.Stored))
	p.enc.stats.RawBytes.Add(uint64(t.Body.Plain))
	return nil
}
