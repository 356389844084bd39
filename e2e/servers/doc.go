// Package servers starts databases as processes of this machine, for tests and
// measurements: a group of servers of this repository (Group, Node), a MariaDB or a Galera
// cluster beside it, and any other program (Process). It waits until they answer, keeps
// what they say, and ends them.
//
//	g := servers.Test(t, servers.Options{Nodes: 3})
//	db := servers.Open(t, g.Nodes[0].DSN("", nil))
//
// Test and what else takes a testing.TB ends the servers with the test and shows their
// last words if it failed. New, StartMariaDB and StartProcess return errors instead and
// leave the end to their caller. No process outlives the one that started it.
package servers
