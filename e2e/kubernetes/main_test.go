//go:build kubernetes

package kubernetes

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	tools        = flag.String("e2e.tools", "../../bin/kubernetes", "directory of Kubernetes' programs, as `make bin/kubernetes/built` makes it")
	under        = flag.String("e2e.dir", "/var/tmp", "where the directory for all that a run writes is made")
	report       = flag.String("e2e.report", "", "a file for the table of recovery times")
	only         = flag.String("e2e.lives", "", "a regular expression: what happens to the group, of all that may; empty: all of it")
	k6           = flag.Bool("e2e.k6", false, "let k6 (`make bin/k6`) load the group, too, while its image is changed")
	hold         = flag.Bool("e2e.hold", false, "leave the cluster up at the end, until ^C")
	combinations = flag.Int("e2e.combinations", 0, "instead of all that: so many lives, each with one member that is not whole")
	firstSeed    = flag.Uint64("e2e.seed", 0, "the first one's seed, by which it can be led alone; each next one's is the next number")
	failures     = flag.String("e2e.failures", filepath.Join(os.TempDir(), "trireme-notwhole"), "where the logs of combinations that fail are put")
	inside       = flag.String("e2e.inside", "", "set by the test when it runs itself in namespaces of its own: the run's directory")
)

const (
	// patience is how long a test waits for what has to come.
	patience = 4 * time.Minute
	// cniPlugins is where Debian's containernetworking-plugins are.
	cniPlugins = "/usr/lib/cni"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *inside != "" {
		os.Exit(m.Run())
	}
	code, err := runInside()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runInside runs the tests once more in namespaces of their own, with a first process that
// takes in orphans, and removes what they leave: all of their processes, mounts and networks
// end with the namespaces.
func runInside() (code int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("nodes are made of namespaces and control groups: this needs root")
	}
	for _, program := range []string{"containerd", "ctr", "runc", "iptables", "ip", "nsenter", "unshare", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			return 0, fmt.Errorf("%w: install Debian's containerd, runc, containernetworking-plugins, iptables, iproute2", err)
		}
	}
	if _, err := os.Stat(filepath.Join(*tools, "kube")); err != nil {
		return 0, fmt.Errorf("%w: make bin/kubernetes/built", err)
	}
	dir, err := os.MkdirTemp(*under, "trireme-kubernetes-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), removeGroups(filepath.Base(dir))) }()
	args := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
		"bash", "-c", `"$@"; exit $?`, "bash", "/proc/self/exe"}
	if args[len(args)-1], err = os.Executable(); err != nil {
		return 0, err
	}
	cmd := exec.Command("unshare", slices.Concat(args, os.Args[1:], []string{"-e2e.inside=" + dir})...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-interrupted:
		_ = cmd.Process.Kill()
		err = <-ended
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// removeGroups removes the control groups of a run: they are the kernel's, and outlive the
// processes.
func removeGroups(name string) error {
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var left []string
		roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
		for _, root := range append(roots, "/sys/fs/cgroup/"+name) {
			var all []string
			_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					all = append(all, path)
				}
				return nil
			})
			for _, path := range slices.Backward(all) {
				if os.Remove(path) != nil {
					left = append(left, path)
				}
			}
		}
		if len(left) == 0 || time.Now().After(until) {
			if len(left) > 0 {
				return fmt.Errorf("control groups are left: %s", strings.Join(left, " "))
			}
			return nil
		}
	}
}
