package discovery

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/transport"
)

// named is a discovery whose plan has one founder, n0, and which knows all nodes.
type named struct {
	Static
	all   []string
	known bool
	err   error
}

func (n *named) Contacts(context.Context) ([]string, error) { return n.all, nil }
func (n *named) Everybody(context.Context) (_ []string, _ bool, _ error) {
	return n.all, n.known, n.err
}

// answering is a network whose nodes are as the map says; others are silent.
type answering struct {
	transport.Transport
	nodes map[string]*Status
}

func (a answering) Ask(_ context.Context, c transport.Call) ([]byte, error) {
	s := a.nodes[c.Addr]
	if s == nil {
		return nil, transport.ErrUnreachable
	}
	return s.encode(), nil
}

// A node founds a group by itself only when all nodes that there are have answered that there is none: it may have been the
// founder of one that has grown since, and its disk is lost.
func TestEverybodyIsAsked(t *testing.T) {
	begun := &Status{State: Begun, Name: "c", Group: gid("G"), ID: 2}
	empty := &Status{Name: "c", Nodes: []string{"n0:1"}}
	for _, c := range []struct {
		name  string
		d     named
		nodes map[string]*Status
		want  Kind
		why   string
	}{
		{"it cannot be known", named{}, nil, Prepare, ""},
		{"alone", named{all: []string{"n0:1"}, known: true}, nil, Prepare, ""},
		{"a member", named{all: []string{"n0:1", "n1:1"}, known: true}, map[string]*Status{"n1:1": begun}, Join, ""},
		{"a silent node", named{all: []string{"n0:1", "n1:1"}, known: true}, nil, Wait, "node n1:1 is there, does not answer"},
		{"a silent node and a member", named{all: []string{"n0:1", "n1:1", "n2:1"}, known: true}, map[string]*Status{"n2:1": begun}, Join, ""},
		{"an empty node", named{all: []string{"n0:1", "n1:1"}, known: true}, map[string]*Status{"n1:1": empty}, Prepare, ""},
		{"no names yet", named{known: true}, nil, Wait, "does not lead to this one, n0:1, yet"},
		{"only names of others", named{all: []string{"n1:1"}, known: true}, map[string]*Status{"n1:1": empty}, Wait, "does not lead to this one"},
		{"names that are not told", named{known: true, err: errors.New("server misbehaving")}, nil, Wait, "server misbehaving"},
	} {
		e := env.Real()
		static, err := NewStatic("c", []string{"n0:1"})
		if err != nil {
			t.Fatal(err)
		}
		c.d.Static = *static
		b, err := New(Options{Env: e, FS: simfile.New(e, 1), Discovery: &c.d, Addr: "n0:1", Name: "c"})
		if err != nil {
			t.Fatal(err)
		}
		a, err := b.round(context.Background(), answering{nodes: c.nodes})
		if err != nil || a.Kind != c.want || !strings.Contains(a.Why, c.why) {
			t.Errorf("%s: %v (%s), %v", c.name, a.Kind, a.Why, err)
		}
	}
}
