package expr

import (
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

// The string functions.

func init() {
	registerConcat()
	registerLengths()
	registerParts()
	registerPads()
	registerSearches()
	registerSets()
}

func registerConcat() {
	d := definer(catString)
	d.def("CONCAT(s, ...)", Func{
		Args: []ArgKind{ArgText}, Min: 1, Max: -1, Result: ResultTextSum,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			size := 0
			for _, v := range a {
				size += len(v.Bytes())
			}
			if size > x.packetLimit() {
				return x.limited(c, nil, false)
			}
			for _, v := range a {
				dst = append(dst, v.Bytes()...)
			}
			return dst, true, nil
		}),
		Vector: concatVectors,
	})
	d.def("CONCAT_WS(separator, s, ...)", Func{
		Args: []ArgKind{ArgText}, Min: 2, Max: -1, KeepNulls: true, Result: resultJoined,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if a[0].IsNull() {
				return nil, false, nil
			}
			sep, size, texts := a[0].Bytes(), 0, 0
			for _, v := range a[1:] {
				if !v.IsNull() {
					size += len(v.Bytes())
					texts++
				}
			}
			dst, ok, err := x.reserve(dst, size+len(sep)*max(texts-1, 0), x.packetLimit())
			switch {
			case err != nil:
				return nil, false, err
			case !ok:
				return x.limited(c, nil, false)
			}
			for _, v := range a[1:] {
				if v.IsNull() {
					continue
				}
				dst = append(dst, v.Bytes()...)
				if texts--; texts > 0 {
					dst = append(dst, sep...)
				}
			}
			return dst, true, nil
		}),
	})
	d.def("UPPER(s)", Func{
		Aliases: []string{"ucase"}, Args: []ArgKind{ArgText}, Result: ResultTextLike(0), NotNull: true,
		Row: appendFunc(func(c *Call, dst []byte, a []types.Value) []byte {
			return appendCased(dst, c.collation(), a[0].Bytes(), true)
		}),
	})
	d.def("LOWER(s)", Func{
		Aliases: []string{"lcase"}, Args: []ArgKind{ArgText}, Result: ResultTextLike(0), NotNull: true,
		Row: appendFunc(func(c *Call, dst []byte, a []types.Value) []byte {
			return appendCased(dst, c.collation(), a[0].Bytes(), false)
		}),
	})
	d.def("REVERSE(s)", Func{
		Args: []ArgKind{ArgText}, Result: ResultTextLike(0), NotNull: true,
		Row: appendFunc(func(c *Call, dst []byte, a []types.Value) []byte {
			return appendReversed(dst, c.charset(), a[0].Bytes())
		}),
	})
}

// concatVectors writes rows straight into the result.
func concatVectors(x *Context, c *Call, args []*types.Vector, n int, out *types.Vector) error {
	limit := x.packetLimit()
rows:
	for i := range n {
		size := 0
		for _, v := range args {
			if v.IsNull(i) {
				out.AppendNull()
				continue rows
			}
			size += len(v.BytesAt(i))
		}
		if size > limit {
			if err := x.tooLarge(c); err != nil {
				return err
			}
			out.AppendNull()
			continue
		}
		if size >= largeValue {
			if err := x.extend(out, size); err != nil {
				return err
			}
		}
		arena := out.BytesBuffer()
		for _, v := range args {
			arena = append(arena, v.BytesAt(i)...)
		}
		out.EndBytes(arena)
	}
	return nil
}

func resultJoined(_ *Binder, c *Call) (types.Type, error) {
	n := textLength(c.Args[0].Type()) * uint64(len(c.Args)-2)
	for _, a := range c.Args[1:] {
		n += textLength(a.Type())
	}
	return textType(n, c.Collation), nil
}

