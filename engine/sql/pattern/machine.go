package pattern

import (
	"bytes"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Limits bound the matches of a call, as MySQL's variables do.
type Limits struct {
	Time  int // of regexp_time_limit: ten thousands of saved states; 0: none
	Stack int // of regexp_stack_limit: bytes; 0: none
}

const (
	// statesOfTime is how many saved states are one unit of a time limit.
	statesOfTime = 10_000
	// stepsOfState is how many steps that save none count for one.
	stepsOfState = 1 << 10
	// stepsBetween is after how many steps the caller is asked whether to go on.
	stepsBetween = 1 << 15
	// slotBytes is what a slot of a frame counts for, in a stack limit. Each frame has a few that ICU's have not.
	slotBytes = 4
	moreSlots = 4
	// keptStack is up to how many slots a stack is kept for the next match.
	keptStack = 16 << 10
)

// A Machine matches programs. It belongs to one task at a time and is kept for its memory.
type Machine struct {
	Limits Limits
	// Worked is told of steps now and then; its error ends the match. Grow is told of memory before it is taken.
	Worked func(steps int) error
	Grow   func(bytes int) error

	prog    *Program
	s       []byte
	cur     []int32 // slots of the state
	stack   []int32 // frames of saved states: the place, the instruction, the slots
	most    int     // slots that the stack may have
	states  int     // saved so far
	steps   int     // since the last time that Worked was told
	total   int     // before that
	lastEnd int     // of the match before
}

// Begin prepares for the matches of a program in a subject.
func (m *Machine) Begin(p *Program, s []byte) {
	m.prog, m.s = p, s
	m.states, m.steps, m.total, m.lastEnd = 0, 0, 0, 0
	if cap(m.cur) < p.slots {
		m.cur = make([]int32, p.slots)
	}
	m.cur = m.cur[:p.slots]
	m.most = maxStack
	if frame := p.slots + 2; m.Limits.Stack > 0 {
		m.most = min(maxStack, m.Limits.Stack/(slotBytes*(frame-moreSlots))*frame)
	}
	if cap(m.stack) > keptStack {
		m.stack = nil
	}
}

// Find returns the places of the first match that begins at byte offset from or later, as package regexp gives them, or
// nil. Errors: 3698, 3699, those of Worked and Grow.
func (m *Machine) Find(from int) (loc []int, err error) {
	for at := from; ; {
		if f := m.prog.first; f != nil {
			begin := at
			for at < len(m.s) && !f[m.s[at]] {
				at++
			}
			if err := m.step(1 + (at-begin)/8); err != nil {
				return nil, err
			}
			if at >= len(m.s) {
				return nil, nil
			}
		}
		if m.prog.anchor && at > 0 {
			return nil, nil
		}
		is, err := m.matchAt(at)
		if err != nil {
			return nil, err
		}
		if is {
			return m.places(), nil
		}
		if at >= len(m.s) {
			return nil, nil
		}
		_, n := utf8.DecodeRune(m.s[at:])
		at += n
	}
}

// places returns the groups of the match, and notes its end.
func (m *Machine) places() []int {
	loc := make([]int, 0, 2*m.prog.groups)
	for g := range m.prog.groups {
		s := startSlot(g)
		loc = append(loc, int(m.cur[s]), int(m.cur[s+1]))
	}
	m.lastEnd = loc[1]
	return loc
}

// step counts steps.
func (m *Machine) step(n int) error {
	if m.steps += n; m.steps < stepsBetween {
		return nil
	}
	return m.rest()
}

func (m *Machine) rest() error {
	n := m.steps
	m.steps = 0
	m.total += n
	if m.Limits.Time > 0 && m.states+m.total/stepsOfState >= m.Limits.Time*statesOfTime {
		return sqlerr.New(sqlerr.RegexpTimeOut)
	}
	if m.Worked == nil {
		return nil
	}
	return m.Worked(n)
}

// save puts the state on the stack, to go on at an instruction if what follows fails.
func (m *Machine) save(pos, pc int32) error {
	m.states++
	if m.Limits.Time > 0 && m.states >= m.Limits.Time*statesOfTime {
		return sqlerr.New(sqlerr.RegexpTimeOut)
	}
	size := len(m.cur) + 2
	if n := len(m.stack) + size; n > cap(m.stack) {
		if err := m.grow(n); err != nil {
			return err
		}
	}
	m.stack = append(m.stack, pos, pc)
	m.stack = append(m.stack, m.cur...)
	return m.step(2 + size/8)
}

// grow makes room for n slots on the stack.
func (m *Machine) grow(n int) error {
	if n > m.most {
		return sqlerr.New(sqlerr.RegexpStackOverflow)
	}
	size := max(n, min(max(2*cap(m.stack), 256), m.most))
	if m.Grow != nil {
		if err := m.Grow(slotBytes * size); err != nil {
			return err
		}
	}
	m.stack = append(make([]int32, 0, size), m.stack...)
	return nil
}

// maxStack is up to how many slots a stack grows without a limit.
const maxStack = 1 << 28

// matchAt reports whether there is a match that begins at a place.
func (m *Machine) matchAt(at int) (bool, error) {
	for i := range m.cur {
		m.cur[i] = -1
	}
	m.cur[slotLimit] = int32(len(m.s))
	m.stack = m.stack[:0]
	is, end, err := m.run(int32(at))
	if is {
		s := startSlot(0)
		m.cur[s], m.cur[s+1] = int32(at), end
	}
	return is, err
}

// pop takes the last state that was saved.
func (m *Machine) pop() (pos, pc int32, ok bool) {
	size := len(m.cur) + 2
	n := len(m.stack) - size
	if n < 0 {
		return 0, 0, false
	}
	copy(m.cur, m.stack[n+2:])
	pos, pc = m.stack[n], m.stack[n+1]
	m.stack = m.stack[:n]
	return pos, pc, true
}

// run runs the program from a place on.
func (m *Machine) run(pos int32) (is bool, end int32, err error) {
	pc := int32(0)
	for {
		in := &m.prog.insts[pc]
		if m.steps++; m.steps >= stepsBetween {
			if err := m.rest(); err != nil {
				return false, 0, err
			}
		}
		ok := true
		next := pc + 1
		switch {
		case in.code == codeMatch:
			return true, pos, nil
		case in.code < codeSplit:
			if pos = m.one(in, pos); pos < 0 {
				ok = false
			}
		case in.code <= codeLazyLoop:
			next, err = m.flow(in, pos, next)
		case in.code <= codeMore:
			pos, next, err = m.spans(in, pos, pc)
			ok = pos >= 0
		case in.code <= codeCounted:
			next, err = m.count(in, pos, next)
		default:
			pos, next, err = m.look(in, pos, pc)
			ok = pos >= 0
		}
		if err != nil {
			return false, 0, err
		}
		if pc = next; !ok {
			if pos, pc, ok = m.pop(); !ok {
				return false, 0, nil
			}
		}
	}
}

// one matches characters, or checks a place; it returns the place behind, or -1.
func (m *Machine) one(in *inst, pos int32) int32 {
	limit := m.cur[slotLimit]
	switch in.code {
	case codeText:
		n := int32(len(in.text))
		if limit-pos < n || !bytes.Equal(m.s[pos:pos+n], in.text) {
			return -1
		}
		return pos + n
	case codeFoldText:
		return m.foldText(in.runes, pos, limit)
	case codeAssert:
		if !m.holds(in.check, int(pos)) {
			return -1
		}
		return pos
	case codeNewline:
		return m.newline(pos, limit)
	case codeGrapheme:
		return m.grapheme(pos, limit)
	case codeBackref, codeFoldBackref:
		return m.backref(in, pos, limit)
	}
	if pos >= limit {
		return -1
	}
	r, n := rune(m.s[pos]), 1
	if r >= utf8.RuneSelf {
		r, n = utf8.DecodeRune(m.s[pos:])
	}
	ok := true
	switch in.code {
	case codeRune:
		ok = r == in.r
	case codeFoldRune:
		ok = r == in.r || foldRune(r) == in.r
	case codeSet:
		ok = in.set.has(r)
	case codeAny:
		ok = !isLineEnd(r)
	case codeAnyUnix:
		ok = r != '\n'
	case codeAnyAll:
		if r == '\r' && pos+1 < limit && m.s[pos+1] == '\n' {
			n = 2
		}
	}
	if !ok {
		return -1
	}
	return pos + int32(n)
}

// foldText compares folded characters with what the subject's fold to; both have to end together.
func (m *Machine) foldText(runes []rune, pos, limit int32) int32 {
	var buf [4]rune
	for len(runes) > 0 {
		if pos >= limit {
			return -1
		}
		r, n := utf8.DecodeRune(m.s[pos:])
		folded := appendFold(buf[:0], r)
		if len(folded) > len(runes) {
			return -1
		}
		for i, f := range folded {
			if f != runes[i] {
				return -1
			}
		}
		runes = runes[len(folded):]
		pos += int32(n)
	}
	return pos
}

func (m *Machine) newline(pos, limit int32) int32 {
	if pos >= limit {
		return -1
	}
	r, n := utf8.DecodeRune(m.s[pos:])
	switch {
	case !isLineEnd(r):
		return -1
	case r == '\r' && pos+1 < limit && m.s[pos+1] == '\n':
		return pos + 2
	}
	return pos + int32(n)
}

func (m *Machine) grapheme(pos, limit int32) int32 {
	if pos >= limit {
		return -1
	}
	cluster, _, _, _ := uniseg.FirstGraphemeCluster(m.s[pos:], -1)
	m.steps += len(cluster)
	return min(pos+int32(len(cluster)), limit)
}

// backref matches what a group has matched; a group that has not matches nothing.
func (m *Machine) backref(in *inst, pos, limit int32) int32 {
	begin, end := m.cur[in.x], m.cur[in.x+1]
	if begin < 0 {
		return -1
	}
	text := m.s[begin:end]
	m.steps += len(text) / 8
	if in.code == codeBackref {
		if int(limit-pos) < len(text) || !bytes.Equal(text, m.s[pos:int(pos)+len(text)]) {
			return -1
		}
		return pos + int32(len(text))
	}
	m.steps += len(text)
	var want, have []rune
	var a, b [4]rune
	for {
		if len(want) == 0 {
			if len(text) == 0 {
				break
			}
			r, n := utf8.DecodeRune(text)
			want, text = appendFold(a[:0], r), text[n:]
		}
		if len(have) == 0 {
			if pos >= limit {
				return -1
			}
			r, n := utf8.DecodeRune(m.s[pos:])
			have = appendFold(b[:0], r)
			pos += int32(n)
		}
		if want[0] != have[0] {
			return -1
		}
		want, have = want[1:], have[1:]
	}
	if len(have) > 0 {
		return -1
	}
	return pos
}
