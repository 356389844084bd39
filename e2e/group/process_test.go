package group_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers/ports"
)

// process is a running node.
type process struct {
	addr  string // of the control protocol
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	exit  error // after done
}

// patience is how long anything may take that has to happen in the end: the machine
// that tests run on may be busy.
const patience = 2 * time.Minute

// answerTime is how long a node may take to say how it stands before it is asked anew.
const answerTime = 5 * time.Second

// startProcess runs a node, and returns once it serves. What it logs is added to a
// file.
func startProcess(s *setup, logName string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	first := make(chan started, 1)
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadBytes('\n')
		var st started
		if json.Unmarshal(line, &st) != nil {
			st.Error = "it ended without a word"
		}
		first <- st
		_, _ = io.Copy(io.Discard, r)
		p.exit = p.cmd.Wait()
		close(p.done)
	}()
	select {
	case st := <-first:
		if st.Error != "" {
			p.kill()
			return nil, errors.New(st.Error)
		}
		p.addr = st.Addr
		return p, nil
	case <-time.After(patience):
		p.kill()
		return nil, errors.New("it does not start in time")
	}
}

// kill ends the process without a warning.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop lets the process end.
func (p *process) stop() error {
	_ = p.stdin.Close()
	select {
	case <-p.done:
		return p.exit
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its stacks go to the log
		<-p.done
		return errors.New("it does not end in time")
	}
}

func (p *process) pause()  { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// freeAddr finds an address for a node, which stays free while the node is down.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// tail returns the last lines of a file.
func tail(name string, lines int) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// workDir is where the nodes of a test live.
func workDir(t *testing.T) string {
	t.Helper()
	if *keepDir == "" {
		return t.TempDir()
	}
	dir := filepath.Join(*keepDir, t.Name())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
