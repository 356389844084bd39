//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// machine is a node of the cluster: a containerd, a kubelet and a kube-proxy in namespaces of
// its own for processes, mounts and the network. Its first process holds all of them.
type machine struct {
	c      *cluster
	number int
	now    *servers.Process // unshare, whose child is the first process
	off    bool
}

func (m *machine) name() string  { return nodeName(m.number) }
func (m *machine) dir() string   { return filepath.Join(m.c.dir, m.name()) }
func (m *machine) cable() string { return "cable" + strconv.Itoa(m.number) }

// groups is the control group of the node's pods.
func (m *machine) groups() string { return filepath.Base(m.c.dir) + "/" + m.name() }

// prepare writes the node's files, which are its disk.
func (m *machine) prepare() {
	c := m.c
	files := map[string]string{
		"containerd.toml": `version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true # who runs this may not be allowed to lower it
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + cniPlugins + `"
    conf_dir = "` + m.dir() + `/cni"
`,
		"cni/pods.conflist": `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "` + podsOf(m.number) + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`,
		"resolv.conf": "nameserver " + switchIP + "\n",
		"proxy.yaml":  proxyConfig(m.name(), c.admin),
		// Nodes are told apart from this machine by a control group; images cannot be pulled
		// anew, and the disk is this machine's.
		"kubelet.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: [pods]
clusterDNS: [%s]
clusterDomain: %s
resolvConf: %s
volumePluginDir: /var/lib/kubelet/plugins
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.inodesFree: 1%%}
`, c.keys.file("ca.crt"), m.groups(), switchIP, domain, filepath.Join(m.dir(), "resolv.conf")),
	}
	for name, text := range files {
		file := filepath.Join(m.dir(), name)
		c.must(os.MkdirAll(filepath.Dir(file), 0o755))
		c.must(os.WriteFile(file, []byte(text), 0o644))
	}
	for _, dir := range []string{"kubelet", "containerd", "logs"} {
		c.must(os.MkdirAll(filepath.Join(m.dir(), dir), 0o755))
	}
}

// boot is what a node's first process runs. What is not on the node's disk is empty after a
// start, as /run is on every machine.
const boot = `set -e
for dir in /run /var/lib /var/log; do mount -t tmpfs tmpfs $dir; done
mkdir -p /run/containerd /var/lib/kubelet /var/lib/containerd /var/log/pods
mount --bind $DIR/kubelet /var/lib/kubelet
mount --bind $DIR/containerd /var/lib/containerd
mount --bind $DIR/logs /var/log/pods
mount --make-rshared /
until ip route show default | grep -q via; do sleep 0.02; done
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables || true
containerd -c $DIR/containerd.toml >>$LOG-containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.05; done
for image in $RUN/images/*.tar; do
	[ -e $DIR/loaded ] || ctr -n k8s.io images import $image >/dev/null
done
touch $DIR/loaded
$TOOLS/kube kube-proxy --config=$DIR/proxy.yaml >>$LOG-proxy.log 2>&1 &
$TOOLS/kube kubelet --config=$DIR/kubelet.yaml --kubeconfig=$RUN/keys/$NODE.kubeconfig --hostname-override=$NODE \
	--node-ip=$IP --node-labels=topology.kubernetes.io/zone=zone-$NODE >>$LOG-kubelet.log 2>&1 &
wait
`

// start switches the node on.
func (m *machine) start() {
	c := m.c
	m.makeGroups()
	env := []string{"DIR=" + m.dir(), "LOG=" + filepath.Join(c.dir, "log", m.name()), "RUN=" + c.dir, "TOOLS=" + c.tools, "NODE=" + m.name(), "IP=" + nodeIP(m.number)}
	args := append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "slave", "env"}, env...)
	p, err := servers.StartProcess(filepath.Join(c.dir, "log", m.name()+".log"), "unshare", append(args, "bash", "-c", boot)...)
	c.must(err)
	m.now, m.off = p, false
	own, err := os.Readlink("/proc/self/ns/net")
	c.must(err)
	c.eventually(m.name()+" begins", func() error {
		its, err := os.Readlink("/proc/" + m.first() + "/ns/net")
		if err == nil && its == own {
			return errors.New("it has no network of its own")
		}
		return err
	})
	c.run("ip", "link", "add", m.cable(), "type", "veth", "peer", "name", "eth0", "netns", m.first())
	m.in("ip", "link", "set", "lo", "up")
	m.in("ip", "link", "set", "eth0", "address", fmt.Sprintf("02:00:00:00:00:%02x", m.number)) // its card's, also after a restart
	m.in("ip", "address", "add", nodeIP(m.number)+"/24", "dev", "eth0")
	m.in("ip", "link", "set", "eth0", "up")
	m.plug()
	for n := range cap(c.nodes) {
		if n+1 != m.number {
			m.in("ip", "route", "add", podsOf(n+1), "via", nodeIP(n+1))
		}
	}
	m.in("ip", "route", "add", "default", "via", switchIP) // what the node waits for
	c.run("ip", "route", "replace", podsOf(m.number), "via", nodeIP(m.number))
}

// first is the node's first process, as this machine numbers it.
func (m *machine) first() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.now.PID()))
	return strings.TrimSpace(string(b))
}

// in runs a command in the node's network.
func (m *machine) in(command ...string) {
	m.c.t.Helper()
	m.c.run(append([]string{"nsenter", "-t", m.first(), "-n", "--"}, command...)...)
}

// makeGroups makes the node's control groups. In version 1 those for processors and memory
// have to be told which of them may be used before somebody can be put in.
func (m *machine) makeGroups() {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	for _, procs := range roots {
		root := filepath.Dir(procs)
		m.c.must(os.MkdirAll(filepath.Join(root, m.groups()), 0o755))
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				continue
			}
			for _, group := range []string{filepath.Dir(m.groups()), m.groups()} {
				m.c.must(os.WriteFile(filepath.Join(root, group, name), all, 0o644))
			}
		}
	}
}

// powerOff ends all that runs on the node at once. What it has written stays: the kernel that
// keeps it is this machine's.
func (m *machine) powerOff() {
	m.now.Kill()
	m.off = true
	m.c.run("ip", "link", "delete", m.cable()) // the kernel takes its time to
	m.c.eventually(m.name()+" ends", func() error { return removeGroups(m.groups()) })
}

// pull takes the cable out of the switch: nobody is told.
func (m *machine) pull() { m.c.run("ip", "link", "set", m.cable(), "nomaster") }

// plug puts it in again.
func (m *machine) plug() { m.c.run("ip", "link", "set", m.cable(), "master", "switch", "up") }

// awaitReady waits until the cluster takes the node for ready, or for lost.
func (m *machine) awaitReady(ready bool) {
	m.c.t.Helper()
	m.c.eventually(fmt.Sprintf("%s ready: %v", m.name(), ready), func() error {
		var n kubeNode
		if err := m.c.api.get("/api/v1/nodes/"+m.name(), &n); err != nil {
			return err
		}
		if holds(n.Status.Conditions, "Ready") != ready {
			return fmt.Errorf("its conditions are %v", n.Status.Conditions)
		}
		return nil
	})
}

// kill sends SIGKILL to a program in a pod's container.
func (m *machine) kill(p *pod, program string) error { return m.signal(p, program, syscall.SIGKILL) }

// signal sends a signal to a pod's program.
func (m *machine) signal(p *pod, program string, s syscall.Signal) error {
	pid, err := m.find(p, program)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

// find is a program's process in a pod's container, as this machine numbers it; its control
// group tells the pod.
func (m *machine) find(p *pod, program string) (pid int, err error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		command, err := os.ReadFile(line)
		if err != nil || !strings.HasPrefix(string(command), program+"\x00") {
			continue
		}
		group, err := os.ReadFile(filepath.Join(filepath.Dir(line), "cgroup"))
		if err != nil || !strings.Contains(string(group), "pod"+p.Meta.UID) {
			continue
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(line)))
	}
	return 0, fmt.Errorf("%s does not run in %s", program, p.Meta.Name)
}

// controlGroup is the directory of a process's control group for something, as memory.
func controlGroup(pid int, controller string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) { // number:controllers:path
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) == 3 && slices.Contains(strings.Split(part[1], ","), controller) {
			return "/sys/fs/cgroup/" + controller + part[2], nil
		}
		if len(part) == 3 && part[0] == "0" && part[2] != "/" {
			return "/sys/fs/cgroup" + part[2], nil
		}
	}
	return "", fmt.Errorf("process %d has no control group for %s", pid, controller)
}

// starve takes the memory of a pod's container until the kernel ends the program in it.
func (m *machine) starve(p *pod, program string) error {
	pid, err := m.find(p, program)
	if err != nil {
		return err
	}
	group, err := controlGroup(pid, "memory")
	if err != nil {
		return err
	}
	// What is written to a file in memory counts as its writer's, but makes nobody large whom the
	// kernel could end instead.
	file := filepath.Join("/run", m.name()+"-hog")
	hog := exec.Command("bash", "-c", `echo $$ >"$0"/cgroup.procs; echo 0 >/proc/self/oom_score_adj; exec head -c 8G /dev/zero >"$1"`, group, file)
	if err := hog.Start(); err != nil {
		return err
	}
	lives := true
	for until := time.Now().Add(patience); lives && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		lives = syscall.Kill(pid, 0) == nil
	}
	_ = hog.Process.Kill()
	_ = hog.Wait()
	if err := os.Remove(file); err != nil || lives {
		return fmt.Errorf("%s in %s, process %d, lives on: %v (%w)", program, p.Meta.Name, pid, lives, err)
	}
	return nil
}

// isolate drops what a pod sends to others, or lets it pass again: what they send arrives.
func (m *machine) isolate(p *pod, others []pod, drop bool) error {
	pid, err := m.find(p, "/trireme")
	if err != nil {
		return err
	}
	change := "--append"
	if !drop {
		change = "--delete"
	}
	for _, o := range others {
		if o.Meta.UID != p.Meta.UID {
			m.c.run("nsenter", "-t", strconv.Itoa(pid), "-n", "--", "iptables", change, "OUTPUT", "--destination", o.Status.IP, "--jump", "DROP")
		}
	}
	return nil
}

// machineOf is the node that a pod is on.
func (c *cluster) machineOf(p *pod) *machine {
	c.t.Helper()
	for _, m := range c.nodes {
		if m.name() == p.Spec.Node {
			return m
		}
	}
	c.t.Fatalf("%s is on %q", p.Meta.Name, p.Spec.Node)
	return nil
}

// since is a time that has passed, for people.
func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }
