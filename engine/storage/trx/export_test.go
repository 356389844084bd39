package trx

// SetCommitChunk makes groups go in small pieces.
func (s *System) SetCommitChunk(n int) { s.chunk = n }

// DecodeSystemPage is what Open does with the system page's bytes.
func DecodeSystemPage(p []byte) error { _, err := decodeSystemPage(p); return err }

// LiveChunks is the number of chunks of the table of ids.
func (s *System) LiveChunks() int { s.ids.mu.Lock(); defer s.ids.mu.Unlock(); return len(s.ids.live) }
