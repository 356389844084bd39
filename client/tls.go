package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// TLSFiles are files, as PEM, by which client and server prove who they are.
type TLSFiles struct {
	// CA has the authorities that sign the servers' certificates; empty: those that the machine trusts.
	CA string
	// Cert and Key are the client's certificate, with what stands between it and its authority, and its
	// key, for accounts that REQUIRE one. They are read for each connection, so that it may be renewed.
	Cert, Key string
	// ServerName is the name that the servers' certificates have; empty: the host of the address.
	ServerName string
}

// Config is what Options.TLS takes. Errors are of files that cannot be used.
func (f TLSFiles) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("client: authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("client: authorities: %s has no certificate", f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("client: cert and key belong together: give both, or none")
	}
	if f.Cert == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("client: certificate: %w", err)
	}
	var last atomic.Pointer[tls.Certificate] // for while the files are being written
	last.Store(&pair)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if pair, err := tls.LoadX509KeyPair(f.Cert, f.Key); err == nil {
			last.Store(&pair)
		}
		return last.Load(), nil
	}
	return c, nil
}

// handshakes are TLS with a node, which remembers how the last one ended.
type handshakes struct {
	credentials.TransportCredentials
	refused *atomic.Pointer[Error]
}

// ClientHandshake implements credentials.TransportCredentials.
func (h *handshakes) ClientHandshake(ctx context.Context, name string, nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := h.TransportCredentials.ClientHandshake(ctx, name, nc)
	h.refused.Store(refusal(err))
	return secure, info, err
}

// Clone implements credentials.TransportCredentials.
func (h *handshakes) Clone() credentials.TransportCredentials {
	return &handshakes{h.TransportCredentials.Clone(), h.refused}
}

const tlsNumber = 2026

// refusal is the error of a handshake that will not do better the next time: one of the two does not
// believe the other, or has no TLS. nil: it may.
func refusal(err error) *Error {
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	if !errors.As(err, &cert) && !errors.As(err, &record) && (!errors.As(err, &op) || op.Op != "remote error") {
		return nil
	}
	return &Error{Number: tlsNumber, State: "HY000", Message: "TLS connection error: " + err.Error()}
}
