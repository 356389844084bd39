// Package oracle compares what statements give here with what they give in MariaDB:
// random tables, random queries over them, the same rows. Where the two databases
// differ by design the generator stays away, and generate.go says why.
package oracle
