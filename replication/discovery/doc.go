// Package discovery answers two questions: who founds a group, and where its
// members are.
//
// [Discovery] is where a node learns of others: [Static], a list; [DNS], names of a
// headless service; [Etcd], a registry. What it says is a hint, never proof: which
// nodes may found a group is decided by [Decide] from what the nodes themselves
// answer, and [Bootstrap] runs that decision.
//
// Invariant: two groups cannot come out of one plan, and a node that lost its disk
// never comes back under the id that it had. DESIGN.md says why.
package discovery
