package mysqlwire

import (
	"bytes"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/server/auth"
)

// conn is a client's connection. One task serves it; only finish, abort and sweep are
// called by others.
type conn struct {
	s       *Server
	port    Port
	id      uint64
	nc      net.Conn  // as accepted
	in      *turnConn // the same, for reading
	traffic *traffic
	// accepted is when.
	accepted time.Time
	// address is where the client comes from, as newcomers are counted.
	address string
	coming  *list.Element // of Server.newcomers, until it has come in
	raw     io.ReadWriter
	tls     bool // of the connection itself
	// channel is how the client's own connection is secured, host and hostAddress where that comes from: of a
	// session that another member has passed on they are what that one has seen.
	channel           auth.Channel
	host, hostAddress string

	seq    uint8
	r      packetReader
	w      packetWriter
	frames *frames // with compression

	nonce [nonceSize]byte
	// unknownNonce: another member has greeted the client, and not told with what nonce.
	unknownNonce bool

	caps    capability
	greeted bool  // the client has said what it can
	zstd    int   // level
	place   place // of Server.mu
	local   atomic.Bool
	relayed atomic.Pointer[upstream] // the session is elsewhere
	from    uint64                   // the member that relays it here, once it is local
	info    session.ConnectionInfo
	audited audited

	sess          Session
	ctx           context.Context
	cancel        context.CancelFunc
	res           results
	args          []session.Arg
	track         []byte
	stmts         map[uint32]*statement
	lastStatement uint32
	longBytes     int64  // of long data that waits for executions: together as long as a packet
	cursorBytes   int64  // of cursors that are open
	texts         []byte // where the texts of statements are cut from

	fatal  *sqlerr.Error                // to be told before the connection is closed
	ending atomic.Pointer[sqlerr.Error] // the same, by another task
	killed atomic.Bool

	wasLost bool // the client was gone when watchLost looked, whose this is

	// Seconds of the server's clock, plus one, for the sweep; 0: not so.
	idleSince  atomic.Int64
	writeSince atomic.Int64
	readSince  atomic.Int64 // of the rest of a packet, or of a file
	readMax    atomic.Int64
	idleMax    atomic.Int64
	writeMax   atomic.Int64
}

