package auth

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// revocations are lists of the certificates that authorities have taken back (ssl_crl).
type revocations []revocation

type revocation struct {
	*x509.RevocationList
	serials map[string]bool
}

// oidDistributionPoint is that of issuingDistributionPoint (RFC 5280, 5.2.5), which is always critical.
var oidDistributionPoint = asn1.ObjectIdentifier{2, 5, 29, 28}

// isOfClients reports whether an issuingDistributionPoint says no more than where the list is to be had, and at most that it is of certificates of
// users, which clients show.
func isOfClients(der []byte) bool {
	var p struct {
		Point       asn1.RawValue  `asn1:"optional,tag:0"`
		OnlyUsers   bool           `asn1:"optional,tag:1"`
		OnlyCAs     bool           `asn1:"optional,tag:2"`
		OnlyReasons asn1.BitString `asn1:"optional,tag:3"`
		Indirect    bool           `asn1:"optional,tag:4"`
		OnlyOthers  bool           `asn1:"optional,tag:5"`
	}
	rest, err := asn1.Unmarshal(der, &p)
	return err == nil && len(rest) == 0 && !p.OnlyCAs && p.OnlyReasons.BitLength == 0 && !p.Indirect && !p.OnlyOthers
}

func parseRevocations(text []byte) (all revocations, err error) {
	blocks, err := pemBlocks(text)
	if err != nil {
		return nil, err
	}
	for _, block := range blocks {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		for _, x := range list.Extensions {
			// Such a list is not of all certificates of clients, or not whole: to take it for one would let in what another one has.
			if x.Critical && !(x.Id.Equal(oidDistributionPoint) && isOfClients(x.Value)) {
				return nil, fmt.Errorf("the list of %s has an extension, %s, that says of which certificates it is, and not of all of clients: "+
					"give lists that are whole", list.Issuer, x.Id)
			}
		}
		r := revocation{list, make(map[string]bool, len(list.RevokedCertificateEntries))}
		for _, e := range list.RevokedCertificateEntries {
			r.serials[e.SerialNumber.String()] = true
		}
		all = append(all, r)
	}
	if all == nil {
		return nil, errors.New("it has no list of revoked certificates (X509 CRL)")
	}
	return all, nil
}

// check takes a client whose certificate has a chain of which nothing is revoked. As with OpenSSL each
// authority of the chain needs a list that is in force: without one nobody is let in by it.
func (r revocations) check(chains [][]*x509.Certificate, now time.Time) (err error) {
	for _, chain := range chains {
		if err = r.chain(chain, now); err == nil {
			return nil
		}
	}
	return err
}

func (r revocations) chain(chain []*x509.Certificate, now time.Time) error {
	for i := range len(chain) - 1 {
		if err := r.certificate(chain[i], chain[i+1], now); err != nil {
			return err
		}
	}
	return nil
}

func (r revocations) certificate(c, issuer *x509.Certificate, now time.Time) error {
	missing := fmt.Errorf("auth: ssl_crl has no list of %s", issuer.Subject)
	for _, list := range r {
		if !bytes.Equal(list.RawIssuer, issuer.RawSubject) || list.CheckSignatureFrom(issuer) != nil {
			continue
		}
		switch {
		case list.serials[c.SerialNumber.String()]:
			return fmt.Errorf("auth: the certificate of %s is revoked", c.Subject)
		case now.Before(list.ThisUpdate), !list.NextUpdate.IsZero() && now.After(list.NextUpdate):
			if missing != nil {
				missing = fmt.Errorf("auth: the list of revoked certificates of %s is not in force: it ends %v", issuer.Subject, list.NextUpdate)
			}
		default:
			missing = nil
		}
	}
	return missing
}

// pemBlocks cuts a file of PEM into its blocks. One that is being written, which ends within a block, is
// an error.
func pemBlocks(text []byte) (all []*pem.Block, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		all, text = append(all, block), rest
	}
	if bytes.Contains(text, []byte("-----BEGIN ")) {
		return nil, errors.New("it ends within a block of PEM")
	}
	return all, nil
}
