// Package auth decides who a client is: it finds the account, checks the proof of
// its password against what the account stores, slows down who guesses, and keeps the
// keys and certificates of the doors. A certificate of the client comes in addition to the password: it
// opens nothing by itself.
//
//	a, err := auth.New(auth.Options{Source: accounts})
//	acct, known, err := a.Find("app", "10.0.0.7", "10.0.0.7")
//	ok := a.CheckFast(&acct, nonce, answer) || a.CheckPassword(ctx, &acct, password)
//
// # Invariants
//
//   - A client that names an unknown user goes through the same steps as one that names a
//     known one, and takes as long.
//   - A cached digest counts only for the very stored hash that it was checked against:
//     a changed password, a dropped and made account need no invalidation.
//   - A second password opens an account as the first one does, until it is discarded.
//   - Only an answer that was looked at to the end counts as a wrong password (FAILED_LOGIN_ATTEMPTS).
//   - Memory is bounded: of cached digests, and of failures remembered.
//
// It knows no packets: server/mysqlwire carries the methods' messages.
package auth
