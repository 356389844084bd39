package discovery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triremedb/trireme/replication/transport"
)

// State is how far a node has come. Prepared is durable before anybody hears of
// it.
type State uint8

const (
	// Empty: the directory belongs to no group.
	Empty State = iota
	// Prepared: the node has agreed to found a group and knows its id, and waits for
	// the other founders. It has not taken part in anything.
	Prepared
	// Begun: the node runs in a group, or may have.
	Begun
)

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

var stateNames = [...]string{"empty", "prepared", "begun"}

// Local is what a node knows of itself.
type Local struct {
	Addr  string // as others dial it
	State State
	Group transport.GroupID // with Prepared and Begun
	ID    uint64
	// Founded is the plan that a Prepared node has agreed to.
	Founded *Plan
	// Fresh and FreshID are drawn at random: a group's id, should the node have to give
	// one, and a member's id, should it join.
	Fresh   transport.GroupID
	FreshID uint64
}

// Answer is what another node said, or why it did not.
type Answer struct {
	Addr   string
	Err    error // set: the rest is not
	Status Status
}

// Status is what a node tells another one that asks.
type Status struct {
	State State
	Name  string
	Group transport.GroupID // with Prepared and Begun
	ID    uint64
	// Nodes are the founders: of the plan of an Empty node, of what a Prepared node has
	// agreed to. Of a Begun one they say nothing any more.
	Nodes []string
	// Replaced are groups that were lost and that this node's group, which has begun, has been made of.
	Replaced []transport.GroupID
}

// Kind is what a node should do.
type Kind uint8

const (
	// Wait: ask again later.
	Wait Kind = iota
	// Prepare: make it durable that the node founds Group as member ID, then ask again.
	Prepare
	// Found: begin Group with the founders of Plan.
	Found
	// Join: become a new member of Group, under a new ID, with the help of Contacts.
	Join
	// Resume: go on as what the directory says.
	Resume
	// Refuse: stop. People must decide.
	Refuse
)

func (k Kind) String() string { return kindNames[k] }

var kindNames = [...]string{"wait", "prepare", "found", "join", "resume", "refuse"}

// Action is what a node should do, and why.
type Action struct {
	Kind     Kind
	Group    transport.GroupID
	ID       uint64
	Plan     *Plan    // with Prepare and Found
	Contacts []string // with Join
	Why      string   // with Wait and Refuse, for people
}

func wait(format string, args ...any) Action {
	return Action{Kind: Wait, Why: fmt.Sprintf(format, args...)}
}

func refuse(format string, args ...any) Action {
	return Action{Kind: Refuse, Why: fmt.Sprintf(format, args...)}
}

// Decide says what a node should do, given what it is, the plan and the answers of
// others: all of the plan's nodes but itself, and whoever else was asked. See
// DESIGN.md for why each rule is needed.
func Decide(local *Local, plan *Plan, answers []Answer) Action {
	if local.State == Begun {
		return Action{Kind: Resume, Group: local.Group, ID: local.ID}
	}
	if a, done := decideBegun(local, plan, answers); done {
		return a
	}
	if local.State == Prepared {
		if local.Founded.Digest() != plan.Digest() {
			return wait("this node has agreed to found %s, and is now told to found %s; give it the former list, or empty its directory",
				local.Founded, plan)
		}
	}
	if a, done := decidePlan(local, plan, answers); done {
		return a
	}
	return decideFounding(local, plan, answers)
}

// decideBegun looks for a group that exists already.
func decideBegun(local *Local, plan *Plan, answers []Answer) (Action, bool) {
	var found *Answer
	var contacts []string
	replaced := map[transport.GroupID]bool{}
	for i := range answers {
		for _, g := range answers[i].Status.Replaced {
			replaced[g] = true
		}
	}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil || a.Status.State != Begun || replaced[a.Status.Group] {
			continue
		}
		switch {
		case a.Status.Name != plan.Name:
			return refuse("node %s belongs to cluster %q, this one is set up for cluster %q", a.Addr, a.Status.Name, plan.Name), true
		case found != nil && found.Status.Group != a.Status.Group:
			return refuse("node %s belongs to group %s and node %s to group %s: there are two groups, and people must decide which one counts",
				found.Addr, found.Status.Group, a.Addr, a.Status.Group), true
		case found == nil:
			found = a
		}
		contacts = append(contacts, a.Addr)
	}
	switch {
	case found == nil:
		return Action{}, false
	case plan.Group != (transport.GroupID{}) && plan.Group != found.Status.Group:
		return refuse("node %s belongs to group %s, and the registry says that the group of cluster %s is %s",
			found.Addr, found.Status.Group, plan.Name, plan.Group), true
	case local.State == Empty:
		return Action{Kind: Join, Group: found.Status.Group, ID: local.FreshID, Contacts: contacts}, true
	case found.Status.Group != local.Group:
		return refuse("this node has agreed to found group %s, and node %s belongs to group %s; empty this node's directory to let it join",
			local.Group, found.Addr, found.Status.Group), true
	}
	return Action{Kind: Found, Group: local.Group, ID: local.ID, Plan: local.Founded}, true
}

