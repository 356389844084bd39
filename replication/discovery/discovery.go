package discovery

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/triremedb/trireme/replication/transport"
)

// Plan is who should found a group.
type Plan struct {
	Name  string   // of the cluster
	Nodes []string // the addresses of the founders, sorted, none twice
	// Expect is how many founders there should be; 0: as many as Nodes has. A plan
	// with another number founds nothing yet.
	Expect int
	// Group is the id that a registry has fixed for the group; zero: the first node
	// draws it.
	Group transport.GroupID
	// Began says that a registry knows the group to have begun: somebody has its data.
	Began bool
}

// NewPlan returns a plan of these founders.
func NewPlan(name string, nodes []string, expect int) (*Plan, error) {
	p := &Plan{Name: name, Nodes: slices.Clone(nodes), Expect: expect}
	slices.Sort(p.Nodes)
	p.Nodes = slices.Compact(p.Nodes)
	if len(p.Nodes) != len(nodes) {
		return nil, fmt.Errorf("discovery: an address is listed twice in %s", strings.Join(nodes, ", "))
	}
	return p, p.check()
}

// Limits of a plan.
const (
	maxNodes = 64
	maxName  = 100
	maxAddr  = 300
)

var errNoPlan = errors.New("discovery: no nodes are listed")

func (p *Plan) check() error {
	switch {
	case p.Name == "" || len(p.Name) > maxName:
		return fmt.Errorf("discovery: a cluster's name has 1 to %d bytes, not %d", maxName, len(p.Name))
	case len(p.Nodes) > maxNodes || p.Expect < 0 || p.Expect > maxNodes:
		return fmt.Errorf("discovery: %d nodes are listed and %d expected, at most %d are allowed", len(p.Nodes), p.Expect, maxNodes)
	}
	for _, addr := range p.Nodes {
		if err := checkAddr(addr); err != nil {
			return err
		}
	}
	return nil
}

func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" || len(addr) > maxAddr {
		return fmt.Errorf("discovery: %q is no address of the form host:port", addr)
	}
	return nil
}

// complete reports whether all founders are known.
func (p *Plan) complete() bool {
	return len(p.Nodes) > 0 && (p.Expect == 0 || p.Expect == len(p.Nodes))
}

// Digest is equal for equal names and founders.
func (p *Plan) Digest() (d [16]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s", len(p.Name), p.Name)
	for _, n := range p.Nodes {
		fmt.Fprintf(h, ",%d:%s", len(n), n)
	}
	copy(d[:], h.Sum(nil))
	return d
}

// ID is the member id of a founder: its place in the list, from 1 on; 0: it is
// none.
func (p *Plan) ID(addr string) uint64 {
	i, found := slices.BinarySearch(p.Nodes, addr)
	if !found {
		return 0
	}
	return uint64(i) + 1
}

// Founders lists the founders with their ids.
func (p *Plan) Founders() []transport.Peer {
	var all []transport.Peer
	for i, n := range p.Nodes {
		all = append(all, transport.Peer{ID: uint64(i) + 1, Addr: n})
	}
	return all
}

func (p *Plan) String() string { return fmt.Sprintf("%s of %s", p.Name, strings.Join(p.Nodes, ", ")) }

// Discovery is where a node learns of others. Its methods are safe for concurrent
// use. An error is temporary unless it comes from making the Discovery.
type Discovery interface {
	// Plan returns who founds the group, as far as it is known.
	Plan(ctx context.Context) (*Plan, error)
	// Contacts returns addresses where members of the group may be found now, also such as did not found
	// it. The caller is among them or not.
	Contacts(ctx context.Context) ([]string, error)
	// Announce makes known what the node is; it is kept known until Close. It is called
	// again when that changes, and by a leader every few seconds.
	Announce(ctx context.Context, a Announcement) error
	// View returns what members have announced. Only a registry has something to say.
	View(ctx context.Context) (View, error)
	// Close ends what Announce began.
	Close() error
}

// census is what a Discovery may do besides: tell of all nodes that there are, founders or not.
type census interface {
	// Everybody returns their addresses; known is false if it has no way to know.
	Everybody(ctx context.Context) (addrs []string, known bool, err error)
}

// Announcement is what a member of a group tells a registry.
type Announcement struct {
	Group transport.GroupID `json:"group"`
	ID    uint64            `json:"id"`
	Addr  string            `json:"addr"`
	Build string            `json:"build,omitempty"`
	// Term is the term that the node leads; 0: it does not lead.
	Term uint64 `json:"term,omitempty"`
}

// View is what a registry knows.
type View struct {
	Members []Announcement // sorted by id
	Leader  *Announcement  // of the newest term; nil: none is known
}
