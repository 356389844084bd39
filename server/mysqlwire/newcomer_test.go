package mysqlwire

import (
	"context"
	"testing"
	"time"
)

// TestShutdownLetsNewcomersIn: who was accepted a moment before the server is shut down may sign in and ask something. Others hear at
// once that it stops, and newcomers soon after.
func TestShutdownLetsNewcomersIn(t *testing.T) {
	r := serve(t, nil)
	old := dialRaw(t, r.ro)
	old.login(0)
	time.Sleep(newcomerGrace + newcomerGrace/5)
	c := dialRaw(t, r.ro) // greeted
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	down := make(chan struct{})
	go func() {
		r.s.Shutdown(ctx)
		close(down)
	}()
	old.seq = 0
	old.wantError(1053)
	c.login(0)
	c.command(byte(comPing))
	if p := c.read(); len(p) == 0 || p[0] != headerOK {
		t.Errorf("% x", p)
	}
	c.seq = 0
	c.wantError(1053)
	<-down
	if ctx.Err() != nil || !c.ended() {
		t.Error("it took the whole time")
	}
}
