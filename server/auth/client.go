package auth

import (
	"crypto/tls"
	"net"

	"github.com/triremedb/trireme/engine/types"
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
func (a *Account) Denied(user, host string, password bool) *types.Error {
	if a.Stale {
		return &types.Error{Number: 1053, State: "08S01", Message: "Server shutdown in progress: this member hears of no leader of the group, or is behind, and cannot tell " +
			"whether this password is right by now: connect to another, or again later"}
	}
	return Denied(user, host, password)
}

// Denied is the error of a client that has not proved who it is. password says that it tried to
// by one.
func Denied(user, host string, password bool) *types.Error {
	using := "NO"
	if password {
		using = "YES"
	}
	return &types.Error{Number: 1045, State: "28000",
		Message: "Access denied for user '" + user + "'@'" + host + "' (using password: " + using + ")"}
}
