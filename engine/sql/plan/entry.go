package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// Select plans a query.
func Select(env *Env, q ast.Query) (*Query, error) {
	return nil, types.NewError(1235, "This version of Trireme doesn't yet support '%s'", "queries")
}

// ModifyRows plans the finding of the rows that an UPDATE or DELETE (*ast.Update,
// *ast.Delete) changes, under X locks, and binds the assignments.
func ModifyRows(env *Env, stmt ast.Statement) (*Change, error) {
	return nil, types.NewError(1235, "This version of Trireme doesn't yet support '%s'", "UPDATE and DELETE")
}

// Switches are the rewrites and methods that may be used, as optimizer_switch has them.
type Switches uint32

// DefaultSwitches has everything on.
const DefaultSwitches = ^Switches(0)
