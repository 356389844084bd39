package node

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/server/metrics"
)

// What a process has written of its failure the next one tells, with the reason as a label.
func TestFailureOfAProcessBefore(t *testing.T) {
	dir := t.TempDir()
	told := func() string {
		n := &Node{dir: dir, log: slog.New(slog.DiscardHandler)}
		n.readFailure()
		m := metrics.NewWriter()
		n.failureMetrics(m)
		var text strings.Builder
		if _, err := m.WriteTo(&text); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	if text := told(); text != "" {
		t.Errorf("none has failed: %s", text)
	}
	n := &Node{dir: dir, log: slog.New(slog.DiscardHandler)}
	n.noteFailureOf(fmt.Errorf("apply: %w", &redo.HaltError{Cause: file.ErrNoSpace}), time.Unix(1700000000, 0))
	if text := told(); !strings.Contains(text, `{reason="its storage engine has halted"} 1.7e+09`) {
		t.Errorf("%s", text)
	}
	n.noteFailureOf(fmt.Errorf("later: %w", &page.CorruptError{}), time.Unix(1700000001, 0))
	if text := told(); !strings.Contains(text, `{reason="its storage engine has halted"} 1.7e+09`) {
		t.Errorf("what failed because of the first failure is told instead of it: %s", text)
	}
	if err := os.WriteFile(filepath.Join(dir, failureName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := told(); text != "" {
		t.Errorf("of a file that cannot be read: %s", text)
	}
}
