package backup_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/backup"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
)

// content reads a whole file.
func content(t *testing.T, fsys file.FS, name string) []byte {
	t.Helper()
	b, err := file.ReadWhole(fsys, name, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// resent copies a backup as if a member had sent it with other files.
func resent(t *testing.T, from file.FS, change func(name string, b []byte) []byte, last uint64) *simfile.FS {
	t.Helper()
	b, err := backup.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	to := simfile.New(env.Real(), 1)
	w, err := backup.Create(to)
	for _, f := range b.Info.Files {
		bytes := change(f.Name, content(t, from, f.Name))
		if bytes == nil {
			continue
		}
		if err == nil {
			err = w.Begin(f.Name)
		}
		if err == nil {
			_, err = w.Write(bytes)
		}
		if err == nil {
			err = w.End(sha256.Sum256(bytes))
		}
	}
	if err == nil {
		info := *b.Info
		if last != 0 {
			info.Last = last
		}
		_, err = w.Finish(info)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func isLog(name string) bool { return strings.HasPrefix(name, group.BackupLogPrefix) }

// TestVerifyLog: a backup whose log was damaged before it was sent, or lacks something, is none, though its checksums are
// right; its data can be restored all the same.
func TestVerifyLog(t *testing.T) {
	from := simfile.New(env.Real(), 1)
	info := take(t, from)
	var logs []string
	for _, f := range info.Files {
		if isLog(f.Name) {
			logs = append(logs, f.Name)
		}
	}
	if len(logs) < 3 {
		t.Fatalf("there are %v", logs)
	}
	flip := func(at int64) func(string, []byte) []byte {
		return func(name string, b []byte) []byte {
			if name == logs[len(logs)/2] { // a large transaction
				if at < 0 {
					at += int64(len(b))
				}
				b[at] ^= 1
			}
			return b
		}
	}
	for what, c := range map[string]struct {
		change func(string, []byte) []byte
		last   uint64
		want   string
	}{
		"a header":       {flip(20), 0, logs[len(logs)/2]},
		"a record":       {flip(4096 + 30), 0, logs[len(logs)/2]},
		"a body":         {flip(-10), 0, logs[len(logs)/2]},
		"no last file":   {without(logs[len(logs)-1]), 0, "ends with transaction"},
		"no file within": {without(logs[1]), 0, "file is missing"},
		"no first files": {without(logs[:len(logs)-1]...), 0, "begins with entry"},
		"no log":         {without(logs...), 0, "it has no log"},
		"another end":    {without(), info.Last + 1, "ends with transaction"},
	} {
		spoiled := resent(t, from, c.change, c.last)
		b, err := backup.Open(spoiled)
		if err != nil {
			t.Fatal(err)
		}
		hint := fmt.Sprintf("--until=%d", info.Snapshot)
		if err := b.Verify(nil); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "empty its data directory") {
			t.Errorf("%s: %v", what, err)
		}
		if err := errors.Join(b.VerifySums(nil), b.VerifyData(nil)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		to := simfile.New(env.Real(), 2)
		last, err := b.Restore(restoreOptions(to, "a:1", info.Snapshot))
		if err != nil || last != info.Snapshot {
			t.Errorf("%s, the data alone: %d, %v", what, last, err)
			continue
		}
		end := *info
		end.Last = info.Snapshot
		checkRestored(t, what, to, &end)
	}
}

// without leaves files out.
func without(names ...string) func(string, []byte) []byte {
	return func(name string, b []byte) []byte {
		for _, n := range names {
			if n == name {
				return nil
			}
		}
		return b
	}
}

// TestBackupOfDamagedLog: a member whose log is damaged gives no backup, and says where; one that nobody waits for any more ends.
// What was only read is told of, so that the client knows that it goes on.
func TestBackupOfDamagedLog(t *testing.T) {
	fsys := simfile.New(env.Real(), 1)
	n := one(t, fsys, address(t), true)
	fill(t, n)
	backup := func(ctx context.Context, at func(name string)) error {
		_, _, err := n.Backup(ctx, func(name string) (provision.ChunkWriter, error) {
			at(name)
			return sender(func([]byte) error { return nil }), nil
		})
		return err
	}
	if err := backup(context.Background(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	var large, logFile string
	spoil := func(name string) {
		if name == "state" { // the snapshot is taken; what follows is in the log alone
			insert(t, n, rowsOfSnapshot, rowsOfAll)
			for _, f := range n.Log().Files() {
				if f.Large && f.Closed {
					large = f.Name
				}
			}
			if err := fsys.FlipBit("data.1/binlog/"+large, int64(len(content(t, fsys, "data.1/binlog/"+large)))-9, 3); err != nil {
				t.Fatal(err)
			}
		}
		if isLog(name) {
			logFile = name
		}
	}
	var damage *log.CorruptError
	if err := backup(context.Background(), spoil); !errors.As(err, &damage) || damage.File != large {
		t.Errorf("%s is damaged: %v", large, err)
	}
	if logFile != group.BackupLogPrefix+large {
		t.Errorf("it came to %s", logFile)
	}
	ctx, stop := context.WithCancel(context.Background())
	if err := backup(ctx, func(name string) {
		if isLog(name) {
			stop()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestoreDamagedLog: a log that is to follow the backup's is verified as it is copied, with what lies in it unread: damage ends
// the restore, which tells up to where the log can be read. With that all before the damage is restored.
func TestRestoreDamagedLog(t *testing.T) {
	from, disk := simfile.New(env.Real(), 1), simfile.New(env.Real(), 2)
	n := one(t, disk, address(t), true)
	fill(t, n)
	info := backUp(t, n, from)
	insert(t, n, rowsOfAll, rowsOfAll+10) // each of these is a large transaction
	const damagedRow = 6
	wanted := info.Last + damagedRow // the last one before the damage
	var spoiled log.FileInfo
	for _, f := range n.Log().Files() {
		if f.Large && f.FirstNumber == wanted+1 {
			spoiled = f
		}
	}
	if spoiled.Size == 0 {
		t.Fatalf("transaction %d is in no file of its own", wanted+1)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]int64{"the body": spoiled.Size - 9, "the record": 4096 + 60} {
		disk := disk.KillImage()
		if err := disk.FlipBit("data.1/binlog/"+spoiled.Name, at, 3); err != nil {
			t.Fatal(err)
		}
		for _, until := range []uint64{0, wanted + 1, wanted} {
			l, err := log.Open(log.Options{FS: disk, Env: env.Real(), Dir: "data.1/binlog", Group: [16]byte{7}, Preallocate: -1, Copied: true})
			if err != nil {
				t.Fatal(err)
			}
			to := simfile.New(env.Real(), 3)
			last, err := restore(from, to, "a:1", until, l)
			_ = l.Close()
			if until == wanted {
				if err != nil || last != wanted {
					t.Errorf("%s, to what comes before: %d, %v", what, last, err)
					continue
				}
				whole := *info
				whole.Last = wanted
				checkRestored(t, what, to, &whole)
				continue
			}
			var damage *log.CorruptError
			if !errors.As(err, &damage) || damage.File != spoiled.Name || !strings.Contains(err.Error(), fmt.Sprintf("--until=%d;", wanted)) || strings.Contains(err.Error(), "empty its data directory") {
				t.Errorf("%s, to %d: %v", what, until, err)
			}
			if member, err := to.Exists("member"); err != nil || member {
				t.Errorf("%s: it is a member's (%v)", what, err)
			}
		}
	}
}
