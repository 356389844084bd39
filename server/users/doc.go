// Package users keeps accounts of the database as files say: for passwords that somebody else
// gives out, as the secrets of Kubernetes.
//
//	<dir>/<entry>/account.json   {"user": "app", "host": "%", "grants": ["SELECT, INSERT ON shop.*"]}
//	<dir>/<entry>/password       its first line
//
//	k := users.New(options)
//	k.Run(ctx)                   // until ctx ends; does what is to be done while Options.Leads
//
// # Invariants
//
//   - An account that is not there is made. One that is there and was not made by this package is
//     never changed: those that were say so in their attributes, which are rows of mysql.user as
//     all else of an account, so that every leader knows, also one of a restored group.
//   - No account is dropped, and no privilege is taken that was not given by an entry.
//   - An entry that is wrong is told of, by its file, and stops no other one.
//   - What is as it should be is not written again.
//   - A password that the policy of passwords does not take is not set, but root's, of which the log has a warning.
//   - Passwords do not leave this package but as hashes, and hashes only in statements.
package users
