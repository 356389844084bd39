// Package clients tests that existing clients work against a server: drivers and ORMs of
// Go, Python, Node and Java, MariaDB's command line and dump, sysbench. Its tests have
// the build tag clients; `make test-clients` installs what they need and runs them. What
// is missing fails: nothing is skipped.
package clients
