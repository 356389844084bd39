package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TLS is how a node proves who it is and whom it believes. The files are read
// again when they change: new connections use what is there then, those that
// stand stay.
type TLS struct {
	// CertFile and KeyFile are the node's certificate, with what stands between it and
	// the CA, and its key, as PEM. The certificate is for servers and for clients.
	CertFile, KeyFile string
	// CAFile has the certificates of the authorities that sign the nodes' certificates.
	CAFile string
	// Certificate is one that is its own authority, instead of the files: of a node that nobody else is to talk to.
	Certificate *tls.Certificate
	// ServerName is the name that a dialed node's certificate must have; empty: the
	// host that was dialed.
	ServerName string
	// RequireIdentity demands that a certificate names its group and member, by a URI
	// "trireme://<group id>/<member id>", or "trireme://<group id>" for any member.
	// A certificate that has such a name is held to it in any case.
	RequireIdentity bool
	// RequireHost demands that a certificate is for the host of the member that its node says it is: of the address that
	// the group has of it, or, of one that nobody knows, the address that it gives. A node that is dialed is held to the
	// host that was dialed in any case.
	RequireHost bool
	// ReloadEvery is how often the files are looked at; 0: 10 s.
	ReloadEvery time.Duration
}

// certificates holds what the files of a TLS say.
type certificates struct {
	TLS
	log *slog.Logger

	mu      sync.Mutex
	cert    *tls.Certificate
	pool    *x509.CertPool
	stamps  [3]stamp
	checked time.Time
}

type stamp struct {
	modified time.Time
	size     int64
}

func loadCertificates(t *TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{TLS: *t, log: log}
	c.ReloadEvery = or(c.ReloadEvery, 10*time.Second)
	if t.Certificate != nil {
		return c, c.own()
	}
	c.stamps, _ = c.look()
	if err := c.read(); err != nil {
		return nil, err
	}
	c.checked = time.Now()
	return c, nil
}

// own takes the certificate that is its own authority.
func (c *certificates) own() error {
	leaf, err := x509.ParseCertificate(c.Certificate.Certificate[0])
	if err != nil {
		return fmt.Errorf("transport: certificate: %w", err)
	}
	cert := *c.Certificate
	cert.Leaf = leaf
	c.cert, c.pool = &cert, x509.NewCertPool()
	c.pool.AddCert(leaf)
	return nil
}

// Usable says why the files cannot be used that there are now.
func (t *TLS) Usable() error {
	return (&certificates{TLS: *t}).read()
}

func (c *certificates) look() (s [3]stamp, err error) {
	for i, name := range [3]string{c.CertFile, c.KeyFile, c.CAFile} {
		info, e := os.Stat(name)
		if e != nil {
			err = e
			continue
		}
		s[i] = stamp{info.ModTime(), info.Size()}
	}
	return s, err
}

// read loads the files.
func (c *certificates) read() error {
	cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return fmt.Errorf("transport: certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return fmt.Errorf("transport: certificate %s: %w", c.CertFile, err)
		}
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return fmt.Errorf("transport: CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("transport: CA file %s has no certificate", c.CAFile)
	}
	c.cert, c.pool = &cert, pool
	return nil
}

// current returns what the files say now. Files that cannot be used leave what
// was there before.
func (c *certificates) current() (*tls.Certificate, *x509.CertPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.Certificate == nil && now.Sub(c.checked) >= c.ReloadEvery {
		c.checked = now
		stamps, err := c.look()
		if err == nil && stamps != c.stamps {
			err = c.read()
			if err == nil {
				c.stamps = stamps
				c.log.Info("certificates between nodes were read again", "certificate", c.CertFile, "expires", c.cert.Leaf.NotAfter)
			}
		}
		if err != nil {
			c.log.Error("certificates between nodes cannot be read, the old ones stay", "error", err)
		}
	}
	return c.cert, c.pool
}

// Expires is when the node's certificate ends.
func (c *certificates) expires() time.Time {
	cert, _ := c.current()
	return cert.Leaf.NotAfter
}

// server returns the configuration of accepted connections.
func (c *certificates) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			cert, pool := c.current()
			return &tls.Config{
				MinVersion:             tls.VersionTLS13,
				Certificates:           []tls.Certificate{*cert},
				ClientCAs:              pool,
				ClientAuth:             tls.RequireAndVerifyClientCert,
				SessionTicketsDisabled: true, // a resumed session would outlive a certificate
			}, nil
		},
	}
}

// client returns the configuration of a dialed connection.
func (c *certificates) client(host string) *tls.Config {
	cert, pool := c.current()
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*cert},
		RootCAs:      pool,
		ServerName:   or(c.ServerName, host),
	}
}

// checkIdentity holds a certificate to the group and member that it names. It does
// not look at a member id of 0.
func (c *certificates) checkIdentity(cert *x509.Certificate, id Identity, who string) *Rejection {
	named := false
	for _, u := range cert.URIs {
		if u.Scheme != "trireme" {
			continue
		}
		named = true
		if identityMatches(u, id) {
			return nil
		}
	}
	switch {
	case named && id.Group == (GroupID{}):
		return nil // it may only ask
	case named:
		return rejectf(ReasonIdentity, "the certificate of %s is for %s, not for member %d of group %s", who, cert.URIs[0], id.Member, id.Group)
	case c.RequireIdentity:
		return rejectf(ReasonIdentity, "the certificate of %s names no group and member (a URI like trireme://%s/%d)", who, id.Group, id.Member)
	}
	return nil
}

// checkHost holds the certificate of a node that calls to the host of an address.
func (c *certificates) checkHost(cert *x509.Certificate, addr, who string) *Rejection {
	if !c.RequireHost {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err == nil {
		err = cert.VerifyHostname(host)
	}
	if err != nil {
		return rejectf(ReasonIdentity, "the certificate of %s is not for the host of %s: %v", who, addr, err)
	}
	return nil
}

func identityMatches(u *url.URL, id Identity) bool {
	if u.Host != id.Group.String() {
		return false
	}
	if u.Path == "" || u.Path == "/" || id.Member == 0 {
		return true
	}
	member, err := strconv.ParseUint(u.Path[1:], 10, 64)
	return err == nil && member == id.Member
}

// CertificateError says that two nodes cannot connect since one does not accept the other's certificate: another attempt fails as well.
type CertificateError struct {
	Text string
	Err  error
}

// Error implements error.
func (e *CertificateError) Error() string { return e.Text + ": " + e.Err.Error() }

// Unwrap gives what TLS says.
func (e *CertificateError) Unwrap() error { return e.Err }

// explainTLS says what a failed handshake means to the operator. Error: a [CertificateError] if a certificate was not accepted.
func explainTLS(err error, who string) error {
	var (
		plain   tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		alert   *net.OpError
	)
	switch {
	case errors.As(err, &plain):
		return fmt.Errorf("%s speaks plaintext where TLS is required: %w", who, err)
	case errors.As(err, &unknown):
		return &CertificateError{fmt.Sprintf("the certificate of %s is not signed by our CA", who), err}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &CertificateError{fmt.Sprintf("the certificate of %s is expired or not yet valid", who), err}
	case errors.As(err, &host):
		return &CertificateError{fmt.Sprintf("the certificate of %s is for another name", who), err}
	case errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(err.Error(), "certificate"):
		return &CertificateError{fmt.Sprintf("%s does not accept our certificate", who), err}
	}
	return fmt.Errorf("TLS with %s: %w", who, err)
}
