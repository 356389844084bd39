package ast

import (
	"encoding/binary"
	"strings"

	"github.com/triremedb/trireme/engine/types"
)

// Bulk is INSERT or REPLACE of several rows that are literals and nothing else, as
// programs that load data and dumps write it. It is read in two passes over the text,
// without a tree: the first finds out that all of it is of this form, the second gives
// the rows one by one. Memory does not grow with the number of rows. What stands around
// the rows makes a statement with a parameter for each column, whose plan serves all
// texts of the same head, tail and width.
//
// The zero Bulk is ready and may be used again. What it gives aliases the text, or
// the Bulk until Reuse.
type Bulk struct {
	Rows  int // 2 or more
	Width int // values of a row, 1 or more

	head, tail string
	rows       lexer  // at the first row
	null       []bool // by column: every row has NULL there

	arena []byte
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
		if !l.comma() {
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

// Next appends the values of the next row, which has to be there, to dst. The value of a
// string literal is its bytes; the others say by their class what they are.
func (b *Bulk) Next(dst []types.Value) []types.Value {
	from := len(dst)
	b.row(&b.rows, &dst)
	b.rows.comma()
	if len(dst)-from != b.Width {
		panic("ast: a row that is none") // Find has seen it
	}
	return dst
}

// Reuse gives up the values that Next has returned: memory for those that follow.
func (b *Bulk) Reuse() { b.arena = b.arena[:0] }

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
	*b = Bulk{null: b.null[:0], arena: arena}
}
