package sqlapi

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/server/audit"
	"github.com/triremedb/trireme/server/auth"
)

// credential takes connections with TLS and without on one port: the first byte tells.
type credential struct{ d *Door }

// connection is what is known of a connection.
type connection struct {
	credentials.CommonAuthInfo
	channel       auth.Channel
	host, address string // as auth.RemoteHost tells

	taken int64  // bytes, of Door.memory
	close func() // breaks it
	met   func() // somebody who has called on it is known

	mu   sync.Mutex
	told []string // users of whom the audit log has that they came in
}

// toldMax is how many users of a connection are remembered; each call of a user beyond these is told of.
const toldMax = 16

// isNew reports whether a user has not called on this connection before.
func (c *connection) isNew(user string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.told, user) {
		return false
	}
	if len(c.told) < toldMax {
		c.told = append(c.told, user)
	}
	return true
}

// AuthType implements credentials.AuthInfo.
func (c *connection) AuthType() string { return "trireme" }

// Info implements credentials.TransportCredentials.
func (c *credential) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (c *credential) Clone() credentials.TransportCredentials { return &credential{c.d} }

// OverrideServerName implements credentials.TransportCredentials.
func (c *credential) OverrideServerName(string) error { return nil }

// ClientHandshake implements credentials.TransportCredentials.
func (c *credential) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("sqlapi: these are a server's credentials")
}

const tlsRecord = 0x16 // the first byte of a TLS handshake

// ServerHandshake implements credentials.TransportCredentials. gRPC limits its time.
func (c *credential) ServerHandshake(nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	leave := c.d.shaking.Enter(nc.RemoteAddr())
	if leave == nil {
		return nil, nil, errors.New("sqlapi: too many connections are in their handshake")
	}
	defer leave()
	forget := c.d.strangers.Enter(nc.RemoteAddr())
	if forget == nil {
		return nil, nil, errors.New("sqlapi: too many connections on which nobody has said who he is")
	}
	nc = &stranger{Conn: nc, forget: forget}
	out, of, err := c.shake(nc)
	if err != nil {
		forget()
		return nil, nil, err
	}
	of.close, of.met = func() { _ = nc.Close() }, forget
	return out, of, nil
}

// stranger is a connection that is counted until somebody on it is known, or it is closed.
type stranger struct {
	net.Conn
	forget func()
}

func (s *stranger) Close() error {
	s.forget()
	return s.Conn.Close()
}

// shake is ServerHandshake.
func (c *credential) shake(nc net.Conn) (net.Conn, *connection, error) {
	var begin [1]byte
	if _, err := nc.Read(begin[:]); err != nil {
		return nil, nil, err
	}
	rest := &peeked{Conn: nc, early: begin[:]}
	host, address := auth.RemoteHost(nc.RemoteAddr())
	if begin[0] != tlsRecord {
		return rest, &connection{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, host: host, address: address}, nil
	}
	var config *tls.Config
	if c.d.opt.TLS != nil {
		config = c.d.opt.TLS()
	}
	if config == nil { // the client is told by an alert
		config = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, errors.New("sqlapi: TLS without a certificate: set ssl_cert or auto_generate_certs")
		}}
	}
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	t := tls.Server(rest, config)
	if err := t.Handshake(); err != nil {
		return nil, nil, err
	}
	state := t.ConnectionState()
	return t, &connection{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, channel: auth.ChannelOf(&state), host: host, address: address}, nil
}

// peeked is a connection whose first byte was read.
type peeked struct {
	net.Conn
	early []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.early) > 0 && len(b) > 0 {
		n := copy(b, p.early)
		p.early = p.early[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// caller is the user that a call is from.
type caller struct {
	conn   *connection            // nil: none is known
	info   session.ConnectionInfo // but for what a session adds
	secure bool
}

var (
	errNobody = sqlerr.Newf(sqlerr.AccessDeniedError, "Access denied: the call's metadata have no authorization of "+
		"the form \"Basic \" and the base64 of user:password")
	errInsecure = sqlerr.Newf(sqlerr.SecureTransportRequired, "Connections using insecure transport are prohibited: "+
		"use TLS")
)

// connectionOf is the connection of a call; nil: it is not known.
func connectionOf(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		conn, _ := p.AuthInfo.(*connection)
		return conn
	}
	return nil
}

// identify finds out who calls, for each call, and for each session of a stream. A password that was checked lately
// costs microseconds.
func (d *Door) identify(ctx context.Context) (*caller, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, errNobody
	}
	conn, ok := p.AuthInfo.(*connection)
	if !ok {
		return nil, errNobody
	}
	host, channel := conn.host, conn.channel
	c := &caller{conn: conn, secure: channel.TLS()}
	user, password, ok := credentialsOf(ctx)
	if !c.secure && (d.opt.RequireTLS != nil && d.opt.RequireTLS() || host != "localhost" && !d.opt.AllowPlaintext) {
		d.opt.Audit.Login(audit.Login{Door: "grpc", User: user, Address: p.Addr.String(), Err: errInsecure})
		return nil, errInsecure
	}
	if !ok {
		return nil, errNobody
	}
	acct, err := d.opt.Auth.Login(ctx, d.stop, user, host, conn.address, password, &channel)
	if err != nil || conn.isNew(user) {
		known := false
		if err != nil {
			_, known, _ = d.opt.Auth.Find(user, host, conn.address)
		}
		d.opt.Audit.Login(audit.Login{Door: "grpc", User: user, AccountUser: acct.User, AccountHost: acct.Host, Address: p.Addr.String(), TLS: channel.Version, Err: err,
			Known: known})
	}
	if err != nil {
		return nil, err
	}
	if conn.met != nil {
		conn.met()
	}
	c.info = session.ConnectionInfo{User: user, Host: host, AccountUser: acct.User, AccountHost: acct.Host, Collation: collation, Door: "grpc"}
	c.info.TLS, c.info.TLSVersion = channel.Cipher, channel.Version
	return c, nil
}

// Identify finds out who makes a call of another service that the port offers (see Offer). Of
// a caller that could not prove it only the name is told.
func (d *Door) Identify(ctx context.Context) (session.ConnectionInfo, error) {
	c, err := d.identify(ctx)
	if err != nil {
		user, _, _ := credentialsOf(ctx)
		return session.ConnectionInfo{User: user}, err
	}
	return c.info, nil
}

// credentialsOf reads the authorization of a call.
func credentialsOf(ctx context.Context) (user, password string, ok bool) {
	all := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(all) != 1 {
		return "", "", false
	}
	const scheme = "basic "
	if len(all[0]) < len(scheme) || !strings.EqualFold(all[0][:len(scheme)], scheme) {
		return "", "", false
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(all[0][len(scheme):]))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(b), ":")
}
