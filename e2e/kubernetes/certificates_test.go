//go:build kubernetes

package kubernetes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

const (
	peersSecret   = name + "-peer-tls"
	clientsSecret = "clients-tls"
	peersPort     = 17100
)

// secretData is what a Secret holds.
func (g *group) secretData(secret string) map[string][]byte {
	g.t.Helper()
	var held struct {
		Data map[string][]byte `json:"data"`
	}
	g.must(g.api.get("/api/v1/namespaces/"+namespace+"/secrets/"+secret, &held))
	return held.Data
}

// patchSecret changes keys of a Secret, all at once.
func (g *group) patchSecret(secret string, data map[string][]byte) {
	g.t.Helper()
	encoded := map[string]string{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	g.must(g.api.call("PATCH", "/api/v1/namespaces/"+namespace+"/secrets/"+secret, map[string]any{"data": encoded}, nil))
}

// nudge has kubelets bring Secrets to pods now, instead of within a minute.
func (g *group) nudge(pods ...pod) {
	for _, p := range pods {
		if err := g.api.call("PATCH", g.podPath(p.Meta.Name), map[string]any{"metadata": map[string]any{"annotations": map[string]string{
			"trireme.test/nudge": time.Now().Format(time.RFC3339Nano)}}}, nil); err != nil {
			g.t.Log(err)
		}
	}
}

// arrived waits until a Secret's files are in those pods that run, and have been read there; without pods in all that there are.
func (g *group) arrived(volume string, files map[string][]byte, among ...pod) {
	g.t.Helper()
	tries := 0
	g.eventually("files are in the pods", func() error {
		pods := among
		if len(pods) == 0 {
			pods = g.members()
		}
		if tries++; tries%100 == 1 {
			g.nudge(pods...)
		}
		for _, p := range pods {
			m, err := g.nodeOf(&p)
			if err != nil || !p.runs() {
				continue // it finds them when it starts
			}
			for file, text := range files {
				b, err := os.ReadFile(filepath.Join("/proc", m.first(), "root/var/lib/kubelet/pods", p.Meta.UID, "volumes/kubernetes.io~secret", volume, file))
				if err != nil || string(b) != string(text) {
					return fmt.Errorf("%s has an older %s (%v)", p.Meta.Name, file, err)
				}
			}
		}
		return nil
	})
	time.Sleep(11 * time.Second) // nodes look every ten seconds
}

// shows demands that a member has a certificate.
func (g *group) shows(p *pod, cert []byte) error {
	want, _ := pem.Decode(cert)
	d := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is compared
	conn, err := d.Dial("tcp", fmt.Sprintf("%s:%d", p.Status.IP, peersPort))
	if err != nil {
		return err
	}
	defer conn.Close()
	if got := conn.(*tls.Conn).ConnectionState().PeerCertificates; !bytes.Equal(got[0].Raw, want.Bytes) {
		return fmt.Errorf("it shows one of %s", got[0].Issuer)
	}
	return nil
}

// authority is a new one.
func (g *group) authority() *keys {
	g.t.Helper()
	k, err := newKeys(filepath.Join(g.dir, fmt.Sprintf("authority-%d", time.Now().UnixNano())))
	g.must(err)
	return k
}

// pem is one of an authority's files.
func (k *keys) pem(file string) []byte {
	b, _ := os.ReadFile(k.file(file))
	return b
}

// bundle is a file with several authorities.
func bundle(parts ...[]byte) []byte { return bytes.Join(parts, []byte("\n")) }

// leaf is what a Secret holds with a new certificate for members and its authority, as cert-manager writes it.
func (g *group) leaf(k *keys) map[string][]byte {
	g.t.Helper()
	peers := name + "-peers." + namespace + ".svc." + domain
	g.must(k.issue("peer", pkix.Name{CommonName: name}, peers, "*."+peers, name+"."+namespace+".svc."+domain))
	return map[string][]byte{"tls.crt": k.pem("peer.crt"), "tls.key": k.pem("peer.key"), "ca.crt": k.pem("ca.crt")}
}

// disconnect resets all connections between some members and the others: what they say to each other from then
// on goes through new ones.
func (g *group) disconnect(pods ...pod) {
	g.t.Helper()
	for _, p := range pods {
		pid, err := g.machineOf(&p).find(&p, "/trireme")
		g.must(err)
		change := func(how string) {
			for _, chain := range []string{"INPUT", "OUTPUT"} {
				for _, end := range []string{"--dport", "--sport"} {
					g.run("nsenter", "-t", strconv.Itoa(pid), "-n", "--", "iptables", how, chain, "--protocol", "tcp", end, strconv.Itoa(peersPort),
						"--jump", "REJECT", "--reject-with", "tcp-reset")
				}
			}
		}
		change("--append")
		g.eventually("connections of "+p.Meta.Name+" are closed", func() error {
			if n := connections(pid); n > 0 {
				return fmt.Errorf("%d stand", n)
			}
			return nil
		})
		change("--delete")
	}
}

// connections counts the connections between members that a process sees.
func connections(pid int) (n int) {
	port := fmt.Sprintf(":%04X", peersPort)
	for _, file := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		for line := range strings.Lines(string(text)) { // number: own end, other end, state
			if f := strings.Fields(line); len(f) > 3 && f[3] == "01" && (strings.HasSuffix(f[1], port) || strings.HasSuffix(f[2], port)) {
				n++
			}
		}
	}
	return n
}

