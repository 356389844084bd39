package txn

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/trx"
)

// Cancel begins [Manager.Shut]: rollbacks of sessions, those under way too, end where the engine's next start takes the rest back
// beside new work (storage.Engine.Leaves). To take back what took ten minutes would last as long, and whoever stops the process
// does not wait. Until then such a transaction has its rows.
//
// REQUIRES: nothing that comes from the group's log is applied any more, and no transaction in doubt is rolled back.
func (m *Manager) Cancel() { m.canceled.Store(true) }

// Shut ends the work of all sessions for good, since the engine is about to be
// closed: their transactions are rolled back, or left to the engine's next start if
// that fails or they are large ([Manager.Cancel]), and every call from now on returns the reason. Shut returns when no
// call is at work on the engine any more; but calls of Commit whose transaction is in
// doubt go on until the commit log answers with an error that wraps
// [ErrOutcomeUnknown].
func (m *Manager) Shut(reason error) {
	m.Cancel()
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

// leaves reports whether a rollback of the transaction is to end where it is: Cancel has come, and the next start takes the rest back beside
// new work. A change of the catalogue is taken back before anything else can begin.
func (t *Txn) leaves() bool { return t.m.canceled.Load() && !t.Schema && t.m.opt.Engine.Leaves(t.Trx) }

// takeBack is Rollback. left says that the rest is the next start's.
func (t *Txn) takeBack() (left bool, err error) {
	if t.Trx.State() == trx.RolledBack {
		return false, nil
	}
	if t.leaves() {
		return true, nil
	}
	if t.Trx.State() != trx.RollingBack {
		t.Trx.StartRollback()
	}
	if left, err := t.Worker.RollbackUnless(0, t.leaves); left || err != nil {
		return left, err
	}
	return false, t.Rollback()
}

// leaveBehind leaves the session's transaction to the engine's next start: it keeps its rows and its locks. REQUIRES: turn.
func (s *Session) leaveBehind() {
	t := s.t
	t.endTemporary(false)
	s.set(nil)
	t.closeTables()
	t.rows.Discard()
	t.events.Reset()
	s.m.discard(t.events)
}
