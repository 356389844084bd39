package expr

import (
	"hash/crc32"
	"math"
	"math/bits"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// The numeric functions.

func init() {
	registerRounding()
	registerReal()
	registerLogarithms()
	registerRandom()
	registerBits()
}

type rowKernel = func(*Context, *Call, []types.Value) (types.Value, error)

// byNumber chooses a variant by the class of the first argument as a number.
func byNumber(integer, exact, real *Func) func(*Binder, []Node) (*Func, []Node, error) {
	return func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) == 0 {
			return real, args, nil
		}
		switch t := args[0].Type(); {
		case t.Kind == types.KindDecimal:
			return exact, args, nil
		case t.IsInteger(), t.Kind == types.KindYear, t.Kind == types.KindBit, t.Kind == types.KindNull:
			return integer, args, nil
		case t.IsTemporal() && t.FSP == 0:
			return integer, args, nil
		case t.IsTemporal():
			return exact, args, nil
		}
		return real, args, nil
	}
}

// numberVariant makes a variant of a numeric function of one argument.
func numberVariant(name string, kind ArgKind, result func(*Binder, *Call) (types.Type, error), row rowKernel) *Func {
	return &Func{Name: name, Args: []ArgKind{kind}, Result: result, NotNull: true, Row: row}
}

// resultInteger is BIGINT, unsigned if argument 0 is.
func resultInteger(_ *Binder, c *Call) (types.Type, error) {
	return types.Type{Kind: types.KindBigInt, Unsigned: c.Args[0].Type().Unsigned}, nil
}

func sameValue(_ *Context, _ *Call, a []types.Value) (types.Value, error) { return a[0], nil }

// registerRounding registers ABS, SIGN, CEILING, FLOOR, ROUND and TRUNCATE.
func registerRounding() {
	d := definer(catNumeric)
	d.overloads("ABS(x)", byNumber(
		numberVariant("abs", ArgInt, resultInteger, func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
			n := a[0].Int()
			switch {
			case a[0].Class() == types.ClassUint || n >= 0:
				return a[0], nil
			case n == math.MinInt64:
				return types.Null, errOutOfRange("BIGINT", c.text())
			}
			return types.NewInt(-n), nil
		}),
		numberVariant("abs", ArgDecimal, ResultLike(0), func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewDecimal(a[0].Decimal().Abs()), nil
		}),
		absReal()))
	d.overloads("SIGN(x)", byNumber(
		numberVariant("sign", ArgInt, ResultInt, func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			if a[0].Class() == types.ClassUint {
				return types.NewInt(min(int64(bits.Len64(a[0].Uint())), 1)), nil
			}
			return types.NewInt(int64(signOf(a[0].Int() < 0, a[0].Int() > 0))), nil
		}),
		numberVariant("sign", ArgDecimal, ResultInt, func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewInt(int64(a[0].Decimal().Sign())), nil
		}),
		numberVariant("sign", ArgDouble, ResultInt, func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewInt(int64(signOf(a[0].Double() < 0, a[0].Double() > 0))), nil
		})))
	whole := func(usage, name string, exact func(decimal.Decimal) decimal.Decimal, real func(float64) float64) {
		d.overloads(usage, byNumber(
			numberVariant(name, ArgInt, resultInteger, sameValue),
			numberVariant(name, ArgDecimal, resultWhole, func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
				r := exact(a[0].Decimal())
				if c.t.Kind == types.KindDecimal {
					return types.NewDecimal(r), nil
				}
				n, _ := r.Int64()
				return types.NewInt(n), nil
			}),
			realFunc(name, real)))
	}
	whole("CEILING(x)", "ceiling", decimal.Decimal.Ceil, math.Ceil)
	d.alias("ceil", "ceiling")
	whole("FLOOR(x)", "floor", decimal.Decimal.Floor, math.Floor)
	d.overloads("ROUND(x); ROUND(x, digits)", byNumber(roundings("round", false)))
	d.overloads("TRUNCATE(x, digits)", byNumber(roundings("truncate", true)))
}

func signOf(negative, positive bool) int {
	switch {
	case negative:
		return -1
	case positive:
		return 1
	}
	return 0
}

// text describes a call in messages.
func (c *Call) text() string { return Text(c) }

// resultWhole is the type of a DECIMAL's whole part: BIGINT if it surely fits.
func resultWhole(_ *Binder, c *Call) (types.Type, error) {
	t := c.Args[0].Type()
	digits := t.Precision - t.Scale
	if digits < 17 {
		return types.Type{Kind: types.KindBigInt}, nil
	}
	if t.Scale > 0 {
		digits++
	}
	return types.Type{Kind: types.KindDecimal, Precision: min(digits, types.MaxDecimalPrecision), Unsigned: t.Unsigned}, nil
}

