package node

import "time"

// SetJoinPatience changes how long a pod waits until it tells that it is no member yet, and returns what changes it back.
func SetJoinPatience(d time.Duration) (back func()) {
	was := joinPatience
	joinPatience = d
	return func() { joinPatience = was }
}

// Break stops the node as an error of its disk does.
func (n *Node) Break(err error) { n.group.Fail(err) }
