package sql

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// disk is a small file system of one node.
type disk struct {
	dir    string
	filler *os.File
}

// diskSize is that of a disk: the files of a small database, and space for a test's log.
const diskSize = "160m"

// mountDisk mounts a disk until the test is over.
func mountDisk(t *testing.T, dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		return nil, err
	}
	d := &disk{dir: dir}
	t.Cleanup(func() {
		d.free()
		// Its processes have been killed before.
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("%s is still mounted: %v", dir, err)
		}
	})
	return d, nil
}

// fill takes all space that is left, also what was freed since it was called last.
func (d *disk) fill() error {
	if d.filler == nil {
		f, err := os.Create(filepath.Join(d.dir, "filler"))
		if err != nil {
			return err
		}
		d.filler = f
	}
	for _, piece := range []int{1 << 20, 4 << 10} { // the last of the space goes in small pieces
		b := make([]byte, piece)
		for {
			_, err := d.filler.Write(b)
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *disk) free() {
	if d.filler != nil {
		_ = d.filler.Close()
		_ = os.Remove(d.filler.Name())
		d.filler = nil
	}
}

// again runs a test once more in a user and a mount namespace, where it may mount disks,
// for who may not here.
func again(t *testing.T, why error) {
	t.Helper()
	if *inside {
		t.Fatalf("no disk can be mounted, neither as this user nor in a user namespace: %v", why)
	}
	t.Logf("this user may not mount a disk (%v): the test runs in a user namespace", why)
	runInside(t, syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS)
}

// Under full disks of one node, of the leader, and of two, the bank's money neither comes
// nor goes and no acknowledged transfer is lost; while one disk is full the others go on,
// and when there is space all do.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	g, disks := newGroupOnDisks(t, "--max-binlog-size=1M")
	if g == nil {
		return
	}
	r := plan(t)
	b := newBank(t, g, r)
	run(t, servers.Open(t, g.Nodes[0].DSN("bank", limits)), "CREATE TABLE IF NOT EXISTS ballast (id INT PRIMARY KEY, b VARBINARY(4000) NOT NULL)",
		"REPLACE INTO ballast SELECT id, REPEAT('x', 4000) FROM account")
	began := time.Now()
	for round := 0; round < 4 || time.Since(began) < *duration; round++ { // each kind once at least
		first := leader(t, g).Number - 1
		full := [][]int{{first}, {(first + 1 + r.IntN(2)) % 3}, {first, (first + 1) % 3}, {(first + 1) % 3}}[round%4]
		killed := round%4 == 3
		t.Logf("%v: node %d leads; the disks of %v are full", time.Since(began).Round(time.Millisecond), first+1, full)
		for _, i := range full {
			keepFull(t, g.Nodes[i], disks[i])
		}
		if killed { // a start needs no space
			g.Nodes[full[0]].Kill()
			start(t, g.Nodes[full[0]])
			if err := g.Nodes[full[0]].Await(patience); err != nil {
				t.Fatal(err)
			}
		}
		if len(full) == 1 {
			b.goesOn(g.Nodes[(full[0]+1)%3], g.Nodes[(full[0]+2)%3])
		}
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
		for _, i := range full {
			disks[i].free()
		}
		await(t, g)
		b.goesOn(g.Nodes...)
	}
	b.end()
}

// newGroupOnDisks starts three nodes that have a disk each; without a group the test runs
// elsewhere.
func newGroupOnDisks(t *testing.T, settings ...string) (*servers.Group, []*disk) {
	t.Helper()
	dir := t.TempDir()
	var disks []*disk
	for i := range 3 {
		d, err := mountDisk(t, filepath.Join(dir, fmt.Sprintf("disk%d", i+1)))
		if err != nil {
			again(t, err)
			return nil, nil
		}
		disks = append(disks, d)
	}
	return newGroup(t, servers.Options{Dir: dir, Settings: append(settings, "--innodb-redo-log-capacity=8M", "--innodb-buffer-pool-size=16M"),
		Data: func(i int) string { return filepath.Join(disks[i].dir, "data") }}), disks
}

// A leader whose tables cannot grow, while its log has space for long, lets another lead:
// clients that try again go on though nobody makes space.
func TestFullTables(t *testing.T) {
	t.Parallel()
	g, disks := newGroupOnDisks(t)
	if g == nil {
		return
	}
	first := leader(t, g)
	db := servers.Open(t, first.DSN("", limits))
	run(t, db, "CREATE DATABASE big", "CREATE TABLE big.t (id INT PRIMARY KEY, b VARBINARY(8000) NOT NULL)")
	if err := disks[first.Number-1].fill(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for id := range 400 {
		insist(t, "INSERT", func() error {
			_, err := db.Exec("REPLACE INTO big.t VALUES (?, REPEAT('x', 8000))", id)
			if number(err) == 1114 {
				refused++
			}
			return err
		})
	}
	if second := leader(t, g); second == first || refused == 0 {
		t.Errorf("node %d led and node %d does; %d statements found no space", first.Number, second.Number, refused)
	}
	disks[first.Number-1].free()
	caughtUp(t, g, "SELECT COUNT(*) FROM big.t")
}

// Where two of three members are full the third one leads soon, though its id is the highest and all have applied the same. Where all are,
// whoever gets room leads.
func TestTwoFullDisks(t *testing.T) {
	t.Parallel()
	g, disks := newGroupOnDisks(t)
	if g == nil {
		return
	}
	var last *servers.Node
	most := uint64(0)
	for _, n := range g.Nodes {
		insist(t, "status", func() error {
			s, err := n.Status()
			if s.ID > most {
				last, most = n, s.ID
			}
			return err
		})
	}
	others := slices.DeleteFunc(slices.Clone(g.Nodes), func(n *servers.Node) bool { return n == last })
	run(t, servers.Open(t, g.Nodes[0].DSN("", limits)), "CREATE DATABASE big", "CREATE TABLE big.t (id INT PRIMARY KEY AUTO_INCREMENT, b VARBINARY(8000) NOT NULL)")
	if first := leader(t, g); first == last {
		if out, err := trireme("admin", fmt.Sprintf("-grpc=127.0.0.1:%d", first.GRPC), "transfer"); err != nil && !strings.Contains(out, "leadership was given up") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	caughtUp(t, g, "SELECT COUNT(*) FROM big.t")
	for _, n := range others {
		if err := disks[n.Number-1].fill(); err != nil {
			t.Fatal(err)
		}
	}
	// goesOn writes until tables have grown. Some hops of the lead are some seconds each.
	goesOn := func(what string, roomy *servers.Node) {
		t.Helper()
		db := servers.Open(t, others[0].DSN("", limits))
		began, rows := time.Now(), 0
		for rows < 200 {
			if _, err := db.Exec("INSERT INTO big.t (b) VALUES (REPEAT('x', 8000))"); err == nil {
				rows++
			} else if !documented(err) {
				t.Fatal(err)
			} else {
				time.Sleep(20 * time.Millisecond)
			}
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s: %d rows were written in %v", what, rows, time.Since(began))
			}
		}
		if now := leader(t, g); now != roomy {
			t.Errorf("%s: node %d leads", what, now.Number)
		}
		t.Logf("%s: %v until 200 rows were written", what, time.Since(began).Round(time.Millisecond))
	}
	saysFull(t, g, others...)
	goesOn("two disks are full", last)
	if err := disks[last.Number-1].fill(); err != nil {
		t.Fatal(err)
	}
	db := servers.Open(t, others[0].DSN("", limits))
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, err := db.Exec("INSERT INTO big.t (b) VALUES (REPEAT('x', 8000))"); err != nil && !documented(err) {
			t.Fatal(err)
		}
	}
	disks[others[0].Number-1].free()
	goesOn("another one of three has room again", others[0])
	for _, n := range g.Nodes {
		disks[n.Number-1].free()
	}
	caughtUp(t, g, "SELECT COUNT(*) FROM big.t")
}

// saysFull wants it told of members without room, which have nothing to write: by their status, by the check before an upgrade, and by who is to
// hand leadership to one of them.
func saysFull(t *testing.T, g *servers.Group, full ...*servers.Node) {
	t.Helper()
	var addrs []string
	for _, n := range g.Nodes {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", n.HTTP))
	}
	http, told := "--http="+strings.Join(addrs, ","), ""
	for until := time.Now().Add(patience); strings.Count(told, "has a full disk") != len(full); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the status: %s", told)
		}
		told, _ = trireme("status", http)
	}
	out, err := trireme("preflight", http, "--wait=1s")
	if _, refusal, _ := strings.Cut(out, "is not whole"); err == nil || strings.Count(refusal, "has a full disk") != len(full) {
		t.Errorf("an upgrade: %v, %s", err, out)
	}
	leads := leader(t, g)
	for _, n := range full {
		s, err := n.Status()
		if err != nil || !s.DiskFull {
			t.Fatalf("node %d: %+v, %v", n.Number, s, err)
		}
		if n == leads {
			continue
		}
		if out, err := trireme("admin", fmt.Sprintf("-grpc=127.0.0.1:%d", leads.GRPC), "transfer", fmt.Sprint(s.ID)); err == nil || !strings.Contains(out, fmt.Sprintf("member %d has a full disk", s.ID)) {
			t.Errorf("leadership to node %d: %v, %s", n.Number, err, out)
		}
	}
}

