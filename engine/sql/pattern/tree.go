package pattern

// An op is a kind of [node].
type op uint8

const (
	opEmpty      op = iota
	opLiteral       // r
	opAny           // .
	opAnyAll        // . with (?s): also a line terminator, of which \r\n is one
	opAnyUnix       // . with (?d)
	opSet           // set
	opBegin         // ^ and \A
	opBeginLine     // ^ with (?m)
	opBeginUnix     // ^ with (?md)
	opEnd           // $ and \Z
	opEndUnix       // with (?d)
	opEndLine       // $ with (?m)
	opEndLineDX     // $ with (?md)
	opTextEnd       // \z
	opBoundary      // \b
	opNoBoundary    // \B
	opLastEnd       // \G
	opNewline       // \R
	opGrapheme      // \X
	opBackref       // \n, \k<name>
	opCapture       // ( )
	opAtomic        // (?> ) and what a possessive quantifier applies to
	opAhead         // (?= )
	opNotAhead      // (?! )
	opBehind        // (?<= )
	opNotBehind     // (?<! )
	opRepeat        // * + ? {min,max}
	opConcat
	opAlternate
)

// unbounded is the most of a repetition that has none.
const unbounded = -1

// A node is a part of a pattern.
type node struct {
	op       op
	fold     bool // opLiteral, opBackref: case does not matter
	lazy     bool // opRepeat
	mark     bool // opRepeat: it is ??
	r        rune // opLiteral
	group    int  // opCapture, opBackref
	min, max int  // opRepeat
	set      *Set
	subs     []*node
}

// Flags are the options of a match.
type Flags struct {
	Fold      bool // i: case does not matter
	Multiline bool // m: ^ and $ match at lines
	DotAll    bool // s: . matches line terminators
	UnixLines bool // d: only \n ends a line
	comments  bool // x: white space and comments
	words     bool // w: \b by Unicode's rules for words
}

// A Tree is a pattern that was read.
type Tree struct {
	root  *node
	names []string // of the groups, by number; the first is the whole match
	nodes int
}

// Names returns the names of the pattern's groups by number, the whole match first; most have none.
func (t *Tree) Names() []string { return t.names }

// single reports whether a node matches exactly one character, at which it need not look further.
func (n *node) single() bool {
	switch n.op {
	case opAny, opAnyUnix, opAnyAll, opSet:
		return true
	case opLiteral:
		return !n.fold || longFolds[n.r] == ""
	}
	return false
}

// width returns how many characters a node matches, at least and at most; most is unbounded if there is no limit.
func (n *node) width() (least, most int) {
	switch n.op {
	case opLiteral:
		if n.fold {
			return 1, 3 // the longest folding
		}
		return 1, 1
	case opAny, opAnyUnix, opSet:
		return 1, 1
	case opAnyAll, opNewline:
		return 1, 2
	case opGrapheme:
		return 1, unbounded
	case opBackref:
		return 0, unbounded
	case opCapture, opAtomic:
		return n.subs[0].width()
	case opRepeat:
		least, most = n.subs[0].width()
		return times(least, n.min), times(most, n.max)
	case opConcat:
		for _, s := range n.subs {
			l, m := s.width()
			least = min(least+l, maxWidth)
			if most != unbounded {
				if most += m; m == unbounded || most > maxWidth {
					most = unbounded
				}
			}
		}
		return least, most
	case opAlternate:
		least, most = n.subs[0].width()
		for _, s := range n.subs[1:] {
			l, m := s.width()
			least = min(least, l)
			if m == unbounded || most == unbounded {
				most = unbounded
			} else {
				most = max(most, m)
			}
		}
		return least, most
	}
	return 0, 0
}

// maxWidth is beyond which number of characters a width is taken as unbounded.
const maxWidth = 1<<31 - 1

func times(width, n int) int {
	switch {
	case width == 0 || n == 0:
		return 0
	case width == unbounded || n == unbounded || width > maxWidth/n:
		return unbounded
	}
	return width * n
}

// empty reports whether a node may match nothing.
func (n *node) empty() bool {
	least, _ := n.width()
	return least == 0
}

// bounded reports whether a node may stand in look-behind: whether it is known how far it reaches, with all look-ahead
// in it. For ICU ?? makes that unknown.
func (n *node) bounded() bool {
	if _, most := n.width(); most == unbounded || n.mark {
		return false
	}
	if n.op == opBehind || n.op == opNotBehind {
		return true
	}
	for _, s := range n.subs {
		if !s.bounded() {
			return false
		}
	}
	return true
}

// reference returns the largest number of a back reference that is ever looked at.
func (n *node) reference() int {
	if n.op == opBackref {
		return n.group
	}
	most := 0
	if n.op == opRepeat && n.max == 0 {
		return 0
	}
	for _, s := range n.subs {
		most = max(most, s.reference())
	}
	return most
}
