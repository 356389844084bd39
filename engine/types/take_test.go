package types

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types/decimal"
)

func drawLiteral(t *rapid.T) Value {
	n := rapid.OneOf(rapid.Int64Range(-200, 200), rapid.Int64()).Draw(t, "number")
	switch rapid.IntRange(0, 4).Draw(t, "literal") {
	case 0:
		return NewInt(n)
	case 1:
		return NewDecimal(decimal.FromUnscaled(n, rapid.IntRange(0, 20).Draw(t, "scale")))
	case 2:
		part := func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "part") }
		return NewString(fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", part(0, 2500), part(0, 13), part(0, 32), part(0, 24), part(0, 60), part(0, 60)))
	case 3:
		return NewString(rapid.StringMatching(`[0-9a-z é.:-]{0,20}`).Draw(t, "text"))
	}
	return rapid.SampledFrom([]Value{Null, NewUint(1 << 63), NewDouble(1.5), NewDecimal(decimal.Huge()), NewBytes([]byte{0xff})}).Draw(t, "rare")
}

// What a type takes is what is stored, in every mode, and nothing is said of it.
func TestTakes(t *testing.T) {
	zone := &Type{Kind: KindVarChar, Length: MaxVarLength, Collation: CollationUTF8MB40900AI}
	rapid.Check(t, func(t *rapid.T) {
		to, v := columnTypes().Draw(t, "type"), drawLiteral(t)
		taken := v
		if !to.Takes(&taken) {
			if !same(taken, v) {
				t.Fatalf("%s: %+v was changed to %+v", to.Kind, v, taken)
			}
			return
		}
		ctx := Context{Mode: Mode(rapid.IntRange(0, 1<<8-1).Draw(t, "mode")), Warn: func(e *sqlerr.Error) { t.Errorf("%s: %+v: %v", to.Kind, v, e) }}
		var from *Type
		if v.Class() == ClassBytes {
			from = zone
		}
		if want, err := ctx.Store(v, from, to); err != nil || !same(want, taken) {
			t.Fatalf("%s of %+v: %+v, not %+v, %v", to.Kind, to, taken, want, err)
		}
	})
	for _, c := range []struct {
		v Value
		t Type
	}{
		{NewInt(127), Type{Kind: KindTinyInt}}, {NewInt(-1 << 63), Type{Kind: KindBigInt}}, {NewInt(255), Type{Kind: KindTinyInt, Unsigned: true}},
		{NewInt(9), Type{Kind: KindDecimal, Precision: 3, Scale: 2}}, {NewDecimal(decimal.FromUnscaled(-999, 2)), Type{Kind: KindDecimal, Precision: 3, Scale: 2}},
		{NewString("2024-02-28 23:59:59"), Type{Kind: KindDateTime}}, {NewString("eight by eight, and more"), Type{Kind: KindChar, Length: 24}},
		{NewString(""), Type{Kind: KindVarChar, Length: 1}}, {NewString(" "), Type{Kind: KindText}},
	} {
		if v := c.v; !c.t.Takes(&v) {
			t.Errorf("%s does not take %+v", c.t.Kind, c.v)
		}
	}
}
