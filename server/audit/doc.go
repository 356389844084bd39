// Package audit is a node's audit log: who came in and who was refused, what operators changed, and the statements
// that audit_log_events asks for, by all doors, as lines of JSON.
//
//	l, err := audit.Open(audit.Options{File: "audit.log", Log: log})
//	l.Login(audit.Login{User: "app", Address: "10.0.0.7:51234", Door: "mysql"})
//
// Invariants:
//
//   - Nobody waits for the disk of the log, but sessions with a statement where Options.Waits asks for it. Lines wait in a buffer of a fixed size, also for a
//     disk that fails to have room again; what finds no room there is dropped and counted, and the log says how many lines it lacks.
//   - Who only knocks pushes out nobody's lines: refusals have a bounded number of lines, of a bounded length.
//   - A line is in the file whole, or not at all: what a full disk has cut off is taken back.
//   - No password and no value of a statement is in a line.
//   - Files are renamed when they have their size, and as many are kept as Options.Files says: the log takes a bounded amount of disk.
//     A file that somebody else has moved is left alone, and a new one begun.
//
// Lines are written soon, and not synced: a loss of power may take the last ones.
package audit
