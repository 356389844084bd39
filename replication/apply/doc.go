// Package apply brings the entries of the group's log into the engine of a member
// that did not make them: several transactions at a time, committed in their order.
//
//	a, err := apply.New(apply.Options{Env: env, Engine: eng})
//	for each committed entry, in order:
//	        err = a.Submit(apply.Entry{Index: i, Term: t, Data: data})
//	err = a.WaitApplied(i)
//	err = a.Stop()
//
// # Invariants
//
//   - A transaction begins when every transaction that it depends on is committed.
//
//   - Transactions are committed in the order of their numbers, and an entry's position
//     together with the last of its transactions. So what is in the engine is always a
//     prefix of the log, and after a restart the entries behind the engine's applied
//     position are submitted again; transactions that are there already are left out.
//
//   - The oldest transaction that is not committed never waits for a younger one.
//
//   - Nothing is skipped: what cannot be written for want of room is tried again until
//     it can, and what does not fit the data stops the applier for good
//     ([DivergedError]).
//
//   - An index that the log has added is filled by a task beside the workers, and only while
//     no change of its table's definition is made; Drain ends that too. Whoever publishes an
//     index completes it first.
//
//   - Work ahead (Ahead), a large transaction applied before its commit, changes nothing that
//     anybody sees, is rolled back wherever it is in the way of the log, and is kept only if
//     it is what the entry says.
//
// Row changes take no locks and check no constraints: the leader has. Changes of the
// catalogue run alone.
package apply
