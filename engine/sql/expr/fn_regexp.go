package expr

import (
	"bytes"
	"slices"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// A replacementPart is a piece of a replacement text: $n and ${name} stand for groups, a backslash makes the next
// character plain.
type replacementPart struct {
	text  []byte // of the replacement
	group int    // -1: text
}

// partBytes is what a part of a replacement takes.
const partBytes = 32

// mostParts is how many parts a replacement has at most.
func mostParts(s []byte) int { return 2*(bytes.Count(s, []byte{'$'})+bytes.Count(s, []byte{'\\'})) + 1 }

// parseReplacement takes a replacement apart, for a pattern with groups of such names, of which the first is the whole
// match.
func parseReplacement(s []byte, names []string) (parts []replacementPart, err error) {
	parts = make([]replacementPart, 0, mostParts(s))
	begin := 0 // of the text that is not in a part yet
	flush := func(end int) {
		if end > begin {
			parts = append(parts, replacementPart{text: s[begin:end], group: -1})
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			flush(i)
			i++
			begin = min(i, len(s)) // at the end it is nothing
			if r, n := codePoint(s[begin:]); n > 0 {
				parts = append(parts, replacementPart{text: utf8.AppendRune(nil, r), group: -1})
				i += n - 1
				begin = i + 1
			}
		case s[i] == '$':
			group, n := replacementGroup(s[i+1:], names)
			if n == 0 {
				return nil, errPatternGroupName
			}
			if group >= len(names) {
				return nil, errPatternIndex
			}
			flush(i)
			parts = append(parts, replacementPart{group: group})
			i += n
			begin = i + 1
		}
	}
	flush(len(s))
	return parts, nil
}

// codePoint reads what follows a backslash, u and four digits or U and eight; n is 0 if that is not there.
func codePoint(s []byte) (r rune, n int) {
	switch {
	case len(s) >= 5 && s[0] == 'u':
		n = 5
	case len(s) >= 9 && s[0] == 'U':
		n = 9
	default:
		return 0, 0
	}
	v, err := strconv.ParseUint(string(s[1:n]), 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, 0
	}
	return rune(v), n
}

// replacementGroup reads what follows a dollar sign: as many digits as name a group that exists, or a group's name in braces.
func replacementGroup(s []byte, names []string) (group, n int) {
	if len(s) > 1 && s[0] == '{' {
		end := bytes.IndexByte(s, '}')
		if end < 2 {
			return 0, 0
		}
		if group = slices.Index(names, string(s[1:end])); group < 0 {
			return 0, 0
		}
		return group, end + 1
	}
	for n < len(s) && s[n]-'0' <= 9 {
		next := group*10 + int(s[n]-'0')
		if n > 0 && next >= len(names) {
			break
		}
		group = next
		n++
	}
	return group, n
}

// replacement is what REGEXP_REPLACE does with the matches.
type replacement struct {
	by         []replacementPart
	wrong      error // the replacement is no good, which matters if it is asked for
	occurrence int64 // of the one match that is replaced; 0: all
	limit      int   // of the result
}

// captures reports whether groups of the pattern are asked for.
func (r *replacement) captures() bool {
	return slices.ContainsFunc(r.by, func(p replacementPart) bool { return p.group > 0 })
}

// appendTo is REGEXP_REPLACE from byte offset from on; ok is false if the result would be longer than the limit.
// Errors: 3170, those of an interrupted statement.
func (r *replacement) appendTo(x *Context, dst, s []byte, m *matcher, from int) (out []byte, ok bool, err error) {
	var wrong error
	add := func(part []byte) bool {
		if ok && wrong == nil {
			if dst, ok, wrong = x.reserve(dst, len(part), r.limit); ok {
				dst = append(dst, part...)
			}
		}
		return ok && wrong == nil
	}
	done, n := 0, int64(0)
	ok = true
	err = m.find(x, s, from, func(loc []int) bool {
		if n++; r.occurrence > 0 && n < r.occurrence {
			return true
		}
		if wrong = r.wrong; wrong != nil {
			return false
		}
		before := len(dst)
		add(s[done:loc[0]])
		for _, p := range r.by {
			part := p.text
			if p.group >= 0 {
				if part = nil; loc[2*p.group] >= 0 {
					part = s[loc[2*p.group]:loc[2*p.group+1]]
				}
			}
			if !add(part) {
				break
			}
		}
		if wrong == nil {
			wrong = x.Worked(len(dst) - before + len(r.by))
		}
		done = loc[1]
		return ok && wrong == nil && r.occurrence == 0
	})
	if err == nil {
		err = wrong
	}
	if err != nil || !ok {
		return dst, ok, err
	}
	add(s[done:])
	return dst, ok, wrong
}

// regexpCall is what a call of a regular expression function keeps: the flags that its collation gives, and the
// matchers if they are always the same.
type regexpCall struct {
	flags     patternFlags
	matchType int                        // argument of the match type
	fixed     bool                       // pattern and match type are known when the statement is bound
	matcher   [2]atomic.Pointer[matcher] // of such; without and with captures
}

// keptMatcher is up to how large a matcher is kept for as long as the statement's plan is.
const keptMatcher = 64 << 10

// prepareRegexp finds out whether the pattern is constant. It is compiled when it is first asked for: that takes time
// and memory, which belong to the execution.
func prepareRegexp(matchType int, search bool) func(*Binder, *Call) error {
	return func(_ *Binder, c *Call) error {
		if err := c.binaryOrNot(); err != nil {
			return err
		}
		r := &regexpCall{matchType: matchType, flags: patternFlags{search: search, fold: foldsCase(c)}}
		c.Data = r
		_, r.fixed = Literal(c.Args[1])
		if matchType < len(c.Args) {
			_, ok := Literal(c.Args[matchType])
			r.fixed = r.fixed && ok
		}
		return nil
	}
}

// binaryOrNot refuses binary strings together with others: text, pattern and replacement are either. Error: 3995.
func (c *Call) binaryOrNot() error {
	texts := 2
	if c.Func.Name == "regexp_replace" {
		texts = 3
	}
	first := c.Given[0]
	for _, n := range c.Given[1:texts] {
		if a, b := first.Type(), n.Type(); isString(a) && isString(b) && a.IsBlob() != b.IsBlob() {
			return sqlerr.New(sqlerr.CharacterSetMismatch, types.CollationByID(a.Collation).Name(),
				types.CollationByID(b.Collation).Name(), c.Func.Name)
		}
	}
	return nil
}

// foldsCase reports whether the collation of text and pattern ignores case.
func foldsCase(c *Call) bool {
	return c.Collation != types.CollationBinary && c.collation().Compare([]byte("a"), []byte("A")) == 0
}

// matcherOf returns the matcher of a row.
func (c *Call) matcherOf(x *Context, a []types.Value, captures bool) (*matcher, error) {
	r, at := c.Data.(*regexpCall), 0
	if captures {
		at = 1
	}
	if m := r.matcher[at].Load(); m != nil {
		return m, nil
	}
	flags := r.flags
	if r.matchType < len(a) {
		var err error
		if flags, err = parsePatternFlags(flags, a[r.matchType].Bytes(), c.Func.Name); err != nil {
			return nil, err
		}
	}
	pattern, err := c.unicodeText(x, a[1].Bytes())
	if err != nil {
		return nil, err
	}
	flags.captures = captures
	m, err := newMatcher(x, pattern, flags)
	if err == nil && r.fixed && m.bytes <= keptMatcher {
		r.matcher[at].Store(m)
	}
	return m, err
}

// matching returns what is matched, and the text in which.
func (c *Call) matching(x *Context, a []types.Value) (m *matcher, s []byte, err error) {
	if m, err = c.matcherOf(x, a, false); err == nil {
		s, err = c.unicodeText(x, a[0].Bytes())
	}
	return m, s, err
}

// unicodeText returns a text argument as UTF-8, in which patterns work. Each byte of a binary string is a character.
func (c *Call) unicodeText(x *Context, s []byte) ([]byte, error) {
	cs := c.charset()
	if cs.IsUTF8() || (cs == types.CharsetBinary || cs.HasASCII()) && isASCII(s) {
		return s, nil
	}
	if err := x.Large(utf8Times * len(s)); err != nil {
		return nil, err
	}
	if cs == types.CharsetBinary {
		out := make([]byte, 0, 2*len(s))
		for _, b := range s {
			out = utf8.AppendRune(out, rune(b))
		}
		return out, nil
	}
	out, _ := types.Convert(nil, s, cs, types.CharsetUTF8MB4)
	return out, nil
}

// utf8Times is how many times as long as in another character set a text is in UTF-8, at most.
const utf8Times = 3

// startOffset returns the byte offset of character pos.
func (c *Call) startOffset(s []byte, pos int64) (int, error) {
	switch {
	case pos < 1:
		return 0, sqlerr.New(sqlerr.WrongParametersToNativeFct, c.Func.Name)
	case pos > int64(utf8.RuneCount(s))+1:
		return 0, errPatternIndex
	}
	return len(types.CharsetUTF8MB4.Prefix(s, int(pos-1))), nil
}

// optionalInt returns argument i, or what stands for it.
func optionalInt(a []types.Value, i int, missing int64) int64 {
	if i >= len(a) {
		return missing
	}
	return argInt(a[i])
}

func init() {
	d := definer(catString)
	d.def("REGEXP_LIKE(s, pattern); REGEXP_LIKE(s, pattern, match_type)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgText}, Min: 2, Max: 3, Boolean: true, Result: ResultBool,
		Prepare: prepareRegexp(2, false),
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			m, s, err := c.matching(x, a)
			if err != nil {
				return types.Null, err
			}
			is, err := m.matches(x, s)
			return boolValue(is), err
		},
	})
	d.def("REGEXP_INSTR(s, pattern); REGEXP_INSTR(s, pattern, pos, occurrence, return_option, match_type)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgInt, ArgInt, ArgInt, ArgText}, Min: 2, Max: 6, Result: ResultInt,
		Prepare: prepareRegexp(5, true), Row: regexpInstr,
	})
	d.def("REGEXP_SUBSTR(s, pattern); REGEXP_SUBSTR(s, pattern, pos, occurrence, match_type)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgInt, ArgInt, ArgText}, Min: 2, Max: 5, Result: ResultTextLike(0),
		Prepare: prepareRegexp(4, true), Row: regexpSubstr,
	})
	d.def("REGEXP_REPLACE(s, pattern, by); REGEXP_REPLACE(s, pattern, by, pos, occurrence, match_type)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgText, ArgInt, ArgInt, ArgText}, Min: 3, Max: 6, Result: ResultText(maxText),
		Prepare: prepareRegexp(5, true), Row: regexpReplace,
	})
}

