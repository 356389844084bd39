package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// String functions that turn strings into numbers, digits and codes, and back.

func compareDecimals(a, b decimal.Decimal) int { return decimal.Compare(a, b) }

func init() {
	registerDigits()
	registerCodes()
	registerFormats()
}

func registerDigits() {
	d := definer(catString)
	d.overloads("HEX(x)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		switch {
		case len(args) == 0 || !isNumber(args[0].Type()):
			return hexOfText, args, nil
		case isExact(args[0].Type()) && args[0].Type().Kind != types.KindDecimal:
			return hexOfInteger, args, nil
		case args[0].Type().Kind == types.KindDecimal:
			return hexOfDecimal, args, nil
		}
		return hexOfReal, args, nil
	})
	d.def("UNHEX(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: resultHalf,
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			out, ok := appendUnhex(dst, a[0].Bytes())
			if !ok {
				return nil, false, x.Fault(errWrongText("string", a[0].Bytes(), "unhex"))
			}
			return out, true, nil
		}),
	})
	base := func(usage, name string, to int64) {
		text := &Func{
			Name: name, Args: []ArgKind{ArgString}, Result: ResultASCII(65),
			Row: textFunc(func(_ *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
				out, ok := appendBase(dst, a[0].Bytes(), 10, to)
				return out, ok, nil
			}),
		}
		bits := &Func{
			Name: name, Args: []ArgKind{ArgInt}, Result: ResultASCII(65), NotNull: true,
			Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte {
				return strconv.AppendUint(dst, a[0].Uint(), int(to))
			}),
		}
		d.overloads(usage, byBits(text, bits))
	}
	base("BIN(n)", "bin", 2)
	base("OCT(n)", "oct", 8)
	conv := func(kind ArgKind, digits func(v types.Value, from int64) ([]byte, int64)) *Func {
		return &Func{
			Name: "conv", Args: []ArgKind{kind, ArgInt, ArgInt}, Result: ResultASCII(65),
			Row: textFunc(func(_ *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
				s, from := digits(a[0], argInt(a[1]))
				out, ok := appendBase(dst, s, from, argInt(a[2]))
				return out, ok, nil
			}),
		}
	}
	d.overloads("CONV(n, from, to)", byBits(
		conv(ArgString, func(v types.Value, from int64) ([]byte, int64) { return v.Bytes(), from }),
		conv(ArgInt, func(v types.Value, _ int64) ([]byte, int64) { return strconv.AppendUint(nil, v.Uint(), 10), 10 })))
}

// byBits chooses between variants: the text of BIT is not made of digits.
func byBits(text, bits *Func) func(*Binder, []Node) (*Func, []Node, error) {
	return func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) > 0 && args[0].Type().Kind == types.KindBit {
			return bits, args, nil
		}
		return text, args, nil
	}
}

var (
	hexOfText = &Func{
		Name: "hex", Args: []ArgKind{ArgString}, NotNull: true,
		Result: func(b *Binder, c *Call) (types.Type, error) {
			t := c.Args[0].Type()
			n := textLength(t)
			if coll := types.CollationByID(t.Collation); coll != nil {
				n *= uint64(coll.Charset().MaxLen())
			}
			return textType(min(2*n, maxText), b.collation()), nil
		},
		Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte { return appendHex(dst, a[0].Bytes()) }),
	}
	hexOfInteger = hexOfNumber(ArgInt, func(v types.Value) uint64 { return v.Uint() })
	hexOfReal    = hexOfNumber(ArgDouble, func(v types.Value) uint64 {
		f := math.RoundToEven(v.Double())
		switch {
		case f >= math.MaxInt64:
			return math.MaxInt64
		case f <= math.MinInt64:
			return 1 << 63
		}
		return uint64(int64(f))
	})
	hexOfDecimal = hexOfNumber(ArgDouble, func(v types.Value) uint64 {
		f := math.Round(v.Double())
		switch {
		case f <= math.MinInt64 || f >= math.MaxUint64:
			return math.MaxUint64
		case f < 0:
			return uint64(int64(f))
		}
		return uint64(f)
	})
)

func hexOfNumber(kind ArgKind, bits func(types.Value) uint64) *Func {
	return &Func{
		Name: "hex", Args: []ArgKind{kind}, NotNull: true, Result: ResultASCII(16),
		Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte {
			start := len(dst)
			return upperASCII(strconv.AppendUint(dst, bits(a[0]), 16), start)
		}),
	}
}

func resultHalf(_ *Binder, c *Call) (types.Type, error) {
	return textType((textLength(c.Args[0].Type())+1)/2, types.CollationBinary), nil
}

