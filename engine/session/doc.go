// Package session is what a client talks to: it takes statements as text or prepared,
// plans and runs them in the client's transaction, and gives results to a
// [ResultWriter].
package session
