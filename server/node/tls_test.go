package node_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth/authtest"
)

// handshake stands for a client that is let go before anybody asks who it is.
const handshake = -1

// door is a way in: the number of the error that a client hears, 0, or handshake.
type door func(t *testing.T, user, password string, c *tls.Config) int

func mysqlDoor(addr string) door {
	return func(t *testing.T, user, password string, c *tls.Config) int {
		o := mysql.NewConfig()
		o.User, o.Passwd, o.Net, o.Addr, o.TLS, o.Timeout = user, password, "tcp", addr, c, patience
		connector, err := mysql.NewConnector(o)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		var told *mysql.MySQLError
		switch err := db.Ping(); {
		case err == nil:
			return 0
		case errors.As(err, &told):
			return int(told.Number)
		}
		return handshake
	}
}

func grpcDoor(addr string) door {
	return func(t *testing.T, user, password string, c *tls.Config) int {
		creds := insecure.NewCredentials()
		if c != nil {
			creds = credentials.NewTLS(c)
		}
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(as(user, password), patience)
		defer cancel()
		_, err = pb.NewSqlClient(conn).Execute(ctx, &pb.SqlExecuteRequest{ReadOnly: true, Statement: &pb.SqlStatement{Text: "SELECT 1"}})
		if err == nil {
			return 0
		}
		if n := int(detail(err).Number); n != 0 {
			return n
		}
		return handshake
	}
}

func consoleDoor(addr string) door {
	return func(t *testing.T, user, password string, c *tls.Config) int {
		scheme, transport := "http", &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
		if c != nil {
			scheme = "https"
		}
		defer transport.CloseIdleConnections()
		body, _ := json.Marshal(map[string]string{"user": user, "password": password})
		r, err := (&http.Client{Transport: transport, Timeout: patience}).Post(scheme+"://"+addr+"/console/api/sign-in", "application/json", bytes.NewReader(body))
		if err != nil {
			return handshake
		}
		defer r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return 0
		}
		var told struct{ Error struct{ Number int } }
		if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
			t.Fatal(err)
		}
		return told.Error.Number
	}
}

// TestReloadTLS: what the files say is shown at once at each door, and files that cannot be used change nothing.
func TestReloadTLS(t *testing.T) {
	before, after, dir := authtest.NewAuthority(t, "before"), authtest.NewAuthority(t, "after"), t.TempDir()
	certFile, keyFile := new(before.Issue(pkix.Name{}, nil)).Write(t, dir, "server")
	peer := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	m, err := start(t, append(args(t, t.TempDir(), []string{peer}, peer), "--ssl-cert="+certFile, "--ssl-key="+keyFile))
	if err != nil {
		t.Fatal(err)
	}
	root := open(t, m.MainAddr())
	eventually(t, "log in", root.Ping)
	execAll(t, root, "CREATE USER free IDENTIFIED BY 'p'")
	doors := map[string]door{"MySQL": mysqlDoor(m.MainAddr()), "reads": mysqlDoor(m.ReadAddr()), "gRPC": grpcDoor(m.GRPCAddr()), "console": consoleDoor(m.HTTPAddr())}
	shown := func(when string, by, notBy *authtest.Authority) {
		t.Helper()
		for name, enter := range doors {
			if got := enter(t, "free", "p", &tls.Config{RootCAs: by.Pool(), ServerName: "localhost"}); got != 0 {
				t.Errorf("%s, %s: %d", when, name, got)
			}
			if got := enter(t, "free", "p", &tls.Config{RootCAs: notBy.Pool(), ServerName: "localhost"}); got != handshake {
				t.Errorf("%s, %s with the other certificate: %d", when, name, got)
			}
		}
	}
	shown("at first", before, after)
	execAll(t, root, "ALTER INSTANCE RELOAD TLS")
	shown("nothing new", before, after)
	authtest.File(t, keyFile, []byte("no key"))
	var told *mysql.MySQLError
	if _, err := root.Exec("ALTER INSTANCE RELOAD TLS"); !errors.As(err, &told) || told.Number != 3888 || !strings.Contains(told.Message, keyFile) {
		t.Errorf("a bad key: %v", err)
	}
	shown("with a bad key", before, after)
	new(after.Issue(pkix.Name{}, nil)).Write(t, dir, "server")
	execAll(t, root, "ALTER INSTANCE RELOAD TLS")
	shown("with new files", after, before)
}

