package expr

import (
	"fmt"

	"github.com/triremedb/trireme/engine/types"
)

// errorf makes an error with a number that package types does not raise.
func errorf(number uint16, state, format string, args ...any) *types.Error {
	return &types.Error{Number: number, State: state, Message: fmt.Sprintf(format, args...)}
}

// errNotSupported is for what MySQL has and this server does not.
func errNotSupported(format string, args ...any) *types.Error {
	return errorf(1235, "42000", "This version of Trireme doesn't yet support '%s'", fmt.Sprintf(format, args...))
}

func errArgCount(name string) *types.Error {
	return errorf(1582, "42000", "Incorrect parameter count in the call to native function '%s'", name)
}

func errUnknownFunction(name string) *types.Error {
	return errorf(1305, "42000", "FUNCTION %s does not exist", name)
}

// errWrongArguments is MySQL's 1210.
func errWrongArguments(name string) *types.Error {
	return errorf(1210, "HY000", "Incorrect arguments to %s", name)
}

func errOperandColumns(n int) *types.Error {
	return errorf(1241, "21000", "Operand should contain %d column(s)", n)
}

func errDivisionByZero() *types.Error {
	return types.NewError(types.ErrnoDivisionByZero, "Division by 0")
}

func errOutOfRange(what, text string) *types.Error {
	return types.NewError(types.ErrnoDataOutOfRange, "%s value is out of range in '%s'", what, text)
}

// errTruncatedValue is the warning of a conversion that used a part of the text.
func errTruncatedValue(what string, text []byte) *types.Error {
	return types.NewError(types.ErrnoWrongValue, "Truncated incorrect %s value: '%s'", what, printable(text))
}

// errIncorrectValue is the warning of a date or time that is none.
func errIncorrectValue(what string, text []byte) *types.Error {
	return types.NewError(types.ErrnoWrongValue, "Incorrect %s value: '%s'", what, printable(text))
}

func errPacketTooLarge(name string, limit uint64) *types.Error {
	return errorf(1301, "HY000", "Result of %s() was larger than max_allowed_packet (%d) - truncated", name, limit)
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
