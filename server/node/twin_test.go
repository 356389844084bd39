package node_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestTwin: a second process with a copy of a member's directory, at another address, is refused. Its
// /readyz says so, and what to do, and the member goes on.
func TestTwin(t *testing.T) {
	members := group(t, 3)
	_, other := leaderOf(t, members)
	eventually(t, "the other is ready", other.readyz)
	was := other.args
	other.stop()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(strings.TrimPrefix(was[0], "--datadir="))); err != nil {
		t.Fatal(err)
	}
	other, err := start(t, was)
	if err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	founders := strings.Split(strings.TrimPrefix(was[7], "--founders="), ",")
	twin, err := start(t, args(t, dir, founders, self))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the twin says that it is one", func() error {
		code, text := twin.get("/readyz")
		for _, part := range []string{"claims the same member id", "empty the directory", "trireme admin members add", self} {
			if code != http.StatusServiceUnavailable || !strings.Contains(text, part) {
				return fmt.Errorf("%d, no %q: %s", code, part, text)
			}
		}
		return nil
	})
	eventually(t, "the member is ready", other.readyz)
}
