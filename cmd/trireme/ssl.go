package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// How a server is talked to: the modes of the mysql client.
const (
	sslDisabled       = "DISABLED"
	sslPreferred      = "PREFERRED"
	sslRequired       = "REQUIRED"
	sslVerifyCA       = "VERIFY_CA"
	sslVerifyIdentity = "VERIFY_IDENTITY"
)

// tlsModes are what --tls calls them.
var tlsModes = map[string]string{"off": sslDisabled, "preferred": sslPreferred, "required": sslRequired, "verify": sslVerifyIdentity}

// sslFlags are the options of TLS, as the mysql client names them, and --tls.
type sslFlags struct{ tls, mode, ca, cert, key string }

// names of sslFlags, for lists of options.
const sslFlagNames = "tls ssl-mode ssl-ca ssl-cert ssl-key"

func (s *sslFlags) add(f *flag.FlagSet, preferred string) {
	f.StringVar(&s.tls, "tls", "", "preferred"+preferred+", required, verify or off: short for -ssl-mode")
	f.StringVar(&s.mode, "ssl-mode", "", "DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY, which looks at the server's name too; PREFERRED, with -ssl-ca VERIFY_CA")
	f.StringVar(&s.ca, "ssl-ca", "", "`file` with the authorities that sign the servers' certificates; those of the machine")
	f.StringVar(&s.cert, "ssl-cert", "", "`file` with your certificate, for accounts that REQUIRE one")
	f.StringVar(&s.key, "ssl-key", "", "`file` with its key")
}

// resolve says which mode is meant.
func (s *sslFlags) resolve() (mode string, err error) {
	mode = strings.ToUpper(s.mode)
	if s.tls != "" {
		named, ok := tlsModes[s.tls]
		switch {
		case !ok:
			return "", fmt.Errorf("-tls=%s: it is preferred, required, verify or off", s.tls)
		case mode != "":
			return "", errors.New("-tls and -ssl-mode say the same: give one of them")
		}
		mode = named
	}
	switch {
	case (s.cert == "") != (s.key == ""):
		return "", errors.New("-ssl-cert and -ssl-key belong together: give both, or none")
	case mode == sslDisabled && s.cert != "":
		return "", errors.New("-ssl-cert goes with TLS: it cannot be switched off")
	case mode == "" && s.ca != "":
		return sslVerifyCA, nil
	case mode == "":
		return sslPreferred, nil
	}
	switch mode {
	case sslDisabled, sslPreferred, sslRequired, sslVerifyCA, sslVerifyIdentity:
		return mode, nil
	}
	return "", fmt.Errorf("-ssl-mode=%s: it is DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY", s.mode)
}

// config is the configuration for a server of a name. Errors are of the files.
func (s *sslFlags) config(mode, host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, fmt.Errorf("-ssl-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("-ssl-ca: %s has no certificate", s.ca)
		}
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("-ssl-cert, -ssl-key: %w", err)
		}
		// It is shown whichever authorities the server names, so that it can say what is wrong with it.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	c.InsecureSkipVerify = mode != sslVerifyIdentity //nolint:gosec // what was asked for
	if mode == sslVerifyCA {
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(c.RootCAs, state.PeerCertificates) }
	}
	return c, nil
}

// verifyChain looks who has signed a server's certificate, whatever its name.
func verifyChain(roots *x509.CertPool, shown []*x509.Certificate) error {
	if len(shown) == 0 {
		return errors.New("the server shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}
