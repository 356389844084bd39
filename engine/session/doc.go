// Package session is what a client talks to: it takes statements as text or prepared,
// plans and runs them in the client's transaction, and gives results to a
// [ResultWriter].
//
//	m, err := session.NewManager(session.Options{Env: env, FS: fs, Backend: node})
//	s, err := m.Open(session.ConnectionInfo{User: "app", Host: "10.0.0.7", Schema: "shop"})
//	err = s.Query(ctx, "SELECT * FROM orders WHERE id = 7", w)
//	p, err := s.Prepare(ctx, "UPDATE orders SET paid = 1 WHERE id = ?")
//	err = s.ExecutePrepared(ctx, p, args, w)
//	err = s.Close()
//
// # Invariants
//
//   - A statement that fails leaves nothing behind but its locks; one that ends the
//     transaction (a deadlock, a lost leadership) leaves nothing of that either.
//   - Nothing that depends on a row whose locks were released early is told to a client
//     before that row's entry is committed (txn.Session.Settle): Done is called after it,
//     and an error that tells of such a row is returned after it.
//   - A session belongs to one task at a time, but for Interrupt and what the process
//     list shows, which any task may use.
//   - Cached plans hold no state of a session and are used by many at a time.
//
// # Errors
//
// Every error of a statement is a *sqlerr.Error with MySQL's number and SQLSTATE, but
// those of the ResultWriter, which are passed on as they are. What a client sees when a
// node stops leading stands in errors.go.
package session
