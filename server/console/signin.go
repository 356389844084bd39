package console

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/server/auth"
)

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// cookieName is of this node alone: browsers do not tell the ports of a machine apart.
func (c *Console) cookieName(tls bool) string {
	if tls {
		return "__Host-trireme-" + c.opt.Name
	}
	return "trireme-" + c.opt.Name
}

func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, value string) {
	k := &http.Cookie{Name: c.cookieName(r.TLS != nil), Value: value, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
	if value == "" {
		k.MaxAge = -1
	}
	http.SetCookie(w, k)
}

// signedIn finds out who makes a request; nil: nobody. An account that was dropped or locked, or
// has another password by now, is signed in no more.
func (c *Console) signedIn(r *http.Request) *signIn {
	k, err := r.Cookie(c.cookieName(r.TLS != nil))
	if err != nil {
		return nil
	}
	s := c.signIns.find(k.Value, r.Header.Get(headerPassive) == "" && r.Header.Get("Accept") != eventStream)
	if s == nil || !c.holds(s, r) {
		return nil
	}
	return s
}

// holds says whether the account is still what it was at the sign-in.
func (c *Console) holds(s *signIn, r *http.Request) bool {
	host, address := auth.RemoteHost(Remote(r))
	channel := auth.ChannelOf(r.TLS)
	acct, known, err := c.opt.Auth.Find(s.caller.User, host, address)
	same := err == nil && known && acct.User == s.caller.AccountUser && acct.Host == s.caller.AccountHost && bytes.Equal(acct.Credential(), s.credential) &&
		!acct.Locked && !acct.Expired && acct.Require.Met(&channel)
	if !same {
		c.signIns.remove(s)
	}
	return same
}

// Remote is the address of who makes a request.
func Remote(r *http.Request) net.Addr { return remoteAddr(r.RemoteAddr) }

type remoteAddr string

func (remoteAddr) Network() string  { return "tcp" }
func (a remoteAddr) String() string { return string(a) }

// serveSignIn answers POST sign-in. Nobody has a place while his request is on its way, or while he waits
// for having guessed too often: places are for passwords that are looked at, which takes milliseconds.
func (c *Console) serveSignIn(w http.ResponseWriter, r *http.Request) error {
	var ask struct{ User, Password string }
	if err := read(w, r, signInRequest, &ask); err != nil {
		return err
	}
	host, address := auth.RemoteHost(Remote(r))
	if err := c.waitFor(r, ask.User, address); err != nil {
		return err
	}
	leave := c.signing.Enter(Remote(r))
	if leave == nil {
		return errSigningIn
	}
	defer leave()
	defer c.opt.Hold(r.Context())()
	channel := auth.ChannelOf(r.TLS)
	acct, err := c.opt.Auth.Prove(r.Context(), ask.User, host, address, ask.Password, &channel)
	caller := Caller{User: ask.User, Host: host, AccountUser: acct.User, AccountHost: acct.Host, Address: r.RemoteAddr}
	if err != nil {
		p := explain(err)
		c.audit(&caller, "", "ConsoleSignIn", fmt.Sprintf("error %d (%s): %s", p.Number, p.State, p.Message))
		return err
	}
	if before := c.signedIn(r); before != nil {
		c.signIns.remove(before)
	}
	s := &signIn{caller: caller, credential: acct.Credential(), admin: acct.Admin()}
	c.setCookie(w, r, c.signIns.add(s))
	c.audit(&caller, caller.id().Text(), "ConsoleSignIn", "done")
	return c.serveSession(w, r, s)
}

// waitFor waits where a user has guessed too often.
func (c *Console) waitFor(r *http.Request, user, address string) error {
	if c.opt.Auth.Delay(user, address) == 0 {
		return nil
	}
	leave := c.delayed.EnterFrom(auth.Network(Remote(r)) + " " + user)
	if leave == nil {
		return errSigningIn
	}
	defer leave()
	return c.opt.Auth.Wait(r.Context(), c.stop, user, address)
}

// audit writes a line of the audit log. Who does not even name a user writes none.
func (c *Console) audit(who *Caller, account, call, outcome string) {
	if who.User == "" && account == "" {
		return
	}
	level := slog.LevelInfo
	if account == "" {
		level = slog.LevelWarn
	}
	c.opt.Audit.LogAttrs(context.Background(), level, "admin", slog.Group("audit", "account", account, "user", valid(who.User), "address", who.Address,
		"call", call, "arguments", json.RawMessage("{}"), "outcome", outcome))
}

// serveSignOut answers POST sign-out.
func (c *Console) serveSignOut(w http.ResponseWriter, r *http.Request, s *signIn) error {
	c.signIns.remove(s)
	c.setCookie(w, r, "")
	c.audit(&s.caller, s.caller.id().Text(), "ConsoleSignOut", "done")
	answer(w, http.StatusOK, struct{}{})
	return nil
}

// rights are what the views need, by the name that the pages have for it. They decide what is
// shown as out of reach; the calls themselves check again.
var rights = map[string]struct {
	any     priv.Mask
	dynamic []string
}{
	"group":     {any: priv.Process | priv.ReplicationClient},
	"processes": {any: priv.Process},
	"settings":  {any: priv.Process | priv.ReplicationClient, dynamic: []string{"SYSTEM_VARIABLES_ADMIN"}},
	"kill":      {any: priv.Super, dynamic: []string{"CONNECTION_ADMIN"}},
	"binlogs":   {any: priv.Super | priv.ReplicationClient, dynamic: []string{"BINLOG_ADMIN"}},
}

// serveSession answers GET session: who is signed in, and where.
func (c *Console) serveSession(w http.ResponseWriter, r *http.Request, s *signIn) error {
	may := map[string]bool{}
	for name, need := range rights {
		may[name] = c.opt.Sessions.Needs(s.caller.id(), need.any, need.dynamic...) == nil
	}
	answer(w, http.StatusOK, map[string]any{"user": valid(s.caller.User), "account": valid(s.caller.id().Text()), "token": s.token, "tls": r.TLS != nil,
		"idle_seconds": int(c.opt.IdleTimeout.Seconds()), "may": may, "node": c.opt.Node()})
	return nil
}