// TestClientCertificates: at each door a certificate has to be one of ssl_ca's authorities if it is shown, an
// account that REQUIREs one lets nobody in without, and the password is asked for in any case.
func TestClientCertificates(t *testing.T) {
	ca, other, dir := authtest.NewAuthority(t, "ca"), authtest.NewAuthority(t, "other"), t.TempDir()
	certFile, keyFile := new(ca.Issue(pkix.Name{}, nil)).Write(t, dir, "server")
	revoked := ca.Issue(pkix.Name{CommonName: "app"}, nil)
	peer := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	m, err := start(t, append(args(t, t.TempDir(), []string{peer}, peer), "--ssl-cert="+certFile, "--ssl-key="+keyFile,
		"--ssl-ca="+authtest.File(t, dir+"/ca.pem", ca.PEM()), "--ssl-crl="+authtest.File(t, dir+"/crl.pem", ca.Revoke(time.Now().Add(time.Hour), revoked))))
	if err != nil {
		t.Fatal(err)
	}
	root := open(t, m.MainAddr())
	eventually(t, "log in", root.Ping)
	execAll(t, root, "CREATE USER secret IDENTIFIED BY 'p' REQUIRE SSL", "CREATE USER x509 IDENTIFIED BY 'p' REQUIRE X509",
		"CREATE USER named IDENTIFIED WITH mysql_native_password BY 'p' REQUIRE SUBJECT '/O=Example/CN=app' AND ISSUER '/CN=ca'",
		"CREATE USER other IDENTIFIED BY 'p' REQUIRE SUBJECT '/CN=other'", "CREATE USER free IDENTIFIED BY 'p'",
		"CREATE USER weak IDENTIFIED BY 'p' REQUIRE CIPHER 'DES-CBC3-SHA'")
	client := func(show *authtest.Certificate) *tls.Config {
		c := &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}
		if show != nil {
			c.GetClientCertificate = show.Show(t)
		}
		return c
	}
	app := pkix.Name{Organization: []string{"Example"}, CommonName: "app"}
	good, late, stranger := ca.Issue(app, nil), ca.Issue(app, authtest.Expired), other.Issue(app, nil)
	early := ca.Issue(app, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	named := ca.Issue(pkix.Name{CommonName: "eve/O=Example/CN=app"}, nil)
	const no = 1045
	clients := []struct {
		what                   string
		tls                    *tls.Config
		free, ssl, x509, named int
	}{
		{"without TLS", nil, 0, no, no, no},
		{"no certificate", client(nil), 0, 0, no, no},
		{"the certificate", client(&good), 0, 0, 0, 0},
		{"another name", client(&named), 0, 0, 0, no},
		{"another authority", client(&stranger), handshake, handshake, handshake, handshake},
		{"expired", client(&late), handshake, handshake, handshake, handshake},
		{"not yet valid", client(&early), handshake, handshake, handshake, handshake},
		{"revoked", client(&revoked), handshake, handshake, handshake, handshake},
		{"another server is wanted", &tls.Config{RootCAs: other.Pool(), ServerName: "localhost"}, handshake, handshake, handshake, handshake},
	}
	for name, enter := range map[string]door{"MySQL": mysqlDoor(m.MainAddr()), "reads": mysqlDoor(m.ReadAddr()), "gRPC": grpcDoor(m.GRPCAddr()), "console": consoleDoor(m.HTTPAddr())} {
		t.Run(name, func(t *testing.T) {
			for _, c := range clients {
				for user, want := range map[string]int{"free": c.free, "secret": c.ssl, "x509": c.x509, "named": c.named} {
					if got := enter(t, user, "p", c.tls); got != want {
						t.Errorf("%s: %s: %d, not %d", c.what, user, got, want)
					}
				}
			}
			if got := enter(t, "named", "guess", client(&good)); got != no {
				t.Errorf("a wrong password with the certificate: %d", got)
			}
			for _, user := range []string{"other", "weak"} {
				if got := enter(t, user, "p", client(&good)); got != no {
					t.Errorf("%s: %d", user, got)
				}
			}
		})
	}
	var shown, cipher string
	as := mysql.NewConfig()
	as.User, as.Passwd, as.Net, as.Addr, as.TLS = "x509", "p", "tcp", m.MainAddr(), client(&good)
	connector, err := mysql.NewConnector(as)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := db.QueryRow("SHOW STATUS LIKE 'Current_tls_ca'").Scan(&shown, &shown); err != nil || shown != dir+"/ca.pem" {
		t.Errorf("Current_tls_ca is %q: %v", shown, err)
	}
	if err := db.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&shown, &cipher); err != nil || !strings.HasPrefix(cipher, "TLS_") {
		t.Errorf("Ssl_cipher is %q: %v", cipher, err)
	}
	// Only TLS from now on, until it is taken back.
	execAll(t, root, "SET GLOBAL require_secure_transport = ON")
	for name, enter := range map[string]door{"MySQL": mysqlDoor(m.MainAddr()), "gRPC": grpcDoor(m.GRPCAddr()), "console": consoleDoor(m.HTTPAddr())} {
		if plain, secret := enter(t, "free", "p", nil), enter(t, "free", "p", client(nil)); plain != 3159 || secret != 0 {
			t.Errorf("%s where TLS is required: %d without, %d with", name, plain, secret)
		}
	}
	execAll(t, root, "SET GLOBAL require_secure_transport = OFF", fmt.Sprintf("ALTER USER weak REQUIRE CIPHER '%s'", cipher))
	if got := mysqlDoor(m.MainAddr())(t, "weak", "p", client(nil)); got != 0 {
		t.Errorf("the cipher that is required: %d", got)
	}
	if got := mysqlDoor(m.MainAddr())(t, "free", "p", nil); got != 0 {
		t.Errorf("TLS is required no more: %d", got)
	}
	holds(t, m.HTTPAddr(), client(&good), client(nil))
}