// reconnected lets all members talk through new connections, and waits until the group is whole.
func (g *group) reconnected(b *bank, pods ...pod) {
	g.t.Helper()
	g.disconnect(pods...)
	g.whole(3)
	b.goesOn()
}

// certificatesRenewed: the members' certificate, then its authority with the same key are renewed as cert-manager
// does it, whose Secret has both at once, and which comes to the members one after the other. Before that they are given another
// authority than the chart's as it is done by hand: both are trusted for a while. All connections are made anew; no
// member is started again.
func (g *group) certificatesRenewed(t *testing.T, b *bank) string {
	before, all := g.fingerprint(), g.members()
	k := g.authority()
	both := bundle(g.secretData(peersSecret)["ca.crt"], k.pem("ca.crt"))
	first := g.leaf(k)
	for _, secret := range []map[string][]byte{{"ca.crt": both}, {"tls.crt": first["tls.crt"], "tls.key": first["tls.key"]}, g.leaf(k)} {
		g.patchSecret(peersSecret, secret)
		g.arrived("peer-tls", secret)
		b.goesOn()
	}
	g.reconnected(b, all...)
	g.must(k.renew())
	renewed := g.leaf(k)
	g.patchSecret(peersSecret, renewed)
	for _, part := range [][]pod{all[:1], all[1:]} {
		g.arrived("peer-tls", renewed, part...)
		g.reconnected(b, all...)
	}
	for _, p := range all {
		g.must(g.shows(&p, renewed["tls.crt"]))
	}
	if now := g.fingerprint(); !slices.Equal(before, now) {
		t.Errorf("pods are %q, not %q", now, before)
	}
	return ""
}

