package ast

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Limits of what is given to the grammar, whose recursions and stack have none.
const (
	// MaxDepth is how deep expressions and queries may nest.
	MaxDepth = 4000
	// maxChain is how many operators an expression may have on one level; of AND, OR
	// and set operations alone there may be that many.
	maxChain = 100_000
	// MaxTokens is how many words, literals and signs a statement may have, but for
	// INSERT .. VALUES of literals.
	MaxTokens = 2 << 20
	// maxHints is how many hints are read of a statement's own block, and of others together.
	maxHints = 64
)

// piece is one statement of a text.
type piece struct {
	start, end int   // without spaces and comments around it, if possible
	params     []int // where the ? are
	tokens     int
	into       bool   // whether the word INTO is in it
	rare       bool   // whether words of forms that are not the grammar's are in it
	hint       span   // the hints of the statement's own block
	elsewhere  []span // those of others
	main       int    // where the SELECT ends whose hints are the statement's, or 0
}

// splitter cuts a text into statements, blanks comments and checks limits.
type splitter struct {
	lexer
	mode   Mode
	clean  []byte // a copy with comments blanked, or nil
	pieces []piece

	piece piece
	depth []level
	// after INTERVAL: where its bracket is, if the token before opened or closed it.
	interval bool
	bracket  span
	// point is where a number ended with its decimal point, if it was the token before.
	point int
	// as: the token before is AS.
	as bool
	// misplaced is a clause that the grammar takes where MySQL does not.
	misplaced bool
}

// level counts what could pile up in the grammar's stack or tree between brackets.
type level struct {
	cases  int // open CASE
	chain  int // operators since the last comma, but AND and OR
	logic  int // AND, OR
	prefix int // signs and NOT in a row

	open     int  // where the bracket is
	interval bool // it stands after INTERVAL, and there was no comma
	having   bool // HAVING was there
	defines  bool // it stands in a query that WITH defines
}

// split cuts sql into its statements. The clean text has the length of sql and spaces
// in place of comments, hints among them, so that positions are those of sql.
func split(sql string, mode Mode) (clean string, pieces []piece, err error) {
	s := &splitter{lexer: lexer{s: sql, mode: mode}, mode: mode}
	s.begin()
	for {
		t := s.next()
		switch t.kind {
		case tEOF:
			s.finish()
			if s.live {
				err = syntaxError(sql, len(sql), s.piece.startOr(0))
			}
			if s.clean != nil {
				return string(s.clean), s.pieces, err
			}
			return sql, s.pieces, err
		case tBad:
			return "", s.pieces, syntaxError(sql, t.start, s.piece.startOr(t.start))
		case tHint:
			s.hint(t)
			s.blank(t)
			continue
		case tComment, tVersion, tVersionEnd:
			s.blank(t)
			continue
		}
		if t.kind == tOp && sql[t.start] == ';' {
			s.finish()
			s.begin()
			continue
		}
		if s.piece.start < 0 {
			s.piece.start = t.start
		}
		s.piece.end = t.end
		if !s.partPoint(t) {
			return "", s.pieces, syntaxError(sql, t.start, s.piece.start)
		}
		if err := s.count(t); err != nil {
			return "", s.pieces, err
		}
	}
}

// partPoint puts a tab between a number that ends with its decimal point and a word: over spaces
// the grammar takes the point for that of a qualified name, and a reserved word for a name.
// It reports whether that could be done if it had to.
func (s *splitter) partPoint(t token) bool {
	point := s.point
	s.point = 0
	switch {
	case t.kind == tDecimal && s.s[t.end-1] == '.':
		s.point = t.end
	case t.kind != tWord || point == 0:
	case point == t.start:
		return !reserved[upper(s.s[t.start:t.end])]
	case s.s[t.start-1] != '\n':
		s.blank(token{})
		s.clean[t.start-1] = '\t'
	}
	return true
}

// hint notes a comment of hints if the last token may have some: SELECT, INSERT, REPLACE, UPDATE and DELETE. Those of a query are at its first
// SELECT, behind WITH, what that defines, and brackets.
func (s *splitter) hint(t token) {
	p := &s.piece
	if p.tokens == 0 || !takesHints(s.s[p.start:p.end]) {
		return
	}
	switch own := p.tokens == 1 || p.end == p.main || s.explained(); {
	case own && p.hint.end == 0:
		p.hint = span{t.start, t.end}
	case len(p.elsewhere) < maxHints:
		p.elsewhere = append(p.elsewhere, span{t.start, t.end})
	}
}

