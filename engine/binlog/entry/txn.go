package entry

import (
	"encoding/binary"
	"fmt"

	"github.com/triremedb/trireme/internal/trace"
)

// Token is a number that a client chose for a transaction, so that a commit can be
// tried again.
type Token [16]byte

// Flags of a transaction.
const (
	// TokenFlag: the transaction has a token.
	TokenFlag uint64 = 1 << iota
	// SchemaFlag: the transaction changes the catalogue.
	SchemaFlag
	// TraceFlag: the transaction is part of a trace. Only in files from TraceVersion on.
	TraceFlag

	knownTxnFlags = TokenFlag | SchemaFlag | TraceFlag
)

// Txn is a transaction in a body.
type Txn struct {
	Number    uint64
	DependsOn uint64 // the newest transaction that must be applied before; below Number
	Time      int64  // of its commit, microseconds since 1970
	Flags     uint64
	Token     Token         // with TokenFlag
	Trace     trace.Context // of the commit, valid, with TraceFlag; else zero
	Events    []byte        // aliases the body
}

// maxHeader is the longest header of a transaction in bytes, its length included.
const maxHeader = 4*binary.MaxVarintLen64 + len(Token{}) + trace.Size

// MinTxn is the length of the shortest transaction in a body, in bytes: its length, flags, distance and age. Who reads
// an entry makes room for as many as its envelope names.
const MinTxn = 4

// HeaderSpace is what AppendTxn may add to a transaction's events.
const HeaderSpace = maxHeader

// AppendTxn appends a transaction to a body. entryTime is the envelope's.
//
// REQUIRES: DependsOn < Number; Time <= entryTime; Trace is valid with TraceFlag.
func AppendTxn(dst []byte, t *Txn, entryTime int64) []byte {
	return append(AppendHeader(dst, t, entryTime, len(t.Events)), t.Events...)
}

// AppendHeader appends what AppendTxn appends before events of so many bytes.
func AppendHeader(dst []byte, t *Txn, entryTime int64, events int) []byte {
	var h [maxHeader]byte
	n := binary.PutUvarint(h[:], t.Flags)
	n += binary.PutUvarint(h[n:], t.Number-t.DependsOn)
	n += binary.PutUvarint(h[n:], uint64(entryTime-t.Time))
	if t.Flags&TokenFlag != 0 {
		n += copy(h[n:], t.Token[:])
	}
	if t.Flags&TraceFlag != 0 {
		n += copy(h[n:], t.Trace.Trace[:])
		n += copy(h[n:], t.Trace.Span[:])
	}
	dst = binary.AppendUvarint(dst, uint64(n+events))
	return append(dst, h[:n]...)
}

// Reader gives the transactions of a body one by one.
type Reader struct {
	rest  []byte
	next  uint64
	left  uint32
	time  int64
	count uint32
}

// NewReader returns a reader of the body, which is not compressed, of an entry of
// kind Transactions.
func NewReader(e *Envelope, body []byte) Reader {
	return Reader{rest: body, next: e.First, left: e.Count, time: e.Time, count: e.Count}
}

// Next reads the next transaction; more is false at the end. Error: ErrCorrupt.
func (r *Reader) Next(t *Txn) (more bool, err error) {
	if r.left == 0 {
		if len(r.rest) != 0 {
			return false, r.corrupt("bytes behind the last transaction")
		}
		return false, nil
	}
	length, ok := r.uvarint(&r.rest)
	if !ok || length > uint64(len(r.rest)) {
		return false, r.corrupt("length")
	}
	b := r.rest[:length:length]
	flags, ok1 := r.uvarint(&b)
	distance, ok2 := r.uvarint(&b)
	age, ok3 := r.uvarint(&b)
	if !ok1 || !ok2 || !ok3 || flags&^knownTxnFlags != 0 || distance == 0 || distance > r.next || int64(age) < 0 {
		return false, r.corrupt("header")
	}
	*t = Txn{Number: r.next, DependsOn: r.next - distance, Time: r.time - int64(age), Flags: flags}
	if flags&TokenFlag != 0 {
		if len(b) < len(t.Token) {
			return false, r.corrupt("token")
		}
		b = b[copy(t.Token[:], b):]
	}
	if flags&TraceFlag != 0 {
		if len(b) < trace.Size {
			return false, r.corrupt("trace context")
		}
		b = b[copy(t.Trace.Trace[:], b):]
		if b = b[copy(t.Trace.Span[:], b):]; !t.Trace.Valid() {
			return false, r.corrupt("trace context")
		}
	}
	t.Events = b
	r.rest = r.rest[length:]
	r.next++
	r.left--
	return true, nil
}

func (r *Reader) uvarint(b *[]byte) (uint64, bool) {
	v, n := binary.Uvarint(*b)
	if n <= 0 {
		return 0, false
	}
	*b = (*b)[n:]
	return v, true
}

func (r *Reader) corrupt(what string) error {
	return fmt.Errorf("%w: transaction %d (%d of %d in its entry): %s", ErrCorrupt, r.next, r.count-r.left+1, r.count, what)
}
