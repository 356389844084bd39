//go:build kubernetes

package kubernetes

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// The addresses of the cluster, which only its namespaces know.
const (
	switchIP  = "10.90.0.1" // of the control plane, of DNS, and of the tests
	apiServer = "https://" + switchIP + ":6443"
	services  = "10.96.0.0/16"
	allPods   = "10.244.0.0/16"
	domain    = "cluster.local"
	// classed is the storage class, the cluster's default.
	class = "local"
)

func nodeName(n int) string { return fmt.Sprintf("node%d", n) }
func nodeIP(n int) string   { return fmt.Sprintf("10.90.0.%d", 10+n) }
func podsOf(n int) string   { return fmt.Sprintf("10.244.%d.0/24", n) }

// cluster is a Kubernetes: its control plane runs where the tests do, and every node in
// namespaces of its own, at the end of a cable to a switch.
type cluster struct {
	t       testing.TB // the test that runs now
	outer   testing.TB // the one whose end is the cluster's
	dir     string     // of the run
	tools   string
	keys    *keys
	api     *api
	admin   string // kubeconfig
	nodes   []*machine
	volumes int64 // bytes of each volume; 0: all share
	stop    chan struct{}
	tasks   sync.WaitGroup
}

// startCluster starts a cluster whose nodes have the images, archives by `docker save`. It is
// there until the test ends. Each volume is a disk of its own of so many bytes; 0: a directory.
func startCluster(t testing.TB, nodes int, volumes int64, images ...string) *cluster {
	t.Helper()
	bin, err := filepath.Abs(*tools)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, outer: t, dir: *inside, tools: bin, volumes: volumes, nodes: make([]*machine, 0, nodes), stop: make(chan struct{})}
	t.Cleanup(func() { close(c.stop); c.tasks.Wait() })
	t.Cleanup(func() {
		if t.Failed() {
			c.lastWords()
		}
	})
	for _, dir := range []string{"log", "images", "volumes"} {
		c.must(os.MkdirAll(filepath.Join(c.dir, dir), 0o755))
	}
	c.must(writeImage(filepath.Join(c.dir, "images", "pause.tar"), imageOptions{Tags: []string{pauseImage}, Entrypoint: []string{"/pause"},
		Files: map[string]string{"/pause": filepath.Join(bin, "pause")}}))
	for i, image := range images {
		c.must(os.Rename(image, filepath.Join(c.dir, "images", fmt.Sprintf("%d.tar", i))))
	}
	c.network()
	// Nodes see the disks that are put in later.
	c.run("mount", "--bind", filepath.Join(c.dir, "volumes"), filepath.Join(c.dir, "volumes"))
	c.run("mount", "--make-shared", filepath.Join(c.dir, "volumes"))
	c.smallDisk(nodes)
	c.certificates(nodes)
	c.controlPlane()
	for n := range nodes {
		m := &machine{c: c, number: n + 1}
		c.nodes = append(c.nodes, m)
		m.prepare()
		m.start()
	}
	c.objects()
	for _, m := range c.nodes {
		m.awaitReady(true)
	}
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// run runs a command of this machine, which must not fail.
func (c *cluster) run(command ...string) string {
	c.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// tool runs one of Kubernetes' programs as the administrator.
func (c *cluster) tool(name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(c.tools, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.admin, "HOME="+c.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.tool("kube", append([]string{"kubectl"}, args...)...)
	c.must(err)
	return out
}

func (c *cluster) helm(args ...string) string {
	c.t.Helper()
	out, err := c.tool("helm", args...)
	c.must(err)
	return out
}

// eventually waits until something holds.
func (c *cluster) eventually(what string, fn func() error) {
	c.t.Helper()
	err := errors.New("not tried")
	for until := time.Now().Add(patience); err != nil; time.Sleep(50 * time.Millisecond) {
		if err = fn(); err != nil && time.Now().After(until) {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
}

// network makes the switch, and gives this side what it needs to be reached.
func (c *cluster) network() {
	c.run("mount", "-t", "tmpfs", "tmpfs", "/run") // sockets and locks of this machine's own programs
	c.run("ip", "link", "set", "lo", "up")
	c.run("ip", "link", "add", "switch", "type", "bridge", "forward_delay", "0")
	c.run("ip", "address", "add", switchIP+"/24", "dev", "switch")
	c.run("ip", "link", "set", "switch", "up")
	c.run("ip", "route", "add", services, "dev", "switch") // kube-proxy sends it elsewhere
	// The cables are no business of this machine's iptables.
	_ = os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0o644)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, switchIP+":53")
	}}
}

// smallDiskSize is what the last node's volumes have, together.
const smallDiskSize = 3 << 30

// smallDisk gives the last node a disk for its volumes that can be filled.
func (c *cluster) smallDisk(nodes int) {
	dir := filepath.Join(c.dir, "volumes", nodeName(nodes))
	c.must(os.MkdirAll(dir, 0o755))
	c.run("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", smallDiskSize), "tmpfs", dir)
}

