package mysqlwire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/server/auth"
)

// rawClient speaks packets.
type rawClient struct {
	t   *testing.T
	nc  net.Conn
	r   packetReader
	seq uint8
	g   greeting
}

func dialRaw(t *testing.T, addr string) *rawClient {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	c := &rawClient{t: t, nc: nc}
	c.r = packetReader{src: nc, seq: &c.seq, max: 1 << 30}
	p := c.read()
	if len(p) > 0 && p[0] == headerErr {
		return c
	}
	if c.g, err = parseGreeting(p); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *rawClient) read() []byte {
	c.t.Helper()
	p, err := c.r.next()
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *rawClient) send(p []byte) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(p))|uint32(c.seq)<<24)
	c.seq++
	_, _ = c.nc.Write(append(b, p...))
}

func (c *rawClient) command(p ...byte) {
	c.seq = 0
	c.send(p)
}

const rawCaps = capProtocol41 | capSecureConnection | capPluginAuth | capMultiStatements | capMultiResults

// login logs in as the user without a password.
func (c *rawClient) login(caps capability) {
	c.t.Helper()
	c.send(appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData | caps, user: "empty", plugin: PluginSHA2}))
	if p := c.read(); p[0] != headerOK {
		c.t.Fatalf("login: %q", p)
	}
}

// ended reports that the server has closed the connection.
func (c *rawClient) ended() bool {
	_, err := io.Copy(io.Discard, c.nc)
	var ne net.Error
	return !(errors.As(err, &ne) && ne.Timeout())
}

func (c *rawClient) wantError(n sqlerr.Code) {
	c.t.Helper()
	p := c.read()
	if len(p) < 9 || p[0] != headerErr || parseError(p).Number != n || p[3] != '#' {
		c.t.Errorf("%q instead of error %d", p, n)
	}
}

func TestBadHandshakes(t *testing.T) {
	r := serve(t, nil)
	good := appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData | capConnectAttrs,
		user: "empty", plugin: PluginSHA2, attributes: map[string]string{"a": "b"}})
	for name, tc := range map[string]struct {
		packet []byte
		want   sqlerr.Code
	}{
		"empty":         {nil, 1043},
		"short":         {good[:20], 1043},
		"old protocol":  {make([]byte, 40), 1043},
		"no end":        {good[:34], 1043},
		"attributes":    {good[:len(good)-1], 1043},
		"long name":     {appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: strings.Repeat("u", 300)}), 1043},
		"unknown":       {appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "x", plugin: PluginSHA2}), 1045},
		"lenenc beyond": {append(append(good[:32:32], "empty\x00"...), 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), 1043},
	} {
		c := dialRaw(t, r.addr)
		c.send(tc.packet)
		p := c.read()
		if p[0] != headerErr || parseError(p).Number != tc.want {
			t.Errorf("%s: %q", name, p)
		}
		if !c.ended() {
			t.Errorf("%s: the connection stays", name)
		}
	}
	c := dialRaw(t, r.addr)
	c.seq = 5
	c.send(good)
	c.seq = 2
	if p, err := c.r.next(); err == nil && parseError(p).Number != 1156 {
		t.Errorf("%q", p)
	}
	c = dialRaw(t, r.addr)
	_, _ = c.nc.Write([]byte{0xff, 0xff, 0xff, 1})
	c.seq = 2
	if p, err := c.r.next(); err == nil && parseError(p).Number != 1153 {
		t.Errorf("%q", p)
	}
	hasty := serve(t, func(o *Options, f *fake) { o.ConnectTimeout = 500 * time.Millisecond })
	silent, err := net.Dial("tcp", hasty.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = silent.SetDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, silent); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("who says nothing stays")
	}
	for i := range 3 { // half a handshake, and gone
		c := dialRaw(t, r.addr)
		_, _ = c.nc.Write(good[:i*4])
		_ = c.nc.Close()
	}
}

