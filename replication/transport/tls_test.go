package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	return &authority{t, key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue writes a certificate, its key and the CA into dir and returns how to use them.
func (a *authority) issue(dir string, change func(*x509.Certificate)) *TLS {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	conf := &TLS{
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"), CAFile: filepath.Join(dir, "ca.pem"),
		ReloadEvery: time.Millisecond,
	}
	for name, content := range map[string][]byte{
		conf.CertFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		conf.KeyFile:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		conf.CAFile:   a.pem,
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return conf
}

func withTLS(conf *TLS) func(*Options) {
	return func(o *Options) { o.TLS, o.AllowPlaintext = conf, false }
}

func identityURI(group GroupID, member uint64) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		u := &url.URL{Scheme: "trireme", Host: group.String()}
		if member != 0 {
			u.Path = fmt.Sprintf("/%d", member)
		}
		c.URIs = append(c.URIs, u)
	}
}

func TestMutualTLS(t *testing.T) {
	ca := newAuthority(t)
	a := startNode(t, 1, withTLS(ca.issue(t.TempDir(), nil)))
	confB := ca.issue(t.TempDir(), identityURI(testGroup, 2))
	confB.RequireIdentity = true
	b := startNode(t, 2, withTLS(confB))
	// Node 1's certificate does not say that it is member 1.
	a.net.SetPeers([]Peer{{2, b.net.Addr()}})
	b.net.SetPeers([]Peer{{1, a.net.Addr()}})
	want := fmt.Sprintf("the certificate of node %s names no group and member (a URI like trireme://%s/1)", a.net.Addr(), testGroup)
	var rejected *Rejection // it goes on to try, and is rejected again
	a.waitFor("rejection", func() bool { rejected = a.rejected[2]; return rejected != nil })
	if rejected.Reason != ReasonIdentity || rejected.Text != want {
		t.Fatalf("rejected by %q, want %q", rejected, want)
	}
	c := startNode(t, 3, withTLS(ca.issue(t.TempDir(), identityURI(testGroup, 0))))
	acquaint(t, b, c)
	if until := time.Until(c.net.CertificateExpires()); until < 50*time.Minute || until > 70*time.Minute {
		t.Errorf("the certificate expires in %v", until)
	}
}

// TestHostIdentity: who has a certificate of the authority is the member only of the host that the certificate is for.
func TestHostIdentity(t *testing.T) {
	ca := newAuthority(t)
	strict := func(change func(*x509.Certificate)) func(*Options) {
		conf := ca.issue(t.TempDir(), change)
		conf.RequireHost = true
		return withTLS(conf)
	}
	elsewhere := func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"elsewhere"}, nil }
	a := startNode(t, 1, strict(nil))
	b := startNode(t, 2, strict(nil))
	acquaint(t, a, b)
	// A third one says that it is member 2, and then that it is a new one. Its certificate is for another host.
	for _, test := range []struct {
		member uint64
		want   string
	}{{2, "which says that it is member 2, is not for the host of " + b.net.Addr()}, {9, "is not for the host of 127.0.0.1:"}} {
		thief := startNode(t, test.member, strict(elsewhere))
		thief.net.SetPeers([]Peer{{1, a.net.Addr()}})
		var rejected *Rejection
		thief.waitFor("rejection", func() bool { rejected = thief.rejected[1]; return rejected != nil })
		if rejected.Reason != ReasonIdentity || !strings.Contains(rejected.Text, test.want) {
			t.Errorf("%v, want %q", rejected, test.want)
		}
		thief.net.Close()
	}
}

