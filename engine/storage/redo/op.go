package redo

import (
	"encoding/binary"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/page"
)

// Kind says what an op does. The numbers are part of the file format.
type Kind uint8

// The kinds of ops. n, offsets and numbers are varints; the tablespace number is
// a signed one, so that the undo spaces near 2^32 stay short.
const (
	// KindInit makes the page empty: {space, no, type byte}. See [page.Init].
	KindInit Kind = 1
	// KindWrite stores bytes: {space, no, off, n, n bytes}.
	KindWrite Kind = 2
	// KindMove copies n bytes within the page, as memmove: {space, no, dst, src, n}.
	KindMove Kind = 3
	// KindFill stores n times the same byte: {space, no, off, n, byte}.
	KindFill Kind = 4
	// KindSpaceCreate makes a tablespace: {space}.
	KindSpaceCreate Kind = 5
	// KindSpaceDrop removes a tablespace: {space}.
	KindSpaceDrop Kind = 6
	// KindSpaceResize sets a tablespace's size: {space, pages}.
	KindSpaceResize Kind = 7

	// kindEpoch starts a new epoch of the log: {8 bytes}. It is the only op of its
	// group, belongs to the log itself and is never given to a caller.
	kindEpoch Kind = 0x7e
)

var kindNames = map[Kind]string{
	KindInit: "init", KindWrite: "write", KindMove: "move", KindFill: "fill",
	KindSpaceCreate: "space create", KindSpaceDrop: "space drop", KindSpaceResize: "space resize",
	kindEpoch: "epoch",
}

func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// OfPage reports whether ops of this kind change one page (and not a tablespace).
func (k Kind) OfPage() bool { return k >= KindInit && k <= KindFill }

// Op is one decoded change. Which fields count depends on Kind.
type Op struct {
	Kind  Kind
	ID    page.ID   // the page; of a tablespace op only Space counts
	Type  page.Type // Init
	Value byte      // Fill
	Pages uint32    // SpaceResize: the size in pages
	Off   int       // Write, Fill, Move: the first byte that changes
	Src   int       // Move: the first byte that is copied
	N     int       // Write, Fill, Move: length in bytes; 1 or more
	Data  []byte    // Write: the N bytes; part of the decoded payload
}

func (op Op) String() string {
	switch op.Kind {
	case KindInit:
		return fmt.Sprintf("init %v %v", op.ID, op.Type)
	case KindWrite:
		return fmt.Sprintf("write %v [%d,%d) %x", op.ID, op.Off, op.Off+op.N, op.Data)
	case KindMove:
		return fmt.Sprintf("move %v [%d,%d) from %d", op.ID, op.Off, op.Off+op.N, op.Src)
	case KindFill:
		return fmt.Sprintf("fill %v [%d,%d) %#x", op.ID, op.Off, op.Off+op.N, op.Value)
	case KindSpaceResize:
		return fmt.Sprintf("%v %d to %d pages", op.Kind, op.ID.Space, op.Pages)
	default:
		return fmt.Sprintf("%v %d", op.Kind, op.ID.Space)
	}
}

// mayChange reports whether an op may change the n bytes of a page from off: all
// within the page, none of the checksum, the identity or the LSN, which are not
// the log's to set byte by byte.
func mayChange(off, n int) bool {
	if n < 1 || n > page.Size || off < page.OffType || off > page.Size-n {
		return false
	}
	return off >= page.OffLSN+8 || off+n <= page.OffLSN
}

// AppendInit appends an op that makes the page empty, of type t.
func AppendInit(dst []byte, id page.ID, t page.Type) []byte {
	return append(appendID(dst, KindInit, id), byte(t))
}

// AppendWrite appends an op that stores data at off.
//
// REQUIRES: data is not empty and lies within the page, past the identity
// (offset 12) and not on the LSN. The same holds for the other page ops.
func AppendWrite(dst []byte, id page.ID, off int, data []byte) []byte {
	checkRange(KindWrite, id, off, len(data))
	dst = appendID(dst, KindWrite, id)
	dst = binary.AppendUvarint(dst, uint64(off))
	dst = binary.AppendUvarint(dst, uint64(len(data)))
	return append(dst, data...)
}

// AppendMove appends an op that copies n bytes from src to off within the page.
func AppendMove(dst []byte, id page.ID, off, src, n int) []byte {
	checkRange(KindMove, id, off, n)
	checkRange(KindMove, id, src, n)
	dst = appendID(dst, KindMove, id)
	dst = binary.AppendUvarint(dst, uint64(off))
	dst = binary.AppendUvarint(dst, uint64(src))
	return binary.AppendUvarint(dst, uint64(n))
}

// AppendFill appends an op that sets n bytes from off to b.
func AppendFill(dst []byte, id page.ID, off, n int, b byte) []byte {
	checkRange(KindFill, id, off, n)
	dst = appendID(dst, KindFill, id)
	dst = binary.AppendUvarint(dst, uint64(off))
	dst = binary.AppendUvarint(dst, uint64(n))
	return append(dst, b)
}

// AppendSpaceCreate appends an op that makes a tablespace.
func AppendSpaceCreate(dst []byte, space uint32) []byte {
	return appendSpace(dst, KindSpaceCreate, space)
}

// AppendSpaceDrop appends an op that removes a tablespace.
func AppendSpaceDrop(dst []byte, space uint32) []byte {
	return appendSpace(dst, KindSpaceDrop, space)
}

