//go:build clients

package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/e2e/servers"
)

func fromRoot(path string) string {
	abs, err := filepath.Abs(filepath.Join("..", "..", path))
	if err != nil {
		panic(err)
	}
	return abs
}

// serve starts a group of n servers, of the binary that the Makefile builds.
func serve(t *testing.T, n int) *servers.Group {
	t.Helper()
	return servers.Test(t, servers.Options{Binary: fromRoot("bin/trireme"), Nodes: n, Settings: []string{"--max-connections=600"}})
}

// program runs a client's program, whose environment has the server's address.
func program(t *testing.T, port int, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "TRIREME_HOST=127.0.0.1", fmt.Sprintf("TRIREME_PORT=%d", port), "TRIREME_USER=root", "TRIREME_PASSWORD="+servers.Password)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		return
	}
	t.Logf("%s", out)
}
