package node

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// TestUnknownSpare: a leader that is starting is not taken for an older program, which cannot answer: that
// would let a voter go that the group needs.
func TestUnknownSpare(t *testing.T) {
	starts := &Node{ready: make(chan struct{})}
	var f *transport.Failure
	if _, err := starts.answerSpare(context.Background(), nil); !errors.As(err, &f) || unknownSpare(f) {
		t.Errorf("a leader that is starting: %v", err)
	}
	_, err := new(group.Node).Answer(context.Background(), askSpare, nil)
	if err == nil || !unknownSpare(&transport.Failure{Text: err.Error()}) { // as it travels
		t.Errorf("a program that does not know the question: %v", err)
	}
	for _, err := range []error{nil, transport.ErrTimeout} {
		if unknownSpare(err) {
			t.Errorf("%v", err)
		}
	}
}
