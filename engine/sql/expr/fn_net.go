package expr

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
)

// parseIPv4Number is INET_ATON: numbers between dots, of which the middle ones may be missing.
func parseIPv4Number(s []byte) (n uint64, ok bool) {
	var part uint64
	dots := 0
	if len(s) == 0 || s[len(s)-1] == '.' {
		return 0, false
	}
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			part = part*10 + uint64(c-'0')
			if part > 255 {
				return 0, false
			}
		case c == '.':
			dots++
			n = n<<8 | part
			part = 0
		default:
			return 0, false
		}
		if dots > 3 {
			return 0, false
		}
	}
	if dots == 1 || dots == 2 {
		n <<= 8 * (3 - dots)
	}
	return n<<8 | part, true
}

func appendIPv4(dst []byte, n uint32) []byte {
	for shift := 24; shift >= 0; shift -= 8 {
		dst = strconv.AppendUint(dst, uint64(n>>shift&255), 10)
		if shift > 0 {
			dst = append(dst, '.')
		}
	}
	return dst
}

// parseIPv4 reads a complete address of four numbers, each of one to three digits.
func parseIPv4(s []byte) (addr [4]byte, ok bool) {
	if len(s) > 15 {
		return addr, false
	}
	part, digits := 0, 0
	i := 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			part = part*10 + int(c-'0')
			if digits++; digits > 3 || part > 255 {
				return addr, false
			}
		case c == '.' && digits > 0 && i < 3:
			addr[i] = byte(part)
			i++
			part, digits = 0, 0
		default:
			return addr, false
		}
	}
	if i != 3 || digits == 0 {
		return addr, false
	}
	addr[3] = byte(part)
	return addr, true
}

// parseIPv6 reads an address without a zone.
func parseIPv6(s []byte) (addr [16]byte, ok bool) {
	a, err := netip.ParseAddr(withoutZeros(s))
	if err != nil || !a.Is6() || a.Zone() != "" {
		return addr, false
	}
	return a.As16(), true
}

// appendIP is INET6_NTOA of an address of 4 or 16 bytes.
func appendIP(dst, s []byte) (out []byte, ok bool) {
	if len(s) == 4 {
		return appendIPv4(dst, binary.BigEndian.Uint32(s)), true
	}
	if len(s) != 16 {
		return dst, false
	}
	addr := [16]byte(s)
	if isIPv4Compat(addr) && (addr[12] != 0 || addr[13] != 0) {
		dst = append(dst, "::"...)
		return appendIPv4(dst, binary.BigEndian.Uint32(s[12:])), true
	}
	if isIPv4Mapped(addr) {
		dst = append(dst, "::ffff:"...)
		return appendIPv4(dst, binary.BigEndian.Uint32(s[12:])), true
	}
	return appendGroups(dst, addr), true
}

// appendGroups writes an address of version 6 with :: for its first longest run of zeros,
// which may be a single one.
func appendGroups(dst []byte, addr [16]byte) []byte {
	group := func(i int) uint16 { return binary.BigEndian.Uint16(addr[2*i:]) }
	start, length := -1, 0
	for i := 0; i < 8; i++ {
		n := 0
		for i+n < 8 && group(i+n) == 0 {
			n++
		}
		if n > length {
			start, length = i, n
		}
		i += n
	}
	for i := 0; i < 8; i++ {
		if i == start {
			dst = append(dst, "::"...)
			i += length - 1
			continue
		}
		if i > 0 && i != start+length {
			dst = append(dst, ':')
		}
		dst = strconv.AppendUint(dst, uint64(group(i)), 16)
	}
	return dst
}

// withoutZeros takes away the zeros in front of the numbers of an embedded address of version 4.
func withoutZeros(s []byte) string {
	tail := bytes.LastIndexByte(s, ':') + 1
	addr, ok := parseIPv4(s[tail:])
	if !ok {
		return string(s)
	}
	return string(appendIPv4(bytes.Clone(s[:tail]), binary.BigEndian.Uint32(addr[:])))
}

// isIPv4Compat reports whether an address embeds one of version 4 after zeros; :: and ::1 do not.
func isIPv4Compat(a [16]byte) bool {
	return [12]byte(a[:12]) == [12]byte{} && binary.BigEndian.Uint32(a[12:]) > 1
}

func isIPv4Mapped(a [16]byte) bool { return netip.AddrFrom16(a).Is4In6() }
