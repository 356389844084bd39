package dict

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
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

// The MySQL error numbers raised by this package.
const (
	ErrnoSchemaExists     = 1007
	ErrnoDropNoSchema     = 1008
	ErrnoSchemaNotEmpty   = 1010
	ErrnoNoSchema         = 1049
	ErrnoTableExists      = 1050
	ErrnoNoTableToDrop    = 1051
	ErrnoNameTooLong      = 1059
	ErrnoDuplicateColumn  = 1060
	ErrnoDuplicateKeyName = 1061
	ErrnoTooManyKeys      = 1069
	ErrnoTooManyKeyParts  = 1070
	ErrnoKeyTooLong       = 1071
	ErrnoNoKeyColumn      = 1072
	ErrnoWrongAuto        = 1075
	ErrnoWrongSubKey      = 1089
	ErrnoCantRemoveAll    = 1090
	ErrnoCantDrop         = 1091
	ErrnoWrongSchemaName  = 1102
	ErrnoWrongTableName   = 1103
	ErrnoNoColumns        = 1113
	ErrnoTooManyColumns   = 1117
	ErrnoRowTooLarge      = 1118
	ErrnoNoTable          = 1146
	ErrnoWrongColumnName  = 1166
	ErrnoBlobKey          = 1170
	ErrnoNullablePrimary  = 1171
	ErrnoWrongIndexName   = 1280
	ErrnoDefinitionOld    = 1412
	ErrnoDuplicateFKName  = 1826
)

var sqlStates = map[uint16]string{
	ErrnoNoSchema: "42000", ErrnoTableExists: "42S01", ErrnoNoTableToDrop: "42S02", ErrnoNameTooLong: "42000",
	ErrnoDuplicateColumn: "42S21", ErrnoDuplicateKeyName: "42000", ErrnoTooManyKeys: "42000",
	ErrnoTooManyKeyParts: "42000", ErrnoKeyTooLong: "42000", ErrnoNoKeyColumn: "42000", ErrnoWrongAuto: "42000", ErrnoCantRemoveAll: "42000",
	ErrnoCantDrop: "42000", ErrnoWrongSchemaName: "42000", ErrnoWrongTableName: "42000", ErrnoNoColumns: "42000",
	ErrnoRowTooLarge: "42000", ErrnoNoTable: "42S02", ErrnoWrongColumnName: "42000", ErrnoBlobKey: "42000",
	ErrnoNullablePrimary: "42000", ErrnoWrongIndexName: "42000",
}

func errorf(number uint16, format string, args ...any) error {
	state := sqlStates[number]
	if state == "" {
		state = "HY000"
	}
	return &types.Error{Number: number, State: state, Message: fmt.Sprintf(format, args...)}
}

// noTable is the error for a table that is not there: MySQL's 1146, and
// table.ErrNoTable to errors.Is.
type noTable struct{ err error }

func noTableError(schema, name string) error {
	return &noTable{errorf(ErrnoNoTable, "Table '%s.%s' doesn't exist", schema, name)}
}

func (e *noTable) Error() string   { return e.err.Error() }
func (e *noTable) Unwrap() []error { return []error{e.err, table.ErrNoTable} }

func noSchemaError(name string) error { return errorf(ErrnoNoSchema, "Unknown database '%s'", name) }

// prepare works out the formats of a definition, with MySQL's number for what the
// checks before could not see.
func prepare(def *record.Table) (*record.Schema, error) {
	s, err := record.Prepare(def)
	if errors.Is(err, record.ErrRowTooLarge) {
		err = errorf(ErrnoRowTooLarge, "Row size too large: %v", err)
	}
	return s, err
}
