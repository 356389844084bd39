// Package trx is the transaction system of an engine: transaction ids, commit
// sequence numbers, snapshots, savepoints, and the commit itself.
//
// # Time
//
// A transaction's commit sequence number (CSN) is its number in the group's log.
// A snapshot is one integer, the last committed CSN when it was taken: a row
// version is visible iff its CSN is at most that, or it is the reader's own. Rows
// carry transaction ids, which are this node's own; a table maps an id to its CSN
// until every snapshot that can still be opened sees it. Undo keeps the CSN, and
// the table is rebuilt from it at start, so that snapshot N is the same database
// before and after a restart and on every node.
//
// # Invariants
//
//   - last committed CSN == applied CSN on the system page: both, the marks in the
//     undo logs and the log position belong to one mini-transaction ([System.CommitGroup]).
//   - horizon <= every open snapshot <= last committed. Nothing older than the
//     horizon can be opened; ids at or below it are forgotten; purge stays at or
//     below it.
//   - The purge floor on the system page is in the redo log before purge removes
//     anything that a snapshot below it needs.
//   - visibleBelow: every id below is committed at or below the horizon, or left
//     no trace. It never falls.
//   - Who has locked a row version of a transaction in doubt depends on its entry in
//     the log; entries fail only together with all after them, newest first.
//   - A transaction id is used only below the durable limit, which is raised ahead.
//
// # Life of a transaction
//
//	t := s.Begin(Options{...})
//	sn := t.Snapshot()                    // consistent read
//	log, err := t.Log()                   // before each change, no latch held
//	err = log.Prepare(size)
//	m.Begin() ... log.Append ... change ... m.Commit()
//	t.StartCommit(); the group has it in its log;  s.ReleaseLocks(t, position)
//	the group agrees;  s.CommitGroup(items, position)
//	s.End(t)
//
// or t.StartRollback(), undo everything, t.FinishRollback(), s.End(t).
//
//	active --> committing --> [in doubt] --> committed --> (ended)
//	   |            |              |
//	   +------------+--------------+-> rolling back --> rolled back --> (ended)
//
// The package changes no rows: rollback and purge are driven from above.
package trx