func TestBadCommands(t *testing.T) {
	r := serve(t, func(o *Options, f *fake) { f.big = 1 << 20 })
	c := dialRaw(t, r.addr)
	c.login(0)
	for _, tc := range []struct {
		p    string
		want sqlerr.Code
	}{
		{"\x63", 1047}, {"\x00", 1047}, {"\x12", 1047}, {"\x0c\x01", 1835}, {"\x17\x01", 1835},
		{"\x17\x09\x00\x00\x00\x00\x01\x00\x00\x00", 1243}, {"\x1c\x09\x00\x00\x00\x01\x00\x00\x00", 1243},
		{"\x1a\x09\x00\x00\x00", 1243}, {"\x1b\x07\x00", 1047}, {"\x02missing", 1049}, {"\x03fail", 1146}, {"\x16fail", 1064},
	} {
		c.command([]byte(tc.p)...)
		c.wantError(tc.want)
	}
	// Statements: no types, too few bytes, a bitmap that is too short.
	c.command([]byte("\x16args ? ?")...)
	p := c.read()
	if p[0] != headerOK || p[7] != 2 {
		t.Fatalf("%q", p)
	}
	for range 2 + 1 + 1 + 1 { // parameters, EOF, column, EOF
		c.read()
	}
	execute := "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00"
	for _, tail := range []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\x01\x08\x00", "\x00\x01\x08\x00\x08\x00\x01",
		"\x00\x01\xfd\x00\xfd\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff", "\x00\x01\x0c\x00\x0c\x00\x03abc", "\x00\x02",
		"\x00\x01\x05\x00\x05\x00\x00\x00\x00\x00\x00\x00\xf0\x7f"} {
		c.command([]byte(execute + tail)...)
		c.wantError(1210)
	}
	c.command([]byte("\x17\x01\x00\x00\x00\x02\x01\x00\x00\x00")...)
	c.wantError(1235)
	c.command([]byte("\x18\x01\x00\x00\x00\x07\x00abc")...) // long data of a parameter that is none
	c.command([]byte(execute + "\x00\x01\x08\x00\x08\x00")...)
	c.wantError(1210)
	for range 5 { // too much long data: told by the execution, and gone, with all that came after
		c.command(append([]byte("\x18\x01\x00\x00\x00\x00\x00"), make([]byte, 500<<10)...)...)
	}
	c.command([]byte(execute + "\x00\x01\x08\x00\x08\x00")...)
	c.wantError(1153)
	short := func(want string) {
		t.Helper()
		c.command([]byte(execute + "\x00\x01\xfd\x00\xfd\x00\x01a\x01b")...)
		for range 1 + 2 + 1 { // count, columns, EOF
			c.read()
		}
		if p := c.read(); string(p) != want {
			t.Errorf("%.60q", p)
		}
		c.read()
	}
	short("\x00\x00\x01a\x01b")
	// Long data that an execution did not come to are not the next one's.
	c.command([]byte("\x18\x01\x00\x00\x00\x00\x00long")...)
	c.command([]byte(execute)...)
	c.wantError(1210)
	short("\x00\x00\x01a\x01b")
	// Nor are those of statements and parameters that are none.
	for _, p := range []string{"\x18\x09\x00\x00\x00\x00\x00a", "\x18\x01\x00", "\x18", "\x19\x09\x00\x00\x00", "\x19"} {
		c.command([]byte(p)...)
	}
	short("\x00\x00\x01a\x01b")
	c.command(byte(comPing))
	if p := c.read(); p[0] != headerOK {
		t.Fatalf("%q", p)
	}
	// What breaks the stream ends the connection.
	c.seq = 3
	c.send([]byte{byte(comPing)})
	c.seq = 4
	c.wantError(1156)
	if !c.ended() {
		t.Error("the connection stays")
	}
	c = dialRaw(t, r.addr)
	c.login(0)
	c.seq = 1
	_, _ = c.nc.Write([]byte{0x00, 0x00, 0x20, 0}) // 2 MiB promised, 1 MiB allowed
	c.wantError(1153)
	c = dialRaw(t, r.addr)
	c.login(0)
	c.command()
	c.wantError(1835)
	c = dialRaw(t, r.addr)
	c.login(0)
	_, _ = c.nc.Write([]byte{0x10, 0, 0, 0, 3, 'x'}) // the end comes before the packet's
	_ = c.nc.Close()
}

