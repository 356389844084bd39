package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/triremedb/trireme/server/auth"
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
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	_, err := os.Stat(cert) // which is written last
	if errors.Is(err, fs.ErrNotExist) {
		begun, err := d.begun()
		if err != nil {
			return nil, err
		}
		if begun {
			return []string{"--peer-allow-plaintext"}, nil
		}
		if err := makePeers(dir, cert, key); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return []string{"--peer-tls-cert=" + cert, "--peer-tls-key=" + key, "--peer-tls-ca=" + cert, "--peer-tls-server-name=" + peerName}, nil
}

// begun reports whether a node of the directory is a member of a group.
func (d *demo) begun() (bool, error) {
	members, err := filepath.Glob(filepath.Join(d.dir, "node*", "member"))
	return len(members) > 0, err
}

// makePeers writes a certificate, which is its own authority, and its key.
func makePeers(dir, cert, key string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	made, err := auth.SelfSigned(peerName, time.Now(), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		return err
	}
	err = os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
	if err == nil {
		err = os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}), 0o600)
	}
	return err
}
