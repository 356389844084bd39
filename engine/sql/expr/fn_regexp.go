package expr

import (
	"bytes"
	"io"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// A matcher is a compiled pattern.
type matcher struct {
	re *regexp.Regexp
	// after is the pattern behind any character, for searches that do not begin at the text's start. It is nil unless the
	// pattern looks at what stands before a place: ^, \A, \b.
	after *regexp.Regexp
	steps int // the automaton's size, roughly: a character costs that much at most
	most  int // of its steps, without a look at whether the statement was interrupted
}

// matcherKey is what a matcher is made of.
type matcherKey struct {
	pattern string
	flags   patternFlags
}

// matcherCache keeps the patterns used last, which are shared by all sessions. It holds two generations: when the young one
// is full it becomes the old one, and what is used again moves back.
type matcherCache struct {
	mu         sync.Mutex
	young, old map[matcherKey]*matcher
	bytes      int // of the young one's patterns
}

const (
	matcherCacheCount = 128
	matcherCacheBytes = 256 << 10
)

var matchers matcherCache

func (c *matcherCache) get(k matcherKey) *matcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.young[k]; m != nil {
		return m
	}
	m := c.old[k]
	if m != nil {
		c.add(k, m)
	}
	return m
}

func (c *matcherCache) put(k matcherKey, m *matcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(k, m)
}

// add inserts into the young generation. REQUIRES: the mutex is held.
func (c *matcherCache) add(k matcherKey, m *matcher) {
	if len(c.young) >= matcherCacheCount || c.bytes >= matcherCacheBytes {
		c.old, c.young, c.bytes = c.young, nil, 0
	}
	if c.young == nil {
		c.young = map[matcherKey]*matcher{}
	}
	c.young[k] = m
	c.bytes += len(k.pattern)
}

// newMatcher returns the compiled pattern, from the cache if it is there.
func newMatcher(pattern []byte, f patternFlags) (*matcher, error) {
	k := matcherKey{string(pattern), f}
	if m := matchers.get(k); m != nil {
		return m, nil
	}
	re, err := compilePattern(k.pattern, f)
	if err != nil {
		return nil, err
	}
	m, err := matcherOf(re)
	if err != nil {
		return nil, err
	}
	matchers.put(k, m)
	return m, nil
}

// matcherOf makes a matcher of a compiled pattern.
func matcherOf(re *regexp.Regexp) (*matcher, error) {
	m := &matcher{re: re, steps: 1}
	if _, literal := re.LiteralPrefix(); literal {
		return m, nil
	}
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err == nil && looksBack(tree) {
		m.after, err = regexp.Compile("(?s:.)(?:" + re.String() + ")")
	}
	if err != nil {
		return nil, patternError(err)
	}
	m.steps, m.most = patternSteps(tree), maxSteps
	if prefix, _ := m.re.LiteralPrefix(); prefix != "" {
		m.most = maxSearch
	}
	return m, nil
}

func looksBack(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, s := range re.Sub {
		if looksBack(s) {
			return true
		}
	}
	return false
}

// maxSteps is up to how many steps of an automaton, some hundredths of a second, run without a look at whether the statement was
// interrupted.
const maxSteps = 2 << 20

// maxSearch is that of an automaton that begins with given characters, which are searched for much faster.
const maxSearch = 16 << 20

// find calls f with the places of matches that start at byte offset from or later, until f returns false. A place is as
// regexp's FindSubmatchIndex gives it.
func (m *matcher) find(x *Context, s []byte, from int, f func(loc []int) bool) error {
	for at := from; at <= len(s); {
		if err := x.Worked(len(s) - at); err != nil {
			return err
		}
		loc, err := m.next(x, s, at)
		if err != nil || loc == nil || !f(loc) {
			return err
		}
		if at = loc[1]; loc[1] == loc[0] {
			if at == len(s) {
				return nil
			}
			at += charLen(types.CharsetUTF8MB4, s[at:])
		}
	}
	return nil
}

// next returns the first place that starts at byte offset at or later.
func (m *matcher) next(x *Context, s []byte, at int) (loc []int, err error) {
	re := m.re
	if m.after != nil && at > 0 {
		// The automaton has to see the character before.
		re = m.after
		_, n := utf8.DecodeLastRune(s[:at])
		at -= n
	}
	if text := s[at:]; m.short(text) {
		loc = re.FindSubmatchIndex(text)
	} else {
		r := m.reader(x, text)
		loc, err = re.FindReaderSubmatchIndex(r), r.err
	}
	if err != nil || loc == nil {
		return nil, err
	}
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += at
		}
	}
	if re != m.re {
		loc[0] += charLen(types.CharsetUTF8MB4, s[loc[0]:])
	}
	return loc, nil
}

