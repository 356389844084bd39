package group

import (
	"context"
	"errors"
	"testing"
)

// pulse counts the chunks that are sent.
type pulse struct{ empty, full int }

func (p *pulse) Send(chunk []byte) error {
	if len(chunk) == 0 {
		p.empty++
	} else {
		p.full++
	}
	return nil
}

func (p *pulse) Abort() {}

// Whatever a backup reads without sending it, its writer hears from it, though not of every piece, and it ends when nobody waits.
func TestSayAlive(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := &pulse{}
	read := sayAlive(ctx, w)
	for range 10 * aliveEvery / (64 << 10) {
		if err := read(64 << 10); err != nil {
			t.Fatal(err)
		}
	}
	if *w != (pulse{empty: 10}) {
		t.Errorf("%+v", *w)
	}
	stop()
	if err := read(1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
