package trx

// OpenOldest opens v at the horizon: no snapshot is open below it or can be opened
// there, as of the past either, and undo of everything younger stays while v is open.
func (s *System) OpenOldest(v *View) {
	s.horizonMu.Lock()
	defer s.horizonMu.Unlock()
	p := s.partOf(v)
	p.mu.Lock()
	v.CSN = s.horizon
	p.open(v, &p.views)
	p.mu.Unlock()
}