// roundings are ROUND and TRUNCATE for integers, decimals and doubles.
func roundings(name string, truncate bool) (integer, exact, real *Func) {
	low := 1
	if truncate {
		low = 2
	}
	variant := func(kind ArgKind, result func(*Binder, *Call) (types.Type, error), row rowKernel) *Func {
		return &Func{Name: name, Args: []ArgKind{kind, ArgInt}, Min: low, Max: 2, NotNull: true, Result: result, Row: row}
	}
	integer = variant(ArgInt, resultInteger, func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
		places := optionalInt(a, 1, 0)
		if c.t.Class() == types.ClassUint {
			u, ok := roundUint(a[0].Uint(), places, truncate)
			if !ok {
				return types.Null, errOutOfRange("BIGINT UNSIGNED", c.text())
			}
			return types.NewUint(u), nil
		}
		n, ok := roundInt(a[0].Int(), places, truncate)
		if !ok {
			return types.Null, errOutOfRange("BIGINT", c.text())
		}
		return types.NewInt(n), nil
	})
	exact = variant(ArgDecimal, resultRounded(truncate), func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
		r, err := roundDecimal(a[0].Decimal(), optionalInt(a, 1, 0), truncate)
		if err != nil {
			return types.Null, errOutOfRange("DECIMAL", c.text())
		}
		r, _, ok := r.Fit(int(c.t.Precision), int(c.t.Scale))
		if !ok {
			return types.Null, errOutOfRange("DECIMAL", c.text())
		}
		return types.NewDecimal(r), nil
	})
	real = variant(ArgDouble, ResultDouble, func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
		return types.NewDouble(roundDouble(a[0].Double(), optionalInt(a, 1, 0), truncate)), nil
	})
	return integer, exact, real
}

// absReal is ABS of a double, which is shown as the number is.
func absReal() *Func {
	f := realFunc("abs", math.Abs)
	f.Result = func(_ *Binder, c *Call) (types.Type, error) {
		if scale, ok := shownScale(c.Given[0].Type()); ok {
			return shownDouble(scale), nil
		}
		return types.Type{Kind: types.KindDouble}, nil
	}
	return f
}

// resultRounded is DECIMAL with the number of digits that a constant argument asks for, if it has no fewer itself; rounding
// may carry into one digit more.
func resultRounded(truncate bool) func(*Binder, *Call) (types.Type, error) {
	return func(_ *Binder, c *Call) (types.Type, error) {
		t := *c.Args[0].Type()
		places := int64(0)
		if len(c.Args) > 1 {
			v, ok := Literal(c.Args[1])
			if !ok || v.IsNull() {
				return t, nil
			}
			places = argInt(v)
		}
		if places >= int64(t.Scale) {
			return t, nil
		}
		scale := uint8(max(places, 0))
		t.Precision -= t.Scale - scale
		if !truncate {
			t.Precision++
		}
		t.Precision = min(max(t.Precision, 1, scale), types.MaxDecimalPrecision)
		t.Scale = scale
		return t, nil
	}
}

// realFunc is a function of a double whose result may overflow: that is an error.
func realFunc(name string, f func(float64) float64) *Func {
	return &Func{
		Name: name, Args: []ArgKind{ArgDouble}, NotNull: true, Result: ResultDouble,
		Row: func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
			return checkedDouble(c, f(a[0].Double()))
		},
		Vector: func(_ *Context, c *Call, args []*types.Vector, n int, out *types.Vector) error {
			return realVector(c, args[0], n, out, f)
		},
	}
}

func realVector(c *Call, arg *types.Vector, n int, out *types.Vector, f func(float64) float64) error {
	base := out.Len()
	out.Resize(base + n)
	in, res := arg.Float64s()[:n], out.Float64s()[base:]
	for i, v := range in {
		if arg.IsNull(i) {
			out.SetNull(base + i)
			continue
		}
		r := f(v)
		if math.IsInf(r, 0) || math.IsNaN(r) {
			return errOutOfRange("DOUBLE", c.text())
		}
		res[i] = r
	}
	return nil
}

func checkedDouble(c *Call, f float64) (types.Value, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return types.Null, errOutOfRange("DOUBLE", c.text())
	}
	return types.NewDouble(f), nil
}

// registerReal registers the functions of doubles.
func registerReal() {
	d := definer(catNumeric)
	real := func(usage string, f func(float64) float64, aliases ...string) {
		fn := *realFunc("", f)
		fn.Aliases = aliases
		d.def(usage, fn)
	}
	partial := func(usage string, f func(float64) (float64, bool)) {
		d.def(usage, Func{
			Args: []ArgKind{ArgDouble}, Result: ResultDouble,
			Row: func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
				r, ok := f(a[0].Double())
				if !ok {
					return types.Null, nil
				}
				return checkedDouble(c, r)
			},
		})
	}
	real("EXP(x)", math.Exp)
	real("SIN(x)", math.Sin)
	real("COS(x)", math.Cos)
	real("TAN(x)", math.Tan)
	real("COT(x)", func(x float64) float64 { return 1 / math.Tan(x) })
	real("DEGREES(x)", func(x float64) float64 { return x * (180 / math.Pi) })
	real("RADIANS(x)", func(x float64) float64 { return x * (math.Pi / 180) })
	partial("SQRT(x)", func(x float64) (float64, bool) { return math.Sqrt(x), x >= 0 })
	partial("ASIN(x)", inverse(math.Asin))
	partial("ACOS(x)", inverse(math.Acos))
	d.def("POW(x, y)", Func{
		Aliases: []string{"power"}, Args: []ArgKind{ArgDouble, ArgDouble}, Result: ResultDouble, NotNull: true,
		Row: func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
			return checkedDouble(c, math.Pow(a[0].Double(), a[1].Double()))
		},
	})
	for _, usage := range []string{"ATAN(y); ATAN(y, x)", "ATAN2(y, x)"} {
		d.def(usage, Func{
			Args: []ArgKind{ArgDouble, ArgDouble}, Min: 1, Max: 2, Result: ResultDouble, NotNull: true,
			Row: func(_ *Context, c *Call, a []types.Value) (types.Value, error) {
				if len(a) == 1 {
					return types.NewDouble(math.Atan(a[0].Double())), nil
				}
				return checkedDouble(c, math.Atan2(a[0].Double(), a[1].Double()))
			},
		})
	}
	d.def("PI()", Func{
		Result: ResultOf(types.Type{Kind: types.KindDouble, Precision: 8, Scale: 6}), NotNull: true,
		Row: func(*Context, *Call, []types.Value) (types.Value, error) { return types.NewDouble(math.Pi), nil },
	})
}

