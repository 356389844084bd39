package expr

import (
	"fmt"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// errNotSupported is for what MySQL has and this server does not.
func errNotSupported(format string, args ...any) *sqlerr.Error {
	return sqlerr.New(sqlerr.NotSupportedYet, fmt.Sprintf(format, args...))
}

func errArgCount(name string) *sqlerr.Error {
	return sqlerr.New(sqlerr.WrongParamCountToNativeFct, name)
}

func errUnknownFunction(name string) *sqlerr.Error {
	return sqlerr.New(sqlerr.SPDoesNotExist, "FUNCTION", name)
}

// errWrongArguments is MySQL's 1210.
func errWrongArguments(name string) *sqlerr.Error {
	return sqlerr.New(sqlerr.WrongArguments, name)
}

func errOperandColumns(n int) *sqlerr.Error {
	return sqlerr.New(sqlerr.OperandColumns, n)
}

func errDivisionByZero() *sqlerr.Error {
	return sqlerr.New(sqlerr.DivisionByZero)
}

func errOutOfRange(what, text string) *sqlerr.Error {
	return sqlerr.New(sqlerr.DataOutOfRange, what, text)
}

// errTruncatedValue is the warning of a conversion that used a part of the text.
func errTruncatedValue(what string, text []byte) *sqlerr.Error {
	return sqlerr.New(sqlerr.TruncatedWrongValue, what, printable(text))
}

// errIncorrectValue is the warning of a date or time that is none.
func errIncorrectValue(what string, text []byte) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.TruncatedWrongValue, "Incorrect %s value: '%s'", what, printable(text))
}

func errPacketTooLarge(name string, limit uint64) *sqlerr.Error {
	return sqlerr.New(sqlerr.WarnAllowedPacketOverflowed, name, limit)
}

// printable is text for a message: at most 128 bytes, what is no text as \xNN.
func printable(text []byte) string {
	if len(text) > 128 {
		text = types.CharsetUTF8MB4.Prefix(text[:128], 128)
	}
	if types.CharsetUTF8MB4.InvalidAt(text) < 0 {
		return string(text)
	}
	out := make([]byte, 0, 2*len(text))
	for _, c := range text {
		if c < 0x80 {
			out = append(out, c)
		} else {
			out = fmt.Appendf(out, "\\x%02X", c)
		}
	}
	return string(out)
}
