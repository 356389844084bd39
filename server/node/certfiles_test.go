package node_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/server/auth/authtest"
)

// TestUnusableCertificates: a node whose files of certificates are gone, or garbled, while it runs goes on with what it has read, and tells of it by an
// event with the file's name, and of the end of it by another one.
func TestUnusableCertificates(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string]string{"peerTLS": "peer-tls", "clientTLS": "ssl"} {
		for what, spoil := range map[string]func(file string) error{
			"missing": os.Remove,
			"garbled": func(file string) error {
				return os.WriteFile(file, []byte("-----BEGIN CERTIFICATE-----\nnot this\n"), 0o600)
			},
			"no bytes": func(file string) error { return os.Truncate(file, 0) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				k, settings := newKubernetes(t)
				k.say(`{"spec": {"replicas": 1}}`)
				ca, dir := authtest.NewAuthority(t, "ca"), t.TempDir()
				both := func(c *x509.Certificate) {
					c.DNSNames = []string{"db-0.peers.test"}
					c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
				}
				certFile, keyFile := new(ca.Issue(pkix.Name{}, both)).Write(t, dir, "server")
				members := pods(t, 1, append(settings, "--"+setting+"-cert="+certFile, "--"+setting+"-key="+keyFile, "--"+setting+"-ca="+authtest.File(t, dir+"/ca.pem", ca.PEM()))...)
				whole, err := os.ReadFile(certFile)
				if err := errors.Join(err, spoil(certFile)); err != nil {
					t.Fatal(err)
				}
				_, text := k.said(t, "CertificateUnusable")
				for _, part := range []string{name, certFile, "What it has read before stays", "db-0.peers.test"} {
					if !strings.Contains(text, part) {
						t.Errorf("no %q: %s", part, text)
					}
				}
				if slices.Contains(k.has(), "CertificateUsable") {
					t.Errorf("%q", k.has())
				}
				if err := os.WriteFile(certFile, whole, 0o600); err != nil {
					t.Fatal(err)
				}
				k.said(t, "CertificateUsable")
				if r := members[0].report(t); r.Status.Leader == 0 {
					t.Errorf("%+v", r.Status)
				}
			})
		}
	}
}
