package pattern

import "unicode/utf8"

// flow runs jumps, splits and slots; it returns the next instruction.
func (m *Machine) flow(in *inst, pos, next int32) (int32, error) {
	switch in.code {
	case codeSplit:
		return next, m.save(pos, in.x)
	case codeJump:
		return in.x, nil
	case codeSet1:
		m.cur[in.x] = pos
	case codeClear:
		m.cur[in.x] = -1
	case codeCapture:
		m.cur[in.x], m.cur[in.x+1] = m.cur[in.x+2], pos
	case codeLoop:
		return in.x, m.save(pos, next)
	case codeLoopMoved:
		if m.cur[in.y] != pos {
			return in.x, m.save(pos, next)
		}
	case codeLazyLoop:
		if in.y == 0 || m.cur[in.y] != pos {
			return next, m.save(pos, in.x)
		}
	}
	return next, nil
}

// spans runs repetitions of single characters.
func (m *Machine) spans(in *inst, pos, pc int32) (at, next int32, err error) {
	switch in.code {
	case codeSpan:
		each := &m.prog.insts[pc+1]
		n := int32(0)
		m.cur[in.x] = pos
		for n != in.max {
			to := m.one(each, pos)
			if to < 0 {
				break
			}
			if pos = to; n+1 == in.min {
				m.cur[in.x] = pos
			}
			n++
			if err := m.step(1); err != nil {
				return -1, 0, err
			}
		}
		if n < in.min {
			return -1, 0, nil
		}
		return pos, pc + 2, nil
	case codeGiveBack:
		if pos <= m.cur[in.x] {
			return pos, pc + 1, nil
		}
		_, n := utf8.DecodeLastRune(m.s[:pos])
		if in.pairs && pos-2 >= m.cur[in.x] && m.s[pos-1] == '\n' && m.s[pos-2] == '\r' {
			n = 2
		}
		return pos, pc + 1, m.save(pos-int32(n), pc)
	case codeLazySpan:
		each := &m.prog.insts[pc+1]
		for range in.min {
			if pos = m.one(each, pos); pos < 0 {
				return -1, 0, nil
			}
			if err := m.step(1); err != nil {
				return -1, 0, err
			}
		}
		m.cur[in.x] = in.min
		if in.max != unbounded && in.min >= in.max {
			return pos, pc + 3, nil
		}
		return pos, pc + 3, m.save(pos, pc+2)
	}
	// codeMore
	if pos = m.one(&m.prog.insts[pc-1], pos); pos < 0 {
		return -1, 0, nil
	}
	if m.cur[in.x]++; in.max != unbounded && m.cur[in.x] >= in.max {
		return pos, pc + 1, nil
	}
	return pos, pc + 1, m.save(pos, pc)
}

// count runs repetitions that are counted. A counter has two slots: how often, and the place of the last time.
func (m *Machine) count(in *inst, pos, next int32) (int32, error) {
	if in.code == codeCount {
		m.cur[in.x], m.cur[in.x+1] = 0, pos
		switch {
		case in.min > 0:
			return next, nil
		case in.lazy:
			return in.y, m.save(pos, next)
		}
		return next, m.save(pos, in.y)
	}
	m.cur[in.x]++
	n := m.cur[in.x]
	switch {
	case in.max != unbounded && n >= in.max:
		return next, nil
	case n < in.min:
		m.states++
		return in.y, m.step(1)
	case in.max == unbounded && m.cur[in.x+1] == pos:
		return next, nil
	}
	m.cur[in.x+1] = pos
	if in.lazy {
		return next, m.save(pos, in.y)
	}
	return in.y, m.save(pos, next)
}

