package mysqlwire

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// start makes the writer ready for a statement.
func (r *results) start(c *conn, binaryRows bool) {
	r.c, r.binary = c, binaryRows
	r.inSet, r.onlyColumns = false, false
	r.cursor = nil
}

// shrink gives up memory that only a long result needs.
func (r *results) shrink() {
	if cap(r.scratch) > keepBuffer {
		r.scratch = nil
	}
	if cap(r.c.track) > keepBuffer {
		r.c.track = nil
	}
}

// dispatch runs a command. The error is one that ends the connection: others are told.
func (c *conn) dispatch(cmd command, p []byte) error {
	err := c.perform(cmd, p)
	c.res.shrink()
	if err == nil {
		return nil
	}
	var gone *clientGone
	if errors.As(err, &gone) {
		return gone.err
	}
	var told *sqlerr.Error
	if !errors.As(err, &told) {
		c.s.opt.Log.Error("a statement failed by an error without a number", "session", c.id, "error", err)
		told = sqlerr.Newf(sqlerr.UnknownError, "%s", err.Error())
	}
	if cmd == comChangeUser || told.Number == sqlerr.ServerShutdown {
		return told // nobody knows whose session it would be; or it cannot go on here
	}
	c.writeError(told)
	return nil
}

func (c *conn) perform(cmd command, b []byte) error {
	p := payload{b: b}
	switch cmd {
	case comQuery:
		return c.query(&p)
	case comStmtExecute:
		return c.execute(c.ctx, &p)
	case comStmtPrepare:
		return c.prepare(c.ctx, b)
	case comStmtClose:
		c.closeStatement(&p)
		return nil
	case comStmtSendLongData:
		c.longData(&p)
		return nil
	case comStmtReset:
		return c.resetStatement(&p)
	case comStmtFetch:
		return c.fetch(&p)
	case comPing:
		c.ok()
		return nil
	case comInitDB:
		return c.okAfter(c.sess.Use(string(b)))
	case comFieldList:
		return c.fieldList(&p)
	case comCreateDB:
		return c.internal("CREATE DATABASE " + quoteName(string(b)))
	case comDropDB:
		return c.internal("DROP DATABASE " + quoteName(string(b)))
	case comStatistics:
		c.w.begin()
		c.w.buf = append(c.w.buf, c.s.opt.Backend.Statistics()...)
		c.w.end()
		return nil
	case comProcessInfo:
		return c.internal("SHOW PROCESSLIST")
	case comProcessKill:
		id := p.uint32()
		if p.bad {
			return errMalformed
		}
		return c.internal("KILL " + itoa(id))
	case comDebug:
		c.eof()
		return nil
	case comChangeUser:
		return c.changeUser(b)
	case comResetConnection:
		c.closeStatements()
		err := c.sess.Reset()
		c.obeyLimits()
		return c.okAfter(err)
	case comSetOption:
		return c.setOption(&p)
	}
	return sqlerr.New(sqlerr.UnknownComError)
}

func (c *conn) okAfter(err error) error {
	if err == nil {
		c.ok()
	}
	return err
}

// eof answers commands whose answer is EOF.
func (c *conn) eof() {
	status := uint16(c.sess.Status())
	if c.caps.has(capDeprecateEOF) {
		c.writeOK(headerEOF, &session.Outcome{}, status)
	} else {
		c.writeEOF(0, status)
	}
}

// query is COM_QUERY.
func (c *conn) query(p *payload) error {
	if c.caps.has(capQueryAttributes) {
		if err := skipAttributes(p); err != nil {
			return err
		}
	}
	c.res.start(c, false)
	text := c.text(p.b)
	if c.s.opt.Traced {
		if of := parentIn(text); of.context.Valid() {
			c.sess.UseTrace(of.context, of.sampled)
		}
	}
	err := c.sess.Query(c.ctx, text, &c.res)
	if len(c.res.fields) == 0 {
		c.obeyLimits() // no rows: it may have been a SET
	}
	c.res.fields = c.res.fields[:0]
	return err
}

// internal runs a statement that a command stands for.
func (c *conn) internal(sql string) error {
	c.res.start(c, false)
	return c.sess.Query(c.ctx, sql, &c.res)
}

// fieldList is COM_FIELD_LIST: the columns of a table. Its pattern is not obeyed: clients
// give none.
func (c *conn) fieldList(p *payload) error {
	table := p.cStringOrRest()
	c.res.start(c, false)
	c.res.onlyColumns = true
	return c.sess.Query(c.ctx, "SELECT * FROM "+quoteName(string(table))+" LIMIT 0", &c.res)
}

// setOption is COM_SET_OPTION: whether a text may have several statements.
func (c *conn) setOption(p *payload) error {
	option := p.uint16()
	if p.bad || option > 1 {
		return sqlerr.New(sqlerr.UnknownComError)
	}
	s, ok := c.sess.(interface{ SetMultiStatements(bool) })
	if !ok {
		return sqlerr.New(sqlerr.NotSupportedYet, "COM_SET_OPTION")
	}
	s.SetMultiStatements(option == 0)
	c.eof()
	return nil
}

// changeUser is COM_CHANGE_USER: another client on this connection.
func (c *conn) changeUser(b []byte) error {
	resp, err := parseChangeUser(b, c.caps)
	if err != nil {
		return err
	}
	limit := c.r.max
	c.r.max = min(limit, maxHandshake)
	_ = c.nc.SetDeadline(time.Now().Add(c.s.opt.ConnectTimeout)) // as at the first time
	c.wentOut()
	c.says(resp)
	h, err := c.identify(resp)
	_ = c.nc.SetDeadline(time.Time{})
	c.r.max = limit
	if err != nil {
		c.keptOut(err)
		return err
	}
	c.isKnown(h)
	if resp.collation == 0 {
		h.Collation = uint16(c.info.Collation)
	}
	c.closeStatements()
	info := h.connection(c)
	info.Admin = c.info.Admin
	if err := c.sess.ChangeUser(info); err != nil {
		c.keptOut(err)
		return err
	}
	c.cameIn()
	c.info = info
	c.obeyLimits()
	c.ok()
	return nil
}
