package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/mysqlwire"
	"github.com/triremedb/trireme/server/users"
)

// accounts finds accounts for the doors.
type accounts struct {
	n    *Node
	wait time.Duration // accountsWait, but in tests
}

// accountsWait is how long a client waits for a group that is just beginning to have
// accounts.
const accountsWait = 5 * time.Second

// accountsLook is how often a node tries to read the accounts, until it has once.
const accountsLook = 200 * time.Millisecond

// accountsFresh is how long a client waits for this member to know what has been said of accounts so far. One that hears of
// no leader, or is too far behind, goes by what it has: administrators have to get in. A session that writes
// is looked at once more where it goes ([Node.confirm]).
const accountsFresh = 500 * time.Millisecond

// Account implements auth.Source. Where no account is known yet nobody is told that its password is wrong, nor by what was its
// password before.
func (a *accounts) Account(user, host, address string) (auth.Account, bool, error) {
	stale := false
	if a.n.group != nil {
		_, led := a.n.group.Leader()
		if stale = !led; led {
			_, err := a.n.group.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: accountsFresh})
			stale = err != nil
		}
	}
	acct, ok, err := a.known(user, host, address)
	acct.Stale = stale
	return acct, ok, err
}

// known is Account by what this member has applied.
func (a *accounts) known(user, host, address string) (auth.Account, bool, error) {
	for until := time.Now().Add(a.wait); !a.n.sessions.HasAccounts(); {
		if !time.Now().Before(until) {
			return auth.Account{}, false, sqlerr.Newf(sqlerr.ServerShutdown, "This member does not have the group's "+
				"accounts yet: connect again later")
		}
		select {
		case <-a.n.stopping:
			return auth.Account{}, false, sqlerr.New(sqlerr.ServerShutdown)
		case <-time.After(forwardRetry):
		}
	}
	p, ok, err := a.n.sessions.MatchAccount(user, host, address)
	if err != nil || !ok || p.Plugin == priv.NoAuth {
		return auth.Account{}, false, err
	}
	return auth.Account{User: p.Name, Host: p.Host, Plugin: p.Plugin, Hash: p.Hash, Second: p.Second, Locked: p.Locked,
		Expired:     a.n.sessions.PasswordExpired(&p),
		Tries:       auth.Tries{Most: p.Rules.Attempts, Days: p.Rules.LockDays, Unlocked: int64(p.Rules.Unlocked)},
		Require:     auth.Requirement{Kind: p.TLS, Cipher: p.Cipher, Issuer: p.Issuer, Subject: p.Subject},
		Administers: func() bool { return a.n.sessions.AccountHas(p.ID, "CONNECTION_ADMIN") }}, true, nil
}

// confirm looks whether a client that another member has let in, or this one before it led, may come in by what
// is known where sessions write: that member may not have heard of a password's change, or that an account is locked. Errors: 1045,
// 1862, 3118, and those of Account.
func (n *Node) confirm(h *mysqlwire.Handover) error {
	acct, known, err := n.accounts.known(h.User, h.Host, h.Address)
	if err != nil {
		return err
	}
	ch := h.Channel()
	if !known || acct.User != h.AccountUser || acct.Host != h.AccountHost || !n.auth.Meets(&acct, &ch) ||
		len(h.Credential) > 0 && !bytes.Equal(h.Credential, acct.Credential()) {
		return auth.Denied(h.User, h.Host, true)
	}
	if closed := acct.Closed(h.User, h.Host, h.Resets); closed != nil {
		return closed
	}
	h.Expired = acct.Expired
	return nil
}

// hasAccounts reports whether the group's system tables are here.
func (n *Node) hasAccounts() bool {
	if n.known.Load() {
		return true
	}
	eng, err := n.group.Engine()
	if err != nil {
		return false
	}
	if _, err := eng.Catalog.FindSchema(nil, priv.Schema); err != nil {
		return false
	}
	n.known.Store(true)
	return true
}

// rootPassword is what the configuration says, or drawn: then it is told.
func (n *Node) rootPassword() (password string, drawn bool, err error) {
	if password = n.cfg.String("initial_root_password"); password != "" { // then there is no file of it
		return password, false, nil
	}
	for _, setting := range []string{"initial_root_password_file", "root_password_file"} {
		if file := n.cfg.String(setting); file != "" {
			if password, err = users.ReadPassword(file); err != nil {
				err = fmt.Errorf("%s: %s: %w", setting, file, err)
			}
			return password, false, err
		}
	}
	return rand.Text()[:20], true, nil
}

const (
	prepareLimit = 30 * time.Second
	prepareRetry = time.Second
)

// prepare does what has to be done on a new leader before clients come: a new group gets
// its accounts, and what an earlier leader has left half done is cleaned up.
func (n *Node) prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), prepareLimit)
	defer cancel()
	if !n.hasAccounts() {
		password, drawn, err := n.rootPassword()
		if err != nil {
			return err
		}
		hash, err := priv.HashPassword(priv.SHA2, password, func() byte {
			var b [1]byte
			_, _ = rand.Read(b[:]) // crypto/rand does not fail
			return b[0]
		})
		if err != nil {
			return err
		}
		made, err := n.sessions.Bootstrap(ctx, session.BootstrapOptions{User: "root", Host: "%", Hash: hash})
		if err != nil {
			return fmt.Errorf("making the accounts of a new group: %w", err)
		}
		if made && drawn {
			n.log.Warn("the group has begun, with the account root@%; its password is told this once", "password", password)
		}
	}
	if err := n.sessions.ReadAccounts(); err != nil {
		return fmt.Errorf("reading the accounts: %w", err)
	}
	if err := n.sessions.Upgrade(ctx); err != nil { // a full disk, say: clients come all the same, and accounts stay as they are
		n.log.Error("the system tables of an older version could not be brought up to date: accounts cannot be changed until a leader can", "error", err)
	}
	found, err := n.sessions.CleanUp(ctx)
	if err != nil {
		return fmt.Errorf("cleaning up after an earlier leader: %w", err)
	}
	if found > 0 {
		n.log.Info("removed what statements of an earlier leader had left unfinished", "tables and indexes", found)
	}
	return nil
}
