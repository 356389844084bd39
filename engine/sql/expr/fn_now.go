package expr

import (
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Functions of the current time, and those between clocks and instants.

func init() {
	registerNow()
	registerUnix()
}

// literalFSPArg returns the number of fractional digits that argument i asks for.
func literalFSPArg(c *Call, i int) (uint8, error) {
	if i >= len(c.Args) {
		return 0, nil
	}
	v, ok := Literal(c.Args[i])
	if !ok || v.IsNull() {
		return 0, errWrongArguments(c.Func.Name)
	}
	if n := argInt(v); n >= 0 && n <= types.MaxFSP {
		return uint8(n), nil
	}
	return 0, sqlerr.New(sqlerr.TooBigPrecision, argInt(v), c.Func.Name, types.MaxFSP)
}

// clockFunc is a function of the current time: clock returns it, kind is what it gives of it.
func clockFunc(usage string, kind types.Kind, v Volatility, clock func(x *Context) types.DateTime, aliases ...string) {
	f := Func{
		Aliases: aliases, Min: 0, Max: 1, Args: []ArgKind{ArgInt}, Volatility: v, NotNull: true,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			fsp, err := literalFSPArg(c, 0)
			return types.Type{Kind: kind, FSP: fsp}, err
		},
		Row: func(x *Context, c *Call, _ []types.Value) (types.Value, error) {
			d := clock(x).TruncateFraction(int(c.t.FSP))
			switch kind {
			case types.KindDate:
				return types.NewDate(d.Truncate()), nil
			case types.KindTime:
				return types.NewTime(d.Duration()), nil
			}
			return types.NewDateTime(d), nil
		},
	}
	if kind == types.KindDate {
		f.Max, f.Args = 0, nil
	}
	definer(catTime).def(usage, f)
}

func registerNow() {
	utc := func(x *Context) types.DateTime { return clockAt(x.Now.UnixMicro(), time.UTC) }
	clockFunc("NOW(); NOW(fsp)", types.KindDateTime, Stable, (*Context).Clock, "current_timestamp", "localtime", "localtimestamp")
	clockFunc("CURDATE()", types.KindDate, Stable, (*Context).Clock, "current_date")
	clockFunc("CURTIME(); CURTIME(fsp)", types.KindTime, Stable, (*Context).Clock, "current_time")
	clockFunc("UTC_TIMESTAMP(); UTC_TIMESTAMP(fsp)", types.KindDateTime, Stable, utc)
	clockFunc("UTC_DATE()", types.KindDate, Stable, utc)
	clockFunc("UTC_TIME(); UTC_TIME(fsp)", types.KindTime, Stable, utc)
	clockFunc("SYSDATE(); SYSDATE(fsp)", types.KindDateTime, Volatile, func(x *Context) types.DateTime {
		if x.Env == nil {
			return x.Clock()
		}
		return clockAt(x.Env.Now().UnixMicro(), x.location())
	})
}

func registerUnix() {
	d := definer(catTime)
	d.overloads("UNIX_TIMESTAMP(); UNIX_TIMESTAMP(d)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) == 0 {
			return unixNow, args, nil
		}
		fsp := fspOf(args[0])
		if v, ok := Literal(args[0]); ok && isString(args[0].Type()) {
			if _, _, ok := types.ParseDateTime(v.Bytes(), 0); !ok {
				fsp = types.MaxFSP // of any text
			}
		}
		f := &Func{
			Name: "unix_timestamp", Args: []ArgKind{ArgAny}, Volatility: Stable, Result: ResultInt, Row: unixTimestamp,
		}
		if fsp > 0 {
			f.Result = ResultOf(types.Type{Kind: types.KindDecimal, Precision: 12 + fsp, Scale: fsp})
		}
		return f, args, nil
	})
	d.overloads("FROM_UNIXTIME(n); FROM_UNIXTIME(n, format)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		f := &Func{
			Name: "from_unixtime", Args: []ArgKind{ArgDecimal}, Volatility: Stable, Row: fromUnixtime,
			Result: func(_ *Binder, c *Call) (types.Type, error) {
				return types.Type{Kind: types.KindDateTime, FSP: min(fractionOf(c.Given[0]), types.MaxFSP)}, nil
			},
		}
		if len(args) == 2 {
			f.Args, f.Result, f.Row = []ArgKind{ArgDecimal, ArgText}, resultFormatted, formatUnixtime
		}
		return f, args, nil
	})
	d.def("CONVERT_TZ(d, from, to)", Func{
		Args: []ArgKind{ArgDateTime, ArgUTF8, ArgUTF8},
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			return types.Type{Kind: types.KindDateTime, FSP: c.Args[0].Type().FSP}, nil
		},
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			from, ok1 := x.zone(a[1].Bytes())
			to, ok2 := x.zone(a[2].Bytes())
			if !ok1 || !ok2 {
				return types.Null, nil
			}
			if micros, ok := instantOf(a[0].DateTime(), from); ok && micros > 0 {
				return types.NewDateTime(clockAt(micros, to)), nil
			}
			_, month, day := a[0].DateTime().Date()
			if month == 0 || day == 0 {
				return types.Null, nil
			}
			return a[0], nil
		},
	})
}

