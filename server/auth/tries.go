package auth

import (
	"strconv"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Tries says how many wrong passwords in a row close an account, and for how long (FAILED_LOGIN_ATTEMPTS and
// PASSWORD_LOCK_TIME). With Most or Days 0 none do; Days is -1 for until somebody opens it.
type Tries struct {
	Most, Days int
	// Unlocked is the account's own, and changes when an administrator opens it, or says this rule again.
	Unlocked int64
}

// tried is how often passwords were tried of an account that has Tries. Each member counts by itself, and begins
// anew when it starts, as a MySQL server does.
type tried struct {
	rule   Tries
	count  int
	closed time.Time
}

const dayLong = 24 * time.Hour

// Refused counts that a client was not let in, by whose address it was, and by the account where the password was
// wrong. It returns what the client is told: 1045, or 3955 when the account is closed by now.
func (a *Authenticator) Refused(acct *Account, known, proved bool, user, host, address string, withPassword bool) error {
	a.Failed(user, address)
	if known && !proved && acct.Tries.Most > 0 && acct.Tries.Days != 0 {
		a.mu.Lock()
		t := a.triedOf(acct)
		if t.count++; t.count >= acct.Tries.Most && t.closed.IsZero() {
			t.closed = a.opt.Now()
		}
		a.mu.Unlock()
	}
	if blocked := a.Blocked(acct, user, host); blocked != nil {
		return blocked
	}
	return acct.Denied(user, host, withPassword)
}

// Blocked is error 3955 while an account is closed because of wrong passwords, whatever the password; else nil.
func (a *Authenticator) Blocked(acct *Account, user, host string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.blocked(acct, user, host)
}

// blocked is Blocked. REQUIRES: mu is held.
func (a *Authenticator) blocked(acct *Account, user, host string) error {
	rule := acct.Tries
	if rule.Most == 0 || rule.Days == 0 {
		return nil
	}
	t := a.tried[acct.triedAs()]
	if t == nil || t.rule != rule || t.closed.IsZero() {
		return nil
	}
	total, left := "unlimited", "unlimited"
	if rule.Days > 0 {
		since := a.opt.Now().Sub(t.closed)
		if since >= time.Duration(rule.Days)*dayLong {
			t.count, t.closed = 0, time.Time{}
			return nil
		}
		total, left = strconv.Itoa(rule.Days), strconv.Itoa(rule.Days-int(since/dayLong))
	}
	return sqlerr.New(sqlerr.UserAccessDeniedForUserAccountBlockedByPasswordLock, user, host, total, left, rule.Most)
}

// triedKey is what tries are counted by: the stamp of the rule, which an account takes along when it is renamed, and which one that is made
// anew by a name does not have; of accounts of before there were stamps the name.
type triedKey struct {
	stamp int64
	name  accountName
}

func (a *Account) triedAs() triedKey {
	if a.Tries.Unlocked != 0 {
		return triedKey{stamp: a.Tries.Unlocked}
	}
	return triedKey{name: accountName{a.User, a.Host}}
}

// triedOf is what was tried of an account since its rule is what it is. REQUIRES: mu is held.
func (a *Authenticator) triedOf(acct *Account) *tried {
	name := acct.triedAs()
	t := a.tried[name]
	if t == nil || t.rule != acct.Tries {
		for old := range a.tried { // stamps that are no account's any more
			if len(a.tried) < maxFailures {
				break
			}
			delete(a.tried, old)
		}
		t = &tried{rule: acct.Tries}
		a.tried[name] = t
	}
	return t
}

// Admitted forgets what was tried before the right password came, unless the account is closed by now, which is the error: many may have
// guessed at the same time.
func (a *Authenticator) Admitted(acct *Account, user, host, address string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if closed := a.blocked(acct, user, host); closed != nil {
		return closed
	}
	delete(a.failures, failureKey{user, network(address)})
	delete(a.tried, acct.triedAs())
	return nil
}