func registerLengths() {
	d := definer(catString)
	d.def("LENGTH(s)", Func{Aliases: []string{"octet_length"}, Args: []ArgKind{ArgString}}.measure(func(_ *Call, s []byte) int64 {
		return int64(len(s))
	}))
	d.def("CHAR_LENGTH(s)", Func{Aliases: []string{"character_length"}, Args: []ArgKind{ArgString}}.measure(func(c *Call, s []byte) int64 {
		return int64(c.argCharset(0).Count(s))
	}))
	d.def("BIT_LENGTH(s)", Func{Args: []ArgKind{ArgString}}.measure(func(_ *Call, s []byte) int64 { return 8 * int64(len(s)) }))
	d.def("ASCII(s)", Func{Args: []ArgKind{ArgString}}.measure(func(_ *Call, s []byte) int64 {
		if len(s) == 0 {
			return 0
		}
		return int64(s[0])
	}))
	d.def("ORD(s)", Func{Args: []ArgKind{ArgString}}.measure(func(c *Call, s []byte) int64 { return ordOf(c.argCharset(0), s) }))
	d.def("STRCMP(a, b)", Func{
		Args: []ArgKind{ArgText, ArgText}, Result: ResultInt, NotNull: true, Compares: true,
		Row: intFunc(func(c *Call, a []types.Value) int64 {
			return int64(c.collation().Compare(a[0].Bytes(), a[1].Bytes()))
		}),
	})
	d.def("WEIGHT_STRING(s); WEIGHT_STRING(s AS CHAR(n)); WEIGHT_STRING(s AS BINARY(n))", Func{
		Args: []ArgKind{ArgAny, ArgAny, ArgInt}, Min: 1, Max: 3, Result: ResultBytes(maxText), Row: weightString,
	})
}

// weightString gives the sort key of a string, cut or filled to n characters or bytes first; numbers have none.
func weightString(x *Context, c *Call, a []types.Value) (types.Value, error) {
	if a[0].Class() != types.ClassBytes {
		return types.Null, nil
	}
	coll := types.CollationByID(c.Args[0].Type().Collation)
	s := a[0].Bytes()
	if len(a) == 3 {
		cs := coll.Charset()
		if string(a[1].Bytes()) == "BINARY" {
			cs, coll = types.CharsetBinary, types.CollationByID(types.CollationBinary)
		}
		n := argInt(a[2])
		if n > int64(x.packetLimit()) {
			return types.Null, x.tooLarge(c)
		}
		fill := []byte{' '}
		if cs == types.CharsetBinary {
			fill[0] = 0
		}
		if err := x.Large(int(max(n, 0)) * fillMost); err != nil {
			return types.Null, err
		}
		padded, _ := appendPad(nil, cs, s, max(n, 0), fill, true, x.packetLimit())
		s = padded
	}
	n, err := x.sortKeyLen(coll, s)
	if err != nil {
		return types.Null, err
	}
	dst, _, err := x.reserve(x.Scratch(), n, math.MaxInt)
	if err != nil {
		return types.Null, err
	}
	return types.NewBytes(x.Keep(coll.AppendSortKey(dst, s))), nil
}

// sortKeyLen is about how long a text's sort key is. Most characters have a weight of two bytes, but there are some of
// many: that of a long text is measured piece by piece.
func (x *Context) sortKeyLen(coll types.Collation, s []byte) (n int, err error) {
	if len(s) < countedText {
		return 0, nil
	}
	var key []byte
	for len(s) > 0 {
		piece := s[:wholeCharacters(coll.Charset(), s, keyPiece)]
		if len(piece) == 0 {
			piece = s[:min(keyPiece, len(s))]
		}
		if err := x.Worked(len(piece)); err != nil {
			return 0, err
		}
		key = coll.AppendSortKey(key[:0], piece)
		n += len(key)
		s = s[len(piece):]
	}
	return n, nil
}

const (
	keyPiece = 16 << 10
	fillMost = 4 // bytes of a character that fills
)

