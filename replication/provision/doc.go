// Package provision gives a new or lost member its data: a consistent snapshot of
// another member's database at one position of the group's log, sent as sorted rows
// and bulk-loaded.
//
// A donor has a [Source]. It opens snapshots, keeps each one open for a grace time
// after the last stream that used it, and serves streams. A member that needs data
// runs a [Receiver], which builds a complete new engine beside the data that is
// there, and then lets a [Home] put it in their place:
//
//	home, err := provision.OpenHome(dir)            // finishes what a crash cut short
//	eng, err := storage.Open(… FS: home.Data() …)   // the data in use
//
//	m, err := provision.NewReceiver(provision.ReceiverOptions{Home: home, …}).Run()
//	// end what uses the old engine, close it
//	err = home.Swap()
//	// make the log begin behind m.Position, open the engine in home.Data()
//
// # Invariants
//
//   - What a snapshot holds is the database as of its CSN, and that is the number of
//     the last transaction up to its position. The position is committed.
//   - A directory becomes data by one atomic rename, of the file that names it, and
//     only after everything in it is durable. No other directory is ever opened as data.
//   - A row that was received is stored once: a table is committed in the new engine
//     together with the note that it is complete.
//   - Memory is bounded by the options on both sides, whatever the size of the tables.
//
// # What it does not do
//
// It does not choose donors, reset the log or move term and vote, which lie outside
// of the engine's directory and stay. It does not build indexes that are in the
// state Building: they arrive empty, as after a restart in the middle of a build.
package provision
