package catalog

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// appendLength appends (n) or (n,m).
func appendLength(dst []byte, n, m int) []byte {
	dst = strconv.AppendInt(append(dst, '('), int64(n), 10)
	if m >= 0 {
		dst = strconv.AppendInt(append(dst, ','), int64(m), 10)
	}
	return append(dst, ')')
}

// AppendName appends a name in backquotes.
func AppendName(dst []byte, name string) []byte {
	dst = append(dst, '`')
	for i := range len(name) {
		if name[i] == '`' {
			dst = append(dst, '`')
		}
		dst = append(dst, name[i])
	}
	return append(dst, '`')
}

// QuoteName returns a name in backquotes.
func QuoteName(name string) string { return string(AppendName(nil, name)) }

// appendQuoted appends a string in quotes as members of ENUM and default values are
// shown: quotes are doubled, other characters stay.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '\'')
	for i := range len(s) {
		switch s[i] {
		case '\'':
			dst = append(dst, '\'', '\'')
		default:
			dst = append(dst, s[i])
		}
	}
	return append(dst, '\'')
}

// appendEscaped appends a string in quotes as comments are shown, with control
// characters escaped.
func appendEscaped(dst []byte, s string) []byte {
	dst = append(dst, '\'')
	for i := range len(s) {
		switch s[i] {
		case '\'':
			dst = append(dst, '\'', '\'')
		case '\\':
			dst = append(dst, '\\', '\\')
		case 0:
			dst = append(dst, '\\', '0')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, s[i])
		}
	}
	return append(dst, '\'')
}

// EscapeString returns a string in quotes that Parse reads back in any sql_mode but
// NO_BACKSLASH_ESCAPES.
func EscapeString(s string) string { return string(appendEscaped(nil, s)) }

// CheckName checks an identifier of at most 64 characters; wrong is the error for one
// that is malformed, whose text takes the name. Error besides: 1059.
func CheckName(name string, wrong sqlerr.Code) error {
	switch {
	case name == "" || !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0 || strings.HasSuffix(name, " "):
		return sqlerr.New(wrong, name)
	case utf8.RuneCountInString(name) > 64:
		return sqlerr.New(sqlerr.TooLongIdent, name)
	}
	return nil
}
