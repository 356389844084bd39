package space

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Errors of allocation. Nothing was changed.
var (
	// ErrNoSpace: the file cannot grow, or only the reserve for rollback is left.
	// It wraps file.ErrNoSpace.
	ErrNoSpace = fmt.Errorf("tablespace is full: %w", file.ErrNoSpace)
	// ErrTooManySegments: all segment inodes of the tablespace are in use.
	ErrTooManySegments = errors.New("tablespace has no room for another segment")
)

// Errors of files.
var (
	// ErrNotFound: there is no such tablespace file, or it has been dropped. It
	// wraps buffer.ErrNotFound and fs.ErrNotExist.
	ErrNotFound = fmt.Errorf("%w (%w)", buffer.ErrNotFound, fs.ErrNotExist)
	// ErrBeyondEnd: the file ends before the page. It wraps io.EOF. While redo is
	// applied this means that the file was cut after the page was last changed.
	ErrBeyondEnd = fmt.Errorf("page is beyond the end of the tablespace file: %w", io.EOF)
	// ErrForeign: the file is not a tablespace, or that of another database or
	// number.
	ErrForeign = errors.New("not a tablespace file of this database")
	// ErrWatermarks: the file of watermarks is damaged, which no crash does.
	ErrWatermarks = errors.New("it is damaged, which no crash does: the disk has changed or lost what was written, and may have lost pages of the data too. " +
		"Replace the disk or the node, and let it get its data from another member; where there is none, remove this file, and check the data (trireme check): " +
		"docs/operations-storage.md, A failing disk")
	// ErrNewerFormat: a newer version of the program wrote the file.
	ErrNewerFormat = fmt.Errorf("tablespace file: %w", page.ErrNewerFormat)
	// ErrExists: the file to be created is there already. It wraps fs.ErrExist.
	ErrExists = fmt.Errorf("tablespace file exists already: %w", fs.ErrExist)
)

// corrupt reports that the book-keeping of a space contradicts itself.
func corrupt(space, no uint32, problem string, expected, found uint64) error {
	return &page.CorruptError{ID: page.ID{Space: space, No: no}, Problem: problem, Expected: expected, Found: found}
}
