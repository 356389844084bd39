package ast

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Limits of what is normalised: longer statements are seldom the same twice.
const (
	normalMaxBytes    = 16 << 10
	normalMaxLiterals = 256
	normalMaxDepth    = 24
)

// Normalize computes the plan-cache key of a text of one SELECT, INSERT, REPLACE,
// UPDATE or DELETE into b, and takes the literals out of it. Key and Literals are
// valid until the next call. ok is false for what is not worth or not fit for caching:
// other statements, several of them, hints, version comments, a ? in the text, what the
// lexer does not know, long texts. Nothing is allocated once the buffers have grown.
//
// The key is the mode, the text with ? for the literals taken out, without comments and
// with spaces folded, a zero byte, and the literals' types (see AppendTypeCode).
//
// A literal is taken out, and becomes a Param in ParseParameterized, unless it
//   - is NULL, TRUE, FALSE, a hex or bit literal, has an introducer or a type before it
//     (DATE'..'), or is an integer beyond BIGINT;
//   - stands in a select list, where it is part of a result column's name (spaces and
//     the like are kept there too, but for a comment that ends the text);
//   - stands in GROUP BY, ORDER BY or HAVING, where it may be a position or part of an
//     expression that must equal one of the select list;
//   - is what the grammar wants literally: lengths of types, fractional digits of NOW,
//     a path after ->, SEPARATOR, ESCAPE, COLLATE;
//   - is an operand that plans look into: a pattern after LIKE or REGEXP, arguments of
//     JSON and REGEXP functions, digits of ROUND and TRUNCATE, the format of STR_TO_DATE,
//     a condition that begins with a constant as in WHERE 1 = 0.
func Normalize(sql string, mode Mode, b *Buffers) (ok bool) {
	n := normalizer{lexer: lexer{s: sql, mode: mode}, b: b}
	return n.run(false)
}

// NormalizePrepared computes the key of a statement to be prepared: as Normalize, but
// the literals stay and ? are allowed, and the types are to be appended by the caller
// once they are known. A plan for it serves texts with the same key, and the other way
// round.
func NormalizePrepared(sql string, mode Mode, b *Buffers) (ok bool) {
	n := normalizer{lexer: lexer{s: sql, mode: mode}, b: b}
	return n.run(true)
}

// Buffers is the memory of Normalize, and its result. The zero Buffers is ready.
type Buffers struct {
	Key []byte
	// Literals are integers, decimals, doubles and strings. Strings alias the text or
	// the Buffers. Types are shared and immutable, but for those of decimals, which
	// lie in the Buffers.
	Literals []Literal

	arena    []byte
	decimals []types.Type
	types    []byte
	spans    []span // where the literals were
}

type span struct{ start, end int }

// AppendTypeCode appends the code of a parameter's type to a key.
func AppendTypeCode(key []byte, t *types.Type) []byte {
	switch t.Class() {
	case types.ClassInt:
		return append(key, 'i')
	case types.ClassUint:
		return append(key, 'u')
	case types.ClassDecimal:
		return append(key, 'd', t.Precision, t.Scale)
	case types.ClassDouble, types.ClassFloat:
		return append(key, 'f')
	case types.ClassBytes:
		if t.IsText() {
			return append(key, 's')
		}
		return append(key, 'b')
	case types.ClassNull:
		return append(key, 'n')
	}
	return append(key, 'k', byte(t.Kind), t.FSP)
}

// normalizer cuts a text into what goes into the key and the literals.
type normalizer struct {
	lexer
	b      *Buffers
	copied int // the text before this is in the key or left out

	depth  int
	levels [normalMaxDepth]normalLevel

	prev     wordClass // of the token before
	call     wordClass // of the word before a bracket
	constant bool      // the operand before the operator was a constant that stays
	operator bool      // the token before is an operator
	afterDot bool      // the token before is a point
}

// normalLevel is what is known of the text between two brackets.
type normalLevel struct {
	inText  bool // in a select list outside
	inKeep  bool // literals stay, because of what is outside
	list    bool // in this level's select list
	keep    bool // in a clause in which literals stay
	between bool // the next AND is that of BETWEEN
}

func (n *normalizer) run(prepared bool) bool {
	b := n.b
	b.Key = append(b.Key[:0], byte(n.mode))
	b.Literals, b.spans = b.Literals[:0], b.spans[:0]
	b.arena, b.decimals, b.types = b.arena[:0], b.decimals[:0], b.types[:0]
	if len(n.s) > normalMaxBytes || strings.IndexByte(n.s, 0) >= 0 {
		return false // a zero byte ends the text in the key
	}
	first := true
	for {
		gap := n.pos
		t := n.next()
		switch t.kind {
		case tEOF:
			n.finish(gap)
			return !first
		case tBad, tHint, tVersion, tVersionEnd, tNString:
			return false
		case tParam:
			if !prepared {
				return false
			}
		case tOp:
			if n.s[t.start] == ';' {
				return !first && n.end(gap)
			}
		}
		if !n.space(gap, t, first) {
			return false
		}
		if t.kind == tComment {
			continue
		}
		if first {
			if !n.begins(t) {
				return false
			}
			first = false
		}
		if !n.token(t, prepared) {
			return false
		}
	}
}

