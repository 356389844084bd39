package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// buffer is a log of the node's, to be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func opened(t *testing.T, change func(*Options)) (*Log, string, *buffer) {
	t.Helper()
	said := &buffer{}
	o := Options{File: filepath.Join(t.TempDir(), "audit.log"), RotateSize: 1 << 20, Files: 3, Buffer: 64 << 10, Log: slog.New(slog.NewTextHandler(said, nil))}
	if change != nil {
		change(&o)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, o.File, said
}

// lines are those of a file, each of which is one of JSON.
func lines(t *testing.T, name string) (list []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var x map[string]any
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %q: %v", name, line, err)
		}
		list = append(list, x)
	}
	return list
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal(what)
		}
	}
}

func TestLines(t *testing.T) {
	l, file, said := opened(t, func(o *Options) { o.Logins = func(user, _ string, _ bool) bool { return user != "monitor" } })
	in := Login{Door: "mysql", ReadOnly: true, Session: 7, User: "app", AccountUser: "app", AccountHost: "%", Address: "10.0.0.7:1234", TLS: "TLSv1.3", Program: "mysql\xff"}
	l.Login(in)
	l.Logout(in, 90*time.Second)
	l.Login(Login{Door: "grpc", User: "mallory", Address: "10.0.0.8:1", Err: &sqlerr.Error{Number: 1045, State: "28000", Message: "Access denied for user 'mallory'"}})
	l.Login(Login{Door: "mysql", Err: errors.New("it has not even named a user")})
	l.Login(Login{Door: "mysql", User: "monitor", AccountUser: "monitor", AccountHost: "%"})
	l.Logout(Login{AccountUser: "monitor"}, 0)
	l.Statement(session.AuditedStatement{Class: session.AuditRead | session.AuditWrite, User: "app", AccountUser: "app", AccountHost: "%", Text: strings.Repeat("x", 2000),
		Tables: []string{"d.t"}, Error: 1062, State: "23000", Door: "mysql"})
	l.Operators().Info("admin", slog.Group("audit", "call", "Drain"))
	l.Close()
	got := lines(t, file)
	want := []string{
		`login map[account:'app'@'%' address:10.0.0.7:1234 door:mysql read-only outcome:done program:mysql` + "\ufffd" + ` session:7 tls:TLSv1.3 user:app]`,
		`logout map[account:'app'@'%' address:10.0.0.7:1234 door:mysql read-only session:7 stayed:1m30s user:app]`,
		`login map[account: address:10.0.0.8:1 door:grpc outcome:error 1045 (28000): Access denied for user 'mallory' program: session:0 tls: user:mallory]`,
		`statement map[account:'app'@'%' accounts:<nil> class:read,write door:mysql host: killed: outcome:error 1062 (23000) rows_affected:0 rows_sent:0 schema: session:0 ` +
			`tables:[d.t] text:` + strings.Repeat("x", textMax) + ` took:0s user:app variables:<nil>]`,
		`admin map[call:Drain]`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines: %v", len(got), got)
	}
	for i, line := range got {
		if text := fmt.Sprint(line["msg"], " ", line["audit"]); text != want[i] {
			t.Errorf("line %d:\n%s\nwant\n%s", i, text, want[i])
		}
	}
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "call=Drain") {
		t.Errorf("the node's log is to have what operators do, and nothing else: %s", text)
	}
	if s := l.Stats(); s.Written != 5 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	var none *Log
	none.Login(in)
	none.Logout(in, 0)
	none.Close()
}