func regexpInstr(x *Context, c *Call, a []types.Value) (types.Value, error) {
	end := optionalInt(a, 4, 0)
	if end != 0 && end != 1 {
		return types.Null, errWrongArguments("regexp_instr: return_option must be 1 or 0.")
	}
	m, s, err := c.matching(x, a)
	if err != nil {
		return types.Null, err
	}
	// The text begins at the position, also for ^ and look-behind. In an empty text any position will do.
	pos := optionalInt(a, 2, 1)
	if len(s) > 0 {
		if pos < 1 || pos > int64(utf8.RuneCount(s)) {
			return types.Null, errPatternIndex
		}
		s = s[len(types.CharsetUTF8MB4.Prefix(s, int(pos-1))):]
	}
	loc, err := m.nth(x, s, 0, max(optionalInt(a, 3, 1), 1))
	if err != nil || loc == nil {
		return types.NewInt(0), err
	}
	return types.NewInt(int64(utf8.RuneCount(s[:loc[end]])) + pos), nil
}

func regexpSubstr(x *Context, c *Call, a []types.Value) (types.Value, error) {
	m, s, err := c.matching(x, a)
	if err != nil {
		return types.Null, err
	}
	from, err := c.startOffset(s, optionalInt(a, 2, 1))
	if err != nil {
		return types.Null, err
	}
	loc, err := m.nth(x, s, from, max(optionalInt(a, 3, 1), 1))
	if err != nil || loc == nil {
		return types.Null, err
	}
	return types.NewBytes(x.ownText(c, s[loc[0]:loc[1]])), nil
}

