package discovery

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/replication/transport"
)

func gid(name string) (g transport.GroupID) {
	copy(g[:], name)
	return g
}

func testPlan(nodes ...string) *Plan {
	p := &Plan{Name: "c", Expect: len(nodes)}
	for _, n := range nodes {
		p.Nodes = append(p.Nodes, n+":1")
	}
	return p
}

// answer reads "b prepared G", "b begun G", "b empty", "b silent"; the plan that the
// other node has follows, or is the usual one.
func answer(s string, plan *Plan) Answer {
	f := strings.Fields(s)
	a := Answer{Addr: f[0] + ":1", Status: Status{Name: "c", Nodes: plan.Nodes}}
	switch f[1] {
	case "silent":
		a.Err = errors.New("timeout")
	case "prepared":
		a.Status.State = Prepared
	case "begun":
		a.Status.State, a.Status.Nodes = Begun, nil
	}
	if len(f) > 2 {
		a.Status.Group = gid(f[2])
	}
	return a
}

func TestDecide(t *testing.T) {
	abc := testPlan("a", "b", "c")
	with := func(change func(p *Plan)) *Plan {
		p := *abc
		change(&p)
		return &p
	}
	empty := Local{Addr: "a:1"}
	second := Local{Addr: "b:1"}
	outside := Local{Addr: "z:1"}
	prepared := Local{Addr: "b:1", State: Prepared, Group: gid("G"), ID: 2, Founded: abc}
	for _, test := range []struct {
		name    string
		local   Local
		plan    *Plan
		answers string // separated by commas
		want    string // the action; of Wait and Refuse a part of the reason too
	}{
		{"begun", Local{State: Begun, Group: gid("G"), ID: 5}, nil, "", "resume G as 5"},

		// A group exists: no founding, whatever else is true.
		{"wiped", empty, abc, "b begun G, c silent", "join G as 99 by b:1"},
		{"wiped while others found", empty, abc, "b prepared G, c begun G", "join G as 99 by c:1"},
		{"not a founder", outside, abc, "a begun G, b begun G, c silent", "join G as 99 by a:1 b:1"},
		{"no list", outside, &Plan{Name: "c"}, "d begun G", "join G as 99 by d:1"},
		{"late founder", prepared, abc, "a begun G, c silent", "found G as 2"},
		{"late founder, other group", prepared, abc, "a begun H", "refuse: agreed to found group 47000000-0000-0000-0000-000000000000, and node a:1 belongs to group 48"},
		{"two groups", empty, abc, "b begun G, c begun H", "refuse: there are two groups"},
		{"other cluster", empty, abc, "b begun G", "join G as 99 by b:1"},
		{"registry disagrees", empty, with(func(p *Plan) { p.Group = gid("H") }), "b begun G", "refuse: the registry says that the group of cluster c is 48"},

		// Nobody has begun: everybody must answer first.
		{"nobody answers", empty, abc, "b silent, c silent", "wait: no answer from b:1 (timeout), c:1 (timeout)"},
		{"one is silent", empty, abc, "b empty, c silent", "wait: no answer from c:1 (timeout)"},
		{"one was not asked", empty, abc, "b empty", "wait: no answer from c:1"},
		{"one is silent, prepared", prepared, abc, "a prepared G, c silent", "wait: no answer from c:1 (timeout)"},
		{"too few", empty, with(func(p *Plan) { p.Expect = 5 }), "b empty, c empty", "wait: 5 nodes are to found the cluster, 3 are known"},
		{"too many", empty, with(func(p *Plan) { p.Expect = 2 }), "b empty, c empty", "wait: 2 nodes are to found the cluster, 3 are known"},
		{"no plan", empty, &Plan{Name: "c"}, "", "wait: nobody is known who could be asked"},
		{"not in the list", outside, abc, "a empty, b empty, c empty", "wait: this node, z:1, is not among its founders"},

		// All have answered.
		{"first", empty, abc, "b empty, c empty", "prepare F as 1"},
		{"second", second, abc, "a empty, c empty", "wait: the first of them, a:1, gives the group its id"},
		{"second adopts", second, abc, "a prepared G, c empty", "prepare G as 2"},
		{"first adopts", empty, abc, "b empty, c prepared G", "prepare G as 1"},
		{"registry's id", second, with(func(p *Plan) { p.Group = gid("R") }), "a empty, c empty", "prepare R as 2"},
		{"all but one", prepared, abc, "a prepared G, c empty", "wait: this node is prepared, and waits for c:1"},
		{"all", prepared, abc, "a prepared G, c prepared G", "found G as 2"},
		{"alone", Local{Addr: "a:1"}, testPlan("a"), "", "prepare F as 1"},
		{"alone, prepared", Local{Addr: "a:1", State: Prepared, Group: gid("G"), ID: 1, Founded: testPlan("a")}, testPlan("a"), "", "found G as 1"},
		{"a stranger is empty", empty, abc, "b empty, c empty, x empty", "prepare F as 1"},
		{"a stranger is prepared", empty, abc, "b empty, c empty, x prepared X", "prepare F as 1"},

		// What people have to settle.
		{"two ids", second, abc, "a prepared G, c prepared H", "refuse: node a:1 is prepared for group 47000000-0000-0000-0000-000000000000 and node c:1 for group 48"},
		{"two ids, one ours", prepared, abc, "a prepared H, c empty", "refuse: node b:1 is prepared for group 47"},
		{"registry's id is another", second, with(func(p *Plan) { p.Group = gid("R") }), "a prepared G, c empty", "refuse: node a:1 is prepared for group 47"},
		{"all data lost", empty, with(func(p *Plan) { p.Group, p.Began = gid("R"), true }), "b empty, c empty", "refuse: none of its founders has its data any more"},
		{"our list changed", prepared, testPlan("a", "b", "d"), "a prepared G, d empty", "wait: agreed to found c of a:1, b:1, c:1, and is now told to found c of a:1, b:1, d:1"},
	} {
		local := test.local
		local.Fresh, local.FreshID = gid("F"), 99
		var answers []Answer
		for s := range strings.SplitSeq(test.answers, ", ") {
			if s != "" {
				answers = append(answers, answer(s, abc))
			}
		}
		if got := describe(Decide(&local, test.plan, answers)); !matches(got, test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// matches compares actions; of a reason want has a part.
func matches(got, want string) bool {
	kind, part, reason := strings.Cut(want, ": ")
	if !reason {
		return got == want
	}
	return strings.HasPrefix(got, kind+": ") && strings.Contains(got, part)
}

func describe(a Action) string {
	group := strings.TrimRight(string(a.Group[:]), "\x00")
	switch a.Kind {
	case Wait, Refuse:
		return fmt.Sprintf("%v: %s", a.Kind, a.Why)
	case Join:
		return fmt.Sprintf("join %s as %d by %s", group, a.ID, strings.Join(a.Contacts, " "))
	}
	if (a.Kind == Prepare || a.Kind == Found) && a.Plan == nil {
		return "no plan"
	}
	return fmt.Sprintf("%v %s as %d", a.Kind, group, a.ID)
}

func TestDecideOtherPlans(t *testing.T) {
	local := Local{Addr: "a:1", Fresh: gid("F")}
	abc, abd := testPlan("a", "b", "c"), testPlan("a", "b", "d")
	answers := []Answer{answer("b empty", abc), answer("c empty", abd)}
	if got, want := describe(Decide(&local, abc, answers)), "wait: the lists differ: node c:1 is to found c of a:1, b:1, d:1, this node c of a:1, b:1, c:1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	other := answer("b begun G", abc)
	other.Status.Name = "d"
	if got, want := describe(Decide(&local, abc, []Answer{other})), `refuse: node b:1 belongs to cluster "d", this one is set up for cluster "c"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What is left of a group that was lost does not keep nodes from the one that was made of it, and is not joined.
func TestDecideReplaced(t *testing.T) {
	local := Local{Addr: "a:1", FreshID: 9}
	abc := testPlan("a", "b", "c")
	b, c := answer("b begun G", abc), answer("c begun H", abc)
	if got := describe(Decide(&local, abc, []Answer{b, c})); !strings.HasPrefix(got, "refuse: ") {
		t.Errorf("two groups that know nothing of each other: %s", got)
	}
	c.Status.Replaced = []transport.GroupID{gid("F"), gid("G")}
	for _, answers := range [][]Answer{{b, c}, {c, b}} {
		if got, want := describe(Decide(&local, abc, answers)), "join H as 9 by c:1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	told, err := decodeStatus(c.Status.encode())
	if err != nil || fmt.Sprint(*told) != fmt.Sprint(c.Status) {
		t.Errorf("%+v becomes %+v: %v", c.Status, told, err)
	}
}

func TestPlan(t *testing.T) {
	p, err := NewPlan("c", []string{"b:1", "a:1", "c:1"}, 0)
	if err != nil || p.ID("a:1") != 1 || p.ID("c:1") != 3 || p.ID("d:1") != 0 || fmt.Sprint(p.Founders()) != "[{1 a:1} {2 b:1} {3 c:1}]" {
		t.Errorf("%v, %v", p, err)
	}
	q, _ := NewPlan("c", []string{"c:1", "b:1", "a:1"}, 0)
	r, _ := NewPlan("d", []string{"c:1", "b:1", "a:1"}, 0)
	if p.Digest() != q.Digest() || p.Digest() == r.Digest() {
		t.Error("digests are wrong")
	}
	for want, nodes := range map[string][]string{
		"an address is listed twice": {"a:1", "b:1", "a:1"},
		`"a" is no address`:          {"a"},
		`":1" is no address`:         {":1"},
		"65 nodes are listed":        make65(),
	} {
		if _, err := NewPlan("c", nodes, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := NewPlan("", nil, 0); err == nil {
		t.Error("no name")
	}
	if _, err := NewStatic("c", nil); !errors.Is(err, errNoPlan) {
		t.Errorf("empty list: %v", err)
	}
}

func make65() (nodes []string) {
	for i := range 65 {
		nodes = append(nodes, fmt.Sprintf("n%d:1", i))
	}
	return nodes
}

func FuzzDecode(f *testing.F) {
	s := Status{State: Prepared, Name: "c", Group: gid("G"), ID: 300, Nodes: []string{"a:1", "b:1"}}
	f.Add(s.encode())
	s.Replaced = []transport.GroupID{gid("H"), gid("I")}
	f.Add(s.encode())
	f.Add((&record{gid("G"), 2, testPlan("a", "b")}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := decodeStatus(b); err == nil {
			again, err := decodeStatus(s.encode())
			if err != nil || fmt.Sprint(s) != fmt.Sprint(again) {
				t.Fatalf("%v becomes %v, %v", s, again, err)
			}
		}
		_, _ = decodeRecord(b)
	})
}
