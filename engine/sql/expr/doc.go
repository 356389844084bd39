// Package expr holds bound SQL expressions: typed trees that are evaluated over
// column batches or for one row, the binder that makes them of a statement's
// syntax, the registry of functions, and the aggregates.
//
// Invariants:
//
//   - A [Node] is immutable once bound and may be used by many tasks at once: plans
//     are cached and shared. Everything that changes lives in a [Context], which
//     belongs to one statement of one session.
//   - Vector and Value of a node agree: for every row they give the same value, and
//     raise the same error unless rows before it raise another.
//   - A node's values are NULL or of the class of its type. A type that is NotNull
//     gives no NULL.
//   - Truth values are BIGINT 1, 0 and NULL, as in MySQL.
//   - Warnings and errors are raised when an expression runs, each time it runs:
//     binding folds what is constant only if that raises neither.
//
// Use: a planner implements [Scope] and calls [Bind] for each expression of a
// statement; operators call [Filter] for predicates and Node.Vector for columns, or
// Node.Value where a batch is not worth it. Results of Value live in the Context's
// scratch memory until [Context.Release].
//
// Functions are entries of a table, see [Func] and [Register]; operators and what
// must not evaluate all of its arguments are node types of their own.
//
// The package knows nothing of tables, plans and sessions: what it needs of a
// session comes through [SessionInfo].
package expr
