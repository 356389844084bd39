package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"
)

// Certificate is the certificate of the doors. With files it is read again when they
// change; without it is made when the node starts, which encrypts but proves nothing.
type Certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	config  *tls.Config
	print   [sha256.Size]byte
	until   time.Time
	checked time.Time
	stamp   [2]time.Time
	err     error // of the last reading, if it failed
}

// reloadEvery is how often the files are looked at, when a connection comes.
const reloadEvery = 10 * time.Second

// LoadCertificate reads the files.
func LoadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// MakeCertificate makes a certificate that is signed by itself.
func MakeCertificate(name string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "Trireme " + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0), DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	c := &Certificate{}
	c.use(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
	return c, nil
}

func (c *Certificate) use(cert tls.Certificate) {
	c.config = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	c.print, c.until = sha256.Sum256(cert.Certificate[0]), time.Time{}
	if leaf, err := x509.ParseCertificate(cert.Certificate[0]); err == nil {
		c.until = leaf.NotAfter
	}
}

func (c *Certificate) load() error {
	stamp, err := c.stamps()
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("certificate %s, key %s: %w", c.certFile, c.keyFile, err)
	}
	c.use(cert)
	c.stamp, c.checked = stamp, time.Now()
	return nil
}

func (c *Certificate) stamps() (t [2]time.Time, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return t, err
		}
		t[i] = info.ModTime()
	}
	return t, nil
}

// Config is the configuration for a new connection. If changed files cannot be read the
// certificate stays the one before.
func (c *Certificate) Config() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.certFile != "" && time.Since(c.checked) > reloadEvery {
		c.checked = time.Now()
		if stamp, err := c.stamps(); err != nil || stamp != c.stamp {
			c.err = c.load()
		}
	}
	return c.config
}

// Err is why changed files were not taken over, or nil.
func (c *Certificate) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Expires is until when the certificate is valid that the next connection is shown.
func (c *Certificate) Expires() time.Time {
	c.Config()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}

// Fingerprint is the SHA-256 of the certificate in use.
func (c *Certificate) Fingerprint() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.print[:]...)
}

// Pinned is a client's configuration that takes one certificate and no other, whoever
// signed it.
func Pinned(fingerprint []byte) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // pinned below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("auth: no certificate")
			}
			if sum := sha256.Sum256(s.PeerCertificates[0].Raw); string(sum[:]) != string(fingerprint) {
				return errors.New("auth: the certificate is not the one that was announced")
			}
			return nil
		}}
}