// takesHints reports whether the last word of a text is one that hints may follow.
func takesHints(text string) bool {
	for _, verb := range [...]string{"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"} {
		if n := len(text) - len(verb); n >= 0 && foldEqual(text[n:], verb) {
			return n == 0 || classes[text[n-1]]&cSpace != 0 || strings.IndexByte("(/)", text[n-1]) >= 0
		}
	}
	return false
}

// explained reports whether the last token may be the verb of a statement, other than a query, that is explained.
func (s *splitter) explained() bool {
	return s.piece.main == 0 && len(s.depth) == 1 && s.beginsWith("EXPL", "DESC")
}

func (s *splitter) beginsWith(words ...string) bool {
	text := s.s[s.piece.start:s.piece.end]
	return slices.ContainsFunc(words, func(w string) bool { return len(text) >= len(w) && foldEqual(text[:len(w)], w) })
}

func (s *splitter) begin() {
	s.piece = piece{start: -1}
	s.interval, s.bracket, s.as = false, span{}, false
	s.depth = append(s.depth[:0], level{})
}

func (s *splitter) finish() {
	if s.piece.start >= 0 {
		s.pieces = append(s.pieces, s.piece)
	}
}

func (p *piece) startOr(i int) int {
	if p.start < 0 {
		return i
	}
	return p.start
}

// blank overwrites a comment, but not its line ends.
func (s *splitter) blank(t token) {
	if s.clean == nil {
		s.clean = []byte(s.s)
	}
	for i := t.start; i < t.end; i++ {
		if s.clean[i] != '\n' {
			s.clean[i] = ' '
		}
	}
}

// count checks the limits.
func (s *splitter) count(t token) error {
	s.piece.tokens++
	s.intervals(t)
	as := s.as
	s.as = t.kind == tWord && t.end-t.start == 2 && foldEqual(s.s[t.start:t.end], "AS")
	l := &s.depth[len(s.depth)-1]
	prefix := false
	switch t.kind {
	case tParam:
		s.piece.params = append(s.piece.params, t.start)
	case tQuoted, tUserVar, tSysVar:
		if err := validName(s.s[t.start:t.end]); err != nil {
			return err
		}
	case tWord:
		if err := validName(s.s[t.start:t.end]); err != nil {
			return err
		}
		prefix = s.countWord(l, s.s[t.start:t.end])
		if s.misplaced {
			return syntaxError(s.s, t.start, s.piece.start)
		}
	case tOp:
		switch c := s.s[t.start]; c {
		case '(':
			if len(s.depth) >= MaxDepth {
				return tooDeep()
			}
			s.depth = append(s.depth, level{open: t.start, interval: s.interval, defines: l.defines || as && s.piece.main == 0})
			s.interval = false
			return nil
		case ')':
			if len(s.depth) > 1 {
				if l.interval {
					s.closeInterval(l.open, t.start)
				}
				s.depth = s.depth[:len(s.depth)-1]
			}
			return nil
		case ',':
			*l = level{cases: l.cases, having: l.having, defines: l.defines}
		case '.':
			s.spaces(t.end)
		case '{':
			l.chain++
			prefix = true
		case '|', '&':
			if t.end-t.start == 2 {
				l.logic++
				l.chain = 0
				break
			}
			l.chain++
		default:
			l.chain++
			prefix = true
		}
	}
	if prefix {
		l.prefix++
	} else {
		l.prefix = 0
	}
	if l.cases > MaxDepth || l.chain > MaxDepth || l.prefix > MaxDepth || l.logic > maxChain {
		return tooDeep()
	}
	return nil
}

// validName checks that a name is UTF-8; strings may hold any bytes.
func validName(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	i := 0
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return sqlerr.Newf(sqlerr.InvalidCharacterString, "Invalid utf8mb4 character string: '%X'", s[i:min(i+6, len(s))])
}

// closeInterval helps the grammar with INTERVAL (expression) .., which it takes for the
// function of that name: a plus sign before the bracket means nothing but that. Without
// a place for it, the bracket may go if a unit follows.
func (s *splitter) closeInterval(open, end int) {
	if classes[s.s[open-1]]&cSpace == 0 {
		s.bracket = span{open, end}
		return
	}
	s.blank(token{start: open - 1, end: open})
	s.clean[open-1] = '+'
}

