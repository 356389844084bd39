package mysqlwire

import (
	"bytes"
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/server/auth"
)

// identify finds out whether the client is who it says it is.
func (c *conn) identify(resp *response) (*Handover, error) {
	host, address := c.origin()
	a := c.s.opt.Auth
	if delay := a.Delay(resp.user, address); delay > 0 {
		select {
		case <-c.ctx.Done():
			return nil, errMoved("Server shutdown in progress")
		case <-c.s.stop:
			return nil, errMoved("Server shutdown in progress")
		case <-time.After(delay):
		}
		_ = c.nc.SetDeadline(time.Now().Add(c.s.opt.ConnectTimeout))
	}
	acct, known, err := a.Find(resp.user, host, address)
	if err != nil {
		return nil, err
	}
	if known {
		c.names()
	}
	if blocked := a.Blocked(&acct, resp.user, host); blocked != nil {
		a.Failed(resp.user, address)
		return nil, blocked
	}
	// A guess counts as soon as it is known to be wrong, not when the client goes on: it may have many connections wait.
	var wrong error
	guessed := func() { wrong = a.Refused(&acct, known, false, resp.user, host, address, true) }
	proved, withPassword, err := c.prove(resp, &acct, guessed)
	if err != nil {
		return nil, err
	}
	if !proved && wrong != nil {
		return nil, wrong
	}
	if !proved && c.ctx.Err() != nil { // it was not looked at to the end
		return nil, errMoved("Server shutdown in progress")
	}
	if !known || !proved || !a.Meets(&acct, &c.channel) {
		return nil, a.Refused(&acct, known, proved, resp.user, host, address, withPassword)
	}
	if closed := a.Admitted(&acct, resp.user, host, address); closed != nil {
		return nil, closed
	}
	h := c.handover(resp, &acct, host)
	h.Resets, h.Expired = c.caps.has(capExpiredPasswords), acct.Expired
	if closed := acct.Closed(resp.user, host, h.Resets); closed != nil {
		return nil, closed
	}
	return h, nil
}

// origin is where the client comes from: what its first member has seen, if another has passed it on.
func (c *conn) origin() (host, address string) {
	if c.host != "" {
		return c.host, c.hostAddress
	}
	return auth.RemoteHost(c.nc.RemoteAddr())
}

// prove runs the account's method of authentication. withPassword says that the client has
// tried one. guessed is called when one was not right and the method goes on.
func (c *conn) prove(resp *response, acct *auth.Account, guessed func()) (proved, withPassword bool, err error) {
	answer := resp.auth
	plugin := resp.plugin
	if !c.caps.has(capPluginAuth) {
		plugin = PluginNative // what clients did before they named it
	}
	// COM_CHANGE_USER is answered by a request to prove it, with a nonce of its own, whatever it has brought: clients of
	// Oracle's library bring nothing, which looks like no password. Nor does an answer to an unknown nonce prove anything.
	again := resp.changes && c.caps.has(capPluginAuth)
	if again {
		c.nonce = newNonce()
	}
	if again || plugin != acct.Plugin || c.unknownNonce && !isEmpty(answer) {
		if !c.caps.has(capPluginAuth) {
			return false, false, sqlerr.New(sqlerr.NotSupportedAuthMode)
		}
		if answer, err = c.ask(func(b []byte) []byte { return appendAuthSwitch(b, acct.Plugin, &c.nonce) }); err != nil {
			return false, false, err
		}
		c.unknownNonce = false
	}
	if isEmpty(answer) {
		return acct.Hash == "", false, nil
	}
	switch acct.Plugin {
	case PluginNative:
		return auth.CheckNative(acct, c.nonce[:], answer), true, nil
	case PluginSHA2:
		proved, err := c.proveSHA2(acct, answer, guessed)
		return proved, err == nil, err
	}
	return false, false, sqlerr.New(sqlerr.PluginIsNotLoaded, acct.Plugin)
}

// isEmpty: the client has no password.
func isEmpty(answer []byte) bool { return len(answer) == 0 || len(answer) == 1 && answer[0] == 0 }

// Words of caching_sha2_password.
const (
	sha2AskKey   = 2 // client: send the public key
	sha2FastOK   = 3 // server: the cached digest matched
	sha2FullAuth = 4 // server: send the password itself
)

// proveSHA2 is caching_sha2_password. A password that was checked before is known by its
// digest in memory; otherwise the client has to send the password, under TLS as it is,
// else encrypted for the server's key. guessed is called when the digest shows the password to
// be wrong.
func (c *conn) proveSHA2(acct *auth.Account, answer []byte, guessed func()) (proved bool, err error) {
	a := c.s.opt.Auth
	if a.CheckFast(acct, c.nonce[:], answer) {
		c.more([]byte{sha2FastOK})
		return true, nil
	}
	if a.Remembers(acct) {
		guessed()
	}
	full := func(b []byte) []byte { return append(b, headerMoreData, sha2FullAuth) }
	p, err := c.ask(full)
	if err != nil {
		return false, err
	}
	if c.channel.TLS() || c.nc.RemoteAddr().Network() == "unix" {
		return a.CheckPassword(c.ctx, acct, bytes.TrimSuffix(p, []byte{0})), nil
	}
	if len(p) == 1 && p[0] == sha2AskKey {
		key := a.PublicKey()
		if p, err = c.ask(func(b []byte) []byte { return append(append(b, headerMoreData), key...) }); err != nil {
			return false, err
		}
	}
	password, ok := a.Decrypt(p, c.nonce[:])
	return ok && a.CheckPassword(c.ctx, acct, password), nil
}

// more adds a word of the method to what is sent next.
func (c *conn) more(b []byte) {
	c.w.begin()
	c.w.buf = append(append(c.w.buf, headerMoreData), b...)
	c.w.end()
}

// ask sends a packet and returns the client's answer. Errors: a *sqlerr.Error, or a *clientGone.
func (c *conn) ask(packet func([]byte) []byte) ([]byte, error) {
	c.w.begin()
	c.w.buf = packet(c.w.buf)
	c.w.end()
	err := c.w.flush()
	if err == nil {
		var p []byte
		if p, err = c.r.next(); err == nil {
			return p, nil
		}
	}
	var told *sqlerr.Error
	if errors.As(err, &told) {
		return nil, told
	}
	return nil, &clientGone{err}
}

// takeOver lets a session in that another member has authenticated and announced.
func (c *conn) takeOver(resp *response) (*Handover, error) {
	if c.s.opt.Redeem != nil {
		if h := c.s.opt.Redeem(resp.auth); h != nil {
			c.channel, c.host, c.hostAddress = h.Channel(), h.Host, h.Address
			if c.unknownNonce = len(h.Nonce) != nonceSize; !c.unknownNonce {
				c.nonce = [nonceSize]byte(h.Nonce)
			}
			return h, nil
		}
	}
	host, address := auth.RemoteHost(c.nc.RemoteAddr())
	c.s.opt.Auth.Failed("", address)
	return nil, auth.Denied(resp.user, host, true)
}
