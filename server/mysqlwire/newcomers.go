package mysqlwire

import (
	"container/list"
	"time"
)

const (
	// maxNewcomers is how many connections may be on their way in at a time.
	maxNewcomers = 512
	// maxFrom is how many of them may come from one address, so that who knocks there
	// without end does not keep out all others.
	maxFrom = maxNewcomers * 3 / 4
	// newcomerTime is how long a newcomer that has said something has its place for sure.
	newcomerTime = time.Second
)

// newcomers are the connections that are not authenticated, guarded by Server.mu. When they have all places the one that
// has kept silent for longest makes room, or if none has, the one that has been there for longest: who opens connections without
// a word, or speaks slowly, does not keep out those that behind the same address (of a proxy, of a network's gateway) do log in.
type newcomers struct {
	silent, spoken list.List      // of *conn, in the order in which they have come, or have said their first word
	from           map[string]int // how many, by their address
}

func (n *newcomers) len() int { return n.silent.Len() + n.spoken.Len() }

// room makes room for one more from an address. gone, if any, has made it and is to be closed.
func (n *newcomers) room(address string, now time.Time) (gone *conn, ok bool) {
	switch {
	case n.from[address] >= maxFrom:
		gone = n.oldest(now, func(c *conn) bool { return c.address == address })
	case n.len() >= maxNewcomers:
		most, greatest := "", 0
		for from, count := range n.from {
			if count > greatest {
				most, greatest = from, count
			}
		}
		gone = n.oldest(now, func(c *conn) bool { return c.address == most })
		if gone == nil {
			gone = n.oldest(now, func(*conn) bool { return true })
		}
	default:
		return nil, true
	}
	if gone == nil {
		return nil, false
	}
	n.remove(gone)
	return gone, true
}

// oldest is who of some is to make room.
func (n *newcomers) oldest(now time.Time, of func(*conn) bool) *conn {
	for e := n.silent.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*conn); of(c) {
			return c
		}
	}
	for e := n.spoken.Front(); e != nil; e = e.Next() {
		c := e.Value.(*conn)
		if now.Sub(c.accepted) < newcomerTime {
			continue
		}
		if of(c) {
			return c
		}
	}
	return nil
}

func (n *newcomers) add(c *conn) {
	if n.from == nil {
		n.from = map[string]int{}
	}
	c.coming = n.silent.PushBack(c)
	n.from[c.address]++
}

// speaks notes that a newcomer has said something.
func (n *newcomers) speaks(c *conn) {
	if c.coming != nil {
		n.silent.Remove(c.coming)
		c.coming = n.spoken.PushBack(c)
	}
}

// remove takes out who has come in, is gone, or makes room; it may be out already.
func (n *newcomers) remove(c *conn) {
	if c.coming == nil {
		return
	}
	n.silent.Remove(c.coming) // of the list that it is in
	n.spoken.Remove(c.coming)
	c.coming = nil
	if n.from[c.address]--; n.from[c.address] <= 0 {
		delete(n.from, c.address)
	}
}
