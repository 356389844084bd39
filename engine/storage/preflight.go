package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// preflight looks at an existing database before anything is written to it: a
// directory that a newer program has used, or in which files are missing or
// strange, stays as it is.
func (e *Engine) preflight(database space.DatabaseID) error {
	id, err := redo.Probe(e.opt.FS, redoDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("storage: %w: the redo log: %w", errMissing, err)
	}
	if err == nil && id != database {
		err = fmt.Errorf("%s/redo.log: %w: it has %x, the system tablespace %x", redoDir, redo.ErrWrongID, id, database)
	}
	if err != nil {
		return fmt.Errorf("storage: redo log: %w", err)
	}
	if err := e.checkSystemPage(); err != nil {
		return fmt.Errorf("storage: system tablespace: %w", err)
	}
	return e.checkUndoFiles()
}

// checkUndoFiles looks at the undo tablespaces that are there.
func (e *Engine) checkUndoFiles() error {
	for no := space.FirstUndo; ; no++ {
		there, err := e.opt.FS.Exists(spaceFile(no))
		if err != nil || !there {
			return err
		}
		if _, err := space.Probe(e.opt.FS, spaceFile(no)); err != nil {
			return fmt.Errorf("storage: undo tablespace %d: %w", no-space.FirstUndo, err)
		}
	}
}

// checkSystemPage looks for formats that are too new. A page that is damaged or
// torn is left to recovery, which may repair it.
func (e *Engine) checkSystemPage() error {
	f, err := e.opt.FS.Open(systemFile(), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	p := file.AlignedBuffer(page.Size)
	_, err = f.ReadAt(p, int64(trx.SystemPage)*page.Size)
	if errors.Is(err, io.EOF) {
		return f.Close()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	err = page.Verify(p, page.ID{Space: space.System, No: trx.SystemPage})
	switch {
	case errors.Is(err, page.ErrNewerFormat):
		return err
	case err != nil || page.GetType(p) != page.TypeSystem:
		return nil
	}
	return errors.Join(trx.CheckFormat(p), dict.CheckFormat(p))
}

// Damaged reports whether an error says that files of the engine are not what was written.
func Damaged(err error) bool {
	var badPage *page.CorruptError
	return errors.As(err, &badPage) || errors.Is(err, space.ErrForeign) || errors.Is(err, space.ErrNewerFormat) ||
		errors.Is(err, space.ErrNotFound) || errors.Is(err, space.ErrBeyondEnd)
}

// Advice says in a sentence what an operator can do about an error of the engine,
// or "" for the errors of ordinary work.
func Advice(err error) string {
	var halt *redo.HaltError
	var badPage *page.CorruptError
	var badLog *redo.CorruptError
	switch {
	case errors.Is(err, page.ErrNewerFormat):
		return "start the version of the program that wrote it; nothing was changed"
	case errors.Is(err, file.ErrLocked):
		return "end the other process that uses this directory, or give this one a directory of its own"
	case errors.As(err, &halt):
		return "look at the disk and the system's log, then restart: what was durable is recovered"
	case errors.As(err, &badLog):
		return rebuild
	case errors.As(err, &badPage):
		a := rebuild + "; damaged is " + spaceFile(badPage.ID.Space)
		if no := badPage.ID.Space; no != space.System && !isUndo(no) {
			a += "; other tables are not affected"
		}
		return a
	case errors.Is(err, space.ErrForeign), errors.Is(err, redo.ErrWrongID), errors.Is(err, space.ErrNotFound), errors.Is(err, errMissing):
		return "put back the file that belongs there, or " + rebuild
	case errors.Is(err, file.ErrNoSpace):
		return "free some disk space or enlarge the disk; nothing was changed"
	}
	return ""
}

// rebuild is what to do about data that are damaged: files of a backup are of another time, and of no use beside
// the others of a directory.
const rebuild = "rebuild this node: stop it, empty its data directory and start it, and it gets its data from the other members of its group; " +
	"where there are none, restore a backup of the whole (trireme restore)"

// errMissing says that a file of the database is not there.
var errMissing = errors.New("a file of the database is missing")

// advise completes an error of Open with what can be done about it.
func advise(err error) error {
	if a := Advice(err); a != "" {
		return fmt.Errorf("%w (%s)", err, a)
	}
	return err
}
