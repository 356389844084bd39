package mysqlwire

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// relays serves a leader, and a follower that relays to it, by TLS if its client comes by that.
func relays(t *testing.T, change func(*Options, *fake)) (leader, follower *rig) {
	t.Helper()
	var announced *Handover
	leader = serve(t, func(o *Options, f *fake) {
		o.Redeem = func([]byte) *Handover { return announced }
		if change != nil {
			change(o, f)
		}
	})
	follower = serve(t, func(o *Options, _ *fake) {
		o.Forward = func(_ context.Context, h *Handover) (*Target, error) {
			announced = h
			return &Target{Member: 7, Addr: leader.addr, Ticket: []byte("t"), TLS: &tls.Config{InsecureSkipVerify: true}}, nil //nolint:gosec // a test
		}
	})
	return leader, follower
}

// count reads the rows of a query.
func count(db *sql.DB, query string) (n int, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// TestShutdownLetsRelayedStatementsEnd: a member that stops relays the answers that are under way to their ends;
// who waits for none is told at once.
func TestShutdownLetsRelayedStatementsEnd(t *testing.T) {
	for name, change := range map[string]func(*mysql.Config){
		"plain":      nil,
		"compressed": func(c *mysql.Config) { _ = c.Apply(mysql.EnableCompression(true)) },
		"TLS":        func(c *mysql.Config) { c.TLSConfig = "skip-verify" },
	} {
		t.Run(name, func(t *testing.T) {
			leader, follower := relays(t, func(_ *Options, f *fake) { f.gate = make(chan struct{}) })
			db := follower.db(t, change)
			idle, err := db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer idle.Close()
			got := make(chan error, 1)
			go func() {
				n, err := count(db, "gate")
				if err == nil && n != 1000 {
					err = fmt.Errorf("%d rows", n)
				}
				got <- err
			}()
			eventually(t, "the statement runs", func() bool { return leader.waiting.Load() == 1 })
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			down := make(chan struct{})
			go func() {
				follower.s.Shutdown(ctx)
				close(down)
			}()
			eventually(t, "idle sessions end", func() bool { return leader.sessions() == 1 })
			close(leader.gate)
			<-down
			if err := <-got; err != nil {
				t.Error(err)
			}
			if ctx.Err() != nil {
				t.Error("it took the whole time")
			}
		})
	}
}

// TestShutdownEndsRelays: what does not end in the time that is given is cut.
func TestShutdownEndsRelays(t *testing.T) {
	leader, follower := relays(t, nil)
	db := follower.db(t, nil)
	got := make(chan error, 1)
	go func() {
		_, err := db.Exec("sleep")
		got <- err
	}()
	eventually(t, "the statement runs", func() bool { return leader.waiting.Load() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	follower.s.Shutdown(ctx)
	if err := <-got; err == nil {
		t.Error("a statement that nobody waits for succeeded")
	}
	leader.mu.Lock()
	for _, s := range leader.open {
		s.Interrupt()
	}
	leader.mu.Unlock()
	eventually(t, "the statement has ended", func() bool { return leader.waiting.Load() == 0 && leader.sessions() == 0 })
}

// TestIdleRelayHearsOfShutdown: as at the leader's own port.
func TestIdleRelayHearsOfShutdown(t *testing.T) {
	_, follower := relays(t, nil)
	c := dialRaw(t, follower.addr)
	c.login(0)
	c.command(byte(comPing))
	c.read()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	follower.s.Shutdown(ctx)
	c.seq = 0
	c.wantError(1053)
	if ctx.Err() != nil || !c.ended() {
		t.Error("it took the whole time")
	}
}
