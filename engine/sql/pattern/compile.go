package pattern

import (
	"unicode/utf8"
)

// An instruction's code. Those before codeSplit match characters.
type code uint8

const (
	codeRune     code = iota // r
	codeFoldRune             // a character that folds to r
	codeSet                  // set
	codeAny                  // .
	codeAnyUnix
	codeAnyAll
	codeText     // text, byte for byte
	codeFoldText // runes, folded
	codeAssert   // check, which looks at the place
	codeNewline
	codeGrapheme
	codeBackref     // of group x
	codeFoldBackref // without regard to case

	codeSplit     // go on; if that fails, at x
	codeJump      // to x
	codeSet1      // slot x to the place
	codeClear     // slot x to none
	codeCapture   // group x has been matched from its begin on
	codeLoop      // again from x on, if that fails go on
	codeLoopMoved // the same, if the place is not that of slot y
	codeLazyLoop  // go on, if that fails again from x on; as codeLoopMoved if y is a slot
	codeSpan      // the instruction behind, from min to max times, as often as it can
	codeGiveBack  // once less than before, down to slot x
	codeLazySpan  // the instruction behind, min times, and more often if need be
	codeMore      // once more, if slot x is less than max
	codeCount     // begin to count in slot x, see counter
	codeCounted   // count
	codeMark      // the begin of what is atomic, in slot x
	codeCut       // the end of it: nothing since then is tried again
	codeAhead     // the same, for look-ahead: slot x+1 is the place
	codeAheadEnd
	codeNotAhead // look-ahead that has to fail; then go on at y
	codeFail     // give up what was tried since slot x
	codeBehind   // the begin of look-behind, slots x to x+3
	codeBehindTry
	codeBehindEnd
	codeNotBehindEnd
	codeMatch
	codeNever
)

// An inst is an instruction.
type inst struct {
	code     code
	lazy     bool
	pairs    bool // codeGiveBack: \r\n is one
	check    op   // codeAssert
	r        rune
	x, y     int32
	min, max int32
	set      *Set
	text     []byte
	runes    []rune
}

// instBytes is what an instruction takes, roughly.
const instBytes = 112

// A Program is a pattern for a [Machine].
type Program struct {
	insts  []inst
	slots  int // of a frame: three for each group, counters, places
	groups int // with the whole match
	first  *[256]bool
	anchor bool // it matches at the text's beginning only
	bytes  int
}

// Bytes returns how much memory a program takes, roughly.
func (p *Program) Bytes() int { return p.bytes }

// Groups returns how many groups a program has, with the whole match.
func (p *Program) Groups() int { return p.groups }

// slotLimit is the slot of the place behind which nothing may be looked at: the text's end, or within look-behind its own.
const slotLimit = 0

// A compiler makes a program of a tree.
type compiler struct {
	insts []inst
	slots int
}

// Compile returns the program of a pattern.
func (t *Tree) Compile() *Program {
	c := compiler{slots: 1 + 3*len(t.names)}
	c.node(t.root)
	c.add(inst{code: codeMatch})
	p := &Program{insts: c.insts, slots: c.slots, groups: len(t.names)}
	var first [256]bool
	if !t.root.first(&first) {
		p.first = &first
	}
	p.anchor = t.root.anchored()
	p.bytes = instBytes*cap(c.insts) + 256
	for i := range p.insts {
		in := &p.insts[i]
		p.bytes += len(in.text) + 4*len(in.runes)
		if in.set != nil {
			p.bytes += 4 * len(in.set.ranges)
		}
	}
	return p
}

func (c *compiler) add(in inst) int32 {
	c.insts = append(c.insts, in)
	return int32(len(c.insts) - 1)
}

func (c *compiler) here() int32 { return int32(len(c.insts)) }

func (c *compiler) slot(n int) int32 {
	s := c.slots
	c.slots += n
	return int32(s)
}

// startSlot is the first of the three slots of a group: its begin, its end, and where it has begun while it is matched.
func startSlot(group int) int32 { return int32(1 + 3*group) }

