package trx

// SetCommitChunk makes groups go in small pieces.
func (s *System) SetCommitChunk(n int) { s.chunk = n }

// DecodeSystemPage is what Open does with the system page's bytes.
func DecodeSystemPage(p []byte) error { _, err := decodeSystemPage(p); return err }

// LiveChunks is the number of chunks of the table of ids.
func (s *System) LiveChunks() int { s.ids.mu.Lock(); defer s.ids.mu.Unlock(); return len(s.ids.live) }

// PastCounters is for how many marks a transaction keeps a table's past counters.
func (u *TableUse) PastCounters() int { return len(u.past) }
