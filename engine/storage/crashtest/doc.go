// Package crashtest stops a storage engine under load at a random call of the file
// system, recovers it from what a crash may leave on disk, and compares the result
// with a model.
//
// One seed is one run: a simulated scheduler, clock and disk; several tasks that
// run multi-row transactions; a crash at a call drawn from the seed; recovery from
// an image in which unsynced writes were kept, lost, torn or reordered, or, after a kill,
// from all that was written, though it still is not durable; checks;
// what was lost applied again, now and then, as from a log; and then the same again
// on the recovered engine. Most runs release locks before the commit is finished, so
// that a crash finds transactions in doubt on top of each other. The checks:
//
//   - The applied CSN is at least that of the last transaction known to be durable.
//   - Every index of every table holds exactly the rows that the model has at the
//     applied CSN: nothing less, nothing more.
//   - Purge runs to the end, every structure is sound, and the engine goes on.
//
// Run it with
//
//	go test ./engine/storage/crashtest -run TestCrash -args -crash.n=1000 -crash.seed=1
//
// A failure prints its seed and the command that repeats it.
package crashtest
