package provision

import (
	"errors"
	"fmt"
)

// Errors that a donor answers with. They reach the receiver as *[RemoteError].
var (
	// ErrSnapshotGone: the donor does not have the snapshot, or not any more.
	ErrSnapshotGone = errors.New("snapshot gone")
	// ErrOtherGroup: the donor is a member of another group.
	ErrOtherGroup = errors.New("the donor belongs to another group")
	// ErrVersion: the donor and the receiver have no format in common.
	ErrVersion = errors.New("no format in common")
	// ErrBusy: the donor has as many snapshots or streams as it may have.
	ErrBusy = errors.New("the donor is busy")
	// ErrBehind: the donor has not applied the log as far as is asked for.
	ErrBehind = errors.New("the donor is behind")
	// ErrDonor: the donor could not read its data.
	ErrDonor = errors.New("the donor failed")
	// ErrRequest: the donor did not understand the request.
	ErrRequest = errors.New("the donor refused the request")
)

// remoteErrors are the errors by their numbers in the stream.
var remoteErrors = []error{1: ErrSnapshotGone, 2: ErrOtherGroup, 3: ErrVersion, 4: ErrBusy, 5: ErrBehind, 6: ErrDonor, 7: ErrRequest}

// RemoteError is an error that a donor has answered with.
type RemoteError struct {
	Kind error // one of those above
	Text string
}

func (e *RemoteError) Error() string { return fmt.Sprintf("provision: %v: %s", e.Kind, e.Text) }
func (e *RemoteError) Unwrap() error { return e.Kind }

func remotef(kind error, format string, args ...any) *RemoteError {
	return &RemoteError{kind, fmt.Sprintf(format, args...)}
}

// maxText bounds the text of an error in bytes.
const maxText = 4096

func (e *RemoteError) append(dst []byte) []byte {
	code := 0
	for i, kind := range remoteErrors {
		if kind == e.Kind {
			code = i
		}
	}
	return appendBytes(appendUints(dst, uint64(code)), e.Text[:min(len(e.Text), maxText)])
}

func (d *decoder) remoteError() *RemoteError {
	code, text := d.uint64(), d.string(maxText)
	e := &RemoteError{Kind: ErrDonor, Text: text}
	if code > 0 && code < uint64(len(remoteErrors)) {
		e.Kind = remoteErrors[code]
	}
	return e
}

// what is asked for.
type what uint8

const (
	askSnapshot  what = 1 + iota // a manifest, of a new snapshot if the CSN is 0
	askCatalogue                 // schemas, and the list of the tables
	askState                     // keys and values of the replicated area
	askTable                     // the definition and the rows of a table
	askRelease                   // nothing: the receiver has no more use for the snapshot
	askEnd
)

func (w what) String() string {
	if w == 0 || w >= askEnd {
		return fmt.Sprintf("request %d", uint8(w))
	}
	return [...]string{"snapshot", "catalogue", "state", "table", "release"}[w-1]
}

// maxAfter bounds a key to go on behind, in bytes.
const maxAfter = 1 << 16

// request is what a receiver sends to open a stream.
type request struct {
	min, max uint32 // formats
	group    [16]byte
	receiver uint64 // drawn at random for each provisioning
	csn      uint64
	fresh    bool // a new snapshot: csn says nothing
	what     what
	table    uint64
	resume   bool   // go on behind after
	after    []byte // key
}

const requestMagic = "TRPROV"

// The magic and the formats come first in every format, so that two that have none in
// common can say so.
func (r *request) append(dst []byte) []byte {
	dst = append(dst, requestMagic...)
	dst = appendUints(dst, uint64(r.min), uint64(r.max))
	dst = append(dst, r.group[:]...)
	dst = appendUints(dst, r.receiver, r.csn, boolUint(r.fresh), uint64(r.what), r.table, boolUint(r.resume))
	return appendBytes(dst, r.after)
}

func boolUint(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// decodeRequest reads a request. Errors: [ErrMalformed], *[RemoteError] of ErrVersion.
func decodeRequest(b []byte) (r request, err error) {
	d := &decoder{b: b}
	if string(d.take(len(requestMagic))) != requestMagic {
		return r, ErrMalformed
	}
	r.min, r.max = uint32(d.uint(1<<32-1)), uint32(d.uint(1<<32-1))
	if d.err != nil {
		return r, d.err
	}
	if r.min > FormatVersion || r.max < minFormat {
		return r, remotef(ErrVersion, "the donor speaks the formats %d to %d of the provisioning stream, the receiver %d to %d: bring both to versions of the program that have one in common",
			minFormat, FormatVersion, r.min, r.max)
	}
	copy(r.group[:], d.take(len(r.group)))
	r.receiver, r.csn, r.fresh = d.uint64(), d.uint64(), d.bool()
	r.what, r.table, r.resume = what(d.uint(uint64(askEnd)-1)), d.uint64(), d.bool()
	r.after = d.bytes(maxAfter)
	if r.what == 0 {
		d.fail()
	}
	return r, d.end()
}

// tableEntry is an entry of the list of tables.
type tableEntry struct {
	id          uint64
	rows, bytes int64 // estimates
}

func (e *tableEntry) append(dst []byte) []byte {
	return appendUints(dst, e.id, uint64(e.rows), uint64(e.bytes))
}

func (d *decoder) tableEntry() tableEntry {
	return tableEntry{id: d.uint64(), rows: int64(d.uint(1<<62 - 1)), bytes: int64(d.uint(1<<62 - 1))}
}

// Codecs of a part.
const (
	plain uint64 = iota
	zstdFrame
)

// part is some rows of a table, or keys and values of the state. The running values
// are over all rows of the answer, these included.
type part struct {
	rows  uint64 // 0: the next part goes on where this one ends, within a row or between two
	raw   uint64 // bytes before compression
	codec uint64
	rowsSoFar, bytesSoFar,
	sumSoFar uint64 // CRC-64
	last []byte // key of the last row; empty if rows is 0
	data []byte
}

func (p *part) append(dst []byte) []byte {
	dst = appendUints(dst, p.rows, p.raw, p.codec, p.rowsSoFar, p.bytesSoFar, p.sumSoFar)
	dst = appendBytes(dst, p.last)
	return append(dst, p.data...)
}

func (d *decoder) part() (p part) {
	p.rows, p.raw, p.codec = d.uint(maxPart), d.uint(maxPart), d.uint(zstdFrame)
	p.rowsSoFar, p.bytesSoFar, p.sumSoFar = d.uint64(), d.uint64(), d.uint64()
	p.last = d.bytes(maxAfter)
	p.data = d.rest()
	return p
}

// ending ends an answer: what was in it.
type ending struct{ rows, bytes, sum uint64 }

func (e *ending) append(dst []byte) []byte { return appendUints(dst, e.rows, e.bytes, e.sum) }

func (d *decoder) ending() ending { return ending{d.uint64(), d.uint64(), d.uint64()} }
