package client

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

// Token is a commit token: a UUID of version 7. Of all transactions that have the same one, one is
// committed.
type Token [16]byte

// NewToken makes a token.
func NewToken() (t Token) {
	_, _ = rand.Read(t[6:]) // crypto/rand does not fail
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(t[:6], ms[2:])
	t[6] = t[6]&0x0f | 0x70
	t[8] = t[8]&0x3f | 0x80
	return t
}

// longestWord is how long a keyword may be. Spans are named by it: what is longer is none.
const longestWord = 32

// firstWord is the keyword that a statement begins with, in upper case; empty: it begins with none.
func firstWord(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n(;")
		var rest string
		var ok bool
		switch {
		case strings.HasPrefix(text, "/*"):
			_, rest, ok = strings.Cut(text[2:], "*/")
		case strings.HasPrefix(text, "#"), strings.HasPrefix(text, "-- "), strings.HasPrefix(text, "--\t"):
			_, rest, ok = strings.Cut(text, "\n")
		default:
			end := strings.IndexFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
			if end < 0 {
				end = len(text)
			}
			if end > longestWord {
				return ""
			}
			return strings.ToUpper(text[:end])
		}
		if !ok {
			return ""
		}
		text = rest
	}
}

// changes reports whether a statement changes rows, so that it can have a token.
func changes(text string) bool {
	switch firstWord(text) {
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		return true
	}
	return false
}

// stateful reports whether a statement leaves something in its session that later ones would meet.
func stateful(text string) bool {
	switch firstWord(text) {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "SELECT", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE", "VALUES", "WITH",
		"ALTER", "DROP", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "ANALYZE", "OPTIMIZE", "CHECK", "KILL", "FLUSH", "DO":
		return strings.Contains(text, "@") && !strings.Contains(text, "@@")
	case "CREATE":
		return strings.Contains(strings.ToUpper(text[:min(len(text), 200)]), "TEMPORARY")
	}
	return true
}

// reads reports whether a statement changes nothing, so that it can be sent again.
func reads(text string) bool {
	switch firstWord(text) {
	case "SELECT", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE", "VALUES":
		return true
	}
	return false
}
