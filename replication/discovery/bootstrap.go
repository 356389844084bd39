package discovery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// AskStatus is the kind of question by which nodes learn of each other's [Status].
const AskStatus = "discovery/status"

// Options configure a bootstrap. All but the last three are required.
type Options struct {
	Env       env.Env
	FS        file.FS // the node's directory
	Discovery Discovery
	Addr      string // of the node, as the plan has it
	Name      string // of the cluster
	// Begun says which member of which group the directory belongs to; zero: of none.
	Begun transport.Identity
	// Replaced are the groups that were lost and that of Begun has been made of, at most 64: what
	// still runs of them is none to join.
	Replaced []transport.GroupID

	Every      time.Duration // pause between rounds of questions; 0: 250 ms
	AskTimeout time.Duration // 0: 1 s
	Log        *slog.Logger  // is told what the node waits for; nil: nobody is
}

// Bootstrap finds out what a node should do when it starts, and tells other nodes
// that ask how far this one has come. It is the transport's handler: what is not for
// it goes on to the handler that [Bootstrap.Begin] sets.
type Bootstrap struct {
	gate
	opts  Options
	local Local
	why   string // logged last

	mu     sync.Mutex
	status Status
}

// New looks at the directory.
func New(opts Options) (*Bootstrap, error) {
	if opts.Every == 0 {
		opts.Every = 250 * time.Millisecond
	}
	if opts.AskTimeout == 0 {
		opts.AskTimeout = time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Name == "" || len(opts.Name) > maxName {
		return nil, fmt.Errorf("discovery: a cluster's name has 1 to %d bytes, not %d", maxName, len(opts.Name))
	}
	if err := checkAddr(opts.Addr); err != nil {
		return nil, err
	}
	b := &Bootstrap{opts: opts, status: Status{Name: opts.Name}}
	b.local = Local{Addr: opts.Addr, Fresh: freshGroup(opts.Env), FreshID: opts.Env.Uint64() | 1<<32}
	switch r, err := readRecord(opts.FS); {
	case opts.Begun != (transport.Identity{}):
		b.local.State, b.local.Group, b.local.ID = Begun, opts.Begun.Group, opts.Begun.Member
		if err := removeRecord(opts.FS); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case r != nil && (r.plan.Name != opts.Name || r.plan.ID(opts.Addr) != r.id):
		return nil, fmt.Errorf("discovery: the directory was prepared to found %s as member %d, and this is node %s of cluster %s; empty the directory",
			r.plan, r.id, opts.Addr, opts.Name)
	case r != nil:
		b.prepared(r)
	}
	b.tell(nil)
	return b, nil
}

// freshGroup draws a group's id, a random UUID.
func freshGroup(e env.Env) (g transport.GroupID) {
	binary.BigEndian.PutUint64(g[:], e.Uint64())
	binary.BigEndian.PutUint64(g[8:], e.Uint64())
	return version4(g)
}

// version4 makes random bytes a UUID.
func version4(g transport.GroupID) transport.GroupID {
	g[6] = g[6]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g
}

func (b *Bootstrap) prepared(r *record) {
	b.local.State, b.local.Group, b.local.ID, b.local.Founded = Prepared, r.group, r.id, r.plan
}

// tell makes the node's state known to others that ask. plan is that of an Empty
// node.
func (b *Bootstrap) tell(plan *Plan) {
	s := Status{State: b.local.State, Name: b.opts.Name, Group: b.local.Group, ID: b.local.ID, Replaced: b.opts.Replaced}
	switch {
	case b.local.State == Prepared:
		s.Nodes = b.local.Founded.Nodes
	case plan != nil:
		s.Nodes = plan.Nodes
	}
	b.mu.Lock()
	b.status = s
	b.mu.Unlock()
}

// Run asks around until it is clear what to do, and returns one of Resume, Found
// and Join. The error is that of Refuse, of the disk, or of ctx.
//
// With Found the caller makes the group's identity durable in the directory; from then on the
// directory has begun. Others may already take this node for one that has.
func (b *Bootstrap) Run(ctx context.Context, t transport.Transport) (Action, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Action{}, err
		}
		a, err := b.round(ctx, t)
		if err != nil {
			return Action{}, err
		}
		switch a.Kind {
		case Resume, Found, Join:
			return a, nil
		case Refuse:
			return Action{}, errors.New("discovery: " + a.Why)
		case Prepare:
			r := &record{group: a.Group, id: a.ID, plan: a.Plan}
			if err := r.write(b.opts.FS); err != nil {
				return Action{}, err
			}
			b.prepared(r)
			b.tell(nil)
			b.opts.Log.Info("this node founds a group", "group", a.Group.String(), "member", a.ID, "founders", a.Plan.String())
		case Wait:
			if a.Why != b.why {
				b.why = a.Why
				b.opts.Log.Info("waiting to join or found a group", "why", a.Why)
			}
			env.Sleep(b.opts.Env, b.opts.Every)
		}
	}
}