// Each pairing that must not work says why, on the side that can know.
func TestTLSRefusals(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := func(t *testing.T) func(*Options) { return withTLS(ca.issue(t.TempDir(), nil)) }
	with := func(change func(*x509.Certificate)) func(t *testing.T) func(*Options) {
		return func(t *testing.T) func(*Options) { return withTLS(ca.issue(t.TempDir(), change)) }
	}
	plain := func(t *testing.T) func(*Options) { return nil }
	for _, test := range []struct {
		name           string
		dialer, dialed func(t *testing.T) func(*Options)
		want           string // what the dialer's status says
		certificate    bool   // it is a CertificateError
	}{
		{"wrong CA of the dialed", good, func(t *testing.T) func(*Options) { return withTLS(other.issue(t.TempDir(), nil)) },
			"is not signed by our CA", true},
		{"expired dialed", good, with(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
			"is expired or not yet valid", true},
		{"expired dialer", with(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), good,
			"expired certificate", true},
		{"wrong CA of the dialer", func(t *testing.T) func(*Options) {
			conf := other.issue(t.TempDir(), nil)
			if err := os.WriteFile(conf.CAFile, ca.pem, 0o600); err != nil {
				t.Fatal(err)
			}
			return withTLS(conf)
		}, good, "remote error: tls: unknown certificate authority", true},
		{"other name", good, with(func(c *x509.Certificate) { c.IPAddresses = nil; c.DNSNames = []string{"elsewhere"} }),
			"is for another name", true},
		{"not for clients", with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), good,
			"remote error: tls:", true},
		{"other member", good, with(identityURI(testGroup, 9)), "/9, not for member 2 of group", false},
		{"other member dials", with(identityURI(testGroup, 9)), good, "/9, not for member 1 of group", false},
		{"other group dials", with(identityURI(GroupID{9}, 1)), good, "not for member 1 of group", false},
		{"plaintext meets TLS", plain, good, "requires TLS, and this node is set to plaintext", false},
		{"TLS meets plaintext", good, plain, "speaks plaintext where TLS is required", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := startNode(t, 1, test.dialer(t)), startNode(t, 2, test.dialed(t))
			a.net.AddPeer(2, b.net.Addr())
			var err error // of the first attempt; there will be more
			a.waitFor("refusal", func() bool {
				err = a.net.Status()[0].Err
				return err != nil && err.Error() != "not connected yet"
			})
			if !strings.Contains(err.Error(), test.want) {
				t.Fatalf("refused by %q, want %q", err, test.want)
			}
			if e := (*CertificateError)(nil); errors.As(err, &e) != test.certificate {
				t.Errorf("%q is an error of certificates: %t", err, !test.certificate)
			}
			if a.times(a.refused, 2) != 0 {
				t.Fatal("a failed handshake counts as a dead process")
			}
		})
	}
}

// New files are used for new connections; files that cannot be used are not.
func TestCertificatesReload(t *testing.T) {
	old, fresh := newAuthority(t), newAuthority(t)
	dirA, dirB := t.TempDir(), t.TempDir()
	a, b := startNode(t, 1, withTLS(old.issue(dirA, nil))), startNode(t, 2, withTLS(old.issue(dirB, nil)))
	acquaint(t, a, b)
	time.Sleep(20 * time.Millisecond) // another modification time
	fresh.issue(dirA, nil)
	c := startNode(t, 3, withTLS(fresh.issue(t.TempDir(), nil)))
	a.net.AddPeer(3, c.net.Addr())
	c.net.AddPeer(1, a.net.Addr())
	a.waitFor("connection", func() bool { return a.connected[3] > 0 })
	c.waitFor("connection", func() bool { return c.connected[1] > 0 })
	b.net.AddPeer(3, c.net.Addr())
	b.waitFor("refusal", func() bool {
		err := b.net.Status()[1].Err
		return err != nil && strings.Contains(err.Error(), "not signed by our CA")
	})
	if err := os.WriteFile(filepath.Join(dirA, "cert.pem"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startNode(t, 4, withTLS(fresh.issue(t.TempDir(), nil)))
	a.net.AddPeer(4, d.net.Addr())
	a.waitFor("connection", func() bool { return a.connected[4] > 0 })
}

func TestTLSConfiguration(t *testing.T) {
	ca := newAuthority(t)
	conf := ca.issue(t.TempDir(), nil)
	opts := testOptions(1)
	opts.AllowPlaintext = false
	if _, err := New(opts, nil); err == nil || !strings.Contains(err.Error(), "no TLS is configured for the connections between nodes") {
		t.Errorf("without TLS: %v", err)
	}
	opts.AllowPlaintext, opts.TLS = true, conf
	if _, err := New(opts, nil); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("with both: %v", err)
	}
	opts.AllowPlaintext = false
	missing := *conf
	missing.CertFile = "/nonexistent/cert.pem"
	opts.TLS = &missing
	if _, err := New(opts, nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nonexistent/cert.pem") {
		t.Errorf("missing file: %v", err)
	}
	empty := *conf
	empty.CAFile = conf.KeyFile
	opts.TLS = &empty
	if _, err := New(opts, nil); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Errorf("CA without certificate: %v", err)
	}
}
