package trx

// OpenOldest opens v at the oldest CSN that any open snapshot has: undo of
// everything younger stays while v is open.
func (s *System) OpenOldest(v *View) {
	s.snapMu.Lock()
	v.CSN = s.oldestLocked()
	s.linkView(v, &s.views)
	s.snapMu.Unlock()
}
