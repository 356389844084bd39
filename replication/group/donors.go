package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport"
)

// Who is asked how it stands before it gives this member its data has so long to answer, and may be so far behind.
const (
	donorAsk = time.Second
	donorLag = 2 * time.Second
)

// donors are the members to ask for data: who has the snapshot that is being received, then followers, so that the leader has
// its hands free, then who said that data are needed, then the contacts.
func (p *provisioning) donors() []transport.Call {
	calls := p.candidates()
	p.mu.Lock()
	defer p.mu.Unlock()
	serves := p.serves
	if serves == nil {
		return calls
	}
	return append([]transport.Call{*serves}, slices.DeleteFunc(calls, func(c transport.Call) bool {
		return c.To == serves.To && c.Addr == serves.Addr
	})...)
}

// candidates are those who can be asked. A member that joins knows addresses only.
func (p *provisioning) candidates() (calls []transport.Call) {
	n := p.n
	p.mu.Lock()
	donor := p.donor
	p.mu.Unlock()
	for _, s := range n.transport.Status() {
		if s.Connected && s.ID != donor {
			calls = append(calls, transport.Call{To: s.ID})
		}
	}
	if donor != 0 {
		calls = append(calls, transport.Call{To: donor})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, addr := range n.contact {
		if n.opt.Bootstrap == nil || addr != n.opt.Bootstrap.Addr {
			calls = append(calls, transport.Call{Addr: addr})
		}
	}
	return calls
}

// ranked are the candidates, the best first, as they say that they stand.
func (p *provisioning) ranked(ctx context.Context) []transport.Call {
	calls := p.candidates()
	type candidate struct {
		call transport.Call
		rank int
	}
	all := make([]candidate, len(calls))
	asking := env.NewGroup(p.n.opt.Env)
	for i, call := range calls {
		asking.Go("donor", func() {
			all[i].call = call
			call.Timeout = donorAsk
			s := p.n.statusOf(ctx, call)
			all[i].rank = s.donorRank()
		})
	}
	asking.Wait()
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
	for i := range all {
		calls[i] = all[i].call
	}
	return calls
}

// donorRank is the least for who should give its data: a follower that has what the group has agreed on and reads its disk, then the
// leader, then any other.
func (s *Status) donorRank() int {
	switch {
	case s.Error != "" || s.Provisioning || s.DiskFull || s.DiskStalled > 0 || s.ReadsFail:
		return 3
	case s.Leader == s.ID && s.ID != 0:
		return 1
	case s.Leader == 0 || s.Lag.Time < 0 || s.Lag.Time > donorLag:
		return 2
	}
	return 0
}

// ask sends a request to the donor. All requests go to the same one, which keeps the
// snapshot open, until one of them fails; then the next is asked.
func (p *provisioning) ask(ctx context.Context, want provision.Want, request []byte) (provision.ChunkReader, error) {
	p.mu.Lock()
	serves := p.serves
	p.mu.Unlock()
	if serves == nil || want.Last != nil {
		donors := p.ranked(ctx)
		if len(donors) == 0 {
			return nil, fmt.Errorf("group: %w: nobody is known who could give this member its data", ErrNoQuorum)
		}
		p.mu.Lock()
		serves = &donors[p.asked%len(donors)]
		p.asked++ // whoever was asked first and could not help is not asked first again
		p.serves = serves
		p.mu.Unlock()
	}
	call := *serves
	call.Kind, call.Payload = bulkSnapshot, request
	return p.n.transport.OpenBulk(ctx, call)
}

// refused notes that a run ended with err. If that is what a donor has answered, the next run, which repeats the request, asks another.
func (p *provisioning) refused(err error) {
	var told *provision.RemoteError
	if errors.As(err, &told) {
		p.mu.Lock()
		p.serves = nil
		p.mu.Unlock()
	}
}
