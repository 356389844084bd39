package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// A round in which others used more than calmShare of the processors is repeated, up
// to roundsMax times the rounds wanted.
const (
	calmShare = 0.15
	roundsMax = 2
)

// contender is one side of a comparison.
type contender struct {
	name  string
	group *cluster
	writer
	clients int // 0: as many as the others
}

// rounds are the turns of the contenders, by contender and round.
type rounds struct {
	turns [][]*turn
	busy  bool // others worked in nearly every round
}

// compete lets the contenders take turns. A first round warms up and does not
// count. If the machine is too busy for enough calm rounds, all rounds count.
func compete(c *config, what string, clients int, list []*contender) (*rounds, error) {
	calm, all := make([][]*turn, len(list)), make([][]*turn, len(list))
	for round := -1; round < c.rounds*roundsMax && len(calm[0]) < c.rounds; round++ {
		row := make([]*turn, len(list))
		isCalm := true
		for i, one := range list {
			n := clients
			if one.clients > 0 {
				n = one.clients
			}
			t, err := drive(one.group, one.writer, n, c.slice)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", what, one.name, err)
			}
			row[i] = t
			isCalm = isCalm && t.foreign < calmShare
		}
		for i := range list {
			if round >= 0 {
				all[i] = append(all[i], row[i])
			}
			if round >= 0 && isCalm {
				calm[i] = append(calm[i], row[i])
			}
		}
	}
	r := &rounds{turns: calm}
	if len(calm[0]) < min(3, c.rounds) {
		r.turns, r.busy = all, true
	}
	for i, one := range list {
		fmt.Fprintf(os.Stderr, "  %-24s %-12s %8.0f/s, p50 %s, p99 %s, %.0f us CPU each\n", what, one.name,
			r.median(i, (*turn).rate), millis(r.time(i, p50)), millis(r.time(i, p99)), r.median(i, (*turn).cpuEach))
	}
	fmt.Fprintf(os.Stderr, "  %-24s %d calm rounds of %d\n", what, len(calm[0]), len(all[0]))
	return r, nil
}

func p50(t *turn) time.Duration { return t.p50 }
func p99(t *turn) time.Duration { return t.p99 }

// median is that of a contender's turns.
func (r *rounds) median(i int, of func(*turn) float64) float64 { return medianOf(r.turns[i], of) }

func (r *rounds) time(i int, of func(*turn) time.Duration) time.Duration {
	return medianOf(r.turns[i], of)
}

// over is the median over the rounds of one contender's figure to another's: what
// disturbs a round disturbs both of its turns.
func (r *rounds) over(a, b int, of func(*turn) float64) float64 {
	ratios := make([]float64, len(r.turns[a]))
	for i := range ratios {
		ratios[i] = of(r.turns[a][i]) / of(r.turns[b][i])
	}
	return median(ratios)
}

// clientCounts are the numbers of clients, and by how much we should be faster than
// etcd; 0: no target.
var clientCounts = []struct {
	clients int
	target  float64
}{{1, 1}, {8, 0}, {64, 2}, {clientsMax, 2}}

// clientsMax is the most clients at a time.
const clientsMax = 256

// measureCommits compares commits of one row with etcd's puts.
func measureCommits(c *config, r *report) (err error) {
	ours, err := newGroup(c, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	theirs, err := newCluster(c, "etcd", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.close()) }()
	list, err := contenders(ours, theirs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list[0].close(), list[2].close()) }()
	rows := [][]string{{"Clients", "Trireme/s", "by calls", "etcd/s", "Trireme p50", "p99", "etcd p50", "p99", "Trireme CPU", "by calls", "etcd CPU"}}
	for _, n := range clientCounts {
		who := clientsOf(n.clients)
		what := "commits/s, " + who + ", beside etcd's puts"
		res, err := compete(c, who, n.clients, list)
		if err != nil {
			return err
		}
		if res.busy {
			r.busy = append(r.busy, what)
		}
		r.faster(what, res, 0, 2, n.target)
		r.faster("the same, "+who+", each commit a call of its own", res, 1, 2, 0)
		rate := func(i int) string { return fmt.Sprintf("%.0f", res.median(i, (*turn).rate)) }
		cpu := func(i int) string { return fmt.Sprintf("%.0f us", res.median(i, (*turn).cpuEach)) }
		rows = append(rows, []string{fmt.Sprint(n.clients), rate(0), rate(1), rate(2), millis(res.time(0, p50)), millis(res.time(0, p99)),
			millis(res.time(2, p50)), millis(res.time(2, p99)), cpu(0), cpu(1), cpu(2)})
		if err := c.profileTurn(ours, list[0], n.clients); err != nil {
			return err
		}
	}
	r.table("Commits of one 200-byte row", rows)
	r.note("A client waits for each answer before it writes again; all share %d connections. Trireme's clients have a stream each, as sessions will; "+
		"\"by calls\" is the same with a gRPC call for each commit, which is what a put is. CPU is that of the three servers for each commit; "+
		"the clients use the same processors.", connections)
	return ours.settled()
}

