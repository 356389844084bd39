package mysqlwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Target is the member that a session goes to.
type Target struct {
	Member uint64 // who it is, for DropRelays
	Addr   string // of its main port
	Ticket []byte // by which it knows the session
	// TLS is how the member is to be known. It is used for clients that use TLS, or with
	// AlwaysTLS for all: what a client sends in the clear needs no cover behind the door.
	TLS       *tls.Config
	AlwaysTLS bool
}

// upstream is a connection to the member that has the session.
type upstream struct {
	member uint64

	nc  net.Conn // as dialed
	rw  io.ReadWriteCloser
	r   packetReader
	seq uint8
}

const (
	forwardTimeout = 5 * time.Second
	// relayStall is how long a relayed client may not take what is sent. The member that has the session ends that after
	// its net_write_timeout, of which this one hears nothing while it cannot write.
	relayStall = 10 * time.Minute
)

// forward hands the session over to the member that takes writes; nil: it stays here.
func (c *conn) forward(h *Handover) (*upstream, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.s.forwardTimeout)
	defer cancel()
	target, err := c.s.opt.Forward(ctx, h)
	if target == nil {
		return nil, err
	}
	up, answer, err := c.dial(ctx, target, h)
	var told *sqlerr.Error
	switch {
	case errors.As(err, &told):
		return nil, err
	case err != nil:
		c.s.opt.Log.Info("handing a session over", "to", target.Addr, "error", err)
		return nil, errMoved("The member that takes writes cannot be reached: connect again")
	}
	if c.r.buffered() > 0 { // a client speaks again when it has the answer
		_ = up.rw.Close()
		return nil, errMalformed
	}
	if up.r.buffered() > 0 { // what it says unasked is that it ends
		_ = up.rw.Close()
		return nil, errMoved("The member that takes writes is stopping: connect again")
	}
	c.w.begin()
	c.w.buf = append(c.w.buf, answer...)
	c.w.end()
	if err := c.w.flush(); err != nil {
		_ = up.rw.Close()
		return nil, err
	}
	return up, nil
}

// dial opens the session there. answer is the OK that the client gets.
func (c *conn) dial(ctx context.Context, target *Target, h *Handover) (*upstream, []byte, error) {
	d := net.Dialer{}
	nc, err := d.DialContext(ctx, "tcp", target.Addr)
	if err != nil {
		return nil, nil, err
	}
	if !c.s.opt.HasRoom(nc, c.s.Held()) {
		_ = nc.Close()
		c.s.counts.tooMany.Add(1)
		return nil, nil, errTooMany
	}
	nc = c.s.hold(nc)
	up := &upstream{member: target.Member, nc: nc, rw: nc}
	up.r = packetReader{src: nc, seq: &up.seq, max: maxHandshake}
	deadline, _ := ctx.Deadline()
	_ = nc.SetDeadline(deadline)
	answer, err := up.login(ctx, c, target, h)
	if err != nil {
		_ = up.rw.Close()
		return nil, nil, err
	}
	_ = nc.SetDeadline(time.Time{})
	return up, answer, nil
}

func (up *upstream) login(ctx context.Context, c *conn, target *Target, h *Handover) ([]byte, error) {
	p, err := up.r.next()
	if err != nil {
		return nil, err
	}
	if len(p) > 0 && p[0] == headerErr {
		return nil, parseError(p)
	}
	g, err := parseGreeting(p)
	if err != nil {
		return nil, err
	}
	resp := &response{capabilities: c.caps | capProtocol41 | capSecureConnection | capPluginAuth | capLenencAuthData,
		maxPacket: maxChunk, collation: h.Collation & 0xff, user: h.User, auth: target.Ticket, schema: h.Schema,
		plugin: pluginMember, zstdLevel: c.zstd}
	// What matters travels with the ticket.
	resp.capabilities &^= capConnectWithDB | capConnectAttrs
	if target.TLS != nil && (c.tls || target.AlwaysTLS) {
		if !g.capabilities.has(capSSL) {
			return nil, errHandshake
		}
		if err := up.startTLS(ctx, target.TLS, resp); err != nil {
			return nil, err
		}
	}
	if err := up.send(appendResponse(nil, resp)); err != nil {
		return nil, err
	}
	if p, err = up.r.next(); err != nil {
		return nil, err
	}
	if len(p) == 0 || p[0] != headerOK {
		return nil, parseError(p)
	}
	return append([]byte(nil), p...), nil
}

func (up *upstream) startTLS(ctx context.Context, config *tls.Config, resp *response) error {
	resp.capabilities |= capSSL
	request := appendResponse(nil, resp)[:32]
	if err := up.send(request); err != nil {
		return err
	}
	t := tls.Client(up.nc, config)
	if err := t.HandshakeContext(ctx); err != nil {
		return err
	}
	up.rw, up.r.src = t, t
	return nil
}

func (up *upstream) send(p []byte) error {
	b := make([]byte, headerSize, headerSize+len(p))
	binary.LittleEndian.PutUint32(b, uint32(len(p))|uint32(up.seq)<<24)
	up.seq++
	_, err := up.rw.Write(append(b, p...))
	return err
}

// parseError reads an ERR packet.
func parseError(b []byte) *sqlerr.Error {
	p := payload{b: b}
	if p.uint8() != headerErr {
		return errHandshake
	}
	e := &sqlerr.Error{Number: sqlerr.Code(p.uint16()), State: "HY000"}
	if len(p.b) >= 6 && p.b[0] == '#' {
		e.State = string(p.b[1:6])
		p.take(6)
	}
	e.Message = string(p.b)
	return e
}