func (c *compiler) node(n *node) {
	switch n.op {
	case opEmpty:
	case opConcat:
		c.concat(n)
	case opAlternate:
		c.alternate(n)
	case opCapture:
		c.add(inst{code: codeSet1, x: startSlot(n.group) + 2})
		c.node(n.subs[0])
		c.add(inst{code: codeCapture, x: startSlot(n.group)})
	case opAtomic:
		c.atomic(n)
	case opRepeat:
		c.repeat(n)
	case opAhead:
		s := c.slot(2)
		c.add(inst{code: codeAhead, x: s})
		c.node(n.subs[0])
		c.add(inst{code: codeAheadEnd, x: s})
	case opNotAhead:
		s := c.slot(1)
		at := c.add(inst{code: codeNotAhead, x: s})
		c.node(n.subs[0])
		c.add(inst{code: codeFail, x: s})
		c.insts[at].y = c.here()
	case opBehind, opNotBehind:
		c.behind(n)
	default:
		c.add(c.simple(n))
	}
}

// simple returns the instruction of a node without parts.
func (c *compiler) simple(n *node) inst {
	switch n.op {
	case opLiteral:
		switch {
		case !n.fold:
			return inst{code: codeRune, r: n.r}
		case foldsLong(n.r):
			return inst{code: codeFoldText, runes: appendFold(nil, n.r)}
		}
		return inst{code: codeFoldRune, r: foldRune(n.r)}
	case opSet:
		return inst{code: codeSet, set: n.set}
	case opAny:
		return inst{code: codeAny}
	case opAnyUnix:
		return inst{code: codeAnyUnix}
	case opAnyAll:
		return inst{code: codeAnyAll}
	case opNewline:
		return inst{code: codeNewline}
	case opGrapheme:
		return inst{code: codeGrapheme}
	case opBackref:
		if n.fold {
			return inst{code: codeFoldBackref, x: startSlot(n.group)}
		}
		return inst{code: codeBackref, x: startSlot(n.group)}
	}
	return inst{code: codeAssert, check: n.op}
}

// concat compiles a sequence, in which literals that follow each other become one text.
func (c *compiler) concat(n *node) {
	for i := 0; i < len(n.subs); {
		s := n.subs[i]
		end := i
		for end < len(n.subs) && n.subs[end].op == opLiteral && n.subs[end].fold == s.fold {
			end++
		}
		if end-i < 2 || s.op != opLiteral {
			c.node(s)
			i++
			continue
		}
		in := inst{code: codeText}
		for _, l := range n.subs[i:end] {
			if s.fold {
				in.code = codeFoldText
				in.runes = appendFold(in.runes, l.r)
			} else {
				in.text = utf8.AppendRune(in.text, l.r)
			}
		}
		c.add(in)
		i = end
	}
}

func (c *compiler) alternate(n *node) {
	jumps := make([]int32, 0, len(n.subs))
	for i, s := range n.subs {
		if i == len(n.subs)-1 {
			c.node(s)
			break
		}
		split := c.add(inst{code: codeSplit})
		c.node(s)
		jumps = append(jumps, c.add(inst{code: codeJump}))
		c.insts[split].x = c.here()
	}
	for _, j := range jumps {
		c.insts[j].x = c.here()
	}
}

func (c *compiler) atomic(n *node) {
	if r := n.subs[0]; r.op == opRepeat && r.subs[0].single() && !r.lazy {
		c.span(r, true)
		return
	}
	s := c.slot(1)
	c.add(inst{code: codeMark, x: s})
	c.node(n.subs[0])
	c.add(inst{code: codeCut, x: s})
}

// span compiles a repetition of what matches one character, which needs no state for each.
func (c *compiler) span(n *node, atomic bool) {
	s := c.slot(1)
	in := inst{code: codeSpan, x: s, min: int32(n.min), max: int32(n.max)}
	if n.lazy {
		in.code = codeLazySpan
	}
	c.add(in)
	c.add(c.simple(n.subs[0]))
	if n.lazy {
		c.add(inst{code: codeMore, x: s, min: int32(n.min), max: int32(n.max)})
	} else if !atomic {
		c.add(inst{code: codeGiveBack, x: s, pairs: n.subs[0].op == opAnyAll})
	}
}

func (c *compiler) repeat(n *node) {
	sub := n.subs[0]
	switch {
	case n.max == 0:
	case sub.single():
		c.span(n, false)
	case n.min == 1 && n.max == 1:
		c.node(sub)
	case n.min == 0 && n.max == 1:
		c.optional(n)
	case n.min <= 1 && n.max == unbounded && !n.lazy:
		c.greedy(n)
	case n.min <= 1 && n.max == unbounded:
		c.reluctant(n)
	default:
		s := c.slot(2)
		begin := c.add(inst{code: codeCount, lazy: n.lazy, x: s, min: int32(n.min), max: int32(n.max)})
		c.node(sub)
		c.add(inst{code: codeCounted, lazy: n.lazy, x: s, y: begin + 1, min: int32(n.min), max: int32(n.max)})
		c.insts[begin].y = c.here()
	}
}

