package mysqlwire

import (
	"context"
	"errors"
	"strconv"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
)

// statement is a prepared statement of a connection.
type statement struct {
	id       uint32
	prepared *session.Prepared
	parent   parent     // what each execution is part of
	types    []declared // of the parameters, as bound last
	typesOf  int64      // bytes of types that are accounted for
	long     map[int]*longData
	cursor   *cursor
	failed   *sqlerr.Error // of COM_STMT_SEND_LONG_DATA, told by the next execution
}

// parent is the span of a client's that a statement is part of.
type parent struct {
	context trace.Context // zero: none
	sampled bool
}

// parentIn finds it in the last comment of a text.
func parentIn(text string) (p parent) {
	if c, sampled, ok := trace.InComment(text); ok {
		p = parent{c, sampled}
	}
	return p
}

// longData is the value of a parameter that came in pieces.
type longData struct{ b []byte }

// longEntry is what a longData takes beside its bytes, in bytes.
const longEntry = 64

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func unknownStatement(id uint32, in string) *sqlerr.Error {
	return sqlerr.New(sqlerr.UnknownStmtHandler, itoa(id), in)
}

// prepare is COM_STMT_PREPARE.
func (c *conn) prepare(ctx context.Context, b []byte) error {
	text := string(b)
	var of parent
	if c.s.opt.Traced {
		if of = parentIn(text); of.context.Valid() {
			c.sess.UseTrace(of.context, of.sampled)
		}
	}
	p, err := c.sess.Prepare(ctx, text)
	if err != nil {
		return err
	}
	if p.Params > 65535 || len(p.Columns) > 65535 {
		c.s.closePrepared(p)
		return sqlerr.New(sqlerr.PSManyParam)
	}
	c.lastStatement++
	p.ID = c.lastStatement
	if c.stmts == nil {
		c.stmts = make(map[uint32]*statement)
	}
	c.stmts[p.ID] = &statement{id: p.ID, prepared: p, parent: of}
	return c.describe(p)
}

// describe answers COM_STMT_PREPARE.
func (c *conn) describe(p *session.Prepared) error {
	w := &c.w
	w.begin()
	w.buf = append(w.buf, headerOK, byte(p.ID), byte(p.ID>>8), byte(p.ID>>16), byte(p.ID>>24),
		byte(len(p.Columns)), byte(len(p.Columns)>>8), byte(p.Params), byte(p.Params>>8), 0,
		byte(c.sess.Warnings()), byte(c.sess.Warnings()>>8))
	w.end()
	status := uint16(c.sess.Status())
	if p.Params > 0 {
		param := session.ResultColumn{Name: "?", Type: paramText}
		for range p.Params {
			w.begin()
			w.buf = appendColumn(w.buf, &param, types.CollationBinary)
			if err := w.endRow(); err != nil {
				return &clientGone{err}
			}
		}
		if !c.caps.has(capDeprecateEOF) {
			c.writeEOF(0, status)
		}
	}
	if len(p.Columns) > 0 {
		collation := c.sess.ResultCollation()
		for i := range p.Columns {
			w.begin()
			w.buf = appendColumn(w.buf, &p.Columns[i], collation)
			if err := w.endRow(); err != nil {
				return &clientGone{err}
			}
		}
		if !c.caps.has(capDeprecateEOF) {
			c.writeEOF(0, status)
		}
	}
	return nil
}

// Flags of COM_STMT_EXECUTE.
const (
	cursorReadOnly  = 0x01
	cursorForUpdate = 0x02
	cursorScroll    = 0x04
	countAvailable  = 0x08
)

