// Package simgroup runs whole groups in a simulation: real engines, logs and Raft on
// simulated disks, network and clocks, one task at a time in an order drawn from a
// seed, under a random load and random faults. After each run it checks what users
// rely on:
//
//   - every acknowledged transaction is in the log once, with the number that was
//     acknowledged; none that was refused is;
//   - a strong read saw everything that was acknowledged before it began;
//   - the sum of all balances is the same in every snapshot on every member;
//   - state hashes and closed files of the log are equal on all members;
//   - transactions in the logs have the trace contexts that the clients gave them, once all
//     members know the format of the log that has them, and none before.
//
// A run is a function of its seed: make simulate SEEDS=1 FIRST_SEED=n repeats run n.
package simgroup