func registerParts() {
	d := definer(catString)
	d.def("SUBSTRING(s, pos); SUBSTRING(s, pos, n); SUBSTRING(s FROM pos FOR n)", Func{
		Aliases: []string{"substr", "mid"}, Args: []ArgKind{ArgText, ArgInt, ArgInt}, Min: 2, Max: 3,
		Result: resultCut(2), NotNull: true,
		Row: partFunc(func(c *Call, a []types.Value) []byte {
			n := int64(1<<63 - 1)
			if len(a) == 3 {
				n = argInt(a[2])
			}
			return substr(c.charset(), a[0].Bytes(), argInt(a[1]), n)
		}),
	})
	d.def("LEFT(s, n)", Func{
		Args: []ArgKind{ArgText, ArgInt}, Result: resultCut(1), NotNull: true,
		Row: partFunc(func(c *Call, a []types.Value) []byte {
			return c.charset().Prefix(a[0].Bytes(), clampInt(max(argInt(a[1]), 0)))
		}),
	})
	d.def("RIGHT(s, n)", Func{
		Args: []ArgKind{ArgText, ArgInt}, Result: resultCut(1), NotNull: true,
		Row: partFunc(func(c *Call, a []types.Value) []byte {
			return rightPart(c.charset(), a[0].Bytes(), argInt(a[1]))
		}),
	})
	d.def("SUBSTRING_INDEX(s, delimiter, count)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgInt}, Result: ResultTextLike(0), NotNull: true,
		Row: partFunc(func(c *Call, a []types.Value) []byte {
			return substringIndex(c.charset(), a[0].Bytes(), a[1].Bytes(), argInt(a[2]))
		}),
	})
	d.def("TRIM(s); TRIM(part FROM s); TRIM({BOTH | LEADING | TRAILING} part FROM s)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgAny}, Min: 1, Max: 3, Result: ResultTextLike(0), NotNull: true,
		Row: partFunc(func(c *Call, a []types.Value) []byte {
			part, side := []byte{' '}, trimBoth
			if len(a) > 1 {
				part = a[1].Bytes()
			}
			if len(a) > 2 {
				switch string(a[2].Bytes()) {
				case "LEADING":
					side = trimLeading
				case "TRAILING":
					side = trimTrailing
				}
			}
			return trimText(c.charset(), a[0].Bytes(), part, side)
		}),
	})
	trims := []struct {
		usage string
		side  trimSide
	}{{"LTRIM(s)", trimLeading}, {"RTRIM(s)", trimTrailing}}
	for _, t := range trims {
		d.def(t.usage, Func{
			Args: []ArgKind{ArgText}, Result: ResultTextLike(0), NotNull: true,
			Row: partFunc(func(c *Call, a []types.Value) []byte { return trimText(c.charset(), a[0].Bytes(), []byte{' '}, t.side) }),
		})
	}
	d.def("REPLACE(s, from, to)", Func{
		Args: []ArgKind{ArgText, ArgText, ArgText}, Result: resultReplaced,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			s, from, to := a[0].Bytes(), a[1].Bytes(), a[2].Bytes()
			n := replacedLen(c.charset(), s, from, to)
			if n > x.packetLimit() {
				return x.limited(c, nil, false)
			}
			if err := x.Large(n - len(s)); err != nil {
				return nil, false, err
			}
			return appendReplaced(dst, c.charset(), s, from, to), true, nil
		}),
	})
	d.def("INSERT(s, pos, n, by)", Func{
		Args: []ArgKind{ArgText, ArgInt, ArgInt, ArgText}, Result: ResultTextSum,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if len(a[0].Bytes())+len(a[3].Bytes()) > x.packetLimit() {
				return x.limited(c, nil, false)
			}
			return appendInserted(dst, c.charset(), a[0].Bytes(), argInt(a[1]), argInt(a[2]), a[3].Bytes()), true, nil
		}),
	})
}

// resultCut is text as long as argument 0 and, if that is known, at most as argument i says.
func resultCut(i int) func(*Binder, *Call) (types.Type, error) {
	return func(_ *Binder, c *Call) (types.Type, error) {
		n := textLength(c.Args[0].Type())
		if i < len(c.Args) {
			if v, ok := Literal(c.Args[i]); ok && !v.IsNull() {
				n = min(n, uint64(max(argInt(v), 0)))
			}
		}
		return textType(n, c.Collation), nil
	}
}

