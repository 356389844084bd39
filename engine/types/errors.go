package types

import "fmt"

// Error is a condition that a client sees: MySQL's error number, its SQLSTATE
// and the message. Conversions return it in strict mode and hand it to
// [Context.Warn] otherwise.
type Error struct {
	Number  uint16
	State   string // five characters
	Message string // without number and state
}

func (e *Error) Error() string {
	return fmt.Sprintf("ERROR %d (%s): %s", e.Number, e.State, e.Message)
}

// The MySQL error numbers raised by this package.
const (
	ErrnoBadNull             = 1048 // 23000: NULL for a NOT NULL column
	ErrnoOutOfRange          = 1264 // 22003: number or year outside the column's range
	ErrnoTruncated           = 1265 // 01000: trailing garbage, digits lost, no such ENUM or SET member
	ErrnoWrongValue          = 1292 // 22007: bad date, time, datetime
	ErrnoInvalidCharacters   = 1300 // HY000: bytes invalid in a character set
	ErrnoDivisionByZero      = 1365 // 22012
	ErrnoWrongValueForColumn = 1366 // HY000: not a number, bytes that are no text
	ErrnoTooLong             = 1406 // 22001: string or bit value longer than the column
	ErrnoDataOutOfRange      = 1690 // 22003: result of an expression out of range
	ErrnoInvalidJSON         = 3140 // 22032
)

// NewError builds an Error with the SQLSTATE that MySQL gives the number.
func NewError(number uint16, format string, args ...any) *Error {
	return &Error{Number: number, State: sqlState(number), Message: fmt.Sprintf(format, args...)}
}

// CorruptError says that stored or encoded bytes do not form a value of their
// type. It never concerns what a client sent.
type CorruptError struct {
	What   string // what was being decoded, e.g. "key part", "type"
	Reason string
}

func (e *CorruptError) Error() string { return "corrupt " + e.What + ": " + e.Reason }
