package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"
)

// Reads of Readers and of transactions that only read are spread over the members, by call: each goes to the
// one, of those that answer, which has the fewest of this DB under way, and of those like each other
// to another one each time. What a read may miss the members see to themselves, so that it does not
// matter for a token where it goes. A member that was too far behind for a read is passed over
// for a while, and the read goes to another.

// behindFor is how long a member is passed over that was too far behind.
const behindFor = 5 * time.Second

// errnoBehind is the number of a read that a member could not serve in time. Sessions that read
// lock no rows, for which it stands otherwise.
const errnoBehind = 1205

// reader returns a session that reads, at the member whose turn it is. It counts as a read under way there
// until it is given back (put), or ends.
func (db *DB) reader(ctx context.Context) (*session, error) {
	var tried []*node
	var last error
	for {
		n, err := db.place(tried)
		if err != nil {
			return nil, err
		}
		if n == nil {
			return nil, last
		}
		s := db.idle(&db.readers, n)
		if s == nil {
			s, err = n.newSession(ctx, true)
		}
		if err == nil {
			s.reading(true)
			n.reads.Add(-1) // the session has its own
			return s, nil
		}
		n.reads.Add(-1)
		n.refuses(err)
		if last = elsewhere(err); retryable(last) == Never {
			return nil, last
		}
		tried = append(tried, n)
	}
}

// place chooses a node for a read and counts one there; nil: all were tried. Addresses of the options that
// are no member's may be those of members by another name, or of what balances among them: they
// are for when no member answers.
func (db *DB) place(tried []*node) (best *node, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.turn++
	now := time.Now()
	var least rank
	look := func(addr string, alias bool) error {
		n, err := db.nodeAt(addr)
		if err != nil || slices.Contains(tried, n) {
			return err
		}
		if r := n.rank(alias, now); best == nil || r.before(least) {
			best, least = n, r
		}
		return nil
	}
	for i := range db.members {
		if err := look(db.members[(db.turn+i)%len(db.members)], false); err != nil {
			return nil, err
		}
	}
	for _, addr := range db.known {
		if !slices.Contains(db.members, addr) {
			if err := look(addr, true); err != nil {
				return nil, err
			}
		}
	}
	if best != nil {
		best.reads.Add(1)
	}
	return best, nil
}

// rank says how good a node is for a read: less is better.
type rank struct {
	away  int // how unlikely it is that it serves the read at once
	alias bool
	reads int64
}

func (r rank) before(o rank) bool {
	switch {
	case r.away != o.away:
		return r.away < o.away
	case r.alias != o.alias:
		return o.alias
	}
	return r.reads < o.reads
}

// rank ranks the node. One without a connection is as good as one that has it: it would never get one else.
func (n *node) rank(alias bool, now time.Time) rank {
	r := rank{alias: alias, reads: n.reads.Load()}
	switch n.conn.GetState() {
	case connectivity.Connecting:
		r.away = 2
	case connectivity.TransientFailure, connectivity.Shutdown:
		r.away = 3
	case connectivity.Ready, connectivity.Idle:
		if now.UnixNano() < n.behind.Load() {
			r.away = 1
		}
	}
	return r
}

// reading says whether the session counts as a read under way at its node.
func (s *session) reading(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted != yes {
		s.counted = yes
		if yes {
			s.st.n.reads.Add(1)
		} else {
			s.st.n.reads.Add(-1)
		}
	}
}

// refuses notes what the error of a read says of the node: it is too far behind, or serves nobody at present.
func (n *node) refuses(err error) {
	var e *Error
	if errors.As(err, &e) && (e.Number == errnoBehind || e.Retry == Elsewhere) {
		n.behind.Store(time.Now().Add(behindFor).UnixNano())
	}
}

// passOver makes of the error of a read, at a member that is too far behind for it, one after which another member is
// asked, as long as there is one that was not.
func (db *DB) passOver(s *session, err error, times *int) error {
	if !s.readOnly || err == nil {
		return err
	}
	s.st.n.refuses(err)
	var e *Error
	if !errors.As(err, &e) || e.Number != errnoBehind {
		return err
	}
	db.mu.Lock()
	others := len(db.members) - 1
	db.mu.Unlock()
	if *times++; *times > others {
		return err
	}
	clone := *e
	clone.Retry = Elsewhere
	return &clone
}
