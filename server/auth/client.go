package auth

import (
	"crypto/tls"
	"net"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// RemoteHost is where a client comes from: the address, or "localhost" for this machine, as
// MySQL's name resolution has it.
func RemoteHost(a net.Addr) (host, address string) {
	if a == nil || a.Network() == "unix" {
		return "localhost", ""
	}
	address, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String(), ""
	}
	if ip := net.ParseIP(address); ip != nil && ip.IsLoopback() {
		return "localhost", address
	}
	return address, address
}

// TLSVersion is a version of TLS by the name that MySQL has for it.
func TLSVersion(v uint16) string {
	switch v {
	case tls.VersionTLS12:
		return "TLSv1.2"
	case tls.VersionTLS13:
		return "TLSv1.3"
	}
	return tls.VersionName(v)
}

// Denied is the error of a client that has not proved to be of the account. password says that it tried
// to by one. Where the account may have been changed it is not that of a wrong password, which drivers take for final.
func (a *Account) Denied(user, host string, password bool) *sqlerr.Error {
	if a.Stale {
		return sqlerr.Newf(sqlerr.ServerShutdown, "Server shutdown in progress: this member hears of no leader of "+
			"the group, or is behind, and cannot tell whether this password is right by now: connect to another, or "+
			"again later")
	}
	return Denied(user, host, password)
}

// Denied is the error of a client that has not proved who it is. password says that it tried to
// by one.
func Denied(user, host string, password bool) *sqlerr.Error {
	using := "NO"
	if password {
		using = "YES"
	}
	return sqlerr.New(sqlerr.AccessDeniedError, user, host, using)
}
