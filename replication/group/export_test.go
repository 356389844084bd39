package group

// Between measures the log of a node as its lag is measured.
func (n *Node) Between(applied, committed uint64) (entries uint64, bytes int64) {
	c, err := n.running()
	if err != nil {
		return 0, -1
	}
	return c.between(applied, committed)
}

// Agree makes the node believe that Raft has agreed on entries up to index.
func (n *Node) Agree(index uint64) {
	c, err := n.running()
	if err != nil {
		panic(err)
	}
	c.agreed.Store(index)
}
