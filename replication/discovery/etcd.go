package discovery

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/triremedb/trireme/replication/transport"
)

// EtcdOptions say where the registry is.
type EtcdOptions struct {
	Name   string // of the cluster
	Addr   string // of this node
	Expect int    // how many nodes found the cluster; 0: this node founds nothing, it joins

	Endpoints          []string
	TLS                *tls.Config
	Username, Password string
	Client             *clientv3.Client // used instead, if set, and not closed

	Prefix  string        // of all keys; empty: "/trireme/"
	TTL     time.Duration // how long what a dead node announced stays; 0: 10 s
	Timeout time.Duration // of a request; 0: 3 s
	Log     *slog.Logger
}

// Etcd is a registry in etcd. Under the prefix and the cluster's name stand
//
//	charter        who founds the group, and its id; written once, by a transaction that only one can win
//	began          the group's id, once the group had a leader; stays
//	nodes/<addr>   a node that is there, under its lease
//	members/<id>   what a member announces, under its lease
//	leader         the member that leads the newest term, under its lease
type Etcd struct {
	opts   EtcdOptions
	prefix string
	store  store
	ctx    context.Context
	cancel context.CancelFunc
	task   sync.WaitGroup
	once   sync.Once
	wake   chan struct{} // something changed that is to be kept

	mu    sync.Mutex
	keep  map[string]string // what stands under the lease
	led   uint64            // term that the node announced to lead; 0: none
	lease lease             // 0: none now
	last  error
}

var _ Discovery = (*Etcd)(nil)

// charter is the value of the key of this name.
type charter struct {
	Nodes []string `json:"nodes"`
	Group string   `json:"group"`
}

// NewEtcd returns the discovery of a registry. It does not wait for it to answer.
func NewEtcd(opts EtcdOptions) (*Etcd, error) {
	s := &etcdStore{client: opts.Client}
	if s.client == nil {
		if len(opts.Endpoints) == 0 {
			return nil, errors.New("discovery: no endpoint of etcd is given")
		}
		var err error
		s.client, err = clientv3.New(clientv3.Config{
			Endpoints: opts.Endpoints, TLS: opts.TLS, Username: opts.Username, Password: opts.Password,
			DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, Logger: zap.NewNop(),
		})
		if err != nil {
			return nil, fmt.Errorf("discovery: etcd: %w", err)
		}
		s.own = true
	}
	d, err := newEtcd(opts, s)
	if err != nil {
		_ = s.close()
	}
	return d, err
}

