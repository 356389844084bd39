package mysqlwire

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// results sends what a statement gives. There is one for each connection, used again
// for every statement.
type results struct {
	c      *conn
	binary bool // rows in the form of the binary protocol
	inSet  bool // between Columns and Done

	fields   []field
	location *time.Location
	scratch  []byte
	wide     bool // rows may be long though they have no long string
	room     rowRoom

	// A cursor gathers rows instead of sending them, for as long as they fit.
	cursor *cursor
	// onlyColumns leaves out rows and the end: COM_FIELD_LIST.
	onlyColumns bool
}

// clientGone wraps an error of the client's connection, so that what comes back from the
// session can be told from an error of the statement.
type clientGone struct{ err error }

func (e *clientGone) Error() string { return "connection of the client: " + e.err.Error() }
func (e *clientGone) Unwrap() error { return e.err }

// Columns implements session.ResultWriter.
func (r *results) Columns(cols []session.ResultColumn) error {
	r.inSet = true
	r.location = r.c.sess.Location()
	id := r.c.sess.ResultCollation()
	collation := types.CollationByID(id)
	convert := collation != nil && collation.Charset() != types.CharsetBinary
	var to types.Charset
	if convert {
		to = collation.Charset()
	} else {
		id = 0
	}
	r.fields = r.fields[:0]
	for i := range cols {
		r.fields = append(r.fields, chooseEncoding(cols[i].Type, r.binary, to, convert))
	}
	r.wide = mayBeLong(cols)
	if r.cursor != nil {
		r.cursor.columns = append(r.cursor.columns[:0], cols...)
		r.cursor.collation = id
		return nil
	}
	return r.sendColumns(cols, id)
}

func (r *results) sendColumns(cols []session.ResultColumn, collation types.CollationID) error {
	w := &r.c.w
	if !r.onlyColumns {
		w.begin()
		w.buf = appendInt(w.buf, uint64(len(cols)))
		w.end()
	}
	for i := range cols {
		w.begin()
		w.buf = appendColumn(w.buf, &cols[i], collation)
		if r.onlyColumns {
			w.buf = append(w.buf, 0xfb) // the default value: not told
		}
		if err := w.endRow(); err != nil {
			return &clientGone{err}
		}
	}
	if !r.c.caps.has(capDeprecateEOF) && !r.onlyColumns {
		r.c.writeEOF(r.c.sess.Warnings(), uint16(r.c.sess.Status()))
	}
	return nil
}

// Rows implements session.ResultWriter.
func (r *results) Rows(b *types.Batch) error {
	if r.onlyColumns {
		return nil
	}
	large := r.wide || b.MemoryBytes() > keepBuffer
	for i := range b.Len() {
		if r.cursor != nil {
			full, err := r.gather(b, i)
			if err != nil {
				return err
			}
			if !full {
				continue
			}
			if err := r.spillCursor(); err != nil {
				return err
			}
		}
		if err := r.row(b, i, large); err != nil {
			return err
		}
	}
	return nil
}

// row sends row i. large says that it may be long.
func (r *results) row(b *types.Batch, i int, large bool) error {
	w := &r.c.w
	w.begin()
	var room *rowRoom
	if large {
		room = &r.room
		*room = rowRoom{sess: r.c.sess, start: len(w.buf), most: r.c.r.max}
		defer room.free()
		// What is there at once need not be copied again and again.
		n := 0
		for k := range r.fields {
			if v := &b.Vecs[k]; r.fields[k].encoding == textBytes && !v.IsNull(i) {
				n += v.Bytes(i) + 1
			}
		}
		var err error
		if w.buf, err = room.grow(w.buf, n, 9*len(r.fields)); err != nil {
			w.drop()
			return err
		}
	}
	var err error
	if r.binary {
		w.buf, err = appendBinaryRow(w.buf, r.fields, b, i, r.location, &r.scratch, room)
	} else {
		w.buf, err = appendTextRow(w.buf, r.fields, b, i, r.location, &r.scratch, room)
	}
	if err == nil && int64(len(w.buf)-w.head-headerSize) > r.c.r.max {
		err = errTooLarge
	}
	if err == nil && room != nil && r.c.frames != nil { // of which a frame is made
		err = room.account(int64(cap(w.buf)) + int64(min(len(w.buf)-w.head, maxFrame)))
	}
	if err != nil {
		w.drop()
		return err
	}
	if err := w.endRow(); err != nil {
		return &clientGone{err}
	}
	return nil
}

