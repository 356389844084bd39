package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/server/auth/authtest"
)

// TestSSLOptions: sql and admin look at the server's certificate, and show their own, as the mysql client does.
func TestSSLOptions(t *testing.T) {
	ca, other, dir := authtest.NewAuthority(t, "ca"), authtest.NewAuthority(t, "other"), t.TempDir()
	cert, key := new(ca.Issue(pkix.Name{}, func(c *x509.Certificate) { c.IPAddresses = nil })).Write(t, dir, "server") // for localhost alone
	cas := map[string]string{"ca": authtest.File(t, dir+"/ca.pem", ca.PEM()), "other": authtest.File(t, dir+"/other.pem", other.PEM())}
	for name, authority := range map[string]*authtest.Authority{"app": ca, "stranger": other} {
		new(authority.Issue(pkix.Name{CommonName: "app"}, nil)).Write(t, dir, name)
	}
	n, _, password := alone(t, "--ssl-cert="+cert, "--ssl-key="+key, "--ssl-ca="+cas["ca"])
	_, port, err := net.SplitHostPort(n.MainAddr())
	if err != nil {
		t.Fatal(err)
	}
	_, programs, err := net.SplitHostPort(n.GRPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	sql := func(host, user, options, text string) (int, string) {
		args := append([]string{"sql", "--host", host, "--port", port, "--user", user, "--password-file", password}, strings.Fields(options)...)
		return quiet(t, append(args, "-e", text)...)
	}
	admin := func(host, user, options string) (int, string) {
		args := append([]string{"admin", "--grpc", net.JoinHostPort(host, programs), "--user", user, "--password-file", password}, strings.Fields(options)...)
		return quiet(t, append(args, "status")...)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, out := sql("localhost", "root", "", "CREATE USER app IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=app'; GRANT ALL ON *.* TO app")
		if code == 0 {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(out)
		}
	}
	mine := "--ssl-cert " + filepath.Join(dir, "app.pem") + " --ssl-key " + filepath.Join(dir, "app-key.pem")
	foreign := strings.ReplaceAll(mine, "app", "stranger")
	for _, tc := range []struct {
		host, user, options string
		code                int
		want                string // of an error
	}{
		{"localhost", "root", "", 0, ""},
		{"localhost", "root", "--ssl-mode DISABLED", 0, ""},
		{"localhost", "root", "--ssl-mode required", 0, ""},
		{"localhost", "root", "--ssl-ca " + cas["ca"], 0, ""},
		{"127.0.0.1", "root", "--ssl-ca " + cas["ca"], 0, ""}, // VERIFY_CA: whatever the name
		{"127.0.0.1", "root", "--ssl-mode VERIFY_IDENTITY --ssl-ca " + cas["ca"], 1, "127.0.0.1"},
		{"localhost", "root", "--ssl-mode VERIFY_IDENTITY --ssl-ca " + cas["ca"], 0, ""},
		{"localhost", "root", "--tls verify --ssl-ca " + cas["ca"], 0, ""},
		{"localhost", "root", "--ssl-ca " + cas["other"], 1, "unknown authority"},
		{"localhost", "root", "--ssl-mode REQUIRED --ssl-ca " + cas["other"], 0, ""},
		{"localhost", "root", "--ssl-mode VERIFY_CA", 1, "unknown authority"},
		{"localhost", "app", "", 1, "1045 (28000)"},
		{"localhost", "app", "--ssl-mode REQUIRED", 1, "1045 (28000)"},
		{"localhost", "app", mine, 0, ""},
		{"localhost", "app", mine + " --ssl-mode VERIFY_IDENTITY --ssl-ca " + cas["ca"], 0, ""},
		{"localhost", "app", foreign, 1, "invalid connection"},
	} {
		if code, out := sql(tc.host, tc.user, tc.options, "SELECT 1"); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("trireme sql, %s at %s, %s: %d, not %d: %s", tc.user, tc.host, tc.options, code, tc.code, out)
		}
		if tc.want == "invalid connection" { // all that the driver tells
			tc.want = "does not answer"
		}
		if code, out := admin(tc.host, tc.user, tc.options); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("trireme admin, %s at %s, %s: %d, not %d: %s", tc.user, tc.host, tc.options, code, tc.code, out)
		}
	}
}
