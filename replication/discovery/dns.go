package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DNSOptions say which names lead to the nodes. The founders are either the
// ordinals of a pattern or the targets of SRV records; both must be names that stay
// with a node, as those of a StatefulSet's pods do, and the node's own address must be one of them.
// The service must publish the addresses of pods that are not ready yet.
type DNSOptions struct {
	Name   string // of the cluster
	Expect int    // how many founders there are

	// Pattern is an address with "{}" for the ordinal, from 0 on:
	// "trireme-{}.trireme.prod.svc.cluster.local:7000".
	Pattern string
	// SRV is a name with SRV records, such as "_peer._tcp.trireme.prod.svc.cluster.local".
	SRV string
	// Service is "host:port" of a headless service whose addresses are those of all
	// members, also of later ones; it is asked by nodes that join. Optional.
	Service string
	// Members is a name with SRV records whose targets are all nodes, founders or not, by the names that stay with
	// them, also those that are not ready: they are asked by nodes that join, and a group is founded only when
	// this node is among them and all others have answered. Optional.
	Members string

	Timeout  time.Duration // of a lookup; 0: 3 s
	Resolver Resolver      // nil: the system's
}

// Resolver is what is needed of a [net.Resolver].
type Resolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// DNS finds nodes by name.
type DNS struct{ opts DNSOptions }

var (
	_ Discovery = (*DNS)(nil)
	_ census    = (*DNS)(nil)
)

// NewDNS returns the discovery of these names.
func NewDNS(opts DNSOptions) (*DNS, error) {
	switch {
	case (opts.Pattern == "") == (opts.SRV == ""):
		return nil, errors.New("discovery: either a pattern of host names or the name of SRV records is needed")
	case opts.Expect <= 0:
		return nil, errors.New("discovery: how many nodes found the cluster must be said")
	case opts.Pattern != "" && strings.Count(opts.Pattern, "{}") != 1:
		return nil, fmt.Errorf("discovery: the pattern %q needs {} once, where the ordinal stands", opts.Pattern)
	}
	if opts.Service != "" {
		if err := checkAddr(opts.Service); err != nil {
			return nil, err
		}
	}
	if opts.Timeout == 0 {
		opts.Timeout = 3 * time.Second
	}
	if opts.Resolver == nil {
		opts.Resolver = net.DefaultResolver
	}
	d := &DNS{opts}
	var err error
	if opts.Pattern != "" {
		_, err = NewPlan(opts.Name, d.ordinals(), opts.Expect)
	} else {
		_, err = NewPlan(opts.Name, nil, opts.Expect)
	}
	return d, err
}

func (d *DNS) ordinals() []string {
	nodes := make([]string, 0, min(d.opts.Expect, maxNodes+1))
	for i := range cap(nodes) {
		nodes = append(nodes, strings.Replace(d.opts.Pattern, "{}", strconv.Itoa(i), 1))
	}
	return nodes
}

// Plan implements [Discovery]. It does not depend on which names resolve: a node
// that is not there yet is waited for.
func (d *DNS) Plan(ctx context.Context) (*Plan, error) {
	if d.opts.Pattern != "" {
		return NewPlan(d.opts.Name, d.ordinals(), d.opts.Expect)
	}
	targets, err := d.targets(ctx, d.opts.SRV)
	if err != nil {
		return nil, err
	}
	return NewPlan(d.opts.Name, targets, d.opts.Expect)
}

// targets looks SRV records up. None is no error: the first pod asks before
// there are any.
func (d *DNS) targets(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	_, records, err := d.opts.Resolver.LookupSRV(ctx, "", "", name)
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discovery: looking up %s: %w", name, err)
	}
	var targets []string
	for _, r := range records {
		targets = append(targets, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
	}
	slices.Sort(targets)
	return slices.Compact(targets), nil
}

func notFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// Contacts implements [Discovery].
func (d *DNS) Contacts(ctx context.Context) ([]string, error) {
	var all []string
	var errs []error
	if d.opts.SRV != "" {
		targets, err := d.targets(ctx, d.opts.SRV)
		all, errs = append(all, targets...), append(errs, err)
	} else {
		all = append(all, d.ordinals()...)
	}
	if d.opts.Members != "" {
		targets, err := d.targets(ctx, d.opts.Members)
		all, errs = append(all, targets...), append(errs, err)
	}
	if d.opts.Service != "" {
		host, port, _ := net.SplitHostPort(d.opts.Service)
		ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
		defer cancel()
		ips, err := d.opts.Resolver.LookupHost(ctx, host)
		if err != nil && !notFound(err) {
			errs = append(errs, fmt.Errorf("discovery: looking up %s: %w", host, err))
		}
		for _, ip := range ips {
			all = append(all, net.JoinHostPort(ip, port))
		}
	}
	if len(all) == 0 {
		return nil, errors.Join(errs...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Everybody implements census.
func (d *DNS) Everybody(ctx context.Context) (addrs []string, known bool, err error) {
	if d.opts.Members == "" {
		return nil, false, nil
	}
	addrs, err = d.targets(ctx, d.opts.Members)
	return addrs, true, err
}

// Announce implements [Discovery].
func (d *DNS) Announce(context.Context, Announcement) error { return nil }

// View implements [Discovery].
func (d *DNS) View(context.Context) (View, error) { return View{}, nil }

// Close implements [Discovery].
func (d *DNS) Close() error { return nil }