// certificatesExpired: what members and clients show ends while the group runs. Connections that stand go on; a
// member that has to make new ones is alone; when all have to, nobody takes writes. New certificates in the Secrets
// are enough: no pod is started again, and nothing that was acknowledged is lost.
func (g *group) certificatesExpired(t *testing.T, b *bank) string {
	peers, clients := g.authority(), g.authority()
	was := g.secretData(peersSecret)["ca.crt"]
	g.patchSecret(peersSecret, map[string][]byte{"ca.crt": bundle(was, peers.pem("ca.crt"))})
	g.must(g.api.create("/api/v1/namespaces/"+namespace+"/secrets", map[string]any{"metadata": map[string]any{"name": clientsSecret}, "type": "kubernetes.io/tls", "data": g.leaf(clients)}))
	g.upgrade("--set=clientTLS.source=secret,clientTLS.existingSecret="+clientsSecret, "--set=clientTLS.clientCA.existingSecret="+clientsSecret) // all read both authorities
	g.whole(3)
	before, all := g.fingerprint(), g.members()
	b.sql("CREATE USER IF NOT EXISTS 'certified'@'%' IDENTIFIED BY 'certified-1' REQUIRE X509", "GRANT SELECT ON bank.* TO 'certified'@'%'")

	end := time.Now().Add(30 * time.Second)
	peers.until, clients.until = end, end
	old := g.leaf(clients)
	g.patchSecret(clientsSecret, old)
	short := g.leaf(peers)
	short["ca.crt"] = bundle(was, short["ca.crt"])
	g.patchSecret(peersSecret, short)
	g.arrived("peer-tls", short)
	g.reconnected(b, all...)
	for _, p := range all {
		g.must(g.shows(&p, short["tls.crt"]))
	}
	g.must(g.certified(clients, old, time.Time{}))
	time.Sleep(time.Until(end.Add(time.Second)))

	b.goesOn()
	if err := g.certified(clients, old, time.Time{}); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a program that looks at the server's certificate is told %v", err)
	}
	if err := g.certified(clients, old, end.Add(-time.Second)); err == nil {
		t.Errorf("an account that requires a certificate is let in with one that has ended")
	}
	f := g.follower()
	g.disconnect(f)
	g.eventually(f.Meta.Name+" is not there for the others", func() error {
		r, err := g.status(g.leader())
		if err != nil {
			return err
		}
		for _, m := range r.Members {
			if strings.HasPrefix(m.Addr, f.Meta.Name+".") && m.State != "ONLINE" {
				return nil
			}
		}
		return errors.New("it is")
	})
	b.goesOn()
	g.disconnect(all...)
	g.eventually("nobody takes writes", func() error {
		for _, p := range all {
			if r, err := g.status(&p); err != nil || r.Status.Writable {
				return fmt.Errorf("%s: %w", p.Meta.Name, errors.Join(err, errors.New("it does")))
			}
		}
		return nil
	})
	if out := g.kubectl("-n", namespace, "logs", f.Meta.Name, "--since=1m"); !strings.Contains(out, "is expired or not yet valid") {
		t.Errorf("%s does not say that certificates have expired:\n%s", f.Meta.Name, out)
	}

	peers.until, clients.until = time.Time{}, time.Time{}
	fresh, shown := g.leaf(peers), g.leaf(clients)
	began := time.Now()
	g.patchSecret(peersSecret, fresh)
	g.patchSecret(clientsSecret, shown)
	g.nudge(all...)
	b.goesOn()
	writable := time.Since(began)
	g.whole(3)
	if now := g.fingerprint(); !slices.Equal(before, now) {
		t.Errorf("pods are %q, not %q", now, before)
	}
	g.eventually("programs believe the server, and it them", func() error { return g.certified(clients, shown, time.Time{}) })
	return fmt.Sprintf("; writes %s after new ones were in the Secret", round(writable))
}

// sql executes statements as the load's account.
func (b *bank) sql(statements ...string) {
	b.t.Helper()
	for _, s := range statements {
		if _, err := b.db.Exec(b.t.Context(), s); err != nil {
			b.t.Fatalf("%s: %v", s, err)
		}
	}
}

// certified logs in as an account that requires a certificate, as a program that looks at the server's at a time.
func (g *group) certified(k *keys, own map[string][]byte, at time.Time) error {
	pair, err := tls.X509KeyPair(own["tls.crt"], own["tls.key"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.pem("ca.crt"))
	host := name + "." + namespace + ".svc." + domain
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = "certified", "certified-1", "tcp", host+":3306"
	c.TLS = &tls.Config{ServerName: host, RootCAs: roots, Certificates: []tls.Certificate{pair}, Time: func() time.Time {
		if at.IsZero() {
			return time.Now()
		}
		return at
	}}
	c.Timeout, c.ReadTimeout = 5*time.Second, 10*time.Second
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = servers.Rows(db, "SELECT COUNT(*) FROM bank.account")
	return err
}
