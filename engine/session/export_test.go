package session

import (
	"context"
	"unsafe"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// TreeAfterPlanning plans a statement twice from the same tree, if it is one that is planned
// and known tables suffice, and returns the tree; else nil.
func TreeAfterPlanning(s *Session, text string) (ast.Statement, error) {
	const dates = ast.ModeNoZeroDate | ast.ModeNoZeroInDate | ast.ModeAllowInvalidDates
	statements, err := ast.Parse(text, s.mode)
	if err != nil || len(statements) != 1 || s.mode&^dates != 0 || s.trx.active {
		return nil, nil
	}
	st := statements[0]
	switch st.(type) {
	case *ast.Select, *ast.SetOp, *ast.Values, *ast.Insert, *ast.Update, *ast.Delete:
	default:
		return nil, nil
	}
	s.enter("Prepare", text)
	defer s.leave()
	s.beginStatement(context.Background(), nil)
	for range 2 {
		c, failed := s.compile(st, make([]*types.Type, st.Params()))
		if err = s.finishWork(context.Background(), c, &Outcome{}, failed); err != nil {
			break
		}
	}
	return st, nil
}

// PanicInStatement makes the session's statements panic between batches of rows: where they
// are evaluated, or, with below, in a call of the storage engine. It is not inlined, so that what
// panics is this package's.
//
//go:noinline
func PanicInStatement(s *Session, below bool) {
	s.x.Interrupted = func() error {
		if !below {
			panicDeeply(2000)
		}
		stats := s.eng.Stats()
		stats.Each(func(string, int64) { panic("a bug below") })
		return nil
	}
}

// panicDeeply panics as what is nested deeply does.
func panicDeeply(n int) int {
	if n == 0 {
		panic("a bug")
	}
	return panicDeeply(n-1) + 1
}

// RefusedPlans is how many texts the plan cache knows as such that are not run by it.
func RefusedPlans(m *Manager) (n int) {
	m.plans.mu.RLock()
	defer m.plans.mu.RUnlock()
	for _, e := range m.plans.byKey {
		if e.plan == nil {
			n++
		}
	}
	return n
}

// HideSecrets is what the process list shows of a text.
var HideSecrets = hideSecrets

// KeptOfText is what the session keeps of the text and the values of the statement that has ended.
func KeptOfText(s *Session) (text string, values int) {
	for p := s.prepared; p != nil; p = p.next {
		for _, v := range p.values {
			values += len(v.Bytes())
		}
	}
	for _, v := range s.x.Params {
		values += len(v.Bytes())
	}
	return s.meter.text, values
}

// DigestPartSize is how many bytes the counts of a digest take that sessions add to at once.
const DigestPartSize = unsafe.Sizeof(digestPart{})
