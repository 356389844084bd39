package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/triremedb/trireme/replication/discovery"
)

// founding looks at claims before a node in a pod of Kubernetes founds a group: where the release had more members than it is to have now, a
// claim that no pod uses may hold the group's data. An empty volume beside it is a lost one, and no reason to begin anew: once
// the others' pods were there again, two groups would take writes behind one Service (decision 0041).
type founding struct {
	discovery.Discovery
	n *Node
}

// foundingClaims is up to which pod's claim is looked for, as when claims are deleted.
const foundingClaims = 32

// Everybody tells of all nodes that there are, if the discovery can. It is asked before this node prepares to found a group.
func (f *founding) Everybody(ctx context.Context) (addrs []string, known bool, err error) {
	if c, ok := f.Discovery.(interface {
		Everybody(context.Context) ([]string, bool, error)
	}); ok {
		if addrs, known, err = c.Everybody(ctx); err != nil {
			return nil, false, err
		}
	}
	if err := f.looseClaim(ctx, addrs); err != nil {
		return nil, false, err
	}
	return addrs, known, nil
}

// looseClaim is an error if a pod that is no founder has a claim, and is not there. That it is to be there says nothing, since it may have been
// wanted a moment ago; but where nobody tells who is there, as with etcd, which remembers the group itself, it is taken for one that is.
func (f *founding) looseClaim(ctx context.Context, addrs []string) error {
	set := f.n.set
	s, err := f.n.askSet(ctx, set.name)
	if err != nil {
		return err
	}
	for ordinal := int(f.n.cfg.Int("discovery_expect")); ordinal < foundingClaims; ordinal++ {
		pod := fmt.Sprintf("%s-%d", set.name, ordinal)
		isPod := func(addr string) bool { return strings.HasPrefix(addr, pod+".") }
		if s.Has(ordinal) && f.n.cfg.String("discovery") == "etcd" || slices.ContainsFunc(addrs, isPod) {
			continue // it is asked
		}
		claim, found, err := set.Claim(ctx, set.name, ordinal)
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("the claim %s is there, and its pod is not: it may have the group's data. Start as many members as there were (replicaCount); "+
				"if the claim is of no use, delete it", claim.Name)
		}
	}
	return nil
}
