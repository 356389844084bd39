package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"sync"
	"time"
)

// TLSOptions say how clients are talked to.
type TLSOptions struct {
	// CertFile and KeyFile are the certificate of the doors, with what stands between it and its authority,
	// and its key, as PEM. Empty: one is made when the node starts, for Name, which encrypts but proves nothing.
	CertFile, KeyFile string
	Name              string
	// CAFile has the authorities that sign the certificates of clients; empty: clients are asked for none.
	CAFile string
	// CRLFile has lists of the certificates that the authorities have taken back; empty: there are none.
	CRLFile string
	// MinVersion and MaxVersion are of TLS; 0: 1.2, and the newest.
	MinVersion, MaxVersion uint16
	Log                    *slog.Logger // nil: none
	Now                    func() time.Time
}

// TLS is how the doors talk to clients, as files say. They are looked at again when a connection comes, every
// ten seconds at most: new connections use what is there then, those that stand stay. Files that cannot be
// used, such as a certificate whose key has not come yet, change nothing and are told of once.
type TLS struct {
	opt TLSOptions

	mu      sync.Mutex
	config  *tls.Config
	leaf    *x509.Certificate
	print   [sha256.Size]byte
	made    *tls.Certificate // there are no files
	seen    contents         // of the files in use
	checked time.Time
	told    string // of the last reading, if it failed
}

// contents are of the certificate, the key, the authorities and the lists.
type contents [4][]byte

const (
	// reloadEvery is how often the files are looked at.
	reloadEvery = 10 * time.Second
	// announcedFor is for how long what Fingerprint tells holds at least.
	announcedFor = reloadEvery / 2
	// maxFile is how long one of the files may be.
	maxFile = 4 << 20
)

// OpenTLS reads the files.
func OpenTLS(opt TLSOptions) (*TLS, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.MinVersion == 0 {
		opt.MinVersion = tls.VersionTLS12
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	t := &TLS{opt: opt, checked: opt.Now()}
	if opt.CertFile == "" {
		var err error
		if t.made, err = SelfSigned(opt.Name, opt.Now(), x509.ExtKeyUsageServerAuth); err != nil {
			return nil, err
		}
	}
	now, err := t.read()
	if err != nil {
		return nil, err
	}
	return t, t.use(now)
}

// SelfSigned makes a certificate for a name that is signed by itself and valid for ten years.
func SelfSigned(name string, now time.Time, uses ...x509.ExtKeyUsage) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "Trireme " + name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: uses,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// read reads the files.
func (t *TLS) read() (c contents, err error) {
	for i, name := range []string{t.opt.CertFile, t.opt.KeyFile, t.opt.CAFile, t.opt.CRLFile} {
		if name == "" {
			continue
		}
		if c[i], err = readFile(name); err != nil {
			return c, fmt.Errorf("%s: %w", [...]string{"certificate", "key", "authorities of clients", "revoked certificates"}[i], err)
		}
	}
	return c, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s: it is longer than %d MiB", name, maxFile>>20)
	}
	return b, err
}

// use takes over what the files say, if all of it can be used.
func (t *TLS) use(c contents) error {
	cert, err := t.certificate(c[0], c[1])
	if err != nil {
		return fmt.Errorf("certificate %s, key %s: %w", t.opt.CertFile, t.opt.KeyFile, err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return fmt.Errorf("certificate %s: %w", t.opt.CertFile, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: t.opt.MinVersion, MaxVersion: t.opt.MaxVersion, Time: t.opt.Now}
	if t.opt.CAFile != "" {
		if config.ClientCAs, err = authorities(c[2]); err != nil {
			return fmt.Errorf("authorities of clients %s: %w", t.opt.CAFile, err)
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
		config.SessionTicketsDisabled = true // a resumed session would outlive a certificate
	}
	if t.opt.CRLFile != "" {
		lists, err := parseRevocations(c[3])
		if err != nil {
			return fmt.Errorf("revoked certificates %s: %w", t.opt.CRLFile, err)
		}
		config.VerifyConnection = func(s tls.ConnectionState) error { return lists.check(s.VerifiedChains, t.opt.Now()) }
	}
	t.config, t.leaf, t.print, t.seen = config, leaf, sha256.Sum256(leaf.Raw), c
	return nil
}

func (t *TLS) certificate(cert, key []byte) (*tls.Certificate, error) {
	if t.made != nil {
		return t.made, nil
	}
	if _, err := pemBlocks(cert); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}

// authorities are the certificates in a file, each of which has to be one.
func authorities(text []byte) (*x509.CertPool, error) {
	blocks, err := pemBlocks(text)
	if err != nil {
		return nil, err
	}
	pool, n := x509.NewCertPool(), 0
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool.AddCert(c)
		n++
	}
	if n == 0 {
		return nil, errors.New("it has no certificate")
	}
	return pool, nil
}

// look reads the files again if that was last done so long ago. REQUIRES: the mutex is held.
func (t *TLS) look(after time.Duration) {
	now := t.opt.Now()
	if t.made != nil && t.opt.CAFile == "" || now.Sub(t.checked) < after {
		return
	}
	changed, err := t.reload()
	switch {
	case err != nil:
		if text := err.Error(); text != t.told {
			t.told = text
			t.opt.Log.Error("the files of TLS for clients cannot be used, what was read before stays", "error", err)
		}
		return
	case changed:
		t.tell()
	}
	t.told = ""
}

// reload reads the files, and takes over what they say if that has changed. REQUIRES: the mutex is held.
func (t *TLS) reload() (changed bool, err error) {
	t.checked = t.opt.Now()
	found, err := t.read()
	if err != nil || found.same(&t.seen) {
		return false, err
	}
	return true, t.use(found)
}

func (t *TLS) tell() {
	t.opt.Log.Info("the files of TLS for clients were read again", "certificate", t.opt.CertFile, "expires", t.leaf.NotAfter)
}

// Reload reads the files again at once: the next connection is talked to by what they say. If they cannot be used
// the error says why, and what was read before stays.
func (t *TLS) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed, err := t.reload()
	if err != nil {
		return err
	}
	t.told = ""
	if changed {
		t.tell()
	}
	return nil
}

func (c *contents) same(as *contents) bool {
	for i := range c {
		if !bytes.Equal(c[i], as[i]) {
			return false
		}
	}
	return true
}

// Config is the configuration for a new connection.
func (t *TLS) Config() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(reloadEvery)
	return t.config
}

// Usable says why the files cannot be used that there are now; what was read before stays meanwhile.
func (t *TLS) Usable() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(reloadEvery)
	if t.told == "" {
		return nil
	}
	return errors.New(t.told)
}

// Valid is from when and until when the certificate is valid that the next connection is shown.
func (t *TLS) Valid() (from, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(reloadEvery)
	return t.leaf.NotBefore, t.leaf.NotAfter
}

// Fingerprint is the SHA-256 of the certificate that connections of the next seconds are shown.
func (t *TLS) Fingerprint() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look(announcedFor)
	return append([]byte(nil), t.print[:]...)
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
