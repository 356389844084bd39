//go:build monitoring

package monitoring

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/e2e/servers"
)

// A node's process asks this one before each fdatasync and pread, by a filter of the kernel's (seccomp), so that a
// test can make its disk slow, or fail. Of the fault only its cause is made: the process waits in the
// system call, or gets the error from it, as on a disk that is so.

// underVar names the socket at which a process that is to become a node's gives its filter away.
const underVar = "MONITORING_TEST_SYNCS"

// becomeNode sets the filter, gives it away and becomes the program that the arguments name.
func becomeNode(socket string, args []string) error {
	runtime.LockOSThread() // the filter is the thread's, which is all that is left after exec
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PREAD64},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	asked, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	if _, _, err := c.WriteMsgUnix([]byte{0}, unix.UnixRights(int(asked)), nil); err != nil {
		return err
	}
	var environment []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, underVar+"=") {
			environment = append(environment, v)
		}
	}
	return syscall.Exec(args[0], args, environment)
}

// syncs decides how the syncs of a node's process go.
type syncs struct {
	mu     sync.Mutex
	slow   time.Duration
	fails  string // the part of a file's name whose syncs fail; empty: none
	unread string // the same, of reads
}

// slower makes every sync take longer.
func (s *syncs) slower(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = by
}

// fail makes the syncs of files fail whose names have a part; empty: none any more.
func (s *syncs) fail(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = part
}

// failReads makes reads of files fail whose names have a part; empty: none any more.
func (s *syncs) failReads(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = part
}

// readable is called before a read of a file.
func (s *syncs) readable(file string) syscall.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unread != "" && strings.Contains(file, s.unread) {
		return unix.EIO
	}
	return 0
}

// decide is called before a sync of a file.
func (s *syncs) decide(file string) (wait time.Duration, err syscall.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != "" && strings.Contains(file, s.fails) {
		return 0, unix.EIO
	}
	return s.slow, 0
}

// superviseSyncs has the syncs of a node's processes, from its next start on, go as the returned says.
func superviseSyncs(t *testing.T, n *servers.Node) *syncs {
	t.Helper()
	s := &syncs{}
	dir, err := os.MkdirTemp("", "sync") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = os.RemoveAll(dir)
	})
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return // the test is over
			}
			if asked, err := receiveFile(c); err != nil {
				t.Errorf("no filter from node %d: %v", n.Number, err)
			} else {
				go s.answer(asked)
			}
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.Under = []string{"env", underVar + "=" + socket, self}
	return s
}

// receiveFile takes the file that is given away over a socket.
func receiveFile(c *net.UnixConn) (int, error) {
	defer c.Close()
	room := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), room)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(room[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("%d messages: %w", len(messages), err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return 0, fmt.Errorf("%d files: %w", len(files), err)
	}
	return files[0], nil
}

// syncAsked and syncAnswer are struct seccomp_notif and seccomp_notif_resp of the kernel.
type syncAsked struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type syncAnswer struct {
	id    uint64
	val   int64
	error int32
	flags uint32
}

// goesOn lets a system call do what it does: SECCOMP_USER_NOTIF_FLAG_CONTINUE.
const goesOn = 1

// answer answers a process until it has ended.
func (s *syncs) answer(asked int) {
	var answers sync.WaitGroup
	defer func() {
		answers.Wait()
		_ = unix.Close(asked)
	}()
	for {
		fds := []unix.PollFd{{Fd: int32(asked), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		var q syncAsked
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(asked), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&q))); errno != 0 {
			continue // it was killed meanwhile
		}
		answers.Go(func() {
			file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", q.pid, q.args[0]))
			a := syncAnswer{id: q.id, flags: goesOn}
			var wait time.Duration
			failure := s.readable(file)
			if q.nr == unix.SYS_FDATASYNC {
				wait, failure = s.decide(file)
			}
			if failure != 0 {
				a.error, a.flags = -int32(failure), 0
			}
			time.Sleep(wait)
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(asked), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a))) // it may have been killed
		})
	}
}
