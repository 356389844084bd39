package pattern

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Needs are what a subject must be for package regexp to give the answers that ICU does.
type Needs uint8

const (
	// NeedsASCII: \b and \X.
	NeedsASCII Needs = 1 << iota
	// NeedsNoCRLF: what takes both as one.
	NeedsNoCRLF
	// NeedsNoLastLineEnd: $ and \Z match before a line terminator at the end, too.
	NeedsNoLastLineEnd
	// NeedsUnixLines: ^ and $ match at all line terminators, of which package regexp knows one.
	NeedsUnixLines
	// NeedsNoLongFold: characters that are alike several others without regard to case.
	NeedsNoLongFold
)

// Met reports whether a subject is such.
func (n Needs) Met(s []byte) bool {
	if n == 0 || len(s) == 0 {
		return true
	}
	switch {
	case n&NeedsASCII != 0 && !isASCII(s),
		n&NeedsNoCRLF != 0 && bytes.Contains(s, []byte("\r\n")),
		n&NeedsNoLastLineEnd != 0 && endsLine(s),
		n&NeedsUnixLines != 0 && (endsLine(s) || bytes.ContainsAny(s, "\r\v\f\u0085\u2028\u2029")):
		return false
	case n&NeedsNoLongFold == 0 || isASCII(s):
		return true
	}
	for _, r := range string(s) {
		if foldsLong(r) {
			return false
		}
	}
	return true
}

