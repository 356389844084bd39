package node

// Break stops the node as an error of its disk does.
func (n *Node) Break(err error) { n.group.Fail(err) }