func resultReplaced(_ *Binder, c *Call) (types.Type, error) {
	n, to := textLength(c.Args[0].Type()), textLength(c.Args[2].Type())
	if to > 1 {
		n = min(n*min(to, maxText), maxText)
	}
	return textType(n, c.Collation), nil
}

func registerPads() {
	d := definer(catString)
	pad := func(usage string, right bool) {
		d.def(usage, Func{
			Args: []ArgKind{ArgText, ArgInt, ArgText}, Result: resultCount(1),
			Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
				n := argInt(a[1])
				if n < 0 {
					return nil, false, nil
				}
				if n >= largeValue/4 && n <= int64(x.packetLimit()) {
					if err := x.Large(min(paddedLen(c.charset(), a[0].Bytes(), n, a[2].Bytes()), x.packetLimit())); err != nil {
						return nil, false, err
					}
				}
				out, ok := appendPad(dst, c.charset(), a[0].Bytes(), n, a[2].Bytes(), right, x.packetLimit())
				return x.limited(c, out, ok)
			}),
		})
	}
	pad("LPAD(s, n, pad)", false)
	pad("RPAD(s, n, pad)", true)
	d.def("REPEAT(s, n)", Func{
		Args: []ArgKind{ArgText, ArgInt}, Result: resultRepeated,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			return x.repeat(c, dst, a[0].Bytes(), argInt(a[1]))
		}),
	})
	d.def("SPACE(n)", Func{
		Args: []ArgKind{ArgInt},
		Result: func(b *Binder, c *Call) (types.Type, error) {
			return textType(literalCount(c.Args[0]), b.collation()), nil
		},
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			return x.repeat(c, dst, []byte{' '}, argInt(a[0]))
		}),
	})
}

// repeat is REPEAT and SPACE.
func (x *Context) repeat(c *Call, dst, s []byte, n int64) ([]byte, bool, error) {
	limit := x.packetLimit()
	if n > 0 && len(s) > 0 && n <= int64(limit/len(s)) {
		if err := x.Large(int(n) * len(s)); err != nil {
			return nil, false, err
		}
		dst = slices.Grow(dst, int(n)*len(s))
	}
	out, ok := appendRepeated(dst, s, n, limit)
	return x.limited(c, out, ok)
}

// literalCount is the number that a node is known to be, or maxText.
func literalCount(n Node) uint64 {
	if v, ok := Literal(n); ok && !v.IsNull() {
		return uint64(min(max(argInt(v), 0), maxText))
	}
	return maxText
}

// resultCount is text of as many characters as argument i says.
func resultCount(i int) func(*Binder, *Call) (types.Type, error) {
	return func(_ *Binder, c *Call) (types.Type, error) {
		return textType(literalCount(c.Args[i]), c.Collation), nil
	}
}

func resultRepeated(_ *Binder, c *Call) (types.Type, error) {
	n := min(textLength(c.Args[0].Type())*literalCount(c.Args[1]), maxText)
	return textType(n, c.Collation), nil
}

func registerSearches() {
	d := definer(catString)
	d.def("LOCATE(part, s); LOCATE(part, s, pos); POSITION(part IN s)", Func{
		Aliases: []string{"position"}, Args: []ArgKind{ArgText, ArgText, ArgInt}, Min: 2, Max: 3, Result: ResultInt, NotNull: true,
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			start := int64(1)
			if len(a) == 3 {
				start = argInt(a[2])
			}
			n, err := locateText(x, c.collation(), a[1].Bytes(), a[0].Bytes(), start)
			return types.NewInt(n), err
		},
	})
	d.def("INSTR(s, part)", Func{
		Args: []ArgKind{ArgText, ArgText}, Result: ResultInt, NotNull: true,
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			n, err := locateText(x, c.collation(), a[0].Bytes(), a[1].Bytes(), 1)
			return types.NewInt(n), err
		},
	})
	d.def("FIND_IN_SET(s, list)", Func{
		Args: []ArgKind{ArgText, ArgText}, Result: ResultInt, NotNull: true, Compares: true,
		Row: intFunc(func(c *Call, a []types.Value) int64 {
			return findInSet(c.collation(), a[0].Bytes(), a[1].Bytes())
		}),
	})
	d.overloads("FIELD(x, x1, ...)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		texts, exact := true, true
		for _, n := range args {
			t := n.Type()
			texts = texts && !isNumber(t)
			exact = exact && (t.IsInteger() || t.Kind == types.KindDecimal || t.Kind == types.KindYear)
		}
		switch {
		case texts:
			return fieldOfTexts, args, nil
		case exact:
			return fieldOfDecimals, args, nil
		}
		return fieldOfDoubles, args, nil
	})
}