func newEtcd(opts EtcdOptions, s store) (*Etcd, error) {
	if _, err := NewPlan(opts.Name, []string{opts.Addr}, opts.Expect); err != nil {
		return nil, err
	}
	if strings.Contains(opts.Name, "/") || strings.Contains(opts.Addr, "/") {
		return nil, fmt.Errorf("discovery: neither the cluster's name %q nor the address %q may have a slash", opts.Name, opts.Addr)
	}
	if opts.Prefix == "" {
		opts.Prefix = "/trireme/"
	}
	if opts.TTL == 0 {
		opts.TTL = 10 * time.Second
	}
	opts.TTL = max(opts.TTL, time.Second)
	if opts.Timeout == 0 {
		opts.Timeout = 3 * time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	d := &Etcd{
		opts: opts, prefix: opts.Prefix + opts.Name + "/", store: s,
		wake: make(chan struct{}, 1), keep: map[string]string{},
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// registry is what stands in etcd, at one moment.
type registry struct {
	charter    *charter
	charterRev int64
	began      string
	nodes      []string
	members    []Announcement
	leader     *Announcement
	leaderRev  int64
}

func (d *Etcd) read(ctx context.Context) (*registry, error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	pairs, err := d.store.list(ctx, d.prefix)
	if err != nil {
		return nil, fmt.Errorf("discovery: etcd: %w", err)
	}
	r := &registry{}
	for _, p := range pairs {
		key := strings.TrimPrefix(p.key, d.prefix)
		var a Announcement
		switch dir, name, _ := strings.Cut(key, "/"); {
		case key == "charter":
			r.charter, r.charterRev = &charter{}, p.rev
			err = json.Unmarshal([]byte(p.value), r.charter)
		case key == "began":
			r.began = p.value
		case key == "leader":
			err = json.Unmarshal([]byte(p.value), &a)
			r.leader, r.leaderRev = &a, p.rev
		case dir == "nodes":
			r.nodes = append(r.nodes, name)
		case dir == "members":
			err = json.Unmarshal([]byte(p.value), &a)
			r.members = append(r.members, a)
		}
		if err != nil {
			return nil, fmt.Errorf("discovery: etcd: key %s: %w", p.key, err)
		}
	}
	slices.SortFunc(r.members, func(a, b Announcement) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return r, nil
}

// Plan implements [Discovery]. It registers the node, and writes the charter once
// enough nodes are there.
func (d *Etcd) Plan(ctx context.Context) (*Plan, error) {
	if d.opts.Expect > 0 {
		d.hold("nodes/"+d.opts.Addr, d.opts.Addr)
	}
	r, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	if r.charter == nil && d.opts.Expect > 0 && len(r.nodes) >= d.opts.Expect && slices.Contains(r.nodes, d.opts.Addr) {
		if err := d.writeCharter(ctx, r.nodes[:d.opts.Expect]); err != nil {
			return nil, err
		}
		if r, err = d.read(ctx); err != nil {
			return nil, err
		}
	}
	if r.charter == nil {
		// Not yet: a plan of others than expected founds nothing.
		return NewPlan(d.opts.Name, r.nodes, max(d.opts.Expect, len(r.nodes)+1))
	}
	plan, err := NewPlan(d.opts.Name, r.charter.Nodes, len(r.charter.Nodes))
	if err == nil {
		plan.Group, err = transport.ParseGroupID(r.charter.Group)
	}
	if err != nil {
		return nil, fmt.Errorf("discovery: etcd: key %scharter: %w", d.prefix, err)
	}
	plan.Began = r.began == r.charter.Group
	return plan, nil
}

// writeCharter fixes who founds the group. That another node was faster is no error.
func (d *Etcd) writeCharter(ctx context.Context, nodes []string) error {
	var g transport.GroupID
	_, _ = rand.Read(g[:]) // it does not fail
	value, err := json.Marshal(charter{Nodes: nodes, Group: version4(g).String()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	won, err := d.store.swap(ctx, d.prefix+"charter", 0, string(value), 0)
	if err != nil {
		return fmt.Errorf("discovery: etcd: %w", err)
	}
	if won {
		d.opts.Log.Info("the charter is written", "founders", nodes)
	}
	return nil
}

// Contacts implements [Discovery].
func (d *Etcd) Contacts(ctx context.Context) ([]string, error) {
	r, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	all := r.nodes
	for _, m := range r.members {
		all = append(all, m.Addr)
	}
	if r.charter != nil {
		all = append(all, r.charter.Nodes...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// View implements [Discovery].
func (d *Etcd) View(ctx context.Context) (View, error) {
	r, err := d.read(ctx)
	if err != nil {
		return View{}, err
	}
	return View{Members: r.members, Leader: r.leader}, nil
}

// Announce implements [Discovery]. What cannot be written now is written as soon as
// etcd answers again; the error says why not now.
func (d *Etcd) Announce(ctx context.Context, a Announcement) error {
	value, err := json.Marshal(a)
	if err != nil {
		return err
	}
	d.hold("members/"+strconv.FormatUint(a.ID, 10), string(value))
	if a.Term > 0 {
		if err := d.noteBegan(ctx, a.Group); err != nil {
			return err
		}
	}
	return d.lead(ctx, a, string(value))
}

// noteBegan makes it known for good that the group has begun.
func (d *Etcd) noteBegan(ctx context.Context, g transport.GroupID) error {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	if err := d.store.put(ctx, d.prefix+"began", g.String(), 0); err != nil {
		return fmt.Errorf("discovery: etcd: %w", err)
	}
	return nil
}

// lead writes or removes the key of the leader: a newer term replaces an older one,
// never the other way round.
func (d *Etcd) lead(ctx context.Context, a Announcement, value string) error {
	d.mu.Lock()
	led, l := d.led, d.lease
	d.led = a.Term
	d.mu.Unlock()
	if a.Term == 0 && led == 0 {
		return nil
	}
	for range 3 {
		r, err := d.read(ctx)
		if err != nil {
			return err
		}
		switch {
		case a.Term == 0 && (r.leader == nil || r.leader.ID != a.ID):
			return nil
		case a.Term > 0 && r.leader != nil && (r.leader.Term > a.Term || *r.leader == a):
			return nil
		case a.Term > 0 && l == 0:
			return errors.New("discovery: etcd: there is no lease at the moment")
		case a.Term == 0:
			value = ""
		}
		ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
		done, err := d.store.swap(ctx, d.prefix+"leader", r.leaderRev, value, l)
		cancel()
		if err != nil {
			return fmt.Errorf("discovery: etcd: %w", err)
		}
		if done {
			return nil
		}
	}
	return errors.New("discovery: etcd: the key of the leader is written by others all the time")
}

// hold keeps a key under the lease until Close, and waits a moment for it to be
// written.
func (d *Etcd) hold(key, value string) {
	d.mu.Lock()
	same := d.keep[key] == value
	d.keep[key] = value
	d.mu.Unlock()
	d.once.Do(func() { d.task.Go(d.holdAll) })
	if !same {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// holdAll keeps a lease and what stands under it until Close.
func (d *Etcd) holdAll() {
	for d.ctx.Err() == nil {
		err := d.holdLease()
		d.mu.Lock()
		news := err != nil && (d.last == nil || d.last.Error() != err.Error())
		d.last, d.lease = err, 0
		d.mu.Unlock()
		if news && d.ctx.Err() == nil {
			d.opts.Log.Warn("the registry in etcd cannot be written", "error", err)
		}
		select {
		case <-d.ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// holdLease writes everything under a new lease, and what changes later, until the
// lease is lost.
func (d *Etcd) holdLease() error {
	ctx, cancel := context.WithTimeout(d.ctx, d.opts.Timeout)
	l, lost, end, err := d.store.grant(ctx, d.opts.TTL)
	cancel()
	if err != nil {
		return err
	}
	defer end()
	written := map[string]string{}
	for {
		d.mu.Lock()
		keep := maps.Clone(d.keep)
		d.mu.Unlock()
		for key, value := range keep {
			if written[key] == value {
				continue
			}
			ctx, cancel := context.WithTimeout(d.ctx, d.opts.Timeout)
			err := d.store.put(ctx, d.prefix+key, value, l)
			cancel()
			if err != nil {
				return err
			}
			written[key] = value
		}
		d.mu.Lock()
		d.lease, d.last = l, nil
		d.mu.Unlock()
		select {
		case <-d.ctx.Done():
			return nil
		case <-lost:
			return errors.New("the lease ran out")
		case <-d.wake:
		}
	}
}

// Close implements [Discovery]. What the node has announced disappears.
func (d *Etcd) Close() error {
	d.cancel()
	d.task.Wait()
	return d.store.close()
}
