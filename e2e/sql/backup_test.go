package sql

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers"
)

// change is a committed change of a row of the table.
type change struct {
	gtid  uint64
	id    int
	value string // empty: the row is gone
}

// changers change rows, each its own, until they are stopped, and remember what was
// committed as which transaction.
type changers struct {
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	mu      sync.Mutex
	history []change
}

func changeRows(t *testing.T, db *client.DB, seeds *rand.Rand) *changers {
	ctx, stop := context.WithCancel(context.Background())
	c := &changers{stop: stop}
	for who := range 4 {
		r := rand.New(rand.NewPCG(seeds.Uint64(), uint64(who)))
		c.tasks.Go(func() {
			rows := map[int]bool{}
			for n := 0; ctx.Err() == nil; n++ {
				id := who*1_000_000 + r.IntN(300)
				value := fmt.Sprintf("%d.%d.%s", who, n, strings.Repeat("x", r.IntN(200)))
				if r.IntN(10) == 0 { // which does not compress: the backup is to take a while
					for range 6_000 {
						value += strconv.FormatUint(r.Uint64(), 36)
					}
				}
				text, args := "INSERT INTO b.t (id, v) VALUES (?, ?)", []any{id, value}
				if rows[id] {
					text, args = "UPDATE b.t SET v = ? WHERE id = ?", []any{value, id}
					if r.IntN(4) == 0 {
						text, args, value = "DELETE FROM b.t WHERE id = ?", []any{id}, ""
					}
				}
				done, err := db.Exec(context.Background(), text, args...)
				if err != nil || done.GTID == 0 {
					t.Errorf("%s: transaction %d, %v", text, done.GTID, err)
					return
				}
				rows[id] = value != ""
				c.mu.Lock()
				c.history = append(c.history, change{done.GTID, id, value})
				c.mu.Unlock()
			}
		})
	}
	return c
}

// end stops the changes.
func (c *changers) end() {
	c.stop()
	c.tasks.Wait()
	slices.SortFunc(c.history, func(x, y change) int { return cmp.Compare(x.gtid, y.gtid) })
}

// until is what the table holds after a transaction, as servers.Rows would have it.
func (c *changers) until(gtid uint64) string {
	rows := map[int]string{}
	for _, h := range c.history {
		if h.gtid > gtid {
			break
		}
		if rows[h.id] = h.value; h.value == "" {
			delete(rows, h.id)
		}
	}
	ids := make([]int, 0, len(rows))
	for id := range rows {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%d\t%s\n", id, rows[id])
	}
	return b.String()
}

// trireme runs a subcommand; what it says comes back.
func trireme(args ...string) (string, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+servers.Password)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

type backupInfo struct {
	Group          string `json:"group"`
	Snapshot, Last uint64
	Files          []struct {
		Name  string
		Bytes int64
	}
}

// TestBackup: of a backup that is made of a follower while rows and a table change, new
// groups are made as of its first transaction, its last one, and some between. Each has
// what was committed up to there, and nothing else.
func TestBackup(t *testing.T) {
	t.Parallel()
	seeds := plan(t)
	g := newGroup(t, servers.Options{})
	ctx := context.Background()
	db := openClient(t, g)
	for _, text := range []string{"CREATE DATABASE b", "CREATE TABLE b.t (id INT PRIMARY KEY, v LONGTEXT, KEY (v(20)))",
		"CREATE VIEW b.w AS SELECT COUNT(*) AS n FROM b.t", "CREATE USER reader IDENTIFIED BY 'r'", "GRANT SELECT ON b.* TO reader"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	// What takes seconds to copy at the backup's rate, so that work goes on meanwhile on any machine.
	if _, err := db.Exec(ctx, "CREATE TABLE b.filler (id INT PRIMARY KEY, v LONGBLOB NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	filler := make([]byte, 1<<20)
	for id := range 4 {
		for i := range filler {
			filler[i] = byte(seeds.Uint64())
		}
		if _, err := db.Exec(ctx, "INSERT INTO b.filler VALUES (?, ?)", id, filler); err != nil {
			t.Fatal(err)
		}
	}
	work := changeRows(t, db, seeds)
	for before := 0; before < 500 && !t.Failed(); time.Sleep(time.Millisecond) {
		work.mu.Lock()
		before = len(work.history)
		work.mu.Unlock()
	}
	dir := filepath.Join(t.TempDir(), "backup")
	lead := leader(t, g)
	follower := g.Nodes[slices.IndexFunc(g.Nodes, func(n *servers.Node) bool { return n != lead })]
	made := make(chan error, 1)
	go func() {
		out, err := trireme("backup", "--grpc", fmt.Sprintf("127.0.0.1:%d", follower.GRPC), "--rate=1", dir)
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		made <- err
	}()
	altered, err := db.Exec(ctx, "ALTER TABLE b.t ADD COLUMN more INT NOT NULL DEFAULT 7")
	if err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	work.end()
	var info backupInfo
	b, err := os.ReadFile(filepath.Join(dir, "backup.json"))
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d transactions, %d to %d in the backup, the table was altered as %d", len(work.history), info.Snapshot, info.Last, altered.GTID)
	if info.Last <= info.Snapshot+10 {
		t.Fatalf("nothing went on while the backup was made: %s", b)
	}
	if out, err := trireme("restore", "--check", "--from", dir); err != nil || !strings.Contains(out, info.Group) {
		t.Errorf("the backup was checked: %v\n%s", err, out)
	}
	between := info.Snapshot + 1 + seeds.Uint64N(info.Last-info.Snapshot-1)
	for _, until := range []string{fmt.Sprint(info.Snapshot), fmt.Sprintf("%s:%d", info.Group, between), ""} {
		number := map[string]uint64{fmt.Sprint(info.Snapshot): info.Snapshot, "": info.Last}[until]
		if number == 0 {
			number = between
		}
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			restored(t, dir, until, number, work.until(number), altered.GTID)
		})
	}
	t.Run("log of a member", func(t *testing.T) {
		last := work.history[len(work.history)-1].gtid
		if err := g.Stop(patience); err != nil {
			t.Fatal(err)
		}
		restored(t, dir, fmt.Sprint(last), last, work.until(last), altered.GTID, "--log="+lead.Dir)
	})
	refused(t, dir, &info)
}