func registerCodes() {
	d := definer(catString)
	d.overloads("CHAR(n, ...); CHAR(n, ... USING charset)", chooseChar)
	d.def("QUOTE(s)", Func{
		Args: []ArgKind{ArgText}, KeepNulls: true, NotNull: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			return textType(min(2*textLength(c.Args[0].Type())+2, maxText), c.Collation), nil
		},
		Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte {
			if a[0].IsNull() {
				return append(dst, "NULL"...)
			}
			return appendSQLQuoted(dst, a[0].Bytes())
		}),
	})
	d.def("SOUNDEX(s)", Func{
		Args: []ArgKind{ArgText}, NotNull: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			return textType(max(textLength(c.Args[0].Type()), 4), c.Collation), nil
		},
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			s, err := c.unicodeText(x, a[0].Bytes())
			if err != nil {
				return types.Null, err
			}
			return types.NewBytes(x.ownText(c, x.Keep(appendSoundex(x.Scratch(), s)))), nil
		},
	})
	d.def("TO_BASE64(s)", Func{
		Args: []ArgKind{ArgString},
		Result: func(b *Binder, c *Call) (types.Type, error) {
			t := c.Args[0].Type()
			n := textLength(t)
			if coll := types.CollationByID(t.Collation); coll != nil {
				n *= uint64(coll.Charset().MaxLen())
			}
			n = (n + 2) / 3 * 4
			return textType(min(n+n/base64Line, maxText), b.collation()), nil
		},
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if len(a[0].Bytes()) > x.packetLimit()/3*2 {
				return x.limited(c, nil, false)
			}
			return appendBase64(dst, a[0].Bytes()), true, nil
		}),
	})
	d.def("FROM_BASE64(s)", Func{
		Args: []ArgKind{ArgBytes}, Result: ResultBytes(maxText),
		Row: textFunc(func(_ *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			out, ok := appendUnbase64(dst, a[0].Bytes())
			return out, ok, nil
		}),
	})
}

// chooseChar takes the character set, which comes as a last argument that is a bare word.
func chooseChar(_ *Binder, args []Node) (*Func, []Node, error) {
	last := len(args) - 1
	if last >= 1 {
		if v, ok := Literal(args[last]); ok && v.Class() == types.ClassBytes {
			if f := charUsing[strings.ToLower(string(v.Bytes()))]; f != nil {
				return f, args[:last], nil
			}
		}
	}
	return charBytes, args, nil
}

// charFunc is CHAR; bytes that are no text in its character set give a warning and, if sql_mode is strict, NULL.
func charFunc(id types.CollationID) *Func {
	return &Func{
		Name: "char", Args: []ArgKind{ArgSigned}, Min: 1, Max: -1, KeepNulls: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) { return textType(4*uint64(len(c.Args)), id), nil },
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			cs := types.CollationByID(id).Charset()
			for _, v := range a {
				if !v.IsNull() {
					var code [4]byte
					dst = append(dst, cs.Whole(appendCodeBytes(code[:0], uint32(v.Uint())))...)
				}
			}
			if at := cs.InvalidAt(dst); at >= 0 {
				x.Warning(errInvalidCharacters(cs, dst[at:]))
				return dst[:at], x.Mode&types.ModeStrict == 0, nil
			}
			return dst, true, nil
		}),
	}
}

var (
	charBytes = charFunc(types.CollationBinary)
)

// charUsing are the variants of CHAR(.. USING charset).
var charUsing = func() map[string]*Func {
	m := map[string]*Func{}
	for _, cs := range types.Charsets() {
		m[cs.String()] = charFunc(cs.DefaultCollation())
	}
	m["utf8mb3"] = charFunc(types.CollationUTF8MB40900AI)
	m["utf8"] = m["utf8mb3"]
	return m
}()

// isExact reports whether values are exact numbers.
func isExact(t *types.Type) bool {
	return t.IsInteger() || t.Kind == types.KindDecimal || t.Kind == types.KindYear || t.Kind == types.KindBit
}

func registerFormats() {
	d := definer(catString)
	d.overloads("FORMAT(x, digits); FORMAT(x, digits, locale)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) > 0 && isExact(args[0].Type()) {
			return formatDecimal, args, nil
		}
		return formatDouble, args, nil
	})
	d.def("FORMAT_PICO_TIME(n)", Func{
		Args: []ArgKind{ArgDouble}, Result: ResultASCII(11), NotNull: true,
		Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte {
			return append(dst, appendPicoTime(nil, a[0].Double())...)
		}),
	})
	d.def("FORMAT_BYTES(n)", Func{
		Args: []ArgKind{ArgDouble}, Result: ResultASCII(11), NotNull: true,
		Row: appendFunc(func(_ *Call, dst []byte, a []types.Value) []byte {
			return append(dst, appendByteCount(nil, a[0].Double())...)
		}),
	})
}

// formatFunc is FORMAT for a kind of number.
func formatFunc(kind ArgKind, number func(dst []byte, v types.Value, places int64, l numberLocale) []byte) *Func {
	return &Func{
		Name: "format", Args: []ArgKind{kind, ArgInt, ArgUTF8}, Min: 2, Max: 3, KeepNulls: true, Result: ResultASCII(120),
		Row: textFunc(func(x *Context, _ *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if a[0].IsNull() || a[1].IsNull() {
				return nil, false, nil
			}
			locale := "en_US"
			if len(a) == 3 && !a[2].IsNull() {
				locale = string(a[2].Bytes())
			}
			l, ok := numberLocaleOf(locale)
			if !ok {
				x.Warning(sqlerr.New(sqlerr.UnknownLocale, printable([]byte(locale))))
				l, _ = numberLocaleOf("en_US")
			}
			return number(dst, a[0], int64(int32(argInt(a[1]))), l), true, nil // of 32 bits in MySQL
		}),
	}
}

var (
	formatDecimal = formatFunc(ArgDecimal, func(dst []byte, v types.Value, places int64, l numberLocale) []byte {
		return appendFormatted(dst, v.Decimal(), places, l)
	})
	formatDouble = formatFunc(ArgDouble, func(dst []byte, v types.Value, places int64, l numberLocale) []byte {
		return appendFormattedDouble(dst, v.Double(), places, l)
	})
)
