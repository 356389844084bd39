package mysqlwire

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

func one(t *testing.T, q interface {
	QueryRow(string, ...any) *sql.Row
}, text string, args ...any) string {
	t.Helper()
	var s string
	if err := q.QueryRow(text, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestAuthentication(t *testing.T) {
	r := serve(t, nil)
	for _, tc := range []struct {
		user, password, tls string
		want                uint16
	}{
		{"app", "secret", "false", 0},        // RSA
		{"app", "secret", "false", 0},        // fast path
		{"root", "secret", "skip-verify", 0}, // full, over TLS
		{"root", "secret", "skip-verify", 0},
		{"app", "wrong", "false", 1045},
		{"app", "", "false", 1045},
		{"native", "secret", "false", 0},
		{"native", "wrong", "false", 1045},
		{"empty", "", "false", 0},
		{"empty", "x", "false", 1045},
		{"nobody", "secret", "false", 1045},
		{"nobody", "", "false", 1045},
		{"locked", "", "false", 3118},
		{"tls", "secret", "false", 1045},
		{"tls", "secret", "skip-verify", 0},
		{"odd", "secret", "false", 1524},
	} {
		db := r.db(t, func(c *mysql.Config) {
			c.User, c.Passwd, c.TLSConfig, c.AllowNativePasswords = tc.user, tc.password, tc.tls, true
		})
		if err := db.Ping(); number(err) != tc.want || tc.want == 0 && err != nil {
			if tc.want == 1524 && err != nil {
				continue // the driver gives up first
			}
			t.Errorf("%+v: %v", tc, err)
		}
		_ = db.Close()
	}
	db := r.db(t, func(c *mysql.Config) { c.DBName = "missing" })
	if err := db.Ping(); number(err) != 1049 {
		t.Error(err)
	}
}

func TestQueries(t *testing.T) {
	for _, mode := range []string{"plain", "tls", "compressed", "tls+compressed"} {
		t.Run(mode, func(t *testing.T) {
			r := serve(t, nil)
			db := r.db(t, func(c *mysql.Config) {
				if strings.Contains(mode, "tls") {
					c.TLSConfig = "skip-verify"
				}
				if strings.Contains(mode, "compressed") {
					if err := c.Apply(mysql.EnableCompression(true)); err != nil {
						t.Fatal(err)
					}
				}
			})
			if got := one(t, db, "echo hello"); got != "hello" {
				t.Error(got)
			}
			if got := one(t, db, "who"); !strings.HasPrefix(got, "app@localhost as app@% in shop tls="+
				fmt.Sprint(strings.Contains(mode, "tls"))) {
				t.Error(got)
			}
			lengths := []int{0, 1, 250, 251, 65535, 65536, 1<<24 - 1, 1 << 24}
			if mode == "plain" { // the others take their time
				lengths = append(lengths, 1<<24-10, 20<<20)
			}
			for _, n := range lengths {
				if got := one(t, db, fmt.Sprint("long ", n)); len(got) != n || strings.Trim(got, "x") != "" {
					t.Errorf("%d: %d", n, len(got))
				}
			}
			rows, err := db.Query("rows 100000")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for ; rows.Next(); n++ {
				var v int
				if err := rows.Scan(&v); err != nil || v != n {
					t.Fatal(v, n, err)
				}
			}
			if n != 100000 || rows.Err() != nil {
				t.Error(n, rows.Err())
			}
			if got := one(t, db, "length "+strings.Repeat("y", 17<<20)); got != fmt.Sprint(17<<20+7) {
				t.Error(got)
			}
			res, err := db.Exec("insert")
			if err != nil {
				t.Fatal(err)
			}
			id, _ := res.LastInsertId()
			affected, _ := res.RowsAffected()
			if id != 77 || affected != 3 {
				t.Error(id, affected)
			}
			for text, want := range map[string]uint16{"fail": 1146, "broken": 1105} {
				if _, err := db.Exec(text); number(err) != want {
					t.Errorf("%s: %v", text, err)
				}
			}
			rows, err = db.Query("midway")
			if err == nil {
				for rows.Next() {
				}
				err = rows.Err()
			}
			if number(err) != 1317 {
				t.Error(err)
			}
			if err := db.Ping(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMultiStatements(t *testing.T) {
	r := serve(t, nil)
	db := r.db(t, nil)
	rows, err := db.Query("echo a; rows 3; echo b")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		if !rows.NextResultSet() {
			break
		}
		got = append(got, "|")
	}
	if s := strings.Join(got, ""); s != "a|012|b" || rows.Err() != nil {
		t.Error(s, rows.Err())
	}
	if _, err := db.Exec("insert; fail"); number(err) != 1146 {
		t.Error(err)
	}
}

func TestTypes(t *testing.T) {
	r := serve(t, nil)
	db := r.db(t, func(c *mysql.Config) { c.ParseTime = false })
	read := func(rows *sql.Rows, err error) [][]any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		cols, _ := rows.Columns()
		var all [][]any
		for rows.Next() {
			row := make([]any, len(cols))
			to := make([]any, len(cols))
			for i := range row {
				to[i] = &row[i]
			}
			if err := rows.Scan(to...); err != nil {
				t.Fatal(err)
			}
			all = append(all, row)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		return all
	}
	show := func(row []any) string {
		var b strings.Builder
		for _, v := range row {
			if s, ok := v.([]byte); ok {
				fmt.Fprintf(&b, "%q ", s)
			} else {
				fmt.Fprintf(&b, "%v ", v)
			}
		}
		return b.String()
	}
	want := `-128 255 -32768 -8388608 %s -9223372036854775808 %s 1.5 -2.25e+100 "2024-02-29" ` +
		`"2024-02-29 01:02:03.000045" "2023-11-14 22:13:20" "-838:59:58.500" 1999 "\n\xbc" ` +
		fmt.Sprintf("%q", strings.Repeat("ä", 200)) + ` "\x00\xff" "b" `
	text := read(db.Query("all"))
	if got := show(text[0]); got != fmt.Sprintf(want, "7", "18446744073709551615") {
		t.Error(got)
	}
	st, err := db.Prepare("all")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	bin := read(st.Query())
	if got := show(bin[0]); got != fmt.Sprintf(want, "7", `"18446744073709551615"`) {
		t.Error(got)
	}
	for _, row := range [][]any{text[1], bin[1]} {
		for i, v := range row {
			if v != nil {
				t.Error(i, v)
			}
		}
	}
	moment := time.Date(2024, 2, 29, 13, 14, 15, 16000, time.UTC)
	args := []any{int64(-5), "text", []byte("bytes"), 1.25, nil, moment, true, uint64(1<<64 - 1), strings.Repeat("z", 1<<20)}
	got := read(db.Query("args ? ? ? ? ? ? ? ? ?", args...))[0]
	if s := show(got[:8]); s != `-5 "text" "bytes" 1.25 <nil> "2024-02-29 13:14:15.000016" 1 "18446744073709551615" ` {
		t.Error(s)
	}
	if !bytes.Equal(got[8].([]byte), []byte(args[8].(string))) {
		t.Error("the long argument")
	}
	// Long data: the driver sends what does not fit the packet it knows of in pieces.
	small := r.db(t, func(c *mysql.Config) { c.MaxAllowedPacket = 64 << 10 })
	if got := one(t, small, "args ?", strings.Repeat("q", 300<<10)); len(got) != 300<<10 {
		t.Error(len(got))
	}
}

func TestLocalFile(t *testing.T) {
	r := serve(t, nil)
	db := r.db(t, func(c *mysql.Config) { c.AllowAllFiles = true })
	mysql.RegisterReaderHandler("data", func() io.Reader { return strings.NewReader(strings.Repeat("1,2\n", 100_000)) })
	res, err := db.Exec("load Reader::data")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := res.RowsAffected(); n != 400_000 {
		t.Error(n)
	}
	if _, err := db.Exec("load /no/such/file"); err == nil {
		t.Error("a file that is not there was loaded")
	}
	if err := db.Ping(); err != nil {
		t.Error(err)
	}
}

func TestKillAndIdle(t *testing.T) {
	r := serve(t, nil)
	db := r.db(t, nil)
	ctx := context.Background()
	victim, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	id := r.next.Load()
	failed := make(chan error, 1)
	go func() {
		_, err := victim.ExecContext(ctx, "sleep")
		failed <- err
	}()
	eventually(t, "the statement runs", func() bool { return r.waiting.Load() == 1 })
	if _, err := db.Exec(fmt.Sprint("kill ", id)); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; number(err) != 1317 && !errors.Is(err, mysql.ErrInvalidConn) && !errors.Is(err, driver.ErrBadConn) {
		t.Error(err)
	}
	if err := victim.PingContext(ctx); err == nil {
		t.Error("the killed connection lives")
	}
	_ = db.Close()
	r.idle.Store(int64(time.Second))
	db = r.db(t, nil)
	idle, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	eventually(t, "idle connections end", func() bool { return r.sessions() == 0 })
	r.idle.Store(0)
	if err := db.Ping(); err != nil {
		t.Error("a new connection after the idle ones ended:", err)
	}
}

// lateKill kills the session in between the arrival of a command and its reading.
type lateKill struct {
	net.Conn
	kill func()
}

func (c lateKill) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 4 && command(b[4]) == comPing {
		c.kill()
	}
	return n, err
}

type lateKills struct {
	net.Listener
	kill func()
}

func (l *lateKills) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return lateKill{nc, l.kill}, nil
}

// TestKillBeforeCommand: a command that has arrived, and not been read, when the session is
// killed is not run.
func TestKillBeforeCommand(t *testing.T) {
	r := serve(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kill := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range r.open {
			s.info.Disconnect()
		}
	}
	go func() { _ = r.s.Serve(&lateKills{l, kill}, Port{}) }()
	c := dialRaw(t, l.Addr().String())
	c.login(0)
	c.command(byte(comPing))
	c.wantError(1317)
	if !c.ended() {
		t.Error("the killed connection goes on")
	}
}

func TestMaxConnections(t *testing.T) {
	r := serve(t, func(o *Options, f *fake) { o.MaxConnections = func() int { return 2 } })
	ctx := context.Background()
	db := r.db(t, nil)
	for range 2 {
		c, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := db.PingContext(ctx); number(err) != 1040 {
		t.Error(err)
	}
	root := r.db(t, func(c *mysql.Config) { c.User = "root" })
	c, err := root.Conn(ctx)
	if err != nil {
		t.Fatal("the administrator's place:", err)
	}
	defer c.Close()
	if err := root.PingContext(ctx); number(err) != 1040 {
		t.Error(err)
	}
}

func TestShutdownLetsStatementsEnd(t *testing.T) {
	r := serve(t, func(_ *Options, f *fake) { f.gate = make(chan struct{}) })
	letsStatementsEnd(t, r, r, nil)
}

// TestForward relays sessions from one server to another.
func TestForward(t *testing.T) {
	tickets := map[string]*Handover{}
	leader := serve(t, func(o *Options, f *fake) {
		o.Redeem = func(ticket []byte) *Handover {
			h := tickets[string(ticket)]
			delete(tickets, string(ticket))
			if h != nil {
				h.From = 8
			}
			return h
		}
	})
	follower := serve(t, func(o *Options, f *fake) {
		o.Forward = func(ctx context.Context, h *Handover) (*Target, error) {
			tickets["t1"] = h
			return &Target{Member: 7, Addr: leader.addr, Ticket: []byte("t1")}, nil
		}
	})
	for _, compressed := range []bool{false, true} {
		db := follower.db(t, func(c *mysql.Config) {
			_ = c.Apply(mysql.EnableCompression(compressed))
			c.ConnectionAttributes = "program_name:x"
		})
		if got := one(t, db, "who"); got != "app@localhost as app@% in shop tls=false ro=false attr=x" {
			t.Error(got)
		}
		if got := one(t, db, "long 1000000"); len(got) != 1000000 {
			t.Error(len(got))
		}
		// Those of clients that have gone may still be ending.
		eventually(t, "the session is at the leader", func() bool { return leader.sessions() == 1 && follower.sessions() == 0 })
		follower.s.DropRelays(7) // none: it leads
		for _, lose := range []func(){
			func() {
				for _, c := range leader.s.all() {
					c.abort()
				}
			},
			func() { follower.s.DropRelays(8) },
			func() { follower.s.DropRelays(0) },
			func() { leader.s.DropFrom(8) },
		} {
			failed := make(chan error, 1)
			go func() {
				_, err := db.Exec("sleep")
				failed <- err
			}()
			eventually(t, "the statement runs", func() bool { return leader.waiting.Load() == 1 })
			lose()
			err := <-failed
			if number(err) != 1053 {
				t.Errorf("compressed=%v: %v", compressed, err)
			}
			leader.mu.Lock()
			for _, s := range leader.open {
				s.Interrupt()
			}
			leader.mu.Unlock()
			eventually(t, "the statement has ended", func() bool { return leader.waiting.Load() == 0 })
			eventually(t, "a new session", func() bool { // the driver may not see the end of the old one at once
				var got string
				return db.QueryRow("echo again").Scan(&got) == nil && got == "again"
			})
		}
		_ = db.Close()
	}
	ro := follower.db(t, func(c *mysql.Config) { c.Addr = follower.ro })
	if got := one(t, ro, "who"); !strings.Contains(got, "ro=true") {
		t.Error(got)
	}
	// A ticket that nobody has given.
	bad := follower.db(t, nil)
	follower.s.opt.Forward = func(ctx context.Context, h *Handover) (*Target, error) {
		return &Target{Addr: leader.addr, Ticket: []byte("forged")}, nil
	}
	if err := bad.Ping(); number(err) != 1045 {
		t.Error(err)
	}
	follower.s.opt.Forward = func(ctx context.Context, h *Handover) (*Target, error) {
		return &Target{Addr: "127.0.0.1:1", Ticket: []byte("x")}, nil
	}
	if err := bad.Ping(); number(err) != 1053 {
		t.Error(err)
	}
}

// A member may stop right after it has let the session in: the client is told to connect
// again, not that it has done something wrong.
func TestForwardToStoppingMember(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		g := greeting{version: "8.0", capabilities: capProtocol41 | capSecureConnection | capPluginAuth, plugin: pluginMember}
		packet := func(b []byte, seq uint8, p []byte) []byte {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(p))|uint32(seq)<<24)
			return append(b, p...)
		}
		_, _ = nc.Write(packet(nil, 0, g.append(nil)))
		_, _ = nc.Read(make([]byte, 4096))
		answer := packet(nil, 2, []byte{headerOK, 0, 0, 2, 0, 0, 0})
		_, _ = nc.Write(packet(answer, 0, []byte("\xff\x1d\x04#08S01Server shutdown in progress")))
	}()
	follower := serve(t, func(o *Options, f *fake) {
		o.Forward = func(ctx context.Context, h *Handover) (*Target, error) {
			return &Target{Member: 7, Addr: l.Addr().String(), Ticket: []byte("t")}, nil
		}
	})
	if err := follower.db(t, nil).Ping(); number(err) != 1053 {
		t.Error(err)
	}
}
