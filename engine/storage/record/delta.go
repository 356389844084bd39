package record

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Two versions of a row differ in a few ranges of bytes. A delta is what turns
// the newer into the older:
//
//	uvarint  length of the older version
//	then, from left to right, until the end of the delta:
//	uvarint  bytes to take over from the newer version
//	uvarint  n, bytes of the newer version to skip
//	uvarint  m, bytes that follow here and stand in their place
//	m bytes
//
// What remains of the newer version after the last range is taken over.

// minRun is the least number of equal bytes that are worth ending a range for:
// a range costs about three bytes.
const minRun = 6

// maxValue bounds a row version; the page size would do, LOB descriptors are small.
const maxValue = 1 << 16

// AppendDelta appends what turns the newer version into the older one.
//
// Versions of one length are compared byte by byte. If a variable column changed
// its length, what follows it has moved by that much: it is taken from the common
// end, and what lies before is still compared in place, so that an update costs
// the columns that it changes and their end offsets, wherever they lie.
func AppendDelta(dst, older, newer []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(older)))
	// The header is always replaced: the newer one's roll pointer is not known yet.
	at := min(HeaderSize, len(older), len(newer))
	dst = appendRange(dst, 0, at, older[:at])
	old, now := older, newer
	if len(older) != len(newer) {
		tail := commonTail(older[at:], newer[at:])
		old, now = older[:len(older)-tail], newer[:len(newer)-tail]
	}
	n, moved := min(len(old), len(now)), len(old) != len(now)
	for i := nextDifference(old, now, at, n); i < n; {
		end, same := i+1, 0
		for j := i + 1; j < n && same < minRun; j++ {
			if old[j] == now[j] {
				same++
			} else {
				end, same = j+1, 0
			}
		}
		if moved && end+minRun > n {
			return appendRange(dst, i-at, len(now)-i, old[i:])
		}
		dst = appendRange(dst, i-at, end-i, old[i:end])
		i, at = nextDifference(old, now, end, n), end
	}
	if moved {
		dst = appendRange(dst, n-at, len(now)-n, old[n:])
	}
	return dst
}

// nextDifference is the first position from i on, below n, where a and b differ,
// or n.
func nextDifference(a, b []byte, i, n int) int {
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// commonTail is the number of bytes in which a and b end alike.
func commonTail(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// headerOnly reports whether a delta replaces the header and nothing else.
func headerOnly(delta []byte) bool {
	_, n := binary.Uvarint(delta)
	return n > 0 && len(delta) == n+3+HeaderSize && delta[n] == 0 && delta[n+1] == HeaderSize && delta[n+2] == HeaderSize
}

func appendRange(dst []byte, keep, skip int, replace []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(keep))
	dst = binary.AppendUvarint(dst, uint64(skip))
	dst = binary.AppendUvarint(dst, uint64(len(replace)))
	return append(dst, replace...)
}

// ApplyDelta appends the older version to dst, which must not overlap newer.
func ApplyDelta(dst, newer, delta []byte) ([]byte, error) {
	length, delta, err := takeUvarint(delta, maxValue)
	if err != nil {
		return dst, err
	}
	start, at := len(dst), 0
	for len(delta) > 0 {
		var keep, skip, n int
		if keep, delta, err = takeUvarint(delta, len(newer)-at); err != nil {
			return dst, err
		}
		dst = append(dst, newer[at:at+keep]...)
		at += keep
		if skip, delta, err = takeUvarint(delta, len(newer)-at); err != nil {
			return dst, err
		}
		at += skip
		if n, delta, err = takeUvarint(delta, maxValue); err != nil {
			return dst, err
		}
		if n > len(delta) {
			return dst, fmt.Errorf("%w: version difference is cut short", ErrCorrupt)
		}
		dst = append(dst, delta[:n]...)
		delta = delta[n:]
	}
	dst = append(dst, newer[at:]...)
	if len(dst)-start != length {
		return dst, fmt.Errorf("%w: older version has %d bytes, not %d", ErrCorrupt, len(dst)-start, length)
	}
	return dst, nil
}

func takeUvarint(b []byte, limit int) (int, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > uint64(limit) {
		return 0, nil, fmt.Errorf("%w: number %d out of range 0 to %d", ErrCorrupt, v, limit)
	}
	return int(v), b[n:], nil
}

func takeBytes(b []byte, limit int) (field, rest []byte, err error) {
	n, b, err := takeUvarint(b, limit)
	if err != nil {
		return nil, nil, err
	}
	if n > len(b) {
		return nil, nil, fmt.Errorf("%w: field of %d bytes, %d left", ErrCorrupt, n, len(b))
	}
	return b[:n:n], b[n:], nil
}
