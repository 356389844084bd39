package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/triremedb/trireme/e2e/servers/ports"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// runs starts the node of a directory, runs statements and stops it again. The error is why it does not start.
func runs(t *testing.T, dir string, port int, statements ...string) error {
	t.Helper()
	cfg, err := config.Load(config.Sources{Args: []string{"--datadir=" + dir, "--bind-address=127.0.0.1", "--port=0", "--read-only-port=0", "--http-port=0",
		"--grpc-port=0", "--report-host=127.0.0.1", fmt.Sprintf("--peer-address=127.0.0.1:%d", port), fmt.Sprintf("--peer-port=%d", port),
		"--peer-bind=127.0.0.1", "--peer-allow-plaintext", "--initial-root-password=secret", "--innodb-buffer-pool-size=16M", "--innodb-redo-log-capacity=16M"}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for ready := false; !ready; time.Sleep(20 * time.Millisecond) {
		r, err := http.Get("http://" + n.HTTPAddr() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		ready = r.StatusCode == http.StatusOK
		_ = r.Body.Close()
	}
	if len(statements) > 0 {
		db, err := sql.Open("mysql", "root:secret@tcp("+n.MainAddr()+")/?tls=skip-verify")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
		_ = db.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return n.Stop(ctx)
}

func copyTree(t *testing.T, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestCheckFindsWhatStartsRefuse: check finds something wherever a start refuses, and nothing where it does not.
func TestCheckFindsWhatStartsRefuse(t *testing.T) {
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	whole := t.TempDir()
	if err := runs(t, whole, port); err != nil {
		t.Fatal(err)
	}
	before := copyTree(t, whole)
	if err := runs(t, whole, port, "CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, s TEXT)", "INSERT INTO a.t SELECT 1, GROUP_CONCAT(UUID()) FROM information_schema.collations"); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, content string) func(string) {
		return func(dir string) { must(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)) }
	}
	remove := func(names ...string) func(string) {
		return func(dir string) {
			for _, name := range names {
				must(os.RemoveAll(filepath.Join(dir, name)))
			}
		}
	}
	flip := func(name string) func(string) {
		return func(dir string) {
			name := filepath.Join(dir, name)
			b, err := os.ReadFile(name)
			must(err)
			for i := 0; i < len(b); i += 15 {
				b[i] ^= 4
			}
			must(os.WriteFile(name, b, 0o600))
		}
	}
	const binlog = "data.1/binlog"
	groupOf := func(dir string) (group [16]byte) {
		f, err := os.Open(filepath.Join(dir, binlog, "binlog.000001"))
		must(err)
		defer func() { _ = f.Close() }()
		_, err = f.ReadAt(group[:], 16)
		must(err)
		return group
	}
	committed := func(dir string, index uint64) {
		b := binary.LittleEndian.AppendUint64(nil, index)
		b = append(binary.LittleEndian.AppendUint32([]byte("TRICOMM1"), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))), b...)
		write("data.1/committed", string(b))(dir)
	}
	tear := func(dir string) {
		name := filepath.Join(dir, binlog, "binlog.000001")
		b, err := os.ReadFile(name)
		must(err)
		clear(b[(len(bytes.TrimRight(b, "\x00"))-1)/512*512:])
		must(os.WriteFile(name, b, 0o600))
		remove(binlog + "/synced.mark")(dir)
	}
	unapplied := func(dir string) { // the engine has nothing of the log whose end is torn
		to := filepath.Join(dir, "data.1")
		remove("data.1")(dir)
		must(os.CopyFS(to, os.DirFS(filepath.Join(before, "data.1"))))
		unsynced := t.TempDir()
		l, err := log.Create(log.Options{FS: file.OS(unsynced), Env: env.Real(), Group: groupOf(dir), Preallocate: -1}, log.Start{})
		must(err)
		var entries []log.Entry
		for i := range uint64(100) {
			entries = append(entries, log.Entry{Index: i + 1, Term: 9, Type: log.ConfChange, Data: make([]byte, 37)})
		}
		must(l.Append(entries))
		remove(binlog)(dir)
		must(os.CopyFS(to, os.DirFS(unsynced)))
		must(l.Close())
		tear(dir)
	}
	for _, c := range []struct {
		what    string
		damage  func(dir string)
		refuses bool
	}{
		{"nothing", func(string) {}, false},
		{"data in use that seem to be received", write("data.1/receiving", ""), false},
		{"promise", flip("promise"), true},
		{"promise, empty", write("promise", ""), true},
		{"replaced", write("replaced", "xxxxx"), true},
		{"cluster", write("cluster", string(make([]byte, 2000))), true},
		{"regrouping", write("regrouping", ""), true},
		{"member", flip("member"), true},
		{"no member", remove("member"), true},
		{"neither member nor state", remove("member", "raft.state"), true},
		{"state", flip("raft.state"), true},
		{"no state", remove("raft.state"), true},
		{"data.current", flip("data.current"), true},
		{"no data.current", remove("data.current"), false},
		{"no data.current, and newer data", func(dir string) {
			remove("data.current")(dir)
			must(os.Mkdir(filepath.Join(dir, "data.2"), 0o700))
		}, true},
		{"committed", write("data.1/committed", "xxxxxxxx"), true},
		{"no log", remove(binlog), true},
		{"log of before", func(dir string) {
			remove(binlog)(dir)
			must(os.CopyFS(filepath.Join(dir, binlog), os.DirFS(filepath.Join(before, binlog))))
		}, true},
		{"log of later", func(dir string) {
			group := groupOf(dir)
			remove(binlog)(dir)
			l, err := log.Create(log.Options{FS: file.OS(filepath.Join(dir, "data.1")), Env: env.Real(), Group: group, Preallocate: -1}, log.Start{Index: 1000, Term: 9})
			must(err)
			must(l.Close())
		}, true},
		{"the end of the log, as if it had been torn, but the engine has applied it", tear, true},
		{"the end of the log, which a crash may have torn, but it is known to be committed", func(dir string) { unapplied(dir); committed(dir, 100) }, true},
		{"the end of the log, which a crash may have torn, and the mark that would tell is lost", unapplied, true},
		{"an entry that was there and committed", func(dir string) { committed(dir, 1000) }, true},
	} {
		dir := copyTree(t, whole)
		c.damage(dir)
		code, out := quiet(t, "check", "--datadir="+copyTree(t, dir))
		err := runs(t, dir, port)
		if (err != nil) != c.refuses {
			t.Errorf("%s: a start says %v", c.what, err)
		}
		if (code != 0) != (err != nil) {
			t.Errorf("%s: a start says %v, and check %d: %s", c.what, err, code, out)
		}
	}
}

// TestDataInUse: the tools read the data that are in use, whatever lies beside them or was left in them.
func TestDataInUse(t *testing.T) {
	dir := longLog(t)
	list := func(want int) {
		t.Helper()
		if code, out := quiet(t, "binlog", "--datadir", dir, "list"); code != want {
			t.Error(code, out)
		}
	}
	list(0)
	home := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Rename(filepath.Join(dir, "data.1"), filepath.Join(dir, "data.3")); err != nil {
		t.Fatal(err)
	}
	list(0) // it is the only one
	home("data.4")
	list(1)
	if err := os.Rename(filepath.Join(dir, "data.3"), filepath.Join(dir, "data.1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "data.4")); err != nil {
		t.Fatal(err)
	}
	if _, err := provision.OpenHome(file.OS(dir)); err != nil { // makes data.current
		t.Fatal(err)
	}
	home("data.1/receiving", "data.2", "data.2/binlog")
	list(0)
}