func TestCommands(t *testing.T) {
	r := serve(t, nil)
	for _, caps := range []capability{0, capDeprecateEOF, capSessionTrack | capDeprecateEOF | capQueryAttributes} {
		c := dialRaw(t, r.addr)
		c.login(caps)
		ok := func(what string, p ...byte) {
			t.Helper()
			c.command(p...)
			if p := c.read(); p[0] != headerOK && p[0] != headerEOF {
				t.Errorf("%s: %q", what, p)
			}
		}
		ok("ping", byte(comPing))
		ok("reset", byte(comResetConnection))
		ok("option", byte(comSetOption), 0, 0)
		ok("debug", byte(comDebug))
		ok("init", []byte("\x02db")...)
		ok("kill", 0x0c, 1, 0, 0, 0)
		c.command(byte(comStatistics))
		if p := c.read(); string(p) != "Uptime: 1" {
			t.Errorf("%q", p)
		}
		text := "\x03"
		if caps.has(capQueryAttributes) {
			text += "\x01\x01\x00\x01\xfd\x00\x01n\x03val" // an attribute n = "val"
		}
		ok("insert", []byte(text+"insert")...)
		if caps.has(capSessionTrack) {
			c.command([]byte(text + "insert")...)
			want := "\x00\x03\x4d\x02\x40\x02\x00\x0aRecords: 3" + "\x1e" + "\x03\x08\x00\x06uuid:7" +
				"\x00\x0e\x0aautocommit\x02ON" + "\x01\x02\x01x"
			if p := c.read(); string(p) != want {
				t.Errorf("%q\n%q", p, want)
			}
		}
		c.command([]byte("\x04tab\x00%")...)
		p := c.read()
		for n := 0; p[0] != headerEOF && n < 5; n++ {
			p = c.read()
		}
		// COM_CHANGE_USER
		c.becomes("empty")
		if p := c.read(); p[0] != headerOK {
			t.Errorf("change user: %q", p)
		}
		c.becomes("nobody")
		c.wantError(1045)
		if !c.ended() {
			t.Error("a wrong user stays")
		}
	}
}

func TestCursor(t *testing.T) {
	r := serve(t, nil)
	c := dialRaw(t, r.addr)
	c.login(capDeprecateEOF)
	prepare := func(text string) {
		c.command(append([]byte{byte(comStmtPrepare)}, text...)...)
		c.read()
		c.read() // its column
	}
	prepare("rows 10")
	c.command([]byte("\x17\x01\x00\x00\x00\x01\x01\x00\x00\x00")...)
	if p := c.read(); p[0] != 1 {
		t.Fatalf("%q", p)
	}
	c.read()
	if p := c.read(); p[0] != headerEOF || p[3]&0x40 == 0 {
		t.Fatalf("%q", p)
	}
	var counts []int
	for {
		c.command([]byte("\x1c\x01\x00\x00\x00\x04\x00\x00\x00")...)
		n := 0
		p := c.read()
		for p[0] == headerOK {
			p = c.read()
			n++
		}
		counts = append(counts, n)
		if p[3]&0x80 != 0 {
			break
		}
	}
	if len(counts) != 3 || counts[0] != 4 || counts[2] != 2 {
		t.Error(counts)
	}
	c.command([]byte("\x1c\x01\x00\x00\x00\x04\x00\x00\x00")...)
	c.wantError(1421)
	// What does not fit a cursor is sent at once.
	prepare("wide 20000")
	c.command([]byte("\x17\x02\x00\x00\x00\x01\x01\x00\x00\x00")...)
	c.read()
	c.read()
	n := 0
	p := c.read()
	for p[0] == headerOK {
		n++
		p = c.read()
	}
	if n != 20_000 || p[3]&0x40 != 0 {
		t.Error(n, p)
	}
}

