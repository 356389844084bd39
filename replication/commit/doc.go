// Package commit is the commit pipeline: it takes transactions that are ready,
// orders and numbers them, computes what each depends on, packs them into an entry
// of the group's log, proposes it, and finishes them in the order of the log.
//
//	sessions --queue--> propose --Raft--> in doubt --committed entry--> finish
//	                       |                                  |
//	                       +-- locks released here            +-- sessions woken here
//
// # Order and numbers
//
// One at a time proposes: a task, or the session that finds nobody at it. It does so in
// a term that the group has given (Pipeline.Lead) together with the last number of the
// log. A proposal is accepted or refused on the spot, in the step of Raft in which it is
// appended; the next one is made after the answer. So numbers follow the log, and a
// refused proposal uses up none.
//
// # Groups
//
// While Options.Outstanding entries are on their way (more while transactions contend
// for row locks), transactions gather in the queue; then one entry takes them all.
// Without load a transaction is an entry by itself at once: nobody waits for company.
//
// A transaction whose events have outgrown binlog_large_commit_threshold comes with a body, a
// file that a majority has on disk before the transaction is queued ([Bodies]). Its entry says
// which body it is, and is an entry by itself.
//
// # Early lock release
//
// A transaction's locks are released once Raft has accepted its entry. What happens
// on rows so released is behind it in the log; see DESIGN.md for the proof and for
// what happens when the entry fails.
//
// # Invariants
//
//   - A session hears "committed" only after the group has committed the entry and
//     the engine the transaction, in the order of the log.
//   - Proposals in doubt are kept in the order of the log; they are finished from
//     the oldest on, or all rolled back, newest first.
//   - A transaction depends on the newest earlier one that changed one of its keys,
//     or on the floor if that is not known any more.
package commit
