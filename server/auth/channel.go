package auth

import (
	"crypto/tls"
	"encoding/asn1"
	"strings"
)

// Channel is how a client's connection is secured: what REQUIRE of an account is about. The
// zero Channel is one without TLS.
type Channel struct {
	Cipher  string // as OpenSSL and MySQL call it; empty: no TLS
	Version string // as MySQL calls it, "TLSv1.3"
	// Certified: the client has shown a certificate that ssl_ca's authorities have signed, whose
	// names these are in the form "/C=SE/O=Example/CN=client".
	Certified       bool
	Subject, Issuer string
}

// ChannelOf is the channel of a connection; nil: without TLS.
func ChannelOf(s *tls.ConnectionState) Channel {
	if s == nil {
		return Channel{}
	}
	c := Channel{Cipher: cipherName(s.CipherSuite), Version: TLSVersion(s.Version)}
	if len(s.VerifiedChains) > 0 && len(s.PeerCertificates) > 0 {
		leaf := s.PeerCertificates[0]
		c.Certified, c.Subject, c.Issuer = true, distinguishedName(leaf.RawSubject), distinguishedName(leaf.RawIssuer)
	}
	return c
}

// TLS reports whether the connection is one of TLS.
func (c *Channel) TLS() bool { return c.Cipher != "" }

// Requirement is what REQUIRE of an account says: columns of mysql.user.
type Requirement struct {
	Kind                    string // ssl_type: "" (NONE), ANY (SSL), X509, SPECIFIED
	Cipher, Issuer, Subject string // of SPECIFIED; what is empty is not asked for
}

// Met reports whether a connection is as the account has to come. Nothing that is not known is met.
func (r *Requirement) Met(c *Channel) bool {
	switch r.Kind {
	case "":
		return true
	case "ANY":
		return c.TLS()
	case "X509":
		return c.TLS() && c.Certified
	case "SPECIFIED":
		named := r.Issuer == "" && r.Subject == "" ||
			c.Certified && (r.Issuer == "" || r.Issuer == c.Issuer) && (r.Subject == "" || r.Subject == c.Subject)
		return c.TLS() && named && (r.Cipher == "" || r.Cipher == c.Cipher)
	}
	return false
}

// opensslCipher makes OpenSSL's names of those in the standards. TLS 1.3 has one name for each.
var opensslCipher = strings.NewReplacer("TLS_RSA_WITH_", "", "TLS_", "", "_WITH_", "-", "AES_128_CBC_", "AES128-", "AES_256_CBC_", "AES256-",
	"AES_128_", "AES128-", "AES_256_", "AES256-", "CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", "3DES_EDE_CBC_", "DES-CBC3-", "RC4_128_", "RC4-", "_", "-")

func cipherName(id uint16) string {
	name := tls.CipherSuiteName(id)
	if !strings.Contains(name, "_WITH_") {
		return name
	}
	return opensslCipher.Replace(name)
}

// attributeNames are the short names of what distinguished names are made of.
var attributeNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
	"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.13": "description", "2.5.4.15": "businessCategory", "2.5.4.17": "postalCode",
	"2.5.4.20": "telephoneNumber", "2.5.4.41": "name", "2.5.4.42": "GN", "2.5.4.43": "initials", "2.5.4.44": "generationQualifier",
	"2.5.4.46": "dnQualifier", "2.5.4.65": "pseudonym", "2.5.4.97": "organizationIdentifier", "1.2.840.113549.1.9.1": "emailAddress",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// relativeNameSET is one step of a name; encoding/asn1 knows sets by the end of the type's name.
type relativeNameSET []attribute

// distinguishedName writes a name as OpenSSL does on one line, which is what MySQL compares:
// "/C=SE/O=Example/CN=client", with the attributes in their order and \xHH for bytes that are no
// printable ASCII. Unlike there a '/' in a value that would read as the beginning of another attribute
// is written \x2F: nobody passes for someone else by a name with slashes in it. Empty: it is no name.
func distinguishedName(der []byte) string {
	var steps []relativeNameSET
	if rest, err := asn1.Unmarshal(der, &steps); err != nil || len(rest) > 0 {
		return ""
	}
	var b strings.Builder
	for _, step := range steps {
		for _, a := range step {
			oid := a.Type.String()
			name := attributeNames[oid]
			if name == "" {
				name = oid
			}
			b.WriteString("/" + name + "=")
			appendPrintable(&b, a.Value.Bytes)
		}
	}
	return b.String()
}

func appendPrintable(b *strings.Builder, value []byte) {
	const hex = "0123456789ABCDEF"
	for i, x := range value {
		if x < ' ' || x > '~' || x == '/' && beginsAttribute(value[i+1:]) {
			b.WriteString(`\x`)
			b.WriteByte(hex[x>>4])
			b.WriteByte(hex[x&15])
			continue
		}
		b.WriteByte(x)
	}
}

// beginsAttribute reports whether a text reads as "CN=…" or "1.2.3=…".
func beginsAttribute(text []byte) bool {
	for i, x := range text {
		switch {
		case x == '=':
			return i > 0
		case x == '.', '0' <= x && x <= '9', 'a' <= x && x <= 'z', 'A' <= x && x <= 'Z':
		default:
			return false
		}
	}
	return false
}
