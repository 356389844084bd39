package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
)

// provisioning gives the node its data anew when the group has no log any more that
// it could go on with, or when it joins. It receives beside the data in use; then the
// node is closed, the new data take the place of the old, the log begins behind them,
// and the node opens again. Term and vote stay.
type provisioning struct {
	n *Node

	mu       sync.Mutex
	parker   env.Parker
	wanted   bool
	donor    uint64          // who said so; 0: nobody in particular
	first    uint64          // index of the first entry that the donor's log has; 0: not known
	asked    int             // how often donors were looked for
	serves   *transport.Call // the donor at work; nil: none
	receiver *provision.Receiver
	stopped  bool
	tasks    *env.Group
}

func (p *provisioning) init(n *Node) {
	p.n = n
	p.parker = n.opt.Env.NewParker()
	p.tasks = env.NewGroup(n.opt.Env)
}

func (p *provisioning) start() { p.tasks.Go("provisioning", p.run) }

func (p *provisioning) stop() {
	p.mu.Lock()
	p.stopped = true
	if p.receiver != nil {
		p.receiver.Stop()
	}
	p.mu.Unlock()
	p.parker.Unpark()
	p.tasks.Wait()
}

// want asks for new data. It does not wait, and asking again changes nothing.
func (p *provisioning) want(donor uint64) {
	p.mu.Lock()
	p.wanted, p.donor = true, donor
	p.mu.Unlock()
	p.parker.Unpark()
}

func (p *provisioning) active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// Progress says how far the node is in getting its data; ok is false if it does not.
func (n *Node) Progress() (p provision.Progress, ok bool) {
	n.provisioning.mu.Lock()
	defer n.provisioning.mu.Unlock()
	if n.provisioning.receiver == nil {
		return p, false
	}
	return n.provisioning.receiver.Progress(), true
}

func (p *provisioning) run() {
	for {
		p.mu.Lock()
		stopped, wanted := p.stopped, p.wanted
		p.mu.Unlock()
		switch {
		case stopped:
			return
		case !wanted:
			p.parker.Park()
			continue
		}
		if p.unneeded() {
			continue
		}
		if err := p.receive(); err != nil {
			if p.isStopped() {
				return
			}
			p.n.opt.Log.Error("getting data from another member", "error", err)
			p.parker.ParkFor(provisionRetry)
		}
	}
}

// unneeded asks the leader that wanted to send a snapshot whether its log reaches back
// far enough after all: it may not have known how much this member has.
func (p *provisioning) unneeded() bool {
	c, err := p.n.running()
	p.mu.Lock()
	donor := p.donor
	p.mu.Unlock()
	if err != nil || donor == 0 {
		return false
	}
	answer, err := p.n.transport.Ask(context.Background(), transport.Call{To: donor, Kind: askFirst})
	if err != nil || len(answer) != 8 {
		return false
	}
	_, pos := c.engine.Applied()
	first := binary.LittleEndian.Uint64(answer)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = first
	if pos.Index+1 < first {
		return false
	}
	p.wanted = false
	return true
}

// suits refuses a snapshot that would not do: of a member that is as far behind as this
// one, or further. Another donor is asked for the next.
func (p *provisioning) suits(m *provision.Manifest) error {
	p.mu.Lock()
	first := p.first
	p.mu.Unlock()
	var err error
	switch c, stopped := p.n.running(); {
	case m.Position.Index+1 < first:
		err = fmt.Errorf("%w: it ends at log index %d, and the leader has no log before %d", provision.ErrSnapshotGone, m.Position.Index, first)
	case stopped == nil && c.binlog.LastIndex() > m.Position.Index:
		// What this member has acknowledged must be in what takes its place.
		err = fmt.Errorf("%w: it ends at log index %d, and this member has the log up to %d",
			provision.ErrSnapshotGone, m.Position.Index, c.binlog.LastIndex())
	default:
		return nil
	}
	p.mu.Lock()
	p.serves = nil
	p.mu.Unlock()
	return err
}

func (p *provisioning) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

const provisionRetry = time.Second

// receive gets new data and puts them in place.
func (p *provisioning) receive() error {
	n := p.n
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return provision.ErrStopped
	}
	r, err := provision.NewReceiver(provision.ReceiverOptions{Home: n.home, Env: n.opt.Env, Group: n.id.group,
		Storage: n.opt.Storage, Open: p.ask, Install: p.installMembership, Attach: p.attachLog})
	p.receiver = r
	p.mu.Unlock()
	if err != nil {
		return err
	}
	n.opt.Log.Info("this member is being given its data by another")
	m, err := r.Run()
	p.mu.Lock()
	p.receiver = nil
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.install(&m)
}

