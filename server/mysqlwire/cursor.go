package mysqlwire

import (
	"slices"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// cursorMax is how many bytes of rows a cursor may hold. A larger result is sent at once
// as if no cursor had been asked for, which the protocol allows.
const cursorMax = 8 << 20

// cursor is the result of an execution that asked for one: it is gathered whole, and
// COM_STMT_FETCH sends rows of it.
type cursor struct {
	columns   []session.ResultColumn
	collation types.CollationID
	rows      []byte   // in the form of the binary protocol
	ends      []uint32 // where each row ends
	next      int      // row to be fetched next
	open      bool     // the client was told of it
}

// gather adds row i to the cursor; full tells that it does not fit.
func (r *results) gather(b *types.Batch, i int) (full bool, err error) {
	cur := r.cursor
	at := len(cur.rows)
	cur.rows = appendBinaryRow(cur.rows, r.fields, b, i, r.location, &r.scratch)
	if int64(len(cur.rows)-at) > r.c.r.max {
		return false, errTooLarge
	}
	if len(cur.rows) > cursorMax {
		cur.rows = cur.rows[:at]
		return true, nil
	}
	cur.ends = append(cur.ends, uint32(len(cur.rows)))
	return false, nil
}

// spillCursor gives the cursor up: what it has is sent, and what follows will be.
func (r *results) spillCursor() error {
	cur := r.cursor
	r.cursor = nil
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
	cur.rows = slices.Clip(cur.rows)
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
		st.cursor = nil
	}
	if c.caps.has(capDeprecateEOF) {
		c.writeOK(headerEOF, &session.Outcome{}, status)
	} else {
		c.writeEOF(0, status)
	}
	return nil
}
