//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is what keeps one member from being whole.
type fault struct {
	name string
	// begin does it to a pod, and returns what ends it. Both run beside what happens to the group.
	begin func(c *combination, p *pod) (end func(), err error)
	// disables says that the member cannot vote meanwhile.
	disables bool
}

var faults = []fault{
	{"pending", (*combination).pending, false},
	{"frozen", (*combination).frozen, true},
	{"starved", (*combination).starved, true},
	{"full", (*combination).full, true},
	{"partitioned", (*combination).partitioned, true},
	{"unheard", (*combination).unheard, true},
	{"emptied", (*combination).emptied, false},
}

// try does something again until it succeeds: the group is in motion.
func try(fn func() error) (err error) {
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if err = fn(); err == nil {
			return nil
		}
	}
	return err
}

// nodeOf is the node that a pod is on.
func (c *cluster) nodeOf(p *pod) (*machine, error) {
	for _, m := range c.nodes {
		if m.name() == p.Spec.Node {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s is on %q", p.Meta.Name, p.Spec.Node)
}

// cordon keeps pods from a node, or not any more.
func (c *cluster) cordon(node string, on bool) error {
	return c.api.call("PATCH", "/api/v1/nodes/"+node, map[string]any{"spec": map[string]any{"unschedulable": on}}, nil)
}

// pending: the pod ends and cannot be placed, since its volume is on a node that takes none.
func (c *combination) pending(p *pod) (end func(), err error) {
	m, err := c.nodeOf(p)
	if err != nil {
		return nil, err
	}
	end = func() { c.note(try(func() error { return c.cordon(m.name(), false) })) }
	if err := c.cordon(m.name(), true); err != nil {
		return end, err
	}
	return end, c.api.remove(c.podPath(p.Meta.Name))
}

// frozen: its process stands still.
func (c *combination) frozen(p *pod) (end func(), err error) {
	m, err := c.nodeOf(p)
	if err != nil {
		return nil, err
	}
	pid, err := m.find(p, "/trireme")
	if err != nil {
		return nil, err
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, syscall.Kill(pid, syscall.SIGSTOP)
}

// starved: it has 3 % of a processor.
func (c *combination) starved(p *pod) (end func(), err error) {
	m, err := c.nodeOf(p)
	if err != nil {
		return nil, err
	}
	pid, err := m.find(p, "/trireme")
	if err != nil {
		return nil, err
	}
	group, err := controlGroup(pid, "cpu")
	if err != nil {
		return nil, err
	}
	file, less, as := filepath.Join(group, "cpu.max"), "3000 100000", "max 100000" // version 2
	if _, err := os.Stat(file); err != nil {
		file, less, as = filepath.Join(group, "cpu.cfs_quota_us"), "3000", "-1"
	}
	return func() { _ = os.WriteFile(file, []byte(as), 0o644) }, os.WriteFile(file, []byte(less), 0o644)
}

// full: there is no room on its volume.
func (c *combination) full(p *pod) (end func(), err error) {
	var of claim
	if err := c.api.get("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/data-"+p.Meta.Name, &of); err != nil {
		return nil, err
	}
	filler := filepath.Join(c.dir, "volumes", p.Spec.Node, "volume-"+of.Meta.UID, "filler")
	out, _ := exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=64k").CombinedOutput() // until there is no room
	end = func() { _ = os.Remove(filler) }
	if !strings.Contains(string(out), "No space left") {
		return end, fmt.Errorf("the disk is not full: %s", out)
	}
	return end, nil
}

// partitioned: it and the other members do not hear each other. The kubelet, programs outside of the
// cluster and Kubernetes' API do.
func (c *combination) partitioned(p *pod) (end func(), err error) {
	return c.cut(p, []string{"OUTPUT", "--destination"}, []string{"INPUT", "--source"})
}

// unheard: the others do not hear it.
func (c *combination) unheard(p *pod) (end func(), err error) {
	return c.cut(p, []string{"OUTPUT", "--destination"})
}

// cut drops what goes between a pod and other pods.
func (c *combination) cut(p *pod, ways ...[]string) (end func(), err error) {
	m, err := c.nodeOf(p)
	if err != nil {
		return nil, err
	}
	pid, err := m.find(p, "/trireme")
	if err != nil {
		return nil, err
	}
	change := func(how string) (err error) {
		for _, way := range ways {
			for _, rule := range [][]string{{p.gateway(), "ACCEPT"}, {allPods, "DROP"}} {
				out, e := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-n", "--", "iptables", how, way[0], way[1], rule[0], "--jump", rule[1]).CombinedOutput()
				if e != nil {
					err = errors.Join(err, fmt.Errorf("iptables %s: %w\n%s", how, e, out))
				}
			}
		}
		return err
	}
	return func() { _ = change("--delete") }, change("--append") // with the pod the rules go
}

// gateway is the node's own address on the network of the pod, from where the kubelet asks.
func (p *pod) gateway() string {
	return p.Status.IP[:strings.LastIndexByte(p.Status.IP, '.')] + ".1"
}

// emptied: its claim is deleted, and its pod. It comes back as another member by itself.
func (c *combination) emptied(p *pod) (end func(), err error) {
	return func() {}, c.empty(p)
}

func (c *combination) empty(p *pod) error {
	claim := "data-" + p.Meta.Name
	c.w.take(claim)
	if err := c.api.remove("/api/v1/namespaces/" + namespace + "/persistentvolumeclaims/" + claim); err != nil {
		return err
	}
	return c.api.remove(c.podPath(p.Meta.Name))
}
