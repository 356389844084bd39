package node

import (
	"context"
	"fmt"
	"time"

	"github.com/triremedb/trireme/replication/transport"
)

// certificateFiles looks at the files of certificates. What cannot be used of them changes nothing for a node that runs, until the certificate that it
// has ends or the node is started anew: so that events tell of it before.
type certificateFiles struct {
	n *Node
	situation
	since time.Time // since when they cannot be used; zero: they can
}

const (
	// certificatesEvery is how often the files are looked at.
	certificatesEvery = 2 * time.Second
	// certificatesGrace is how long they may be unusable: some write a certificate and its key one after the other.
	certificatesGrace = 5 * time.Second
)

func newCertificateFiles(n *Node) *certificateFiles {
	return &certificateFiles{n: n, situation: situation{begins: "CertificateUnusable", ends: "CertificateUsable"}}
}

// trouble says what is the matter with the files; empty: nothing.
func (c *certificateFiles) trouble() string {
	if name := c.n.cfg.String("peer_tls_cert"); name != "" {
		t := transport.TLS{CertFile: name, KeyFile: c.n.cfg.String("peer_tls_key"), CAFile: c.n.cfg.String("peer_tls_ca")}
		if err := t.Usable(); err != nil {
			return fmt.Sprintf("those between members (peerTLS): %v", err)
		}
	}
	if c.n.tls != nil {
		if err := c.n.tls.Usable(); err != nil {
			return fmt.Sprintf("those for clients (clientTLS): %v", err)
		}
	}
	return ""
}

// look tells that files cannot be used, and that they can again.
func (c *certificateFiles) look() {
	now, text := time.Now(), c.trouble()
	ctx, cancel := c.n.untilStopping(situationLimit)
	defer cancel()
	c.tell(ctx, now, text)
}

func (c *certificateFiles) tell(ctx context.Context, now time.Time, text string) {
	who := fmt.Sprintf("member %d at %s", c.n.group.ID(), peerAddress(c.n.cfg))
	switch {
	case text == "":
		c.since = time.Time{}
		c.over(ctx, c.n, now, who+" can use its files of certificates again")
	case c.since.IsZero():
		c.since = now
	case now.Sub(c.since) >= certificatesGrace:
		c.lasts(ctx, c.n, now, fmt.Sprintf("%s cannot use files of certificates, %s. What it has read before stays until it ends, but a pod that is started anew does not "+
			"start with them: correct the Secret or ConfigMap; pods have it a minute or two later", who, text))
	}
}
