package expr

import (
	"errors"
	"regexp/syntax"
	"unicode/utf8"

	pat "github.com/triremedb/trireme/engine/sql/pattern"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// Regular expressions have ICU's syntax and run on Go's automata, in time linear in the text, if these give the same
// answer: package pattern knows which those are. All others run on its backtracking matcher, within MySQL's limits.

// patternFlags are the match options.
type patternFlags struct {
	fold      bool // 'i'
	multiline bool // 'm': ^ and $ match at lines
	dotAll    bool // 'n': . matches line terminators
	unixLines bool // 'u': only \n ends a line
	search    bool // the place of the match matters, not only that there is one
	plain     bool // the pattern is in the syntax of package regexp
	captures  bool // the places of the groups matter
}

// The conditions a client sees, with MySQL's numbers.
var (
	errPatternArgument  = sqlerr.New(sqlerr.RegexpIllegalArgument)
	errPatternIndex     = sqlerr.New(sqlerr.RegexpIndexOutOfBoundsError)
	errPatternTooBig    = sqlerr.New(sqlerr.RegexpPatternTooBig)
	errPatternGroupName = sqlerr.New(sqlerr.RegexpInvalidCaptureGroupName)
)

// isPatternError reports whether an error is one of a pattern, and not of the statement.
func isPatternError(err error) bool {
	e, ok := err.(*sqlerr.Error)
	return ok && (e.Number >= sqlerr.RegexpIllegalArgument && e.Number <= sqlerr.RegexpPatternTooBig ||
		e.Number == sqlerr.RegexpInvalidCaptureGroupName)
}

// parsePatternFlags reads a match_type argument; of contradicting options the last one counts.
func parsePatternFlags(f patternFlags, s []byte, function string) (patternFlags, error) {
	for _, c := range s {
		switch c {
		case 'c':
			f.fold = false
		case 'i':
			f.fold = true
		case 'm':
			f.multiline = true
		case 'n':
			f.dotAll = true
		case 'u':
			f.unixLines = true
		default:
			return f, errWrongArguments(function)
		}
	}
	return f, nil
}

const (
	maxPatternBytes = 64 << 10
	maxPatternSteps = 100_000 // instructions of an automaton
)

// compilePattern makes an automaton of a pattern in ICU's syntax, or in that of package regexp. Errors: those of
// patterns, 3170, those of an interrupted statement.
func compilePattern(x *Context, pattern string, f patternFlags) (*matcher, error) {
	switch {
	case pattern == "":
		return nil, errPatternArgument
	case len(pattern) > maxPatternBytes:
		return nil, errPatternTooBig
	case !utf8.ValidString(pattern):
		return nil, errPatternArgument
	}
	if err := x.Worked(parseWork * len(pattern)); err != nil {
		return nil, err
	}
	if f.plain {
		return plainMatcher(x, pattern, f.captures)
	}
	tree, err := pat.Parse(pattern, pat.Flags{Fold: f.fold, Multiline: f.multiline, DotAll: f.dotAll, UnixLines: f.unixLines})
	if err != nil {
		return nil, err
	}
	text, needs, ok := tree.GoSyntax(f.search, f.captures)
	var m *matcher
	if ok && !setsTooLarge(text) {
		if m, err = plainMatcher(x, text, f.captures); err == errPatternTooBig {
			err = nil
		}
	}
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		m = &matcher{most: maxSteps}
	}
	if m.names = tree.Names(); m.re != nil && needs == 0 {
		return m, nil
	}
	m.prog, m.needs = tree.Compile(), needs
	m.bytes += m.prog.Bytes()
	return m, x.Worked(m.prog.Bytes())
}

// plainMatcher makes the automaton of a pattern in the syntax of package regexp.
func plainMatcher(x *Context, text string, captures bool) (*matcher, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if e := (*syntax.Error)(nil); errors.As(err, &e) {
		switch e.Code {
		case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
			return nil, errPatternTooBig
		}
		return nil, errPatternArgument
	}
	if patternSteps(tree) > maxPatternSteps {
		return nil, errPatternTooBig
	}
	return matcherOf(x, text, tree, captures)
}

// parseWork is what reading a byte of a pattern counts for.
const parseWork = 100

// patternSteps estimates the size of a pattern's automaton.
func patternSteps(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, s := range re.Sub {
		n += patternSteps(s)
		if n > maxPatternSteps {
			return n
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
