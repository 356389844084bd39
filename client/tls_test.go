package client_test

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/server/auth/authtest"
)

// TestClientCertificate: a certificate that an account REQUIREs is taken from files, also by database/sql, and
// follows its renewal.
func TestClientCertificate(t *testing.T) {
	ca, other, dir := authtest.NewAuthority(t, "ca"), authtest.NewAuthority(t, "other"), t.TempDir()
	issue := func(name, subject string, by *authtest.Authority) client.TLSFiles {
		cert, key := new(by.Issue(pkix.Name{CommonName: subject}, nil)).Write(t, dir, name)
		return client.TLSFiles{CA: dir + "/ca.pem", Cert: cert, Key: key}
	}
	authtest.File(t, dir+"/ca.pem", ca.PEM())
	server, app := issue("server", "server", ca), issue("app", "app", ca)
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf("127.0.0.1:%d", port)
	n, err := start(filepath.Join(dir, "data"), []string{self}, self, "--ssl-cert="+server.Cert, "--ssl-key="+server.Key, "--ssl-ca="+server.CA)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(n) })
	open := func(user string, f client.TLSFiles, patience time.Duration) (*client.DB, error) {
		c, err := f.Config()
		if err != nil {
			t.Fatal(err)
		}
		db, err := client.Open(ctx, client.Options{Addrs: []string{n.GRPCAddr()}, User: user, Password: "secret", TLS: c, Patience: patience})
		if err == nil {
			t.Cleanup(func() { _ = db.Close() })
			_, err = db.Exec(ctx, "DO 1")
		}
		return db, err
	}
	root, err := open("root", client.TLSFiles{CA: server.CA}, patience)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Exec(ctx, "CREATE USER app IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=app' AND ISSUER '/CN=ca'"); err != nil {
		t.Fatal(err)
	}
	if _, err := open("app", app, patience); err != nil {
		t.Error(err)
	}
	for what, f := range map[string]client.TLSFiles{"none": {CA: server.CA}, "another": server} {
		if _, err := open("app", f, patience); number(err) != 1045 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := open("app", issue("stranger", "app", other), time.Second); err == nil || number(err) == 1045 {
		t.Errorf("another authority: %v", err)
	}
	source := fmt.Sprintf("trireme://app:secret@%s/?ca=%s&cert=%s&key=%s", n.GRPCAddr(), url.QueryEscape(app.CA), url.QueryEscape(app.Cert), url.QueryEscape(app.Key))
	for range 2 {
		db, err := sql.Open("trireme", source)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Ping(); err != nil {
			t.Error(err)
		}
		_ = db.Close()
		issue("app", "app", ca)
	}
	c, err := app.Config()
	if err != nil {
		t.Fatal(err)
	}
	before, _ := c.GetClientCertificate(nil)
	authtest.File(t, app.Key, []byte("half"))
	while, err := c.GetClientCertificate(nil)
	issue("app", "app", ca)
	after, _ := c.GetClientCertificate(nil)
	if err != nil || while != before || string(after.Certificate[0]) == string(before.Certificate[0]) {
		t.Error("the certificate while it is renewed, and then:", err, while == before)
	}
	for bad, want := range map[string]string{"tls=false&ca=x": "go with TLS", "cert=x": "belong together", "ca=/no/such": "no such file", "ca=" + app.Key: "has no certificate",
		"cert=/no/such&key=/no/such": "no such file"} {
		if _, err := sql.Open("trireme", "trireme://u:p@h:1/?"+bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestTLSMismatch: a client hears at once that it and the nodes cannot agree on TLS, as long as there is no other node.
func TestTLSMismatch(t *testing.T) {
	bare := func(name string, settings ...string) string {
		t.Helper()
		port, err := ports.Free()
		if err != nil {
			t.Fatal(err)
		}
		self := fmt.Sprintf("127.0.0.1:%d", port)
		n, err := start(filepath.Join(t.TempDir(), name), []string{self}, self, settings...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(n) })
		return n.GRPCAddr()
	}
	without, strict := bare("without", "--auto-generate-certs=OFF"), bare("strict", "--require-secure-transport=ON")
	unbelieved, lax := &tls.Config{ServerName: "elsewhere"}, &tls.Config{InsecureSkipVerify: true}
	for _, c := range []struct {
		what  string
		addrs []string
		tls   *tls.Config
		want  uint16
	}{
		{"a certificate that nobody has signed", []string{address}, unbelieved, 2026},
		{"a node without TLS", []string{without}, lax, 2026},
		{"both", []string{without, address}, unbelieved, 2026},
		{"a node that wants TLS", []string{strict}, nil, 3159},
		{"another node", []string{without, address}, lax, 0},
	} {
		db, err := client.Open(ctx, client.Options{Addrs: c.addrs, User: "root", Password: "secret", TLS: c.tls, Patience: patience})
		if err == nil {
			_ = db.Close()
		}
		if number(err) != c.want {
			t.Errorf("%s: %v, not %d", c.what, err, c.want)
		}
	}
}
