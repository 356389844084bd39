package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/triremedb/trireme/server/config"
)

// signer signs certificates for a test.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newSigner(t *testing.T) *signer {
	s := &signer{t: t}
	s.cert, s.key = s.make(nil, nil, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return s
}

func (s *signer) make(parent *x509.Certificate, by *ecdsa.PrivateKey, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	s.n++
	c.SerialNumber, c.Subject = big.NewInt(s.n), pkix.Name{CommonName: "test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return cert, key
}

// issue writes a certificate, its key and the authority into a directory.
func (s *signer) issue(dir string, hosts ...string) (cert, key, ca string) {
	s.t.Helper()
	c := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	leaf, private := s.make(s.cert, s.key, c)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		s.t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return file
	}
	return write("tls.crt", "CERTIFICATE", leaf.Raw), write("tls.key", "PRIVATE KEY", der), write("ca.crt", "CERTIFICATE", s.cert.Raw)
}

// TestEtcdTLS: etcd is believed by the authority and the host that was dialed, and hears from the node by the certificate that the
// files have when it connects.
func TestEtcdTLS(t *testing.T) {
	ours, other := newSigner(t), newSigner(t)
	serverDir, nodeDir := t.TempDir(), t.TempDir()
	serverCert, serverKey, _ := ours.issue(serverDir, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ours.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = c.Write([]byte("x")); _ = c.Close() }()
		}
	}()
	cert, key, ca := ours.issue(nodeDir, "node")
	load := func(args ...string) (*tls.Config, error) {
		t.Helper()
		cfg, err := config.Load(config.Sources{Args: append([]string{"--discovery=etcd", "--etcd-endpoints=https://" + l.Addr().String()}, args...)})
		if err != nil {
			return nil, err
		}
		return etcdTLS(cfg)
	}
	dial := func(c *tls.Config) error {
		conn, err := tls.Dial("tcp", l.Addr().String(), c)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1)) // TLS 1.3 tells here what it thinks of the client
		return err
	}
	c, err := load("--etcd-tls-ca="+ca, "--etcd-tls-cert="+cert, "--etcd-tls-key="+key)
	if err != nil {
		t.Fatal(err)
	}
	if err := dial(c); err != nil {
		t.Error(err)
	}
	if alone, err := load("--etcd-tls-ca=" + ca); err != nil || dial(alone) == nil {
		t.Errorf("without a certificate: %v", err)
	}
	if machine, err := load(); err != nil || dial(machine) == nil {
		t.Errorf("by the authorities of the machine: %v", err)
	}
	other.issue(nodeDir, "node") // and its authority
	if dial(c) == nil {
		t.Error("the certificate is the one that the file had before")
	}
	if c, err = load("--etcd-tls-ca="+ca, "--etcd-tls-cert="+cert, "--etcd-tls-key="+key); err != nil || dial(c) == nil {
		t.Errorf("another authority is believed: %v", err)
	}
	for _, args := range [][]string{
		{"--etcd-tls-cert=" + cert}, {"--etcd-tls-ca=" + filepath.Join(nodeDir, "none")}, {"--etcd-tls-ca=" + key},
		{"--etcd-tls-cert=" + cert, "--etcd-tls-key=" + ca}, {"--etcd-tls-ca=" + ca, "--etcd-endpoints=http://127.0.0.1:1"},
	} {
		if _, err := load(args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