func regexpReplace(x *Context, c *Call, a []types.Value) (v types.Value, err error) {
	m, s, err := c.matching(x, a)
	if err != nil {
		return types.Null, err
	}
	from, err := c.startOffset(s, optionalInt(a, 3, 1))
	if err != nil {
		return types.Null, err
	}
	by, err := c.unicodeText(x, a[2].Bytes())
	if err != nil {
		return types.Null, err
	}
	err = x.during(counted(partBytes*int64(mostParts(by))), func() error {
		v, err = x.replaceMatches(c, a, m, s, by, from)
		return err
	})
	return v, err
}

func (x *Context) replaceMatches(c *Call, a []types.Value, m *matcher, s, by []byte, from int) (types.Value, error) {
	r := replacement{occurrence: optionalInt(a, 4, 0), limit: x.packetLimit()}
	if r.occurrence < 0 {
		r.occurrence = 1
	}
	if len(s) == 0 {
		return types.NewBytes(nil), nil
	}
	var err error
	r.by, r.wrong = parseReplacement(by, m.names)
	if r.captures() {
		if m, err = c.matcherOf(x, a, true); err != nil {
			return types.Null, err
		}
	}
	out, ok, err := r.appendTo(x, x.Scratch(), s, m, from)
	switch {
	case err != nil:
		return types.Null, err
	case !ok:
		return types.Null, x.tooLarge(c)
	}
	return types.NewBytes(x.ownText(c, x.Keep(out))), nil
}

// ownText turns UTF-8 back into the character set of the call.
func (x *Context) ownText(c *Call, s []byte) []byte {
	cs := c.charset()
	switch {
	case cs.IsUTF8() || cs == types.CharsetBinary && isASCII(s):
		return s
	case cs == types.CharsetBinary:
		out := x.Scratch()
		for _, r := range string(s) {
			out = append(out, byte(r))
		}
		return x.Keep(out)
	}
	out, _ := types.Convert(x.Scratch(), s, types.CharsetUTF8MB4, cs)
	return x.Keep(out)
}