// TestCertificateElsewhere: who dials a member that does not lead shows that one the certificate, and the session is
// the leader's all the same.
func TestCertificateElsewhere(t *testing.T) {
	ca, dir := authtest.NewAuthority(t, "ca"), t.TempDir()
	certFile, keyFile := new(ca.Issue(pkix.Name{}, nil)).Write(t, dir, "server")
	var said heardLog
	members := loggedGroup(t, &said, "--ssl-cert="+certFile, "--ssl-key="+keyFile, "--ssl-ca="+authtest.File(t, dir+"/ca.pem", ca.PEM()), "--initial-root-password=secret")
	root := open(t, members[0].MainAddr())
	eventually(t, "log in", root.Ping)
	execAll(t, root, "CREATE USER app IDENTIFIED BY 'p' REQUIRE SUBJECT '/CN=app'")
	app := ca.Issue(pkix.Name{CommonName: "app"}, nil)
	for _, m := range members {
		o := mysql.NewConfig()
		o.User, o.Passwd, o.Net, o.Addr = "app", "p", "tcp", m.MainAddr()
		o.TLS = &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", GetClientCertificate: app.Show(t)}
		connector, err := mysql.NewConnector(o)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		var name, version string
		eventually(t, "log in with the certificate", func() error { return db.QueryRow("SHOW STATUS LIKE 'Ssl_version'").Scan(&name, &version) })
		if version != "TLSv1.3" {
			t.Errorf("%s: %q", m.MainAddr(), version)
		}
		if got := mysqlDoor(m.MainAddr())(t, "app", "p", &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"}); got != 1045 {
			t.Errorf("%s, without the certificate: %d", m.MainAddr(), got)
		}
	}
}

// holds looks whether a sign-in of the console is worth nothing in a connection without the certificate.
func holds(t *testing.T, addr string, with, without *tls.Config) {
	t.Helper()
	do := func(c *tls.Config, method, path, body, cookie string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequest(method, "https://"+addr+"/console/api/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Cookie", cookie)
		transport := &http.Transport{TLSClientConfig: c}
		defer transport.CloseIdleConnections()
		r, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return r, string(text)
	}
	r, text := do(with, "POST", "sign-in", `{"user":"x509","password":"p"}`, "")
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	if r.StatusCode != 200 {
		t.Fatal(text)
	}
	if r, text := do(with, "GET", "session", "", cookie); r.StatusCode != 200 {
		t.Errorf("with the certificate: %s", text)
	}
	if r, text := do(without, "GET", "session", "", cookie); r.StatusCode != 401 {
		t.Errorf("without the certificate: %d, %s", r.StatusCode, text)
	}
}

// TestHTTPHandshakesEnd: connections of the HTTP port that begin and do not go on end.
func TestHTTPHandshakesEnd(t *testing.T) {
	m := group(t, 1)[0]
	var all []net.Conn
	for _, said := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "GET / HTTP/1.1\r\nHost:"} {
		nc, err := net.Dial("tcp", m.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_ = nc.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(nc, said); err != nil {
			t.Fatal(err)
		}
		all = append(all, nc)
	}
	for i, nc := range all {
		if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d stays", i)
		}
	}
}