// TestPointQueryAllocates: a point query costs the door nothing that has to be collected.
func TestPointQueryAllocates(t *testing.T) {
	f := &fake{open: make(map[uint64]*fakeSession), big: 64 << 20}
	a, err := auth.New(auth.Options{Source: testAccounts})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Backend: f, Auth: a, Version: "8"})
	defer s.Shutdown(context.Background())
	stream := &loop{packet: []byte("\x06\x00\x00\x00\x03point")}
	c := newConn(s, nil, Port{})
	c.raw, c.r.src, c.r.max = stream, stream, 1<<20
	d := direct{&fakeSession{f: f, batch: types.NewBatch([]*types.Type{intColumn[0].Type})}}
	d.batch.AppendRow([]types.Value{types.NewInt(42)})
	c.sess = d
	step := func() {
		c.seq = 0
		p, err := c.r.next()
		if err == nil {
			err = c.dispatch(command(p[0]), p[1:])
		}
		if err == nil {
			err = c.w.flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(1000, step); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if want := 1002; stream.writes != want {
		t.Errorf("%d writes for %d results", stream.writes, want)
	}
}

// direct is a session without the words' parsing.
type direct struct{ *fakeSession }

func (d direct) Query(_ context.Context, _ string, w session.ResultWriter) error {
	if err := w.Columns(intColumn); err != nil {
		return err
	}
	if err := w.Rows(d.batch); err != nil {
		return err
	}
	return w.Done(session.Outcome{})
}

// loop sends the same packet for ever.
type loop struct {
	packet []byte
	writes int
}

func (l *loop) Read(p []byte) (int, error)  { return copy(p, l.packet), nil }
func (l *loop) Write(p []byte) (int, error) { l.writes++; return len(p), nil }

func FuzzHandshake(f *testing.F) {
	f.Add(appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData | capConnectAttrs | capZstd | capConnectWithDB,
		user: "u", auth: []byte("12345"), schema: "db", plugin: PluginSHA2, attributes: map[string]string{"a": "b"}}))
	f.Add([]byte("\x11u\x00\x00db\x00\xff\x00p\x00\x03\x01a\x00"))
	f.Add((&greeting{version: "8", plugin: "p"}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseResponse(b); err == nil {
			if len(r.user) > maxName || len(r.schema) > maxName {
				t.Error("too long a name")
			}
			r.capabilities |= capLenencAuthData | capPluginAuth
			again, err := parseResponse(appendResponse(nil, r))
			if err != nil || again.user != r.user || !bytes.Equal(again.auth, r.auth) && r.auth != nil {
				t.Errorf("%+v, %+v, %v", r, again, err)
			}
		}
		_, _ = parseChangeUser(b, ^capability(0))
		_, _ = parseChangeUser(b, 0)
		_, _ = parseGreeting(b)
		_, _, _ = parseAuthSwitch(b)
		_ = parseError(b)
		var s scanner
		s.scan(b, headerSize)
	})
}

func FuzzPackets(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x0e\x03\x00\x00\x01abc"), uint8(0))
	f.Add([]byte("\x05\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0e"), uint8(1))
	f.Add([]byte("\x05\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0e"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, algo uint8) {
		var seq uint8
		r := packetReader{src: iotestOneByte{bytes.NewReader(b)}, seq: &seq, max: 1 << 16}
		if algo%3 != 0 {
			r.frames = &frames{rw: struct {
				io.Reader
				io.Writer
			}{bytes.NewReader(b), io.Discard}, algorithm: algorithm(algo % 3)}
			r.src = r.frames
		}
		for range 100 {
			seq = 0
			p, err := r.next()
			if err != nil {
				return
			}
			if int64(len(p)) > r.max {
				t.Errorf("%d bytes", len(p))
			}
		}
	})
}

