package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a server that this benchmark has started.
type process struct {
	flags roleFlags
	cmd   *exec.Cmd
	stdin io.Closer
	out   bytes.Buffer // behind "ready"; complete once it has ended
	err   bytes.Buffer
	done  chan struct{}
	exit  error
}

// running are all processes, so that none is left behind.
var running struct {
	sync.Mutex
	list map[*process]bool
}

func killAll() {
	running.Lock()
	defer running.Unlock()
	for p := range running.list {
		_ = p.cmd.Process.Kill()
	}
}

// startLimit is how long a server may take until it is ready. One that has much to
// recover needs a while on a busy machine.
const startLimit = time.Minute

// start starts a server and waits until it is ready.
func start(f roleFlags) (*process, error) {
	p, line, err := spawn(f)
	if err != nil {
		return nil, err
	}
	select {
	case err = <-line:
	case <-time.After(startLimit):
		err = errors.New("it is not ready in time")
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%s %d: %w\n%s", f.name, f.id, err, p.err.Bytes())
	}
	return p, nil
}

// spawn starts a server. line gets something when it is ready.
func spawn(f roleFlags) (p *process, line chan error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	p = &process{flags: f, cmd: exec.Command(self, f.args()...), done: make(chan struct{})}
	p.cmd.Stderr = &p.err
	if f.verbose {
		p.cmd.Stderr = os.Stderr
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	running.Lock()
	if running.list == nil {
		running.list = map[*process]bool{}
	}
	running.list[p] = true
	running.Unlock()
	line = make(chan error, 1)
	go func() {
		r := bufio.NewReader(stdout)
		_, err := r.ReadString('\n')
		line <- err
		_, _ = p.out.ReadFrom(r)
		p.exit = p.cmd.Wait()
		running.Lock()
		delete(running.list, p)
		running.Unlock()
		close(p.done)
	}()
	return p, line, nil
}

// kill ends the process without a warning.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// end lets the process end.
func (p *process) end() error {
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(startLimit):
		p.kill()
		return fmt.Errorf("%s %d does not end", p.flags.name, p.flags.id)
	}
	if p.exit != nil {
		return fmt.Errorf("%s %d: %w\n%s", p.flags.name, p.flags.id, p.exit, p.err.Bytes())
	}
	return nil
}

// cpu is the CPU time of the process so far.
func (p *process) cpu() time.Duration {
	var ts unix.Timespec
	clock := int32(^p.cmd.Process.Pid)<<3 | 2 // clock_getcpuclockid(3)
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// ownCPU is the CPU time of this process so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// freeAddr finds an address nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
