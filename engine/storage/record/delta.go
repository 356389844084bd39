package record

import (
	"encoding/binary"
	"fmt"
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
func AppendDelta(dst, older, newer []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(older)))
	// The header is always replaced: the newer one's roll pointer is not known yet.
	from := min(HeaderSize, len(older), len(newer))
	dst = appendRange(dst, 0, from, older[:from])
	if len(older) != len(newer) {
		return appendResized(dst, older, newer, from)
	}
	for i := from; i < len(older); {
		if older[i] == newer[i] {
			i++
			continue
		}
		end, same := i+1, 0
		for j := i + 1; j < len(older) && same < minRun; j++ {
			if older[j] == newer[j] {
				same++
			} else {
				end, same = j+1, 0
			}
		}
		dst = appendRange(dst, i-from, end-i, older[i:end])
		i, from = end, end
	}
	return dst
}

// appendResized handles versions of different lengths: variable columns shift, so
// what lies between the common ends is replaced.
func appendResized(dst, older, newer []byte, taken int) []byte {
	n := min(len(older), len(newer))
	head := taken
	for head < n && older[head] == newer[head] {
		head++
	}
	tail := 0
	for tail < n-head && older[len(older)-1-tail] == newer[len(newer)-1-tail] {
		tail++
	}
	return appendRange(dst, head-taken, len(newer)-tail-head, older[head:len(older)-tail])
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
