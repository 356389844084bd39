package session

import (
	"bytes"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// loadReader takes the text of LOAD DATA apart: into records and their fields. It looks at each byte once, in whatever pieces the text
// comes, and keeps of it the fields of one record that somebody wants.
type loadReader struct {
	fields ast.LoadFields
	lines  ast.LoadLines
	skip   uint64 // records to leave out
	keep   int    // fields of a record that are wanted
	set    types.Charset
	emit   func(fields []loadField) error
	// hold accounts for memory, of which held is.
	hold func(delta int64) error
	held int64

	begins *[256]bool // bytes with which anything begins that is not content

	tail   []byte // of the text, not taken apart yet: shorter than ahead
	record []loadField
	arena  []byte // of the record's fields

	open    bool // a record is being read
	inField bool // and a field
	// Of the field.
	field    loadField
	enclosed bool
	fresh    bool // nothing of it has been read
}

// loadField is a field of a record. Of those that nobody wants there is at most one, without what is in it.
type loadField struct {
	from, to int // in the arena
	null     bool
}

// maxRecord bounds the length of a record of LOAD DATA: of what is wanted of it.
const maxRecord = 1 << 28

// feed takes the next piece of the text.
func (r *loadReader) feed(piece []byte) error {
	if len(r.tail) > 0 {
		before := len(r.tail)
		r.tail = append(r.tail, piece[:min(len(piece), r.ahead())]...)
		n, err := r.take(r.tail, false)
		if err != nil {
			return err
		}
		if n < before { // all of the piece is in the tail
			r.tail = r.tail[:copy(r.tail, r.tail[n:])]
			return r.account()
		}
		r.tail, piece = r.tail[:0], piece[n-before:]
	}
	n, err := r.take(piece, false)
	if err != nil {
		return err
	}
	r.tail = append(r.tail, piece[n:]...)
	return r.account()
}

// finish takes what is left as the last record.
func (r *loadReader) finish() error {
	_, err := r.take(r.tail, true)
	return err
}

// account accounts for the memory of what is kept. Errors: 1153, as of hold.
func (r *loadReader) account() error {
	if len(r.arena) > maxRecord {
		return sqlerr.New(sqlerr.NetPacketTooLarge)
	}
	const small = 64 << 10
	n := int64(cap(r.arena) + cap(r.tail))
	if n <= max(r.held, small) {
		return nil
	}
	if err := r.hold(n - r.held); err != nil {
		return err
	}
	r.held = n
	return nil
}

// free gives the memory back.
func (r *loadReader) free() {
	if r.held > 0 {
		_ = r.hold(-r.held) // what is given back is never refused
	}
	r.held, r.arena, r.tail = 0, nil, nil
}

// ahead is how many bytes say for sure what the first of them is.
func (r *loadReader) ahead() int {
	ends := max(len(r.fields.Terminated), len(r.lines.Terminated))
	if !r.set.FindsItself() {
		ends = max(ends, 1+r.set.MaxLen()) // a character, and what escapes it
	}
	return max(2, len(r.lines.Starting), len(r.fields.Enclosed)+max(len(r.fields.Enclosed), ends))
}

// take takes a text apart and emits the records that are complete. It returns how much of it has been read: all but less than ahead
// bytes, or, if it is the last, all.
func (r *loadReader) take(text []byte, last bool) (n int, err error) {
	least := r.ahead()
	if last {
		least = 0
	}
	for {
		if !r.open {
			if n == len(text) || len(text)-n < least {
				return n, nil
			}
			if prefix := r.lines.Starting; prefix != "" {
				i := bytes.Index(text[n:], []byte(prefix))
				switch {
				case i < 0 && last:
					return len(text), nil
				case i < 0:
					return len(text) - len(prefix) + 1, nil
				}
				n += i + len(prefix)
			}
			r.open, r.record, r.arena = true, r.record[:0], r.arena[:0]
		}
		if !r.inField {
			if len(text)-n < least {
				return n, nil
			}
			quote := r.fields.Enclosed
			r.inField, r.fresh, r.field = true, true, loadField{from: len(r.arena)}
			if r.enclosed = quote != "" && bytes.HasPrefix(text[n:], []byte(quote)); r.enclosed {
				n += len(quote)
			}
		}
		var done, more bool
		if n, done, more = r.content(text, n, least); !done {
			if !last {
				return n, nil
			}
			more = false
		}
		r.endField()
		if more {
			continue
		}
		r.open = false
		if r.skip > 0 {
			r.skip--
		} else if err := r.emit(r.record); err != nil {
			return n, err
		}
	}
}

// content reads the content of a field from n on, and what ends it if done. more says that another field follows.
func (r *loadReader) content(text []byte, n, least int) (next int, done, more bool) {
	quote := r.fields.Enclosed
	if r.begins == nil {
		r.begins = new([256]bool)
		for _, t := range []string{r.fields.Escaped, quote, r.fields.Terminated, r.lines.Terminated} {
			if t != "" {
				r.begins[t[0]] = true
			}
		}
	}
	for n < len(text) && len(text)-n >= least {
		fresh := r.fresh
		r.fresh = false
		plain := n
		for most := len(text) - max(least-1, 0); n < most && !r.begins[text[n]]; n += r.charLen(text[n:]) {
		}
		if n > plain {
			r.add(text[plain:n])
			continue
		}
		rest := text[n:]
		switch {
		case r.fields.Escaped != "" && rest[0] == r.fields.Escaped[0]:
			if len(rest) == 1 {
				r.add(rest)
				n++
				continue
			}
			if rest[1] == 'N' && !r.enclosed && fresh {
				r.field.null = true
			}
			if size := r.charLen(rest[1:]); size > 1 {
				r.add(rest[1 : 1+size])
				n += 1 + size
				continue
			}
			r.add([]byte{unescape(rest[1])})
			n += 2
		case r.enclosed && bytes.HasPrefix(rest, []byte(quote)):
			after := rest[len(quote):]
			if bytes.HasPrefix(after, []byte(quote)) {
				r.add([]byte(quote))
				n += 2 * len(quote)
				continue
			}
			if end, more := r.ends(after); end >= 0 {
				return n + len(quote) + end, true, more
			}
			if len(after) == 0 { // of the text, or more would be here
				return len(text), true, false
			}
			r.add([]byte(quote))
			n += len(quote)
		default:
			if !r.enclosed {
				if end, more := r.ends(rest); end >= 0 {
					return n + end, true, more
				}
			}
			size := r.charLen(rest)
			r.add(rest[:size])
			n += size
		}
	}
	return n, false, false
}

// charLen is how many bytes are looked at as one. Only where a byte of a character may be one that ends a field are these more.
func (r *loadReader) charLen(text []byte) int {
	if r.set.FindsItself() {
		return 1
	}
	return r.set.CharLen(text)
}

// add adds to a field, if it is wanted.
func (r *loadReader) add(b []byte) {
	if len(r.record) < r.keep {
		r.arena = append(r.arena, b...)
	}
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

func (r *loadReader) endField() {
	r.inField = false
	if len(r.record) > r.keep {
		return
	}
	f := r.field
	f.to = len(r.arena)
	content := r.arena[f.from:f.to]
	f.null = f.null && len(content) == 1 || r.fields.Enclosed != "" && !r.enclosed && string(content) == "NULL"
	r.record = append(r.record, f)
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