// execute is COM_STMT_EXECUTE.
func (c *conn) execute(ctx context.Context, p *payload) error {
	id, flags := p.uint32(), p.uint8()
	p.uint32() // iterations: always 1
	if p.bad {
		return errMalformed
	}
	st := c.stmts[id]
	if st == nil {
		return unknownStatement(id, "mysqld_stmt_execute")
	}
	c.closeCursor(st)
	defer c.dropLong(st) // whatever comes of it: the next execution has its own
	if st.failed != nil {
		return st.failed
	}
	if flags&(cursorForUpdate|cursorScroll) != 0 {
		return sqlerr.New(sqlerr.NotSupportedYet, "cursors that scroll or update")
	}
	args, err := c.bind(st, p, flags)
	if err != nil {
		return err
	}
	c.res.start(c, true)
	var cur *cursor
	if flags&cursorReadOnly != 0 && len(st.prepared.Columns) > 0 {
		cur = &cursor{}
		c.res.cursor = cur
	}
	if st.parent.context.Valid() {
		c.sess.UseTrace(st.parent.context, st.parent.sampled)
	}
	err = c.sess.ExecutePrepared(ctx, st.prepared, args, &c.res)
	clear(args) // so that what they point to can go
	if cap(args) > keepArgs {
		c.args = nil
	}
	if cur != nil && err == nil && cur.open {
		c.keepCursor(st, cur)
	} else if cur != nil {
		c.dropCursor(cur)
	}
	c.res.cursor = nil
	return err
}

// keepArgs is for how many arguments a connection keeps the memory from one execution to the next.
const keepArgs = 1024

// bind reads the values of the parameters.
func (c *conn) bind(st *statement, p *payload, flags uint8) ([]session.Arg, error) {
	n := st.prepared.Params
	count := n
	attributes := c.caps.has(capQueryAttributes)
	switch {
	case attributes && (n > 0 || flags&countAvailable != 0):
		sent := p.int() // the statement's parameters, then attributes of the query
		if p.bad || sent < uint64(n) || sent > maxParams {
			return nil, errArguments
		}
		count = int(sent)
	case n == 0:
		return nil, nil
	}
	if count == 0 {
		return nil, nil
	}
	nulls := p.take((count + 7) / 8)
	rebound := p.uint8()
	if p.bad || rebound > 1 {
		return nil, errArguments
	}
	if rebound == 1 {
		if err := st.rebind(p, count, attributes); err != nil {
			return nil, err
		}
		if err := c.keepTypes(st); err != nil {
			return nil, err
		}
	}
	if len(st.types) < count {
		return nil, errArguments // executed before its types were ever told
	}
	c.args = c.args[:0]
	for i := range count {
		var a session.Arg
		var err error
		l := st.long[i]
		switch {
		case l != nil:
			a, err = stringParam(l.b, st.types[i])
			if !st.types[i].isString() {
				a, err = session.Arg{Value: types.NewBytes(l.b), Type: paramLongText}, nil
			}
		case nulls[i/8]&(1<<(i%8)) != 0:
			a = session.Arg{Type: paramNull}
		default:
			a, err = readParam(p, st.types[i])
		}
		if err != nil {
			return nil, err
		}
		if i < n { // what follows are query attributes, which no statement asks for yet
			c.args = append(c.args, a)
		}
	}
	return c.args, nil
}

// maxParams is the most values an execution may have, attributes of the query included.
const maxParams = 65535 + 256

// rebind reads the types of the parameters.
func (st *statement) rebind(p *payload, count int, named bool) error {
	st.types = st.types[:0]
	for range count {
		t := p.uint16()
		if named {
			p.string()
		}
		if p.bad {
			st.types = st.types[:0]
			return errArguments
		}
		st.types = append(st.types, declared{fieldType(t), t&0x8000 != 0})
	}
	return nil
}

// keepTypes accounts for the types of a statement's parameters, where there are many: they stay for the next execution.
// Errors: as of Session.Hold.
func (c *conn) keepTypes(st *statement) error {
	const each = 2 // bytes of a declared
	n := int64(cap(st.types)) * each
	if n <= readBuffer || n == st.typesOf {
		return nil
	}
	if err := c.sess.Hold(n - st.typesOf); err != nil {
		st.types = nil
		c.dropTypes(st)
		return err
	}
	st.typesOf = n
	return nil
}

func (c *conn) dropTypes(st *statement) {
	if st.typesOf > 0 {
		_ = c.sess.Hold(-st.typesOf) // what is given back is never refused
		st.typesOf = 0
	}
}

