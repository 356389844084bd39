package mysqlwire

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"io"
	"net"
	"strings"
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
			letsStatementsEnd(t, follower, leader, change)
		})
	}
}

// letsStatementsEnd demands that a member that stops lets a statement end that another one, or it itself, runs.
func letsStatementsEnd(t *testing.T, stops, runs *rig, change func(*mysql.Config)) {
	t.Helper()
	db := stops.db(t, change)
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
	eventually(t, "the statement runs", func() bool { return runs.waiting.Load() == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	down := make(chan struct{})
	go func() {
		stops.s.Shutdown(ctx)
		close(down)
	}()
	eventually(t, "idle sessions end", func() bool { return runs.sessions() == 1 })
	close(runs.gate)
	<-down
	if err := <-got; err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Error("it took the whole time")
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

// TestNothingInsideOfPackets: a member that stops while the other one is lost in the middle of a row puts nothing
// there: the client would take it for the rest of the row.
func TestNothingInsideOfPackets(t *testing.T) {
	packet := func(seq uint8, payload string, n int) []byte {
		return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}, payload...)
	}
	frame := func(seq uint8, payload string, n, raw int) []byte {
		return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq, byte(raw), byte(raw >> 8), byte(raw >> 16)}, payload...)
	}
	query := packet(0, "\x03query", 6)
	full := strings.Repeat("x", maxChunk)
	for name, tc := range map[string]struct {
		caps           capability
		client, server []byte
		told           bool
	}{
		"idle":                   {0, query, packet(1, "\x00\x00\x00\x02\x00\x00\x00", 7), true},
		"before the answer":      {0, query, nil, true},
		"between rows":           {0, query, packet(1, "\x03row", 4), true},
		"inside of a header":     {0, query, []byte{4, 0}, false},
		"inside of a row":        {0, query, packet(1, "\x03r", 4), false},
		"inside of a long row":   {0, query, packet(1, full, maxChunk), false},
		"the client's half":      {0, packet(0, "\x03que", 6), nil, false},
		"a frame":                {capCompress, nil, frame(1, "xxxx", 4, 100), true},
		"a frame as it is":       {capCompress, nil, frame(1, "xxxx", 4, 0), true},
		"inside of a frame":      {capCompress, nil, frame(1, "xx", 4, 100), false},
		"a full frame":           {capCompress, nil, frame(1, "xxxx", 4, maxFrame), false},
		"a full frame, as it is": {capCompress, nil, frame(1, full, maxFrame, 0), false},
	} {
		near, far := net.Pipe()
		c := newConn(&Server{opt: Options{MaxConnections: func() int { return 1 }}}, near, Port{})
		c.caps, c.greeted = rawCaps|tc.caps, true
		c.ending.Store(errMoved("Server shutdown in progress"))
		tr := tracker{framed: tc.caps != 0}
		if len(tc.client) > 0 {
			tr.fromClient(tc.client)
		}
		if len(tc.server) > 0 {
			tr.fromServer(tc.server)
		}
		said := make(chan []byte)
		go func() {
			b, _ := io.ReadAll(far)
			said <- b
		}()
		c.lostUpstream(&tr)
		_ = near.Close()
		if got := <-said; len(got) > 0 != tc.told {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestShutdownInterrupts: a statement that does not look at its client is cut as well when the time is over.
func TestShutdownInterrupts(t *testing.T) {
	r := serve(t, nil)
	db := r.db(t, nil)
	go func() { _, _ = db.Exec("sleep") }()
	eventually(t, "the statement runs", func() bool { return r.waiting.Load() == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	down := make(chan struct{})
	go func() {
		r.s.Shutdown(ctx)
		close(down)
	}()
	select {
	case <-down:
	case <-time.After(patience / 12):
		t.Error("it waits for a statement that nobody interrupts")
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.open {
			s.Interrupt()
		}
	}
}

// TestRelayToWhoDoesNotRead: a client that takes nothing is not kept for ever, nor any longer when its session's
// member leads no more.
func TestRelayToWhoDoesNotRead(t *testing.T) {
	for name, end := range map[string]func(*Server, *conn){
		"for long": func(s *Server, c *conn) { c.sweep(s.clock.Load() + int64(relayStall/time.Second) + 2) },
		"dropped":  func(s *Server, _ *conn) { s.DropRelays(0) },
	} {
		t.Run(name, func(t *testing.T) {
			_, follower := relays(t, nil)
			c := dialRaw(t, follower.addr)
			c.login(0)
			c.command(append([]byte{byte(comQuery)}, "wide 100000"...)...)
			relayed := func() *conn {
				for _, c := range follower.s.all() {
					return c
				}
				return nil
			}()
			last := int64(-1)
			eventually(t, "nothing is taken any more", func() bool {
				sent := relayed.traffic.sent.Load()
				stands := sent == last && relayed.writeSince.Load() != 0
				last = sent
				time.Sleep(100 * time.Millisecond)
				return stands
			})
			end(follower.s, relayed)
			for until := time.Now().Add(patience / 12); follower.s.Connections() != 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatal("it is kept")
				}
			}
		})
	}
}
