// Package storage is the storage engine of one process: it opens a directory,
// recovers it, and gives out the parts that the layers above work with.
//
//	eng, err := storage.Open(storage.Options{FS: file.OS(dir), Env: env.Real()})
//	s := eng.NewSession()
//	s.Begin(trx.Options{})
//	s.Worker().Insert(tbl, row)
//	s.Commit()
//	eng.Close()
//
// # Start
//
// Open takes the directory's lock, repairs torn pages from the doublewrite file,
// applies the redo log from its checkpoint on, opens the tablespaces, finds the
// transactions that had not committed and rolls them back, and removes tablespaces
// that no committed table claims. Then [Engine.Applied] is the position up to
// which the log of the layer above is contained in the data: exactly the
// transactions up to it, whole.
//
// # Failure
//
// A failed write or sync of the redo log or of a page halts the engine for good:
// nothing more is written, every change fails with the first error, and
// [Engine.Err] returns it. A full disk is no failure: the statement that wanted
// space gets space.ErrNoSpace and is undone.
package storage
