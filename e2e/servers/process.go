package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running program.
type Process struct {
	Log string // the file with what it says

	cmd    *exec.Cmd
	exited chan struct{}
}

// StartProcess starts a program; what it says is added to the file log. It does not
// outlive this one.
func StartProcess(log, name string, args ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU is the processor time that the process has used; 0 if it does not run any more.
func (p *Process) CPU() time.Duration {
	var used unix.Timespec
	clock := int32(^p.PID())<<3 | 2 // clock_getcpuclockid(3)
	if err := unix.ClockGettime(clock, &used); err != nil {
		return 0
	}
	return time.Duration(used.Nano())
}

// RSS is the process's resident memory in bytes; 0 if it does not run any more.
func (p *Process) RSS() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal sends the process a signal, if it still runs.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Stop asks the process to end and reports how it did; one that takes longer than the
// limit is killed.
func (p *Process) Stop(limit time.Duration) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("%s did not stop within %v", p.cmd.Path, limit)
	}
	s := p.cmd.ProcessState
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() && w.Signal() == syscall.SIGTERM {
		return nil // it had not come so far that it handles signals
	}
	if !s.Success() {
		return fmt.Errorf("%s ended with %v", p.cmd.Path, s)
	}
	return nil
}

// said is how much of a log is shown.
const said = 8000

// LastWords are the end of what the process has said.
func (p *Process) LastWords() string { return lastWords(p.Log) }

func lastWords(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-said):])
}

// Build compiles the server into a directory and returns its file.
func Build(dir string) (string, error) {
	const module = "github.com/triremedb/trireme"
	// The build has to run in that module: this one may be another, which replaces it.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	binary := filepath.Join(dir, "trireme-server")
	// As the image's program is built, so that the compiler does its work once for both.
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "./cmd/trireme")
	build.Dir, build.Env = strings.TrimSpace(string(root)), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}
