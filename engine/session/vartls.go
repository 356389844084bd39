package session

import (
	"time"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// tlsVariables tell how the node talks to clients by TLS. They are settings of the node: files that change
// are read again without SET GLOBAL, at once with ALTER INSTANCE RELOAD TLS.
func tlsVariables() []*variable {
	text := func(name string, get func(t ServerTLS) string) *variable {
		return stringVar(name, inGlobal|readOnly, "").computed(func(s *Session, _ bool) varValue {
			return varValue{s: get(s.m.opt.Backend.Server().TLS)}
		})
	}
	none := func(name string) *variable { return stringVar(name, inGlobal|readOnly, "") }
	return []*variable{
		enumVar("have_openssl", inGlobal|readOnly, 0, "DISABLED", "YES").computed(tlsOffered),
		enumVar("have_ssl", inGlobal|readOnly, 0, "DISABLED", "YES").computed(tlsOffered),
		text("ssl_ca", func(t ServerTLS) string { return t.CA }),
		none("ssl_capath"),
		text("ssl_cert", func(t ServerTLS) string { return t.Cert }),
		none("ssl_cipher"),
		text("ssl_crl", func(t ServerTLS) string { return t.CRL }),
		none("ssl_crlpath"),
		text("ssl_key", func(t ServerTLS) string { return t.Key }),
		none("tls_ciphersuites"),
		text("tls_version", func(t ServerTLS) string { return t.Versions }),
	}
}

// runReloadTLS is ALTER INSTANCE RELOAD TLS.
func (s *Session) runReloadTLS() error {
	if err := s.privileges().Needs(priv.Super, "CONNECTION_ADMIN"); err != nil {
		return err
	}
	if err := s.m.opt.Backend.ReloadTLS(); err != nil {
		return sqlerr.New(sqlerr.DASSLLibraryError, err)
	}
	return nil
}

func tlsOffered(s *Session, _ bool) varValue {
	if s.m.opt.Backend.Server().TLS.Offered {
		return varValue{n: 1}
	}
	return varValue{}
}

// checkSecureTransport refuses what would let nobody in any more.
func checkSecureTransport(s *Session, v *varValue) error {
	if s != nil && v.n != 0 && !s.m.opt.Backend.Server().TLS.Offered {
		return sqlerr.New(sqlerr.NoSecureTransportsConfigured)
	}
	return nil
}

// tlsStatus lists what SHOW STATUS tells of TLS: of the node, and of the session's client.
func tlsStatus(s *Session, into map[string]string) {
	t := s.m.opt.Backend.Server().TLS
	for name, value := range map[string]string{
		"Current_tls_ca": t.CA, "Current_tls_capath": "", "Current_tls_cert": t.Cert, "Current_tls_cipher": "", "Current_tls_ciphersuites": "",
		"Current_tls_crl": t.CRL, "Current_tls_crlpath": "", "Current_tls_key": t.Key, "Current_tls_version": t.Versions,
		"Ssl_cipher": s.info.TLS, "Ssl_version": s.info.TLSVersion, "Ssl_server_not_before": asn1Time(t.NotBefore), "Ssl_server_not_after": asn1Time(t.NotAfter),
	} {
		into[name] = value
	}
}

// asn1Time writes a time as OpenSSL does; empty: there is none.
func asn1Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("Jan _2 15:04:05 2006 GMT")
}
