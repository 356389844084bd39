package trx

// VisibleBelow is the id below which every transaction is visible to every
// snapshot.
func (s *System) VisibleBelow() uint64 { return s.visibleBelow.Load() }
