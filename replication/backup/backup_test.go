package backup_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/replication/backup"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport"
)

var (
	points = flag.Int("crash.points", 40, "in how many places TestRestoreCrash crashes")
	seed   = flag.Uint64("crash.seed", 0, "of the crashes; 0: another in each run")
)

func plan(t *testing.T) *rand.Rand {
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("repeat with -crash.seed=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// writeFiles writes a backup of small files.
func writeFiles(fsys file.FS) error {
	w, err := backup.Create(fsys)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, name := range []string{"snapshot", "catalogue", "state", "table.7", "log.binlog.000001"} {
		if err := w.Begin(name); err != nil {
			return err
		}
		sum := sha256.New()
		for i := range 3 {
			b := []byte(strings.Repeat(name, 100*i))
			_, _ = sum.Write(b)
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		if err := w.End(backup.Sum(sum.Sum(nil))); err != nil {
			return err
		}
	}
	_, err = w.Finish(backup.Info{Snapshot: 1, Last: 2})
	return err
}

// TestWriteCrash: wherever the power fails there is a whole backup or none.
func TestWriteCrash(t *testing.T) {
	rng := plan(t)
	all := simfile.New(env.Real(), 1)
	if err := writeFiles(all); err != nil {
		t.Fatal(err)
	}
	for k := int64(1); k <= all.Mutations(); k++ {
		fsys := simfile.New(env.Real(), rng.Uint64())
		fsys.CrashAt(k)
		if err := writeFiles(fsys); err == nil {
			t.Fatalf("call %d failed, and nobody said so", k)
		}
		b, err := backup.Open(fsys.CrashImage())
		if err == nil {
			if err = b.VerifySums(nil); err != nil || len(b.Info.Files) != 5 {
				t.Errorf("after a crash at call %d: %v, %d files", k, err, len(b.Info.Files))
			}
		} else if !errors.Is(err, backup.ErrNoBackup) {
			t.Errorf("after a crash at call %d: %v", k, err)
		}
	}
}

// TestWriteFull: a full disk is told of, and leaves nothing behind.
func TestWriteFull(t *testing.T) {
	fsys := simfile.New(env.Real(), 1)
	fsys.SetCapacity(4000)
	if err := writeFiles(fsys); !errors.Is(err, file.ErrNoSpace) {
		t.Fatal(err)
	}
	names, err := fsys.List(".")
	if err != nil || len(names) != 0 {
		t.Errorf("%v stay, %v", names, err)
	}
}

// TestNames: what comes from the network names no file but those of a backup.
func TestNames(t *testing.T) {
	w, err := backup.Create(simfile.New(env.Real(), 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "backup.json", "member", "table.", "table.01", "table.-1", "table.1/../../x", "table.99999999999999999999",
		"log.", "log.binlog.", "log.binlog.000001.x", "log.binlog.000001/x", "log.../x", "snapshot\x00", "Snapshot"} {
		if err := w.Begin(name); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if err := w.Begin("table.12"); err != nil {
		t.Error(err)
	}
	if err := w.Begin("table.13"); err == nil {
		t.Error("a file began in another one")
	}
	if err := w.End(backup.Sum{}); err == nil {
		t.Error("a wrong checksum was taken")
	}
	if err := w.Begin("table.12"); err == nil {
		t.Error("a file came twice")
	}
}

// options are those of a node that may found a group.
func options(fsys file.FS, addr string, found bool) group.Options {
	o := group.Options{Env: env.Real(), FS: fsys, Storage: storage.Options{BufferPoolSize: 16 << 20}, LogPreallocate: -1, LargeThreshold: 200,
		Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			return transport.New(transport.Options{Listen: addr, Identity: id, AllowPlaintext: true, LogFormat: group.LogFormat}, h)
		}}
	if found {
		o.Group, o.ID, o.Founders = [16]byte{7}, 1, []group.Member{{ID: 1, Addr: addr}}
	}
	return o
}

// one starts a group of one node.
func one(t *testing.T, fsys file.FS, addr string, found bool) *group.Node {
	t.Helper()
	n, err := group.Open(options(fsys, addr, found))
	if err != nil {
		t.Fatal(err)
	}
	if !n.WaitWritable(context.Background(), time.Minute) {
		t.Fatal("no leader")
	}
	return n
}

func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func do(t *testing.T, n *group.Node, fn func(s *txn.Session) error) {
	t.Helper()
	s, err := n.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	err = s.Begin(txn.BeginOptions{})
	if err == nil {
		err = fn(s)
	}
	if err == nil {
		_, err = s.Commit(context.Background())
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

func insert(t *testing.T, n *group.Node, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		do(t, n, func(s *txn.Session) error {
			o, err := s.Open("shop", "fruit")
			if err != nil {
				return err
			}
			return s.Insert(o, []types.Value{types.NewInt(int64(i)), types.NewString(strings.Repeat("fruit", i))}, false)
		})
	}
}

// The rows of the group: those of the snapshot, and those that came while it was written.
const rowsOfSnapshot, rowsOfAll = 30, 50

// take makes a backup of a group of one, with some transactions behind the snapshot.
func take(t *testing.T, into file.FS) *backup.Info {
	t.Helper()
	n := one(t, simfile.New(env.Real(), 1), address(t), true)
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	fill(t, n)
	return backUp(t, n, into)
}

// fill makes the table and the rows of the snapshot.
func fill(t *testing.T, n *group.Node) {
	t.Helper()
	do(t, n, func(s *txn.Session) error { _, err := s.CreateSchema(dict.Schema{Name: "shop"}, nil); return err })
	do(t, n, func(s *txn.Session) error {
		_, err := s.CreateTable(&record.Table{Schema: "shop", Name: "fruit",
			Columns: []record.Column{{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, NotNull: true}},
				{ID: 2, Name: "name", Type: types.Type{Kind: types.KindVarChar, Length: 2000, Collation: types.CollationUTF8MB40900AI}}},
			Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}, nil)
		return err
	})
	insert(t, n, 0, rowsOfSnapshot)
}

// backUp makes a backup. The other rows come while it is written.
func backUp(t *testing.T, n *group.Node, into file.FS) *backup.Info {
	t.Helper()
	w, err := backup.Create(into)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	sum := sha256.New()
	end := func() error { return w.End(backup.Sum(sum.Sum(nil))) }
	begun := false
	m, last, err := n.Backup(context.Background(), func(name string) (provision.ChunkWriter, error) {
		if begun {
			if err := end(); err != nil {
				return nil, err
			}
		}
		if name == "state" {
			insert(t, n, rowsOfSnapshot, rowsOfAll)
		}
		begun = true
		sum.Reset()
		return sender(func(b []byte) error {
			_, _ = sum.Write(b)
			_, err := w.Write(b)
			return err
		}), w.Begin(name)
	})
	if err == nil {
		err = end()
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := w.Finish(backup.Info{Snapshot: m.CSN, Last: last})
	if err != nil {
		t.Fatal(err)
	}
	if info.Last != info.Snapshot+rowsOfAll-rowsOfSnapshot {
		t.Fatalf("snapshot as of %d, log to %d", info.Snapshot, info.Last)
	}
	return info
}

type sender func([]byte) error

func (sender) Abort() {}

func (s sender) Send(b []byte) error { return s(b) }

// restore restores into a directory.
func restore(from, to file.FS, addr string, until uint64, more ...*log.Log) (uint64, error) {
	b, err := backup.Open(from)
	if err == nil {
		err = b.Verify(nil)
	}
	if err != nil {
		return 0, err
	}
	return b.Restore(restoreOptions(to, addr, until, more...))
}

func restoreOptions(to file.FS, addr string, until uint64, more ...*log.Log) backup.Options {
	return backup.Options{Data: to, Env: env.Real(), Storage: storage.Options{BufferPoolSize: 16 << 20, PurgeTasks: -1},
		Until: until, More: more, Group: [16]byte{9}, Member: 77, Addr: addr}
}

func TestRestore(t *testing.T) {
	from := simfile.New(env.Real(), 1)
	info := take(t, from)
	for _, until := range []uint64{info.Snapshot, info.Snapshot + 1, info.Last - 1, 0} {
		to, addr := simfile.New(env.Real(), 2), address(t)
		last, err := restore(from, to, addr, until)
		want := until
		if until == 0 {
			want = info.Last
		}
		if err != nil || last != want {
			t.Fatalf("to %d: %d, %v", until, last, err)
		}
		n := one(t, to, addr, false)
		if m := n.Members(); n.Group() != [16]byte{9} || n.ID() != 77 || len(m) != 1 || m[0].Addr != addr {
			t.Errorf("it is member %d of group %x with %+v", n.ID(), n.Group(), m)
		}
		// It goes on as any: exactly what is missing can be added.
		insert(t, n, rowsOfSnapshot+int(last-info.Snapshot), rowsOfAll+1)
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := restore(from, to, addr, until); err == nil {
			t.Error("data of a member were overwritten")
		}
	}
	for until, want := range map[uint64]string{info.Snapshot - 1: "older backup", info.Last + 1: "comes later"} {
		if _, err := restore(from, simfile.New(env.Real(), 2), "a:1", until); !errors.Is(err, group.ErrUntil) || !strings.Contains(err.Error(), want) {
			t.Errorf("to %d: %v", until, err)
		}
	}
}

// TestRestoreLogs: a log that does not follow what the backup has is told from one that ends before it does.
func TestRestoreLogs(t *testing.T) {
	from := simfile.New(env.Real(), 1)
	take(t, from)
	for start, want := range map[uint64]string{1: "older than what it would follow: it ends with entry 1 (transaction 0)", 1_000_000: "begins with entry 1000001: the files before it were purged"} {
		l, err := log.Create(log.Options{FS: simfile.New(env.Real(), 3), Env: env.Real(), Group: [16]byte{7}, Preallocate: -1}, log.Start{Index: start, Term: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := restore(from, simfile.New(env.Real(), 2), "a:1", 0, l); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "name the log of a member that has more") {
			t.Errorf("a log from entry %d on: %v", start+1, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRestoreCrash: wherever the power fails the directory is a member's with everything,
// or a restore into it begins anew.
func TestRestoreCrash(t *testing.T) {
	rng := plan(t)
	from := simfile.New(env.Real(), 1)
	info := take(t, from)
	all := simfile.New(env.Real(), 1)
	if _, err := restore(from, all, "a:1", 0); err != nil {
		t.Fatal(err)
	}
	checkRestored(t, "undisturbed", all, info)
	for range *points {
		k := 1 + rng.Int64N(all.Mutations())
		at := fmt.Sprintf("crash at call %d of %d", k, all.Mutations())
		fsys := simfile.New(env.Real(), rng.Uint64())
		fsys.CrashAt(k)
		_, err := restore(from, fsys, "a:1", 0)
		if err == nil && fsys.Crashed() {
			t.Errorf("%s: nobody said so", at)
		}
		fsys = fsys.CrashImage()
		member, err := fsys.Exists("member")
		if err != nil {
			t.Fatal(err)
		}
		if !member {
			if _, err := restore(from, fsys, "a:1", 0); err != nil {
				t.Errorf("%s: again: %v", at, err)
				continue
			}
		}
		checkRestored(t, at, fsys, info)
	}
}

// checkRestored looks into a directory that no node has opened.
func checkRestored(t *testing.T, what string, fsys file.FS, info *backup.Info) {
	t.Helper()
	home, err := provision.OpenHome(fsys)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	eng, err := storage.Open(storage.Options{FS: home.Data(), Env: env.Real(), BufferPoolSize: 16 << 20, PurgeTasks: -1})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if number, _ := eng.Applied(); number != info.Snapshot {
		t.Errorf("%s: the data are as of %d, not %d", what, number, info.Snapshot)
	}
	err = eng.Check(table.CheckQuiet, func(finding string) { t.Errorf("%s: %s", what, finding) })
	if err = errors.Join(err, eng.Close()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	l, err := log.Open(log.Options{FS: home.Data(), Env: env.Real(), Group: [16]byte{9}, Preallocate: -1})
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if l.LastNumber() != info.Last {
		t.Errorf("%s: the log ends with %d, not %d", what, l.LastNumber(), info.Last)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestoreFull: a disk that is too small is told of.
func TestRestoreFull(t *testing.T) {
	from := simfile.New(env.Real(), 1)
	take(t, from)
	to := simfile.New(env.Real(), 1)
	to.SetCapacity(1 << 20)
	if _, err := restore(from, to, "a:1", 0); !errors.Is(err, file.ErrNoSpace) {
		t.Error(err)
	}
	to.SetCapacity(0)
	if _, err := restore(from, to, "a:1", 0); err != nil {
		t.Errorf("with room: %v", err)
	}
}
