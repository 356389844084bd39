package priv

import (
	"cmp"
	"math/bits"
	"net/netip"
	"strconv"
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

// covers reports whether a pattern fits all names that another one fits.
func covers(pattern, other string) bool {
	p, o := patternItems(pattern), patternItems(other)
	// fits[j] says that what is left of p fits what is left of o from j on.
	fits := make([]bool, len(o)+1)
	fits[len(o)] = true
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].wild == '%' {
			for j := len(o) - 1; j >= 0; j-- {
				fits[j] = fits[j] || fits[j+1]
			}
			continue
		}
		for j := range o {
			fits[j] = fits[j+1] && o[j].wild != '%' && (p[i].wild == '_' || p[i] == o[j])
		}
		fits[len(o)] = false
	}
	return fits[0]
}

// patternItem is a character of a pattern, or a wildcard.
type patternItem struct{ wild, char byte }

// patternItems are those of a pattern; % after % says nothing more.
func patternItems(pattern string) []patternItem {
	var items []patternItem
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			items = append(items, patternItem{char: pattern[i]})
		case c == '%' && len(items) > 0 && items[len(items)-1].wild == '%':
		case c == '%' || c == '_':
			items = append(items, patternItem{wild: c})
		default:
			items = append(items, patternItem{char: c})
		}
	}
	return items
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

// specificity orders patterns: a name without wildcards before one with, and that with the longer beginning before
// the other.
func specificity(pattern string) int {
	if i := strings.IndexAny(pattern, "%_"); i >= 0 {
		return i
	}
	return 1 << 20
}

// compareHosts orders the hosts of accounts as MySQL does, the most specific first: addresses, networks as
// address/bits, networks as address/mask, each the smaller network first, and then names and patterns.
func compareHosts(a, b string) int {
	kindA, sizeA := hostKind(a)
	kindB, sizeB := hostKind(b)
	return cmp.Or(cmp.Compare(kindA, kindB), cmp.Compare(sizeB, sizeA))
}

// hostKind is the place of a host in the order of compareHosts: its kind, and how specific it is among those of it.
func hostKind(host string) (kind, specific int) {
	base, mask, isNetwork := strings.Cut(host, "/")
	addr, err := netip.ParseAddr(base)
	switch {
	case err != nil:
		return 3, specificity(host)
	case !isNetwork:
		return 0, 0
	}
	if m, err := netip.ParseAddr(mask); err == nil {
		ones := 0
		for _, b := range m.AsSlice() {
			ones += bits.OnesCount8(b)
		}
		return 2, ones
	}
	n, err := strconv.Atoi(mask)
	if err != nil {
		return 3, 0 // it fits nobody
	}
	return 1, n + 128 - addr.BitLen() // of IPv4 and IPv6 alike
}
