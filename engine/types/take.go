package types

import "encoding/binary"

// Takes makes a literal the value that a column of the type has for it, if that is nothing
// but the literal: if [Context.Store] gives the same without a word, whatever the mode
// and the time zone. It knows the literals that rows are mostly made of; of all others,
// NULL too, it says false and leaves them alone. Bytes are utf8mb4 text.
func (t *Type) Takes(v *Value) bool {
	switch v.class {
	case ClassInt:
		return t.takesInt(v)
	case ClassBytes:
		return t.takesText(v)
	case ClassDecimal:
		return t.Kind == KindDecimal && t.takesDecimal(v)
	}
	return false
}

func (t *Type) takesInt(v *Value) bool {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindMediumInt, KindInt, KindBigInt:
		n := v.Int()
		if lo, hi := intLimits(t); n < lo || n > 0 && uint64(n) > hi {
			return false
		}
		if t.Unsigned {
			v.class = ClassUint
		}
		return true
	case KindDecimal:
		d := shortDecimal(v.Int(), 0)
		if !t.takesDecimal(&d) {
			return false
		}
		*v = d
		return true
	}
	return false
}

// tens are the powers of ten that a word holds.
var tens = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// takesDecimal is Takes of a number whose digits are so few that they fit into a word as
// the column has them.
func (t *Type) takesDecimal(v *Value) bool {
	integers := t.Precision - t.Scale
	more := t.Scale - v.scale
	if v.p != nil || v.b != 0 || v.scale > t.Scale || v.neg && t.Unsigned || int(integers+v.scale) >= len(tens) || v.a >= tens[integers+v.scale] {
		return false
	}
	if int(t.Precision) >= len(tens) {
		return false
	}
	v.a *= tens[more]
	v.scale = t.Scale
	return true
}

func (t *Type) takesText(v *Value) bool {
	text := v.Bytes()
	switch t.Kind {
	case KindChar:
		if n := len(text); n > int(t.Length) || n > 0 && text[n-1] == ' ' {
			return false
		}
		return isASCII(text)
	case KindVarChar:
		return len(text) <= int(t.Length) && isASCII(text)
	case KindText, KindMediumText, KindLongText:
		return len(text) < 1<<16 && isASCII(text)
	case KindDateTime:
		d, ok := plainDateTime(text)
		if ok {
			*v = NewDateTime(d)
		}
		return ok
	}
	return false
}

// plainDateTime reads YYYY-MM-DD hh:mm:ss, of a day that every month has.
func plainDateTime(s []byte) (DateTime, bool) {
	if len(s) != len("YYYY-MM-DD hh:mm:ss") || s[4] != '-' || s[7] != '-' || s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	bad := byte(0)
	two := func(i int) int {
		a, b := s[i]-'0', s[i+1]-'0'
		if a > 9 || b > 9 {
			bad = 1
		}
		return int(a)*10 + int(b)
	}
	year, month, day := two(0)*100+two(2), two(5), two(8)
	hour, minute, second := two(11), two(14), two(17)
	if bad != 0 || year == 0 || month == 0 || month > 12 || day == 0 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return MakeDateTime(year, month, day, hour, minute, second, 0), true
}

// isASCII reports whether all bytes are below 0x80.
func isASCII(s []byte) bool {
	const high = 0x8080808080808080
	if len(s) < 8 {
		for _, b := range s {
			if b >= 0x80 {
				return false
			}
		}
		return true
	}
	all := binary.LittleEndian.Uint64(s[len(s)-8:]) // once more, or the rest
	for i := 0; i+8 < len(s); i += 8 {
		all |= binary.LittleEndian.Uint64(s[i:])
	}
	return all&high == 0
}
