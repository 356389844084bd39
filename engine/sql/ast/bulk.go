package ast

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Bulk is INSERT or REPLACE of several rows that are literals and nothing else, as
// programs that load data and dumps write it. It is read in two passes over the text,
// without a tree: the first finds out that all of it is of this form, the second gives
// the rows one by one. Memory does not grow with the number of rows. What stands around
// the rows makes a statement with a parameter for each column, whose plan serves all
// texts of the same head, tail and width.
//
// The zero Bulk is ready and may be used again. What it gives aliases the text, or
// the Bulk until the next row.
type Bulk struct {
	Rows  int // 2 or more
	Width int // values of a row, 1 or more

	head, tail string
	rows       lexer  // at the first row
	null       []bool // by column: every row has NULL there

	arena    []byte
	decimals []types.Type
}

// bulkTail bounds what may stand behind the rows, in bytes.
const bulkTail = 1 << 10

// Find reports whether the text is one. If it is not, nothing is said about it, which may
// be right or wrong, and none of it is kept.
func (b *Bulk) Find(sql string, mode Mode) bool {
	if !b.find(sql, mode) {
		b.Release()
		return false
	}
	return true
}

func (b *Bulk) find(sql string, mode Mode) bool {
	l := lexer{s: sql, mode: mode}
	if !b.findRows(&l) {
		return false
	}
	b.rows = l
	b.Rows, b.Width = 0, 0
	b.null = b.null[:0]
	for {
		if !b.row(&l, nil) {
			return false
		}
		b.Rows++
		end := l.pos
		if t := l.next(); t.kind != tOp || sql[t.start] != ',' {
			l.pos = end
			return b.Rows > 1 && b.findTail(&l)
		}
	}
}

// findRows takes the head: up to VALUES.
func (b *Bulk) findRows(l *lexer) bool {
	t := l.next()
	if t.kind != tWord {
		return false
	}
	if w := l.s[t.start:t.end]; !strings.EqualFold(w, "INSERT") && !strings.EqualFold(w, "REPLACE") {
		return false
	}
	for depth := 0; l.pos < normalMaxBytes; {
		t := l.next()
		switch t.kind {
		case tQuoted:
		case tOp:
			switch l.s[t.start] {
			case '(':
				depth++
			case ')':
				depth--
			case ',', '.':
			default:
				return false
			}
		case tWord:
			w := l.s[t.start:t.end]
			if depth == 0 && (strings.EqualFold(w, "VALUES") || strings.EqualFold(w, "VALUE")) {
				if at := l.run(l.pos, cSpace); l.at(at) == '(' {
					b.head = l.s[:l.pos]
					return true
				}
			}
		default:
			return false
		}
	}
	return false
}

// findTail takes what follows the rows; comments alone are nothing.
func (b *Bulk) findTail(l *lexer) bool {
	start, words, comments := l.pos, false, false
	for {
		end := l.pos
		t := l.next()
		switch t.kind {
		case tEOF:
			b.tail = ""
			if words {
				b.tail = l.s[start:end]
			}
			return !words || !comments && len(b.tail) <= bulkTail
		case tComment:
			comments = true
		case tOp:
			if l.s[t.start] != ';' {
				words = true
				continue
			}
			rest := *l
			for t = rest.next(); t.kind == tComment; t = rest.next() {
			}
			if t.kind != tEOF {
				return false
			}
			*l = lexer{s: l.s[:t.start], pos: end, mode: l.mode}
			l.s = l.s[:end]
		case tWord, tQuoted, tInt, tDecimal, tDouble, tString, tHex:
			words = true
		default:
			return false
		}
	}
}

// Next appends the values of the next row, which has to be there, to dst. Their types
// are those of literals; a string's says nothing of its length or collation.
func (b *Bulk) Next(dst []Literal) []Literal {
	b.arena, b.decimals = b.arena[:0], b.decimals[:0]
	from := len(dst)
	b.row(&b.rows, &dst)
	b.rows.next() // the comma
	if len(dst)-from != b.Width {
		panic("ast: a row that is none") // Find has seen it
	}
	return dst
}