// iotestOneByte gives few bytes at a time.
type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 3)]) }

// FuzzCommands runs any command of a session.
func FuzzCommands(f *testing.F) {
	for _, seed := range []string{"\x03point", "\x03all", "\x16args ? ?", "\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x08\x00\xfd\x00\x01\x02\x03\x04\x05\x06\x07\x08\x01a",
		"\x18\x01\x00\x00\x00\x00\x00abc", "\x19\x01\x00\x00\x00", "\x1a\x01\x00\x00\x00", "\x1c\x01\x00\x00\x00\x01\x00\x00\x00", "\x1b\x00\x00", "\x1f", "\x04t\x00",
		"\x17\x01\x00\x00\x00\x01\x01\x00\x00\x00\x00\x01\x0b\x00\x0c\x00\x08\x01\x00\x00\x00\x00\x01\x02\x03\x07\xe8\x07\x02\x1d\x01\x02\x03"} {
		f.Add([]byte(seed), uint32(0))
		f.Add([]byte(seed), uint32(capDeprecateEOF|capSessionTrack|capQueryAttributes))
	}
	fk := &fake{open: make(map[uint64]*fakeSession), big: 64 << 20}
	a, err := auth.New(auth.Options{Source: testAccounts})
	if err != nil {
		f.Fatal(err)
	}
	s := New(Options{Backend: fk, Auth: a, Version: "8"})
	s.closePrepared = func(*session.Prepared) {}
	f.Fuzz(func(t *testing.T, b []byte, caps uint32) {
		if len(b) == 0 || command(b[0]) == comChangeUser || bytes.Contains(b, []byte("kill")) ||
			bytes.Contains(b, []byte("sleep")) || bytes.Contains(b, []byte("load")) || bytes.Contains(b, []byte("long")) ||
			bytes.Contains(b, []byte("rows")) || bytes.Contains(b, []byte("wide")) || bytes.Contains(b, []byte("gate")) || command(b[0]) == comProcessKill {
			return
		}
		sink := &loop{packet: []byte{0, 0, 0, 1}}
		c := newConn(s, nil, Port{})
		c.raw, c.r.src, c.r.max = sink, sink, 1<<16
		c.caps, c.greeted = capability(caps)|rawCaps, true
		c.sess = &fakeSession{f: fk}
		for _, p := range [][]byte{[]byte("\x16args ? ?"), b, b} {
			if err := c.dispatch(command(p[0]), p[1:]); err != nil {
				var told *sqlerr.Error
				if !errors.As(err, &told) {
					t.Fatal(err)
				}
				break
			}
			_ = c.w.flush()
		}
		c.closeStatements()
	})
}

// TestExecuteWithAttributes: with query attributes the number of values is told, whether
// the flag says so or not.
func TestExecuteWithAttributes(t *testing.T) {
	r := serve(t, nil)
	c := dialRaw(t, r.addr)
	c.login(capDeprecateEOF | capQueryAttributes)
	c.command([]byte("\x16args ?")...)
	for range 3 {
		c.read()
	}
	for _, tc := range []string{
		"\x00\x01\x00\x00\x00" + "\x01\x00\x01\xfd\x00\x00" + "\x02hi",
		"\x08\x01\x00\x00\x00" + "\x02\x00\x01\xfd\x00\x00\xfd\x00\x01n" + "\x02hi\x01v",
	} {
		c.command([]byte("\x17\x01\x00\x00\x00" + tc)...)
		c.read()
		c.read()
		if p := c.read(); string(p) != "\x00\x00\x02hi" {
			t.Errorf("%q", p)
		}
		c.read()
	}
}
