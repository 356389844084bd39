package expr

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Regular expressions have ICU's syntax and run on Go's automata, in time linear in the text. patternTranslator rewrites the
// syntax; what an automaton cannot do (look-around, back references, possessive and atomic groups, set operations) is an error.

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
	errPatternEscape    = sqlerr.New(sqlerr.RegexpBadEscapeSequence)
	errPatternFeature   = sqlerr.New(sqlerr.RegexpUnimplemented)
	errPatternParen     = sqlerr.New(sqlerr.RegexpMismatchedParen)
	errPatternInterval  = sqlerr.New(sqlerr.RegexpBadInterval)
	errPatternMaxMin    = sqlerr.New(sqlerr.RegexpMaxLtMin)
	errPatternBracket   = sqlerr.New(sqlerr.RegexpMissingCloseBracket)
	errPatternRange     = sqlerr.New(sqlerr.RegexpInvalidRange)
	errPatternTooBig    = sqlerr.New(sqlerr.RegexpPatternTooBig)
	errPatternGroupName = sqlerr.New(sqlerr.RegexpInvalidCaptureGroupName)
)

func errPatternSyntax(at int) error {
	return sqlerr.New(sqlerr.RegexpRuleSyntax, 1, at)
}

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
	maxPatternDepth = 500
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
	text := pattern
	if !f.plain {
		t := patternTranslator{in: pattern, patternFlags: f}
		var err error
		if text, err = t.translate(); err != nil {
			return nil, err
		}
	}
	if setsTooLarge(text, f.fold) {
		return nil, errPatternTooBig
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, patternError(err)
	}
	if patternSteps(tree) > maxPatternSteps {
		return nil, errPatternTooBig
	}
	return matcherOf(x, text, tree, f.captures)
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

func patternError(err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return errPatternArgument
	}
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return errPatternParen
	case syntax.ErrMissingBracket:
		return errPatternBracket
	case syntax.ErrInvalidCharRange:
		return errPatternRange
	case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		return errPatternTooBig
	case syntax.ErrInvalidEscape:
		return errPatternEscape
	case syntax.ErrInvalidNamedCapture:
		return errPatternGroupName
	}
	return errPatternSyntax(1)
}

// A patternTranslator rewrites ICU's syntax as Go's.
type patternTranslator struct {
	patternFlags
	in    string
	at    int
	out   strings.Builder
	outer []patternFlags // of the groups that are open
	atom  bool           // what a quantifier would apply to is there
}

