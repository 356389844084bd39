package backup

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/triremedb/trireme/engine/storage/file"
)

// Writer writes a backup. One task uses it; after an error only Close is of use.
type Writer struct {
	fsys  file.FS
	files []File
	seen  map[string]bool
	open  file.File // nil: none
	sum   hash.Hash
}

// Create begins a backup in a directory, which is made if it is missing and is empty else.
func Create(fsys file.FS) (*Writer, error) {
	if err := fsys.MkdirAll("."); err != nil {
		return nil, err
	}
	names, err := fsys.List(".")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name != "lost+found" {
			return nil, fmt.Errorf("the directory for the backup is not empty (%s is there): name a new one", name)
		}
	}
	return &Writer{fsys: fsys, seen: map[string]bool{}, sum: sha256.New()}, nil
}

// Begin begins a file.
func (w *Writer) Begin(name string) (err error) {
	if w.open != nil || !isName(name) || w.seen[name] {
		return fmt.Errorf("backup: a file %.100q was not to be expected", name)
	}
	w.seen[name] = true
	if w.open, err = w.fsys.Open(name, file.OpenOptions{Exclusive: true}); err != nil {
		return err
	}
	w.files = append(w.files, File{Name: name})
	w.sum.Reset()
	return nil
}

// Write adds to the file that was begun.
func (w *Writer) Write(p []byte) (int, error) {
	if w.open == nil {
		return 0, errors.New("backup: no file was begun")
	}
	f := &w.files[len(w.files)-1]
	n, err := w.open.WriteAt(p, f.Bytes)
	f.Bytes += int64(n)
	_, _ = w.sum.Write(p[:n])
	return n, err
}

// End ends the file, whose checksum is to be sum, and makes it durable.
func (w *Writer) End(sum Sum) error {
	if w.open == nil {
		return errors.New("backup: no file was begun")
	}
	f := &w.files[len(w.files)-1]
	w.sum.Sum(f.Sum[:0])
	err := w.open.Sync()
	err = errors.Join(err, w.open.Close())
	w.open = nil
	if err == nil && f.Sum != sum {
		err = fmt.Errorf("the file %s did not arrive as it was sent: try again", f.Name)
	}
	return err
}

// Finish makes the backup one, and returns what it is.
func (w *Writer) Finish(info Info) (*Info, error) {
	if w.open != nil || len(w.files) == 0 {
		return nil, errors.New("backup: the last file has not ended")
	}
	info.Format, info.Files = Format, w.files
	b, err := json.MarshalIndent(&info, "", "  ")
	if err != nil {
		return nil, err
	}
	err = w.fsys.SyncDir(".")
	if err == nil {
		err = file.WriteWhole(w.fsys, InfoName, append(b, '\n'))
	}
	return &info, err
}

// Close gives up what was not finished; its files are removed as far as that is possible.
// After Finish it does nothing.
func (w *Writer) Close() {
	if w.open != nil {
		_ = w.open.Close()
		w.open = nil
	}
	if done, err := w.fsys.Exists(InfoName); err != nil || done {
		return
	}
	for _, f := range w.files {
		_ = w.fsys.Remove(f.Name)
	}
}
