package expr

import (
	"io"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	pat "github.com/triremedb/trireme/engine/sql/pattern"
	"github.com/triremedb/trireme/engine/types"
)

// A matcher is a compiled pattern. Unless it was compiled for captures its automaton knows nothing of the pattern's
// groups: each thread of one that does has a place for all of them, whether they are asked for or not.
type matcher struct {
	re *regexp.Regexp // nil if prog is for all subjects
	// prog is for the subjects that do not meet needs; it is nil if the automaton is for all.
	prog  *pat.Program
	needs pat.Needs
	// after is the pattern behind any character, for searches that do not begin at the text's start. It is nil unless the
	// pattern looks at what stands before a place: ^, \A, \b.
	after  *regexp.Regexp
	names  []string // of the pattern's groups, by number, the whole match first
	steps  int      // what a character costs at most: the automaton's size, roughly
	most   int      // steps that are taken without asking whether the statement is to end
	shift  uint8    // steps that are one unit of work, as a power of two
	bytes  int      // of the matcher, roughly
	memory int64    // of a search, roughly
}

// matcherKey is what a matcher is made of.
type matcherKey struct {
	pattern string
	flags   patternFlags
}

// matcherCache keeps the patterns used last, which are shared by all sessions. It holds two generations: when the young
// one is full it becomes the old one, and what is used again moves back.
type matcherCache struct {
	mu         sync.Mutex
	young, old map[matcherKey]*matcher
	bytes      int // of the young one's matchers
}

const (
	matcherCacheCount = 128
	matcherCacheBytes = 8 << 20
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
	if len(c.young) >= matcherCacheCount || c.bytes+m.bytes > matcherCacheBytes {
		c.old, c.young, c.bytes = c.young, nil, 0
	}
	if c.young == nil {
		c.young = map[matcherKey]*matcher{}
	}
	c.young[k] = m
	c.bytes += m.bytes
}

// newMatcher returns the compiled pattern, from the cache if it is there.
func newMatcher(x *Context, pattern []byte, f patternFlags) (*matcher, error) {
	k := matcherKey{string(pattern), f}
	if m := matchers.get(k); m != nil {
		return m, nil
	}
	m, err := compilePattern(x, k.pattern, f)
	if err != nil {
		return nil, err
	}
	matchers.put(k, m)
	return m, nil
}

// Costs of an automaton, for each of its instructions, as measured.
const (
	instWork    = 500 // of compiling it, as work
	instCompile = 300 // bytes while it is compiled
	instBytes   = 64  // of it
	instSearch  = 100 // bytes of a search
	// groupsAlike is how many groups make a step take twice as long, where they are captured.
	groupsAlike = 8
)

// maxCaptureBytes is up to how many bytes the places of captured groups may take in a search, in all its threads.
const maxCaptureBytes = 64 << 20

// matcherOf makes a matcher of a parsed pattern, whose tree is given up.
func matcherOf(x *Context, text string, tree *syntax.Regexp, captures bool) (*matcher, error) {
	m := &matcher{names: tree.CapNames(), steps: patternInsts(tree), most: maxSteps, shift: 1}
	groups := len(m.names) - 1
	switch {
	case groups == 0:
	case captures:
		if m.memory = captureBytes(m.steps, groups); m.memory > maxCaptureBytes {
			return nil, errPatternTooBig
		}
	default:
		text = withoutGroups(tree).String()
	}
	m.memory += instSearch * int64(m.steps)
	m.bytes = instBytes*m.steps + 4*patternSteps(tree) + 2*len(text)
	if err := x.Worked(instWork * m.steps); err != nil {
		return nil, err
	}
	err := x.during(counted(instCompile*int64(m.steps)), func() (err error) {
		if m.re, err = regexp.Compile(text); err == nil && looksBack(tree) {
			m.after, err = regexp.Compile("(?s:.)(?:" + text + ")")
			m.bytes *= 2
		}
		return err
	})
	if _, ok := err.(*syntax.Error); ok {
		return nil, errPatternTooBig
	}
	if err != nil {
		return nil, err
	}
	switch prefix, literal := m.re.LiteralPrefix(); {
	case literal:
		m.steps, m.most, m.shift = 1, math.MaxInt, searchShift
	case prefix != "":
		m.most, m.shift = maxSearch, searchShift
	}
	if captures {
		m.steps += m.steps * groups / groupsAlike
	}
	return m, nil
}

// captureBytes is what the places of groups take in a search: each thread has two of them for each group and the whole
// match, and there are as many threads as instructions. Searches of automata of about one size lend each other their
// threads.
func captureBytes(insts, groups int) int64 {
	for _, n := range [...]int{128, 512, 2048, 16384, 2 * maxPatternSteps} {
		if insts <= n {
			insts = n
			break
		}
	}
	return 2 * 8 * int64(insts) * int64(groups+1)
}

// withoutGroups makes what is in a tree's groups plain parts of the pattern.
func withoutGroups(re *syntax.Regexp) *syntax.Regexp {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	for i, s := range re.Sub {
		re.Sub[i] = withoutGroups(s)
	}
	return re
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

// maxSteps is up to how many steps of an automaton, some hundredths of a second, run without a look at whether the
// statement was interrupted.
const maxSteps = 2 << 20

// maxSearch is that of an automaton that begins with given characters, which are searched for much faster, and
// searchShift by how much.
const (
	maxSearch   = 16 << 20
	searchShift = 4
)

// matchShare is which part of the text behind it a match in a row of them counts for.
const matchShare = 8

// work is what looking at a text of n bytes counts for.
func (m *matcher) work(n int) int { return n * m.steps >> m.shift }

// find calls f with the places of matches that start at byte offset from or later, until f returns false. A place is as
// regexp's FindSubmatchIndex gives it. Errors: 3170, those of an interrupted statement.
func (m *matcher) find(x *Context, s []byte, from int, f func(loc []int) bool) error {
	return x.during(counted(m.memory), func() error { return m.findAll(x, s, from, f) })
}

func (m *matcher) findAll(x *Context, s []byte, from int, f func(loc []int) bool) error {
	if m.backtracks(s) {
		return m.backtrack(x, s, from, f)
	}
	for at, share := from, 1; at <= len(s); share = matchShare {
		// Where a match ends may be known only at the end of the text, but seldom is when there are many.
		if err := x.Worked(m.work(len(s)-at)/share + 1); err != nil {
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

// matches reports whether the pattern is anywhere in s. Errors: as of find.
func (m *matcher) matches(x *Context, s []byte) (is bool, err error) {
	if m.backtracks(s) {
		err = m.backtrack(x, s, 0, func([]int) bool {
			is = true
			return false
		})
		return is, err
	}
	if err := x.Worked(m.work(len(s)) + 1); err != nil {
		return false, err
	}
	if m.memory >= countedText {
		if err := x.Account(m.memory); err != nil {
			return false, err
		}
		defer func() {
			if e := x.Account(-m.memory); err == nil {
				err = e
			}
		}()
	}
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

// patternInsts estimates how many instructions the automaton of a pattern has.
func patternInsts(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = max(len(re.Rune), 1)
	case syntax.OpCapture:
		n = 2
	}
	for _, s := range re.Sub {
		n += patternInsts(s)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// maxClasses is up to how many classes of package regexp a pattern may name, each of which has many ranges.
const maxClasses = 2048

// setsTooLarge reports whether a pattern of package regexp has more in its sets than is read at once.
func setsTooLarge(text string) bool {
	return strings.Count(text, `\p`)+strings.Count(text, `\P`) > maxClasses
}
