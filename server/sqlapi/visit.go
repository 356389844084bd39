package sqlapi

import (
	"strings"
	"sync"

	"github.com/triremedb/trireme/engine/session"
)

// visit is a session for calls of Execute. To open one costs more than a point read, so that a plain
// read leaves it to the next one for a moment.
type visit struct {
	runner
	of     whose
	opened int64 // by the door's clock
	answer collected
}

// whose is what calls have in common that may have the same session, one after the other.
type whose struct {
	user, host, accountUser, accountHost string
	tls, tlsVersion                      string
	schema                               string
	readOnly                             bool
}

func (c *caller) whose(schema string, readOnly bool) whose {
	i := &c.info
	return whose{i.User, i.Host, i.AccountUser, i.AccountHost, i.TLS, i.TLSVersion, schema, readOnly}
}

const (
	keptVisits = 64 // sessions that wait for a call
	// keptSeconds is how old a session may be that is given to a call: what is set globally by another
	// port, and what roles an account begins with, counts for all calls after that.
	keptSeconds = 1
	keptText    = 4 << 10 // bytes of a statement that is kept prepared
)

// visits are those that wait for a call.
type visits struct {
	mu     sync.Mutex
	idle   map[whose][]*visit // the one that came last is taken first
	n      int
	closed bool
}

// take returns one that waits; nil: there is none.
func (v *visits) take(of whose, now int64) *visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := v.idle[of]
	if len(list) == 0 {
		return nil
	}
	one := list[len(list)-1]
	if now-one.opened > keptSeconds || one.s.Gone() {
		return nil // sweep closes it
	}
	list[len(list)-1] = nil
	v.idle[of] = list[:len(list)-1]
	v.n--
	return one
}

// put lets one wait; false: it is to be closed.
func (v *visits) put(one *visit, now int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || v.n >= keptVisits || now-one.opened > keptSeconds {
		return false
	}
	if v.idle == nil {
		v.idle = make(map[whose][]*visit)
	}
	v.idle[one.of] = append(v.idle[one.of], one)
	v.n++
	return true
}

// drop closes those for which gone says so, and reports whether there were any.
func (v *visits) drop(gone func(*visit) bool) bool {
	var all []*visit
	v.mu.Lock()
	for of, list := range v.idle {
		left := list[:0]
		for _, one := range list {
			if gone(one) {
				all = append(all, one)
			} else {
				left = append(left, one)
			}
		}
		clear(list[len(left):])
		if v.idle[of] = left; len(left) == 0 {
			delete(v.idle, of)
		}
	}
	v.n -= len(all)
	v.mu.Unlock()
	for _, one := range all {
		one.close()
	}
	return len(all) > 0
}

// sweep closes those that are too old, or of no use.
func (v *visits) sweep(now int64) {
	v.drop(func(one *visit) bool { return now-one.opened > keptSeconds || one.s.Gone() })
}

// close closes all, and those that come.
func (v *visits) close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.drop(func(*visit) bool { return true })
}

// unchanged reports whether the session is as it was when it was opened, after a plain read, and may serve another
// call. A view may have locked a name. Of an account that limits its connections each call is one.
func (v *visit) unchanged() bool {
	const both = session.StatusInTransaction | session.StatusAutocommit
	return !v.s.Gone() && !v.s.HasLocks() && !v.s.Counted() && v.s.Status()&both == session.StatusAutocommit
}

// peculiar are words of reads that leave something in their session, or that tell of it.
var peculiar = map[string]bool{"into": true, "sql_calc_found_rows": true, "found_rows": true, "row_count": true, "last_insert_id": true,
	"get_lock": true, "release_lock": true, "release_all_locks": true, "is_free_lock": true, "is_used_lock": true, "connection_id": true}

const longestPeculiar = len("sql_calc_found_rows")

// plain reports whether a statement is a read for which it makes no difference what other plain
// reads its session has run before. It errs on the side of no.
func plain(text string) bool {
	const first = "select"
	if len(text) <= len(first) || len(text) > keptText || !strings.EqualFold(text[:len(first)], first) || isWord(text[len(first)]) {
		return false
	}
	var word [longestPeculiar]byte
	n := 0
	for i := len(first); i <= len(text); i++ {
		c := byte(0)
		if i < len(text) {
			c = text[i]
		}
		switch {
		case c == '@', c == '/' && i+1 < len(text) && text[i+1] == '*': // variables; comments that are not
			return false
		case isWord(c):
			if n < len(word) {
				word[n] = lower(c)
			}
			n++
		default:
			if n > 0 && n <= len(word) && peculiar[string(word[:n])] {
				return false
			}
			n = 0
		}
	}
	return true
}

// sets reports whether a statement is a SET.
func sets(text string) bool {
	for comment := true; comment; {
		var rest string
		switch text = strings.TrimSpace(text); {
		case strings.HasPrefix(text, "/*!"), strings.HasPrefix(text, "/*+"):
			return true // it may be one: what is in there is run
		case strings.HasPrefix(text, "/*"):
			_, rest, comment = strings.Cut(text[2:], "*/")
		case strings.HasPrefix(text, "#"), strings.HasPrefix(text, "--"):
			_, rest, comment = strings.Cut(text, "\n")
		default:
			comment = false
		}
		if comment {
			text = rest
		}
	}
	return len(text) > 3 && strings.EqualFold(text[:3], "set") && !isWord(text[3])
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
