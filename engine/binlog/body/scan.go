package body

import (
	"hash/crc32"
)

// Scanner checks frames whose bytes come in pieces of any length: a frame may be far longer
// than what a receiver can hold in memory. The zero value is at the beginning of a body.
type Scanner struct {
	before uint32 // checksum of the last whole frame
	head   [HeaderSize]byte
	have   int64 // bytes of the present frame, header included
	h      Header
	sum    uint32
}

// Reset goes to the end of a frame with this checksum; 0 is the beginning of a body.
func (s *Scanner) Reset(before uint32) { *s = Scanner{before: before} }

// Partial is how many bytes of a frame there are that is not whole yet.
func (s *Scanner) Partial() int64 { return s.have }

// Next takes bytes of p, up to the end of a frame at most, and says how many. It reports
// whether they complete a frame, whose header is then h, and whose checksum is right. Error:
// ErrCorrupt; after it only Reset is allowed.
func (s *Scanner) Next(p []byte) (n int, h Header, whole bool, err error) {
	if s.have < HeaderSize {
		n = copy(s.head[s.have:], p)
		if s.have += int64(n); s.have < HeaderSize {
			return n, h, false, nil
		}
		if s.h, err = ParseHeader(s.head[:]); err != nil {
			return n, h, false, err
		}
		s.sum = checksum(s.before, s.head[:])
	}
	k := int(min(int64(len(p)-n), s.h.Size()-s.have))
	s.sum = crc32.Update(s.sum, castagnoli, p[n:n+k])
	s.have += int64(k)
	if n += k; s.have < s.h.Size() {
		return n, h, false, nil
	}
	if s.sum != s.h.CRC {
		return n, h, false, s.h.mismatch(s.sum)
	}
	h = s.h
	s.Reset(h.CRC)
	return n, h, true, nil
}
