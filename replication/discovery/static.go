package discovery

import "context"

// Static is a list of addresses, the same on every node.
type Static struct{ plan *Plan }

var _ Discovery = (*Static)(nil)

// NewStatic returns the discovery of a list that founds a cluster, or that has members of one.
func NewStatic(name string, nodes []string) (*Static, error) {
	plan, err := NewPlan(name, nodes, len(nodes))
	if err == nil && len(nodes) == 0 {
		err = errNoPlan
	}
	if err != nil {
		return nil, err
	}
	return &Static{plan}, nil
}

// Plan implements [Discovery].
func (s *Static) Plan(context.Context) (*Plan, error) { return s.plan, nil }

// Contacts implements [Discovery].
func (s *Static) Contacts(context.Context) ([]string, error) { return s.plan.Nodes, nil }

// Announce implements [Discovery].
func (s *Static) Announce(context.Context, Announcement) error { return nil }

// View implements [Discovery].
func (s *Static) View(context.Context) (View, error) { return View{}, nil }

// Close implements [Discovery].
func (s *Static) Close() error { return nil }