// look runs atomic groups and look-around; place -1 is failure.
func (m *Machine) look(in *inst, pos, pc int32) (at, next int32, err error) {
	next = pc + 1
	switch in.code {
	case codeMark:
		m.cur[in.x] = int32(len(m.stack))
	case codeCut:
		m.stack = m.stack[:m.cur[in.x]]
	case codeAhead:
		m.cur[in.x], m.cur[in.x+1] = int32(len(m.stack)), pos
	case codeAheadEnd:
		m.stack = m.stack[:m.cur[in.x]]
		return m.cur[in.x+1], next, nil
	case codeNotAhead:
		m.cur[in.x] = int32(len(m.stack))
		return pos, next, m.save(pos, in.y)
	case codeFail:
		m.stack = m.stack[:m.cur[in.x]]
		return -1, 0, nil
	case codeBehind:
		m.cur[in.x], m.cur[in.x+1], m.cur[in.x+2], m.cur[in.x+3] = int32(len(m.stack)), pos, -1, m.cur[slotLimit]
	case codeBehindTry:
		return m.tryBehind(in, pc)
	case codeBehindEnd, codeNotBehindEnd:
		if pos != m.cur[in.x+1] {
			return -1, 0, nil
		}
		m.stack = m.stack[:m.cur[in.x]]
		if in.code == codeNotBehindEnd {
			return -1, 0, nil
		}
		m.cur[slotLimit] = m.cur[in.x+3]
	default:
		return -1, 0, nil
	}
	return pos, next, nil
}

// tryBehind goes to the next place from which look-behind may reach its own: from near to far.
func (m *Machine) tryBehind(in *inst, pc int32) (at, next int32, err error) {
	own, at, back := m.cur[in.x+1], m.cur[in.x+2], int32(1)
	if at < 0 {
		at, back = own, in.min
	}
	for ; back > 0 && at > 0; back-- {
		_, n := utf8.DecodeLastRune(m.s[:at])
		at -= int32(n)
		if err := m.step(1); err != nil {
			return -1, 0, err
		}
	}
	if back > 0 || int64(own-at) > 4*int64(in.max) {
		if in.y < 0 {
			return -1, 0, nil
		}
		m.cur[slotLimit] = m.cur[in.x+3]
		return own, in.y, nil
	}
	m.cur[in.x+2] = at
	if err := m.save(own, pc); err != nil {
		return -1, 0, err
	}
	m.cur[slotLimit] = own
	return at, pc + 1, nil
}

// holds checks a place.
func (m *Machine) holds(check op, pos int) bool {
	switch check {
	case opBegin:
		return pos == 0
	case opBeginLine, opBeginUnix:
		if pos == 0 {
			return true
		}
		r, _ := utf8.DecodeLastRune(m.s[:pos])
		return pos < len(m.s) && (r == '\n' || check == opBeginLine && isLineEnd(r))
	case opEnd, opEndUnix, opEndLine, opEndLineDX:
		return m.atEnd(check, pos)
	case opTextEnd:
		return pos == len(m.s)
	case opLastEnd:
		return pos == m.lastEnd
	case opBoundary:
		return m.boundary(pos)
	case opNoBoundary:
		return !m.boundary(pos)
	}
	return false
}

// atEnd is $ in all its kinds: at the end of the text or of a line, not within \r\n.
func (m *Machine) atEnd(check op, pos int) bool {
	if pos == len(m.s) {
		return true
	}
	r, n := utf8.DecodeRune(m.s[pos:])
	switch check {
	case opEndUnix:
		return r == '\n' && pos+1 == len(m.s)
	case opEndLineDX:
		return r == '\n'
	}
	if !isLineEnd(r) || r == '\n' && pos > 0 && m.s[pos-1] == '\r' {
		return false
	}
	if check == opEndLine || pos+n == len(m.s) {
		return true
	}
	return r == '\r' && pos+2 == len(m.s) && m.s[pos+1] == '\n'
}

// boundary is \b: words end between characters of which one is of a word, where those that belong to the one before them
// are looked past.
func (m *Machine) boundary(pos int) bool {
	is := false
	if pos < len(m.s) {
		r, _ := utf8.DecodeRune(m.s[pos:])
		if extends().has(r) {
			return false
		}
		is = wordRunes().has(r)
	}
	before := false
	for pos > 0 {
		r, n := utf8.DecodeLastRune(m.s[:pos])
		pos -= n
		m.steps++
		if !extends().has(r) {
			before = wordRunes().has(r)
			break
		}
	}
	return is != before
}
