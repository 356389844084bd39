package expr

import (
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// testSession is a session of little state.
type testSession struct{ r *rig }

func (s testSession) ConnectionID() uint64   { return 42 }
func (s testSession) User() string           { return "app@localhost" }
func (s testSession) CurrentUser() string    { return "app@%" }
func (s testSession) Strength(string) int64  { return 0 }
func (s testSession) CurrentRole() string    { return "NONE" }
func (s testSession) Schema() string         { return "test" }
func (s testSession) Version() string        { return "8.0.36-trireme-test" }
func (s testSession) LastInsertID() uint64   { return 7 }
func (s testSession) SetLastInsertID(uint64) {}
func (s testSession) RowCount() int64        { return -1 }
func (s testSession) FoundRows() uint64      { return 3 }

func (s testSession) StatementDigest(text string, _ bool) (string, error) { return text, nil }

func (s testSession) ThreadID(n uint64) (uint64, bool) { return n, n == 7 }

func (s testSession) LoadFile(string) ([]byte, error) { return nil, nil }

func (s testSession) SystemVariable(string, bool) (types.Value, *types.Type, error) {
	return types.NewInt(4), &types.Type{Kind: types.KindBigInt}, nil
}

func (s testSession) UserVariable(name string) (types.Value, *types.Type) {
	v := s.r.vars[name]
	return v.v, v.t
}

func (s testSession) SetUserVariable(name string, v types.Value, t *types.Type) error {
	s.r.vars[name] = typedValue{v.Clone(), t}
	return nil
}

func (s testSession) GetLock(string, time.Duration) (int64, error)      { return 1, nil }
func (s testSession) ReleaseLock(string) (bool, bool, error)            { return true, true, nil }
func (s testSession) ReleaseAllLocks() (int64, error)                   { return 0, nil }
func (s testSession) LockHolder(string) (uint64, bool, error)           { return 0, false, nil }
func (s testSession) Sleep(time.Duration) (bool, error)                 { return false, nil }
func (s testSession) WaitForGTIDs(string, time.Duration) (int64, error) { return 0, nil }

func (r *rig) SystemVariable(v *ast.Variable) (Node, error) {
	return NewSystemVariable(v.Name, false, &types.Type{Kind: types.KindBigInt}), nil
}
