package trace

import (
	"encoding/hex"
	"strings"
)

// Parse reads a traceparent. sampled says whether the caller has chosen the request for
// tracing; ok is false if the text is none, which is to be taken for no context at all.
func Parse(traceparent string) (c Context, sampled, ok bool) {
	// version-trace-span-flags; versions above 00 may have more behind it.
	const length = 2 + 1 + 32 + 1 + 16 + 1 + 2
	t := strings.TrimSpace(traceparent)
	if len(t) < length || t[2] != '-' || t[35] != '-' || t[52] != '-' || t[:2] == "ff" ||
		len(t) > length && (t[:2] == "00" || t[length] != '-') {
		return Context{}, false, false
	}
	var version, flags [1]byte
	if !lowerHex(version[:], t[:2]) || !lowerHex(c.Trace[:], t[3:35]) || !lowerHex(c.Span[:], t[36:52]) ||
		!lowerHex(flags[:], t[53:length]) || !c.Valid() {
		return Context{}, false, false
	}
	return c, flags[0]&1 != 0, true
}

// lowerHex decodes hexadecimal digits that are not capitals.
func lowerHex(dst []byte, s string) bool {
	if strings.ContainsAny(s, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// InComment finds the traceparent in a statement's text, whose last comment may hold
// it: SELECT 1 /*traceparent='00-…-01'*/. Other keys may stand beside it.
func InComment(text string) (c Context, sampled, ok bool) {
	text = strings.TrimRight(text, " \t\r\n;")
	rest, ok := strings.CutSuffix(text, "*/")
	if !ok {
		return Context{}, false, false
	}
	begin := strings.LastIndex(rest, "/*")
	if begin < 0 {
		return Context{}, false, false
	}
	const key = "traceparent='"
	comment := rest[begin+2:]
	at := strings.Index(comment, key)
	if at < 0 || at > 0 && comment[at-1] != ',' && comment[at-1] != ' ' {
		return Context{}, false, false
	}
	value, _, ok := strings.Cut(comment[at+len(key):], "'")
	if !ok {
		return Context{}, false, false
	}
	return Parse(value)
}