// matches reports whether the pattern is anywhere in s.
func (m *matcher) matches(x *Context, s []byte) (bool, error) {
	if m.short(s) {
		return m.re.Match(s), nil
	}
	r := m.reader(x, s)
	return m.re.MatchReader(r), r.err
}

func (m *matcher) short(s []byte) bool { return len(s)*m.steps <= m.most }

// patternReader gives the automaton a long text, and ends it when the statement is interrupted.
type patternReader struct {
	x     *Context
	s     []byte
	steps int // of the automaton, for each character
	done  int // since the last check
	err   error
}

func (m *matcher) reader(x *Context, s []byte) *patternReader {
	return &patternReader{x: x, s: s, steps: m.steps}
}

// ReadRune implements io.RuneReader.
func (r *patternReader) ReadRune() (c rune, size int, err error) {
	if r.done += r.steps; r.done > maxSteps {
		r.done = 0
		r.err = r.x.Check()
	}
	if r.err != nil || len(r.s) == 0 {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.s)
	r.s = r.s[size:]
	return c, size, nil
}

// nth returns the place of the n-th match from byte offset from on.
func (m *matcher) nth(x *Context, s []byte, from int, n int64) (loc []int, err error) {
	err = m.find(x, s, from, func(l []int) bool {
		if n--; n > 0 {
			return true
		}
		loc = l
		return false
	})
	return loc, err
}

// A replacementPart is a piece of a replacement text: $n and ${name} stand for groups, a backslash makes the next character plain.
type replacementPart struct {
	text  []byte
	group int // -1: text
}

func parseReplacement(s []byte, re *regexp.Regexp) (parts []replacementPart, err error) {
	var text []byte
	flush := func() {
		if len(text) > 0 {
			parts = append(parts, replacementPart{text: text, group: -1})
			text = nil
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			text = append(text, s[i])
		case s[i] == '$':
			group, n := replacementGroup(s[i+1:], re)
			if n == 0 {
				return nil, errPatternGroupName
			}
			if group < 0 || group > re.NumSubexp() {
				return nil, errPatternIndex
			}
			flush()
			parts = append(parts, replacementPart{group: group})
			i += n
		default:
			text = append(text, s[i])
		}
	}
	flush()
	return parts, nil
}

// replacementGroup reads what follows a dollar sign: as many digits as name a group that exists, or a name in braces.
func replacementGroup(s []byte, re *regexp.Regexp) (group, n int) {
	if len(s) > 1 && s[0] == '{' {
		end := bytes.IndexByte(s, '}')
		if end < 2 {
			return 0, 0
		}
		return re.SubexpIndex(string(s[1:end])), end + 1
	}
	for n < len(s) && s[n]-'0' <= 9 {
		next := group*10 + int(s[n]-'0')
		if n > 0 && next > re.NumSubexp() {
			break
		}
		group = next
		n++
	}
	return group, n
}

// appendReplacedMatches is REGEXP_REPLACE: the occurrence-th match from byte offset from on, or with 0 all of them; ok is
// false if the result would be longer than limit.
func (m *matcher) appendReplacedMatches(x *Context, dst, s []byte, from int, by []replacementPart, occurrence int64, limit int) (out []byte, ok bool, err error) {
	done, n := 0, int64(0)
	ok = true
	err = m.find(x, s, from, func(loc []int) bool {
		if n++; occurrence > 0 && n < occurrence {
			return true
		}
		dst = append(dst, s[done:loc[0]]...)
		for _, p := range by {
			if p.group < 0 {
				dst = append(dst, p.text...)
			} else if start := loc[2*p.group]; start >= 0 {
				dst = append(dst, s[start:loc[2*p.group+1]]...)
			}
		}
		done = loc[1]
		ok = len(dst) <= limit
		return ok && occurrence == 0
	})
	dst = append(dst, s[done:]...)
	return dst, ok && len(dst) <= limit, err
}

// regexpCall is what a call of a regular expression function keeps: the flags that its collation gives, and the matcher and
// replacement if they are known when the statement is bound.
type regexpCall struct {
	flags     patternFlags
	matchType int // argument of the match type
	m         *matcher
}

