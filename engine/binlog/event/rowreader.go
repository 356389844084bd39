package event

import (
	"math/bits"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// RowReader gives the changes of a rows event one by one. It is reused from event to
// event.
type RowReader struct {
	// Before and After are the images of the change at hand, by column position as in
	// record.Table.Columns; NULL where the image lacks the column. An insert has no
	// Before, a delete no After: they are empty. Values alias the event.
	Before, After []types.Value

	l             *Layout
	kind          Type
	rest          []byte
	before, after bitmap // of the event; nil where there is no such image
	values        []types.Value
}

// Read makes r give the changes of a rows event of the layout's table. Error:
// ErrCorrupt.
func (l *Layout) Read(e *Event, r *RowReader) error {
	const head = 6 + 2 + rowsExtra
	b := e.Body
	switch {
	case !e.Type.IsRows():
		return corrupt("%v event has no rows", e.Type)
	case len(b) < head:
		return l.corrupt(e, "is cut off")
	case readLE(b[:6]) != l.def.ID:
		return corrupt("%v event of table %d, not %d", e.Type, readLE(b[:6]), l.def.ID)
	}
	extra := int(readLE(b[8:head]))
	if extra < rowsExtra || len(b) < 8+extra {
		return l.corrupt(e, "has extra data of %d bytes", extra)
	}
	n, b, ok := cutPacked(b[8+extra:])
	if !ok || n != uint64(len(l.columns)) {
		return l.corrupt(e, "has %d columns, the table %d", n, len(l.columns))
	}
	images := 1
	if e.Type == TypeUpdateRows {
		images = 2
	}
	if len(b) < images*l.width {
		return l.corrupt(e, "is cut off")
	}
	first, last := bitmap(b[:l.width]), bitmap(b[(images-1)*l.width:images*l.width])
	r.l, r.kind, r.rest = l, e.Type, b[images*l.width:]
	r.before, r.after = first, last
	switch e.Type {
	case TypeWriteRows:
		r.before = nil
	case TypeDeleteRows:
		r.after = nil
	}
	positions := len(l.def.Columns)
	if cap(r.values) < 2*positions {
		r.values = make([]types.Value, 2*positions)
	}
	r.values = r.values[:2*positions]
	clear(r.values)
	r.Before, r.After = nil, nil
	return nil
}

func (l *Layout) corrupt(e *Event, format string, args ...any) error {
	return corrupt("%v event of table %s.%s: "+format, append([]any{e.Type, l.def.Schema, l.def.Name}, args...)...)
}

// Next reads the next change; more is false at the end. Error: ErrCorrupt.
func (r *RowReader) Next() (more bool, err error) {
	if len(r.rest) == 0 {
		return false, nil
	}
	positions := len(r.l.def.Columns)
	rest := len(r.rest)
	if r.before != nil {
		r.Before = r.values[:positions:positions]
		if err := r.image(r.before, r.Before); err != nil {
			return false, err
		}
	}
	if r.after != nil {
		r.After = r.values[positions:]
		if err := r.image(r.after, r.After); err != nil {
			return false, err
		}
	}
	if len(r.rest) == rest {
		return false, corrupt("%v event with rows of no bytes", r.kind)
	}
	return true, nil
}

// image reads an image; values of columns that it lacks stay NULL.
func (r *RowReader) image(present bitmap, into []types.Value) error {
	nulls := bitmap(r.rest)
	size := (present.countOf(len(r.l.columns)) + 7) / 8
	if len(nulls) < size {
		return corrupt("%v event: image is cut off", r.kind)
	}
	b := r.rest[size:]
	bit := 0
	for i := range r.l.columns {
		if !present.has(i) {
			continue
		}
		c := &r.l.columns[i]
		if nulls.has(bit) {
			if c.t.NotNull {
				return c.corrupt("is NULL")
			}
			into[c.position] = types.Null
		} else {
			v, rest, err := c.cut(b)
			if err != nil {
				return err
			}
			into[c.position], b = v, rest
		}
		bit++
	}
	r.rest = b
	return nil
}

// HasBefore reports whether images before have the column at a position in
// record.Table.Columns.
func (r *RowReader) HasBefore(position int) bool { return r.has(r.before, position) }

// HasAfter reports whether images after have the column at a position in
// record.Table.Columns.
func (r *RowReader) HasAfter(position int) bool { return r.has(r.after, position) }

func (r *RowReader) has(m bitmap, position int) bool {
	i := r.l.at[position]
	return m != nil && i >= 0 && m.has(i)
}

// Kind returns what the event's changes are: TypeWriteRows, TypeUpdateRows or
// TypeDeleteRows.
func (r *RowReader) Kind() Type { return r.kind }

// HasKey reports whether the images that find a row, those before, have all columns of
// the clustered index, and an insert's all columns of the table: without that an
// event cannot be applied.
func (r *RowReader) HasKey() bool {
	if r.before == nil {
		return r.after.holds(r.l.all)
	}
	return r.before.holds(r.l.key)
}

// Changes appends the columns of the update at hand whose values differ from those
// before, as far as the image before has them; nothing for inserts and deletes.
func (r *RowReader) Changes(dst []record.Change) []record.Change {
	if r.kind != TypeUpdateRows {
		return dst
	}
	for i := range r.l.columns {
		if !r.after.has(i) {
			continue
		}
		p := r.l.columns[i].position
		if r.before.has(i) && Identical(r.Before[p], r.After[p]) {
			continue
		}
		dst = append(dst, record.Change{Column: p, Value: r.After[p]})
	}
	return dst
}

// holds reports whether all of o is in m.
func (m bitmap) holds(o bitmap) bool {
	for i := range o {
		if o[i]&^m[i] != 0 {
			return false
		}
	}
	return true
}

// count returns how many columns are in the set.
func (m bitmap) count() int {
	n := 0
	for _, b := range m {
		n += bits.OnesCount8(b)
	}
	return n
}

// countOf is count of the first n columns: others' bits may be anything.
func (m bitmap) countOf(n int) int {
	if n%8 == 0 {
		return m.count()
	}
	last := len(m) - 1
	return m[:last].count() + bits.OnesCount8(m[last]&(1<<(n%8)-1))
}