// round asks everybody once.
func (b *Bootstrap) round(ctx context.Context, t transport.Transport) (Action, error) {
	if b.local.State == Begun {
		return Decide(&b.local, nil, nil), nil
	}
	plan, err := b.opts.Discovery.Plan(ctx)
	if err != nil {
		return wait("who founds the group is not known: %v", err), nil
	}
	if plan.Name != b.opts.Name {
		return Action{}, fmt.Errorf("discovery: the plan is for cluster %q, this node for %q", plan.Name, b.opts.Name)
	}
	b.tell(plan)
	addrs := plan.Nodes
	if contacts, err := b.opts.Discovery.Contacts(ctx); err == nil {
		addrs = append(slices.Clone(addrs), contacts...)
	}
	answers := b.askAll(ctx, t, addrs)
	a := Decide(&b.local, plan, answers)
	if c, ok := b.opts.Discovery.(census); ok && a.Kind == Prepare {
		everybody, known, err := c.Everybody(ctx)
		if err != nil {
			return wait("whether there are other nodes than the founders is not known: %v", err), nil
		}
		if w, not := decideAlone(&b.local, answers, everybody); known && not {
			return w, nil
		}
	}
	if a.Kind == Found {
		b.local.State = Begun
		b.tell(nil)
	}
	return a, nil
}

// askAll asks every address but the node's own, each once.
func (b *Bootstrap) askAll(ctx context.Context, t transport.Transport, addrs []string) []Answer {
	addrs = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(addrs))), func(a string) bool { return a == b.opts.Addr })
	answers := make([]Answer, len(addrs))
	g := env.NewGroup(b.opts.Env)
	for i, addr := range addrs {
		answers[i].Addr = addr
		g.Go("discovery ask", func() {
			answers[i].Status, answers[i].Err = Probe(ctx, t, addr, b.opts.AskTimeout)
		})
	}
	g.Wait()
	return answers
}

// Probe asks the node at an address how far it has come.
func Probe(ctx context.Context, t transport.Transport, addr string, timeout time.Duration) (Status, error) {
	payload, err := t.Ask(ctx, transport.Call{Addr: addr, Kind: AskStatus, Timeout: timeout})
	if err != nil {
		return Status{}, err
	}
	s, err := decodeStatus(payload)
	if err != nil {
		return Status{}, err
	}
	return *s, nil
}

// Begin hands on to h what is not for the bootstrap, and says of the node that it is
// this member.
func (b *Bootstrap) Begin(id transport.Identity, h transport.Handler) {
	b.set(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = Status{State: Begun, Name: b.opts.Name, Group: id.Group, ID: id.Member, Replaced: b.opts.Replaced}
}

// Answer implements [transport.Handler].
func (b *Bootstrap) Answer(ctx context.Context, kind string, payload []byte) ([]byte, error) {
	if kind != AskStatus {
		return b.gate.Answer(ctx, kind, payload)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status.encode(), nil
}
