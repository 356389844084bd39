package process

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// childVariable makes the test's program a process to be watched, in one of these ways.
const childVariable = "TRIREME_PROCESS_CHILD"

const (
	sleeps       = "sleeps"
	losesItsMain = "loses its main thread"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case losesItsMain:
		present()
		_, _ = os.Stdin.Read(make([]byte, 1))
		go func() { time.Sleep(time.Hour) }()
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0) // of the thread
	default:
		present()
		time.Sleep(time.Hour)
	}
}

// The function above runs on the main thread.
func init() { runtime.LockOSThread() }

func present() {
	b, _ := json.Marshal(Self())
	fmt.Println(string(b))
}

// child starts a process and returns how it presents itself.
func child(t *testing.T, how string) (cmd *exec.Cmd, in io.Closer, id Identity) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+how)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, in, id
}

// watch opens a watch and tells when it says that the process has ended.
func watch(t *testing.T, id Identity) (w *Watch, ended chan bool) {
	t.Helper()
	w, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan bool, 1)
	go func() { ended <- w.Wait() }()
	return w, ended
}

func quiet(t *testing.T, ended chan bool) {
	t.Helper()
	select {
	case <-ended:
		t.Fatal("the process is said to have ended, and lives")
	case <-time.After(50 * time.Millisecond):
	}
}

// A process that was killed has ended, though its parent has not collected it; one that was
// stopped has not.
func TestEnd(t *testing.T) {
	cmd, _, id := child(t, sleeps)
	w, ended := watch(t, id)
	defer w.Close()
	quiet(t, ended)
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	quiet(t, ended)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	if !<-ended {
		t.Fatal("the watch ended without telling that the process has")
	}
	if _, err := Open(id); err == nil { // a zombie has no files any more
		t.Error("a zombie can be watched")
	}
}

// A process whose main thread has ended lives as long as another thread does.
func TestMainThreadEnds(t *testing.T) {
	cmd, in, id := child(t, losesItsMain)
	w, ended := watch(t, id)
	defer w.Close()
	_ = in.Close()
	for !bytes.Contains(stat(t, id), []byte(") Z ")) {
		time.Sleep(time.Millisecond)
	}
	quiet(t, ended)
	_ = cmd.Process.Kill()
	if !<-ended {
		t.Fatal("the watch ended without telling that the process has")
	}
}

// stat is what the kernel says of a process's main thread.
func stat(t *testing.T, id Identity) []byte {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id.PID))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is another process than the one that presented itself is not watched.
func TestElsewhere(t *testing.T) {
	_, _, id := child(t, sleeps)
	other := id
	other.Token[3]++
	wrong := id
	wrong.PID = uint32(os.Getppid())
	for name, id := range map[string]Identity{
		"no identity": {}, "this process": Self(), "another token": other, "another number": wrong,
		"no process": {PID: 1 << 30, Token: id.Token}, "no number": {PID: 1 << 31, Token: id.Token}} {
		if w, err := Open(id); err == nil {
			w.Close()
			t.Errorf("%s is watched", name)
		}
	}
}

// A watch that is closed ends without a word, also before anyone waits.
func TestClose(t *testing.T) {
	_, _, id := child(t, sleeps)
	w, ended := watch(t, id)
	w.Close()
	if <-ended {
		t.Error("a closed watch says that the process has ended")
	}
	if w, err := Open(id); err != nil {
		t.Error(err)
	} else if w.Close(); w.Wait() {
		t.Error("a watch that was closed before says that the process has ended")
	}
}
