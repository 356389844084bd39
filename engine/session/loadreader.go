package session

import (
	"bytes"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// loadReader takes the text of LOAD DATA apart: into records and their fields.
type loadReader struct {
	fields ast.LoadFields
	lines  ast.LoadLines
	skip   uint64 // records to leave out
	emit   func(fields []loadField) error

	text   []byte // not yet taken apart
	record []loadField
	arena  []byte // of the record's fields
}

// loadField is a field of a record.
type loadField struct {
	from, to int // in the arena
	null     bool
}

// maxRecord bounds the length of a record of LOAD DATA.
const maxRecord = 1 << 28

// feed takes the next piece of the text.
func (r *loadReader) feed(piece []byte) error {
	r.text = append(r.text, piece...)
	return r.drain(false)
}

// finish takes what is left as the last record.
func (r *loadReader) finish() error { return r.drain(true) }

// drain emits the records that are complete.
func (r *loadReader) drain(last bool) error {
	rest := r.text
	for len(rest) > 0 {
		n, ok := r.one(rest, last)
		if !ok {
			break
		}
		rest = rest[n:]
		switch {
		case r.record == nil:
		case r.skip > 0:
			r.skip--
		default:
			if err := r.emit(r.record); err != nil {
				return err
			}
		}
	}
	if len(rest) > maxRecord {
		return sqlerr.New(sqlerr.NetPacketTooLarge)
	}
	r.text = append(r.text[:0], rest...)
	return nil
}

// one reads a record from the beginning of a text and returns its length. ok is false if
// it is not complete.
func (r *loadReader) one(text []byte, last bool) (n int, ok bool) {
	r.record, r.arena = r.record[:0], r.arena[:0]
	if prefix := r.lines.Starting; prefix != "" {
		i := bytes.Index(text, []byte(prefix))
		if i < 0 {
			r.record = nil
			return len(text), last
		}
		n = i + len(prefix)
	}
	for {
		var more bool
		if n, more, ok = r.field(text, n, last); !ok {
			return 0, false
		}
		if !more {
			return n, true
		}
	}
}

// field reads a field at n and what ends it. more says that another one follows.
func (r *loadReader) field(text []byte, n int, last bool) (next int, more, ok bool) {
	f := loadField{from: len(r.arena)}
	quote := r.fields.Enclosed
	enclosed := quote != "" && bytes.HasPrefix(text[n:], []byte(quote))
	start := n
	if enclosed {
		n += len(quote)
	}
	for n < len(text) {
		rest := text[n:]
		switch {
		case r.fields.Escaped != "" && rest[0] == r.fields.Escaped[0]:
			if len(rest) == 1 {
				if !last {
					return 0, false, false
				}
				r.arena = append(r.arena, rest[0])
				n++
				continue
			}
			if rest[1] == 'N' && !enclosed && n == start {
				f.null = true
			}
			r.arena = append(r.arena, unescape(rest[1]))
			n += 2
		case enclosed && bytes.HasPrefix(rest, []byte(quote)):
			after := rest[len(quote):]
			if bytes.HasPrefix(after, []byte(quote)) {
				r.arena = append(r.arena, quote...)
				n += 2 * len(quote)
				continue
			}
			if len(after) < len(r.fields.Terminated) && len(after) < len(r.lines.Terminated) && !last {
				return 0, false, false
			}
			if end, more := r.ends(after); end >= 0 {
				return r.endField(f, enclosed, n+len(quote)+end, more)
			}
			if len(after) == 0 && last {
				return r.endField(f, enclosed, len(text), false)
			}
			r.arena = append(r.arena, quote...)
			n += len(quote)
		default:
			if !enclosed {
				if end, more := r.ends(rest); end >= 0 {
					return r.endField(f, enclosed, n+end, more)
				}
			}
			r.arena = append(r.arena, rest[0])
			n++
		}
	}
	if !last {
		return 0, false, false
	}
	return r.endField(f, enclosed, len(text), false)
}

// ends reports whether a text begins with the end of a field: its length, or -1.
func (r *loadReader) ends(text []byte) (length int, more bool) {
	if t := r.fields.Terminated; t != "" && bytes.HasPrefix(text, []byte(t)) {
		return len(t), true
	}
	if t := r.lines.Terminated; t != "" && bytes.HasPrefix(text, []byte(t)) {
		return len(t), false
	}
	return -1, false
}

func (r *loadReader) endField(f loadField, enclosed bool, next int, more bool) (int, bool, bool) {
	f.to = len(r.arena)
	content := r.arena[f.from:f.to]
	f.null = f.null && len(content) == 1 || r.fields.Enclosed != "" && !enclosed && string(content) == "NULL"
	r.record = append(r.record, f)
	return next, more, true
}

// unescape is what the character after an escape stands for.
func unescape(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'b':
		return '\b'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'Z':
		return 26
	}
	return c
}
