package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/server/auth/authtest"
)

// volume is a directory as Kubernetes makes it of a Secret: its files are links through one link to a
// directory, which is replaced at once.
type volume struct {
	t   testing.TB
	dir string
	n   int
}

func newVolume(t testing.TB) *volume { return &volume{t: t, dir: t.TempDir()} }

func (v *volume) path(name string) string { return filepath.Join(v.dir, name) }

func (v *volume) put(files map[string][]byte) {
	v.t.Helper()
	v.n++
	of := fmt.Sprintf("..%d", v.n)
	must := func(err error) {
		if err != nil {
			v.t.Fatal(err)
		}
	}
	must(os.Mkdir(v.path(of), 0o700))
	for name, text := range files {
		authtest.File(v.t, v.path(filepath.Join(of, name)), text)
		if v.n == 1 {
			must(os.Symlink(filepath.Join("..data", name), v.path(name)))
		}
	}
	must(os.Symlink(of, v.path("..new")))
	must(os.Rename(v.path("..new"), v.path("..data")))
}

// shake makes a connection. An error is the server's, or else the client's.
func shake(t testing.TB, server, client *tls.Config) (state tls.ConnectionState, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := tls.Dial("tcp", l.Addr().String(), client)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			_ = c.Close()
		}
		done <- err
	}()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := tls.Server(nc, server)
	err = s.Handshake()
	if err == nil {
		_, err = s.Write([]byte{1})
	}
	state = s.ConnectionState()
	if err != nil {
		_ = s.Close()
	}
	told := <-done
	_ = s.Close()
	return state, errors.Join(err, told)
}

type clock struct{ now time.Time }

func (c *clock) pass() { c.now = c.now.Add(reloadEvery) }

