package body

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

const (
	// Offset is where a body begins in its file, in bytes.
	Offset = 8192
	// HeaderSize is the length of a frame's header in bytes.
	HeaderSize = 20
	// FrameMax is the greatest length of a payload before compression in bytes. A frame of
	// more than one event is much shorter, see [Full].
	FrameMax = 1<<30 + 64<<20
	// storedMax is the greatest length of a payload as stored: zstd adds a little to what it
	// cannot compress.
	storedMax = FrameMax + FrameMax>>7 + 1<<10
)

// ErrCorrupt says that bytes are not the frames that they should be.
var ErrCorrupt = errors.New("body: malformed")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the header of a frame.
type Header struct {
	CRC    uint32
	Stored uint32 // bytes of payload in the file
	Plain  uint32 // bytes of payload before compression
	Events uint32
	Codec  entry.Codec
}

// Size is the length of the frame in bytes.
func (h *Header) Size() int64 { return HeaderSize + int64(h.Stored) }

func (h *Header) put(b []byte) {
	_ = b[HeaderSize-1]
	binary.LittleEndian.PutUint32(b, h.CRC)
	binary.LittleEndian.PutUint32(b[4:], h.Stored)
	binary.LittleEndian.PutUint32(b[8:], h.Plain)
	binary.LittleEndian.PutUint32(b[12:], h.Events)
	binary.LittleEndian.PutUint32(b[16:], uint32(h.Codec))
}

// ParseHeader reads a header from the first HeaderSize bytes of b. Error: ErrCorrupt.
func ParseHeader(b []byte) (h Header, err error) {
	if len(b) < HeaderSize {
		return h, fmt.Errorf("%w: a frame header of %d bytes", ErrCorrupt, len(b))
	}
	le := binary.LittleEndian
	h = Header{CRC: le.Uint32(b), Stored: le.Uint32(b[4:]), Plain: le.Uint32(b[8:]), Events: le.Uint32(b[12:]), Codec: entry.Codec(b[16])}
	switch {
	case le.Uint32(b[16:])>>8 != 0 || h.Codec > entry.Zstd:
		return h, fmt.Errorf("%w: unknown codec %#x", ErrCorrupt, le.Uint32(b[16:]))
	case h.Plain == 0 || h.Events == 0 || h.Plain > FrameMax || h.Stored > storedMax ||
		h.Codec == entry.Plain && h.Stored != h.Plain:
		return h, fmt.Errorf("%w: a frame of %d bytes, %d before compression, with %d events", ErrCorrupt, h.Stored, h.Plain, h.Events)
	}
	return h, nil
}

// checksum begins the checksum of a frame whose header is in b, behind a frame with the checksum before.
func checksum(before uint32, b []byte) uint32 {
	return crc32.Update(before, castagnoli, b[4:HeaderSize])
}

// Full reports whether a frame with so many bytes of events is to be closed, in a body that
// has so many before it. Frames grow with the body, so that what is kept of each in memory
// is little beside it.
func Full(events int, before int64) bool {
	switch {
	case before >= 64<<30:
		return events >= 4<<20
	case before >= 4<<30:
		return events >= 1<<20
	}
	return events >= 256<<10
}

// AppendFrame appends a frame of the events to dst, compressed by z if that makes it shorter;
// nil: not compressed. before is the checksum of the frame before, 0 for the first.
//
// REQUIRES: events are whole, one at least, at most FrameMax bytes.
func AppendFrame(dst []byte, z *zstd.Encoder, before uint32, events []byte, count int) ([]byte, Header) {
	at := len(dst)
	h := Header{Plain: uint32(len(events)), Events: uint32(count), Codec: entry.Plain}
	var room [HeaderSize]byte
	dst = append(dst, room[:]...)
	if z != nil {
		dst = z.EncodeAll(events, dst)
		h.Codec = entry.Zstd
	}
	if h.Codec == entry.Plain || len(dst)-at-HeaderSize >= len(events) {
		h.Codec = entry.Plain
		dst = append(dst[:at+HeaderSize], events...)
	}
	h.Stored = uint32(len(dst) - at - HeaderSize)
	h.put(dst[at:])
	h.CRC = crc32.Update(checksum(before, dst[at:]), castagnoli, dst[at+HeaderSize:])
	h.put(dst[at:])
	return dst, h
}

// Verify checks the payload of a frame behind one with the checksum before. Error: ErrCorrupt.
func (h *Header) Verify(before uint32, payload []byte) error {
	var b [HeaderSize]byte
	h.put(b[:])
	if crc := crc32.Update(checksum(before, b[:]), castagnoli, payload); len(payload) != int(h.Stored) || crc != h.CRC {
		return h.mismatch(crc)
	}
	return nil
}

func (h *Header) mismatch(crc uint32) error {
	return fmt.Errorf("%w: the frame's checksum is %08x, its bytes give %08x", ErrCorrupt, h.CRC, crc)
}

// Unpack returns a frame's events: the payload itself, or, of a compressed one, what is
// appended to dst[:0]. Error: ErrCorrupt.
func (h *Header) Unpack(z *zstd.Decoder, payload, dst []byte) (events []byte, err error) {
	if h.Codec == entry.Plain {
		return payload, nil
	}
	if cap(dst) < int(h.Plain) {
		dst = make([]byte, 0, h.Plain)
	}
	if events, err = z.DecodeAll(payload, dst[:0]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(events) != int(h.Plain) {
		return nil, fmt.Errorf("%w: a frame of %d bytes of events, %d announced", ErrCorrupt, len(events), h.Plain)
	}
	return events, nil
}
