//go:build network

package sql

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// cables is a network made by the kernel: each node has a namespace of its own, and a
// cable from there to the switch in the test's. Whoever holds a connection over a cable
// that is pulled is told nothing, as with a real one. All of it is gone with the processes.
type cables struct {
	t     *testing.T
	hosts []*servers.Process // they keep the nodes' namespaces
}

func (c *cables) run(command ...string) {
	c.t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// enter is the command that runs another one where a node is.
func (c *cables) enter(node int) []string {
	return []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", c.hosts[node].PID())}
}

func address(node int) string { return fmt.Sprintf("198.18.0.%d", node+1) }

func cable(node int) string { return fmt.Sprintf("cable%d", node+1) }

// newCabledGroup starts three nodes at the ends of cables.
func newCabledGroup(t *testing.T) (*servers.Group, *cables) {
	t.Helper()
	c := &cables{t: t}
	dir := t.TempDir()
	c.run("ip", "link", "set", "lo", "up")
	c.run("ip", "link", "add", "switch", "type", "bridge", "forward_delay", "0")
	c.run("ip", "address", "add", address(253)+"/24", "dev", "switch")
	c.run("ip", "link", "set", "switch", "up")
	for i := range 3 {
		host, err := servers.StartProcess(dir+"/hosts.log", "unshare", "--net", "sleep", "infinity")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(host.Kill)
		c.hosts = append(c.hosts, host)
		c.awaitHost(i)
		c.run("ip", "link", "add", cable(i), "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(host.PID()))
		for _, inside := range [][]string{{"link", "set", "lo", "up"}, {"address", "add", address(i) + "/24", "dev", "eth0"}, {"link", "set", "eth0", "up"}} {
			c.run(append(append(c.enter(i), "ip"), inside...)...)
		}
		c.plug(i)
	}
	g, err := servers.New(servers.Options{Binary: binary, Dir: dir, Nodes: 3, Host: address, Enter: c.enter})
	if err != nil {
		t.Fatal(err)
	}
	servers.Start(t, g)
	return g, c
}

// awaitHost waits until a node's namespace is there.
func (c *cables) awaitHost(node int) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		c.t.Fatal(err)
	}
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", c.hosts[node].PID()))
		if err == nil && its != own {
			return
		}
		if time.Now().After(until) {
			c.t.Fatalf("no network namespace: %v\n%s", err, c.hosts[node].LastWords())
		}
	}
}

// pull pulls a node's cable: its card has no carrier any more.
func (c *cables) pull(node int) { c.run("ip", "link", "set", cable(node), "down") }

// lose makes the switch forget a node's port: what the node sends goes nowhere.
func (c *cables) lose(node int) { c.run("ip", "link", "set", cable(node), "nomaster") }

// plug puts a node's cable in again.
func (c *cables) plug(node int) { c.run("ip", "link", "set", cable(node), "master", "switch", "up") }

// shrink makes the network lose what a node sends to others in packets above a size, and says nothing of it: as behind a tunnel
// that carries less than the interface says, where messages about that are filtered. The node's own filter does it.
func (c *cables) shrink(node int, to ...int) {
	for _, other := range to {
		c.run(append(c.enter(node), "iptables", "-A", "OUTPUT", "-d", address(other), "-m", "length", "--length", "601:65535", "-j", "DROP")...)
	}
}

// widen ends that.
func (c *cables) widen(node int) { c.run(append(c.enter(node), "iptables", "-F", "OUTPUT")...) }

// inNamespaces runs the test once more in a network of its own, and reports whether this is that run.
func inNamespaces(t *testing.T) bool {
	if !*inside { // as root, or as the root of a user namespace
		namespaces := uintptr(syscall.CLONE_NEWNET)
		if os.Geteuid() != 0 {
			namespaces |= syscall.CLONE_NEWUSER
		}
		runInside(t, namespaces)
	}
	return *inside
}

// When cables are pulled, or a switch loses frames, those who are still connected to a
// majority go on, and all do when the cables are back. The bank's money neither comes nor
// goes and no acknowledged transfer is lost.
func TestPulledCables(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	g, c := newCabledGroup(t)
	r := plan(t)
	b := newBank(t, g, r)
	for until := time.Now().Add(*duration); time.Now().Before(until); {
		first := leader(t, g).Number - 1
		out := []int{first}
		switch r.IntN(4) {
		case 0:
			out = []int{(first + 1 + r.IntN(2)) % 3}
		case 1:
			out = r.Perm(3)[:1+r.IntN(3)]
		}
		how, cut := "pulled", c.pull
		if r.IntN(2) == 0 {
			how, cut = "lost", c.lose
		}
		t.Logf("node %d leads; %s from 0: %v", first+1, how, out)
		began := time.Now()
		var rest []*servers.Node
		for i, n := range g.Nodes {
			if slices.Contains(out, i) {
				cut(i)
			} else {
				rest = append(rest, n)
			}
		}
		if len(rest) > 1 {
			b.goesOn(rest...)
			t.Logf("the others go on after %v", time.Since(began).Round(time.Millisecond))
		}
		time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
		for _, i := range out {
			c.plug(i)
		}
		began = time.Now()
		b.goesOn(g.Nodes...)
		t.Logf("all go on after %v", time.Since(began).Round(time.Millisecond))
	}
	b.end()
}

// When the network carries a leader's heartbeats and loses its entries, another member leads within seconds, and goes on doing so. Where
// one way only is like that nobody notices.
func TestLargerPacketsAreLost(t *testing.T) {
	if !inNamespaces(t) {
		return
	}
	g, c := newCabledGroup(t)
	r := plan(t)
	b := newBank(t, g, r)
	b.goesOn(g.Nodes...)
	for until := time.Now().Add(*duration); time.Now().Before(until); {
		l := leader(t, g)
		first := l.Number - 1
		others := []int{(first + 1) % 3, (first + 2) % 3}
		rest := []*servers.Node{g.Nodes[others[0]], g.Nodes[others[1]]}
		before := status(t, l)
		if c.shrink(first, others[0]); r.IntN(2) == 0 {
			time.Sleep(6 * time.Second)
			b.goesOn(l, rest[1])
			if now := status(t, l); now.Term != before.Term || !now.Writable || now.Undelivered != 0 {
				t.Errorf("one way loses larger packets: node %d led in term %d, and says now %+v", l.Number, before.Term, now)
			}
		}
		c.shrink(first, others[1])
		began := time.Now()
		var now *servers.Node
		for now == nil {
			for _, n := range rest {
				if s, err := n.Status(); err == nil && s.Writable {
					now = n
				}
			}
			if time.Since(began) > patience {
				t.Fatalf("node %d leads on though its entries get to nobody: %+v", l.Number, status(t, l))
			}
		}
		took := time.Since(began)
		t.Logf("node %d takes over from node %d after %v", now.Number, l.Number, took.Round(time.Millisecond))
		if took > 15*time.Second {
			t.Error("that is late")
		}
		b.goesOn(rest...)
		led := status(t, now)
		time.Sleep(6 * time.Second)
		b.goesOn(rest...)
		if s := status(t, now); s.Term != led.Term || !s.Writable {
			t.Errorf("node %d led in term %d, and says now %+v", now.Number, led.Term, s)
		}
		c.widen(first)
		b.goesOn(g.Nodes...)
	}
	b.end()
}

func status(t *testing.T, n *servers.Node) servers.Status {
	t.Helper()
	s, err := n.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
