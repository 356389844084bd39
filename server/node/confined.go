package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/triremedb/trireme/replication/discovery"
)

// confined keeps a node away from a registry that is used by nodes of another domain, as by a release of the same name in another namespace of
// Kubernetes: where they accept each other's certificates, or have none, they would become one group (decision 0042).
//
// A node whose domain has a member in the registry already is let in: that group is its own, whoever else is in it.
type confined struct {
	discovery.Discovery
	n      *Node
	domain string
	waits  obstacle
}

// confine is a discovery that does so, if there is a domain to keep to.
func (n *Node) confine(d discovery.Discovery) discovery.Discovery {
	domain := n.cfg.String("etcd_domain")
	if n.cfg.String("discovery") != "etcd" || domain == "" {
		return d
	}
	return &confined{Discovery: d, n: n, domain: domain, waits: newObstacle()}
}

// Plan implements [discovery.Discovery]. As long as others are in the way this node does not register, which would be in their way.
func (c *confined) Plan(ctx context.Context) (*discovery.Plan, error) {
	plan, err := c.plan(ctx)
	if !c.n.isReady() {
		c.waits.look(ctx, c.n, err)
	}
	return plan, err
}

func (c *confined) plan(ctx context.Context) (*discovery.Plan, error) {
	view, err := c.View(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(view.Members, func(m discovery.Announcement) bool { return c.own(m.Addr) }) {
		return c.Discovery.Plan(ctx)
	}
	there, err := c.Contacts(ctx)
	if err == nil {
		err = c.refuse(there)
	}
	if err != nil {
		return nil, err
	}
	plan, err := c.Discovery.Plan(ctx)
	if err == nil {
		err = c.refuse(plan.Nodes) // they have come meanwhile
	}
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// own reports whether an address is one of the domain.
func (c *confined) own(addr string) bool {
	name, _ := splitAddr(addr)
	_, domain, _ := strings.Cut(name, ".")
	return strings.EqualFold(domain, c.domain)
}

// refuse is an error if one of the nodes is of another domain.
func (c *confined) refuse(nodes []string) error {
	i := slices.IndexFunc(nodes, func(addr string) bool { return !c.own(addr) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("the registry has %s for cluster %s under %s, which is not of %s: this node neither joins nor founds a group there. Give cluster_name (clusterName) or "+
		"etcd_prefix (discovery.etcd.prefix) another value than that of the other one. If both are to be one group, give no etcd_domain (discovery.etcd.anyDomain); if nobody uses "+
		"these keys any more, delete them", nodes[i], c.n.cfg.String("cluster_name"), c.n.cfg.String("etcd_prefix"), c.domain)
}