func (c *compiler) optional(n *node) {
	split := c.add(inst{code: codeSplit})
	if !n.lazy {
		c.node(n.subs[0])
		c.insts[split].x = c.here()
		return
	}
	jump := c.add(inst{code: codeJump})
	c.insts[split].x = c.here()
	c.node(n.subs[0])
	c.insts[jump].x = c.here()
}

// greedy compiles x* and x+.
func (c *compiler) greedy(n *node) {
	split := int32(-1)
	if n.min == 0 {
		split = c.add(inst{code: codeSplit})
	}
	begin := c.here()
	loop := inst{code: codeLoop, x: begin}
	if n.subs[0].empty() {
		loop.code, loop.y = codeLoopMoved, c.slot(1)
		c.add(inst{code: codeSet1, x: loop.y})
	}
	c.node(n.subs[0])
	c.add(loop)
	if split >= 0 {
		c.insts[split].x = c.here()
	}
}

// reluctant compiles x*? and x+?.
func (c *compiler) reluctant(n *node) {
	loop := inst{code: codeLazyLoop}
	empty := n.subs[0].empty()
	if empty {
		loop.y = c.slot(1)
	}
	jump := int32(-1)
	if n.min == 0 {
		if empty {
			c.add(inst{code: codeClear, x: loop.y})
		}
		jump = c.add(inst{code: codeJump})
	}
	loop.x = c.here()
	if empty {
		c.add(inst{code: codeSet1, x: loop.y})
	}
	c.node(n.subs[0])
	if jump >= 0 {
		c.insts[jump].x = c.here()
	}
	c.add(loop)
}

func (c *compiler) behind(n *node) {
	least, most := n.subs[0].width()
	s := c.slot(4)
	c.add(inst{code: codeBehind, x: s})
	try := c.add(inst{code: codeBehindTry, x: s, y: -1, min: int32(least), max: int32(most)})
	c.node(n.subs[0])
	if n.op == opBehind {
		c.add(inst{code: codeBehindEnd, x: s})
		return
	}
	c.add(inst{code: codeNotBehindEnd, x: s})
	c.insts[try].y = c.here()
}

// anchored reports whether a node matches at the beginning of the text only.
func (n *node) anchored() bool {
	switch n.op {
	case opBegin:
		return true
	case opConcat:
		return len(n.subs) > 0 && n.subs[0].anchored()
	case opCapture, opAtomic:
		return n.subs[0].anchored()
	case opAlternate:
		for _, s := range n.subs {
			if !s.anchored() {
				return false
			}
		}
		return true
	}
	return false
}

// first adds the bytes with which a match of a node may begin; empty: it may match nothing, so that others may follow.
func (n *node) first(to *[256]bool) (empty bool) {
	switch n.op {
	case opLiteral:
		n.firstOfLiteral(to)
		return false
	case opSet:
		firstOfSet(n.set, to)
		return false
	case opAny, opAnyUnix, opAnyAll, opNewline, opGrapheme:
		for i := range to {
			to[i] = true
		}
		return false
	case opCapture, opAtomic:
		return n.subs[0].first(to)
	case opRepeat:
		return n.max == 0 || n.subs[0].first(to) || n.min == 0
	case opConcat:
		for _, s := range n.subs {
			if !s.first(to) {
				return false
			}
		}
		return true
	case opAlternate:
		for _, s := range n.subs {
			empty = s.first(to) || empty
		}
		return empty
	}
	return true
}

func (n *node) firstOfLiteral(to *[256]bool) {
	if !n.fold {
		to[utf8.AppendRune(nil, n.r)[0]] = true
		return
	}
	for i := utf8.RuneSelf; i < 256; i++ {
		to[i] = true
	}
	for _, r := range appendFold(nil, n.r)[:1] {
		for c := rune(0); c < utf8.RuneSelf; c++ {
			if foldRune(c) == r {
				to[c] = true
			}
		}
	}
}

func firstOfSet(s *Set, to *[256]bool) {
	for c := rune(0); c < utf8.RuneSelf; c++ {
		if s.has(c) {
			to[c] = true
		}
	}
	if n := len(s.ranges); n > 0 && s.ranges[n-1] >= utf8.RuneSelf {
		for i := utf8.RuneSelf; i < 256; i++ {
			to[i] = true
		}
	}
}
