package decimal

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"
)

// exact is the oracle's context: wide enough for every intermediate result.
var exact = func() *apd.Context {
	c := apd.BaseContext.WithPrecision(400)
	c.Rounding = apd.RoundDown
	return c
}()

func oracle(t rapid.TB, d Decimal) *apd.Decimal {
	t.Helper()
	o, _, err := apd.NewFromString(d.String())
	if err != nil {
		t.Fatalf("oracle cannot read %q: %v", d.String(), err)
	}
	return o
}

// quantized is the oracle's x with scale digits after the point.
func quantized(x *apd.Decimal, scale int, rounding apd.Rounder) string {
	c := *exact
	c.Rounding = rounding
	var r apd.Decimal
	if _, err := c.Quantize(&r, x, int32(-scale)); err != nil {
		return err.Error()
	}
	text := r.Text('f')
	if r.IsZero() {
		text = strings.TrimPrefix(text, "-")
	}
	return text
}

// check compares a result with the oracle's exact one: overflow exactly when
// the integer part is too long, else the oracle's digits up to the scale.
func check(t rapid.TB, op string, got Decimal, err error, want *apd.Decimal, scale int) {
	t.Helper()
	whole := strings.TrimPrefix(quantized(want, 0, apd.RoundDown), "-")
	if over := len(whole) > 65; over != errors.Is(err, ErrOverflow) {
		t.Fatalf("%s: error %v, oracle has %s", op, err, want.Text('f'))
	} else if over {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	if got.Scale() > scale || got.Scale() < scale && got.Digits() < maxDigits && got.Scale() < maxDigits {
		t.Fatalf("%s = %s: scale %d, want %d", op, got, got.Scale(), scale)
	}
	if s := quantized(want, got.Scale(), apd.RoundDown); s != got.String() {
		t.Fatalf("%s = %s, oracle %s", op, got, s)
	}
	checkInvariants(t, got)
}

func checkInvariants(t rapid.TB, d Decimal) {
	t.Helper()
	if d.Digits() > maxDigits || d.IsZero() && d.Negative() || d.Scale() > maxDigits {
		t.Fatalf("%s breaks an invariant", d)
	}
}

// numbers draws decimals of all sizes, with runs of nines and zeros.
func numbers() *rapid.Generator[Decimal] {
	return rapid.Custom(func(t *rapid.T) Decimal {
		n := rapid.IntRange(1, 65).Draw(t, "digits")
		scale := rapid.IntRange(0, min(n, 30)).Draw(t, "scale")
		alphabet := rapid.SampledFrom([]string{"0123456789", "09", "9", "05", "4999"}).Draw(t, "alphabet")
		text := make([]byte, 0, 70)
		if rapid.Bool().Draw(t, "negative") {
			text = append(text, '-')
		}
		for i := 0; i < n; i++ {
			if i == n-scale {
				text = append(text, '.')
			}
			text = append(text, alphabet[rapid.IntRange(0, len(alphabet)-1).Draw(t, "digit")])
		}
		d, _, _, err := Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		return d
	})
}

func TestArithmeticAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numbers().Draw(t, "a"), numbers().Draw(t, "b")
		x, y := oracle(t, a), oracle(t, b)
		scale := max(a.Scale(), b.Scale())
		var want apd.Decimal

		got, err := Add(a, b)
		exact.Add(&want, x, y)
		check(t, "Add", got, err, &want, scale)

		got, err = Sub(a, b)
		exact.Sub(&want, x, y)
		check(t, "Sub", got, err, &want, scale)

		got, err = Mul(a, b)
		exact.Mul(&want, x, y)
		check(t, "Mul", got, err, &want, a.Scale()+b.Scale())

		if c := Compare(a, b); c != x.Cmp(y) {
			t.Fatalf("Compare = %d, oracle %d", c, x.Cmp(y))
		}
		if b.IsZero() {
			return
		}
		got, err = Div(a, b, 4)
		exact.Quo(&want, x, y)
		check(t, "Div", got, err, &want, divScale(a.Scale(), b.Scale(), 4))

		got, err = Mod(a, b)
		exact.Rem(&want, x, y)
		check(t, "Mod", got, err, &want, scale)
	})
}

func TestRoundAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := numbers().Draw(t, "a")
		scale := rapid.IntRange(-70, 40).Draw(t, "scale")
		for _, mode := range []struct {
			name    string
			round   func(int) (Decimal, error)
			rounder apd.Rounder
		}{{"Round", a.Round, apd.RoundHalfUp}, {"Truncate", a.Truncate, apd.RoundDown}} {
			got, err := mode.round(scale)
			want := quantized(oracle(t, a), scale, mode.rounder)
			if w, _, err := apd.NewFromString(want); err == nil {
				want = quantized(w, max(scale, 0), apd.RoundDown)
			}
			whole, _, _ := strings.Cut(strings.TrimPrefix(want, "-"), ".")
			digits := strings.TrimLeft(strings.Replace(strings.TrimPrefix(want, "-"), ".", "", 1), "0")
			if len(whole) > 65 || len(digits) > maxDigits {
				if !errors.Is(err, ErrOverflow) {
					t.Fatalf("%s(%s, %d) = %s, %v: want overflow", mode.name, a, scale, got, err)
				}
				continue
			}
			if err != nil || got.String() != want {
				t.Fatalf("%s(%s, %d) = %s, %v: want %s", mode.name, a, scale, got, err, want)
			}
			checkInvariants(t, got)
		}
		var want apd.Decimal
		exact.Ceil(&want, oracle(t, a))
		if got := a.Ceil(); got.String() != quantized(&want, 0, apd.RoundDown) {
			t.Fatalf("Ceil(%s) = %s", a, got)
		}
		exact.Floor(&want, oracle(t, a))
		if got := a.Floor(); got.String() != quantized(&want, 0, apd.RoundDown) {
			t.Fatalf("Floor(%s) = %s", a, got)
		}
	})
}

func TestPackedOrderAndRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(1, 65).Draw(t, "precision")
		scale := rapid.IntRange(0, min(precision, 30)).Draw(t, "scale")
		a, _, _ := numbers().Draw(t, "a").Fit(precision, scale)
		b, _, _ := numbers().Draw(t, "b").Fit(precision, scale)
		if rapid.Bool().Draw(t, "near") { // neighbours
			step := Decimal{w: pow10[0], scale: uint8(scale)}
			b, _ = Add(a, step)
			b, _, _ = b.Fit(precision, scale)
		}
		pa, pb := a.AppendPacked(nil, precision, scale), b.AppendPacked(nil, precision, scale)
		if len(pa) != PackedSize(precision, scale) {
			t.Fatalf("size %d, want %d", len(pa), PackedSize(precision, scale))
		}
		if got, want := bytes.Compare(pa, pb), Compare(a, b); got != want {
			t.Fatalf("%s and %s pack to %x and %x", a, b, pa, pb)
		}
		back, err := DecodePacked(pa, precision, scale)
		if err != nil || back != a {
			t.Fatalf("%s came back as %s, %v", a, back, err)
		}
	})
}

// TestShortPacking holds the fast way of reading short numbers against the general one,
// for numbers and for any bytes.
func TestShortPacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(1, 18).Draw(t, "precision")
		scale := rapid.IntRange(0, precision).Draw(t, "scale")
		a, _, _ := numbers().Draw(t, "a").Fit(precision, scale)
		packed := a.AppendPacked(nil, precision, scale)
		if rapid.Bool().Draw(t, "any bytes") {
			packed = rapid.SliceOfN(rapid.Byte(), len(packed), len(packed)).Draw(t, "bytes")
		}
		p := NewShortPacking(precision, scale)
		if p.Size() != len(packed) {
			t.Fatalf("size %d, want %d", p.Size(), len(packed))
		}
		got, ok := p.Unscaled(packed)
		want, err := DecodePacked(packed, precision, scale)
		if ok != (err == nil) || ok && FromUnscaled(got, scale) != want {
			t.Fatalf("%x is %d, %v; want %s, %v", packed, got, ok, want, err)
		}
	})
}