func newConn(s *Server, nc net.Conn, port Port) *conn {
	in := newTurnConn(nc)
	c := &conn{s: s, port: port, nc: nc, in: in, raw: in, traffic: s.traffic(0), accepted: time.Now(), address: addressOf(nc)}
	c.r = packetReader{src: in, seq: &c.seq, max: maxHandshake}
	c.r.waits = func(waits bool) {
		if c.readSince.Store(0); waits {
			c.readSince.Store(c.s.clock.Load() + 1)
		}
	}
	c.w = packetWriter{dst: timedWriter{c}, seq: &c.seq}
	c.res.c = c
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// addressOf is what newcomers of the other side are counted by.
func addressOf(nc net.Conn) string {
	if nc == nil {
		return ""
	}
	return auth.Network(nc.RemoteAddr())
}

// timedWriter lets the sweep see for how long a client has not taken what is sent.
type timedWriter struct{ c *conn }

func (t timedWriter) Write(p []byte) (int, error) {
	t.c.writeSince.Store(t.c.s.clock.Load() + 1)
	n, err := t.c.raw.Write(p)
	t.c.writeSince.Store(0)
	t.c.traffic.sent.Add(int64(n))
	return n, err
}

// finish ends the connection when its statement, if it runs one, is over, here or on the member that it is relayed
// to. err is told to the client.
func (c *conn) finish(err *sqlerr.Error) {
	c.ending.CompareAndSwap(nil, err)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
}

// disconnect is what KILL does: the session has been interrupted.
func (c *conn) disconnect() {
	c.killed.Store(true)
	last := 2 * time.Second // to take what is on its way, and to be told
	if since := c.writeSince.Load(); since != 0 && c.s.clock.Load()+1-since > 1 {
		last = 0 // the client does not read
	}
	_ = c.nc.SetWriteDeadline(time.Now().Add(last))
	c.finish(sqlerr.New(sqlerr.QueryInterrupted))
}

// abort ends the connection now.
func (c *conn) abort() {
	c.cancel()
	_ = c.nc.Close()
}

// cut is abort, and ends what the session runs.
func (c *conn) cut() {
	c.abort()
	if c.local.Load() {
		c.sess.Interrupt()
	}
}

func (c *conn) sweep(now int64) {
	if since := c.idleSince.Load(); since != 0 && c.idleMax.Load() > 0 && now-since+1 > c.idleMax.Load() {
		c.finish(sqlerr.New(sqlerr.ClientInteractionTimeout))
	}
	if since := c.readSince.Load(); since != 0 && c.readMax.Load() > 0 && now-since+1 > c.readMax.Load() {
		c.finish(sqlerr.Newf(sqlerr.NetReadInterrupted, "Got timeout reading communication packets. See "+
			"net_read_timeout."))
	}
	if since := c.writeSince.Load(); since != 0 && c.writeMax.Load() > 0 && now-since+1 > c.writeMax.Load() {
		c.abort()
	}
}

// clientProbes find out within a minute that a client is gone whose network is: what it has locked others wait for.
var clientProbes = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// run serves the connection from the greeting to its end.
func (c *conn) run() {
	defer c.s.leave(c)
	defer c.close()
	c.id = c.s.opt.Backend.NextID()
	c.traffic = c.s.traffic(c.id)
	c.in.received = &c.traffic.received
	if t, ok := c.nc.(*net.TCPConn); ok {
		_ = t.SetNoDelay(true)
		_ = t.SetKeepAliveConfig(clientProbes)
	}
	_ = c.nc.SetDeadline(time.Now().Add(c.s.opt.ConnectTimeout))
	up, err := c.enter()
	if err != nil {
		c.s.counts.abortedConnects.Add(1)
		c.keptOut(err)
		c.refuse(err)
		return
	}
	_ = c.nc.SetDeadline(time.Time{})
	defer c.wentOut()
	if up != nil {
		c.relay(up)
		return
	}
	c.serve()
}

// close ends everything that the connection has.
func (c *conn) close() {
	c.local.Store(false)
	c.cancel()
	if c.sess != nil {
		c.closeStatements()
		if err := c.sess.Close(); err != nil {
			c.s.opt.Log.Warn("closing a session", "id", c.id, "error", err)
		}
	}
	_ = c.nc.Close()
}

// refuse tells who is not let in why.
func (c *conn) refuse(err error) {
	var told *sqlerr.Error
	if !errors.As(err, &told) {
		c.s.opt.Log.Debug("a connection ended in its handshake", "peer", c.nc.RemoteAddr(), "error", err)
		return
	}
	c.sayLast(told)
}

// sayLast tells an error, after which the connection is closed.
func (c *conn) sayLast(err *sqlerr.Error) {
	_ = c.nc.SetDeadline(time.Now().Add(2 * time.Second))
	c.writeError(err)
	_ = c.w.flush()
	// A close with unread input would be a reset, which may overtake the error.
	if t, ok := c.nc.(*net.TCPConn); ok && c.r.buffered() == 0 {
		_ = t.CloseWrite()
		var sink [512]byte
		_ = c.nc.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		for range 64 {
			if _, err := c.nc.Read(sink[:]); err != nil {
				return
			}
		}
	}
}

// serve takes commands until the client or somebody else ends it.
func (c *conn) serve() {
	c.local.Store(true)
	if c.elsewhere() {
		c.finish(errMoved(movedText)) // it came between the loss of the lead and DropWriters
	}
	c.obeyLimits()
	for {
		c.seq = 0
		if c.frames != nil {
			c.frames.seq = 0
		}
		if c.sess.Gone() {
			c.part()
			return
		}
		if err := c.ending.Load(); err != nil {
			c.sayLast(err)
			return
		}
		c.idleSince.Store(c.s.clock.Load() + 1)
		p, err := c.r.next()
		c.idleSince.Store(0)
		if err == nil && len(p) == 0 {
			err = errMalformed
		}
		if err != nil {
			if told := refusedCommand(err); told != nil {
				c.writeError(told)
				if err = c.w.flush(); err == nil {
					continue
				}
			}
			c.end(err)
			return
		}
		if told := c.ending.Load(); told != nil { // the command came while the connection was being ended
			c.sayLast(told)
			return
		}
		if command(p[0]) == comQuit {
			return
		}
		if err = c.dispatch(command(p[0]), p[1:]); err == nil {
			err = c.w.flush()
		}
		if err != nil {
			c.end(err)
			return
		}
		c.in.turn.Pass()
	}
}

// refusedCommand is what to tell instead of the answer to a command that there was no memory for; nil: it was none, or
// has no answer.
func refusedCommand(err error) *sqlerr.Error {
	var refused *noRoom
	var told *sqlerr.Error
	if !errors.As(err, &refused) || refused.command == comStmtSendLongData || !errors.As(err, &told) {
		return nil
	}
	return told
}

// end is told why commands end.
func (c *conn) end(err error) {
	c.s.counts.abortedClients.Add(1)
	if told := c.ending.Load(); told != nil {
		c.sayLast(told)
		return
	}
	var fatal *sqlerr.Error
	if c.fatal != nil {
		fatal = c.fatal
	} else if !errors.As(err, &fatal) {
		return // the client is gone
	}
	c.sayLast(fatal)
}

// part ends the connection of a session that is of no more use after its last answer: of COMMIT RELEASE, of a transaction
// that cannot be rolled back. Why others end it is said, also if they come to this connection only now.
func (c *conn) part() {
	told := c.ending.Load()
	if told == nil && c.elsewhere() {
		told = errMoved(movedText)
	}
	if told != nil {
		c.sayLast(told)
	}
}

// elsewhere reports whether the session belongs on another member.
func (c *conn) elsewhere() bool {
	return !c.port.ReadOnly && c.s.opt.Serves != nil && !c.s.opt.Serves()
}

// obeyLimits takes over the session's limits.
func (c *conn) obeyLimits() {
	l := c.sess.Limits()
	if l.MaxPacket > 0 {
		c.r.max = l.MaxPacket
	}
	c.idleMax.Store(int64(l.Idle / time.Second))
	c.writeMax.Store(int64(l.NetWrite / time.Second))
	c.readMax.Store(int64(l.NetRead / time.Second))
}

// text is a string of the bytes, which stays: the session may keep parts of it. Strings
// are cut from larger pieces, so that a short statement costs no allocation of its own.
func (c *conn) text(b []byte) string {
	const piece, small = 8 << 10, 512
	if len(b) > small {
		return string(b)
	}
	if cap(c.texts)-len(c.texts) < len(b) {
		c.texts = make([]byte, 0, piece)
	}
	at := len(c.texts)
	c.texts = append(c.texts, b...)
	return unsafeString(c.texts[at:])
}

// enter is the way in: greeting, TLS, authentication and the session. up is the
// connection to the member that has the session instead.
func (c *conn) enter() (up *upstream, err error) {
	resp, err := c.greet()
	if err != nil {
		return nil, err
	}
	var h *Handover
	if resp.plugin == pluginMember {
		h, err = c.takeOver(resp)
	} else {
		h, err = c.identify(resp)
	}
	if err != nil {
		return nil, err
	}
	c.isKnown(h)
	place := c.s.admit(c, h.Admin)
	if place == newcomer {
		return nil, errTooMany
	}
	if c.s.opt.Forward != nil && !c.port.ReadOnly && resp.plugin != pluginMember {
		if up, err = c.forward(h); up != nil {
			c.cameIn()
		}
		if err != nil || up != nil {
			return up, err
		}
	}
	c.from = h.From
	c.info = h.connection(c)
	c.info.Admin = place == administrators
	if c.sess, err = c.s.opt.Backend.Open(c.info); err != nil {
		return nil, err
	}
	c.r.hold = c.sess.Hold
	if resp.plugin != pluginMember { // the member that has passed it on has told of it
		c.cameIn()
	}
	c.ok()
	if err := c.w.flush(); err != nil {
		return nil, err
	}
	c.compress()
	return nil, nil
}

// compress begins compression if it was agreed on.
func (c *conn) compress() {
	switch {
	case c.caps.has(capCompress):
		c.frames = &frames{rw: c.raw, algorithm: zlibCompression}
	case c.caps.has(capZstd):
		c.frames = &frames{rw: c.raw, algorithm: zstdCompression, level: c.zstd}
	default:
		return
	}
	c.frames.waits = c.r.waits
	if c.sess != nil { // else another member has the session
		c.frames.hold = c.sess.Hold
	}
	c.raw = c.frames
	c.r.src, c.r.frames = c.frames, c.frames
}

// greet sends the greeting, begins TLS if the client wants it, and returns what the
// client says of itself.
func (c *conn) greet() (*response, error) {
	c.nonce = newNonce()
	g := greeting{version: c.s.opt.Version, id: uint32(c.id), nonce: c.nonce,
		capabilities: offered, status: uint16(session.StatusAutocommit), plugin: PluginSHA2}
	var config *tls.Config
	if c.s.opt.TLS != nil {
		config = c.s.opt.TLS()
	}
	if config != nil {
		g.capabilities |= capSSL
	}
	c.w.begin()
	c.w.buf = g.append(c.w.buf)
	c.w.end()
	if err := c.w.flush(); err != nil {
		return nil, err
	}
	p, err := c.r.next()
	if err != nil {
		return nil, err
	}
	c.s.speaks(c)
	if isSSLRequest(p) {
		if config == nil {
			return nil, errHandshake
		}
		if err := c.startTLS(config); err != nil {
			return nil, err
		}
		if p, err = c.r.next(); err != nil {
			return nil, err
		}
	}
	resp, err := parseResponse(p)
	if err != nil {
		return nil, err
	}
	c.caps = resp.capabilities & (g.capabilities &^ capSSL)
	c.greeted = true
	c.zstd = resp.zstdLevel
	c.says(resp)
	if c.s.opt.RequireTLS != nil && !c.tls && c.s.opt.RequireTLS() && c.nc.RemoteAddr().Network() != "unix" {
		return nil, sqlerr.New(sqlerr.SecureTransportRequired)
	}
	return resp, nil
}

// startTLS goes on under TLS. What has been received already belongs to it.
func (c *conn) startTLS(config *tls.Config) error {
	early := append([]byte(nil), c.r.buf[c.r.start:c.r.end]...)
	t := tls.Server(&prefixed{Conn: c.in, early: early}, config)
	if err := t.HandshakeContext(c.ctx); err != nil {
		return err
	}
	state := t.ConnectionState()
	c.tls, c.raw, c.channel = true, t, auth.ChannelOf(&state)
	c.r.src, c.r.start, c.r.end = t, 0, 0
	return nil
}

// prefixed is a connection of which a part was read before.
type prefixed struct {
	net.Conn
	early []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.early) > 0 {
		n := copy(b, p.early)
		p.early = p.early[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// Handover is a session on its way in, also from one member to another.
type Handover struct {
	ID          uint64            `json:"id"`
	User        string            `json:"user"`
	Host        string            `json:"host"`
	Address     string            `json:"address,omitempty"`
	AccountUser string            `json:"account_user"`
	AccountHost string            `json:"account_host"`
	Credential  []byte            `json:"credential,omitempty"` // by which the client has proved itself; older members do not tell it
	Schema      string            `json:"schema,omitempty"`
	Collation   uint16            `json:"collation"`
	Admin       bool              `json:"admin,omitempty"` // may take the administrator's place
	TLS         string            `json:"tls,omitempty"`
	TLSVersion  string            `json:"tls_version,omitempty"`
	Certified   bool              `json:"certified,omitempty"` // the client's certificate was verified
	Subject     string            `json:"subject,omitempty"`
	Issuer      string            `json:"issuer,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	// Resets says that the client can do with a session that may only change an expired password, and Expired that this one
	// is of an account whose password is. Older members do not tell it.
	Resets  bool `json:"resets,omitempty"`
	Expired bool `json:"expired,omitempty"`
	// Nonce is what the client was greeted with: COM_CHANGE_USER of a client that knows no plugins answers it again. Older
	// members do not tell it.
	Nonce []byte `json:"nonce,omitempty"`
	// From is the member that authenticated the client, as the one that takes the session
	// over knows it; for DropFrom.
	From uint64 `json:"-"`
}

func (c *conn) handover(resp *response, acct *auth.Account, host string) *Handover {
	h := &Handover{ID: c.id, User: resp.user, Host: host, AccountUser: acct.User, AccountHost: acct.Host,
		Credential: acct.Credential(), Schema: resp.schema, Collation: resp.collation, Admin: acct.Admin(),
		Attributes: resp.attributes, TLS: c.channel.Cipher, TLSVersion: c.channel.Version,
		Certified: c.channel.Certified, Subject: c.channel.Subject, Issuer: c.channel.Issuer, Nonce: bytes.Clone(c.nonce[:])}
	_, h.Address = c.origin()
	return h
}

// Channel is how the client's connection is secured.
func (h *Handover) Channel() auth.Channel {
	return auth.Channel{Cipher: h.TLS, Version: h.TLSVersion, Certified: h.Certified, Subject: h.Subject, Issuer: h.Issuer}
}

// connection is what the session is told.
func (h *Handover) connection(c *conn) session.ConnectionInfo {
	return session.ConnectionInfo{ID: h.ID, User: h.User, Host: h.Host,
		AccountUser: h.AccountUser, AccountHost: h.AccountHost, Schema: h.Schema,
		Collation: types.CollationID(h.Collation), FoundRows: c.caps.has(capFoundRows),
		IgnoreSpace: c.caps.has(capIgnoreSpace), MultiStatements: c.caps.has(capMultiStatements),
		Interactive: c.caps.has(capInteractive), ReadOnly: c.port.ReadOnly,
		TLS: h.TLS, TLSVersion: h.TLSVersion, Attributes: h.Attributes, Disconnect: c.disconnect, Door: "mysql",
		Expired: h.Expired}
}
