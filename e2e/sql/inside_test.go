package sql

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

var inside = flag.Bool("e2e.inside", false, "set by a test that runs itself in namespaces of its own")

// runInside runs a test once more, in another process with namespaces of its own (CLONE_NEW…);
// if a user namespace is among them, as its root.
func runInside(t *testing.T, namespaces uintptr) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0", "-e2e.inside", "-e2e.duration="+duration.String(), fmt.Sprintf("-e2e.seed=%d", *seed))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	if namespaces&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("in namespaces of its own: %v", err)
	}
}