func registerLogarithms() {
	d := definer(catNumeric)
	log := func(usage string, low, high int, f func(a []types.Value) (float64, bool)) {
		d.def(usage, Func{
			Args: []ArgKind{ArgDouble, ArgDouble}[:high], Min: low, Max: high, Result: ResultDouble,
			Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
				r, ok := f(a)
				if !ok {
					return types.Null, x.Fault(sqlerr.New(sqlerr.InvalidArgumentForLogarithm))
				}
				return types.NewDouble(r), nil
			},
		})
	}
	one := func(f func(float64) (float64, bool)) func([]types.Value) (float64, bool) {
		return func(a []types.Value) (float64, bool) { return f(a[0].Double()) }
	}
	log("LN(x)", 1, 1, one(logOf))
	log("LOG2(x)", 1, 1, one(log2Of))
	log("LOG10(x)", 1, 1, one(log10Of))
	log("LOG(x); LOG(base, x)", 1, 2, func(a []types.Value) (float64, bool) {
		if len(a) == 1 {
			return logOf(a[0].Double())
		}
		return logBase(a[0].Double(), a[1].Double())
	})
}

// registerRandom registers RAND: with a seed MySQL's generator, which goes on from row to row if the seed is constant.
func registerRandom() {
	definer(catNumeric).def("RAND(); RAND(seed)", Func{
		Args: []ArgKind{ArgInt}, Min: 0, Max: 1, KeepNulls: true, NotNull: true, Volatility: Volatile, Result: ResultDouble,
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			if len(a) == 0 {
				if x.Env == nil {
					return types.Null, errNoSession
				}
				return types.NewDouble(float64(x.Env.Uint64()>>11) / (1 << 53)), nil
			}
			seed := uint32(0)
			if !a[0].IsNull() {
				seed = uint32(a[0].Uint())
			}
			if !IsConst(c.Args[0]) {
				r := newRand(seed)
				return types.NewDouble(r.next()), nil
			}
			r := x.State(c, func() any {
				r := newRand(seed)
				return &r
			}).(*randState)
			return types.NewDouble(r.next()), nil
		},
	})
}

func registerBits() {
	d := definer(catNumeric)
	d.def("CRC32(s)", Func{
		Args: []ArgKind{ArgString}, Result: ResultUint, NotNull: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewUint(uint64(crc32.ChecksumIEEE(a[0].Bytes()))), nil
		},
	})
	d.overloads("BIT_COUNT(n)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) > 0 && args[0].Type().IsBlob() && !isHexLiteral(args[0]) {
			return bitCountOfBytes, args, nil
		}
		return bitCountOfNumber, args, nil
	})
	d.def("INTERVAL(n, n1, ...)", Func{
		Args: []ArgKind{ArgDecimal}, Min: 2, Max: -1, KeepNulls: true, NotNull: true, Result: ResultInt,
		Row: intFunc(func(_ *Call, a []types.Value) int64 {
			if a[0].IsNull() {
				return -1
			}
			n := a[0].Decimal()
			return intervalOf(len(a)-1, func(i int) bool {
				return a[i+1].IsNull() || compareDecimals(a[i+1].Decimal(), n) <= 0
			})
		}),
	})
}

func isHexLiteral(n Node) bool {
	c, ok := n.(*Const)
	return ok && c.hex
}

var (
	bitCountOfNumber = &Func{
		Name: "bit_count", Args: []ArgKind{ArgInt}, NotNull: true, Result: ResultInt,
		Row: intFunc(func(_ *Call, a []types.Value) int64 { return int64(bits.OnesCount64(a[0].Uint())) }),
	}
	bitCountOfBytes = &Func{
		Name: "bit_count", Args: []ArgKind{ArgBytes}, NotNull: true, Result: ResultInt,
		Row: intFunc(func(_ *Call, a []types.Value) int64 {
			n := 0
			for _, c := range a[0].Bytes() {
				n += bits.OnesCount8(c)
			}
			return int64(n)
		}),
	}
)