// longData is COM_STMT_SEND_LONG_DATA, which has no answer.
func (c *conn) longData(p *payload) {
	id, index := p.uint32(), p.uint16()
	st := c.stmts[id]
	if p.bad || st == nil || st.failed != nil {
		return
	}
	if int(index) >= st.prepared.Params {
		st.failed = sqlerr.New(sqlerr.WrongArguments, "mysqld_stmt_send_long_data")
		return
	}
	l := st.long[int(index)]
	if l == nil {
		if err := c.keepLong(longEntry); err != nil {
			c.failLong(st, err)
			return
		}
		l = &longData{b: []byte{}}
		if st.long == nil {
			st.long = make(map[int]*longData)
		}
		st.long[int(index)] = l
	}
	need := int64(len(l.b) + len(p.b))
	more := max(need-int64(cap(l.b)), 0)
	room := c.r.max + longEntry - c.longBytes // one value may be as long as a packet, and all of them together no longer
	if more > room {
		c.failLong(st, errTooLarge)
		return
	}
	if more > 0 {
		size := max(need, min(int64(cap(l.b))+room, 2*int64(cap(l.b))))
		if err := c.keepLong(size - int64(cap(l.b))); err != nil {
			c.failLong(st, err)
			return
		}
		l.b = append(make([]byte, 0, size), l.b...)
	}
	l.b = append(l.b, p.b...)
}

// keepLong counts memory of long data; negative: it is given back. Errors: as of Session.Hold.
func (c *conn) keepLong(n int64) error {
	err := c.sess.Hold(n)
	if err == nil {
		c.longBytes += n
	}
	return err
}

// failLong drops a statement's long data, and what comes of them up to its next execution, which is told why.
func (c *conn) failLong(st *statement, why error) {
	c.dropLong(st)
	var e *sqlerr.Error
	if !errors.As(why, &e) {
		e = sqlerr.Newf(sqlerr.UnknownError, "%s", why.Error())
	}
	st.failed = e
}

// dropLong forgets a statement's long data, and what was wrong with them.
func (c *conn) dropLong(st *statement) {
	n := int64(0)
	for _, l := range st.long {
		n += int64(cap(l.b)) + longEntry
	}
	st.long, st.failed = nil, nil
	_ = c.keepLong(-n) // what is given back is never refused
}

// closeStatement is COM_STMT_CLOSE, which has no answer.
func (c *conn) closeStatement(p *payload) {
	id := p.uint32()
	if st := c.stmts[id]; st != nil {
		delete(c.stmts, id)
		c.forget(st)
	}
}

// resetStatement is COM_STMT_RESET.
func (c *conn) resetStatement(p *payload) error {
	id := p.uint32()
	st := c.stmts[id]
	if st == nil {
		return unknownStatement(id, "mysqld_stmt_reset")
	}
	c.dropLong(st)
	c.closeCursor(st)
	c.ok()
	return nil
}

// closeStatements forgets all of them.
func (c *conn) closeStatements() {
	for _, st := range c.stmts {
		c.forget(st)
	}
	clear(c.stmts)
}

// forget gives back all that a statement has.
func (c *conn) forget(st *statement) {
	c.dropLong(st)
	c.closeCursor(st)
	c.dropTypes(st)
	c.s.closePrepared(st.prepared)
}

// skipAttributes reads past the attributes that precede a COM_QUERY's text.
func skipAttributes(p *payload) error {
	count := p.int()
	p.int() // sets of them: always 1
	if p.bad || count > maxParams {
		return errMalformed
	}
	if count == 0 {
		return nil
	}
	nulls := p.take((int(count) + 7) / 8)
	if p.uint8() != 1 {
		return errMalformed
	}
	var st statement
	if err := st.rebind(p, int(count), true); err != nil {
		return errMalformed
	}
	for i, t := range st.types {
		if nulls[i/8]&(1<<(i%8)) != 0 {
			continue
		}
		if _, err := readParam(p, t); err != nil {
			return err
		}
	}
	return nil
}