// fieldFunc is FIELD with a kind of comparison; NULL equals nothing, and the result is never NULL.
func fieldFunc(kind ArgKind, equal func(c *Call, a, b types.Value) bool) *Func {
	return &Func{
		Name: "field", Args: []ArgKind{kind}, Min: 2, Max: -1, KeepNulls: true, NotNull: true, Result: ResultInt,
		Row: intFunc(func(c *Call, a []types.Value) int64 {
			if a[0].IsNull() {
				return 0
			}
			for i, v := range a[1:] {
				if !v.IsNull() && equal(c, a[0], v) {
					return int64(i + 1)
				}
			}
			return 0
		}),
	}
}

var (
	fieldOfTexts = fieldFunc(ArgText, func(c *Call, a, b types.Value) bool {
		return c.collation().Compare(a.Bytes(), b.Bytes()) == 0
	})
	fieldOfDecimals = fieldFunc(ArgDecimal, func(_ *Call, a, b types.Value) bool {
		return compareDecimals(a.Decimal(), b.Decimal()) == 0
	})
	fieldOfDoubles = fieldFunc(ArgDouble, func(_ *Call, a, b types.Value) bool { return a.Double() == b.Double() })
)

func registerSets() {
	d := definer(catString)
	d.def("ELT(n, s1, ...)", Func{
		Args: []ArgKind{ArgInt, ArgText}, Min: 2, Max: -1, KeepNulls: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			var n uint64
			for _, a := range c.Args[1:] {
				n = max(n, textLength(a.Type()))
			}
			return textType(n, c.Collation), nil
		},
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			n := argInt(a[0])
			if a[0].IsNull() || n < 1 || n >= int64(len(a)) {
				return types.Null, nil
			}
			return a[n], nil
		},
	})
	d.def("MAKE_SET(bits, s1, ...)", Func{
		Args: []ArgKind{ArgInt, ArgText}, Min: 2, Max: -1, KeepNulls: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			n := uint64(len(c.Args) - 2)
			for _, a := range c.Args[1:] {
				n += textLength(a.Type())
			}
			return textType(n, c.Collation), nil
		},
		Row: textFunc(func(_ *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if a[0].IsNull() {
				return nil, false, nil
			}
			bits, first := a[0].Uint(), true
			for i, v := range a[1:] {
				if i > 63 || bits>>uint(i)&1 == 0 || v.IsNull() {
					continue
				}
				if !first {
					dst = append(dst, ',')
				}
				first = false
				dst = append(dst, v.Bytes()...)
			}
			return dst, true, nil
		}),
	})
	d.def("EXPORT_SET(bits, on, off, separator, n)", Func{
		Args: []ArgKind{ArgInt, ArgText, ArgText, ArgText, ArgInt}, Min: 3, Max: 5,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			n := max(textLength(c.Args[1].Type()), textLength(c.Args[2].Type())) + 1
			if len(c.Args) > 3 {
				n += textLength(c.Args[3].Type())
			}
			return textType(n*64, c.Collation), nil
		},
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			sep, n := []byte{','}, int64(64)
			if len(a) > 3 {
				sep = a[3].Bytes()
			}
			if len(a) > 4 {
				n = argInt(a[4])
			}
			on, off := a[1].Bytes(), a[2].Bytes()
			most := 64 * (max(len(on), len(off)) + len(sep))
			if most > x.packetLimit() {
				return x.limited(c, nil, false)
			}
			if err := x.Large(most); err != nil {
				return nil, false, err
			}
			return appendExportSet(dst, a[0].Uint(), on, off, sep, n), true, nil
		}),
	})
}
