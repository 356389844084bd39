package group

// Between measures the log of a node as its lag is measured.
func (n *Node) Between(applied, committed uint64) (entries uint64, bytes int64) {
	c, err := n.running()
	if err != nil {
		return 0, -1
	}
	return c.between(applied, committed)
}
