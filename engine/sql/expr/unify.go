package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// Unify returns the type in which values of several expressions meet: the results of
// CASE, COALESCE and the like, and the columns of UNION. what names the operation in
// errors of collations.
func (b *Binder) Unify(what string, nodes ...Node) (types.Type, error) {
	var r types.Type
	notNull := true
	for i, n := range nodes {
		if isRow(n) {
			return r, errOperandColumns(1)
		}
		t := n.Type()
		notNull = notNull && t.NotNull
		if i == 0 {
			r = *t
		} else {
			r = meetTypes(&r, t, nodes[:i], n)
		}
	}
	r.ZeroFill = false
	if r.Kind == types.KindEnum || r.Kind == types.KindSet {
		r = types.Type{Kind: types.KindVarChar, Length: uint32(textLength(&r))}
	}
	if isString(&r) {
		agg, err := b.mix(what, nodes)
		if err != nil {
			return r, err
		}
		var length uint64
		for _, n := range nodes {
			length = max(length, lengthOf(n))
		}
		r = textType(length, agg.id)
	}
	r.NotNull = notNull
	return r, nil
}

// UnifyResults is Unify for columns of UNION and the like. It tells, too, how much the result
// insists on its collation: NoCollation if the texts have none in common.
func (b *Binder) UnifyResults(what string, nodes ...Node) (t types.Type, co Coercibility, err error) {
	if t, err = b.Unify(what, nodes...); err != nil {
		return t, co, err
	}
	same := true
	for _, n := range nodes[1:] {
		same = same && n.Type().Equal(nodes[0].Type())
	}
	if same {
		t = *nodes[0].Type()
	}
	if co = columnCoercibility(&t); !isString(&t) {
		return t, co, nil
	}
	agg, err := b.mix(what, nodes)
	return t, agg.co, err
}

// meetTypes is one step of Unify. Strings get their collation later.
func meetTypes(a, b *types.Type, before []Node, n Node) types.Type {
	text := types.Type{Kind: types.KindVarChar}
	switch {
	case a.Kind == types.KindNull:
		return *b
	case b.Kind == types.KindNull:
		return *a
	case isNumber(a) && isNumber(b):
		return meetNumbers(a, b, before, n)
	case a.IsTemporal() && b.IsTemporal():
		return meetTimes(a, b)
	case a.Kind == types.KindJSON && b.Kind == types.KindJSON:
		return *a
	case hasMembers(a) && a.Equal(b):
		return *a
	}
	return text
}

func meetTimes(a, b *types.Type) types.Type {
	t := types.Type{Kind: types.KindDateTime, FSP: max(a.FSP, b.FSP)}
	if a.Kind == b.Kind {
		t.Kind = a.Kind
	}
	return t
}

func meetNumbers(a, b *types.Type, before []Node, n Node) types.Type {
	ac, bc := a.Class(), b.Class()
	switch {
	case ac == types.ClassDouble || bc == types.ClassDouble || ac == types.ClassFloat || bc == types.ClassFloat:
		return meetShown(a, b)
	case a.Kind == b.Kind && a.Unsigned == b.Unsigned && a.Kind != types.KindDecimal && a.Kind != types.KindBit:
		t := *a
		t.Length, t.Precision, t.Scale = max(a.Length, b.Length), 0, 0
		if a.Length == 0 || b.Length == 0 {
			t.Length = 0
		}
		return t
	case a.Kind == types.KindDecimal || b.Kind == types.KindDecimal:
		return meetDecimals(a, b, before, n)
	case ac == bc:
		return types.Type{Kind: max(integerKind(a), integerKind(b)), Unsigned: ac == types.ClassUint}
	}
	return meetSigns(a, b)
}

func integerKind(t *types.Type) types.Kind {
	if t.IsInteger() {
		return t.Kind
	}
	return types.KindBigInt
}

// meetSigns gives a signed and an unsigned integer a type that holds both: DECIMAL
// beyond BIGINT.
func meetSigns(a, b *types.Type) types.Type {
	unsigned, signed := a, b
	if b.Class() == types.ClassUint {
		unsigned, signed = b, a
	}
	if integerKind(unsigned) == types.KindBigInt {
		if unsigned.Kind == types.KindYear {
			return types.Type{Kind: max(signed.Kind, types.KindInt)}
		}
		return types.Type{Kind: types.KindDecimal, Precision: 20}
	}
	return types.Type{Kind: min(max(unsigned.Kind+1, signed.Kind), types.KindBigInt)}
}

func meetDecimals(a, b *types.Type, before []Node, n Node) types.Type {
	p2, s2 := decimalShape(n)
	whole, scale := p2-s2, s2
	for _, m := range before {
		if m.Type().Kind == types.KindNull {
			continue
		}
		p, s := decimalShape(m)
		whole, scale = max(whole, p-s), max(scale, s)
	}
	precision := min(whole+scale, types.MaxDecimalPrecision)
	return types.Type{Kind: types.KindDecimal, Precision: max(precision, 1), Scale: scale, Unsigned: a.Unsigned && b.Unsigned}
}
