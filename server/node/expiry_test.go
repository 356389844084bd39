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
	"slices"
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

// TestAround: of a member that does not answer the longer lag counts of what it said and of what the
// leader knows; one that is being given its data is heard, and what it lacks is not known.
func TestAround(t *testing.T) {
	var a around
	members := []group.Member{{ID: 1}, {ID: 2, Addr: "b:1"}, {ID: 3, Addr: "c:1"}, {ID: 4, Addr: "d:1"}}
	a.hear(1, members, []group.Status{{ID: 1},
		{ID: 2, Error: "no answer", Lag: group.Lag{Time: time.Minute, Entries: 12}, SeenLag: time.Minute},
		{ID: 3, Error: "being given its data", Provisioning: true, Lag: group.UnknownLag, SeenLag: -1},
		{ID: 4, Lag: group.Lag{Time: 5 * time.Second, Entries: 3}, SeenLag: 0}})
	if got := a.all(); !slices.Equal(got, []heard{{2, "b:1", false, 12, time.Minute}, {3, "c:1", true, -1, -1}, {4, "d:1", true, 3, 5 * time.Second}}) {
		t.Errorf("%v", got)
	}
	a.hear(1, members[:2], []group.Status{{ID: 1}, {ID: 2, Error: "no answer", Lag: group.UnknownLag, SeenLag: time.Hour}})
	if got := a.all(); !slices.Equal(got, []heard{{2, "b:1", false, -1, time.Hour}}) {
		t.Errorf("a member that this leader has not heard: %v", got)
	}
}
