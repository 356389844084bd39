package mysqlwire

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/auth/authtest"
)

// TestMismatch: a client that speaks TLS where there is none, or does not where it has to, hears so.
func TestMismatch(t *testing.T) {
	var required atomic.Bool
	r := serve(t, func(o *Options, _ *fake) { o.RequireTLS = required.Load })
	mode := func(addr, mode string) error {
		return r.db(t, func(c *mysql.Config) { c.Addr, c.TLSConfig = addr, mode }).Ping()
	}
	for _, addr := range []string{r.addr, r.ro} {
		for _, require := range []bool{false, true, false} {
			required.Store(require) // as SET GLOBAL does
			want := uint16(0)
			if require {
				want = 3159
			}
			if err := mode(addr, "false"); number(err) != want || want == 0 && err != nil {
				t.Errorf("required=%v, a client without: %v", require, err)
			}
			if err := mode(addr, "skip-verify"); err != nil {
				t.Errorf("required=%v, a client with: %v", require, err)
			}
		}
	}
	without := serve(t, func(o *Options, _ *fake) { o.TLS = nil })
	if err := mode(without.addr, "skip-verify"); err == nil || !strings.Contains(err.Error(), "TLS requested but server does not support TLS") {
		t.Errorf("a client that wants TLS: %v", err)
	}
	if err := mode(without.addr, "preferred"); err != nil {
		t.Errorf("a client that likes TLS: %v", err)
	}
	c := dialRaw(t, without.addr) // one that does not look at what is offered
	c.send(appendResponse(nil, &response{capabilities: rawCaps | capSSL, plugin: PluginSHA2})[:32])
	c.wantError(1043)
}

// TestReloadUnderConnections: connections that stand keep what they began with, new ones find what the files
// say by then, and none fails on the way.
func TestReloadUnderConnections(t *testing.T) {
	ca, other := authtest.NewAuthority(t, "ca"), authtest.NewAuthority(t, "other")
	dir := t.TempDir()
	certFile, keyFile := new(ca.Issue(pkix.Name{}, nil)).Write(t, dir, "server")
	caFile := authtest.File(t, dir+"/ca.pem", ca.PEM())
	var now atomic.Int64
	now.Store(time.Now().UnixNano())
	s, err := auth.OpenTLS(auth.TLSOptions{CertFile: certFile, KeyFile: keyFile, CAFile: caFile,
		Now: func() time.Time { return time.Unix(0, now.Load()) }})
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, func(o *Options, _ *fake) { o.TLS = s.Config })
	app := ca.Issue(pkix.Name{CommonName: "app"}, nil)
	open := func(trusted *authtest.Authority) *sql.DB {
		return r.db(t, func(c *mysql.Config) {
			c.TLS = &tls.Config{RootCAs: trusted.Pool(), ServerName: "localhost", GetClientCertificate: app.Show(t)}
		})
	}
	connect := func(trusted *authtest.Authority) error {
		db := open(trusted)
		defer db.Close()
		return db.Ping()
	}
	stands := open(ca)
	stands.SetMaxOpenConns(1)
	if err := stands.Ping(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		authority, before := ca, other
		if i%2 == 0 {
			authority, before = other, ca
		}
		authtest.File(t, keyFile, []byte("half")) // as it is being written
		now.Add(int64(time.Minute))
		if err := connect(before); err != nil {
			t.Errorf("%d, before: %v", i, err)
		}
		new(authority.Issue(pkix.Name{}, nil)).Write(t, dir, "server")
		now.Add(int64(time.Minute))
		if err := connect(authority); err != nil {
			t.Errorf("%d, after: %v", i, err)
		}
		if err := connect(before); err == nil {
			t.Errorf("%d: the certificate of before is shown", i)
		}
		if got := one(t, stands, fmt.Sprint("echo ", i)); got != fmt.Sprint(i) {
			t.Errorf("%d: the connection that stands: %q", i, got)
		}
	}
	authtest.File(t, caFile, other.PEM())
	now.Add(int64(time.Minute))
	if err := connect(ca); err == nil {
		t.Error("a certificate whose authority is taken back")
	}
	if err := stands.Ping(); err != nil {
		t.Error(err)
	}
}

// TestChangeUserElsewhere: what an account requires is looked at in the client's own connection, and its host
// is where that comes from, though another member carries it here.
func TestChangeUserElsewhere(t *testing.T) {
	accounts := accounts{"empty": testAccounts["empty"],
		"ssl":   {User: "ssl", Host: "%", Plugin: PluginSHA2, Require: auth.Requirement{Kind: "ANY"}},
		"x509":  {User: "x509", Host: "%", Plugin: PluginSHA2, Require: auth.Requirement{Kind: "X509"}},
		"named": {User: "named", Host: "%", Plugin: PluginSHA2, Require: auth.Requirement{Kind: "SPECIFIED", Subject: "/CN=app", Issuer: "/CN=ca"}}}
	a, err := auth.New(auth.Options{Source: accounts, DelayMax: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	announced := map[string]*Handover{}
	r := serve(t, func(o *Options, _ *fake) {
		o.Auth, o.Redeem = a, func(ticket []byte) *Handover { return announced[string(ticket)] }
	})
	for _, tc := range []struct {
		what             string
		client           auth.Channel
		ssl, x509, named bool
	}{
		{"without TLS", auth.Channel{}, false, false, false},
		{"TLS", auth.Channel{Cipher: "c"}, true, false, false},
		{"a certificate", auth.Channel{Cipher: "c", Certified: true, Subject: "/CN=x", Issuer: "/CN=ca"}, true, true, false},
		{"the certificate", auth.Channel{Cipher: "c", Certified: true, Subject: "/CN=app", Issuer: "/CN=ca"}, true, true, true},
	} {
		for user, want := range map[string]bool{"empty": true, "ssl": tc.ssl, "x509": tc.x509, "named": tc.named} {
			announced["t"] = &Handover{ID: 1, User: "empty", Host: "10.9.9.9", Address: "10.9.9.9", AccountUser: "empty", AccountHost: "%",
				TLS: tc.client.Cipher, Certified: tc.client.Certified, Subject: tc.client.Subject, Issuer: tc.client.Issuer}
			c := dialRaw(t, r.addr)
			c.send(appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "empty", auth: []byte("t"), plugin: pluginMember}))
			if p := c.read(); p[0] != headerOK {
				t.Fatalf("the ticket: %q", p)
			}
			c.becomes(user)
			if !want {
				c.wantError(1045)
				continue
			}
			if p := c.read(); p[0] != headerOK {
				t.Errorf("%s, %s: %q", tc.what, user, p)
				continue
			}
			c.command(append([]byte{byte(comQuery)}, "who"...)...)
			c.read() // columns
			c.read()
			c.read() // EOF
			if got := string(c.read()); !strings.Contains(got, user+"@10.9.9.9 as "+user+"@% ") {
				t.Errorf("%s, %s: %q", tc.what, user, got)
			}
		}
	}
}

// helloes are what a client says first by TLS, whole and in parts.
func helloes(t *testing.T) map[string][]byte {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := tls.Client(near, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it goes nowhere
	go func() { _ = c.Handshake() }()
	hello := make([]byte, 1<<14)
	n, err := far.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	hello = hello[:n]
	return map[string][]byte{"a byte of a hello": hello[:1], "a header of a hello": hello[:5], "half a hello": hello[:n/2], "a hello, and no more": hello,
		"a hello, and garbage": append(hello[:n:n], strings.Repeat("\x16\x03\x03\x00\x05xxxxx", 100)...)}
}