// decidePlan checks that everybody has answered and means the same.
func decidePlan(local *Local, plan *Plan, answers []Answer) (Action, bool) {
	switch {
	case !plan.complete() && plan.Expect > 0:
		return wait("%d nodes are to found the cluster, %d are known: %s", plan.Expect, len(plan.Nodes), strings.Join(plan.Nodes, ", ")), true
	case !plan.complete():
		return wait("nobody is known who could be asked"), true
	case plan.ID(local.Addr) == 0:
		return wait("no member of cluster %s has answered, and this node, %s, is not among its founders, %s",
			plan.Name, local.Addr, strings.Join(plan.Nodes, ", ")), true
	}
	var silent []string
	for _, n := range plan.Nodes {
		i := slices.IndexFunc(answers, func(a Answer) bool { return a.Addr == n })
		switch {
		case n == local.Addr:
		case i < 0:
			silent = append(silent, n)
		case answers[i].Err != nil:
			silent = append(silent, fmt.Sprintf("%s (%v)", n, answers[i].Err))
		}
	}
	if len(silent) > 0 {
		return wait("a group is founded only when all its founders have answered that there is none; no answer from %s", strings.Join(silent, ", ")), true
	}
	for _, a := range answers {
		other := Plan{Name: a.Status.Name, Nodes: a.Status.Nodes}
		if plan.ID(a.Addr) != 0 && other.Digest() != plan.Digest() {
			return wait("the lists differ: node %s is to found %s, this node %s", a.Addr, &other, plan), true
		}
	}
	return Action{}, false
}

// decideAlone looks at nodes that are no founders, before a node prepares to found a group: the plan may have had more founders when
// there was one, and whoever of them, or joined since, does not answer may be a member. everybody are all nodes that there are, as
// far as names tell.
func decideAlone(local *Local, answers []Answer, everybody []string) (Action, bool) {
	if !slices.Contains(everybody, local.Addr) {
		return wait("the name that leads to all nodes does not lead to this one, %s, yet: it may not tell of others either", local.Addr), true
	}
	for _, n := range everybody {
		i := slices.IndexFunc(answers, func(a Answer) bool { return a.Addr == n })
		switch {
		case n == local.Addr:
		case i < 0:
			return wait("node %s has come, and was not asked yet", n), true
		case answers[i].Err != nil:
			return wait("node %s is there, does not answer (%v), and may have the group's data: a group is founded when it has answered that "+
				"there is none, or is gone", n, answers[i].Err), true
		}
	}
	return Action{}, false
}

// decideFounding moves a founder on. Everybody has answered, nobody has begun, and
// all have the same plan.
func decideFounding(local *Local, plan *Plan, answers []Answer) Action {
	group, who, unprepared := local.Group, local.Addr, []string(nil)
	for _, a := range answers {
		switch {
		case plan.ID(a.Addr) == 0:
		case a.Status.State == Empty:
			unprepared = append(unprepared, a.Addr)
		case group == (transport.GroupID{}):
			group, who = a.Status.Group, a.Addr
		case group != a.Status.Group:
			return refuse("node %s is prepared for group %s and node %s for group %s; empty the directory of one of them",
				who, group, a.Addr, a.Status.Group)
		}
	}
	switch {
	case plan.Group != (transport.GroupID{}) && group != (transport.GroupID{}) && group != plan.Group:
		return refuse("node %s is prepared for group %s, and the registry says that the group is %s; empty that node's directory",
			who, group, plan.Group)
	case plan.Began:
		return refuse("group %s of cluster %s has begun, and none of its founders has its data any more; "+
			"restore a backup, or remove the cluster from the registry to found it anew", plan.Group, plan.Name)
	case local.State == Prepared && len(unprepared) == 0:
		return Action{Kind: Found, Group: group, ID: local.ID, Plan: local.Founded}
	case local.State == Prepared:
		return wait("this node is prepared, and waits for %s", strings.Join(unprepared, ", "))
	case group == (transport.GroupID{}):
		group = plan.Group
	}
	if group == (transport.GroupID{}) {
		if plan.Nodes[0] != local.Addr {
			return wait("all founders have answered; the first of them, %s, gives the group its id", plan.Nodes[0])
		}
		group = local.Fresh
	}
	return Action{Kind: Prepare, Group: group, ID: plan.ID(local.Addr), Plan: plan}
}