// Done implements session.ResultWriter.
func (r *results) Done(o session.Outcome) error {
	status := uint16(r.c.sess.Status())
	if o.More {
		status |= statusMoreResults
	}
	inSet := r.inSet
	r.inSet = false
	switch {
	case r.onlyColumns && inSet:
		r.c.writeEOF(0, status)
	case r.cursor != nil && inSet:
		return r.openCursor(status, &o)
	case !inSet:
		r.c.writeOK(headerOK, &o, status)
	case r.c.caps.has(capDeprecateEOF):
		r.c.writeOK(headerEOF, &o, status)
	default:
		r.c.writeEOF(o.Warnings, status)
	}
	if r.c.w.err != nil {
		return &clientGone{r.c.w.err}
	}
	return nil
}

// LocalFile implements session.LocalFiles: the client sends the file in packets, up to
// an empty one.
func (r *results) LocalFile(name string, read func(piece []byte) error) error {
	if !r.c.caps.has(capLocalFiles) || !r.c.sess.Limits().LocalInfile {
		return sqlerr.New(sqlerr.ClientLocalFilesDisabled)
	}
	w := &r.c.w
	w.begin()
	w.buf = append(append(w.buf, headerLocalFile), name...)
	w.end()
	if err := w.flush(); err != nil {
		return &clientGone{err}
	}
	var failed error
	r.c.r.more = true
	defer func() { r.c.r.more = false }()
	for {
		piece, err := r.c.r.next()
		var refused *noRoom
		if errors.As(err, &refused) { // it has been passed over, as all that follows will be
			if failed == nil {
				failed = refused.err
			}
			continue
		}
		if err != nil {
			var fatal *sqlerr.Error
			if errors.As(err, &fatal) {
				r.c.fatal = fatal
			}
			return &clientGone{err}
		}
		if len(piece) == 0 {
			return failed
		}
		if failed == nil {
			failed = read(piece)
		}
	}
}

// writeOK writes the end of a statement: an OK packet, or with the other header what
// has replaced EOF.
func (c *conn) writeOK(header byte, o *session.Outcome, status uint16) {
	w := &c.w
	var changes []session.Change
	if c.caps.has(capSessionTrack) {
		changes = c.sess.TrackedChanges()
	}
	status &^= statusStateChanged
	if len(changes) > 0 {
		status |= statusStateChanged
	}
	w.begin()
	b := append(w.buf, header)
	b = appendInt(b, o.AffectedRows)
	b = appendInt(b, o.LastInsertID)
	b = binary.LittleEndian.AppendUint16(b, status)
	b = binary.LittleEndian.AppendUint16(b, o.Warnings)
	// The text has its length before it even without CLIENT_SESSION_TRACK: the protocol's
	// description says otherwise, MySQL and its clients do so.
	if o.Info != "" || len(changes) > 0 {
		b = appendString(b, o.Info)
	}
	if len(changes) > 0 {
		c.track = appendChanges(c.track[:0], changes)
		b = appendString(b, c.track)
	}
	w.buf = b
	w.end()
}

// appendChanges appends the session state information of an OK packet.
func appendChanges(b []byte, changes []session.Change) []byte {
	size := func(s string) int { return intSize(uint64(len(s))) + len(s) }
	for i := range changes {
		ch := &changes[i]
		b = append(b, byte(ch.Kind))
		switch ch.Kind {
		case session.ChangeVariable:
			b = appendInt(b, uint64(size(ch.Name)+size(ch.Value)))
			b = appendString(appendString(b, ch.Name), ch.Value)
		case session.ChangeGTIDs:
			b = appendInt(b, uint64(1+size(ch.Value)))
			b = appendString(append(b, 0), ch.Value) // specification of the encoding: 0, text
		default:
			b = appendInt(b, uint64(size(ch.Value)))
			b = appendString(b, ch.Value)
		}
	}
	return b
}

// writeEOF writes the packet that OK has replaced for clients who know that.
func (c *conn) writeEOF(warnings, status uint16) {
	w := &c.w
	w.begin()
	w.buf = append(w.buf, headerEOF)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, warnings)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, status)
	w.end()
}

// writeError writes an ERR packet.
func (c *conn) writeError(err *sqlerr.Error) {
	w := &c.w
	w.begin()
	w.buf = append(w.buf, headerErr)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(err.Number))
	if c.caps.has(capProtocol41) || !c.greeted {
		w.buf = append(w.buf, '#')
		w.buf = append(w.buf, (err.State + "HY000")[:5]...)
	}
	// As long as MySQL's longest.
	w.buf = append(w.buf, err.Message[:min(len(err.Message), 512*4)]...)
	w.end()
}

// ok writes an OK packet that says nothing but the status.
func (c *conn) ok() {
	c.writeOK(headerOK, &session.Outcome{}, uint16(c.sess.Status()))
}