// Files are renamed when they are full, and the oldest go. One that was moved is followed by a new one.
func TestFiles(t *testing.T) {
	l, file, _ := opened(t, func(o *Options) { o.RotateSize, o.Files = 64<<10, 2 })
	written := uint64(0)
	write := func(n int) {
		t.Helper()
		for range n {
			l.Login(Login{User: fmt.Sprint("user", written), Door: "mysql", AccountUser: "u", AccountHost: "%"})
			if written++; written%25 == 0 || n == 1 {
				eventually(t, "lines are written", func() bool { return l.Stats().Written == written })
			}
		}
	}
	write(1500)
	all := 0
	for _, name := range []string{file, file + ".1", file + ".2"} {
		info, err := os.Stat(name)
		if err != nil || info.Size() > 64<<10 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		all += len(lines(t, name))
	}
	if _, err := os.Stat(file + ".3"); err == nil || all >= 1500 || all < 500 {
		t.Errorf("%d lines in the files, and a third one: %v", all, err)
	}
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	write(1)
	if got := lines(t, file); len(got) != 1 {
		t.Errorf("%d lines in the new file", len(got))
	}
	if err := os.Truncate(file, 0); err != nil { // as logrotate's copytruncate does
		t.Fatal(err)
	}
	write(1)
	if got := lines(t, file); len(got) != 1 {
		t.Errorf("%d lines in the file that was emptied", len(got))
	}
}

// A file that cannot be written keeps nobody waiting; lines are kept for as long as there is room, and then counted.
func TestFullDisk(t *testing.T) {
	l, file, said := opened(t, nil)
	moved := file + ".moved"
	block := func() {
		t.Helper()
		if err := errors.Join(os.Rename(file, moved), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	line := Login{User: "u", Door: "mysql", AccountUser: "u", AccountHost: "%"}
	block()
	l.Login(line)
	eventually(t, "it fails", func() bool { return l.Stats().Failing })
	for range 100 {
		l.Login(line)
	}
	if s := l.Stats(); s.Lost != 0 {
		t.Errorf("lost while there was room: %+v", s)
	}
	for range 1000 {
		l.Login(line)
	}
	lost := l.Stats().Lost
	if lost < 500 || lost > 1000 {
		t.Errorf("%d lines are lost", lost)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is written", func() bool { s := l.Stats(); return !s.Failing && s.Written == 1101-lost })
	l.Login(line)
	l.Close()
	told := 0.0
	got := lines(t, file)
	for _, x := range got {
		if x["msg"] == "lost" {
			told += x["audit"].(map[string]any)["lines"].(float64)
		}
	}
	if told != float64(lost) || len(got) != 1101-int(lost)+1+1 {
		t.Errorf("%d lines, and %v are said to be lost, %d are", len(got), told, lost)
	}
	for _, want := range []string{"the audit log cannot be written", "lines of the audit log are lost"} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("%q is not said once: %s", want, said)
		}
	}
}

// Who asks for it waits for the disk, and no line is lost.
func TestWaits(t *testing.T) {
	var waits atomic.Bool
	waits.Store(true)
	l, file, _ := opened(t, func(o *Options) { o.Waits = waits.Load })
	if err := errors.Join(os.Rename(file, file+".moved"), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	const clients, each = 8, 200
	var done atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				l.Statement(session.AuditedStatement{Class: session.AuditRead, User: "u", Door: "mysql", AccountUser: "u", AccountHost: "%"})
			}
			done.Add(1)
		})
	}
	eventually(t, "it fails", func() bool { return l.Stats().Failing })
	time.Sleep(100 * time.Millisecond)
	if n := done.Load(); n == clients {
		t.Error("nobody waits")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	l.Close()
	if s := l.Stats(); s.Lost != 0 || len(lines(t, file)) != clients*each {
		t.Errorf("%+v, %d lines", s, len(lines(t, file)))
	}
}

// A log that is closed while its disk fails ends soon, and lets go who waits.
func TestCloseWhileFull(t *testing.T) {
	l, file, _ := opened(t, func(o *Options) { o.Waits = func() bool { return true } })
	if err := errors.Join(os.Rename(file, file+".moved"), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for range 1000 {
			l.Statement(session.AuditedStatement{Class: session.AuditRead, User: "u", Door: "mysql", AccountUser: "u", AccountHost: "%"})
		}
	})
	eventually(t, "it fails", func() bool { return l.Stats().Failing })
	l.Close()
	all.Wait()
	if s := l.Stats(); s.Lost != 1000 {
		t.Errorf("%+v", s)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(Options{File: "/no/such/dir/audit.log", Log: slog.Default()}); err == nil {
		t.Error("opened")
	}
	l, err := Open(Options{Log: slog.Default()})
	if err != nil || l.Stats() != (Stats{}) {
		t.Error(err)
	}
	l.Close()
}

