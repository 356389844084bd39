package provision

import (
	"io"
	"io/fs"
	"path"

	"github.com/triremedb/trireme/engine/storage/file"
)

// subFS is a directory of a file system as a file system. Files and errors have their
// names in the whole.
type subFS struct {
	fsys file.FS
	dir  string
}

// at leaves a bad name for the file system below to refuse.
func (s subFS) at(name string) string {
	if !fs.ValidPath(name) {
		return name
	}
	return path.Join(s.dir, name)
}

func (s subFS) Open(name string, opt file.OpenOptions) (file.File, error) {
	return s.fsys.Open(s.at(name), opt)
}
func (s subFS) Remove(name string) error            { return s.fsys.Remove(s.at(name)) }
func (s subFS) Rename(from, to string) error        { return s.fsys.Rename(s.at(from), s.at(to)) }
func (s subFS) List(dir string) ([]string, error)   { return s.fsys.List(s.at(dir)) }
func (s subFS) MkdirAll(dir string) error           { return s.fsys.MkdirAll(s.at(dir)) }
func (s subFS) SyncDir(dir string) error            { return s.fsys.SyncDir(s.at(dir)) }
func (s subFS) Exists(name string) (bool, error)    { return s.fsys.Exists(s.at(name)) }
func (s subFS) Lock(name string) (io.Closer, error) { return s.fsys.Lock(s.at(name)) }
func (s subFS) BootID() string                      { return s.fsys.BootID() }
