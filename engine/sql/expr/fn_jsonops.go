package expr

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types/json"
)

// mergePatch adds to b what JSON_MERGE_PATCH makes of a target and a patch (RFC 7396).
func mergePatch(b *json.Builder, target, patch json.Value) {
	if !patch.IsObject() {
		b.Value(patch)
		return
	}
	b.BeginObject()
	if target.IsObject() {
		for i := range target.Len() {
			key, _ := target.Key(i)
			v, _ := target.Index(i)
			change, changed := patch.Member(key)
			switch {
			case !changed:
				b.Key(key)
				b.Value(v)
			case !change.IsNull():
				b.Key(key)
				mergePatch(b, v, change)
			}
		}
	}
	for i := range patch.Len() {
		key, _ := patch.Key(i)
		v, _ := patch.Index(i)
		if v.IsNull() {
			continue
		}
		if target.IsObject() {
			if _, there := target.Member(key); there {
				continue
			}
		}
		b.Key(key)
		mergePatch(b, json.Value{}, v)
	}
	b.EndObject()
}

// mergePreserve adds to b what JSON_MERGE_PRESERVE makes of two values: objects member by member, all else as arrays
// one after the other.
func mergePreserve(b *json.Builder, l, r json.Value) {
	if l.IsObject() && r.IsObject() {
		b.BeginObject()
		for i := range l.Len() {
			key, _ := l.Key(i)
			v, _ := l.Index(i)
			b.Key(key)
			if o, both := r.Member(key); both {
				mergePreserve(b, v, o)
			} else {
				b.Value(v)
			}
		}
		for i := range r.Len() {
			key, _ := r.Key(i)
			if _, both := l.Member(key); both {
				continue
			}
			v, _ := r.Index(i)
			b.Key(key)
			b.Value(v)
		}
		b.EndObject()
		return
	}
	b.BeginArray()
	for _, v := range [2]json.Value{l, r} {
		if !v.IsArray() {
			b.Value(v)
			continue
		}
		for i := range v.Len() {
			e, _ := v.Index(i)
			b.Value(e)
		}
	}
	b.EndArray()
}

// A prettyPrinter makes the text of JSON_PRETTY, up to a limit.
type prettyPrinter struct {
	x     *Context
	dst   []byte
	limit int
	ok    bool // the limit was not reached
	err   error
}

// appendPretty is JSON_PRETTY; ok is false if the text would be longer than limit. Errors: 3170, those of an
// interrupted statement.
func (x *Context) appendPretty(dst []byte, v json.Value, limit int) (out []byte, ok bool, err error) {
	p := prettyPrinter{x: x, dst: dst, limit: limit, ok: true}
	p.value(v, 0)
	return p.dst, p.ok, p.err
}

// room makes room for n bytes more, and reports whether they may be added.
func (p *prettyPrinter) room(n, limit int) bool {
	if p.err = p.x.Worked(n); p.err == nil {
		p.dst, p.ok, p.err = p.x.reserve(p.dst, n, limit)
	}
	return p.ok && p.err == nil
}

// text adds what f appends, at most so many bytes.
func (p *prettyPrinter) text(most int, f func(dst []byte) []byte) bool {
	if !p.room(most, p.limit+most) {
		return false
	}
	p.dst = f(p.dst)
	p.ok = len(p.dst) <= p.limit
	return p.ok
}

// line begins a line after a sign.
func (p *prettyPrinter) line(sign string, indent int) bool {
	if !p.room(len(sign)+1+2*indent, p.limit) {
		return false
	}
	p.dst = append(append(p.dst, sign...), '\n')
	for range indent {
		p.dst = append(p.dst, ' ', ' ')
	}
	return true
}

