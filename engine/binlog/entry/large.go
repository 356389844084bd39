package entry

import (
	"encoding/binary"
	"fmt"
)

// StreamID names the body of a large transaction for as long as it is under way. No two
// transactions of a group ever have the same one.
type StreamID struct {
	Term   uint64 // in which its leader led
	Member uint64 // the leader
	Start  uint64 // drawn at random when the leader's process began
	Number uint64 // of the stream, in that process
}

func (id StreamID) String() string {
	return fmt.Sprintf("%d.%d.%x.%d", id.Term, id.Member, id.Start, id.Number)
}

// LargeBody is what an entry of kind Large says of the body that lies behind it in its file.
type LargeBody struct {
	ID     StreamID
	Stored int64  // length of the body in bytes
	Plain  int64  // length of the events in it, before compression
	Events int64  // their number
	Offset uint32 // where the body begins in its file
	Frames uint32
	Digest [32]byte // see package body
}

// LargeSize is the length in bytes of what AppendLarge appends for the body.
//
//	 0  8  term of the stream's id
//	 8  8  its member
//	16  8  its start
//	24  8  its number
//	32  8  length of the body
//	40  8  length of its events
//	48  8  count of events
//	56  4  where the body begins in its file
//	60  4  count of frames
//	64 32  digest
const LargeSize = 96

// AppendLarge appends the body of an entry of kind Large: what it says of the transaction's
// body, and the transaction's header as AppendTxn makes it, without events. The entry has
// FlagRotate and one transaction, and is not compressed.
func AppendLarge(dst []byte, l *LargeBody, t *Txn, entryTime int64) []byte {
	return AppendHeader(AppendLargeBody(dst, l), t, entryTime, 0)
}

// AppendLargeBody appends the LargeSize bytes that ParseLargeBody reads.
func AppendLargeBody(dst []byte, l *LargeBody) []byte {
	le := binary.LittleEndian
	for _, v := range [...]uint64{l.ID.Term, l.ID.Member, l.ID.Start, l.ID.Number, uint64(l.Stored), uint64(l.Plain), uint64(l.Events)} {
		dst = le.AppendUint64(dst, v)
	}
	dst = le.AppendUint32(dst, l.Offset)
	dst = le.AppendUint32(dst, l.Frames)
	return append(dst, l.Digest[:]...)
}

// ParseLarge reads the body of an entry of kind Large. Error: ErrCorrupt.
func ParseLarge(e *Envelope, body []byte) (l LargeBody, t Txn, err error) {
	if l, err = ParseLargeBody(body); err != nil {
		return l, t, err
	}
	r := NewReader(e, body[LargeSize:])
	if more, err := r.Next(&t); !more || err != nil {
		return l, t, fmt.Errorf("%w: the header of a large transaction: %w", ErrCorrupt, err)
	}
	if len(t.Events) > 0 {
		return l, t, fmt.Errorf("%w: a large transaction with %d bytes of events in its entry", ErrCorrupt, len(t.Events))
	}
	if more, err := r.Next(new(Txn)); more || err != nil {
		return l, t, fmt.Errorf("%w: bytes behind a large transaction: %w", ErrCorrupt, err)
	}
	return l, t, nil
}

// ParseLargeBody reads what the first LargeSize bytes of the body of an entry of kind Large
// say. Error: ErrCorrupt.
func ParseLargeBody(b []byte) (l LargeBody, err error) {
	if len(b) < LargeSize {
		return l, fmt.Errorf("%w: a large transaction's entry of %d bytes", ErrCorrupt, len(b))
	}
	le := binary.LittleEndian
	l = LargeBody{ID: StreamID{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])},
		Stored: int64(le.Uint64(b[32:])), Plain: int64(le.Uint64(b[40:])), Events: int64(le.Uint64(b[48:])),
		Offset: le.Uint32(b[56:]), Frames: le.Uint32(b[60:])}
	copy(l.Digest[:], b[64:])
	if l.Stored <= 0 || l.Plain <= 0 || l.Events <= 0 || l.Frames == 0 || l.Stored > largeMax || l.Plain > largeMax {
		return l, fmt.Errorf("%w: a large transaction of %d bytes, %d before compression, %d events in %d frames", ErrCorrupt,
			l.Stored, l.Plain, l.Events, l.Frames)
	}
	return l, nil
}

// largeMax bounds lengths, so that sums of some do not overflow.
const largeMax = 1 << 56
