package txn_test

import (
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/txn"
)

// Who watches a table when this node stops writing does not know what others write from
// then on, and hears that, though this node may write again by the time.
func TestWatchAcrossSuspend(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	var w *txn.Watch
	r.do(t, func() error {
		if err := r.s.LockDefinitions(txn.Name{Schema: "db", Table: "p"}); err != nil {
			return err
		}
		w = r.s.Watch("db", "p", 1<<20)
		return nil
	})
	defer w.Stop()
	if keys, err := w.Changed(); len(keys) != 0 || err != nil {
		t.Fatalf("%q, %v", keys, err)
	}
	away := errors.New("this node does not lead")
	must(t, r.m.Suspend(away))
	r.m.Resume()
	if _, err := w.Changed(); !errors.Is(err, away) || !errors.Is(w.Err(), away) {
		t.Errorf("after another node has led: %v, %v", err, w.Err())
	}
}