// finish lets the member that has the session end it as soon as what it was asked for is answered: it reads the
// end of what is sent to it when it looks for the next command.
func (up *upstream) finish() {
	half, ok := up.rw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = up.nc.Close()
	}
}

// relay carries bytes between the client and the member that has its session, until
// one of them ends.
func (c *conn) relay(up *upstream) {
	defer up.rw.Close()
	c.writeMax.Store(int64(relayStall / time.Second))
	c.relayed.Store(up)
	defer context.AfterFunc(c.ctx, func() { _ = up.nc.Close() })()
	var t tracker
	if c.caps.has(capCompress) || c.caps.has(capZstd) {
		t.framed = true
	}
	client, toClient := c.raw, timedWriter{c}
	var back sync.WaitGroup
	back.Add(1)
	go func() {
		defer back.Done()
		buf := make([]byte, flushBuffer)
		for {
			if c.ending.Load() != nil {
				up.finish()
				return
			}
			n, err := client.Read(buf)
			if n > 0 {
				t.fromClient(buf[:n])
				if _, werr := up.rw.Write(buf[:n]); werr != nil {
					return // the other direction finds out
				}
			}
			if err != nil && c.ending.Load() == nil {
				_ = up.nc.Close()
				return
			}
		}
	}()
	buf := make([]byte, 2*flushBuffer)
	for {
		n, err := up.rw.Read(buf)
		if n > 0 {
			t.fromServer(buf[:n])
			if _, werr := toClient.Write(buf[:n]); werr != nil {
				break
			}
		}
		if err != nil {
			c.lostUpstream(&t)
			break
		}
	}
	_ = c.nc.Close()
	_ = up.nc.Close()
	back.Wait()
}

// lostUpstream tells a client that waits for an answer that none will come, and one that waits for nothing why
// this member ends. In the middle of a packet nothing may be told: it would be taken for the rest of that.
func (c *conn) lostUpstream(t *tracker) {
	seq, waiting := t.waiting()
	err := c.ending.Load()
	switch {
	case err != nil && !t.between():
		return
	case err == nil && !waiting:
		return // a plain end: drivers notice before they send
	case err == nil:
		err = errMoved("The member that had the session is gone, and its answer with it: what the statement has changed may be committed; connect again")
	}
	c.compress()
	c.seq = seq
	if c.frames != nil {
		c.frames.seq = seq
	}
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	c.writeError(err)
	_ = c.w.flush()
}

// tracker follows the packets of a relayed connection from outside: whose turn it is,
// and between which packets it stands.
type tracker struct {
	framed bool // packets are inside of compressed frames

	mu     sync.Mutex
	client scanner
	server scanner
	// asked: the client has sent something since the server's last packet.
	asked bool
}

// scanner cuts a stream into packets without keeping them.
type scanner struct {
	header [frameHeader]byte
	have   int // bytes of the header
	left   int // bytes of the payload still to come
	seq    uint8
	first  byte // of the payload of the last packet
	length int
	fresh  bool // the first byte is still to come
}

func (s *scanner) scan(b []byte, headerLen int) {
	for len(b) > 0 {
		if s.left > 0 {
			if s.fresh {
				s.first, s.fresh = b[0], false
			}
			n := min(s.left, len(b))
			s.left -= n
			b = b[n:]
			continue
		}
		n := copy(s.header[s.have:headerLen], b)
		s.have += n
		b = b[n:]
		if s.have == headerLen {
			s.have = 0
			s.length = int(s.header[0]) | int(s.header[1])<<8 | int(s.header[2])<<16
			s.left, s.seq, s.fresh = s.length, s.header[3], true
		}
	}
}

// between reports whether the stream stands between packets. A frame ends a packet unless it is full: who writes
// frames puts whole packets into them.
func (s *scanner) between(framed bool) bool {
	if s.have != 0 || s.left != 0 {
		return false
	}
	length := s.length
	if raw := int(s.header[4]) | int(s.header[5])<<8 | int(s.header[6])<<16; framed && raw != 0 {
		length = raw
	}
	return length < maxChunk
}

func (t *tracker) headerLen() int {
	if t.framed {
		return frameHeader
	}
	return headerSize
}

func (t *tracker) fromClient(b []byte) {
	t.mu.Lock()
	t.client.scan(b, t.headerLen())
	t.asked = true
	t.mu.Unlock()
}

func (t *tracker) fromServer(b []byte) {
	t.mu.Lock()
	t.server.scan(b, t.headerLen())
	t.asked = false
	t.mu.Unlock()
}

// between reports whether both sides stand between packets.
func (t *tracker) between() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client.between(t.framed) && t.server.between(t.framed)
}

// waiting reports whether the client waits for a packet and can be given one, and the
// number of that.
func (t *tracker) waiting() (seq uint8, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked {
		return t.client.seq + 1, t.client.between(t.framed) && t.server.between(t.framed)
	}
	last := &t.server
	if !last.between(t.framed) || last.length == 0 {
		return 0, false
	}
	// An OK, ERR or EOF ends an answer; what else it may be cannot be told from outside,
	// and an error too many is worse than a plain end.
	if last.first == headerOK || last.first == headerErr || last.first == headerEOF && last.length < 9 {
		return 0, false // what comes now comes by itself
	}
	return last.seq + 1, !t.framed
}
