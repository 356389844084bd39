package trx

// OpenOldest opens v at the horizon: no snapshot is open below it or can be opened
// there, as of the past either, and undo of everything younger stays while v is open.
func (s *System) OpenOldest(v *View) {
	s.snapMu.Lock()
	v.CSN = s.horizon
	s.linkView(v, &s.views)
	s.snapMu.Unlock()
}
