// Package plan turns a query's syntax tree into a tree of physical operators: it
// resolves names, rewrites, chooses access paths, join order and join methods by
// cost, and prints what it chose (EXPLAIN).
//
//	q, err := plan.Select(env, statement)   // SELECT, VALUES, set operations
//	m, err := plan.Modify(env, statement)   // the rows that UPDATE or DELETE changes
//
// # Rows
//
// An operator gives batches whose columns are those of Node.Columns. Expressions of an
// operator read its input's columns by position (expr.Column); those of a join read the
// left side's columns followed by the right side's. What belongs to a row of an
// enclosing query is read from a numbered slot instead ([Outer]); the operator or
// expression that runs the inner plan fills the slots before each run ([Binding]).
//
// # Invariants
//
//   - A plan is immutable and holds nothing of a session: it may be cached, shared and
//     run by many at a time. What differs from run to run are parameters, slots and the
//     statement's time, all of them in expr.Context.
//   - The bounds of a range are a superset of the rows that the predicate wants. A
//     predicate is dropped from the filter only where the bounds are exact for every
//     value that the bound may take.
//   - Every rewrite can be switched off (Switches), and the rows stay the same.
//   - The same statement, catalogue and statistics give the same plan.
//
// # What it does not do
//
// It opens no tables, takes no locks and checks no privileges: Query.Uses lists what the
// statement touches, for the session to check. It evaluates nothing that depends on the
// session: constants are folded only where expr says that they are pure.
package plan
