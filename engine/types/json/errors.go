package json

import (
	"fmt"

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
	ErrPathWildcard = &types.Error{Number: 3149, State: "42000",
		Message: "In this situation, path expressions may not contain the * and ** tokens or an array range."}
	// ErrTooBig: the document would exceed MaxSize.
	ErrTooBig = &types.Error{Number: 3150, State: "22032", Message: "The JSON value is too big to be stored in a JSON column."}
	// ErrKeyTooBig: a member name exceeds MaxKeyLength.
	ErrKeyTooBig = &types.Error{Number: 3151, State: "22032", Message: "The JSON object contains a key name that is too long."}
	// ErrVacuousPath: the path "$" where a part of the document must be named.
	ErrVacuousPath = &types.Error{Number: 3153, State: "42000", Message: "The path expression '$' is not allowed in this context."}
	// ErrTooDeep: containers nest deeper than MaxDepth.
	ErrTooDeep = &types.Error{Number: 3157, State: "22032", Message: "The JSON document exceeds the maximum depth."}
	// ErrNotCell: the path given to ArrayInsert does not end with an array cell.
	ErrNotCell = &types.Error{Number: 3165, State: "42000", Message: "A path expression is not a path to a cell in an array."}
)

// A SyntaxError says where a text stops being JSON. errors.As gives it as a types.Error 3140 too.
type SyntaxError struct {
	Reason string // MySQL's words, such as "Invalid value."
	Offset int    // bytes
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("Invalid JSON text: %q at position %d.", e.Reason, e.Offset)
}

// As serves errors.As for *types.Error.
func (e *SyntaxError) As(target any) bool {
	t, ok := target.(**types.Error)
	if ok {
		*t = &types.Error{Number: types.ErrnoInvalidJSON, State: "22032", Message: e.Error()}
	}
	return ok
}

func pathError(offset int) error {
	return &types.Error{Number: 3143, State: "42000",
		Message: fmt.Sprintf("Invalid JSON path expression. The error is around character position %d.", offset)}
}

func corrupt(format string, args ...any) error {
	return &types.CorruptError{What: "JSON document", Reason: fmt.Sprintf(format, args...)}
}
