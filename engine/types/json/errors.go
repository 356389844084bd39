package json

import (
	"fmt"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Limits of a document.
const (
	MaxDepth     = 100     // nested containers
	MaxSize      = 1 << 30 // bytes of the binary form
	MaxKeyLength = 65535   // bytes of a member name
)

// Conditions a client sees, with MySQL's numbers and texts.
var (
	// ErrPathWildcard: a path that must name one place contains *, ** or a range.
	ErrPathWildcard = sqlerr.New(sqlerr.InvalidJSONPathWildcard)
	// ErrTooBig: the document would exceed MaxSize.
	ErrTooBig = sqlerr.New(sqlerr.JSONValueTooBig)
	// ErrKeyTooBig: a member name exceeds MaxKeyLength.
	ErrKeyTooBig = sqlerr.New(sqlerr.JSONKeyTooBig)
	// ErrVacuousPath: the path "$" where a part of the document must be named.
	ErrVacuousPath = sqlerr.New(sqlerr.JSONVacuousPath)
	// ErrTooDeep: containers nest deeper than MaxDepth.
	ErrTooDeep = sqlerr.New(sqlerr.JSONDocumentTooDeep)
	// ErrNotCell: the path given to ArrayInsert does not end with an array cell.
	ErrNotCell = sqlerr.New(sqlerr.InvalidJSONPathArrayCell)
)

// A SyntaxError says where a text stops being JSON. errors.As gives it as a sqlerr.Error 3140 too.
type SyntaxError struct {
	Reason string // MySQL's words, such as "Invalid value."
	Offset int    // bytes
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("Invalid JSON text: %q at position %d.", e.Reason, e.Offset)
}

// As serves errors.As for *sqlerr.Error.
func (e *SyntaxError) As(target any) bool {
	t, ok := target.(**sqlerr.Error)
	if ok {
		*t = sqlerr.Newf(sqlerr.InvalidJSONText, "%s", e.Error())
	}
	return ok
}

func pathError(offset int) error {
	return sqlerr.New(sqlerr.InvalidJSONPath, offset)
}

func corrupt(format string, args ...any) error {
	return &types.CorruptError{What: "JSON document", Reason: fmt.Sprintf(format, args...)}
}