func (c *cluster) certificates(nodes int) {
	var err error
	c.keys, err = newKeys(filepath.Join(c.dir, "keys"))
	c.must(err)
	c.must(c.keys.issue("apiserver", pkix.Name{CommonName: "kube-apiserver"}, "kubernetes", "kubernetes.default.svc", switchIP, "10.96.0.1", "127.0.0.1"))
	c.must(c.keys.issue("admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}))
	c.admin, err = c.keys.kubeconfig("admin")
	c.must(err)
	for n := range nodes {
		name := nodeName(n + 1)
		c.must(c.keys.issue(name, pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}))
		_, err = c.keys.kubeconfig(name)
		c.must(err)
	}
	c.api, err = newAPI(c.keys)
	c.must(err)
}

// spawn starts a program that runs as long as the cluster.
func (c *cluster) spawn(name string, args ...string) {
	c.t.Helper()
	_, err := servers.StartProcess(filepath.Join(c.dir, "log", name+".log"), filepath.Join(c.tools, args[0]), args[1:]...)
	c.must(err)
}

func (c *cluster) controlPlane() {
	const etcd = "http://127.0.0.1:2379"
	const peer = "http://127.0.0.1:2380"
	k := c.keys
	c.spawn("etcd", "kube", "etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn", "--name=one", "--initial-cluster=one="+peer,
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer)
	c.spawn("apiserver", "kube", "kube-apiserver", "--etcd-servers="+etcd, "--bind-address="+switchIP, "--advertise-address="+switchIP,
		"--service-cluster-ip-range="+services, "--authorization-mode=Node,RBAC", "--client-ca-file="+k.file("ca.crt"),
		"--tls-cert-file="+k.file("apiserver.crt"), "--tls-private-key-file="+k.file("apiserver.key"), "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate="+k.file("admin.crt"), "--kubelet-client-key="+k.file("admin.key"),
		"--service-account-issuer=https://kubernetes.default.svc."+domain, "--service-account-key-file="+k.file("accounts.key"),
		"--service-account-signing-key-file="+k.file("accounts.key"))
	c.eventually("the API server", func() error { return c.api.get("/readyz", nil) })
	c.spawn("controllers", "kube", "kube-controller-manager", "--kubeconfig="+c.admin, "--service-account-private-key-file="+k.file("accounts.key"),
		"--root-ca-file="+k.file("ca.crt"), "--leader-elect=false")
	c.spawn("scheduler", "kube", "kube-scheduler", "--kubeconfig="+c.admin, "--leader-elect=false")
	// As kubeadm sets it up: what pods are called is not cached.
	corefile := filepath.Join(c.dir, "Corefile")
	c.must(os.WriteFile(corefile, []byte(fmt.Sprintf(`.:53 {
  errors
  kubernetes %[1]s in-addr.arpa ip6.arpa {
    kubeconfig %[2]s
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 30
  }
  cache 30 {
    disable success %[1]s
    disable denial %[1]s
  }
}
`, domain, c.admin)), 0o644))
	c.spawn("dns", "coredns", "-conf", corefile)
}

// objects makes what a cluster has from its beginning: storage, and a way from the tests to its
// Services, for which this side is a node on which nothing is placed.
func (c *cluster) objects() {
	c.must(c.api.create("/apis/storage.k8s.io/v1/storageclasses", map[string]any{
		"metadata":    map[string]any{"name": class, "annotations": map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}))
	c.tasks.Go(c.provision)
	const clients = "clients"
	c.must(c.api.create("/api/v1/nodes", map[string]any{"metadata": map[string]any{"name": clients}, "spec": map[string]any{"unschedulable": true}}))
	c.must(c.api.call("PATCH", "/api/v1/nodes/"+clients+"/status", map[string]any{"status": map[string]any{
		"addresses": []map[string]string{{"type": "InternalIP", "address": switchIP}, {"type": "Hostname", "address": clients}}}}, nil))
	config := filepath.Join(c.dir, "proxy.yaml")
	c.must(os.WriteFile(config, []byte(proxyConfig(clients, c.admin)), 0o644))
	c.spawn("proxy", "kube", "kube-proxy", "--config="+config)
}

// proxyConfig is that of kube-proxy on a node. Limits of the kernel's are left alone.
func proxyConfig(node, kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: %s
hostnameOverride: %s
clientConnection: {kubeconfig: %q}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, allPods, node, kubeconfig)
}

// lastWords shows what the cluster's programs said last.
func (c *cluster) lastWords() {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "log", "*.log"))
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		c.t.Logf("%s:\n%s", filepath.Base(log), strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
	for _, args := range [][]string{{"get", "nodes,pods,pvc,pv", "-A", "-o", "wide"}, {"get", "events", "-A", "--sort-by=.lastTimestamp"}} {
		if out, err := c.tool("kube", append([]string{"kubectl"}, args...)...); err == nil {
			lines := strings.Split(out, "\n")
			c.t.Logf("kubectl %s:\n%s", strings.Join(args, " "), strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	}
	var all list[pod]
	_ = c.api.get("/api/v1/pods", &all)
	for _, p := range all.Items {
		if len(p.Status.Containers) == 1 && p.Status.Containers[0].Restarts > 0 {
			c.t.Logf("%s said before it was started again:\n%s", p.Meta.Name, c.saidBefore(p.Meta.Namespace, p.Meta.Name))
		}
	}
}

// saidBefore is the end of what a pod's container said before its newest start, or why that is not known.
func (c *cluster) saidBefore(namespace, pod string) string {
	out, err := c.tool("kube", "kubectl", "-n", namespace, "logs", pod, "--previous", "--tail=12")
	if err != nil {
		return fmt.Sprintf("%s (%v)", out, err)
	}
	return out
}

// pods lists the pods of a namespace with a label.
func (c *cluster) pods(namespace, selector string) (pods []pod, err error) {
	var l list[pod]
	err = c.api.get("/api/v1/namespaces/"+namespace+"/pods?labelSelector="+selector, &l)
	slices.SortFunc(l.Items, func(a, b pod) int { return strings.Compare(a.Meta.Name, b.Meta.Name) })
	return l.Items, err
}