// restored makes a group of a backup, with two more nodes, and looks at what it has.
func restored(t *testing.T, dir, until string, number uint64, want string, altered uint64, more ...string) {
	g, err := servers.New(servers.Options{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	first := g.Nodes[0]
	args := append([]string{"restore", "--from=" + dir, "--datadir=" + first.Dir, fmt.Sprintf("--peer-address=127.0.0.1:%d", first.Peers)}, more...)
	if until != "" {
		args = append(args, "--until="+until)
	}
	out, err := trireme(args...)
	if err != nil || !strings.Contains(out, fmt.Sprintf("restored to transaction %d", number)) {
		t.Fatalf("%v\n%s", err, out)
	}
	servers.Start(t, g)
	db := servers.Open(t, first.DSN("b", limits))
	if got := text(t, db, "SELECT id, v FROM t ORDER BY id"); got != want {
		t.Errorf("after %s the table has %d bytes: %.300q\nit had %d bytes: %.300q", out, len(got), got, len(want), want)
	}
	if got, want := text(t, db, "SELECT COUNT(*) FROM t FORCE INDEX (v) WHERE v > ''"), text(t, db, "SELECT n FROM w"); got != want {
		t.Errorf("the index has %s rows, the table %s", got, want)
	}
	columns := "id|v|more"
	if altered > number {
		columns = "id|v"
	}
	if got := text(t, db, "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position SEPARATOR '|') FROM information_schema.columns WHERE table_schema = 'b' AND table_name = 't'"); got != columns+"\n" {
		t.Errorf("the table's columns are %s, not %s", got, columns)
	}
	if got := text(t, db, "SHOW GRANTS FOR reader"); !strings.Contains(got, "SELECT ON `b`.*") {
		t.Errorf("the account has %s", got)
	}
	run(t, db, "INSERT INTO t (id, v) VALUES (-1, 'new')", "UPDATE t SET v = 'newer' WHERE id = -1")
	caughtUp(t, g, "SELECT id, v FROM b.t ORDER BY id")
	if err := g.Stop(patience); err != nil {
		t.Error(err)
	}
	for _, n := range g.Nodes {
		if out, err := trireme("check", "--datadir="+n.Dir); err != nil {
			t.Errorf("node %d: %v\n%s", n.Number, err, out)
		}
	}
}

// refused: what cannot be restored is refused with its reason, and leaves nothing behind
// that a node would take for its data.
func refused(t *testing.T, dir string, info *backupInfo) {
	restore := func(from string, args ...string) string {
		t.Helper()
		data := filepath.Join(t.TempDir(), "data")
		out, err := trireme(append([]string{"restore", "--from=" + from, "--datadir=" + data}, args...)...)
		if err == nil {
			t.Errorf("restored: %s", out)
		}
		if _, err := os.Stat(filepath.Join(data, "member")); err == nil {
			t.Errorf("%q left a member behind", out)
		}
		return out
	}
	expect := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
	expect(restore(dir, fmt.Sprintf("--until=%d", info.Snapshot-1)), "is before the backup's data")
	expect(restore(dir, fmt.Sprintf("--until=%d", info.Last+1)), fmt.Sprintf("ends with transaction %d", info.Last))
	expect(restore(dir, "--until=00000000-0000-0000-0000-000000000001:5"), "the backup is of group")
	expect(restore(dir, "--until=yesterday"), "is no transaction")
	expect(restore(dir, "--port=many"), "port")
	expect(restore(filepath.Join(dir, "nowhere")), "no whole backup")
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := trireme("restore", "--from="+dir, "--datadir="+full)
	if err == nil {
		t.Error("restored into a directory that is not empty")
	}
	expect(out, "mine is there")
	out, err = trireme("backup", "--grpc=127.0.0.1:1", dir)
	if err == nil {
		t.Error("a backup was overwritten")
	}
	expect(out, "is not empty")

	for _, f := range info.Files {
		name := filepath.Join(dir, f.Name)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, bad := range map[string][]byte{"a bit": flipped(b), "the end": b[:len(b)-1], "more": append(slices.Clone(b), 0)} {
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if out := restore(dir); !strings.Contains(out, "the backup is damaged: "+f.Name) {
				t.Errorf("%s of %s is wrong: %s", what, f.Name, out)
			}
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		expect(restore(dir), f.Name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "backup.json")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]string{
		strings.Replace(string(b), `"format": 1`, `"format": 2`, 1):        "format 2",
		strings.Replace(string(b), `"name": "state"`, `"name": "../x"`, 1): "damaged",
		string(b[:len(b)/2]): "damaged",
		string(bytes.ReplaceAll(b, []byte(`"name": "log.`), []byte(`"name": "l`))): "damaged",
	} {
		if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(restore(dir), want)
	}
}

// flipped is b with one bit changed.
func flipped(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)/2] ^= 4
	return b
}
