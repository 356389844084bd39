// Package kubernetes runs the Helm chart on a Kubernetes: a real one, of this machine, whose
// nodes are namespaces of the kernel. While programs transfer money through the chart's
// Service the group is upgraded, loses pods, processes, nodes and volumes, and grows and
// shrinks; after each of these nothing acknowledged may be missing, and all members have to
// hold the same.
//
// `make e2e-kubernetes` builds what it takes (tools/kubernetes) and runs it; it needs Linux,
// root, and Debian's containerd, runc, containernetworking-plugins and iptables. Everything
// runs in namespaces of its own and writes to one directory: nothing is left.
//
// # Not whole
//
// `make e2e-kubernetes-notwhole COMBINATIONS=20 FIRST_COMBINATION=100` does to such a group what
// else happens to groups (combined: it is scaled, upgraded, rolled back, drained, backed up, loses
// its leader, a claim, a node) while one member is not whole (faults: it cannot be placed, stands
// still, has no processor or no room, does not hear the others or is not heard, was emptied). A
// seed says what happens, which member is not whole, how, from when on and for how long; seeds that
// follow each other go through every pair. A combination takes about half a minute.
//
// While it lasts the group is watched from outside, and afterwards looked through. Wrong is
//
//   - a transfer that was acknowledged and is lost, one that failed, or members that differ;
//   - a stop of writes for longer than stopMax while a majority of the voters was there and nothing
//     was done to them that keeps them from voting;
//   - a claim that is deleted while its member has not left the group;
//   - a pod in CrashLoopBackOff that was not given what cannot start;
//   - a member left over that its set has no place for, leftMax after the others could take it out;
//   - a group that is not whole by itself within healMax after the fault and the operation are over: all
//     members ready and voting, pods of the set's revision, a claim for each member and no other;
//   - an operation that is refused while nothing is wrong, or fails. One that the check before upgrades
//     refuses because of the fault has to succeed once that is over.
//
// Each combination tells on one line what it was, for how long nothing was written, and how long the
// group took. One that fails leaves its logs in -e2e.failures and says how it is repeated alone; the
// next one has a new group.
package kubernetes
