package mysqlwire

import (
	"bytes"
	"encoding/binary"
)

// appendInt appends a length-encoded integer.
func appendInt(b []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// appendString appends a length-encoded string.
func appendString[S string | []byte](b []byte, s S) []byte {
	return append(appendInt(b, uint64(len(s))), s...)
}

// intSize is how many bytes appendInt takes.
func intSize(n uint64) int {
	switch {
	case n < 251:
		return 1
	case n < 1<<16:
		return 3
	case n < 1<<24:
		return 4
	}
	return 9
}

// payload is what is left to read of a packet. Reading past its end, or what is not
// well formed, sets bad, and zeros come from then on: callers look once, at the end.
type payload struct {
	b   []byte
	bad bool
}

func (p *payload) fail() {
	p.b, p.bad = nil, true
}

func (p *payload) take(n int) []byte {
	if n < 0 || n > len(p.b) {
		p.fail()
		return nil
	}
	s := p.b[:n:n]
	p.b = p.b[n:]
	return s
}

func (p *payload) uint8() uint8 {
	if s := p.take(1); s != nil {
		return s[0]
	}
	return 0
}

func (p *payload) uint16() uint16 {
	if s := p.take(2); s != nil {
		return binary.LittleEndian.Uint16(s)
	}
	return 0
}

func (p *payload) uint24() uint32 {
	if s := p.take(3); s != nil {
		return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16
	}
	return 0
}

func (p *payload) uint32() uint32 {
	if s := p.take(4); s != nil {
		return binary.LittleEndian.Uint32(s)
	}
	return 0
}

func (p *payload) uint64() uint64 {
	if s := p.take(8); s != nil {
		return binary.LittleEndian.Uint64(s)
	}
	return 0
}

// int reads a length-encoded integer.
func (p *payload) int() uint64 {
	switch first := p.uint8(); first {
	case 0xfc:
		return uint64(p.uint16())
	case 0xfd:
		return uint64(p.uint24())
	case 0xfe:
		return p.uint64()
	case 0xfb, 0xff:
		p.fail()
		return 0
	default:
		return uint64(first)
	}
}

// string reads a length-encoded string, which aliases the packet.
func (p *payload) string() []byte {
	n := p.int()
	if n > uint64(len(p.b)) {
		p.fail()
		return nil
	}
	return p.take(int(n))
}

// cString reads a string that a zero ends.
func (p *payload) cString() []byte {
	i := bytes.IndexByte(p.b, 0)
	if i < 0 {
		p.fail()
		return nil
	}
	s := p.take(i)
	p.take(1)
	return s
}

// cStringOrRest is cString, or all that is left if no zero ends it.
func (p *payload) cStringOrRest() []byte {
	if bytes.IndexByte(p.b, 0) < 0 {
		return p.take(len(p.b))
	}
	return p.cString()
}
