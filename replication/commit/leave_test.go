package commit

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/txn"
)

// A session that is told to wait no longer, a moment after its transaction was answered, has the answer: what was
// committed has its number.
func TestLeaveAfterTheAnswer(t *testing.T) {
	p := &Pipeline{}
	for _, want := range []struct {
		number uint64
		err    error
	}{{7, nil}, {0, errors.New("refused")}} {
		tx := &txn.Txn{Waiter: env.Real().NewParker()}
		tell(tx, want.number, want.err)
		if number, err := p.leave(context.Canceled, tx); number != want.number || err != want.err {
			t.Errorf("%d, %v, want %+v", number, err, want)
		}
	}
}
