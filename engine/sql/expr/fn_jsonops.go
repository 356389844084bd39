package expr

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types/json"
)

// elements calls f with every value of a container until f returns false, and reports whether it never did.
func elements(v json.Value, f func(json.Value) bool) bool {
	for i := range v.Len() {
		if e, ok := v.Index(i); ok && !f(e) {
			return false
		}
	}
	return true
}

// jsonEqual reports whether two values are equal in SQL's eyes.
func jsonEqual(a, b json.Value) bool { return json.Compare(a, b) == 0 }

// jsonContains is JSON_CONTAINS: an array contains what all its candidate's elements are contained in, an object the
// members, anything else its equal.
func jsonContains(target, candidate json.Value) bool {
	switch {
	case target.IsObject() && candidate.IsObject():
		for i := range candidate.Len() {
			key, _ := candidate.Key(i)
			want, _ := candidate.Index(i)
			have, ok := target.Member(key)
			if !ok || !jsonContains(have, want) {
				return false
			}
		}
		return true
	case target.IsArray() && candidate.IsArray():
		return elements(candidate, func(want json.Value) bool { return arrayContains(target, want) })
	case target.IsArray():
		return arrayContains(target, candidate)
	case target.IsContainer() || candidate.IsContainer():
		return false
	}
	return jsonEqual(target, candidate)
}

func arrayContains(array, want json.Value) bool {
	return !elements(array, func(have json.Value) bool { return !jsonContains(have, want) })
}

// memberOf is MEMBER OF: anything but an array is an array of itself.
func memberOf(v, array json.Value) bool {
	if !array.IsArray() {
		return jsonEqual(v, array)
	}
	return !elements(array, func(e json.Value) bool { return !jsonEqual(e, v) })
}

// jsonOverlaps is JSON_OVERLAPS: arrays with an element in common, objects with a member in common.
func jsonOverlaps(a, b json.Value) bool {
	switch {
	case a.IsObject() && b.IsObject():
		for i := range a.Len() {
			key, _ := a.Key(i)
			v, _ := a.Index(i)
			if o, ok := b.Member(key); ok && jsonEqual(v, o) {
				return true
			}
		}
		return false
	case a.IsArray() && b.IsArray():
		return !elements(a, func(e json.Value) bool { return !memberOf(e, b) })
	case a.IsArray():
		return memberOf(b, a)
	}
	return memberOf(a, b)
}

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
		elements(v, func(e json.Value) bool {
			b.Value(e)
			return true
		})
	}
	b.EndArray()
}

// appendPretty is JSON_PRETTY.
func appendPretty(dst []byte, v json.Value, indent int) []byte {
	if !v.IsContainer() || v.Len() == 0 {
		return v.AppendText(dst)
	}
	opening, closing := byte('['), byte(']')
	if v.IsObject() {
		opening, closing = '{', '}'
	}
	newLine := func(dst []byte, n int) []byte {
		dst = append(dst, '\n')
		for range n {
			dst = append(dst, ' ', ' ')
		}
		return dst
	}
	dst = append(dst, opening)
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = newLine(dst, indent+1)
		if v.IsObject() {
			key, _ := v.Key(i)
			dst = append(json.AppendQuoted(dst, key), ':', ' ')
		}
		e, _ := v.Index(i)
		dst = appendPretty(dst, e, indent+1)
	}
	return append(newLine(dst, indent), closing)
}

// A jsonSearcher finds the places of strings for JSON_SEARCH.
type jsonSearcher struct {
	match  func([]byte) bool
	starts []json.Value // within which to look; nil: everywhere
	one    bool
	found  [][]byte
	path   []byte
}

// search walks v, which stands at s.path; inside says that it lies within one of the starting places.
func (s *jsonSearcher) search(v json.Value, inside bool) {
	for i := 0; !inside && i < len(s.starts); i++ {
		inside = v.Same(s.starts[i])
	}
	if s.one && len(s.found) > 0 {
		return
	}
	if !v.IsContainer() {
		if inside && v.Type() == json.TypeString && s.match(v.Str()) {
			s.found = append(s.found, append([]byte(nil), s.path...))
		}
		return
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
		s.search(e, inside)
		s.path = s.path[:end]
	}
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
