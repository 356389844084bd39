// Package authtest makes authorities, certificates and lists of revoked ones for tests.
package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t       testing.TB
	cert    *x509.Certificate
	key     crypto.Signer
	serials int64
	lists   int64
}

// Certificate is a certificate and its key, as PEM.
type Certificate struct {
	Cert, Key []byte
	X509      *x509.Certificate
}

// NewAuthority makes an authority.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t), serials: 1}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	a.cert = a.sign(c, c, a.key.Public()).X509
	return a
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return block("CERTIFICATE", a.cert.Raw) }

// Pool has the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Issue signs a certificate for servers on this machine and for clients, which change may alter.
func (a *Authority) Issue(subject pkix.Name, change func(*x509.Certificate)) Certificate {
	a.t.Helper()
	a.serials++
	c := &x509.Certificate{SerialNumber: big.NewInt(a.serials), Subject: subject, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(c)
	}
	key := newKey(a.t)
	made := a.sign(c, a.cert, key.Public())
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	made.Key = block("PRIVATE KEY", der)
	return made
}

// Expired is a certificate's that ended an hour ago.
func Expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }

func (a *Authority) sign(c, parent *x509.Certificate, key crypto.PublicKey) Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return Certificate{Cert: block("CERTIFICATE", der), X509: made}
}

// Revoke makes a list of revoked certificates, which is in force until then.
func (a *Authority) Revoke(until time.Time, revoked ...Certificate) []byte {
	a.t.Helper()
	return a.revoke(until, nil, revoked...)
}

// RevokeSome makes a list that says by a critical extension, an IssuingDistributionPoint in DER, of which certificates it is.
func (a *Authority) RevokeSome(until time.Time, point []byte, revoked ...Certificate) []byte {
	a.t.Helper()
	return a.revoke(until, []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: point}}, revoked...)
}

func (a *Authority) revoke(until time.Time, more []pkix.Extension, revoked ...Certificate) []byte {
	a.t.Helper()
	a.lists++
	list := &x509.RevocationList{Number: big.NewInt(a.lists), ThisUpdate: time.Now().Add(-24 * time.Hour), NextUpdate: until, ExtraExtensions: more}
	for _, c := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: c.X509.SerialNumber, RevocationTime: time.Now().Add(-time.Hour)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return block("X509 CRL", der)
}

// Pair is the certificate as crypto/tls has it.
func (c *Certificate) Pair(t testing.TB) tls.Certificate {
	t.Helper()
	p, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Show is how a client shows the certificate, whichever authorities the server names: those of Go show none
// that the server does not ask for.
func (c *Certificate) Show(t testing.TB) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	t.Helper()
	p := c.Pair(t)
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &p, nil }
}

// Write writes the certificate and its key into files of a directory.
func (c *Certificate) Write(t testing.TB, dir, name string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	File(t, certFile, c.Cert)
	File(t, keyFile, c.Key)
	return certFile, keyFile
}

// File writes a file and returns its name.
func File(t testing.TB, name string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
