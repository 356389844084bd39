package table

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// An exported row is what a row says, and nothing of how a node keeps it:
//
//	uvarint length of what follows
//	bitmap  one bit for each column that may be NULL, in order of declaration,
//	        lowest bit first; 1: NULL
//	        each column that is not NULL, in order of declaration: of fixed size
//	        in stored form, else uvarint length and bytes
//
// Dropped columns are left out, hidden ones are not: they are the row's identity.
// JSON is in its canonical encoding.

// ErrExport is wrapped by the error for bytes that are no exported row of the
// table.
var ErrExport = errors.New("table: malformed exported row")

// appendCanonical appends the stored form of a value that is not NULL, of JSON the
// canonical one.
func appendCanonical(dst []byte, v types.Value, t *types.Type) ([]byte, error) {
	if t.Kind == types.KindJSON {
		return compactJSON(dst, v.Bytes())
	}
	return types.AppendStored(dst, v, t), nil
}

func compactJSON(dst, doc []byte) ([]byte, error) {
	if err := json.Validate(doc); err != nil {
		return dst, fmt.Errorf("%w: %w", record.ErrCorrupt, err)
	}
	return json.Compact(dst, doc)
}

// AppendExported appends the exported form of a row given by column position.
//
// REQUIRES: the values are valid for their columns.
func AppendExported(dst []byte, s *record.Schema, row []types.Value) ([]byte, error) {
	e := beginExported(dst, s)
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.DroppedIn != 0 {
			continue
		}
		var b []byte
		var err error
		if v := row[i]; !v.IsNull() {
			if b, err = appendCanonical(nil, v, &c.Type); err != nil {
				return dst, err
			}
		}
		if err := e.add(c, b, row[i].IsNull()); err != nil {
			return dst, err
		}
	}
	return e.end(), nil
}

// exporting is an exported row under construction.
type exporting struct {
	dst   []byte
	start int
	bit   int // of the next column that may be NULL
}

// exportFrame is the room left for the length of a row, in bytes.
const exportFrame = binary.MaxVarintLen64

func beginExported(dst []byte, s *record.Schema) exporting {
	var zero [exportFrame + (record.MaxColumns+7)/8]byte
	return exporting{dst: append(dst, zero[:exportFrame+(nullables(s)+7)/8]...), start: len(dst)}
}

// add appends the next column, given in stored form.
func (e *exporting) add(c *record.Column, b []byte, null bool) error {
	if null {
		if c.Type.NotNull {
			return fmt.Errorf("%w: NULL in column %s, which is NOT NULL", record.ErrCorrupt, c.Name)
		}
		e.dst[e.start+exportFrame+e.bit/8] |= 1 << (e.bit % 8)
	} else {
		if _, fixed := types.FixedSize(&c.Type); !fixed {
			e.dst = binary.AppendUvarint(e.dst, uint64(len(b)))
		}
		e.dst = append(e.dst, b...)
	}
	if !c.Type.NotNull {
		e.bit++
	}
	return nil
}

// end puts the length before the row.
func (e *exporting) end() []byte {
	var frame [exportFrame]byte
	n := binary.PutUvarint(frame[:], uint64(len(e.dst)-e.start-exportFrame))
	copy(e.dst[e.start:], frame[:n])
	copy(e.dst[e.start+n:], e.dst[e.start+exportFrame:])
	return e.dst[:len(e.dst)-exportFrame+n]
}

// nullables is the number of columns that have a bit in exported rows.
func nullables(s *record.Schema) (n int) {
	for i := range s.Columns {
		if c := &s.Columns[i]; c.DroppedIn == 0 && !c.Type.NotNull {
			n++
		}
	}
	return n
}

// DecodeExported reads an exported row from the beginning of b and appends its
// values, by column position, to row; dropped columns are NULL. The values alias b
// and are valid for their columns. rest is what follows the row. The error wraps
// [ErrExport].
func DecodeExported(s *record.Schema, b []byte, row []types.Value) (values []types.Value, rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return row, b, fmt.Errorf("%w: %d bytes are no whole row", ErrExport, len(b))
	}
	rest = b[n+int(size):]
	b = b[n : n+int(size) : n+int(size)]
	count := nullables(s)
	if len(b) < (count+7)/8 {
		return row, rest, fmt.Errorf("%w: it has %d bytes", ErrExport, len(b))
	}
	bitmap, b := b[:(count+7)/8], b[(count+7)/8:]
	if count%8 != 0 && bitmap[count/8]>>(count%8) != 0 {
		return row, rest, fmt.Errorf("%w: bits without a column", ErrExport)
	}
	bit := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.DroppedIn != 0 {
			row = append(row, types.Null)
			continue
		}
		null := false
		if !c.Type.NotNull {
			null = bitmap[bit/8]>>(bit%8)&1 != 0
			bit++
		}
		v := types.Null
		if !null {
			if v, b, err = decodeExportedValue(b, &c.Type); err != nil {
				return row, rest, fmt.Errorf("%w: column %s: %w", ErrExport, c.Name, err)
			}
		}
		row = append(row, v)
	}
	if len(b) != 0 {
		return row, rest, fmt.Errorf("%w: %d bytes too many", ErrExport, len(b))
	}
	return row, rest, nil
}

