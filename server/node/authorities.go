package node

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"

	"github.com/triremedb/trireme/server/config"
)

// Authorities are those of the certificates by which members know each other, as hashes of their names and keys: an authority that is renewed
// with its key stays the same.
type Authorities struct {
	Trusted []string `json:"trusted,omitempty"` // whose certificates a node takes
	Signed  []string `json:"signed,omitempty"`  // those of them that have signed the node's own
}

// PeerAuthorities are those in the files of a configuration. They are empty if the files cannot be read, or there are none.
func PeerAuthorities(cfg *config.Config) (a Authorities) {
	if cfg.String("peer_tls_cert") == "" {
		return a
	}
	return AuthoritiesOf(cfg.String("peer_tls_cert"), cfg.String("peer_tls_ca"))
}

// AuthoritiesOf are those in files with a certificate and what is trusted.
func AuthoritiesOf(certFile, caFile string) (a Authorities) {
	own := certificates(certFile)
	for _, ca := range certificates(caFile) {
		h := sha256.Sum256(append(slices.Clone(ca.RawSubject), ca.RawSubjectPublicKeyInfo...))
		name := hex.EncodeToString(h[:8])
		if !slices.Contains(a.Trusted, name) {
			a.Trusted = append(a.Trusted, name)
		}
		signed := slices.ContainsFunc(own, func(c *x509.Certificate) bool { return c.CheckSignatureFrom(ca) == nil })
		if signed && !slices.Contains(a.Signed, name) {
			a.Signed = append(a.Signed, name)
		}
	}
	return a
}

// Takes reports whether a node with these authorities takes the certificate of one with others. Where nothing is known of either it may.
func (a *Authorities) Takes(other *Authorities) bool {
	if len(a.Trusted) == 0 || len(other.Signed) == 0 {
		return true
	}
	return slices.ContainsFunc(other.Signed, func(name string) bool { return slices.Contains(a.Trusted, name) })
}