// What ICU's classes are in Go's syntax, without brackets.
const (
	lineEnds    = `\n-\r\x{85}\x{2028}\x{2029}`
	wordClass   = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}`
	spaceClass  = `\t-\r\x{85}\p{Z}`
	hspaceClass = `\t\p{Zs}`
)

func (t *patternTranslator) translate() (string, error) {
	if t.fold {
		t.out.WriteString("(?i)")
	}
	for t.at < len(t.in) {
		if err := t.next(); err != nil {
			return "", err
		}
	}
	if len(t.outer) > 0 {
		return "", errPatternParen
	}
	return t.out.String(), nil
}

// next translates one element.
func (t *patternTranslator) next() error {
	c := t.in[t.at]
	t.at++
	switch c {
	case '.':
		t.dot()
	case '^':
		t.anchor(`(?m:^)`, `\A`)
	case '$':
		t.anchor(`(?m:$)`, t.textEnd())
	case '(':
		return t.group()
	case ')':
		if len(t.outer) == 0 {
			return errPatternParen
		}
		t.patternFlags = t.outer[len(t.outer)-1]
		t.outer = t.outer[:len(t.outer)-1]
		t.put(")", true)
	case '[':
		t.atom = true
		return t.bracket(0)
	case '*', '+', '?':
		return t.quantifier(string(c))
	case '{':
		return t.repeat()
	case '|':
		t.put("|", false)
	case '\\':
		return t.escape()
	default:
		r, n := utf8.DecodeRuneInString(t.in[t.at-1:])
		t.at += n - 1
		t.literal(r)
	}
	return nil
}

func (t *patternTranslator) put(s string, atom bool) {
	t.out.WriteString(s)
	t.atom = atom
}

func (t *patternTranslator) literal(r rune) { t.put(regexp.QuoteMeta(string(r)), true) }

func (t *patternTranslator) dot() {
	switch {
	case t.dotAll:
		t.put("(?s:.)", true)
	case t.unixLines:
		t.put(`[^\n]`, true)
	default:
		t.put("[^"+lineEnds+"]", true)
	}
}

func (t *patternTranslator) anchor(lines, text string) {
	if t.multiline {
		text = lines
	}
	t.put(text, true)
}

// textEnd is $ and \Z, which also match before a line terminator at the end. An automaton cannot look ahead: where the place of
// the match matters they match at the very end only.
func (t *patternTranslator) textEnd() string {
	switch {
	case t.search:
		return `\z`
	case t.unixLines:
		return `(?:\n?\z)`
	}
	return `(?:(?:\r\n|[` + lineEnds + `])?\z)`
}

// group translates what follows an opening parenthesis.
func (t *patternTranslator) group() error {
	if len(t.outer) >= maxPatternDepth {
		return errPatternTooBig
	}
	rest := t.in[t.at:]
	if !strings.HasPrefix(rest, "?") {
		t.outer = append(t.outer, t.patternFlags)
		t.put("(", false)
		return nil
	}
	switch {
	case strings.HasPrefix(rest, "?:"):
		t.at += 2
		t.outer = append(t.outer, t.patternFlags)
		t.put("(?:", false)
		return nil
	case strings.HasPrefix(rest, "?#"):
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return errPatternParen
		}
		t.at += end + 1
		return nil
	case strings.HasPrefix(rest, "?="), strings.HasPrefix(rest, "?!"), strings.HasPrefix(rest, "?>"),
		strings.HasPrefix(rest, "?<="), strings.HasPrefix(rest, "?<!"):
		return errPatternFeature
	case strings.HasPrefix(rest, "?<"):
		end := strings.IndexByte(rest, '>')
		if end < 3 {
			return errPatternGroupName
		}
		t.at += end + 1
		t.outer = append(t.outer, t.patternFlags)
		t.put("(?P"+rest[1:end+1], false)
		return nil
	}
	t.at++
	return t.inlineFlags()
}

// inlineFlags translates (?flags) and (?flags:.
func (t *patternTranslator) inlineFlags() error {
	f, on := t.patternFlags, true
	for t.at < len(t.in) {
		c := t.in[t.at]
		t.at++
		switch c {
		case 'i':
			f.fold = on
		case 's':
			f.dotAll = on
		case 'm':
			f.multiline = on
		case 'd':
			f.unixLines = on
		case '-':
			on = false
		case ')', ':':
			fold := "(?i"
			if !f.fold {
				fold = "(?-i"
			}
			if c == ':' {
				t.outer = append(t.outer, t.patternFlags)
			}
			t.patternFlags = f
			t.put(fold+string(c), false)
			return nil
		case 'x', 'w':
			return errPatternFeature
		default:
			return errPatternSyntax(t.at)
		}
	}
	return errPatternParen
}

// quantifier writes op, which may be lazy.
func (t *patternTranslator) quantifier(op string) error {
	if !t.atom {
		return errPatternSyntax(t.at)
	}
	if t.at < len(t.in) {
		switch t.in[t.at] {
		case '?':
			op += "?"
			t.at++
		case '+':
			return errPatternFeature
		}
	}
	t.put(op, false)
	return nil
}

// repeat translates {n}, {n,} and {n,m}.
func (t *patternTranslator) repeat() error {
	end := strings.IndexByte(t.in[t.at:], '}')
	if end < 0 {
		return errPatternInterval
	}
	body := t.in[t.at : t.at+end]
	t.at += end + 1
	low, high, comma := strings.Cut(strings.ReplaceAll(body, " ", ""), ",")
	n, ok := parseRepeat(low)
	if !ok {
		return errPatternInterval
	}
	op := "{" + strconv.Itoa(n)
	if comma {
		op += ","
		if high != "" {
			m, ok := parseRepeat(high)
			switch {
			case !ok:
				return errPatternInterval
			case m < n:
				return errPatternMaxMin
			}
			op += strconv.Itoa(m)
		}
	}
	return t.quantifier(op + "}")
}

func parseRepeat(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// escape translates what follows a backslash outside of brackets.
func (t *patternTranslator) escape() error {
	if t.at >= len(t.in) {
		return errPatternEscape
	}
	c := t.in[t.at]
	switch c {
	case 'A':
		t.at++
		t.put(`\A`, true)
		return nil
	case 'z':
		t.at++
		t.put(`\z`, true)
		return nil
	case 'Z':
		t.at++
		t.put(t.textEnd(), true)
		return nil
	case 'b', 'B':
		t.at++
		t.put(`\`+string(c), true)
		return nil
	case 'R':
		t.at++
		t.put(`(?:\r\n|[`+lineEnds+`])`, true)
		return nil
	case 'X':
		t.at++
		t.put(`(?s:\r\n|\P{M}\p{M}*|\p{M}+)`, true)
		return nil
	case 'Q':
		return t.quoted()
	case 'G', 'N', 'k', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return errPatternFeature
	case 'W':
		t.at++
		t.put("[^"+wordClass+"]", true)
		return nil
	case 'S':
		t.at++
		t.put("[^"+spaceClass+"]", true)
		return nil
	case 'H':
		t.at++
		t.put("[^"+hspaceClass+"]", true)
		return nil
	case 'V':
		t.at++
		t.put("[^"+lineEnds+"]", true)
		return nil
	}
	class, r, err := t.classEscape()
	if err != nil {
		return err
	}
	if class != "" {
		t.put("["+class+"]", true)
	} else {
		t.literal(r)
	}
	return nil
}

// quoted translates \Q..\E.
func (t *patternTranslator) quoted() error {
	text := t.in[t.at+1:]
	end := strings.Index(text, `\E`)
	if end >= 0 {
		t.at += 1 + end + 2
		text = text[:end]
	} else {
		t.at = len(t.in)
	}
	for _, r := range text {
		t.literal(r)
	}
	return nil
}
