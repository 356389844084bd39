package ast

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// row reads a row: into values, or, if that is nil, only to see whether it is one.
func (b *Bulk) row(l *lexer, values *[]types.Value) bool {
	i := l.run(l.pos, cSpace)
	if l.at(i) != '(' {
		return false
	}
	for n := 0; ; n++ {
		if i++; l.at(i) <= ' ' { // mostly there is none
			i = l.run(i, cSpace)
		}
		var x types.Value
		if end := plain(l, i, &x); end > i {
			i = end
		} else {
			l.pos = i
			if !b.value(l, &x, values != nil) {
				return false
			}
			i = l.run(l.pos, cSpace)
		}
		if values != nil {
			*values = append(*values, x)
		} else if b.Rows == 0 {
			b.null = append(b.null, x.IsNull())
		} else if n >= b.Width {
			return false
		} else if !x.IsNull() {
			b.null[n] = false
		}
		switch l.at(i) {
		case ',':
		case ')':
			l.pos = i + 1
			if b.Rows == 0 {
				b.Width = n + 1
			}
			return n+1 == b.Width
		default:
			return false
		}
	}
}

// comma takes a comma, if it is next.
func (l *lexer) comma() bool {
	i := l.run(l.pos, cSpace)
	if l.at(i) != ',' {
		return false
	}
	l.pos = i + 1
	return true
}

// plain reads a literal as programs write most of them, with the end of the value behind
// it: a number of few digits, a string without escapes, NULL. It returns where the literal
// ends; 0 says that the lexer has to look.
func plain(l *lexer, i int, x *types.Value) (end int) {
	s := l.s
	if i >= len(s) {
		return 0
	}
	switch c := s[i]; {
	case c-'0' <= 9 || c == '-':
		end = plainNumber(s, i, x)
	case c == '\'':
		if end = plainString(s, i+1, l.mode&ModeNoBackslashEscapes == 0); end > 0 {
			*x = types.NewString(s[i+1 : end-1])
		}
	case c == 'N' && strings.HasPrefix(s[i:], "NULL"):
		end = i + len("NULL")
	}
	if end < len(s) && (s[end] == ',' || s[end] == ')') {
		return end
	}
	return 0
}

// plainDigits is how many digits an int64 holds, whichever they are.
const plainDigits = 18

// plainNumber reads an integer or a decimal number, perhaps with a sign.
func plainNumber(s string, i int, x *types.Value) (end int) {
	negative := s[i] == '-'
	if negative {
		i++
	}
	v, from, point := int64(0), i, -1
	for ; i < len(s); i++ {
		if d := s[i] - '0'; d <= 9 {
			v = v*10 + int64(d)
		} else if s[i] == '.' && point < 0 && i > from {
			point = i
		} else {
			break
		}
	}
	if negative {
		v = -v
	}
	switch {
	case i == from || i-from > plainDigits:
		return 0
	case point < 0:
		*x = types.NewInt(v)
	default:
		*x = types.NewDecimal(decimal.FromUnscaled(v, i-point-1))
	}
	return i
}

// plainString finds the end of a string without escapes and doubled quotes, eight bytes at
// a time: i is behind its quote, and so is end.
func plainString(s string, i int, escapes bool) (end int) {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^ones*'\'', w^ones*'\\'
		// The lowest bit that is set is that of the first such byte.
		if found := ((quote-ones)&^quote | (slash-ones)&^slash) & high; found != 0 {
			i += bits.TrailingZeros64(found) / 8
			break
		}
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\'':
			return i + 1 // a second quote is no end of a value
		case c == '\\' && escapes:
			return 0
		}
	}
	return 0
}

// value reads any literal. Without whole all that counts is whether it is NULL.
func (b *Bulk) value(l *lexer, x *types.Value, whole bool) bool {
	t := l.next()
	negative := t.kind == tOp && t.end-t.start == 1 && l.s[t.start] == '-'
	if negative {
		t = l.next()
	}
	s := l.s[t.start:t.end]
	switch t.kind {
	case tInt:
		return bulkInt(x, s, negative)
	case tDecimal:
		*x = types.NewInt(0)
		return len(s) <= types.MaxDecimalPrecision && (!whole || bulkDecimal(x, s, negative))
	case tDouble:
		v, err := strconv.ParseFloat(s, 64)
		if negative {
			v = -v
		}
		*x = types.NewDouble(v)
		return err == nil
	case tString:
		if negative || isString(l) {
			return false // two strings side by side are one
		}
		*x = types.NewBytes(nil)
		if whole {
			*x = types.NewBytes(b.text(s, l.mode))
		}
		return true
	case tWord:
		*x = types.Null
		return !negative && strings.EqualFold(s, "NULL")
	}
	return false
}

// isString reports whether a string follows.
func isString(l *lexer) bool {
	c := l.at(l.run(l.pos, cSpace))
	return c == '\'' || c == '"'
}

// bulkInt reads an integer that a BIGINT holds, with a sign or without.
func bulkInt(x *types.Value, s string, negative bool) bool {
	v, ok := smallInt(s)
	if !ok {
		u, err := strconv.ParseUint(s, 10, 64)
		switch {
		case err != nil || negative && u > 1<<63-1:
			return false
		case u > 1<<63-1:
			*x = types.NewUint(u)
			return true
		}
		v = int64(u)
	}
	if negative {
		v = -v
	}
	*x = types.NewInt(v)
	return true
}

func bulkDecimal(x *types.Value, s string, negative bool) bool {
	d, _, _, err := decimal.Parse(unsafe.Slice(unsafe.StringData(s), len(s)))
	if negative {
		d = d.Neg()
	}
	*x = types.NewDecimal(d)
	return err == nil
}

// text is the value of a string literal.
func (b *Bulk) text(s string, mode Mode) []byte {
	body := s[1 : len(s)-1]
	if strings.IndexByte(body, s[0]) < 0 && strings.IndexByte(body, '\\') < 0 {
		return unsafe.Slice(unsafe.StringData(body), len(body))
	}
	start := len(b.arena)
	b.arena = appendUnquoted(b.arena, s, mode&ModeNoBackslashEscapes == 0)
	return b.arena[start:len(b.arena):len(b.arena)]
}
