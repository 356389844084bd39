// Package kubernetes is what a member of a group knows of the Kubernetes in which it runs: how
// many pods the StatefulSets of the group are to have, and what may be done to those that they
// are not to have any more.
//
// Kubernetes does not tell a pod why it is stopped, and deletes the claims of pods that are
// scaled away without asking whether their members have left the group. So members ask, and
// the leader tidies up: it deletes the claim of a member that is no member any more, and of
// nobody else (decision 0034). A set that is gone is asked for among the others of its group: by what these say it
// is gone for good, or set aside.
//
// Before Helm changes a release, a job prepares its sets: it expands claims, and sets aside a set
// that Helm could not change (decision 0037).
//
// Before there is a group, a pod of its own can have a backup restored into the first member's
// claim (Restore, decision 0036).
//
// A pod proves who it is by the token of its service account. Every call names one object, so that
// the account can be allowed just those: nothing is listed or watched, but the pods of a Job that restores.
package kubernetes
