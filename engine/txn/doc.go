// Package txn is how a SQL session runs transactions whose changes are logged: each
// change goes to the storage engine and, as events, to the transaction's binlog
// cache, and the commit goes to a [CommitLog], which makes it durable in the group
// before the engine commits it.
//
//	m := txn.NewManager(txn.Options{Engine: eng, Env: env, FS: fs, Log: log})
//	s := m.NewSession()
//	err := s.Begin(txn.BeginOptions{})
//	t, err := s.Open("shop", "orders")
//	err = s.Insert(t, row)
//	number, err := s.Commit(ctx)
//	s.Close()
//
// # Invariants
//
//   - The events of a transaction are what it has changed in the engine, no more and
//     no less: a change whose events cannot be kept is taken back, and a rollback to a
//     savepoint cuts engine, events and write set to the same point.
//   - What is logged follows from bytes: an update that leaves every byte as it was is
//     none, and what differs in bytes alone (a letter's case) is one.
//   - Two transactions of which one wrote a key that the other wrote too have a hash
//     in common in their write sets. Keys that a collation calls equal have one hash.
//   - While a transaction uses a table nobody changes its definition, and while one
//     changes a definition nobody else uses the table (metadata locks).
//   - A [Txn] belongs to its session, but between the call of CommitLog.Commit and its
//     end to the commit log.
//
// # What it does not do
//
// It checks no foreign keys, defaults or privileges, fires no triggers and knows no
// statements: that is the SQL session's, which also decides when an answer to a
// client has to wait for what it depends on ([Session.Settle]).
package txn