// AllNull reports whether every row has NULL in a column.
func (b *Bulk) AllNull(column int) bool { return b.null[column] }

// AppendKey appends what texts with one plan have in common.
func (b *Bulk) AppendKey(dst []byte) []byte {
	dst = append(dst, byte(b.rows.mode))
	dst = append(append(dst, b.head...), 0)
	dst = append(append(dst, b.tail...), 0)
	return binary.AppendUvarint(dst, uint64(b.Width))
}

// Statement is the text of the statement with a parameter for each column.
func (b *Bulk) Statement() string {
	return b.head + "(?" + strings.Repeat(",?", b.Width-1) + ")" + b.tail
}

// Release lets go of the text; memory for the next one stays.
func (b *Bulk) Release() {
	arena := b.arena
	if cap(arena) > normalMaxBytes {
		arena = nil
	}
	*b = Bulk{null: b.null[:0], arena: arena, decimals: b.decimals[:0]}
}

// row reads a row: into values, or, if that is nil, only to see whether it is one.
func (b *Bulk) row(l *lexer, values *[]Literal) bool {
	if t := l.next(); t.kind != tOp || l.s[t.start] != '(' {
		return false
	}
	for i := 0; ; i++ {
		var x Literal
		if !b.value(l, &x, values != nil) {
			return false
		}
		if values != nil {
			*values = append(*values, x)
		} else if b.Rows == 0 {
			b.null = append(b.null, x.Kind == LiteralNull)
		} else if i >= b.Width {
			return false
		} else if x.Kind != LiteralNull {
			b.null[i] = false
		}
		t := l.next()
		if t.kind != tOp {
			return false
		}
		switch l.s[t.start] {
		case ',':
		case ')':
			if b.Rows == 0 {
				b.Width = i + 1
			}
			return i+1 == b.Width
		default:
			return false
		}
	}
}

// value reads a literal. Without whole its kind is all that counts.
func (b *Bulk) value(l *lexer, x *Literal, whole bool) bool {
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
		x.Kind = LiteralDecimal
		return len(s) <= types.MaxDecimalPrecision && (!whole || b.decimal(x, s, negative))
	case tDouble:
		v, err := strconv.ParseFloat(s, 64)
		if negative {
			v = -v
		}
		*x = Literal{Kind: LiteralDouble, Value: types.NewDouble(v), Type: typeDouble}
		return err == nil
	case tString:
		if negative || isString(l) {
			return false // two strings side by side are one
		}
		if whole {
			*x = Literal{Kind: LiteralString, Value: types.NewBytes(b.text(s, l.mode)), Type: typeString}
		} else {
			x.Kind = LiteralString
		}
		return true
	case tWord:
		if negative || !strings.EqualFold(s, "NULL") {
			return false
		}
		*x = Literal{Kind: LiteralNull, Type: typeNull}
		return true
	}
	return false
}

// isString reports whether a string follows.
func isString(l *lexer) bool {
	c := l.at(l.run(l.pos, cSpace))
	return c == '\'' || c == '"'
}

// bulkInt reads an integer that a BIGINT holds, with a sign or without.
func bulkInt(x *Literal, s string, negative bool) bool {
	v, ok := smallInt(s)
	if !ok {
		u, err := strconv.ParseUint(s, 10, 64)
		switch {
		case err != nil || negative && u > 1<<63-1:
			return false
		case u > 1<<63-1:
			*x = Literal{Kind: LiteralInt, Value: types.NewUint(u), Type: typeUint}
			return true
		}
		v = int64(u)
	}
	if negative {
		v = -v
	}
	*x = Literal{Kind: LiteralInt, Value: types.NewInt(v), Type: typeInt}
	return true
}

func (b *Bulk) decimal(x *Literal, s string, negative bool) bool {
	d, _, _, err := decimal.Parse(unsafe.Slice(unsafe.StringData(s), len(s)))
	if negative {
		d = d.Neg()
	}
	b.decimals = append(b.decimals, decimalType(d))
	*x = Literal{Kind: LiteralDecimal, Value: types.NewDecimal(d), Type: &b.decimals[len(b.decimals)-1]}
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