// end finishes the key at a semicolon if nothing follows.
func (n *normalizer) end(gap int) bool {
	for {
		t := n.next()
		switch t.kind {
		case tComment:
			continue
		case tEOF:
			n.finish(gap)
			return true
		}
		return false
	}
}

// finish ends the key with the types.
func (n *normalizer) finish(gap int) {
	n.flush(gap)
	k := n.b.Key
	for len(k) > 1 && classes[k[len(k)-1]]&cSpace != 0 {
		k = k[:len(k)-1]
	}
	k = append(k, 0)
	n.b.Key = append(k, n.b.types...)
}

func (n *normalizer) flush(to int) {
	if to > n.copied {
		n.b.Key = append(n.b.Key, n.s[n.copied:to]...)
		n.copied = to
	}
}

// space folds what is between two tokens: from gap to t. In a select list it stays.
func (n *normalizer) space(gap int, t token, first bool) bool {
	l := &n.levels[n.depth]
	text := l.inText || l.list
	if t.kind == tComment {
		if text && strings.Trim(n.s[t.end:], " \t\r\n;") != "" {
			return false
		}
		n.flush(gap)
		n.copied = t.end
		if k := n.b.Key; len(k) > 1 && k[len(k)-1] != ' ' {
			n.b.Key = append(k, ' ')
		}
		return true
	}
	if first {
		n.copied = t.start
		return true
	}
	if text || t.start == gap || t.start == gap+1 && n.s[gap] == ' ' && n.copied < gap {
		return true
	}
	n.flush(gap)
	n.copied = t.start
	if k := n.b.Key; k[len(k)-1] != ' ' {
		n.b.Key = append(k, ' ')
	}
	return true
}

// begins reports whether a statement that is cached begins with t.
func (n *normalizer) begins(t token) bool {
	if n.s[t.start] == '(' {
		return true
	}
	if t.kind != tWord {
		return false
	}
	switch w := n.s[t.start:t.end]; len(w) {
	case 4:
		return foldEqual(w, "WITH")
	case 6:
		return foldEqual(w, "SELECT") || foldEqual(w, "INSERT") || foldEqual(w, "UPDATE") || foldEqual(w, "DELETE")
	case 7:
		return foldEqual(w, "REPLACE")
	}
	return false
}

func (n *normalizer) token(t token, prepared bool) bool {
	class, operator := classNone, false
	switch t.kind {
	case tWord:
		if !n.dot && !n.afterDot { // else a name, whatever it is
			if class = classify(n.s[t.start:t.end]); class == classFile {
				return false
			}
		}
		n.word(&class)
		n.constant = false
	case tOp:
		return n.op(t)
	case tInt, tDecimal, tDouble, tString:
		if t.kind == tString && n.prev == classString {
			return false // adjacent strings are one
		}
		constant := n.stays()
		if !constant && !prepared && !n.literal(t) {
			constant = true
		}
		n.constant = constant
		if t.kind == tString {
			class = classString
		}
		if len(n.b.Literals) > normalMaxLiterals {
			return false
		}
	default:
		n.constant = false
	}
	n.prev, n.operator, n.afterDot = class, operator, false
	n.call = class
	return true
}

// word follows the clauses. It turns the AND of BETWEEN into an ordinary word.
func (n *normalizer) word(class *wordClass) {
	l := &n.levels[n.depth]
	switch *class {
	case classSelect:
		l.list, l.keep = true, false
	case classClause:
		l.list, l.keep = false, false
	case classKeepClause:
		l.list, l.keep = false, true
	case classWhere:
		l.list, l.keep = false, false
		*class = classCondition
	case classBetween:
		l.between = true
	case classAnd:
		*class = classCondition
		if l.between {
			l.between = false
			*class = classNone
		}
	}
}

// stays reports whether a literal stays in the key because of where it is.
func (n *normalizer) stays() bool {
	l := &n.levels[n.depth]
	if l.inText || l.inKeep || l.list || l.keep {
		return true
	}
	return n.prev == classCondition || n.prev == classKeepNext || n.prev == classKeepText ||
		n.operator && n.constant
}