// AppendSpaceResize appends an op that sets a tablespace's size in pages.
func AppendSpaceResize(dst []byte, space, pages uint32) []byte {
	return binary.AppendUvarint(appendSpace(dst, KindSpaceResize, space), uint64(pages))
}

func appendSpace(dst []byte, k Kind, space uint32) []byte {
	return binary.AppendVarint(append(dst, byte(k)), int64(int32(space)))
}

func appendID(dst []byte, k Kind, id page.ID) []byte {
	return binary.AppendUvarint(appendSpace(dst, k, id.Space), uint64(id.No))
}

func checkRange(k Kind, id page.ID, off, n int) {
	if !mayChange(off, n) {
		panic(fmt.Sprintf("redo: %v of page %v: bytes [%d,%d) are not the log's to change", k, id, off, off+n))
	}
}

// DecodeError says why bytes are not an op, or an op does not fit a page. Since a
// group's checksum was good, it means a bug or a newer program, not a torn log.
type DecodeError struct {
	Kind    Kind
	Problem string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("redo: bad %v op: %s", e.Kind, e.Problem)
}

// decoder reads the fields of one op; after a failure its reads give zeros.
type decoder struct {
	p      []byte
	failed bool
}

func (d *decoder) byte() byte {
	if len(d.p) == 0 {
		d.failed = true
		return 0
	}
	b := d.p[0]
	d.p = d.p[1:]
	return b
}

// uvarint reads a number of at most limit.
func (d *decoder) uvarint(limit uint64) uint64 {
	if len(d.p) > 0 && d.p[0] < 0x80 && limit >= 0x80 { // most of them
		v := d.p[0]
		d.p = d.p[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.p)
	if n <= 0 || v > limit {
		d.failed = true
		d.p = nil
		return 0
	}
	d.p = d.p[n:]
	return v
}

func (d *decoder) offset() int { return int(d.uvarint(page.Size)) }

func (d *decoder) space() uint32 {
	v, n := binary.Varint(d.p)
	if n <= 0 || v != int64(int32(v)) {
		d.failed = true
		d.p = nil
		return 0
	}
	d.p = d.p[n:]
	return uint32(int32(v))
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.p) {
		d.failed = true
		d.p = nil
		return nil
	}
	b := d.p[:n:n]
	d.p = d.p[n:]
	return b
}

// Decode reads the first op of a group's payload and returns it with the rest.
// Op.Data is part of payload. The error is a *[DecodeError]; any input gives
// either an op that is safe to [Apply] or an error.
func Decode(payload []byte) (op Op, rest []byte, err error) {
	if len(payload) == 0 {
		return Op{}, nil, &DecodeError{Problem: "empty"}
	}
	k := Kind(payload[0])
	d := decoder{p: payload[1:]}
	op.Kind = k
	if k < KindInit || k > KindSpaceResize {
		return Op{}, nil, &DecodeError{Kind: k, Problem: "unknown kind"}
	}
	op.ID.Space = d.space()
	if k.OfPage() {
		op.ID.No = uint32(d.uvarint(1<<32 - 1))
	}
	switch k {
	case KindInit:
		op.Type = page.Type(d.byte())
	case KindWrite:
		op.Off, op.N = d.offset(), d.offset()
		op.Data = d.bytes(op.N)
	case KindMove:
		op.Off, op.Src, op.N = d.offset(), d.offset(), d.offset()
	case KindFill:
		op.Off, op.N, op.Value = d.offset(), d.offset(), d.byte()
	case KindSpaceResize:
		op.Pages = uint32(d.uvarint(1<<32 - 1))
	}
	if d.failed {
		return Op{}, nil, &DecodeError{Kind: k, Problem: "cut short or a number out of range"}
	}
	if problem := op.problem(); problem != "" {
		return Op{}, nil, &DecodeError{Kind: k, Problem: problem}
	}
	return op, d.p, nil
}

// problem says what is wrong with the op's fields, or "".
func (op *Op) problem() string {
	switch op.Kind {
	case KindInit:
		if !op.Type.Valid() {
			return "unknown page type"
		}
	case KindWrite:
		if len(op.Data) != op.N {
			return "length differs from the data's"
		}
	case KindMove:
		if !mayChange(op.Src, op.N) {
			return "source outside of what a page op may use"
		}
	}
	if op.Kind >= KindWrite && op.Kind <= KindFill && !mayChange(op.Off, op.N) {
		return "range outside of what a page op may change"
	}
	return ""
}

// Apply makes the op's change to the page p. Apart from Init, which sets the
// identity and an LSN of 0, it changes neither checksum nor identity nor LSN: the
// caller sets the LSN once the page's ops of a group are applied. The error is a
// *[DecodeError]; p is unchanged then.
//
// REQUIRES: len(p) == page.Size, and p is the page op.ID.
func Apply(op Op, p []byte) error {
	if problem := op.problem(); problem != "" {
		return &DecodeError{Kind: op.Kind, Problem: problem}
	}
	return apply(&op, p)
}

// apply is Apply of an op that Decode has checked.
func apply(op *Op, p []byte) error {
	switch op.Kind {
	case KindInit:
		page.Init(p, op.ID, op.Type)
	case KindWrite:
		copy(p[op.Off:op.Off+op.N], op.Data)
	case KindMove:
		copy(p[op.Off:op.Off+op.N], p[op.Src:op.Src+op.N])
	case KindFill:
		b := p[op.Off : op.Off+op.N]
		for i := range b {
			b[i] = op.Value
		}
	default:
		return &DecodeError{Kind: op.Kind, Problem: "does not change a page"}
	}
	return nil
}
