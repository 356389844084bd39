package node_test

import (
	"strings"
	"testing"
)

// TestOtherDomain: a node that has no data keeps away from a registry that nodes of another domain use, and does not register there, unless a member of its own
// domain is in that group already.
func TestOtherDomain(t *testing.T) {
	t.Parallel()
	const own, other = "db-1.peers.test:17100", "db-0.peers.stage:17100"
	for name, c := range map[string]struct {
		r          registry
		domain     string
		refused    string
		registered bool
	}{
		"nobody":                         {domain: "peers.test", registered: true},
		"its own":                        {r: registry{nodes: []string{own, "DB-2.Peers.Test:17100"}}, domain: "peers.test", registered: true},
		"founders of another":            {r: registry{nodes: []string{other}}, domain: "peers.test", refused: other},
		"both":                           {r: registry{nodes: []string{own, other}}, domain: "peers.test", refused: other},
		"a member of another":            {r: registry{members: []string{other}}, domain: "peers.test", refused: other},
		"a group of both":                {r: registry{nodes: []string{other}, members: []string{other, own}}, domain: "peers.test", registered: true},
		"others came while it registers": {r: registry{nodes: []string{own}, others: []string{other}}, domain: "peers.test", refused: other, registered: true},
		"none is said":                   {r: registry{nodes: []string{other}}, registered: true},
		"a domain that ends alike":       {r: registry{nodes: []string{"db-0.my.peers.test:17100"}}, domain: "peers.test", refused: "db-0.my.peers.test"},
	} {
		for _, replica := range []string{"OFF", "ON"} {
			t.Run(name+", replica "+replica, func(t *testing.T) {
				r := c.r
				d, err := guard(t, &r, "--discovery=etcd", "--etcd-domain="+c.domain, "--replica="+replica)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := d.Plan(t.Context())
				if c.refused == "" && (err != nil || plan == nil) || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "clusterName")) {
					t.Errorf("it says %v", err)
				}
				if r.registered != c.registered {
					t.Errorf("registered is %v", r.registered)
				}
			})
		}
	}
}
