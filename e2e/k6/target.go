package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers"
)

const (
	schema   = "trireme_load" // as the scripts have it
	patience = servers.Patience

	user     = "loader" // in a group that is started here
	password = "lo:ad \\ ż'"
)

// target is the group that is loaded.
type target struct {
	group *servers.Group // nil: somebody else's
	db    *client.DB     // as who loads it
	addrs []string
}

// newTarget starts a group, or finds that which the environment names.
func newTarget(ctx context.Context, c *config, dir string) (_ *target, err error) {
	t := &target{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	o := client.Options{User: os.Getenv("USERNAME"), Password: os.Getenv("PASSWORD"), Program: "load", Patience: patience}
	if c.address == "" {
		if err := t.start(dir); err != nil {
			return nil, err
		}
		o.User, o.Password = user, password
	} else {
		t.addrs = strings.Split(c.address, ",")
		if o.User == "" {
			o.User = "root"
		}
		if o.TLS, err = tlsOf(os.Getenv("TLS"), os.Getenv("CA"), os.Getenv("CERT"), os.Getenv("KEY")); err != nil {
			return nil, err
		}
	}
	o.Addrs = t.addrs
	t.db, err = client.Open(ctx, o)
	return t, err
}

// tlsOf is what the variables TLS, CA, CERT and KEY say, the last three files.
func tlsOf(mode, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{}
	switch mode {
	case "", "false":
		return nil, nil
	case "skip-verify":
		c.InsecureSkipVerify = true
	case "true":
	default:
		return nil, fmt.Errorf("TLS is to be false, true or skip-verify, not %q", mode)
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA: %s has no certificate", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// start starts a group and makes the user.
func (t *target) start(dir string) (err error) {
	if t.group, err = servers.Launch(servers.Options{Dir: dir, Nodes: 3}, patience); err != nil {
		return err
	}
	for _, n := range t.group.Nodes {
		t.addrs = append(t.addrs, fmt.Sprintf("127.0.0.1:%d", n.GRPC))
	}
	db, err := sql.Open("mysql", t.group.Nodes[0].DSN("", func(c *mysql.Config) { c.InterpolateParams = true }))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec("CREATE USER "+user+" IDENTIFIED BY ?", password); err != nil {
		return err
	}
	_, err = db.Exec("GRANT ALL ON " + schema + ".* TO " + user)
	return err
}

func (t *target) close() {
	if t.db != nil {
		_ = t.db.Close()
	}
	if t.group != nil {
		t.group.Kill()
	}
}

// environment is what the scripts are told beside what they find.
func (t *target) environment() []string {
	env := []string{"KEEP=1", "ADDRESS=" + strings.Join(t.addrs, ",")}
	if t.group != nil {
		env = append(env, "USERNAME="+user, "PASSWORD="+password, "TLS=false", "CA=", "CERT=", "KEY=")
	}
	return env
}

func (t *target) lastWords() string {
	if t.group == nil {
		return ""
	}
	var said strings.Builder
	for _, n := range t.group.Nodes {
		words := n.LastWords()
		fmt.Fprintf(&said, "node %d said:\n%s\n", n.Number, words[max(0, len(words)-2000):])
	}
	return said.String()
}
