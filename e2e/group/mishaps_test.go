package group_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// The tests in this file are of what operators and disks do to nodes. Each demands
// the message as well: it is all that an operator has.

// words keeps what a node logs.
type words struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await waits until the node has said something.
func (w *words) await(t *testing.T, text string) {
	t.Helper()
	if !eventually(func() bool { return strings.Contains(w.String(), text) }) {
		t.Fatalf("nobody said %q, but:\n%s", text, w)
	}
}

// open opens a node in this process until the test ends.
func open(t *testing.T, s *setup) (*group.Node, *words) {
	t.Helper()
	w := &words{}
	n, err := group.Open(s.options(slog.New(slog.NewTextHandler(w, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n, w
}

// single is a group of one with some transactions, not running.
func single(t *testing.T, transfers int) *setup {
	t.Helper()
	s := &setup{Group: [16]byte{1}, ID: 1, Dir: filepath.Join(t.TempDir(), "node"), Listen: freeAddr(t)}
	s.Founders = []group.Member{{ID: 1, Addr: s.Listen}}
	n, _ := open(t, s)
	fill(t, n, transfers)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// fill makes the tables and some transfers.
func fill(t *testing.T, n *group.Node, transfers int) {
	t.Helper()
	if !eventually(n.Writable) {
		t.Fatalf("the node does not lead: %+v", n.Status())
	}
	if err := setUp(n, nil, &answer{}); err != nil {
		t.Fatal(err)
	}
	for i := range transfers {
		a := &answer{}
		q := request{Op: uint64(i), From: 1, To: 2, Amount: 1, Limit: patience, Token: newToken(newRand(uint64(i)))}
		if err := transfer(n, &q, a); err != nil || a.Outcome != committed {
			t.Fatalf("transfer: %s, %v", a.Outcome, err)
		}
	}
}

// refuses demands that a node does not start, and says why.
func refuses(t *testing.T, s *setup, pattern string) {
	t.Helper()
	n, err := group.Open(s.options(nil))
	if err == nil {
		_ = n.Close()
		t.Fatalf("the node starts; it should refuse: %s", pattern)
	}
	t.Logf("%v", err)
	if !regexp.MustCompile(pattern).MatchString(err.Error()) {
		t.Fatalf("the node refuses with\n%v\nand not with\n%s", err, pattern)
	}
}

// has demands that a node starts and has all transfers.
func has(t *testing.T, s *setup, transfers int) {
	t.Helper()
	n, _ := open(t, s)
	if !eventually(n.Writable) {
		t.Fatalf("the node does not lead: %+v", n.Status())
	}
	a := &answer{}
	if err := check(n, &request{Number: n.Status().Number}, a); err != nil {
		t.Fatal(err)
	}
	if len(a.Ids) != transfers {
		t.Fatalf("%d transfers are there, %d were acknowledged", len(a.Ids), transfers)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is missing from a directory is missed: the node does not begin anew. With
// what was missing put back it goes on.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	const transfers = 20
	for _, c := range []struct{ name, file, pattern string }{
		{"state", "raft.state", `there is no state file, which says whom the member has voted for: put it back, or empty the node's directory .*: raft.state`},
		{"identity", "member", `the file named member, which says who this node is, is missing, but the directory has been used; ` +
			`put the file back, or empty the directory and let the node join as a new member \(data\.`},
		{"log", "data.1/binlog", `no log here.*this member has taken part up to term \d+: its files are missing; ` +
			`put them back, or empty the node's directory and let it join as a new member`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := single(t, transfers)
			away := s.Dir + ".away"
			rename(t, filepath.Join(s.Dir, c.file), away)
			refuses(t, s, c.pattern)
			refuses(t, s, c.pattern) // the first attempt has changed nothing
			if _, err := os.Stat(filepath.Join(s.Dir, c.file)); err == nil {
				t.Fatalf("the node that refused to start has made %s", c.file)
			}
			rename(t, away, filepath.Join(s.Dir, c.file))
			has(t, s, transfers)
		})
	}
	t.Run("which data are in use", func(t *testing.T) { // there can be no doubt
		s := single(t, transfers)
		rename(t, filepath.Join(s.Dir, "data.current"), s.Dir+".away")
		has(t, s, transfers)
		rename(t, filepath.Join(s.Dir, "data.current"), s.Dir+".away")
		rename(t, filepath.Join(s.Dir, "data.1"), filepath.Join(s.Dir, "data.2"))
		refuses(t, s, `data.current is missing, but data.2 is there \(put it back, or empty the node's directory and let it join as a new member\)`)
		rename(t, filepath.Join(s.Dir, "data.2"), filepath.Join(s.Dir, "data.1"))
		rename(t, s.Dir+".away", filepath.Join(s.Dir, "data.current"))
		has(t, s, transfers)
	})
	t.Run("all data", func(t *testing.T) {
		s := single(t, transfers)
		rename(t, filepath.Join(s.Dir, "data.1"), s.Dir+".away")
		refuses(t, s, `the data in use are not there \(by data.current they are in data.1\): put the files back`)
		refuses(t, s, `the data in use are not there \(by data.current they are in data.1\): put the files back`)
	})
	t.Run("identity and data", func(t *testing.T) {
		s := single(t, transfers)
		rename(t, filepath.Join(s.Dir, "data.1"), s.Dir+".away")
		rename(t, filepath.Join(s.Dir, "member"), s.Dir+".member")
		rename(t, filepath.Join(s.Dir, "data.current"), s.Dir+".current")
		refuses(t, s, `the file named member.*is missing.*\(raft.state knows term \d+\)`)
	})
}

// A directory is that of one member of one group.
func TestWrongDirectory(t *testing.T) {
	t.Parallel()
	s := single(t, 1)
	other := *s
	other.ID = 2
	other.Founders = []group.Member{{ID: 2, Addr: s.Listen}}
	refuses(t, &other, `this directory is that of member 1, not 2`)
	other = *s
	other.Group = [16]byte{2}
	refuses(t, &other, `this directory belongs to the group 01000000-0000-.*, not to 02000000-0000-`)
	other = *s
	other.Dir = t.TempDir()
	rename(t, filepath.Join(s.Dir, "data.1"), filepath.Join(other.Dir, "data.1"))
	rename(t, filepath.Join(s.Dir, "data.current"), filepath.Join(other.Dir, "data.current"))
	refuses(t, &other, `the file named member.*is missing.*\(data\.`)
}

// A file of the log that is missing, or is not what was written, stops the node with
// the place.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	const transfers = 700
	s := single(t, transfers)
	files, err := filepath.Glob(filepath.Join(s.Dir, "data.1/binlog/binlog.*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("files of the log: %v, %v", files, err)
	}
	place := func(file int) string {
		return fmt.Sprintf(`binlog: damaged at binlog\.%06d, offset \d+, entry \d+: .*empty its data directory and let it be provisioned from another member`, file)
	}
	t.Run("entry in the last file", func(t *testing.T) {
		undo := damage(t, files[len(files)-1])
		refuses(t, s, place(len(files)))
		refuses(t, s, place(len(files)))
		undo()
		has(t, s, transfers)
	})
	t.Run("entry in a closed file", func(t *testing.T) { // which is noticed when it is read
		undo := damage(t, files[1])
		stopsItself(t, s, regexp.MustCompile(place(2)))
		undo()
		has(t, s, transfers)
	})
	t.Run("header", func(t *testing.T) {
		undo := flip(t, files[1], 40)
		refuses(t, s, `binlog\.000002.*checksum`)
		undo()
		has(t, s, transfers)
	})
	t.Run("file", func(t *testing.T) {
		away := s.Dir + ".away"
		rename(t, files[1], away)
		refuses(t, s, `file is missing: binlog\.000002`)
		rename(t, away, files[1])
		has(t, s, transfers)
	})
	t.Run("last file", func(t *testing.T) {
		last := files[len(files)-1]
		away := s.Dir + ".away"
		rename(t, last, away)
		refuses(t, s, `the log ends with binlog\.\d+\. synced\.mark says that the file was durable`)
		if err := os.Remove(filepath.Join(filepath.Dir(last), "synced.mark")); err != nil {
			t.Fatal(err)
		}
		refuses(t, s, `the log ends at index \d+, but the engine has applied it up to \d+: files of the log are missing`)
		rename(t, away, last)
		has(t, s, transfers)
	})
}

// stopsItself demands that a node that is led to the damage in its log stops.
func stopsItself(t *testing.T, s *setup, want *regexp.Regexp) {
	t.Helper()
	n, said := open(t, s)
	if !eventually(n.Writable) {
		t.Fatalf("the node does not lead: %+v", n.Status())
	}
	if err := readHistory(n, nil, &answer{}); err == nil || !want.MatchString(err.Error()) {
		t.Errorf("reading the log: %v", err)
	}
	if !eventually(func() bool { return n.Err() != nil }) || !want.MatchString(n.Err().Error()) {
		t.Errorf("the node goes on: %v", n.Err())
	}
	said.await(t, "this node stops")
	if err := transfer(n, &request{}, &answer{}); err == nil || !want.MatchString(err.Error()) {
		t.Errorf("a session of the node that has stopped: %v", err)
	}
	_ = n.Close()
}

// A second process finds the directory taken and leaves it alone.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, group.NoSabotage)
	n := c.nodes[0]
	c.found()
	second := n.setup
	second.Listen = freeAddr(t)
	_, err := startProcess(&second, n.log)
	want := fmt.Sprintf("the node's directory: .*locked by another process.*%d", n.proc.cmd.Process.Pid)
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("the second process: %v, wanted %s", err, want)
	}
	if a := c.must(n, request{Do: "read", Limit: patience}); a.Sum != accounts*opening {
		t.Errorf("the first process has %d in %d accounts", a.Sum, a.Rows)
	}
	// A kill leaves the directory free.
	c.kill(n)
	c.start(n)
	c.leader()
	c.stop(n)
	if problem := c.failed(); problem != "" {
		t.Error(problem)
	}
}

// trio is three nodes in this process. Their leader leads on, though the machine lets one
// of them stand still for seconds.
func trio(t *testing.T) (setups []*setup, nodes []*group.Node) {
	var founders []group.Member
	for i := range 3 {
		s := &setup{Group: [16]byte{3}, ID: uint64(i + 1), Dir: t.TempDir(), Listen: freeAddr(t), ElectionTicks: 160}
		setups = append(setups, s)
		founders = append(founders, group.Member{ID: s.ID, Addr: s.Listen})
	}
	for _, s := range setups {
		s.Founders = founders
		n, _ := open(t, s)
		nodes = append(nodes, n)
	}
	return setups, nodes
}

func leaderOf(t *testing.T, nodes []*group.Node) (leader *group.Node) {
	t.Helper()
	if !eventually(func() bool {
		for _, n := range nodes {
			if n.Writable() {
				leader = n
				return true
			}
		}
		return false
	}) {
		t.Fatal("nobody leads")
	}
	return leader
}

// Nodes that do not belong to a group cannot disturb it, and say what is wrong.
func TestStrangers(t *testing.T) {
	t.Parallel()
	setups, nodes := trio(t)
	leader := leaderOf(t, nodes)
	fill(t, leader, 5)
	term := leader.Status().Term

	t.Run("another group", func(t *testing.T) {
		s := &setup{Group: [16]byte{4}, ID: 4, Dir: t.TempDir(), Listen: freeAddr(t)}
		s.Founders = []group.Member{{ID: 1, Addr: setups[0].Listen}, {ID: 2, Addr: setups[1].Listen}, {ID: 4, Addr: s.Listen}}
		n, said := open(t, s)
		said.await(t, fmt.Sprintf("belongs to group 04000000-0000-0000-0000-000000000000, node %s to group 03000000-", setups[0].Listen))
		a := &answer{}
		if err := read(n, &request{Limit: 300 * time.Millisecond}, a); err == nil || !strings.Contains(err.Error(), group.ErrNoQuorum.Error()) {
			t.Errorf("a strong read on the stranger: %v", err)
		}
	})
	t.Run("the same group founded twice", func(t *testing.T) {
		s := &setup{Group: [16]byte{3}, ID: 2, Dir: t.TempDir(), Listen: freeAddr(t)}
		s.Founders = []group.Member{{ID: 1, Addr: setups[0].Listen}, {ID: 2, Addr: s.Listen}, {ID: 3, Addr: setups[2].Listen}}
		_, said := open(t, s)
		said.await(t, fmt.Sprintf("member 2 is at %s; node %s claims the same member id", setups[1].Listen, s.Listen))
	})
	t.Run("an id that has left", func(t *testing.T) {
		if err := leader.Add(group.Member{ID: 9, Addr: freeAddr(t)}); err != nil {
			t.Fatal(err)
		}
		if err := leader.Remove(9); err != nil {
			t.Fatal(err)
		}
		s := &setup{Group: [16]byte{3}, ID: 9, Dir: t.TempDir(), Listen: freeAddr(t), Join: true, Contact: []string{setups[0].Listen}}
		n, _ := open(t, s)
		time.Sleep(300 * time.Millisecond)
		if n.Status().Leader != 0 {
			t.Errorf("a member that was removed takes part: %+v", n.Status())
		}
	})
	fillMore(t, leader, 5)
	if s := leader.Status(); s.Term != term {
		t.Errorf("the group's term went from %d to %d", term, s.Term)
	}
}

// fillMore makes transfers beyond those of fill.
func fillMore(t *testing.T, n *group.Node, transfers int) {
	t.Helper()
	for i := range transfers {
		a := &answer{}
		q := request{Op: uint64(1000 + i), From: 1, To: 2, Amount: 1, Limit: patience, Token: newToken(newRand(uint64(i)))}
		if err := transfer(n, &q, a); err != nil || a.Outcome != committed {
			t.Fatalf("transfer: %s, %v", a.Outcome, err)
		}
	}
}

// Without a majority writes fail in time, strong reads say what is missing, and
// other reads go on. When it is back, so is everything, by itself.
func TestLostMajority(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, group.NoSabotage)
	number := c.found()
	leader := c.leader()
	for _, n := range c.nodes {
		if n != leader {
			c.kill(n)
		}
	}
	ask := func(q request, limit time.Duration) *answer {
		t.Helper()
		q.Limit = limit
		begin := time.Now()
		a, err := c.ask(leader, q, patience)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > limit+patience/4 {
			t.Errorf("%s took %v, %v were allowed", q.Do, took, limit)
		}
		return a
	}
	pay := request{Do: "transfer", Op: 1, From: 1, To: 2, Amount: 5, Token: newToken(newRand(1))}
	if a := ask(pay, 300*time.Millisecond); a.Outcome == committed {
		t.Errorf("a commit without a majority: %+v", a)
	} else {
		t.Logf("a write in flight: %s, %s", a.Outcome, a.Error)
	}
	if !eventually(func() bool { return !ask(request{Do: "status"}, time.Second).Status.Writable }) {
		t.Fatal("the leader leads on without a majority")
	}
	second := pay
	second.Op, second.Token = 2, newToken(newRand(2))
	for _, step := range []struct {
		q    request
		want string // of the error
	}{
		{second, "not leader"},
		{request{Do: "read", Consistency: group.Strong}, group.ErrNoQuorum.Error()},
		{request{Do: "read", Consistency: group.Local}, ""},
		{request{Do: "read", Consistency: group.AtLeast, Number: number}, ""},
		{request{Do: "read", Consistency: group.AtLeast, Number: number + 100}, "this member lags behind what the read asks for: applied are transaction"},
		{request{Do: "read", Consistency: group.Bounded, Bound: time.Millisecond}, "this member lags behind what the read asks for: it is "},
		{request{Do: "add", Member: group.Member{ID: 9, Addr: "127.0.0.1:1"}}, "not leader"},
	} {
		a := ask(step.q, 500*time.Millisecond)
		if step.want == "" && a.Error != "" || !strings.Contains(a.Error, step.want) {
			t.Errorf("%s of consistency %d: %q, wanted %q", step.q.Do, step.q.Consistency, a.Error, step.want)
		}
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	l := &load{c: c, counts: map[outcome]int{}, by: map[uint64]int{}}
	for _, q := range []request{pay, second} {
		o := &operation{id: q.Op, outcome: unknown}
		var at uint64
		if !eventually(func() bool { q.Limit = time.Second; l.attempt(newRand(3), &q, o, &at); return o.outcome == committed }) {
			t.Fatalf("operation %d: %s", q.Op, c.standing())
		}
		l.ops = append(l.ops, o)
	}
	l.checkAll(true)
	if problem := c.failed(); problem != "" {
		t.Error(problem)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// damage changes a byte in the middle of a file, and returns how to mend it.
func damage(t *testing.T, name string) (undo func()) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	end := len(b)
	for end > 4096 && b[end-1] == 0 {
		end--
	}
	return flip(t, name, 4096+(end-4096)/2)
}

func flip(t *testing.T, name string, at int) (undo func()) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write := func() {
		b[at] ^= 0x10
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	return write
}
