//go:build kubernetes

package kubernetes

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// keys is the cluster's authority and a directory for what it signs.
type keys struct {
	dir string
	ca  *x509.Certificate
	key crypto.Signer
	// until is when what is signed from now on ends; zero: in a day.
	until time.Time
}

func newKeys(dir string) (*keys, error) {
	k := &keys{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	k.key = key
	k.ca = &x509.Certificate{Subject: pkix.Name{CommonName: "cluster"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	if err := k.sign("ca", k.ca, key); err != nil {
		return nil, err
	}
	accounts, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return k, k.write("accounts", "PRIVATE KEY", accounts)
}

// renew makes the authority's certificate anew, with the same key.
func (k *keys) renew() error { return k.sign("ca", k.ca, k.key) }

func (k *keys) file(name string) string { return filepath.Join(k.dir, name) }

// issue makes name.crt and name.key, for a server and a client.
func (k *keys) issue(name string, subject pkix.Name, hosts ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{Subject: subject, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return k.sign(name, c, key)
}

func (k *keys) sign(name string, c *x509.Certificate, key crypto.Signer) (err error) {
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if !k.until.IsZero() {
		c.NotAfter = k.until
	}
	der, err := x509.CreateCertificate(rand.Reader, c, k.ca, key.Public(), k.key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.file(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return err
	}
	return k.write(name, "PRIVATE KEY", key)
}

func (k *keys) write(name, kind string, key crypto.Signer) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(k.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: private}), 0o600)
}

// kubeconfig makes a file by which a program calls the API as the holder of a certificate,
// and returns its name.
func (k *keys) kubeconfig(name string) (string, error) {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, apiServer, k.file("ca.crt"), k.file(name+".crt"), k.file(name+".key"))
	file := k.file(name + ".kubeconfig")
	return file, os.WriteFile(file, []byte(text), 0o600)
}
