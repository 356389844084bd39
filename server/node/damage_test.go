package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A member whose accounts are damaged stops and says why, before it refuses anybody or leads.
func TestDamagedAccounts(t *testing.T) {
	t.Parallel()
	for _, space := range []string{"00000001.trd", "00000002.trd"} {
		members := group(t, 3)
		leader, other := leaderOf(t, members)
		db := open(t, leader.MainAddr())
		eventually(t, "log in", db.Ping)
		eventually(t, "the other has the accounts", open(t, other.ReadAddr()).Ping)
		restart := other.args
		other.stop()
		data := filepath.Join(strings.TrimPrefix(restart[0], "--datadir="), "data.1")
		// The page would be healed by its copy, if it was among those that were written last.
		if err := os.Truncate(filepath.Join(data, "doublewrite.trd"), 0); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(data, "spaces", space)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[100] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damaged, err := start(t, restart)
		if err == nil {
			eventually(t, "the damaged member stops", func() error {
				if err = damaged.Err(); err == nil {
					return errors.New("it goes on")
				}
				return nil
			})
			_ = damaged.Node.Stop(context.Background())
			damaged.Node = nil
		}
		if text := err.Error(); !strings.Contains(text, "accounts cannot be read") || !strings.Contains(text, "rebuild this node") || !strings.Contains(text, space) {
			t.Errorf("%s: %v", space, err)
		}
		b, readErr := os.ReadFile(filepath.Join(filepath.Dir(data), "failure.json"))
		if readErr != nil || !strings.Contains(string(b), `"reason":"a page of its data is damaged"`) {
			t.Errorf("%s: the next process is told %q (%v)", space, b, readErr)
		}
		if err := db.Ping(); err != nil {
			t.Errorf("a client of the others: %v", err)
		}
		for _, m := range members {
			m.stop()
		}
	}
}
