package mysqlwire

import (
	"time"

	"github.com/triremedb/trireme/server/audit"
)

// audited is what the audit log has of who is on a connection.
type audited struct {
	login audit.Login
	in    time.Time // zero: nobody is in, or another member has told of it
}

// says notes what a client says of itself.
func (c *conn) says(resp *response) {
	_, address := c.origin()
	if c.host == "" {
		address = c.nc.RemoteAddr().String()
	}
	c.audited.login = audit.Login{Door: "mysql", ReadOnly: c.port.ReadOnly, Session: c.id, User: resp.user, Address: address,
		TLS: c.channel.Version, Program: resp.attributes["program_name"]}
}

// names notes that there is an account for the user that the client names.
func (c *conn) names() { c.audited.login.Known = true }

// isKnown notes as whose account the client has proved itself.
func (c *conn) isKnown(h *Handover) {
	c.audited.login.AccountUser, c.audited.login.AccountHost = h.AccountUser, h.AccountHost
}

// cameIn tells that the client is in.
func (c *conn) cameIn() {
	c.s.opt.Audit.Login(c.audited.login)
	c.audited.in = time.Now()
}

// keptOut tells that the client was refused.
func (c *conn) keptOut(err error) {
	e := c.audited.login
	e.Err = err
	c.s.opt.Audit.Login(e)
}

// wentOut tells that who was in is gone.
func (c *conn) wentOut() {
	if !c.audited.in.IsZero() {
		c.s.opt.Audit.Logout(c.audited.login, time.Since(c.audited.in))
		c.audited.in = time.Time{}
	}
}
