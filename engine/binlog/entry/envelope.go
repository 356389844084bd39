package entry

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Kind is what an entry is.
type Kind uint8

const (
	// Transactions is a run of transactions.
	Transactions Kind = 1 + iota
	// Settings changes settings of the group; see the group's package.
	Settings
	// Mark carries the leader's clock when there is nothing else to carry it.
	Mark
	// Large is a transaction whose events lie behind the entry in a file of their own, from
	// LargeVersion on; see LargeBody.
	Large
)

func (k Kind) String() string {
	switch k {
	case Transactions:
		return "transactions"
	case Settings:
		return "settings"
	case Mark:
		return "mark"
	case Large:
		return "large"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Codec is how a body is stored.
type Codec uint8

const (
	Plain Codec = iota
	Zstd        // one frame or several
)

// Flags of an entry.
const (
	// FlagRotate: the entry is the first of a new file.
	FlagRotate uint8 = 1 << iota
	// FlagBarrier: nothing before the entry is applied beside it, nothing after it
	// before it is applied.
	FlagBarrier

	knownFlags = FlagRotate | FlagBarrier
)

// EnvelopeSize is the length of an envelope in bytes.
const EnvelopeSize = 40

// MaxBody is the longest body before compression, 1 MiB above the greatest
// transaction (error 1197 beyond it).
const MaxBody = 65 << 20

// ErrCorrupt says that bytes are no entry.
var ErrCorrupt = errors.New("entry: malformed")

// Envelope says what an entry is.
type Envelope struct {
	Kind        Kind
	Codec       Codec
	Flags       uint8
	FileVersion uint8
	RawLength   uint32
	Term        uint64
	First       uint64
	Count       uint32
	Time        int64 // microseconds since 1970
}

// Last is the number of the last transaction up to and with the entry.
func (e *Envelope) Last() uint64 {
	if e.Count == 0 {
		return e.First
	}
	return e.First + uint64(e.Count) - 1
}

// Rotate reports whether the entry opens a new file.
func (e *Envelope) Rotate() bool { return e.Flags&FlagRotate != 0 }

// Put writes the envelope into the first EnvelopeSize bytes of dst.
func (e *Envelope) Put(dst []byte) {
	_ = dst[EnvelopeSize-1]
	dst[0], dst[1], dst[2], dst[3] = byte(e.Kind), byte(e.Codec), e.Flags, e.FileVersion
	binary.LittleEndian.PutUint32(dst[4:], e.RawLength)
	binary.LittleEndian.PutUint64(dst[8:], e.Term)
	binary.LittleEndian.PutUint64(dst[16:], e.First)
	binary.LittleEndian.PutUint32(dst[24:], e.Count)
	binary.LittleEndian.PutUint32(dst[28:], 0)
	binary.LittleEndian.PutUint64(dst[32:], uint64(e.Time))
}

// Parse reads the envelope of an entry and returns the body as it is stored, which
// aliases data. Error: ErrCorrupt.
func Parse(data []byte) (e Envelope, body []byte, err error) {
	if len(data) < EnvelopeSize {
		return e, nil, fmt.Errorf("%w: %d bytes, an envelope has %d", ErrCorrupt, len(data), EnvelopeSize)
	}
	e = Envelope{Kind: Kind(data[0]), Codec: Codec(data[1]), Flags: data[2], FileVersion: data[3],
		RawLength: binary.LittleEndian.Uint32(data[4:]), Term: binary.LittleEndian.Uint64(data[8:]),
		First: binary.LittleEndian.Uint64(data[16:]), Count: binary.LittleEndian.Uint32(data[24:]),
		Time: int64(binary.LittleEndian.Uint64(data[32:]))}
	body = data[EnvelopeSize:]
	switch {
	case e.Kind < Transactions || e.Kind > Large:
		return e, nil, fmt.Errorf("%w: %v", ErrCorrupt, e.Kind)
	case e.Codec > Zstd:
		return e, nil, fmt.Errorf("%w: codec %d", ErrCorrupt, e.Codec)
	case e.Flags&^knownFlags != 0 || binary.LittleEndian.Uint32(data[28:]) != 0:
		return e, nil, fmt.Errorf("%w: unknown flags %#x", ErrCorrupt, e.Flags)
	case e.RawLength > MaxBody:
		return e, nil, fmt.Errorf("%w: a body of %d bytes, the most is %d", ErrCorrupt, e.RawLength, MaxBody)
	case e.Codec == Plain && int(e.RawLength) != len(body):
		return e, nil, fmt.Errorf("%w: %d bytes of body, %d announced", ErrCorrupt, len(body), e.RawLength)
	case e.Kind == Transactions && e.Count == 0 || e.Count != 0 && (e.First == 0 || e.First+uint64(e.Count) < e.First):
		return e, nil, fmt.Errorf("%w: transactions %d, %d of them", ErrCorrupt, e.First, e.Count)
	case e.Kind == Transactions && e.Count > e.RawLength/MinTxn:
		return e, nil, fmt.Errorf("%w: %d transactions in a body of %d bytes", ErrCorrupt, e.Count, e.RawLength)
	case e.Kind == Large && (e.Count != 1 || e.Codec != Plain || !e.Rotate() || e.FileVersion < LargeVersion):
		return e, nil, fmt.Errorf("%w: a large transaction with count %d, codec %d, flags %#x and version %d", ErrCorrupt, e.Count, e.Codec, e.Flags, e.FileVersion)
	case e.Kind != Transactions && e.Kind != Large && e.Count != 0:
		return e, nil, fmt.Errorf("%w: %v with %d transactions", ErrCorrupt, e.Kind, e.Count)
	}
	return e, body, nil
}

// Unpack returns the body before compression: stored itself, or, of a compressed one, one or
// several frames of zstd, what is appended to dst, which needs room for RawLength bytes lest
// memory is made. z is not used for others. Error: ErrCorrupt.
func (e *Envelope) Unpack(z *zstd.Decoder, stored, dst []byte) (body []byte, err error) {
	if e.Codec == Plain {
		return stored, nil
	}
	if cap(dst) < int(e.RawLength) {
		dst = make([]byte, 0, e.RawLength) // at once: the decoder would make it anew for each frame
	}
	if body, err = z.DecodeAll(stored, dst[:0]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(body) != int(e.RawLength) {
		return nil, fmt.Errorf("%w: body of %d bytes, %d announced", ErrCorrupt, len(body), e.RawLength)
	}
	return body, nil
}

// Versions of the format of files.
const (
	// FirstVersion is the oldest that there is.
	FirstVersion = 1
	// TraceVersion is the first in which transactions may have trace contexts.
	TraceVersion = 2
	// LargeVersion is the first in which there may be entries of kind Large.
	LargeVersion = 3
	// FileVersion is the newest: that of a new group's files, and of those that a leader
	// asks for when all members know it.
	FileVersion = 3
)
