package console

// Streams is how many streams there are.
func Streams(c *Console) int { return c.streams.Len() }

// SignIns is how many people are signed in.
func SignIns(c *Console) int {
	c.signIns.mu.Lock()
	defer c.signIns.mu.Unlock()
	return len(c.signIns.all)
}

// Files are the paths of all files.
func Files() (all []string) {
	for name := range pages {
		all = append(all, name)
	}
	return all
}
