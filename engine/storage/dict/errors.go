package dict

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
)

// ErrRebuild says that a change of a definition is not possible in place: the
// table must be rebuilt under a new number.
var ErrRebuild = errors.New("dict: the change needs a rebuild of the table")

// ErrFormat says that the catalogue was written by a newer version.
var ErrFormat = fmt.Errorf("dict: the catalogue: %w", page.ErrNewerFormat)

// CorruptError says that a row of the catalogue makes no sense.
type CorruptError struct {
	Table string // of the catalogue
	Row   string // its key
	Err   error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("dict: corrupt row %s of %s: %v", e.Row, e.Table, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// noTable is the error for a table that is not there: MySQL's 1146, and
// table.ErrNoTable to errors.Is.
type noTable struct{ err error }

func noTableError(schema, name string) error {
	return &noTable{sqlerr.New(sqlerr.NoSuchTable, schema, name)}
}

func (e *noTable) Error() string   { return e.err.Error() }
func (e *noTable) Unwrap() []error { return []error{e.err, table.ErrNoTable} }

func noSchemaError(name string) error { return sqlerr.New(sqlerr.BadDBError, name) }

// prepare works out the formats of a definition, with MySQL's number for what the
// checks before could not see.
func prepare(def *record.Table) (*record.Schema, error) {
	s, err := record.Prepare(def)
	if errors.Is(err, record.ErrRowTooLarge) {
		err = sqlerr.Newf(sqlerr.TooBigRowSize, "Row size too large: %v", err)
	}
	return s, err
}