// install puts what was received in the place of what is there, unless that is ahead.
func (p *provisioning) install(m *provision.Manifest) error {
	n := p.n
	keep := false
	if c := n.take(); c != nil {
		if err := c.close(); err != nil {
			n.opt.Log.Warn("closing the old data", "error", err)
		}
		// A leader with a longer log may have reached it meanwhile, and counts on what it
		// has acknowledged.
		keep = c.binlog.LastIndex() > m.Position.Index
	}
	var err error
	if keep {
		err = n.home.Discard()
	} else if err = n.forgetLog(); err == nil {
		err = n.home.Swap()
	}
	if err == nil {
		p.mu.Lock()
		p.wanted = false
		p.mu.Unlock()
		err = n.openData()
	}
	if err != nil {
		n.failed(fmt.Errorf("group: opening the data that were received: %w", err))
		return err
	}
	if keep {
		n.opt.Log.Info("this member has got more by the log meanwhile than the data that it was given: they are not needed", "csn", m.CSN, "index", m.Position.Index)
		return nil
	}
	n.opt.Log.Info("this member has its data", "csn", m.CSN, "index", m.Position.Index)
	if leader, ok := n.Leader(); ok {
		_, _ = n.transport.Ask(context.Background(), transport.Call{To: leader.ID, Kind: askProvisioned})
	}
	return nil
}

// forgetLog says that the log that the node has, which may be ahead of what the group
// has agreed on, is not to be missed.
func (n *Node) forgetLog() error {
	st, err := raftlog.OpenState(stateOptions(&n.opt, n.id))
	if err != nil {
		return err
	}
	return errors.Join(st.SetLogFile(0), st.Close())
}

// installMembership stores the membership as of the snapshot, if it is one to begin with.
func (p *provisioning) installMembership(eng *storage.Engine, w *table.Worker, m *provision.Manifest) error {
	if err := p.suits(m); err != nil {
		return err
	}
	if _, err := decodeRoster(m.Membership); err != nil {
		return err
	}
	return eng.Catalog.PutState(w, dict.Local, []byte(membershipKey), m.Membership)
}

// donors are the members to ask for data, the best first: who has the snapshot that
// is being received, unless a new one is wanted, then followers, so that the leader has
// its hands free, then who said that data are needed, then the contacts.
func (p *provisioning) donors(fresh bool) []transport.Call {
	n := p.n
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []transport.Call
	for _, s := range n.transport.Status() {
		if s.Connected && s.ID != p.donor {
			calls = append(calls, transport.Call{To: s.ID})
		}
	}
	if p.donor != 0 {
		calls = append(calls, transport.Call{To: p.donor})
	}
	n.mu.Lock()
	for _, addr := range n.contact {
		if n.opt.Bootstrap == nil || addr != n.opt.Bootstrap.Addr {
			calls = append(calls, transport.Call{Addr: addr})
		}
	}
	n.mu.Unlock()
	if serves := p.serves; serves != nil && !fresh {
		return append([]transport.Call{*serves}, slices.DeleteFunc(calls, func(c transport.Call) bool {
			return c.To == serves.To && c.Addr == serves.Addr
		})...)
	}
	if len(calls) == 0 {
		return nil
	}
	from := p.asked % len(calls)
	p.asked++ // whoever was asked first and could not help is not asked first again
	return append(calls[from:len(calls):len(calls)], calls[:from]...)
}

// ask sends a request to the donor. All requests go to the same one, which keeps the
// snapshot open, until one of them fails; then the next is asked.
func (p *provisioning) ask(ctx context.Context, want provision.Want, request []byte) (provision.ChunkReader, error) {
	p.mu.Lock()
	serves := p.serves
	p.mu.Unlock()
	if serves == nil || want.Last != nil {
		donors := p.donors(true)
		if len(donors) == 0 {
			return nil, fmt.Errorf("group: %w: nobody is known who could give this member its data", ErrNoQuorum)
		}
		serves = &donors[0]
		p.mu.Lock()
		p.serves = serves
		p.mu.Unlock()
	}
	call := *serves
	call.Kind, call.Payload = bulkSnapshot, request
	return p.n.transport.OpenBulk(ctx, call)
}

// source makes the donor's side of a core.
func (c *core) openSource(id *identity) (*provision.Source, error) {
	return provision.NewSource(provision.SourceOptions{Engine: c.engine, Env: c.env, Group: id.group,
		AtBoundary: c.finisher.between,
		Membership: func() []byte {
			c.membership.mu.Lock()
			defer c.membership.mu.Unlock()
			return c.membership.roster.encode()
		},
		Committed: c.committed.Load,
	})
}

// between runs fn between two entries.
func (f *finisher) between(fn func()) error {
	done := f.n.env.NewParker()
	var err error
	ok := false
	f.add(finishItem{call: func(e error) {
		if err = e; err == nil {
			fn()
		}
		ok = true
		done.Unpark()
	}})
	for {
		if done.ParkFor(time.Second); ok {
			return err
		}
		if f.n.isStopped() {
			return ErrStopped
		}
	}
}