// fractionOf returns the digits after the point that a number has: none for integers, at most those of microseconds for
// doubles and text.
func fractionOf(n Node) uint8 {
	switch t := n.Type(); {
	case t.Kind == types.KindDecimal:
		return t.Scale
	case isExact(t), t.Kind == types.KindNull:
		return 0
	case t.IsTemporal():
		return t.FSP
	}
	return types.MaxFSP
}

var unixNow = &Func{
	Name: "unix_timestamp", Volatility: Stable, NotNull: true, Result: ResultInt,
	Row: func(x *Context, _ *Call, _ []types.Value) (types.Value, error) {
		return types.NewInt(x.Now.Unix()), nil
	},
}

// unixTimestamp gives 0 for what lies outside of the known instants.
// unixTimestamp gives 0 for what is no date.
func unixTimestamp(x *Context, c *Call, a []types.Value) (types.Value, error) {
	micros := int64(0)
	if a[0].Class() == types.ClassTimestamp {
		micros = int64(a[0].Timestamp())
	} else {
		mode := x.Mode
		x.Mode &^= types.ModeNoZeroInDate
		v, err := x.convert(a[0], c.Args[0].Type(), &types.Type{Kind: types.KindDateTime, FSP: fspOf(c.Args[0])})
		if x.Mode = mode; err != nil {
			return types.Null, err
		}
		if m, ok := instantOf(v.DateTime(), x.location()); ok && !v.IsNull() {
			micros = m
		}
	}
	if c.t.Kind == types.KindBigInt {
		return types.NewInt(micros / microsASec), nil
	}
	d, err := decimal.FromUnscaled(micros, types.MaxFSP).Truncate(int(c.t.Scale))
	return types.NewDecimal(d), err
}

// unixMicros reads a number of seconds since 1970.
func unixMicros(d decimal.Decimal, fsp int) (int64, bool) {
	d, err := d.Round(fsp)
	if err != nil || d.Negative() {
		return 0, false
	}
	d, err = d.Round(types.MaxFSP)
	if err != nil {
		return 0, false
	}
	micros, ok := d.Unscaled()
	return micros, ok && micros <= maxUnixMicros
}

func fromUnixtime(x *Context, c *Call, a []types.Value) (types.Value, error) {
	micros, ok := unixMicros(a[0].Decimal(), int(c.t.FSP))
	if !ok {
		return types.Null, nil
	}
	return types.NewDateTime(clockAt(micros, x.location())), nil
}

func formatUnixtime(x *Context, _ *Call, a []types.Value) (types.Value, error) {
	micros, ok := unixMicros(a[0].Decimal(), types.MaxFSP)
	if !ok {
		return types.Null, nil
	}
	out, ok := appendDateFormat(x.Scratch(), clockAt(micros, x.location()), a[1].Bytes())
	if !ok || len(a[1].Bytes()) == 0 {
		return types.Null, nil
	}
	return types.NewBytes(x.Keep(out)), nil
}
