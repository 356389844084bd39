package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/server/kubernetes"
)

// TestEndWhenTold: a program of a Job ends by a code when it is told to, and not by a signal, which the first process of a container does not end by.
func TestEndWhenTold(t *testing.T) {
	const child = "TRIREME_TEST_END"
	if os.Getenv(child) != "" {
		endWhenTold()
		fmt.Println("it runs")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestEndWhenTold$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "it runs") {
		_ = cmd.Process.Kill()
		t.Fatal(line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != kubernetes.ExitTerminated {
		t.Errorf("it ends with %v", err)
	}
}