var errShort = errors.New("the row ends within it")

func decodeExportedValue(b []byte, t *types.Type) (v types.Value, rest []byte, err error) {
	size, fixed := types.FixedSize(t)
	if !fixed {
		n, m := binary.Uvarint(b)
		if m <= 0 || n > uint64(len(b)-m) {
			return types.Null, b, errShort
		}
		b, size = b[m:], int(n)
	}
	if size > len(b) {
		return types.Null, b, errShort
	}
	if v, err = types.DecodeStored(b[:size:size], t); err == nil {
		err = validValue(v, t)
	}
	return v, b[size:], err
}

// validValue checks what decoding does not: that a string or document is one that
// the column may have.
func validValue(v types.Value, t *types.Type) error {
	if t.Kind == types.KindJSON {
		return json.Validate(v.Bytes())
	}
	if !t.IsText() && !t.IsBlob() && t.Kind != types.KindVarBinary {
		return nil
	}
	b := v.Bytes()
	if int64(len(b)) > t.MaxBytes() {
		return fmt.Errorf("%d bytes, at most %d are possible", len(b), t.MaxBytes())
	}
	if !t.IsText() {
		return nil
	}
	if at := t.Charset().InvalidAt(b); at >= 0 {
		return fmt.Errorf("byte %d is not of the character set %s", at, t.Charset())
	}
	if !t.IsLong() && len(b) > int(t.Length) && t.Charset().Count(b) > int(t.Length) {
		return fmt.Errorf("%d characters, at most %d are possible", t.Charset().Count(b), t.Length)
	}
	return nil
}

// Exporter gives the rows of a table, as a snapshot sees them, in exported form
// and in the order of their clustered keys. Between two calls it holds nothing but
// its place. It uses the worker, for which nobody else may have work meanwhile.
type Exporter struct {
	k    walk
	i    int // next row of the walk's piece
	more bool
	last []byte
	col  []byte
}

// NewExporter returns an exporter of the rows behind the one with the clustered key
// after, or of all if it is nil. The snapshot must stay open until the end.
func (w *Worker) NewExporter(t *Table, snap *trx.Snapshot, after []byte) *Exporter {
	x := &Exporter{more: true}
	x.k.startRows(w, t, snap, after)
	return x
}

// keptColumn is up to what size the memory of a column is kept for the next one, in bytes.
const keptColumn = 1 << 20

// Next appends rows to dst, at least one if there is one, until dst has grown by
// about limit bytes; no rows means the end. With the clustered key of the last one
// (Last) another exporter can go on, on any node with the same snapshot.
func (x *Exporter) Next(dst []byte, limit int) (out []byte, rows int, err error) {
	start := len(dst)
	defer func() {
		if cap(x.col) > keptColumn {
			x.col = nil
		}
	}()
	for {
		for x.i < len(x.k.items) {
			if rows > 0 && len(dst)-start >= limit {
				return dst, rows, nil
			}
			if dst, err = x.append(dst); err != nil {
				return dst, rows, err
			}
			x.last = append(x.last[:0], x.k.key(x.i)...)
			x.i++
			rows++
		}
		if !x.more {
			return dst, rows, nil
		}
		if x.more, err = x.k.next(); err != nil {
			return dst, rows, err
		}
		x.i = 0
	}
}

// Last is the clustered key of the last row that Next has given.
func (x *Exporter) Last() []byte { return x.last }

// append exports the row at hand.
func (x *Exporter) append(dst []byte) ([]byte, error) {
	r, err := x.k.row(x.i)
	if err != nil {
		return dst, err
	}
	s := x.k.t.Schema
	e := beginExported(dst, s)
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.DroppedIn != 0 {
			continue
		}
		var b []byte
		var null bool
		if b, null, x.col, err = x.k.w.canonical(x.k.t, &r, i, x.col); err == nil {
			err = e.add(c, b, null)
		}
		if err != nil {
			return dst, err
		}
	}
	return e.end(), nil
}
