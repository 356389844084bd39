//go:build monitoring

package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// insideVar is set in a process that runs in namespaces of its own.
const insideVar = "MONITORING_TEST_INSIDE"

// TestMain runs the tests in a user and a mount namespace where this user may not mount disks.
func TestMain(m *testing.M) {
	if socket := os.Getenv(underVar); socket != "" {
		fmt.Fprintln(os.Stderr, becomeNode(socket, os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "trireme-disk-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m")
		if err == nil {
			if err = syscall.Unmount(dir, 0); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return m.Run()
		}
		if os.Getenv(insideVar) != "" {
			fmt.Fprintln(os.Stderr, "no disk can be mounted, neither as this user nor in a user namespace:", err)
			return 1
		}
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), insideVar+"=1")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}())
}
