// Package simgroup runs whole groups in a simulation: real engines, logs and Raft on
// simulated disks, network and clocks, one task at a time in an order drawn from a
// seed, under a random load and random faults. After each run it checks what users
// rely on:
//
//   - every acknowledged operation is in each member's tables once, with its contents and its
//     effects, and in each log, as far back as that goes, with the number that was acknowledged;
//     none that was refused is, and one whose outcome is not known is there whole or not at all;
//   - numbers rise in the order in which clients were answered, and no two are told the same;
//   - a strong read sees everything that was acknowledged, and that another strong read has seen,
//     before it began: values, not numbers alone. Lists are judged as package history does it,
//     registers by the numbers of the writes, and every snapshot has exactly what was committed up to its number;
//   - what a client is told of others' rows (a row that it locked and only read, a key that is
//     taken) is committed;
//   - the sum of all balances is the same in every snapshot on every member, and no child lacks its parent;
//   - definitions of tables are those that were acknowledged last;
//   - state hashes and closed files of the log are equal on all members;
//   - transactions in the logs have the trace contexts that the clients gave them, once all
//     members know the format of the log that has them, and none before.
//
// A run is a function of its seed: make simulate SEEDS=1 FIRST_SEED=n repeats run n.
package simgroup
