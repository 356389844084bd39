package transport

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/internal/process"
)

// childVariable makes the test's program member 2 at this address, whose peer, member 1, is at
// the other one.
const childVariable = "TRIREME_TRANSPORT_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		runChild(text)
	}
	os.Exit(m.Run())
}

// runChild is a member that sends a heartbeat whenever it is told to, and closes its transport
// at the end of its input, but lives on.
func runChild(text string) {
	addr, peer, _ := strings.Cut(text, " ")
	n := newNode(nil, 2)
	o := testOptions(2)
	o.Listen = addr
	var err error
	if n.net, err = New(o, n); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	n.net.SetPeers([]Peer{{1, peer}})
	fmt.Println("up")
	for in := bufio.NewReader(os.Stdin); ; {
		if _, err := in.ReadByte(); err != nil {
			break
		}
		n.net.Send([]*raftpb.Message{heartbeat(2, 1, 1)})
	}
	_ = n.net.Close()
	fmt.Println("closed")
	select {}
}

// startChild starts that process; the calls end its input, and kill it.
func startChild(t *testing.T, addr, peer string) (in io.WriteCloser, out *bufio.Reader, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+addr+" "+peer)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
	t.Cleanup(kill)
	out = bufio.NewReader(stdout)
	expect(t, out, "up")
	return in, out, kill
}

func expect(t *testing.T, out *bufio.Reader, want string) {
	t.Helper()
	if line, err := out.ReadString('\n'); err != nil || line != want+"\n" {
		t.Fatalf("the process says %q, %v; not %q", line, err, want)
	}
}

// The end of a peer's process on this host is known from the kernel, of the incarnation whose
// messages came; that its address refuses connections is another matter.
func TestGone(t *testing.T) {
	a := startNode(t, 1, nil)
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	a.net.SetPeers([]Peer{{2, addr}})
	var incarnations []uint64
	for range 2 {
		before := a.times(a.connected, 2)
		in, out, kill := startChild(t, addr, a.net.Addr())
		a.waitFor("connection", func() bool { return a.connected[2] > before })
		had, ended := len(a.heardFrom()), len(incarnations)
		a.waitFor("message", func() bool {
			_, _ = in.Write([]byte{1}) // it may not be connected yet
			return len(a.senders) > had
		})
		_ = in.Close()
		expect(t, out, "closed")
		refused := a.times(a.refused, 2)
		a.waitFor("refused", func() bool { return a.refused[2] > refused+2 })
		a.waitFor("that nobody is said to have ended who lives", func() bool { return len(a.ended) == ended })
		kill()
		a.waitFor("gone", func() bool { return len(a.ended) > ended })
		senders := a.heardFrom()
		incarnations = append(incarnations, senders[len(senders)-1])
		a.waitFor(fmt.Sprintf("the end of %x", incarnations), func() bool { return slices.Equal(a.ended, incarnations) })
	}
	if incarnations[0] == incarnations[1] {
		t.Error("two processes have one incarnation")
	}
}

func (n *node) heardFrom() []uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.senders)
}

// A peer that tells nothing of its process, as older programs do, or lies elsewhere, is not watched.
func TestNotWatched(t *testing.T) {
	a, b := startNode(t, 1, nil), startNode(t, 2, nil)
	acquaint(t, a, b)
	q := a.net.peer(2)
	other := process.Self()
	other.PID = uint32(os.Getppid())
	for i, id := range []process.Identity{{}, process.Self(), other} {
		q.see(uint64(i+1), id)
		q.mu.Lock()
		watched := q.watched
		q.mu.Unlock()
		if watched.watch != nil || watched.incarnation != uint64(i+1) {
			t.Errorf("%+v is watched: %+v", id, watched)
		}
	}
}