// The examples are MySQL's, from the comment on decimal2bin in its decimal.cc.
func TestPackedExamples(t *testing.T) {
	for _, c := range []struct {
		number           string
		precision, scale int
		packed           string
	}{
		{"1234567890.1234", 14, 4, "\x81\x0d\xfb\x38\xd2\x04\xd2"},
		{"-1234567890.1234", 14, 4, "\x7e\xf2\x04\xc7\x2d\xfb\x2d"},
		{"0", 1, 0, "\x80"},
		{"12345.67", 7, 2, "\x80\x30\x39\x43"},
		{"-12345.67", 7, 2, "\x7f\xcf\xc6\xbc"},
		{"0.5", 1, 1, "\x85"},
	} {
		d := mustParse(t, c.number)
		if got := string(d.AppendPacked(nil, c.precision, c.scale)); got != c.packed {
			t.Errorf("%s: %x, want %x", c.number, got, c.packed)
		}
	}
}

func mustParse(t rapid.TB, s string) Decimal {
	t.Helper()
	d, n, _, err := Parse([]byte(s))
	if err != nil || n != len(s) {
		t.Fatalf("Parse(%q): %d, %v", s, n, err)
	}
	return d
}

func TestParse(t *testing.T) {
	nines := strings.Repeat("9", 65)
	for _, c := range []struct {
		in, out string
		n       int
		exact   bool
		err     error
	}{
		{"0", "0", 1, true, nil},
		{"-0", "0", 2, true, nil},
		{"-0.00", "0.00", 5, true, nil},
		{"12.50x", "12.50", 5, true, nil},
		{".5", "0.5", 2, true, nil},
		{"5.", "5", 2, true, nil},
		{"+1e3", "1000", 4, true, nil},
		{"1.5e-3", "0.0015", 6, true, nil},
		{"1e", "1", 1, true, nil},
		{"1e+", "1", 1, true, nil},
		{"", "0", 0, true, nil},
		{".", "0", 0, true, nil},
		{"-", "0", 0, true, nil},
		{"e5", "0", 0, true, nil},
		{nines, nines, 65, true, nil},
		{"-" + nines, "-" + nines, 66, true, nil},
		{nines + "9", "", 66, true, ErrOverflow},
		{"1e65", "", 4, true, ErrOverflow},
		{"1e999999999999999999999", "", 23, true, ErrOverflow},
		{"0e999999999999999999999", "0", 23, true, nil},
		{"1e-999999999", "0." + strings.Repeat("0", 76), 12, false, nil},
		{"0." + strings.Repeat("0", 80) + "1", "0." + strings.Repeat("0", 76), 83, false, nil},
		{"0." + strings.Repeat("1", 80), "0." + strings.Repeat("1", 76), 82, false, nil},
		{strings.Repeat("0", 100) + "7", "7", 101, true, nil},
		{strings.Repeat("1", 80) + "e-40", strings.Repeat("1", 40) + "." + strings.Repeat("1", 36), 84, false, nil},
	} {
		d, n, exact, err := Parse([]byte(c.in))
		if n != c.n || exact != c.exact || !errors.Is(err, c.err) || err == nil && d.String() != c.out {
			t.Errorf("Parse(%q) = %s, %d, %v, %v", c.in, d, n, exact, err)
		}
	}
}

