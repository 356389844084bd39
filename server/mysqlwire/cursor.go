package mysqlwire

import (
	"errors"
	"slices"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

const (
	// cursorMax is how much memory a cursor may hold, in bytes. A larger result, or one that there is no memory for, is sent at
	// once as if no cursor had been asked for, which the protocol allows.
	cursorMax = 8 << 20
	// cursorsMax is the same for all cursors of a connection.
	cursorsMax = 64 << 20
)

// cursor is the result of an execution that asked for one: it is gathered whole, and
// COM_STMT_FETCH sends rows of it.
type cursor struct {
	columns   []session.ResultColumn
	collation types.CollationID
	rows      []byte   // in the form of the binary protocol
	ends      []uint32 // where each row ends
	next      int      // row to be fetched next
	open      bool     // the client was told of it
	held      int64    // bytes of memory that are accounted for
}

// gather adds row i to the cursor; full tells that it does not fit.
func (r *results) gather(b *types.Batch, i int) (full bool, err error) {
	c, cur := r.c, r.cursor
	at := len(cur.rows)
	room := &r.room
	*room = rowRoom{sess: c.sess, start: at, most: c.r.max, other: 4 * int64(cap(cur.ends)), held: cur.held}
	cur.rows, err = appendBinaryRow(cur.rows, r.fields, b, i, r.location, &r.scratch, room)
	if err == nil {
		cur.ends = append(cur.ends, uint32(len(cur.rows)))
		size := int64(len(cur.rows) + 4*len(cur.ends))
		if full = size > cursorMax || c.cursorBytes+size > cursorsMax; !full {
			// However small it is: a connection may have thousands.
			if more := cur.memory() - room.held; more > 0 {
				if err = c.sess.Hold(more); err == nil {
					room.held += more
				}
			}
		}
	}
	cur.held = room.held
	var told *sqlerr.Error
	if errors.As(err, &told) && told.Number == sqlerr.CapacityExceeded {
		full, err = true, nil
	}
	if full {
		cur.rows = cur.rows[:at]
		if len(cur.ends) > 0 && int(cur.ends[len(cur.ends)-1]) > at {
			cur.ends = cur.ends[:len(cur.ends)-1]
		}
	}
	return full, err
}

// memory is what the cursor takes, in bytes.
func (cur *cursor) memory() int64 { return int64(cap(cur.rows)) + 4*int64(cap(cur.ends)) }

// spillCursor gives the cursor up: what it has is sent, and what follows will be.
func (r *results) spillCursor() error {
	cur := r.cursor
	r.cursor = nil
	defer r.c.dropCursor(cur)
	if err := r.sendColumns(cur.columns, cur.collation); err != nil {
		return err
	}
	for i := range cur.ends {
		if err := r.c.writeRow(cur.row(i)); err != nil {
			return &clientGone{err}
		}
	}
	return nil
}

// keepCursor keeps the cursor of a statement for fetches, with no more memory than it needs.
func (c *conn) keepCursor(st *statement, cur *cursor) {
	if spare := cap(cur.rows) - len(cur.rows); spare > len(cur.rows)/8 {
		cur.rows = slices.Clone(cur.rows)
	}
	if spare := cap(cur.ends) - len(cur.ends); spare > len(cur.ends)/8 {
		cur.ends = slices.Clone(cur.ends)
	}
	if less := cur.held - cur.memory(); less > 0 {
		_ = c.sess.Hold(-less) // what is given back is never refused
		cur.held -= less
	}
	c.cursorBytes += cur.held
	st.cursor = cur
}

// closeCursor forgets the cursor of a statement, if it has one.
func (c *conn) closeCursor(st *statement) {
	if cur := st.cursor; cur != nil {
		st.cursor = nil
		c.cursorBytes -= cur.held
		c.dropCursor(cur)
	}
}

// dropCursor gives back the memory of a cursor that is not kept.
func (c *conn) dropCursor(cur *cursor) {
	if cur.held > 0 {
		_ = c.sess.Hold(-cur.held)
	}
	*cur = cursor{}
}

// openCursor ends an execution whose rows wait in the cursor.
func (r *results) openCursor(status uint16, o *session.Outcome) error {
	cur := r.cursor
	status |= statusCursorExists
	w := &r.c.w
	w.begin()
	w.buf = appendInt(w.buf, uint64(len(cur.columns)))
	w.end()
	for i := range cur.columns {
		w.begin()
		w.buf = appendColumn(w.buf, &cur.columns[i], cur.collation)
		if err := w.endRow(); err != nil {
			return &clientGone{err}
		}
	}
	cur.columns, cur.open = nil, true
	if r.c.caps.has(capDeprecateEOF) {
		r.c.writeOK(headerEOF, o, status)
	} else {
		r.c.writeEOF(o.Warnings, status)
	}
	return nil
}

func (cur *cursor) row(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = cur.ends[i-1]
	}
	return cur.rows[from:cur.ends[i]]
}

func (c *conn) writeRow(row []byte) error {
	c.w.begin()
	c.w.buf = append(c.w.buf, row...)
	return c.w.endRow()
}

// fetch is COM_STMT_FETCH.
func (c *conn) fetch(p *payload) error {
	id, n := p.uint32(), p.uint32()
	if p.bad {
		return errMalformed
	}
	st := c.stmts[id]
	if st == nil {
		return unknownStatement(id, "mysqld_stmt_fetch")
	}
	cur := st.cursor
	if cur == nil {
		return sqlerr.New(sqlerr.StmtHasNoOpenCursor, id)
	}
	for ; n > 0 && cur.next < len(cur.ends); n-- {
		if err := c.writeRow(cur.row(cur.next)); err != nil {
			return &clientGone{err}
		}
		cur.next++
	}
	status := uint16(c.sess.Status()) | statusCursorExists
	if cur.next == len(cur.ends) && n > 0 {
		status = status&^statusCursorExists | statusLastRowSent
		c.closeCursor(st)
	}
	if c.caps.has(capDeprecateEOF) {
		c.writeOK(headerEOF, &session.Outcome{}, status)
	} else {
		c.writeEOF(0, status)
	}
	return nil
}
