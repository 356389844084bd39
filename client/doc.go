// Package client speaks to a group of Trireme nodes over gRPC.
//
//	db, err := client.Open(ctx, client.Options{Addrs: []string{"10.0.0.1:17000", "10.0.0.2:17000"}, User: "app", Password: "…", TLS: cfg})
//	_, err = db.Exec(ctx, "INSERT INTO orders (id, note) VALUES (?, ?)", 7, "seven")
//	rows, err := db.Query(ctx, "SELECT id, note FROM orders WHERE id < ?", 10)
//	for rows.Next() { err = rows.Scan(&id, &note) }
//
// A DB finds the leader by itself and follows it. Writes in autocommit, and transactions run by
// RunTx, carry a commit token: when an answer is lost they are sent again, to whoever leads by
// then, and are committed once. Reads that may miss a little go to any node, each to another one (DB.Reader).
//
// Sessions are kept open and share a few streams; TIMESTAMP values and NOW() are in
// Options.Location. The driver for database/sql is registered as "trireme".
//
// Calls have spans of OpenTelemetry's (Options.TracerProvider), of which those of the server are part.
//
// # Invariants
//
//   - What returned without an error is committed by a majority of the group.
//   - No statement is sent twice without a token, unless the first one is known to have had
//     no effect.
//   - An error of the server is an *Error with MySQL's number.
package client