func clientsOf(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// contenders connects to the leaders of both groups.
func contenders(ours, theirs *cluster) ([]*contender, error) {
	leader, err := ours.leader()
	if err != nil {
		return nil, err
	}
	addr, err := theirs.etcdLeader()
	if err != nil {
		return nil, err
	}
	a, err := dialNode(ours.flags[leader].listen)
	if err != nil {
		return nil, err
	}
	b, err := dialEtcd(addr)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return []*contender{{name: "trireme", group: ours, writer: newStreamWriter(a)},
		{name: "by calls", group: ours, writer: callWriter{a}}, {name: "etcd", group: theirs, writer: b}}, nil
}

// profileTurn takes profiles of the leader, of a follower and of the clients in a turn
// of its own, if profiles are wanted.
func (c *config) profileTurn(k *cluster, one *contender, clients int) error {
	if c.profile == "" {
		return nil
	}
	leader, err := k.leader()
	if err != nil {
		return err
	}
	name := func(who string) string { return fmt.Sprintf("%s%s%d.prof", c.profile, who, clients) }
	f, err := os.Create(name("clients"))
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range k.nodes {
		if _, err := k.command(i, command{Do: "profile", On: true}); err != nil {
			return err
		}
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	_, err = drive(k, one.writer, clients, max(c.slice, 5*time.Second))
	pprof.StopCPUProfile()
	for i := range k.nodes {
		a, e := k.command(i, command{Do: "profile"})
		who := fmt.Sprintf("follower%d-", i+1)
		if i == leader {
			who = "leader"
		}
		err = errors.Join(err, e, os.WriteFile(name(who), a.Profile, 0o644))
	}
	return err
}

// measureHotRow lets many clients change one row, and each its own.
func measureHotRow(c *config, r *report) (err error) {
	k, err := newGroup(c, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	leader, err := k.leader()
	if err != nil {
		return err
	}
	conns, err := dialNode(k.flags[leader].listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conns.close()) }()
	w := newStreamWriter(conns)
	hot, apart := bumpWriter{w, true}, bumpWriter{w, false}
	res, err := compete(c, "one row", hotCounters, []*contender{{name: "64 clients", group: k, writer: hot},
		{name: "own rows", group: k, writer: apart}, {name: "1 client", group: k, writer: hot, clients: 1}})
	if err != nil {
		return err
	}
	if res.busy {
		r.busy = append(r.busy, "updates of one row")
	}
	r.faster(fmt.Sprintf("updates/s of one row by %d clients, beside 1 client", hotCounters), res, 0, 2, 0)
	r.faster(fmt.Sprintf("updates/s of one row by %d clients, beside rows of their own", hotCounters), res, 0, 1, 0)
	r.note("One row: %.0f updates/s by %d clients (p99 %s), %.0f/s by one; rows of their own: %.0f/s (p99 %s).", res.median(0, (*turn).rate),
		hotCounters, millis(res.time(0, p99)), res.median(2, (*turn).rate), res.median(1, (*turn).rate), millis(res.time(1, p99)))
	return k.counted(0, func(sum int64) error {
		if want := bumps.Load(); sum != want {
			return fmt.Errorf("the counters say %d, but there were %d updates", sum, want)
		}
		return nil
	})
}
