package txn

import "fmt"

// Shut ends the work of all sessions for good, since the engine is about to be
// closed: their transactions are rolled back, or left to the engine's next start if
// that fails, and every call from now on returns the reason. Shut returns when no
// call is at work on the engine any more; but calls of Commit whose transaction is in
// doubt go on until the commit log answers with an error that wraps
// [ErrOutcomeUnknown].
func (m *Manager) Shut(reason error) {
	m.suspendTurn.Lock()
	defer m.suspendTurn.Unlock()
	m.suspended.Store(&reason)
	m.shut.Store(&reason)
	m.mu.Lock()
	sessions := append([]*Session(nil), m.sessions...)
	m.mu.Unlock()
	for _, s := range sessions {
		s.Interrupt()
	}
	for i := len(sessions) - 1; i >= 0; i-- {
		sessions[i].shut(reason)
	}
}

// Down is the reason of Shut, or nil.
func (m *Manager) Down() error {
	if p := m.shut.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Session) shut(reason error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for s.t != nil && s.t.state.Load() != atSession {
		t := s.t
		if t.state.Load() == inDoubt {
			return
		}
		s.turn.Unlock()
		s.m.await(func() bool { return t.state.Load() != committing })
		s.turn.Lock()
	}
	if s.t == nil {
		return
	}
	s.lost = reason
	if err := s.undo(); err != nil {
		s.lost = fmt.Errorf("%w (and its transaction could not be rolled back here: %w)", reason, err)
		s.set(nil)
	}
}
