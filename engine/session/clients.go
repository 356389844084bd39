package session

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// clientsMax is how many accounts, users and hosts are counted one by one: performance_schema_accounts_size and its
// like. Further ones are counted together, as one without a name.
const clientsMax = 1000

// clientKey is a user and a host as the client named itself and where it came from. For users host is empty, and the
// other way round.
type clientKey struct{ user, host string }

// client is what is known of an account, a user or a host.
type client struct {
	key            clientKey
	others         bool   // those that have no place of their own
	current, total uint64 // connections
	kinds          kindSums
}

// kindSums are the counts of statements of sessions that have ended, by kind.
type kindSums map[statementKind]StatementCounts

func (s kindSums) add(o kindSums) {
	for kind, n := range o {
		sum := s[kind]
		sum.add(&n)
		s[kind] = sum
	}
}

// clients are the accounts that have connected, and their users and hosts.
type clients struct {
	mu                     sync.Mutex
	accounts, users, hosts clientTable
	all                    kindSums // of sessions that have ended
	open                   map[*clientCounts]bool
}

type clientTable struct {
	byKey map[clientKey]*client
	rest  client
}

func (t *clientTable) of(key clientKey) *client {
	c := t.byKey[key]
	switch {
	case c != nil:
		return c
	case len(t.byKey) >= clientsMax:
		t.rest.others = true
		return &t.rest
	case t.byKey == nil:
		t.byKey = map[clientKey]*client{}
	}
	c = &client{key: key}
	t.byKey[key] = c
	return c
}

// clientCounts is what a session counts.
type clientCounts struct {
	of [3]*client // account, user, host; guarded by the mutex of clients

	mu    *sync.Mutex                // the session's, which it locks at the end of each statement anyway
	kinds [comKinds]*StatementCounts // made for the kinds that the session runs
}

// add counts a statement that has ended. REQUIRES: mu.
func (c *clientCounts) add(m *meter, took time.Duration, sent, examined uint64, failed bool) {
	k := c.kinds[m.kind]
	if k == nil {
		k = &StatementCounts{}
		c.kinds[m.kind] = k
	}
	k.ended(took, m, sent, examined, failed)
}

// sums are what the session has counted.
func (c *clientCounts) sums() kindSums {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := kindSums{}
	for kind, k := range c.kinds {
		if k != nil {
			s[statementKind(kind)] = *k
		}
	}
	return s
}

// connect counts a session in.
func (c *clients) connect(user, host string, counts *clientCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts.of = [3]*client{c.accounts.of(clientKey{user, host}), c.users.of(clientKey{user: user}), c.hosts.of(clientKey{host: host})}
	for _, x := range counts.of {
		x.current++
		x.total++
	}
	if c.open == nil {
		c.open = map[*clientCounts]bool{}
	}
	c.open[counts] = true
}

// leave counts it out; what it has counted stays with its account.
func (c *clients) leave(counts *clientCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open[counts] {
		return // it was never counted in, or is out
	}
	delete(c.open, counts)
	sums := counts.sums()
	for _, x := range counts.of {
		x.current--
		if x.kinds == nil {
			x.kinds = kindSums{}
		}
		x.kinds.add(sums)
	}
	if c.all == nil {
		c.all = kindSums{}
	}
	c.all.add(sums)
}

// clientSums is a client with the counts of its sessions that are there and of those that were.
type clientSums struct {
	user, host     any // nil: none
	current, total uint64
	kinds          kindSums
}

// What of a clientCounts.of is meant.
const (
	byAccount = iota
	byUser
	byHost
)

// columns are those by which a table names it.
func (c *clientSums) columns(what int) []any {
	switch what {
	case byUser:
		return []any{c.user}
	case byHost:
		return []any{c.host}
	}
	return []any{c.user, c.host}
}

// read lists the accounts, the users or the hosts.
func (c *clients) read(what int) []clientSums {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := []*clientTable{&c.accounts, &c.users, &c.hosts}[what]
	all := make([]*client, 0, len(t.byKey)+1)
	for _, x := range t.byKey {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *client) int {
		return cmp.Or(cmp.Compare(a.key.user, b.key.user), cmp.Compare(a.key.host, b.key.host))
	})
	if t.rest.others {
		all = append(all, &t.rest)
	}
	live := map[*client]kindSums{}
	for counts := range c.open {
		x := counts.of[what]
		if live[x] == nil {
			live[x] = kindSums{}
		}
		live[x].add(counts.sums())
	}
	list := make([]clientSums, len(all))
	for i, x := range all {
		kinds := kindSums{}
		kinds.add(x.kinds)
		kinds.add(live[x])
		list[i] = clientSums{current: x.current, total: x.total, kinds: kinds}
		if what != byHost && !x.others {
			list[i].user = x.key.user
		}
		if what != byUser && !x.others {
			list[i].host = x.key.host
		}
	}
	return list
}

// everything is the counts of all sessions.
func (c *clients) everything() kindSums {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := kindSums{}
	sums.add(c.all)
	for counts := range c.open {
		sums.add(counts.sums())
	}
	return sums
}

// forget is TRUNCATE of accounts, users or hosts: those without a session go, and others have as many connections as are
// there now.
func (c *clients) forget(what int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := []*clientTable{&c.accounts, &c.users, &c.hosts}[what]
	for key, x := range t.byKey {
		if x.total, x.kinds = x.current, nil; x.current == 0 {
			delete(t.byKey, key)
		}
	}
	t.rest.total, t.rest.kinds = t.rest.current, nil
	t.rest.others = t.rest.current > 0
}

// errorCounts counts errors that statements have ended with, by number.
type errorCounts struct {
	mu    sync.Mutex
	byNum map[sqlerr.Code]errorCount
}

type errorCount struct {
	raised      uint64
	first, last types.Timestamp
}

// add counts an error.
func (c *errorCounts) add(err error, at types.Timestamp) {
	number := errorNumber(err)
	if number == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byNum[number]
	if n.raised++; n.raised == 1 {
		n.first = at
	}
	n.last = at
	if c.byNum == nil {
		c.byNum = map[sqlerr.Code]errorCount{}
	}
	c.byNum[number] = n
}

func (c *errorCounts) read(fn func(number sqlerr.Code, n errorCount)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	numbers := make([]sqlerr.Code, 0, len(c.byNum))
	for number := range c.byNum {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		fn(number, c.byNum[number])
	}
}

func (c *errorCounts) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byNum = nil
}

// rowsErrors lists the errors that were raised.
func rowsErrors(q *virtualRows) error {
	q.s.m.errors.read(func(number sqlerr.Code, n errorCount) {
		q.row(int(number), orNull(number.Symbol()), orNull(number.State()), n.raised, 0, n.first, n.last)
	})
	return q.err
}
