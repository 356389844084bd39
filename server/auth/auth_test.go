package auth

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sql/priv"
)

type source map[string]Account

func (s source) Account(user, host, _ string) (Account, bool, error) {
	a, ok := s[user+"@"+host]
	if !ok {
		a, ok = s[user+"@%"]
	}
	return a, ok, nil
}

func answerSHA2(password string, nonce []byte) []byte {
	first := sha256.Sum256([]byte(password))
	second := sha256.Sum256(first[:])
	h := sha256.New()
	h.Write(second[:])
	h.Write(nonce)
	sum := h.Sum(nil)
	for i := range sum {
		sum[i] ^= first[i]
	}
	return sum
}

func TestFastPathFollowsTheHash(t *testing.T) {
	salt := []byte("abcdefghijklmnopqrst")
	src := source{"app@%": {User: "app", Host: "%", Plugin: SHA2, Hash: priv.HashSHA2([]byte("old"), salt)}}
	a, err := New(Options{Source: src})
	if err != nil {
		t.Fatal(err)
	}
	nonce := []byte("01234567890123456789")
	acct, known, _ := a.Find("app", "10.1.1.1", "10.1.1.1")
	if !known {
		t.Fatal("app is not known")
	}
	if a.CheckFast(&acct, nonce, answerSHA2("old", nonce)) {
		t.Error("a digest nobody has checked")
	}
	if a.CheckPassword(context.Background(), &acct, []byte("wrong")) {
		t.Error("wrong password")
	}
	if !a.CheckPassword(context.Background(), &acct, []byte("old")) {
		t.Error("right password")
	}
	if !a.CheckFast(&acct, nonce, answerSHA2("old", nonce)) || a.CheckFast(&acct, nonce, answerSHA2("new", nonce)) {
		t.Error("fast path")
	}
	src["app@%"] = Account{User: "app", Host: "%", Plugin: SHA2, Hash: priv.HashSHA2([]byte("new"), salt)}
	acct, _, _ = a.Find("app", "10.1.1.1", "10.1.1.1")
	if a.CheckFast(&acct, nonce, answerSHA2("old", nonce)) {
		t.Error("the old password still opens")
	}
	if _, known, _ = a.Find("nobody", "h", ""); known {
		t.Error("nobody is known")
	}
	if a, _, _ := a.Find("nobody", "h", ""); priv.CheckSHA2(a.Hash, nil) || len(a.Hash) != 70 {
		t.Error("nobody's hash")
	}
}

func TestNative(t *testing.T) {
	stored := priv.HashNative([]byte("secret"))
	nonce := []byte("01234567890123456789")
	first := sha1.Sum([]byte("secret"))
	second := sha1.Sum(first[:])
	answer := sha1.Sum(append(append([]byte{}, nonce...), second[:]...))
	for i := range answer {
		answer[i] ^= first[i]
	}
	if !CheckNative(&Account{Hash: stored}, nonce, answer[:]) {
		t.Error("right password")
	}
	answer[3]++
	if CheckNative(&Account{Hash: stored}, nonce, answer[:]) || CheckNative(&Account{}, nonce, answer[:]) || CheckNative(&Account{Hash: stored}, nonce, nil) {
		t.Error("wrong password")
	}
}

func TestThrottle(t *testing.T) {
	now := time.Unix(1000, 0)
	a, err := New(Options{Source: source{}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d := a.Delay("u", "1.1.1.1"); d != 0 {
			t.Fatal(d)
		}
		a.Failed("u", "1.1.1.1")
	}
	if d := a.Delay("u", "1.1.1.1"); d != 100*time.Millisecond {
		t.Error(d)
	}
	for range 1000 {
		a.Failed("u", "1.1.1.1")
	}
	if d := a.Delay("u", "1.1.1.1"); d != 5*time.Second {
		t.Error(d)
	}
	if d := a.Delay("u", "2.2.2.2"); d != 0 {
		t.Error("another address is slowed down")
	}
	now = now.Add(time.Hour)
	if d := a.Delay("u", "1.1.1.1"); d != 0 {
		t.Error(d)
	}
	for i := range 3 * maxFailures {
		a.Failed(fmt.Sprint(i), "x")
	}
	if len(a.failures) > maxFailures {
		t.Error(len(a.failures))
	}
}

// TestThrottleFlood: names that are made up do not make those forgotten that somebody guesses at.
func TestThrottleFlood(t *testing.T) {
	now := time.Unix(1, 0)
	a, err := New(Options{Source: source{}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		a.Failed("root", "1.1.1.1")
	}
	before := a.Delay("root", "1.1.1.1")
	for i := range 5 * maxFailures {
		a.Failed(fmt.Sprint("made up ", i), "1.1.1.1")
		if len(a.failures) > maxFailures {
			t.Fatalf("%d are remembered", len(a.failures))
		}
	}
	if got := a.Delay("root", "1.1.1.1"); got != before || got == 0 {
		t.Errorf("%v, %v before the flood", got, before)
	}
}

func TestRSA(t *testing.T) {
	a, err := New(Options{Source: source{}})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(a.PublicKey())
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	nonce := []byte("01234567890123456789")
	plain := []byte("pässword\x00")
	for i := range plain {
		plain[i] ^= nonce[i%len(nonce)]
	}
	cipher, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, pub.(*rsa.PublicKey), plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := a.Decrypt(cipher, nonce); !ok || string(got) != "pässword" {
		t.Errorf("%q %v", got, ok)
	}
	if _, ok := a.Decrypt(cipher[1:], nonce); ok {
		t.Error("garbage was decrypted")
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	der := x509.MarshalPKCS1PrivateKey(a.key)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{Source: source{}, KeyFile: file})
	if err != nil || string(b.PublicKey()) != string(a.PublicKey()) {
		t.Error("the key of the file", err)
	}
}
