package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// TestPeersExpiry: the members' certificate is worth no more than the authority that signed it.
func TestPeersExpiry(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(name string, days int, by *x509.Certificate, signer *ecdsa.PrivateKey) *x509.Certificate {
		c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour),
			NotAfter: now.AddDate(0, 0, days), IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		if by == nil {
			by = c
		}
		der, err := x509.CreateCertificate(rand.Reader, c, by, &signer.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	file := func(name string, list ...*x509.Certificate) string {
		var text []byte
		for _, c := range list {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
		}
		name = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	ca, stranger := sign("ca", 30, nil, key), sign("stranger", 1, nil, other)
	for _, c := range []struct {
		what     string
		days     int
		cas      []*x509.Certificate
		wantDays int
	}{
		{"the certificate ends first", 10, []*x509.Certificate{ca}, 10},
		{"its authority ends first", 90, []*x509.Certificate{ca}, 30},
		{"an authority that did not sign it ends before", 10, []*x509.Certificate{stranger, ca}, 10},
	} {
		got := peersExpiry(file("cert", sign("node", c.days, ca, key)), file("ca", c.cas...))
		if want := now.AddDate(0, 0, c.wantDays); !got.Equal(want) {
			t.Errorf("%s: %v, not %v", c.what, got, want)
		}
	}
	if at := peersExpiry("/no/such", "/no/such"); !at.IsZero() {
		t.Errorf("a certificate that is not there is valid until %v", at)
	}
}

// TestAround: a member that does not answer falls behind by what is agreed on without it; one
// that is being given its data is heard, and what it has is not known.
func TestAround(t *testing.T) {
	var a around
	members := []group.Member{{ID: 1}, {ID: 2, Addr: "b:1"}, {ID: 3, Addr: "c:1"}}
	a.hear(1, members, []group.Status{{ID: 1, Committed: 10, Applied: 10}, {ID: 2, Committed: 9, Applied: 8}, {ID: 3, Error: "no answer"}})
	a.hear(1, members, []group.Status{{ID: 1, Committed: 20, Applied: 20}, {ID: 2, Error: "no answer"}, {ID: 3, Error: "being given its data", Provisioning: true}})
	got := a.all()
	if len(got) != 2 || got[0] != (heard{2, "b:1", false, 8, 12}) || got[1] != (heard{3, "c:1", true, 0, 20}) {
		t.Errorf("%v", got)
	}
}
