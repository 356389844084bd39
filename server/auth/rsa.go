package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the protocol's
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

const rsaBits = 2048

// readKey takes the key from a file.
func (a *Authenticator) readKey(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return fmt.Errorf("%s: no PEM block", name)
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		any, err8 := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err8 != nil {
			return fmt.Errorf("%s: %w", name, err8)
		}
		var ok bool
		if key, ok = any.(*rsa.PrivateKey); !ok {
			return fmt.Errorf("%s: the key is not one of RSA", name)
		}
	}
	a.setKey(key)
	return nil
}

func (a *Authenticator) setKey(key *rsa.PrivateKey) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return // not of an RSA key
	}
	a.key, a.keyPEM = key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// ensureKey makes a key when one is first needed: it takes a part of a second.
func (a *Authenticator) ensureKey() {
	a.keyOnce.Do(func() {
		if a.key != nil {
			return
		}
		if key, err := rsa.GenerateKey(rand.Reader, rsaBits); err == nil {
			a.setKey(key)
		}
	})
}

// PublicKey is the key, as PEM, for which clients without TLS encrypt their password.
func (a *Authenticator) PublicKey() []byte {
	a.ensureKey()
	return a.keyPEM
}

// Decrypt reads a password that was mixed with the nonce and encrypted.
func (a *Authenticator) Decrypt(cipher, nonce []byte) (password []byte, ok bool) {
	a.ensureKey()
	if a.key == nil || len(nonce) == 0 {
		return nil, false
	}
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, a.key, cipher, nil)
	if err != nil || len(plain) == 0 {
		return nil, false
	}
	for i := range plain {
		plain[i] ^= nonce[i%len(nonce)]
	}
	if plain[len(plain)-1] != 0 {
		return nil, false
	}
	return plain[:len(plain)-1], true
}
