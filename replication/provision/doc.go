// Package provision gives a new or lost member its data: a consistent snapshot of
// another member's database at one position of the group's log, sent as sorted rows
// and bulk-loaded.
//
// A donor has a [Source]. It opens snapshots, keeps each one open for a grace time
// after the last request for it, and answers requests with streams of chunks. A member
// that needs data runs a [Receiver], which builds a complete new engine beside the data
// that are there, and then lets a [Home] put it in their place:
//
//	home, err := provision.OpenHome(dir)
//	eng, err := storage.Open(… FS: home.Data() …)   // the data in use
//
//	r, err := provision.NewReceiver(provision.ReceiverOptions{Home: home, …})
//	m, err := r.Run()
//	// end what uses the old engine, close it, and see that it is not ahead of m
//	err = home.Swap(nil)
//	// make the log begin behind m.Position, open the engine in home.Data()
//
// # Invariants
//
//   - What a snapshot holds is the database as of its CSN, and that is the number of
//     the last transaction up to its position. The position is committed.
//   - The replicated state holds what the log had changed in it up to that position, whoever
//     sends it: entries without a number are not told apart by the CSN.
//   - A directory becomes data by one atomic rename, of the file that names it, and
//     only after everything in it is durable, and only by [Home.Swap]. No other directory is
//     ever opened as data.
//   - A table is committed in the new engine together with the note that it is
//     complete: after a crash it is there whole, or not at all.
//   - Every byte of rows is under two checksums: that of its frame, and a running one
//     over all rows of the answer, which also shows a part that is lost or out of order.
//   - Memory is bounded by the options and the longest row on both sides, whatever the size of the tables.
//
// # What it does not do
//
// It does not choose donors, reset the log or move term and vote, which lie outside
// of the engine's directory and stay. It does not build indexes that are in the
// state Building: they arrive empty, as after a restart in the middle of a build.
package provision