func (p *prettyPrinter) value(v json.Value, indent int) bool {
	if !v.IsContainer() || v.Len() == 0 {
		return p.text(v.TextBound(), v.AppendText)
	}
	sign, closing := "[", byte(']')
	if v.IsObject() {
		sign, closing = "{", '}'
	}
	for i := range v.Len() {
		if !p.line(sign, indent+1) {
			return false
		}
		sign = ","
		if v.IsObject() {
			key, _ := v.Key(i)
			if !p.text(json.QuotedLen(key)+2, func(dst []byte) []byte { return append(json.AppendQuoted(dst, key), ':', ' ') }) {
				return false
			}
		}
		e, _ := v.Index(i)
		if !p.value(e, indent+1) {
			return false
		}
	}
	return p.line("", indent) && p.text(1, func(dst []byte) []byte { return append(dst, closing) })
}

// jsonPlaces are places in a document.
type jsonPlaces map[json.Place]struct{}

// A jsonSearcher finds the places of strings for JSON_SEARCH.
type jsonSearcher struct {
	x      *Context
	match  func([]byte) (bool, error)
	found  func(path []byte) error // a place; the bytes change afterwards
	starts jsonPlaces              // within which to look; nil: everywhere
	one    bool
	path   []byte
	err    error
}

// searchWork is what looking at a value counts for.
const searchWork = 32

// search walks v, which stands at s.path; inside says that it lies within one of the starting places. It reports
// whether to go on.
func (s *jsonSearcher) search(v json.Value, inside bool) bool {
	if s.err = s.x.Worked(searchWork); s.err != nil {
		return false
	}
	if !inside {
		_, inside = s.starts[v.Place()]
	}
	if !v.IsContainer() {
		if !inside || v.Type() != json.TypeString {
			return true
		}
		var is bool
		if is, s.err = s.match(v.Str()); is && s.err == nil {
			s.err = s.found(s.path)
		}
		return s.err == nil && !(is && s.one)
	}
	end := len(s.path)
	for i := range v.Len() {
		if v.IsObject() {
			key, _ := v.Key(i)
			s.path = appendMemberLeg(s.path, key)
		} else {
			s.path = append(strconv.AppendInt(append(s.path, '['), int64(i), 10), ']')
		}
		e, _ := v.Index(i)
		if !s.search(e, inside) {
			return false
		}
		s.path = s.path[:end]
	}
	return true
}

// appendMemberLeg appends .key, in quotes unless it is a name.
func appendMemberLeg(dst, key []byte) []byte {
	dst = append(dst, '.')
	if isJSONName(key) {
		return append(dst, key...)
	}
	return json.AppendQuoted(dst, key)
}

func isJSONName(key []byte) bool {
	if len(key) == 0 || !utf8.Valid(key) {
		return false
	}
	for i, r := range string(key) {
		letter := r == '_' || r == '$' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)
		if !letter && (i == 0 || !unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)) {
			return false
		}
	}
	return true
}

// likeSearch matches LIKE's pattern with the characters as they are: % any run, _ one character, escape makes the next
// one plain.
func likeSearch(x *Context, s, pattern []byte, escape rune) (bool, error) {
	var backS, backP []byte // where the last % may take one character more
	for {
		if len(pattern) > 0 {
			r, n := utf8.DecodeRune(pattern)
			if r == '%' && r != escape {
				pattern = pattern[n:]
				backS, backP = s, pattern
				continue
			}
			plain := r == escape && len(pattern) > n
			if plain {
				pattern = pattern[n:]
				r, n = utf8.DecodeRune(pattern)
			}
			if len(s) > 0 {
				c, size := utf8.DecodeRune(s)
				if c == r || r == '_' && !plain {
					s, pattern = s[size:], pattern[n:]
					continue
				}
			}
		} else if len(s) == 0 {
			return true, nil
		}
		if len(backS) == 0 {
			return false, nil
		}
		if err := x.Worked(len(backS) - len(s)); err != nil {
			return false, err
		}
		_, size := utf8.DecodeRune(backS)
		backS = backS[size:]
		s, pattern = backS, backP
	}
}
