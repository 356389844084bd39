package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/transport"
)

// fakeEtcd is etcd in memory: revisions, leases, and times when it does not answer.
type fakeEtcd struct {
	mu     sync.Mutex
	rev    int64
	keys   map[string]fakeKey
	leases map[lease]chan struct{}
	next   lease
	down   bool
}

type fakeKey struct {
	pair
	lease lease
}

func newFakeEtcd() *fakeEtcd {
	return &fakeEtcd{keys: map[string]fakeKey{}, leases: map[lease]chan struct{}{}}
}

var errDown = errors.New("no etcd")

func (f *fakeEtcd) list(_ context.Context, prefix string) (all []pair, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, errDown
	}
	for key, k := range f.keys {
		if strings.HasPrefix(key, prefix) {
			all = append(all, k.pair)
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return all, nil
}

func (f *fakeEtcd) swap(_ context.Context, key string, rev int64, value string, l lease) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch _, alive := f.leases[l]; {
	case f.down, l != 0 && !alive:
		return false, errDown
	case f.keys[key].rev != rev:
		return false, nil
	}
	f.rev++
	if value == "" {
		delete(f.keys, key)
	} else {
		f.keys[key] = fakeKey{pair{key, value, f.rev}, l}
	}
	return true, nil
}

func (f *fakeEtcd) put(ctx context.Context, key, value string, l lease) error {
	f.mu.Lock()
	rev := f.keys[key].rev
	f.mu.Unlock()
	ok, err := f.swap(ctx, key, rev, value, l)
	if err == nil && !ok {
		err = errDown
	}
	return err
}

func (f *fakeEtcd) grant(context.Context, time.Duration) (lease, <-chan struct{}, func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return 0, nil, nil, errDown
	}
	f.next++
	l, lost := f.next, make(chan struct{})
	f.leases[l] = lost
	return l, lost, func() { f.expire(l) }, nil
}

// expire ends a lease, with the keys under it.
func (f *fakeEtcd) expire(l lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lost := f.leases[l]; lost != nil {
		close(lost)
		delete(f.leases, l)
	}
	for key, k := range f.keys {
		if k.lease == l {
			delete(f.keys, key)
		}
	}
}

func (f *fakeEtcd) close() error { return nil }

