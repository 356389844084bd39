// Package backup keeps copies of a group's database in directories, and makes a new group
// of one.
//
//	w, err := backup.Create(dir)          // as the member sends it, see group.Node.Backup
//	err = w.Begin(name); _, err = w.Write(bytes); err = w.End(sum)   // each file
//	err = w.Finish(info)
//
//	b, err := backup.Open(dir)
//	err = b.Verify(nil)
//	last, err := b.Restore(options)
//
// # The directory
//
//	backup.json            what it is, and its files with their lengths and SHA-256
//	snapshot, catalogue,   a dump of a snapshot, see package provision
//	state, table.<number>
//	log.binlog.<number>    the group's log from the snapshot on
//
// # Invariants
//
//   - backup.json comes last and by a rename, when all else is durable: a directory with it
//     holds a whole backup.
//   - Nothing of a backup is used before every byte of it was compared with its checksum, and every record of the log with
//     its own: a member's disk may have been damaged when it was sent. A restore to the snapshot's transaction uses no log.
//   - No name in a directory or from the network leads out of the directory.
//   - Memory does not depend on the size of the data, but for their longest row.
package backup