func TestDivisionScale(t *testing.T) {
	for _, c := range []struct {
		a, b, raw, rounded string
	}{
		{"1", "3", "0.333333333", "0.3333"},
		{"2", "3", "0.666666666", "0.6667"},
		{"1.00", "3", "0.333333333", "0.333333"},
		{"10", "4", "2.500000000", "2.5000"},
		{"-7", "2", "-3.500000000", "-3.5000"},
	} {
		a := mustParse(t, c.a)
		q, err := Div(a, mustParse(t, c.b), 4)
		if err != nil || q.String() != c.raw {
			t.Errorf("%s/%s = %s, %v", c.a, c.b, q, err)
		}
		if r, err := q.Round(a.Scale() + 4); err != nil || r.String() != c.rounded {
			t.Errorf("%s/%s rounds to %s, %v", c.a, c.b, r, err)
		}
	}
	if _, err := Div(FromInt64(1), Decimal{}, 4); !errors.Is(err, ErrDivisionByZero) {
		t.Error("division by zero:", err)
	}
	if _, err := Mod(FromInt64(1), Decimal{}); !errors.Is(err, ErrDivisionByZero) {
		t.Error("modulo zero:", err)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		in, out  string
		lost, ok bool
	}{
		{"12.345", "12.35", true, true},
		{"-12.345", "-12.35", true, true},
		{"12.3400", "12.34", false, true},
		{"999.994", "999.99", true, true},
		{"999.995", "999.99", true, false},
		{"-1000", "-999.99", true, false},
		{"7", "7.00", false, true},
		{"-0.001", "0.00", true, true},
		{"1e64", "999.99", true, false},
	} {
		r, lost, ok := mustParse(t, c.in).Fit(5, 2)
		if r.String() != c.out || lost != c.lost || ok != c.ok {
			t.Errorf("Fit(%s) = %s, %v, %v", c.in, r, lost, ok)
		}
	}
	if _, _, ok := Huge().Fit(65, 0); ok {
		t.Error("Huge fits DECIMAL(65,0)")
	}
}

func TestIntegers(t *testing.T) {
	for _, c := range []struct {
		in   string
		i    int64
		iok  bool
		u    uint64
		uok  bool
		same bool
	}{
		{"1.5", 2, true, 2, true, false},
		{"-1.5", -2, true, 0, false, false},
		{"-0.4", 0, true, 0, true, false},
		{"9223372036854775807", math.MaxInt64, true, math.MaxInt64, true, true},
		{"9223372036854775808", math.MaxInt64, false, 1 << 63, true, false},
		{"-9223372036854775808", math.MinInt64, true, 0, false, true},
		{"-9223372036854775809", math.MinInt64, false, 0, false, false},
		{"18446744073709551615", math.MaxInt64, false, math.MaxUint64, true, false},
		{"18446744073709551615.5", math.MaxInt64, false, math.MaxUint64, false, false},
		{"-9223372036854775808.5", math.MinInt64, false, 0, false, false},
	} {
		d := mustParse(t, c.in)
		if i, ok := d.Int64(); i != c.i || ok != c.iok {
			t.Errorf("Int64(%s) = %d, %v", c.in, i, ok)
		}
		if u, ok := d.Uint64(); u != c.u || ok != c.uok {
			t.Errorf("Uint64(%s) = %d, %v", c.in, u, ok)
		}
		if c.same && FromInt64(c.i) != d {
			t.Errorf("FromInt64(%d) = %s", c.i, FromInt64(c.i))
		}
	}
}

func TestFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := numbers().Draw(t, "d")
		want, _ := strconv.ParseFloat(d.String(), 64)
		if got := d.Float64(); got != want {
			t.Fatalf("Float64(%s) = %v, want %v", d, got, want)
		}
	})
	for _, f := range []float64{0, 1, -2.5, 1e22, 123456789.125, 1e-20} {
		d, err := FromFloat64(f)
		if err != nil || d.Float64() != f {
			t.Errorf("FromFloat64(%v) = %s, %v", f, d, err)
		}
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e65, -math.MaxFloat64} {
		if _, err := FromFloat64(f); !errors.Is(err, ErrOverflow) {
			t.Errorf("FromFloat64(%v): %v", f, err)
		}
	}
}