func BenchmarkStatement(b *testing.B) {
	l, err := Open(Options{File: filepath.Join(b.TempDir(), "audit.log"), RotateSize: 16 << 20, Files: 1, Buffer: 1 << 20, Log: slog.Default()})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := session.AuditedStatement{Class: session.AuditRead, Session: 7, User: "app", Host: "10.0.0.7", AccountUser: "app", AccountHost: "%", Door: "mysql", Schema: "shop",
		Text: "SELECT `c` FROM `sbtest1` WHERE `id` = ?", Tables: []string{"shop.sbtest1"}, RowsSent: 1, Took: 100 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		l.Statement(e)
	}
}

// TestStrangers: whoever knocks as often as he likes, with whatever names, leaves a bounded number of short lines, and does not hide who
// guesses the password of an account that there is.
func TestStrangers(t *testing.T) {
	l, file, _ := opened(t, func(o *Options) { o.Buffer = 1 << 20 })
	wrong := &sqlerr.Error{Number: 1045, State: "28000", Message: "Access denied for user '" + strings.Repeat("\x01", 500) + "'"}
	for i := range 50_000 {
		l.Login(Login{Door: "mysql", User: fmt.Sprintf("%0200d", i), Program: strings.Repeat("\x01\"", 1000), Err: wrong})
		if i%1000 == 0 {
			l.Login(Login{Door: "mysql", User: "root", Known: true, Err: wrong})
		}
		if i%100 == 0 {
			l.Operators().Warn("admin", slog.Group("audit", "user", "invented"))
		}
	}
	l.strangers.since = l.strangers.since.Add(-2 * refusalsSummary)
	l.Login(Login{Door: "mysql", User: "last", Err: wrong})
	l.Close()
	info, err := os.Stat(file)
	if err != nil || info.Size() > 500<<10 {
		t.Errorf("%v bytes, %v", info.Size(), err)
	}
	users, untold := map[string]int{}, 0.0
	for _, x := range lines(t, file) {
		a := x["audit"].(map[string]any)
		if x["msg"] == "refused" {
			untold += a["logins"].(float64)
			continue
		}
		users[fmt.Sprintf("%.4s", a["user"])]++
	}
	if users["root"] != 50 || users["0000"] < 90 || users["0000"] > 160 || untold < 49_000 {
		t.Errorf("%v, %v are summed up", users, untold)
	}
}

// TestNoRegularFile: a pipe keeps nobody, neither at the start nor later.
func TestNoRegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, "/dev/null", t.TempDir()} {
		if _, err := Open(Options{File: name, Log: slog.Default()}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	l, file, _ := opened(t, nil)
	if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	l.Login(Login{User: "u", Door: "mysql", AccountUser: "u", AccountHost: "%"})
	eventually(t, "it fails", func() bool { return l.Stats().Failing })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is written", func() bool { return l.Stats().Written == 1 })
}

// TestWhoComesInDoesNotWait: with a full disk that sessions wait for an administrator comes in.
func TestWhoComesInDoesNotWait(t *testing.T) {
	l, file, _ := opened(t, func(o *Options) { o.Waits = func() bool { return true } })
	if err := errors.Join(os.Rename(file, file+".moved"), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		l.Login(Login{User: "u", Door: "mysql", AccountUser: "u", AccountHost: "%"})
		l.Operators().Info("admin")
	}
	if s := l.Stats(); s.Lost == 0 {
		t.Errorf("%+v", s)
	}
}