func (n *normalizer) op(t token) bool {
	n.operator, n.afterDot = false, n.s[t.start] == '.'
	class := classNone
	switch c := n.s[t.start]; c {
	case '(':
		if n.depth+1 >= normalMaxDepth {
			return false
		}
		l := &n.levels[n.depth]
		n.depth++
		n.levels[n.depth] = normalLevel{
			inText: l.inText || l.list,
			inKeep: l.inKeep || l.keep || n.call == classKeepCall || n.call == classKeepNext,
		}
		if n.prev == classCondition {
			class = classCondition
		}
		n.constant = false
	case ')':
		if n.depth == 0 {
			return false
		}
		n.depth--
		n.constant = false
	case ',', '{', '}':
		n.constant = false
		if c == '{' {
			return false
		}
	case '.':
		if t.start == 0 || classes[n.s[t.start-1]]&cSpace != 0 {
			return false // the name before may have been taken for a keyword
		}
		n.constant = false
	case '-':
		if t.end-t.start > 1 { // -> and ->>: a path follows
			class = classKeepNext
		} else if n.prev == classCondition {
			class = classCondition
		}
		n.operator = true
	default:
		if n.prev == classCondition {
			class = classCondition
		}
		n.operator = true
	}
	n.prev, n.call = class, classNone
	return true
}

// literal takes a literal out. It reports whether it could.
func (n *normalizer) literal(t token) bool {
	b := n.b
	s := n.s[t.start:t.end]
	l := Literal{Kind: LiteralString, Type: typeString}
	switch t.kind {
	case tInt:
		v, ok := smallInt(s)
		if !ok {
			return false
		}
		l.Kind, l.Value, l.Type = LiteralInt, types.NewInt(v), typeInt
		b.types = append(b.types, 'i')
	case tDecimal:
		d, read, exact, err := decimal.Parse(unsafe.Slice(unsafe.StringData(s), len(s)))
		if read != len(s) || err != nil || !exact || len(s) > 38 {
			return false
		}
		dt := decimalType(d)
		if dt.Precision = 18; d.Digits() > 18 || dt.Scale > 18 {
			dt.Precision = 38 // few widths, few keys
		}
		b.decimals = append(b.decimals, dt)
		l.Kind, l.Value, l.Type = LiteralDecimal, types.NewDecimal(d), &b.decimals[len(b.decimals)-1]
		b.types = append(b.types, 'd', l.Type.Precision, l.Type.Scale)
	case tDouble:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return false
		}
		l.Kind, l.Value, l.Type = LiteralDouble, types.NewDouble(v), typeDouble
		b.types = append(b.types, 'f')
	case tString:
		l.Value = n.text(s)
		b.types = append(b.types, 's')
	}
	n.flush(t.start)
	n.copied = t.end
	b.Key = append(b.Key, '?')
	b.Literals = append(b.Literals, l)
	b.spans = append(b.spans, span{t.start, t.end})
	return true
}

// smallInt reads a BIGINT; strconv would allocate an error for larger ones.
func smallInt(s string) (int64, bool) {
	if len(s) > 18 {
		return 0, false
	}
	v := int64(0)
	for i := 0; i < len(s); i++ {
		v = v*10 + int64(s[i]-'0')
	}
	return v, true
}

// text returns the value of a string literal.
func (n *normalizer) text(s string) types.Value {
	body := s[1 : len(s)-1]
	for i := 0; i < len(body); i++ {
		if body[i] == s[0] || body[i] == '\\' {
			start := len(n.b.arena)
			n.b.arena = appendUnquoted(n.b.arena, s, n.mode&ModeNoBackslashEscapes == 0)
			return types.NewBytes(n.b.arena[start:len(n.b.arena):len(n.b.arena)])
		}
	}
	return types.NewString(body)
}

// ParseParameterized parses a text for which Normalize was ok such that the literals
// that it takes out are Params with the same indices; Params of the statement is their
// number. For other texts, and for literals where the grammar takes no ?, it fails:
// the text is then to be parsed as it is, and not cached.
func ParseParameterized(sql string, mode Mode) (Statement, error) {
	var b Buffers
	if !Normalize(sql, mode, &b) {
		return nil, unsupported("parameters in this text")
	}
	clean, pieces, err := split(sql, mode)
	if err != nil {
		return nil, err
	}
	if len(pieces) != 1 || len(pieces[0].params) > 0 {
		return nil, unsupported("parameters in this text")
	}
	marked := []byte(clean)
	p := &pieces[0]
	for _, s := range b.spans {
		marked[s.start] = '?'
		for i := s.start + 1; i < s.end; i++ {
			marked[i] = ' '
		}
		p.params = append(p.params, s.start)
	}
	return parseOne(text{sql: sql[p.start:p.end], clean: string(marked[p.start:p.end]), params: p.relative(), mode: mode,
		tokens: p.tokens, into: p.into, rare: p.rare})
}
