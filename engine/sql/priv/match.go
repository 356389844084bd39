package priv

import (
	"net/netip"
	"strings"
)

// Like reports whether a text fits a pattern with %, _ and \.
func Like(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '%':
			star, mark = p, t
			p++
			continue
		case p < len(pattern) && pattern[p] == '\\' && p+1 < len(pattern) && pattern[p+1] == text[t]:
			p, t = p+2, t+1
			continue
		case p < len(pattern) && pattern[p] != '\\' && (pattern[p] == '_' || pattern[p] == text[t]):
			p, t = p+1, t+1
			continue
		case star < 0:
			return false
		}
		mark++
		p, t = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '%' {
		p++
	}
	return p == len(pattern)
}

// isPattern reports whether a name has a wildcard.
func isPattern(s string) bool { return strings.ContainsAny(s, "%_") }

// MatchHost reports whether a host fits the pattern of an account: a name or address with
// wildcards, or a network as address/mask or address/bits.
func MatchHost(pattern, host string) bool {
	if host == "" {
		return pattern == "%"
	}
	if i := strings.IndexByte(pattern, '/'); i >= 0 {
		return inNetwork(pattern[:i], pattern[i+1:], host)
	}
	host = strings.ToLower(host)
	if pattern == "localhost" && (host == "127.0.0.1" || host == "::1") {
		return true
	}
	return Like(pattern, host)
}

func inNetwork(base, mask, host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	network, err := netip.ParseAddr(base)
	if err != nil {
		return false
	}
	if m, err := netip.ParseAddr(mask); err == nil {
		a, n, b := addr.Unmap().As16(), network.Unmap().As16(), m.Unmap().As16()
		if !m.Unmap().Is4() || !addr.Unmap().Is4() {
			return false
		}
		for i := 12; i < 16; i++ {
			if a[i]&b[i] != n[i] {
				return false
			}
		}
		return true
	}
	p, err := netip.ParsePrefix(base + "/" + mask)
	return err == nil && p.Contains(addr.Unmap())
}

// specificity orders host patterns: a host without wildcards before one with, and that
// with the longer beginning before the other.
func specificity(host string) int {
	if i := strings.IndexAny(host, "%_/"); i >= 0 {
		return i
	}
	return 1 << 20
}