// prepareRegexp compiles a constant pattern. Its errors are those of running it and are left to that.
func prepareRegexp(matchType int, search bool) func(*Binder, *Call) error {
	return func(_ *Binder, c *Call) error {
		r := &regexpCall{matchType: matchType, flags: patternFlags{search: search, fold: foldsCase(c)}}
		c.Data = r
		pattern, ok := Literal(c.Args[1])
		if !ok || pattern.IsNull() {
			return nil
		}
		flags := r.flags
		if matchType < len(c.Args) {
			v, ok := Literal(c.Args[matchType])
			if !ok || v.IsNull() {
				return nil
			}
			var err error
			if flags, err = parsePatternFlags(flags, v.Bytes(), c.Func.Name); err != nil {
				return nil
			}
		}
		if m, err := newMatcher(pattern.Bytes(), flags); err == nil {
			r.m = m
		}
		return nil
	}
}

// foldsCase reports whether the collation of text and pattern ignores case.
func foldsCase(c *Call) bool {
	return c.Collation != types.CollationBinary && c.collation().Compare([]byte("a"), []byte("A")) == 0
}

// matcherOf returns the matcher of a row.
func (c *Call) matcherOf(a []types.Value) (*matcher, error) {
	r := c.Data.(*regexpCall)
	if r.m != nil {
		return r.m, nil
	}
	flags := r.flags
	if r.matchType < len(a) {
		var err error
		if flags, err = parsePatternFlags(flags, a[r.matchType].Bytes(), c.Func.Name); err != nil {
			return nil, err
		}
	}
	return newMatcher(c.unicodeText(a[1].Bytes()), flags)
}

// unicodeText returns a text argument as UTF-8, in which patterns work.
func (c *Call) unicodeText(s []byte) []byte {
	if cs := c.charset(); cs == types.CharsetLatin1 && !isASCII(s) {
		out, _ := types.Convert(nil, s, cs, types.CharsetUTF8MB4)
		return out
	}
	return s
}

// startOffset returns the byte offset of character pos.
func startOffset(s []byte, pos int64) (int, error) {
	if pos < 1 || pos > int64(utf8.RuneCount(s))+1 {
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
			m, err := c.matcherOf(a)
			if err != nil {
				return types.Null, err
			}
			is, err := m.matches(x, c.unicodeText(a[0].Bytes()))
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

// place finds the match that the arguments from pos on ask for.
func (c *Call) place(x *Context, a []types.Value, pos int) (s []byte, loc []int, err error) {
	m, err := c.matcherOf(a)
	if err != nil {
		return nil, nil, err
	}
	s = c.unicodeText(a[0].Bytes())
	from, err := startOffset(s, optionalInt(a, pos, 1))
	if err != nil {
		return nil, nil, err
	}
	loc, err = m.nth(x, s, from, max(optionalInt(a, pos+1, 1), 1))
	return s, loc, err
}

func regexpInstr(x *Context, c *Call, a []types.Value) (types.Value, error) {
	end := optionalInt(a, 4, 0)
	if end != 0 && end != 1 {
		return types.Null, errWrongArguments("regexp_instr: return_option must be 1 or 0.")
	}
	s, loc, err := c.place(x, a, 2)
	if err != nil || loc == nil {
		return types.NewInt(0), err
	}
	return types.NewInt(int64(utf8.RuneCount(s[:loc[end]])) + 1), nil
}

func regexpSubstr(x *Context, c *Call, a []types.Value) (types.Value, error) {
	s, loc, err := c.place(x, a, 2)
	if err != nil || loc == nil {
		return types.Null, err
	}
	return types.NewBytes(x.ownText(c, s[loc[0]:loc[1]])), nil
}

func regexpReplace(x *Context, c *Call, a []types.Value) (types.Value, error) {
	m, err := c.matcherOf(a)
	if err != nil {
		return types.Null, err
	}
	s := c.unicodeText(a[0].Bytes())
	from, err := startOffset(s, optionalInt(a, 3, 1))
	if err != nil {
		return types.Null, err
	}
	by, err := parseReplacement(c.unicodeText(a[2].Bytes()), m.re)
	if err != nil {
		return types.Null, err
	}
	out, ok, err := m.appendReplacedMatches(x, x.Scratch(), s, from, by, max(optionalInt(a, 4, 0), 0), x.packetLimit())
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
	if c.charset() != types.CharsetLatin1 {
		return s
	}
	out, _ := types.Convert(x.Scratch(), s, types.CharsetUTF8MB4, types.CharsetLatin1)
	return x.Keep(out)
}
