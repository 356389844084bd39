package group_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
)

// lines takes the lines of a log, and notes how far the recovery is at each.
type lines struct {
	recovery *group.Recovery
	mu       sync.Mutex
	text     []string
	status   []group.RecoveryStatus
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(bytes.TrimSpace(b)))
	l.status = append(l.status, l.recovery.Status())
	return len(b), nil
}

// has reports whether a line of the log has a text.
func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(line string) bool { return strings.Contains(line, text) })
}

// find returns how far the recovery was at the first line that has a text.
func (l *lines) find(t *testing.T, text string) (string, group.RecoveryStatus) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, line := range l.text {
		if strings.Contains(line, text) {
			return line, l.status[i]
		}
	}
	t.Errorf("no line of the log has %q:\n%s", text, strings.Join(l.text, "\n"))
	return "", group.RecoveryStatus{}
}

// TestRecoveryIsTold: what a start after a crash has to do, how far it is and how long it
// took is in the log and can be asked for before Open returns.
func TestRecoveryIsTold(t *testing.T) {
	const crashed, rows = "recovery: this member has what it had", 300
	disk := simfile.New(env.Real(), 1)
	r := closedRig(t, 1)
	var rec *group.Recovery
	var log *lines
	r.options = func(o *group.Options) {
		rec = &group.Recovery{}
		log = &lines{recovery: rec}
		o.FS, o.Recovery, o.Log = disk, rec, slog.New(slog.NewTextHandler(log, nil))
		o.Storage.FlushInterval = time.Hour // so that there are entries to apply again
		o.Storage.Cleaner.Off = true
	}
	r.start(0)
	r.leader()
	createFruit(t, r.nodes[0])
	var last uint64
	for i := range rows {
		last = insertFruit(t, r.nodes[0], i)
		if i == rows/2 {
			e, err := r.nodes[0].Engine()
			if err == nil {
				err = e.Sync()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := rec.Status(); s.Redo != 0 || s.Entries() != 0 || !s.Done() {
		t.Errorf("a new node: %+v", s)
	}
	killed := disk.KillImage()
	disk.Crash()
	_ = r.nodes[0].Close()
	r.nodes[0], disk = nil, killed

	r.start(0)
	r.leader()
	until := time.Now().Add(20 * time.Second)
	for !log.has(crashed) && time.Now().Before(until) { // the line comes after the status says that all is done
		time.Sleep(time.Millisecond)
	}
	if e, err := r.nodes[0].Engine(); err != nil {
		t.Fatal(err)
	} else if at, _ := e.Applied(); at < last {
		t.Errorf("transaction %d is there, %d was acknowledged", at, last)
	}
	if _, s := log.find(t, "recovery: redo is applied"); s.Stage != "redo" || s.Redo < 10<<10 || s.RedoApplied != 0 ||
		!strings.HasPrefix(s.String(), "recovering: redo 0 of ") {
		t.Errorf("when redo begins: %+v, %v", s, s.String())
	}
	if line, s := log.find(t, "recovery: redo was applied"); s.Stage != "rollback" || s.RedoApplied != s.Redo || s.PagesWritten == 0 ||
		s.RedoGroups == 0 || !strings.Contains(line, "took=") {
		t.Errorf("when redo ends: %s: %+v", line, s)
	}
	if line, s := log.find(t, "recovery: the newest file of the log was checked"); s.LogRead == 0 || !strings.Contains(line, "took=") {
		t.Errorf("when the log is open: %s: %+v", line, s)
	}
	line, s := log.find(t, "recovery: entries of the log are applied again")
	if s.Stage != "entries" || s.Entries() < rows/3 || s.EntriesApplied != 0 || !strings.Contains(s.Doing(), "entries of the log, 0 of ") {
		t.Errorf("when entries are to be applied: %s: %+v", line, s)
	}
	if line, s := log.find(t, crashed); !s.Done() || s.EntriesApplied != s.Entries() || !strings.Contains(line, "entries=") ||
		!strings.HasPrefix(s.String(), "recovered in ") || s.Doing() != "" {
		t.Errorf("in the end: %s: %+v", line, s)
	}
}