// intervals blanks the brackets of INTERVAL(expression) unit: the unit ends the
// expression as well.
func (s *splitter) intervals(t token) {
	if s.bracket.end > 0 && t.kind == tWord && isUnit(s.s[t.start:t.end]) {
		s.blank(token{start: s.bracket.start, end: s.bracket.start + 1})
		s.blank(token{start: s.bracket.end, end: s.bracket.end + 1})
	}
	s.bracket = span{}
	s.interval = t.kind == tWord && t.is(s.s, "INTERVAL") || s.interval && t.isOp(s.s, "(")
}

// isUnit reports whether a word is the unit of an interval.
func isUnit(w string) bool {
	switch upper(w) {
	case "MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "SECOND_MICROSECOND",
		"MINUTE_MICROSECOND", "MINUTE_SECOND", "HOUR_MICROSECOND", "HOUR_SECOND", "HOUR_MINUTE", "DAY_MICROSECOND",
		"DAY_SECOND", "DAY_MINUTE", "DAY_HOUR", "YEAR_MONTH":
		return true
	}
	return false
}

// spaces makes what is between a point and a name plain spaces: after others the grammar
// takes the name for a keyword.
func (s *splitter) spaces(i int) {
	for ; i < len(s.s) && classes[s.s[i]]&cSpace != 0; i++ {
		if s.s[i] != ' ' {
			s.blank(token{})
			s.clean[i] = ' '
		}
	}
}

// What words are to countWord.
const (
	countCase wordClass = 1 + iota
	countEnd
	countAnd
	countLogic
	countBranch
	countPrefix
	countOperator
	countInto
	countSelect
	countFrom
	countHaving
	countRare
)

var countedWords = newWordTable(map[wordClass][]string{
	countCase:     {"CASE"},
	countEnd:      {"END"},
	countAnd:      {"AND"},
	countLogic:    {"OR", "UNION", "EXCEPT", "INTERSECT"},
	countBranch:   {"WHEN", "THEN", "ELSE"},
	countPrefix:   {"NOT", "BINARY", "INTERVAL", "EXISTS"},
	countOperator: {"XOR", "DIV", "MOD", "LIKE", "REGEXP", "RLIKE", "IS", "BETWEEN", "COLLATE", "JOIN"},
	countInto:     {"INTO"},
	countSelect:   {"SELECT"},
	countFrom:     {"FROM", "WHERE"},
	countHaving:   {"HAVING"},
	countRare: {"SOUNDS", "ESCAPE", "ASCII", "UNICODE", "BYTE", "NCHAR", "NATIONAL", "PRECISION",
		"JSON_VALUE", "JSON_TABLE"},
})

// countWord counts a word that is an operator and reports whether it is a prefix.
func (s *splitter) countWord(l *level, w string) bool {
	switch countedWords.find(w) {
	case classNone:
		s.piece.rare = s.piece.rare || w[0] == '_' && introducedSet(w) != 0
	case countCase:
		l.cases++
	case countEnd:
		l.cases = max(l.cases-1, 0)
	case countAnd:
		l.logic++ // but the chain goes on: it may be BETWEEN's
	case countLogic:
		l.logic++
		l.chain = 0
	case countBranch:
		l.chain = 0
	case countPrefix:
		s.piece.rare = s.piece.rare || foldEqual(w, "BINARY")
		return true
	case countOperator:
		l.chain++
	case countInto:
		s.piece.into = true
	case countRare:
		s.piece.rare = true
	case countSelect:
		l.having = false
		if p := &s.piece; p.main == 0 && !l.defines && s.beginsWith("SELECT", "(", "WITH", "EXPL", "DESC") {
			p.main = p.end
		}
	case countHaving:
		l.having = true
	case countFrom:
		s.misplaced = s.misplaced || l.having // the grammar takes HAVING before FROM
	}
	return false
}

func tooDeep() error {
	return sqlerr.Newf(sqlerr.StackOverrunNeedMore, "Thread stack overrun: expressions and queries may nest %d deep",
		MaxDepth)
}

// syntaxError is MySQL's error 1064 at a position of a text; the statement begins at
// start.
func syntaxError(sql string, at, start int) error {
	at = min(max(at, 0), len(sql))
	start = min(max(start, 0), at)
	near := sql[at:]
	if len(near) > 80 {
		near = near[:80]
	}
	near = strings.ToValidUTF8(near, "?")
	line := 1 + strings.Count(sql[start:at], "\n")
	return sqlerr.Syntax(near, line)
}

// unsupported is error 1235.
func unsupported(what string) error {
	return sqlerr.New(sqlerr.NotSupportedYet, what)
}

// paramIndex returns the index of the ? at a position.
func paramIndex(params []int, at int) int {
	return sort.SearchInts(params, at)
}
