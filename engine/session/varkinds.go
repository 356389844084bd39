package session

import (
	"math"

	"github.com/triremedb/trireme/engine/types"
)

// Ways to declare variables.

func boolVar(name string, scope varScope, def bool) *variable {
	v := &variable{name: name, kind: varBool, scope: scope}
	if def {
		v.def.n = 1
	}
	return v
}

func uintVar(name string, scope varScope, def, least, most uint64) *variable {
	return &variable{name: name, kind: varUint, scope: scope, def: varValue{n: def}, min: least, max: most}
}

func intVar(name string, scope varScope, def, least, most int64) *variable {
	return &variable{name: name, kind: varInt, scope: scope, def: varValue{n: uint64(def)}, min: uint64(least), max: uint64(most)}
}

func doubleVar(name string, scope varScope, def, least, most float64) *variable {
	return &variable{name: name, kind: varDouble, scope: scope, def: varValue{n: floatBits(def)}, min: floatBits(least), max: floatBits(most)}
}

func enumVar(name string, scope varScope, def uint64, names ...string) *variable {
	return &variable{name: name, kind: varEnum, scope: scope, def: varValue{n: def}, names: names}
}

func setVar(name string, scope varScope, def uint64, names ...string) *variable {
	return &variable{name: name, kind: varSet, scope: scope, def: varValue{n: def}, names: names}
}

func stringVar(name string, scope varScope, def string) *variable {
	return &variable{name: name, kind: varString, scope: scope, def: varValue{s: def}}
}

func nullVar(name string, scope varScope) *variable {
	return &variable{name: name, kind: varString, scope: scope | nullable, def: varValue{n: 1}}
}

// with gives a variable its functions.
func (v *variable) with(fn func(v *variable)) *variable {
	fn(v)
	return v
}

// computed makes a variable one whose value is worked out.
func (v *variable) computed(get func(s *Session, global bool) varValue) *variable {
	v.get = get
	return v
}

// guard makes a variable one by which no session has more than the others without a privilege.
func (v *variable) guard() *variable {
	v.guarded = true
	return v
}

// onApply calls fn with each session's value.
func (v *variable) onApply(fn func(s *Session, x varValue)) *variable {
	v.applied = fn
	return v
}

// onCheck calls fn before a value is set.
func (v *variable) onCheck(fn func(s *Session, x *varValue) error) *variable {
	v.check = fn
	return v
}

func floatOf(n uint64) float64   { return math.Float64frombits(n) }
func floatBits(f float64) uint64 { return math.Float64bits(f) }

// valueText is a value as messages show it.
func valueText(x types.Value) string {
	if x.IsNull() {
		return "NULL"
	}
	return string(types.AppendText(nil, x, typeOfClass(x.Class()), nil))
}

// typeOfClass is a type that the text of any value of the class can be made with.
func typeOfClass(c types.Class) *types.Type {
	switch c {
	case types.ClassInt:
		return bigintType
	case types.ClassUint:
		return unsignedType
	case types.ClassFloat:
		return &types.Type{Kind: types.KindFloat}
	case types.ClassDouble:
		return doubleType
	case types.ClassDecimal:
		return &types.Type{Kind: types.KindDecimal, Precision: 65, Scale: 30}
	case types.ClassDate:
		return &types.Type{Kind: types.KindDate}
	case types.ClassDateTime:
		return &types.Type{Kind: types.KindDateTime, FSP: 6}
	case types.ClassTimestamp:
		return &types.Type{Kind: types.KindTimestamp, FSP: 6}
	case types.ClassTime:
		return &types.Type{Kind: types.KindTime, FSP: 6}
	case types.ClassJSON:
		return &types.Type{Kind: types.KindJSON}
	}
	return textType
}
