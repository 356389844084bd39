package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// peerName is the name in the certificate that the demo's nodes share.
const peerName = "trireme-demo"

// peerArguments are the settings by which the nodes know each other: by a certificate in the directory, since other users of the machine
// reach the peer ports too. A group that has begun without one goes on as it is, and settings that the caller gives are his.
func (d *demo) peerArguments() ([]string, error) {
	for _, e := range d.extra {
		if name := strings.ReplaceAll(strings.TrimLeft(e, "-"), "_", "-"); strings.HasPrefix(name, "peer-tls") || strings.HasPrefix(name, "peer-allow-plaintext") {
			return nil, nil
		}
	}
	dir := filepath.Join(d.dir, "peers")
	cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
	_, err := os.Stat(ca) // which is written last
	if errors.Is(err, fs.ErrNotExist) {
		begun, err := d.begun()
		if err != nil {
			return nil, err
		}
		if begun {
			return []string{"--peer-allow-plaintext"}, nil
		}
		if err := makePeers(dir, cert, key, ca); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return []string{"--peer-tls-cert=" + cert, "--peer-tls-key=" + key, "--peer-tls-ca=" + ca, "--peer-tls-server-name=" + peerName}, nil
}

// begun reports whether a node of the directory is a member of a group.
func (d *demo) begun() (bool, error) {
	members, err := filepath.Glob(filepath.Join(d.dir, "node*", "member"))
	return len(members) > 0, err
}

// makePeers writes a certificate for ten years, its key, and the authority that has signed it and whose own key nobody has.
func makePeers(dir, cert, key, ca string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	now := time.Now()
	certificate := func(c, by *x509.Certificate, of *ecdsa.PublicKey, signer *ecdsa.PrivateKey) ([]byte, error) {
		serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
		if err != nil {
			return nil, err
		}
		c.SerialNumber, c.NotBefore, c.NotAfter, c.BasicConstraintsValid = serial, now.Add(-time.Hour), now.AddDate(10, 0, 0), true
		return x509.CreateCertificate(rand.Reader, c, by, of, signer)
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: peerName + " authority"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}
	signed, err := certificate(authority, authority, &signer.PublicKey, signer)
	if err != nil {
		return err
	}
	leaf, err := certificate(&x509.Certificate{Subject: pkix.Name{CommonName: peerName}, DNSNames: []string{peerName}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, authority, &own.PublicKey, signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, kind string
		content    []byte
	}{{key, "PRIVATE KEY", private}, {cert, "CERTIFICATE", leaf}, {ca, "CERTIFICATE", signed}} {
		if err := os.WriteFile(f.name, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.content}), 0o600); err != nil {
			return err
		}
	}
	return nil
}