// A member that is elected, and has no space to apply what the group has committed, lets another lead though
// nobody makes space.
func TestElectedWithoutSpace(t *testing.T) {
	t.Parallel()
	g, disks := newGroupOnDisks(t)
	if g == nil {
		return
	}
	first := leader(t, g)
	to := g.Nodes[first.Number%3]
	db := servers.Open(t, first.DSN("", limits))
	run(t, db, "CREATE DATABASE big", "CREATE TABLE big.t (id INT PRIMARY KEY, b VARBINARY(8000) NOT NULL)")
	if err := disks[to.Number-1].fill(); err != nil {
		t.Fatal(err)
	}
	status := func() (s servers.Status) {
		insist(t, "status", func() (err error) { s, err = to.Status(); return err })
		return s
	}
	id := 0
	for ; says(t, to, cannotApply) == 0; id++ {
		run(t, db, fmt.Sprintf("REPLACE INTO big.t VALUES (%d, REPEAT('x', 8000))", id))
	}
	before := status()
	third := g.Nodes[to.Number%3]
	third.Signal(syscall.SIGSTOP) // nobody but that one stands for election
	first.Kill()
	start(t, first)
	for until, term := time.Now().Add(patience), before.Term; ; time.Sleep(20 * time.Millisecond) {
		s := status()
		if s.Leader == before.ID {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("node %d is not elected: %+v", to.Number, s)
		}
		if s.Leader != 0 && s.Term > term { // who was started again was faster: once more
			term = s.Term
			first.Kill()
			start(t, first)
		}
	}
	third.Signal(syscall.SIGCONT)
	run(t, db, fmt.Sprintf("REPLACE INTO big.t VALUES (%d, REPEAT('x', 8000))", id))
	if s := status(); !s.DiskFull || s.Term < before.Term+2 {
		t.Errorf("node %d was elected after term %d and could begin: %+v", to.Number, before.Term, s)
	}
	disks[to.Number-1].free()
	caughtUp(t, g, "SELECT COUNT(*) FROM big.t")
}

