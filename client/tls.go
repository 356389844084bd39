package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
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