// TestReload: what the files say is taken over when it can be used, and until then what they said before
// stays, which is told once.
func TestReload(t *testing.T) {
	ca, other := authtest.NewAuthority(t, "ca"), authtest.NewAuthority(t, "other")
	first, second := ca.Issue(pkix.Name{CommonName: "first"}, nil), ca.Issue(pkix.Name{CommonName: "second"}, nil)
	app := ca.Issue(pkix.Name{CommonName: "app"}, nil)
	v := newVolume(t)
	files := func(cert, key, authorities []byte) map[string][]byte {
		return map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": authorities}
	}
	v.put(files(first.Cert, first.Key, ca.PEM()))
	var said bytes.Buffer
	c := &clock{time.Now()}
	s, err := OpenTLS(TLSOptions{CertFile: v.path("tls.crt"), KeyFile: v.path("tls.key"), CAFile: v.path("ca.crt"),
		Log: slog.New(slog.NewTextHandler(&said, nil)), Now: func() time.Time { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, shown *authtest.Certificate, app *authtest.Certificate, taken bool, lines int) {
		t.Helper()
		for range 3 {
			c.pass()
			state, err := shake(t, s.Config(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", GetClientCertificate: app.Show(t),
				VerifyConnection: func(s tls.ConnectionState) error {
					if !s.PeerCertificates[0].Equal(shown.X509) {
						return fmt.Errorf("%s: shown %v", what, s.PeerCertificates[0].Subject)
					}
					return nil
				}})
			if (err == nil) != taken {
				t.Errorf("%s: %v", what, err)
			}
			if taken && !(&Requirement{Kind: "SPECIFIED", Subject: "/CN=app"}).Met(new(ChannelOf(&state))) {
				t.Errorf("%s: %+v", what, ChannelOf(&state))
			}
		}
		if _, until := s.Valid(); !until.Equal(shown.X509.NotAfter) {
			t.Errorf("%s: until %v", what, until)
		}
		if got := strings.Count(said.String(), "\n"); got != lines {
			t.Errorf("%s: %d lines, not %d: %s", what, got, lines, said.String())
		}
		said.Reset()
	}
	stranger := other.Issue(pkix.Name{CommonName: "app"}, nil)
	late := ca.Issue(pkix.Name{CommonName: "app"}, authtest.Expired)
	check("at first", &first, &app, true, 0)
	check("of another authority", &first, &stranger, false, 0)
	check("expired", &first, &late, false, 0)
	check("none but for servers", &first, new(ca.Issue(pkix.Name{CommonName: "app"}, func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})), false, 0)
	v.put(files(second.Cert, first.Key, ca.PEM()))
	check("a certificate without its key", &first, &app, true, 1)
	v.put(files(second.Cert[:len(second.Cert)/2], second.Key, ca.PEM()))
	check("half a certificate", &first, &app, true, 1)
	v.put(files(second.Cert, second.Key, append(other.PEM(), ca.PEM()[:100]...)))
	check("half of the authorities", &first, &app, true, 1)
	v.put(files(second.Cert, second.Key, []byte("none")))
	check("no authority", &first, &app, true, 1)
	v.put(files(second.Cert, second.Key, ca.PEM()))
	check("the second", &second, &app, true, 1)
	if err := os.Rename(v.path("tls.key"), v.path("away")); err != nil {
		t.Fatal(err)
	}
	check("no key", &second, &app, true, 1)
	if err := os.Rename(v.path("away"), v.path("tls.key")); err != nil {
		t.Fatal(err)
	}
	check("the key again", &second, &app, true, 0)
	v.put(files(second.Cert, second.Key, other.PEM()))
	check("another authority", &second, &app, false, 1)
	check("its client", &second, &stranger, true, 0)
	v.put(files(first.Cert, first.Key, append(other.PEM(), ca.PEM()...)))
	check("both", &first, &app, true, 1)
}

// TestFingerprint: what was told of the certificate holds for as long as a session takes to be passed on.
func TestFingerprint(t *testing.T) {
	ca := authtest.NewAuthority(t, "ca")
	certFile, keyFile := new(ca.Issue(pkix.Name{}, nil)).Write(t, t.TempDir(), "server")
	c := &clock{time.Now()}
	s, err := OpenTLS(TLSOptions{CertFile: certFile, KeyFile: keyFile, Now: func() time.Time { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		new(ca.Issue(pkix.Name{}, nil)).Write(t, filepath.Dir(certFile), "server")
		c.now = c.now.Add(time.Duration(i) * time.Second / 2)
		print := s.Fingerprint()
		c.now = c.now.Add(announcedFor - 1)
		if _, err := shake(t, s.Config(), Pinned(print)); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := shake(t, s.Config(), Pinned(make([]byte, 32))); err == nil {
		t.Error("another certificate was taken")
	}
}

func TestRevoked(t *testing.T) {
	ca, other := authtest.NewAuthority(t, "ca"), authtest.NewAuthority(t, "ca") // of one name
	good, bad := ca.Issue(pkix.Name{CommonName: "good"}, nil), ca.Issue(pkix.Name{CommonName: "bad"}, nil)
	dir, later, before := t.TempDir(), time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	join := func(lists ...[]byte) []byte { return bytes.Join(lists, nil) }
	for _, c := range []struct {
		what      string
		list      []byte
		good, bad bool
	}{
		{"nothing is revoked", ca.Revoke(later), true, true},
		{"one is", ca.Revoke(later, bad), true, false},
		{"a list that ended", ca.Revoke(before, bad), false, false},
		{"a new one beside it", join(ca.Revoke(before), ca.Revoke(later, bad)), true, false},
		{"an older one behind it", join(ca.Revoke(later, bad), ca.Revoke(later)), true, false},
		{"another authority's", other.Revoke(later, good), false, false},
		{"one of users", ca.RevokeSome(later, []byte{0x30, 3, 0x81, 1, 0xff}, bad), true, false},
		{"one with a place", ca.RevokeSome(later, []byte{0x30, 9, 0xa0, 7, 0xa0, 5, 0x86, 3, 'u', ':', 'x'}, bad), true, false},
		{"both authorities'", join(other.Revoke(later, good), ca.Revoke(later, bad)), true, false},
	} {
		s, err := OpenTLS(TLSOptions{Name: "localhost", CAFile: authtest.File(t, filepath.Join(dir, "ca"), ca.PEM()),
			CRLFile: authtest.File(t, filepath.Join(dir, "crl"), c.list)})
		if err != nil {
			t.Fatal(c.what, err)
		}
		for app, want := range map[*authtest.Certificate]bool{&good: c.good, &bad: c.bad} {
			if _, err := shake(t, s.Config(), &tls.Config{InsecureSkipVerify: true, GetClientCertificate: app.Show(t)}); (err == nil) != want { //nolint:gosec // made by itself
				t.Errorf("%s: %v: %v", c.what, app.X509.Subject, err)
			}
		}
		if _, err := shake(t, s.Config(), &tls.Config{InsecureSkipVerify: true}); err != nil { //nolint:gosec // made by itself
			t.Errorf("%s: without a certificate: %v", c.what, err)
		}
	}
	for _, text := range []string{"", string(ca.PEM()), string(ca.Revoke(later)[:50]), string(ca.RevokeSome(later, []byte{0x30, 3, 0x82, 1, 0xff})), // of authorities alone
		string(ca.RevokeSome(later, []byte{0x30, 3, 0x84, 1, 0xff})), string(ca.RevokeSome(later, []byte{0x30, 4, 0x83, 2, 1, 0x40})), string(ca.RevokeSome(later, []byte{1, 2}))} {
		if _, err := OpenTLS(TLSOptions{Name: "x", CAFile: filepath.Join(dir, "ca"), CRLFile: authtest.File(t, filepath.Join(dir, "crl"), []byte(text))}); err == nil {
			t.Errorf("%q is a list", text)
		}
	}
}

func TestTLSVersions(t *testing.T) {
	for _, c := range []struct{ least, most, client, want uint16 }{
		{0, 0, 0, tls.VersionTLS13}, {tls.VersionTLS12, tls.VersionTLS12, 0, tls.VersionTLS12}, {tls.VersionTLS13, tls.VersionTLS13, tls.VersionTLS12, 0},
		{0, 0, tls.VersionTLS11, 0}, {tls.VersionTLS12, tls.VersionTLS13, tls.VersionTLS12, tls.VersionTLS12},
	} {
		s, err := OpenTLS(TLSOptions{Name: "localhost", MinVersion: c.least, MaxVersion: c.most})
		if err != nil {
			t.Fatal(err)
		}
		state, err := shake(t, s.Config(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: c.client}) //nolint:gosec // on purpose
		if got := state.Version; got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%+v: %#x, %v", c, got, err)
		}
	}
}
