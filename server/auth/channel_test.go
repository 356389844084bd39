package auth

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"
)

func TestRequirement(t *testing.T) {
	plain := Channel{}
	secret := Channel{Cipher: "TLS_AES_128_GCM_SHA256"}
	known := Channel{Cipher: "ECDHE-RSA-AES128-GCM-SHA256", Certified: true, Subject: "/O=x/CN=app", Issuer: "/CN=ca"}
	for _, c := range []struct {
		require              Requirement
		plain, secret, known bool
	}{
		{Requirement{}, true, true, true},
		{Requirement{Kind: "ANY"}, false, true, true},
		{Requirement{Kind: "X509"}, false, false, true},
		{Requirement{Kind: "SPECIFIED"}, false, true, true},
		{Requirement{Kind: "SPECIFIED", Cipher: "TLS_AES_128_GCM_SHA256"}, false, true, false},
		{Requirement{Kind: "SPECIFIED", Subject: "/O=x/CN=app"}, false, false, true},
		{Requirement{Kind: "SPECIFIED", Subject: "/O=x/CN=ap"}, false, false, false},
		{Requirement{Kind: "SPECIFIED", Subject: "/o=x/cn=app"}, false, false, false},
		{Requirement{Kind: "SPECIFIED", Issuer: "/CN=ca"}, false, false, true},
		{Requirement{Kind: "SPECIFIED", Issuer: "/CN=cb"}, false, false, false},
		{Requirement{Kind: "SPECIFIED", Issuer: "/CN=ca", Subject: "/O=x/CN=app", Cipher: "ECDHE-RSA-AES128-GCM-SHA256"}, false, false, true},
		{Requirement{Kind: "SPECIFIED", Issuer: "/CN=ca", Subject: "/CN=other"}, false, false, false},
		{Requirement{Kind: "SPECIFIED", Issuer: "/CN=ca", Cipher: "other"}, false, false, false},
		{Requirement{Kind: "TOMORROW"}, false, false, false},
	} {
		if p, s, k := c.require.Met(&plain), c.require.Met(&secret), c.require.Met(&known); p != c.plain || s != c.secret || k != c.known {
			t.Errorf("%+v: %v without TLS, %v with, %v with a certificate", c.require, p, s, k)
		}
	}
	// Names that were not verified count for nothing.
	liar := Channel{Cipher: "x", Subject: "/CN=app"}
	if r := (Requirement{Kind: "SPECIFIED", Subject: "/CN=app"}); r.Met(&liar) {
		t.Error("a certificate that was not verified")
	}
	if ChannelOf(nil) != plain {
		t.Error("a connection without TLS")
	}
}

func TestCipherNames(t *testing.T) {
	got := map[string]bool{}
	for _, s := range tls.CipherSuites() {
		got[cipherName(s.ID)] = true
	}
	for name := range strings.FieldsSeq("TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256 ECDHE-ECDSA-AES128-SHA " +
		"ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 " +
		"ECDHE-RSA-AES128-GCM-SHA256 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-CHACHA20-POLY1305") {
		if !got[name] {
			t.Errorf("no %s among %v", name, got)
		}
	}
	if len(got) != len(tls.CipherSuites()) {
		t.Error(got)
	}
}

// TestDistinguishedName: names are as X509_NAME_oneline of OpenSSL writes them.
func TestDistinguishedName(t *testing.T) {
	name := func(pairs ...any) pkix.RDNSequence {
		var all pkix.RDNSequence
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, pkix.RelativeDistinguishedNameSET{{Type: pairs[i].(asn1.ObjectIdentifier), Value: pairs[i+1]}})
		}
		return all
	}
	cn, o, c := asn1.ObjectIdentifier{2, 5, 4, 3}, asn1.ObjectIdentifier{2, 5, 4, 10}, asn1.ObjectIdentifier{2, 5, 4, 6}
	mail, odd := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}
	for _, tc := range []struct {
		name pkix.RDNSequence
		want string
	}{
		{name(c, "SE", o, "MySQL AB", cn, "client"), "/C=SE/O=MySQL AB/CN=client"},
		{name(c, "SE", asn1.ObjectIdentifier{2, 5, 4, 8}, "Uppsala", o, "MySQL AB", asn1.ObjectIdentifier{2, 5, 4, 11}, "Jürgen & co", cn, "app user", mail, "a@b.example",
			asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, "u1", asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}, "dc", asn1.ObjectIdentifier{2, 5, 4, 5}, "77",
			asn1.ObjectIdentifier{2, 5, 4, 12}, "dr"),
			`/C=SE/ST=Uppsala/O=MySQL AB/OU=J\xC3\xBCrgen & co/CN=app user/emailAddress=a@b.example/UID=u1/DC=dc/serialNumber=77/title=dr`},
		{name(cn, "client", o, "turned round"), "/CN=client/O=turned round"},
		{name(mail, "a@b.example", odd, "x"), "/emailAddress=a@b.example/1.3.6.1.4.1.99999.1=x"},
		{name(cn, "Jürgen\n"), `/CN=J\xC3\xBCrgen\x0A`},
		{name(cn, "http/db1", o, "a / b"), "/CN=http/db1/O=a / b"},
		{name(cn, "eve/CN=root"), `/CN=eve\x2FCN=root`},
		{pkix.RDNSequence{{{Type: cn, Value: "a"}, {Type: o, Value: "b"}}}, "/CN=a/O=b"},
		{pkix.RDNSequence{}, ""},
	} {
		der, err := asn1.Marshal(tc.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := distinguishedName(der); got != tc.want {
			t.Errorf("%q, not %q", got, tc.want)
		}
		if len(der) > 4 && distinguishedName(der[:len(der)-1]) != "" {
			t.Errorf("half of %q", tc.want)
		}
	}
}

func FuzzDistinguishedName(f *testing.F) {
	f.Add([]byte{0x30, 0x0c, 0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, 'a'})
	f.Fuzz(func(t *testing.T, der []byte) {
		for _, x := range []byte(distinguishedName(der)) {
			if x < ' ' || x > '~' {
				t.Errorf("a byte %#x", x)
			}
		}
	})
}
