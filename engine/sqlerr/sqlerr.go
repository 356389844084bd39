// Package sqlerr has the numbers of MySQL's errors, once: each as a constant that is named as MySQL names it
// (ER_NO_SUCH_TABLE is [NoSuchTable]), with its SQLSTATE and MySQL's text as a template of package fmt. All
// packages that tell a client what failed take the numbers from here; a house rule keeps literals out of them.
//
//	sqlerr.New(sqlerr.NoSuchTable, schema, name)            // the text of the table
//	sqlerr.Newf(sqlerr.ServerShutdown, "... %s ...", why)   // a text of our own
//
// What holds:
//
//   - A number has one SQLSTATE, whatever the text says: that of the table. An [Error] that another server
//     made, or that came over a wire, is written out as a literal instead, with the state that came with it.
//   - The arguments of [New] are those of the template, in number and kind. A verb may stand for a part that
//     MySQL's own template spells out with several, such as 'user'@'host', where callers have the whole.
//   - The constants are what clients, drivers and other members see: none ever changes. A number that is not
//     MySQL's has no place here.
//
// docs/errors.md is made of the table: go test ./engine/sqlerr -run TestDocumentation -update writes it anew.
//
// The package imports nothing of the house, so that every room may use it.
package sqlerr

import (
	"fmt"
	"iter"
)

// Code is the number of an error of MySQL's.
type Code uint16

// Error is a condition that a client sees: MySQL's error number, its SQLSTATE and the message.
type Error struct {
	Number  Code
	State   string // five characters
	Message string // without number and state
}

func (e *Error) Error() string {
	return fmt.Sprintf("ERROR %d (%s): %s", e.Number, e.State, e.Message)
}

// New makes an error with the text that MySQL gives the number.
func New(code Code, args ...any) *Error {
	r := table[code]
	return &Error{Number: code, State: r.stateOr(generalError), Message: fmt.Sprintf(r.text, args...)}
}

// Newf makes an error with a text of its own. The number may be one that the table does not have, as the
// grammar's library may give it; its SQLSTATE is HY000 then.
func Newf(code Code, format string, args ...any) *Error {
	return &Error{Number: code, State: code.State(), Message: fmt.Sprintf(format, args...)}
}

// Syntax is [ParseError] for a statement that is none from near on, a text of which the first 80 characters are
// told, in a line counted from 1.
func Syntax(near string, line int) *Error { return New(ParseError, SyntaxError.Text(), near, line) }

// generalError is the SQLSTATE of numbers that have none of their own.
const generalError = "HY000"

// State is the SQLSTATE that goes with the number.
func (c Code) State() string { return table[c].stateOr(generalError) }

// Symbol is MySQL's name of the number, such as ER_NO_SUCH_TABLE; empty if the table does not have it.
func (c Code) Symbol() string { return table[c].symbol }

// Text is the template of the number's message; empty if nothing here makes it.
func (c Code) Text() string { return table[c].text }

// All yields the numbers of the table, smallest first.
func All() iter.Seq[Code] {
	return func(yield func(Code) bool) {
		for _, rows := range parts {
			for i := range rows {
				if !yield(rows[i].code) {
					return
				}
			}
		}
	}
}

// row is what is known of a number.
type row struct {
	code   Code
	symbol string
	state  string
	text   string
}

func (r row) stateOr(other string) string {
	if r.state == "" {
		return other
	}
	return r.state
}

// parts are the table, by ranges of numbers.
var parts = [...][]row{rows1000, rows1200, rows3000}

var table = func() map[Code]row {
	m := map[Code]row{}
	for _, rows := range parts {
		for _, r := range rows {
			m[r.code] = r
		}
	}
	return m
}()
