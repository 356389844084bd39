package commit

import (
	"context"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// finishWait is a session that waits for transactions that it has learned from.
type finishWait struct {
	index  uint64
	err    error
	done   bool
	parker env.Parker
}

// askEvery is how often a wait that may be ended asks whether it is.
const askEvery = 20 * time.Millisecond

// WaitFinished implements txn.CommitLog. Once the pipeline is closed it waits no
// longer: then it is the caller that is to be rolled back.
func (p *Pipeline) WaitFinished(ctx context.Context, index uint64, ended func() error) error {
	if p.applied() >= index {
		return nil
	}
	w := &finishWait{index: index, parker: p.env.NewParker()}
	p.mu.Lock()
	if !p.inDoubt(index) {
		p.mu.Unlock()
		// Finished, or failed, between the look and the lock.
		if p.applied() >= index {
			return nil
		}
		return ErrRolledBack
	}
	if p.term == 0 {
		defer p.mu.Unlock()
		return p.refused
	}
	p.waiters = append(p.waiters, w)
	p.mu.Unlock()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, w.parker.Unpark)()
	}
	for {
		stop := context.Cause(ctx)
		if stop == nil && ended != nil {
			stop = ended()
		}
		p.mu.Lock()
		done := w.done
		if !done && stop != nil {
			w.done, w.err, done = true, stop, true
		}
		p.mu.Unlock()
		switch {
		case done:
			return w.err
		case ended != nil:
			w.parker.ParkFor(askEvery)
		default:
			w.parker.Park()
		}
	}
}

func (p *Pipeline) inDoubt(index uint64) bool {
	return len(p.doubt) > 0 && index >= p.doubt[0].index && index <= p.doubt[len(p.doubt)-1].index
}

// applied is the index up to which the engine has the log.
func (p *Pipeline) applied() uint64 {
	_, pos := p.opt.Engine.Applied()
	return pos.Index
}

// wakeFinished answers those that wait for entries up to the index.
func (p *Pipeline) wakeFinished(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.waiters[:0]
	for _, w := range p.waiters {
		if !w.done && w.index > index {
			kept = append(kept, w)
			continue
		}
		w.done = true
		w.parker.Unpark()
	}
	clear(p.waiters[len(kept):])
	p.waiters = kept
}

// loseFinished answers all that wait: what they wait for is lost, or unknown.
func (p *Pipeline) loseFinished(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiters {
		if !w.done {
			w.done, w.err = true, reason
			w.parker.Unpark()
		}
	}
	clear(p.waiters)
	p.waiters = p.waiters[:0]
}