// What nodes say in their logs that find no space.
const (
	noSpace     = "the disk is full: this "
	cannotApply = noSpace + "member cannot apply"
)

// says counts how often a node has said something in its log.
func says(t *testing.T, n *servers.Node, words string) int {
	t.Helper()
	count, err := n.Says(words)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// keepFull fills a disk until its node finds no space for its log, or for what it applies. That there is no room it says before.
func keepFull(t *testing.T, n *servers.Node, d *disk) {
	t.Helper()
	// The node has space left in its files: the log needs some to need more.
	ctx, cancel := context.WithCancel(context.Background())
	var pressing sync.WaitGroup
	pressing.Go(func() { press(ctx, t, n) })
	defer pressing.Wait()
	defer cancel()
	said := says(t, n, noSpace)
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if err := d.fill(); err != nil {
			t.Fatal(err)
		}
		if says(t, n, noSpace) > said {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("node %d does not say that it finds no space", n.Number)
		}
	}
}

// press commits changes within pages that are there, which do not compress, until ctx ends.
func press(ctx context.Context, t *testing.T, n *servers.Node) {
	db, err := sql.Open("mysql", n.DSN("bank", limits))
	if err != nil {
		t.Error(err)
		return
	}
	defer db.Close()
	b := make([]byte, 4000)
	for i := 0; ctx.Err() == nil; i++ {
		_, _ = crand.Read(b)
		if _, err := db.ExecContext(ctx, "UPDATE ballast SET b = ? WHERE id = ?", b, i%accounts); err != nil && ctx.Err() == nil {
			if !documented(err) {
				t.Errorf("a client of node %d saw %v", n.Number, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
