package node

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"time"

	"github.com/triremedb/trireme/server/metrics"
)

// expiryMetrics tells until when certificates are valid.
func (n *Node) expiryMetrics(m *metrics.Writer) {
	told := func(use string, at time.Time) {
		if !at.IsZero() {
			m.Set("trireme_certificate_expiry_time_seconds", float64(at.Unix()), "use", use)
		}
	}
	if n.tls != nil {
		_, until := n.tls.Valid()
		told("clients", until)
	}
	if name := n.cfg.String("peer_tls_cert"); name != "" {
		told("peers", peersExpiry(name, n.cfg.String("peer_tls_ca")))
	}
}

// peersExpiry is until when the others believe the certificate in a file: until it ends, or
// the one of the authorities that signed it. It is zero if the files cannot be read.
func peersExpiry(certFile, caFile string) time.Time {
	own := certificates(certFile)
	if len(own) == 0 {
		return time.Time{}
	}
	until := own[0].NotAfter
	for _, ca := range certificates(caFile) {
		if own[0].CheckSignatureFrom(ca) == nil && ca.NotAfter.Before(until) {
			until = ca.NotAfter
		}
	}
	return until
}

// certificates are those in a file of PEM that can be read.
func certificates(name string) (list []*x509.Certificate) {
	rest, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return list
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, c)
		}
	}
}
