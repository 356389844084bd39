package session

import (
	"context"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// runExplain is EXPLAIN.
func (s *Session) runExplain(ctx context.Context, st *ast.Explain) (Outcome, error) {
	return Outcome{}, notSupported("EXPLAIN")
}