func (f *fakeEtcd) node(t *testing.T, addr string, expect int) *Etcd {
	t.Helper()
	d, err := newEtcd(EtcdOptions{Name: "c", Addr: addr, Expect: expect}, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// However many nodes come at once, one charter is written, and all see the same.
func TestEtcdCharter(t *testing.T) {
	f, ctx := newFakeEtcd(), context.Background()
	var nodes []*Etcd
	for i := range 5 {
		nodes = append(nodes, f.node(t, fmt.Sprintf("n%d:1", i), 3))
	}
	p, err := nodes[0].Plan(ctx)
	if err != nil || p.complete() || p.Group != (transport.GroupID{}) {
		t.Fatalf("alone: %+v, %v", p, err)
	}
	plans := make([]*Plan, len(nodes))
	var wg sync.WaitGroup
	for i, d := range nodes {
		wg.Go(func() {
			for plans[i] == nil || !plans[i].complete() {
				var err error
				if plans[i], err = d.Plan(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, p := range plans {
		if p.Group != plans[0].Group || p.Group == (transport.GroupID{}) || p.Digest() != plans[0].Digest() || len(p.Nodes) != 3 || p.Began {
			t.Errorf("%+v and %+v", p, plans[0])
		}
	}
	late := f.node(t, "late:1", 0)
	if p, err := late.Plan(ctx); err != nil || p.ID("late:1") != 0 || p.Digest() != plans[0].Digest() {
		t.Errorf("joiner: %+v, %v", p, err)
	}
	eventually(t, "a node that is no founder has told where it is", func() bool {
		c, err := late.Contacts(ctx)
		if err != nil || slices.Contains(c, "late:1") {
			t.Fatalf("contacts %v, %v", c, err)
		}
		return slices.Contains(c, "n4:1")
	})
}

func TestEtcdMembersAndLeader(t *testing.T) {
	f, ctx := newFakeEtcd(), context.Background()
	a, b := f.node(t, "a:1", 2), f.node(t, "b:1", 2)
	eventually(t, "charter", func() bool {
		_, _ = a.Plan(ctx)
		p, err := b.Plan(ctx)
		return err == nil && p.complete()
	})
	p, _ := a.Plan(ctx)
	g := p.Group
	announce := func(d *Etcd, id, term uint64) {
		t.Helper()
		eventually(t, "announcement", func() bool {
			return d.Announce(ctx, Announcement{Group: g, ID: id, Addr: d.opts.Addr, Term: term}) == nil
		})
	}
	view := func() string {
		v, err := a.View(ctx)
		if err != nil {
			return err.Error()
		}
		s := fmt.Sprint(len(v.Members), " members")
		if v.Leader != nil {
			s += fmt.Sprintf(", %d leads term %d at %s", v.Leader.ID, v.Leader.Term, v.Leader.Addr)
		}
		return s
	}
	expect := func(want string) {
		t.Helper()
		eventually(t, want, func() bool { return view() == want })
	}
	announce(a, 1, 0)
	announce(b, 2, 0)
	expect("2 members")
	if p, _ := a.Plan(ctx); p.Began {
		t.Error("the group has begun without a leader")
	}
	announce(a, 1, 3)
	expect("2 members, 1 leads term 3 at a:1")
	if p, _ := a.Plan(ctx); !p.Began {
		t.Error("the group has not begun")
	}
	announce(b, 2, 4)
	expect("2 members, 2 leads term 4 at b:1")
	announce(a, 1, 3) // has not heard of term 4
	expect("2 members, 2 leads term 4 at b:1")
	announce(a, 1, 0)
	expect("2 members, 2 leads term 4 at b:1")
	announce(b, 2, 0)
	expect("2 members")
	announce(b, 2, 5)
	// A lease that is lost is replaced; the leader repeats itself.
	f.mu.Lock()
	l := f.keys["/trireme/c/members/2"].lease
	f.mu.Unlock()
	f.expire(l)
	eventually(t, "another lease", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		k, found := f.keys["/trireme/c/members/2"]
		return found && k.lease != l
	})
	expect("2 members")
	announce(b, 2, 5)
	expect("2 members, 2 leads term 5 at b:1")
	// An outage is an error, and over when it is over.
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
	if _, err := b.Plan(ctx); !errors.Is(err, errDown) {
		t.Errorf("plan: %v", err)
	}
	if err := b.Announce(ctx, Announcement{Group: g, ID: 2, Addr: "moved:1", Term: 6}); !errors.Is(err, errDown) {
		t.Errorf("announcement: %v", err)
	}
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
	eventually(t, "the new address", func() bool {
		v, err := a.View(ctx)
		return err == nil && len(v.Members) == 2 && v.Members[1].Addr == "moved:1"
	})
	b.Close()
	expect("1 members")
}

func TestEtcdRefuses(t *testing.T) {
	f, ctx := newFakeEtcd(), context.Background()
	for want, opts := range map[string]EtcdOptions{
		"may have a slash": {Name: "a/b", Addr: "a:1"},
		"is no address":    {Name: "c", Addr: "a"},
		"a cluster's name": {Addr: "a:1"},
	} {
		if _, err := newEtcd(opts, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := NewEtcd(EtcdOptions{Name: "c", Addr: "a:1"}); err == nil || !strings.Contains(err.Error(), "no endpoint") {
		t.Errorf("no endpoint: %v", err)
	}
	d := f.node(t, "a:1", 1)
	for want, value := range map[string]string{
		"key /trireme/c/charter: invalid character":        "garbage",
		`key /trireme/c/charter: transport: "x" is no`:     `{"nodes":["a:1"],"group":"x"}`,
		"key /trireme/c/charter: discovery: an address is": `{"nodes":["a:1","a:1"],"group":"x"}`,
	} {
		if err := f.put(ctx, "/trireme/c/charter", value, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Plan(ctx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
