package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/replication/group"
)

// TestAway: what a node says that serves nobody is told from other errors.
func TestAway(t *testing.T) {
	b := &backend{}
	for _, err := range []error{group.ErrStopped, group.ErrProvisioning, group.ErrRemoved, group.ErrMaybeRemoved} {
		if why, away := b.Away(fmt.Errorf("a statement: %w", err)); !away || why == "" {
			t.Errorf("%v: %q, %v", err, why, away)
		}
	}
	if _, away := b.Away(errors.New("another")); away {
		t.Error("another error says that the node is away")
	}
}