func isASCII(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func endsLine(s []byte) bool {
	r, _ := utf8.DecodeLastRune(s)
	return isLineEnd(r)
}

func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

const (
	// goMaxRepeat is up to how much package regexp repeats, also by repetitions within each other.
	goMaxRepeat = 1000
	// goMaxDepth is how deep groups may be nested there.
	goMaxDepth = 900
	// goMaxText is how long its text may become, in which sets are written out.
	goMaxText = 1 << 20
)

// A goWriter writes a tree in the syntax of package regexp.
type goWriter struct {
	out      strings.Builder
	captures bool
	places   bool // where matches begin and end matters, not only that there are some
	names    []string
	needs    Needs
	wrong    bool   // it cannot be done
	run      []rune // folded, of the literals just written
}

// GoSyntax returns the pattern in the syntax of package regexp, and what it needs of subjects; ok is false if that
// package cannot match it with the same answers. places: the places of matches are asked for; captures: those of
// groups, too.
func (t *Tree) GoSyntax(places, captures bool) (text string, needs Needs, ok bool) {
	w := goWriter{captures: captures, places: places, names: t.names}
	w.write(t.root, 1, 0)
	w.endRun()
	if w.wrong || w.out.Len() > goMaxText {
		return "", 0, false
	}
	return w.out.String(), w.needs, true
}

// endRun looks at the literals that stood in a row: a part of them may be what one character folds to.
func (w *goWriter) endRun() {
	if len(w.run) > 1 && hasLongFold(w.run) {
		w.needs |= NeedsNoLongFold
	}
	w.run = w.run[:0]
}

func (w *goWriter) put(s string) { w.out.WriteString(s) }

// write writes a node within repetitions that make it so many.
func (w *goWriter) write(n *node, copies, depth int) {
	if w.out.Len() > goMaxText || depth > goMaxDepth {
		w.wrong = true
	}
	if w.wrong {
		return
	}
	if n.op != opConcat && (n.op != opLiteral || !n.fold) {
		w.endRun()
	}
	switch n.op {
	case opEmpty:
		w.put("(?:)")
	case opLiteral:
		w.literal(n)
	case opSet:
		w.set(n.set)
	case opCapture:
		w.capture(n, copies, depth)
		w.endRun()
	case opRepeat:
		w.repeat(n, copies, depth)
		w.endRun()
	case opConcat:
		w.concat(n, copies, depth)
	case opAlternate:
		w.put("(?:")
		for i, s := range n.subs {
			if i > 0 {
				w.put("|")
			}
			w.write(s, copies, depth+1)
			w.endRun()
		}
		w.put(")")
	default:
		w.simple(n.op)
	}
}

// simple writes what has no parts.
func (w *goWriter) simple(o op) {
	switch o {
	case opAny:
		w.put("[^" + lineEndsText + "]")
	case opAnyUnix:
		w.put(`[^\n]`)
	case opAnyAll:
		w.needs |= NeedsNoCRLF
		w.put("(?s:.)")
	case opBegin:
		w.put(`\A`)
	case opBeginLine, opBeginUnix:
		w.needs |= NeedsUnixLines
		w.put("(?m:^)")
	case opEnd, opEndUnix:
		w.needs |= NeedsNoLastLineEnd
		w.put(`\z`)
	case opEndLine:
		w.needs |= NeedsUnixLines
		w.put("(?m:$)")
	case opEndLineDX:
		w.put("(?m:$)")
	case opTextEnd:
		w.put(`\z`)
	case opBoundary:
		w.needs |= NeedsASCII
		w.put(`\b`)
	case opNoBoundary:
		w.needs |= NeedsASCII
		w.put(`\B`)
	case opNewline:
		w.needs |= NeedsNoCRLF
		w.put("[" + lineEndsText + "]")
	case opGrapheme:
		w.needs |= NeedsASCII | NeedsNoCRLF
		w.put("(?s:.)")
	default:
		w.wrong = true
	}
}

func (w *goWriter) concat(n *node, copies, depth int) {
	if len(n.subs) == 0 {
		w.put("(?:)")
	}
	for _, s := range n.subs {
		if s.op == opConcat { // a group without a number
			w.endRun()
			w.put("(?:")
			w.write(s, copies, depth+1)
			w.put(")")
			w.endRun()
			continue
		}
		w.write(s, copies, depth)
	}
}

func (w *goWriter) literal(n *node) {
	if !n.fold {
		w.put(regexp.QuoteMeta(string(n.r)))
		return
	}
	if foldsLong(n.r) || sameFold[n.r] != 0 {
		w.wrong = true
		return
	}
	w.run = append(w.run, foldRune(n.r))
	w.put("(?i:" + regexp.QuoteMeta(string(n.r)) + ")")
}

func (w *goWriter) set(s *Set) {
	switch {
	case s.text != "":
		w.put("[" + s.text + "]")
	case len(s.ranges) == 0:
		w.put(`[^\x{0}-\x{10ffff}]`)
	default:
		w.put("[")
		for i := 0; i+1 < len(s.ranges); i += 2 {
			w.put(`\x{` + strconv.FormatInt(int64(s.ranges[i]), 16) + `}`)
			if s.ranges[i+1] > s.ranges[i] {
				w.put(`-\x{` + strconv.FormatInt(int64(s.ranges[i+1]), 16) + `}`)
			}
		}
		w.put("]")
	}
}

func (w *goWriter) capture(n *node, copies, depth int) {
	switch {
	case !w.captures:
		w.put("(?:")
	case w.names[n.group] != "":
		w.put("(?P<" + w.names[n.group] + ">")
	default:
		w.put("(")
	}
	w.write(n.subs[0], copies, depth+1)
	w.put(")")
}

// repeat writes a repetition. What is repeated without limit and may match nothing does not end at the same place for
// both.
func (w *goWriter) repeat(n *node, copies, depth int) {
	sub := n.subs[0]
	if w.places && n.max == unbounded && sub.empty() {
		w.wrong = true
		return
	}
	times := max(n.min, n.max, 1)
	if times > goMaxRepeat || copies*times > goMaxRepeat {
		w.wrong = true
		return
	}
	w.put("(?:")
	w.write(sub, copies*times, depth+1)
	w.put(")")
	switch {
	case n.min == 0 && n.max == unbounded:
		w.put("*")
	case n.min == 1 && n.max == unbounded:
		w.put("+")
	case n.min == 0 && n.max == 1:
		w.put("?")
	case n.max == unbounded:
		w.put("{" + strconv.Itoa(n.min) + ",}")
	default:
		w.put("{" + strconv.Itoa(n.min) + "," + strconv.Itoa(n.max) + "}")
	}
	if n.lazy {
		w.put("?")
	}
}