func TestHash(t *testing.T) {
	mix := func(seed, v uint64) uint64 { return (seed ^ v) * 0x9e3779b97f4a7c15 }
	rapid.Check(t, func(t *rapid.T) {
		a := numbers().Draw(t, "a")
		b, err := a.Round(a.Scale() + rapid.IntRange(0, 8).Draw(t, "zeros"))
		if err != nil {
			return
		}
		if a.Hash(1, mix) != b.Hash(1, mix) {
			t.Fatalf("%s and %s hash differently", a, b)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	a, b := mustParse(t, strings.Repeat("9", 65)), mustParse(t, "-12345678901234567890.123456789")
	buf := make([]byte, 0, 128)
	packed := b.AppendPacked(nil, 65, 30)
	text := []byte("-123456789.123456789")
	n := testing.AllocsPerRun(100, func() {
		_, _ = Add(a, b)
		_, _ = Mul(b, b)
		_, _ = Div(a, b, 4)
		_, _ = Mod(a, b)
		_ = Compare(a, b)
		_, _, _ = b.Fit(40, 5)
		buf = b.AppendPacked(buf[:0], 65, 30)
		buf = b.AppendText(buf[:0])
		_, _ = DecodePacked(packed, 65, 30)
		_, _, _, _ = Parse(text)
		_ = b.Float64()
		_, _ = FromFloat64(1.25)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecodePacked(f *testing.F) {
	f.Add([]byte{0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2}, 14, 4)
	f.Add([]byte{0x7f, 0xff}, 3, 1)
	f.Fuzz(func(t *testing.T, b []byte, precision, scale int) {
		if precision < 1 || precision > MaxPrecision || scale < 0 || scale > min(precision, MaxScale) {
			return
		}
		d, err := DecodePacked(b, precision, scale)
		if err != nil {
			return
		}
		checkInvariants(t, d)
		if _, _, ok := d.Fit(precision, scale); !ok {
			t.Fatalf("%x gives %s, which does not fit", b, d)
		}
		if out := d.AppendPacked(nil, precision, scale); !bytes.Equal(out, b[:len(out)]) {
			t.Fatalf("%x came back as %x", b, out)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("-12.50e-3x"))
	f.Add([]byte(strings.Repeat("9", 80)))
	f.Fuzz(func(t *testing.T, s []byte) {
		d, n, exact, err := Parse(s)
		if n < 0 || n > len(s) {
			t.Fatalf("n = %d of %d", n, len(s))
		}
		if err != nil || n == 0 {
			return
		}
		checkInvariants(t, d)
		if o, _, e := apd.NewFromString(string(s[:n])); e == nil && exact && n < 200 && o.Exponent > -300 {
			if o.Cmp(oracle(t, d)) != 0 {
				t.Fatalf("Parse(%q) = %s", s, d)
			}
		}
	})
}

func BenchmarkAddShort(b *testing.B) {
	x, y := FromUnscaled(123456, 2), FromUnscaled(987654321, 2)
	for b.Loop() {
		_, _ = Add(x, y)
	}
}

func BenchmarkMulWide(b *testing.B) {
	x := FromUint128(1<<60, 12345, 10, false)
	for b.Loop() {
		_, _ = Mul(x, x)
	}
}

func BenchmarkDiv(b *testing.B) {
	x, y := FromUnscaled(123456789, 2), FromUnscaled(37, 0)
	for b.Loop() {
		_, _ = Div(x, y, 4)
	}
}

func BenchmarkAppendPacked(b *testing.B) {
	x := FromUnscaled(123456789, 2)
	buf := make([]byte, 0, 32)
	for b.Loop() {
		buf = x.AppendPacked(buf[:0], 18, 2)
	}
}
