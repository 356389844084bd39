package types

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/sqlerr"
)

func text(s string) Value { return NewString(s) }

func datetime(s string) Value {
	d, _, ok := ParseDateTime([]byte(s), 0)
	if !ok {
		panic(s)
	}
	return NewDateTime(d)
}

// storeCases give, for a column type: a value, what a strict store gives (a text,
// or "!number"), and what a store without strict mode gives ("" if the same).
var storeCases = []struct {
	name string
	t    Type
	rows []storeRow
}{
	{"tinyint", Type{Kind: KindTinyInt}, []storeRow{
		{NewInt(127), "127", ""}, {NewInt(128), "!1264", "127"}, {NewInt(-129), "!1264", "-128"},
		{NewUint(math.MaxUint64), "!1264", "127"}, {NewDouble(2.5), "2", ""}, {NewDouble(-3.5), "-4", ""},
		{text("2.5"), "3", ""}, {text(" 12 "), "12", ""}, {text("1e2"), "100", ""}, {text("12abc"), "!1265", "12"},
		{text("abc"), "!1366", "0"}, {text(""), "!1366", "0"}, {NewDouble(1e300), "!1264", "127"}, {Null, "NULL", ""},
	}},
	{"bigint", Type{Kind: KindBigInt}, []storeRow{
		{text("9223372036854775807"), "9223372036854775807", ""}, {text("9223372036854775808"), "!1264", "9223372036854775807"},
		{text("-9223372036854775808"), "-9223372036854775808", ""}, {text("-1e99"), "!1264", "-9223372036854775808"},
		{datetime("2024-02-29 12:34:56.7"), "20240229123457", ""}, {datetime("2024-02-29 23:59:59.7"), "20240301000000", ""}, {NewTime(MakeDuration(true, 1, 2, 3, 0)), "-10203", ""},
	}},
	{"bigint unsigned", Type{Kind: KindBigInt, Unsigned: true}, []storeRow{
		{text("18446744073709551615"), "18446744073709551615", ""}, {NewInt(-1), "!1264", "0"}, {NewDouble(-0.4), "0", ""},
		{NewDouble(1.8446744073709552e19), "!1264", "18446744073709551615"},
	}},
	{"int zerofill", Type{Kind: KindInt, Unsigned: true, ZeroFill: true, Length: 5}, []storeRow{{NewInt(42), "00042", ""}}},
	{"decimal(5,2)", Type{Kind: KindDecimal, Precision: 5, Scale: 2}, []storeRow{
		{text("1.005"), "1.01", ""}, {text("-999.995"), "!1264", "-999.99"}, {text("1.5x"), "!1366", "1.50"},
		{text("x"), "!1366", "0.00"}, {NewDouble(0.125), "0.13", ""}, {text("1e99"), "!1264", "999.99"}, {NewInt(7), "7.00", ""},
	}},
	{"decimal unsigned", Type{Kind: KindDecimal, Precision: 5, Scale: 2, Unsigned: true}, []storeRow{
		{NewInt(-1), "!1264", "0.00"}, {text("-0.001"), "0.00", ""},
	}},
	{"float", Type{Kind: KindFloat}, []storeRow{
		{NewDouble(1.1), "1.1", ""}, {NewDouble(123456789), "123457000", ""}, {NewDouble(1e39), "!1264", "3.40282e38"},
		{text("abc"), "!1366", "0"}, {text("1e-3z"), "!1366", "0.001"},
	}},
	{"double", Type{Kind: KindDouble}, []storeRow{
		{text("1e15"), "1e15", ""}, {text("123456789012345"), "123456789012345", ""}, {text("0.00001"), "0.00001", ""},
		{text("1e-16"), "1e-16", ""}, {text("-1.5e300"), "-1.5e300", ""}, {text("1e400"), "!1264", "1.7976931348623157e308"},
		{NewInt(3), "3", ""}, {text("0.1"), "0.1", ""},
	}},
	{"double(5,2) unsigned", Type{Kind: KindDouble, Precision: 5, Scale: 2, Unsigned: true}, []storeRow{
		{NewDouble(1.239), "1.24", ""}, {NewDouble(1000), "!1264", "999.99"}, {NewDouble(-1), "!1264", "0.00"},
	}},
	{"double(5,1)", Type{Kind: KindDouble, Precision: 5, Scale: 1}, []storeRow{
		{NewDouble(-0.01), "0.0", ""}, {NewDouble(math.Copysign(0, -1)), "0.0", ""}, {text("-0"), "0.0", ""}, {NewDouble(-0.06), "-0.1", ""},
	}},
	{"tinyint", Type{Kind: KindTinyInt}, []storeRow{
		{text("300x"), "!1264", "127"}, {text("-300x"), "!1264", "-128"}, {text("12x"), "!1265", "12"}, {text("99999999999999999999x"), "!1264", "127"},
	}},
	{"bit(10)", Type{Kind: KindBit, Length: 10}, []storeRow{
		{NewInt(1023), "\x03\xff", ""}, {NewInt(1024), "!1406", "\x03\xff"}, {NewInt(-1), "!1406", "\x03\xff"},
		{text("\x02\x01"), "\x02\x01", ""}, {text("\x04\x00"), "!1406", "\x03\xff"},
	}},
	{"year", Type{Kind: KindYear}, []storeRow{
		{NewInt(1901), "1901", ""}, {NewInt(2155), "2155", ""}, {NewInt(1900), "!1264", "0000"}, {NewInt(2156), "!1264", "0000"},
		{NewInt(0), "0000", ""}, {text("0"), "2000", ""}, {text("0000"), "0000", ""}, {NewInt(69), "2069", ""},
		{NewInt(70), "1970", ""}, {text("99"), "1999", ""}, {text("x"), "!1366", "2000"}, {NewInt(-1), "!1264", "0000"},
		{datetime("2024-02-29"), "2024", ""},
	}},
	{"date", Type{Kind: KindDate}, []storeRow{
		{text("2024-02-29"), "2024-02-29", ""}, {text("2023-02-29"), "!1292", "0000-00-00"}, {text("24/2/9"), "2024-02-09", ""},
		{text("70-1-1"), "1970-01-01", ""}, {text("20240229"), "2024-02-29", ""}, {text("240229"), "2024-02-29", ""},
		{NewInt(20240229), "2024-02-29", ""}, {NewInt(691231), "2069-12-31", ""}, {NewInt(100), "!1292", "0000-00-00"},
		{text("2024-02-29 23:59:59.9"), "2024-03-01", ""}, {text("2024-02-29 23:59:59.4"), "2024-02-29", ""}, {text("0000-00-00"), "!1292", "0000-00-00"},
		{text("2024-00-10"), "!1292", "0000-00-00"}, {text("2024-01-01x"), "!1292", "2024-01-01"}, {text("abc"), "!1292", "0000-00-00"},
		{text("2024-13-01"), "!1292", "0000-00-00"}, {text("10000-01-01"), "!1292", "0000-00-00"},
		{text("99991231"), "9999-12-31", ""}, {NewTime(MakeDuration(false, 25, 0, 0, 0)), "2024-03-02", ""},
	}},
	{"datetime", Type{Kind: KindDateTime}, []storeRow{
		{text("2024-02-29 23:59:59.5"), "2024-03-01 00:00:00", ""}, {text("2024-12-31T23:59:59.4999999"), "2024-12-31 23:59:59", ""},
		{text("9999-12-31 23:59:59.5"), "!1292", "0000-00-00 00:00:00"}, {text("20240229123456"), "2024-02-29 12:34:56", ""},
		{text("2024-02-29 24:00:00"), "!1292", "0000-00-00 00:00:00"}, {NewInt(20240229123456), "2024-02-29 12:34:56", ""},
		{text("2024-02-29 12:00:00+05:30"), "2024-02-29 06:30:00", ""}, {text("2024-02-29 12:00:00+14:30"), "!1292", "0000-00-00 00:00:00"},
		{text("2024-02-29 12"), "2024-02-29 12:00:00", ""}, {text("2024-1-1 1:2:3"), "2024-01-01 01:02:03", ""},
		{text("2024-01-01 10:11:12."), "2024-01-01 10:11:12", ""}, {text(" 2024^01@01 10#11 "), "2024-01-01 10:11:00", ""},
	}},
	{"datetime(6)", Type{Kind: KindDateTime, FSP: 6}, []storeRow{
		{text("2024-02-29 12:34:56.1234565"), "2024-02-29 12:34:56.123457", ""}, {text("20240229123456.7"), "2024-02-29 12:34:56.700000", ""},
		{NewDouble(20240229123456.5), "2024-02-29 12:34:56.500000", ""},
	}},
	{"timestamp(3)", Type{Kind: KindTimestamp, FSP: 3}, []storeRow{
		{text("1970-01-01 00:00:01"), "1970-01-01 00:00:01.000", ""}, {text("1970-01-01 00:00:00"), "!1292", "0000-00-00 00:00:00.000"},
		{text("2038-01-19 03:14:07.999"), "2038-01-19 03:14:07.999", ""}, {text("2038-01-19 03:14:08"), "!1292", "0000-00-00 00:00:00.000"},
		{NewTimestamp(1_234_567), "1970-01-01 00:00:01.235", ""},
	}},
	{"time", Type{Kind: KindTime}, []storeRow{
		{text("838:59:59"), "838:59:59", ""}, {text("-838:59:59"), "-838:59:59", ""}, {text("839:00:00"), "!1292", "838:59:59"},
		{text("1 10:11:12"), "34:11:12", ""}, {text("10:11"), "10:11:00", ""}, {text("1011"), "00:10:11", ""}, {text("12"), "00:00:12", ""},
		{text("-1 02"), "-26:00:00", ""}, {text("10:60:00"), "!1292", "00:00:00"}, {text("23:59:59.5"), "24:00:00", ""},
		{text("2024-02-29 12:34:56"), "12:34:56", ""}, {text("x"), "!1292", "00:00:00"}, {NewInt(101112), "10:11:12", ""},
		{NewInt(-101112), "-10:11:12", ""}, {NewInt(106012), "!1292", "00:00:00"}, {NewInt(8390000), "!1292", "838:59:59"},
		{text("10:11:12abc"), "!1292", "10:11:12"}, {text("100:59:59.123456"), "100:59:59", ""}, {text("1e5"), "!1292", "00:00:00"},
		{datetime("2024-02-29 12:34:56"), "12:34:56", ""}, {text("838:59:59.5"), "!1292", "838:59:59"},
	}},
	{"time(2)", Type{Kind: KindTime, FSP: 2}, []storeRow{
		{text("-0:0:0.015"), "-00:00:00.02", ""}, {NewDouble(-0.5), "-00:00:00.50", ""}, {text("59.999"), "00:01:00.00", ""},
	}},
	{"char(3)", Type{Kind: KindChar, Length: 3, Collation: testCI}, []storeRow{
		{text("ab "), "ab", ""}, {text("abc  "), "abc", ""}, {text("abcd"), "!1406", "abc"}, {text("äöü"), "äöü", ""},
		{NewInt(12), "12", ""}, {text("a\xffb"), "!1366", "a"},
	}},
	{"varchar(3)", Type{Kind: KindVarChar, Length: 3, Collation: testCI}, []storeRow{
		{text("ab "), "ab ", ""}, {text("abc  "), "abc", ""}, {text("abcd"), "!1406", "abc"}, {text("äöüß"), "!1406", "äöü"},
	}},
	{"varchar latin1", Type{Kind: KindVarChar, Length: 3, Collation: testLatin1}, []storeRow{
		{text("é€"), "\xe9\x80", ""}, {text("a字"), "!1366", "a?"},
	}},
	{"tinytext", Type{Kind: KindTinyText, Collation: testCI}, []storeRow{
		{text(strings.Repeat("ä", 128)), "!1406", strings.Repeat("ä", 127)},
	}},
	{"binary(3)", Type{Kind: KindBinary, Length: 3, Collation: CollationBinary}, []storeRow{
		{text("a"), "a\x00\x00", ""}, {text("abc "), "!1406", "abc"},
	}},
	{"varbinary(3)", Type{Kind: KindVarBinary, Length: 3, Collation: CollationBinary}, []storeRow{
		{text("\xff"), "\xff", ""}, {text("abc "), "!1406", "abc"},
	}},
	{"enum", Type{Kind: KindEnum, Collation: testCI, Members: []string{"red", "Green", "7"}}, []storeRow{
		{text("GREEN "), "Green", ""}, {text("2"), "Green", ""}, {text("7"), "7", ""}, {text("blue"), "!1265", ""},
		{NewInt(3), "7", ""}, {NewInt(4), "!1265", ""}, {NewInt(0), "!1265", ""}, {text(""), "!1265", ""},
	}},
	{"set", Type{Kind: KindSet, Collation: testCI, Members: []string{"a", "b", "c"}}, []storeRow{
		{text("c,A"), "a,c", ""}, {text(""), "", ""}, {text("5"), "a,c", ""}, {text("a,x"), "!1265", "a"},
		{NewInt(3), "a,b", ""}, {NewInt(9), "!1265", "a"}, {NewInt(-1), "!1265", "a"},
	}},
}

type storeRow struct {
	v           Value
	strict, lax string
}

func TestStore(t *testing.T) {
	for _, c := range storeCases {
		for i, row := range c.rows {
			t.Run(fmt.Sprintf("%s/%d", c.name, i), func(t *testing.T) {
				if err := c.t.Validate(); err != nil {
					t.Fatal(err)
				}
				today := MakeDateTime(2024, 3, 1, 0, 0, 0, 0)
				ctx := Context{Mode: ModeDefault, Column: "c", Row: 1, Today: today}
				if got := stored(t, &ctx, row.v, &c.t); got != row.strict {
					t.Errorf("strict: got %q, want %q", got, row.strict)
				}
				var warned *sqlerr.Error
				ctx = Context{Mode: ModeNoZeroDate | ModeNoZeroInDate, Column: "c", Row: 1, Today: today, Warn: func(e *sqlerr.Error) { warned = e }}
				want := row.lax
				failed := strings.HasPrefix(row.strict, "!")
				if want == "" && !failed {
					want = row.strict
				}
				if got := stored(t, &ctx, row.v, &c.t); got != want {
					t.Errorf("lax: got %q, want %q", got, want)
				}
				if failed && warned == nil {
					t.Error("lax: no warning")
				}
			})
		}
	}
}

func stored(t *testing.T, ctx *Context, v Value, ty *Type) string {
	r, err := ctx.Store(v, nil, ty)
	var e *sqlerr.Error
	switch {
	case errors.As(err, &e):
		return fmt.Sprint("!", e.Number)
	case err != nil:
		t.Fatalf("error of type %T", err)
	case r.IsNull():
		return "NULL"
	case r.Class() != ty.Class():
		t.Fatalf("class %s, want %s", r.Class(), ty.Class())
	}
	return string(AppendText(nil, r, ty, nil))
}

func TestStoreMessages(t *testing.T) {
	ctx := Context{Mode: ModeDefault, Column: "c", Row: 3}
	for _, c := range []struct {
		v    Value
		t    Type
		want string
	}{
		{NewInt(300), Type{Kind: KindTinyInt}, "ERROR 1264 (22003): Out of range value for column 'c' at row 3"},
		{text("x"), Type{Kind: KindInt}, "ERROR 1366 (HY000): Incorrect integer value: 'x' for column 'c' at row 3"},
		{text("abc"), Type{Kind: KindVarChar, Length: 1, Collation: testCI}, "ERROR 1406 (22001): Data too long for column 'c' at row 3"},
		{text("x"), Type{Kind: KindDateTime}, "ERROR 1292 (22007): Incorrect datetime value: 'x' for column 'c' at row 3"},
		{text("a\xf0\x01"), Type{Kind: KindText, Collation: testCI}, `ERROR 1366 (HY000): Incorrect string value: '\xF0\x01' for column 'c' at row 3`},
		{Null, Type{Kind: KindInt, NotNull: true}, "ERROR 1048 (23000): Column 'c' cannot be null"},
		{text("9"), Type{Kind: KindSet, Collation: testCI, Members: []string{"a"}}, "ERROR 1265 (01000): Data truncated for column 'c' at row 3"},
	} {
		if _, err := ctx.Store(c.v, nil, &c.t); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestTextRoundTrip stores the text of a value and expects the value back.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := columnTypes().Draw(t, "type")
		v := drawValue(t, ty)
		if v.IsNull() || ty.Kind == KindFloat || ty.Kind == KindEnum && v.Uint() == 0 || ty.Unsigned && ty.Kind == KindDecimal && v.Decimal().Sign() < 0 {
			return // FLOAT shows six digits only
		}
		if v.Class() == ClassDouble && ty.Unsigned && v.Double() < 0 || ty.Kind == KindTimestamp && v.Timestamp() < MinTimestamp {
			return
		}
		ctx := Context{Mode: ModeStrict | ModeAllowInvalidDates}
		from := &Type{Kind: KindVarChar, Length: 100, Collation: testCI}
		if ty.IsText() || ty.IsBlob() {
			from = ty
		}
		if ty.Kind == KindChar && strings.HasSuffix(string(v.Bytes()), " ") {
			return
		}
		back, err := ctx.Store(NewBytes(AppendText(nil, v, ty, nil)), from, ty)
		if err != nil || !same(back, v) && Compare(back, v, ty) != 0 {
			t.Fatalf("%s: %q came back as %+v, %v", ty.Kind, AppendText(nil, v, ty, nil), back, err)
		}
	})
}

// TestStoreAnything stores anything into anything: the result is always a valid
// value, with its stored and key forms, and strict mode never warns of errors.
func TestStoreAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := columnTypes().Draw(t, "from"), columnTypes().Draw(t, "to")
		ctx := Context{Mode: Mode(rapid.IntRange(0, 31).Draw(t, "mode")), Today: MakeDateTime(2024, 3, 1, 0, 0, 0, 0)}
		v := drawValue(t, from)
		if v.IsNull() && to.NotNull {
			return
		}
		r, err := ctx.Store(v, from, to)
		var e *sqlerr.Error
		if err != nil {
			if !errors.As(err, &e) || ctx.Mode&ModeStrict == 0 && e.Number != sqlerr.BadNullError {
				t.Fatalf("%s to %s: %v", from.Kind, to.Kind, err)
			}
			return
		}
		if r.IsNull() {
			return
		}
		b := AppendStored(nil, r, to)
		back, err := DecodeStored(b, to)
		if err != nil || !same(back, r) && Compare(back, r, to) != 0 {
			t.Fatalf("%s to %s: %x came back as %+v, %v", from.Kind, to.Kind, b, back, err)
		}
		again, err := ctx.Store(r, to, to)
		if err != nil && to.Class() != ClassDate && to.Class() != ClassDateTime && to.Kind != KindEnum || err == nil && Compare(again, r, to) != 0 {
			t.Fatalf("%s to %s: %+v stored again gives %+v, %v", from.Kind, to.Kind, r, again, err)
		}
	})
}

func TestTimestampZones(t *testing.T) {
	loc := time.FixedZone("x", 5*3600+1800)
	ctx := Context{Mode: ModeDefault, Location: loc}
	ty := &Type{Kind: KindTimestamp}
	v, err := ctx.Store(text("2024-02-29 12:00:00"), nil, ty)
	if err != nil || string(AppendText(nil, v, ty, time.UTC)) != "2024-02-29 06:30:00" {
		t.Fatalf("%s, %v", AppendText(nil, v, ty, time.UTC), err)
	}
	if got := string(AppendText(nil, v, ty, loc)); got != "2024-02-29 12:00:00" {
		t.Error(got)
	}
	berlin, err := time.LoadLocationFromTZData("Berlin", berlinZone())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		clock string
		utc   string
		gap   bool
	}{
		{"2024-03-31 01:59:59", "2024-03-31 00:59:59", false},
		{"2024-03-31 02:30:00", "2024-03-31 01:00:00", true},
		{"2024-03-31 03:00:00", "2024-03-31 01:00:00", false},
		{"2024-10-27 02:30:00", "2024-10-27 00:30:00", false},
		{"2024-10-27 03:00:00", "2024-10-27 02:00:00", false},
		{"2024-10-27 01:59:59", "2024-10-26 23:59:59", false},
	} {
		ts, gap := TimestampOf(datetime(c.clock).DateTime(), berlin)
		if got := string(ts.In(time.UTC).AppendText(nil, 0)); got != c.utc || gap != c.gap {
			t.Errorf("%s is %s (gap %v), want %s", c.clock, got, gap, c.utc)
		}
	}
}

// berlinZone is a zone file that has only a rule: CET/CEST of today.
func berlinZone() []byte {
	header := make([]byte, 44)
	copy(header, "TZif2")
	header[39], header[43] = 1, 4 // one type, four bytes of names
	body := "\x00\x00\x0e\x10\x00\x00CET\x00"
	return []byte(string(header) + body + string(header) + body + "\nCET-1CEST,M3.5.0,M10.5.0/3\n")
}

func TestCalendar(t *testing.T) {
	for n := 366; n <= 3652424; n += 13 {
		d, ok := DateOfDays(n)
		if !ok || d.Days() != n || !d.Check(ModeDefault) {
			t.Fatalf("day %d is %s, which is day %d", n, d, d.Days())
		}
		year, month, day := d.Date()
		if w := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC); int(w.Unix()/86400)+719528 != n && w.Unix() >= 0 {
			t.Fatalf("day %d is %s", n, d)
		}
	}
	for _, c := range []struct{ y, m, d, n int }{{1970, 1, 1, 719528}, {0, 1, 1, 1}, {0, 3, 1, 60}, {9999, 12, 31, 3652424}, {1, 1, 1, 366}} {
		if got := MakeDateTime(c.y, c.m, c.d, 0, 0, 0, 0).Days(); got != c.n {
			t.Errorf("%d-%d-%d is day %d, want %d", c.y, c.m, c.d, got, c.n)
		}
	}
	if _, ok := DateOfDays(3652425); ok {
		t.Error("day after 9999-12-31")
	}
}

func FuzzParseDateTime(f *testing.F) {
	f.Add([]byte("2024-02-29 12:34:56.1234567+05:30"))
	f.Add([]byte("-838:59:59.5"))
	f.Fuzz(func(t *testing.T, s []byte) {
		if d, info, ok := ParseDateTime(s, 0); ok && (!d.inRange() || info.Nanos > 999) {
			t.Fatalf("ParseDateTime(%q) = %s", s, d)
		}
		if d, info, ok := ParseTime(s); ok && (!d.inRange() || info.Nanos > 999) {
			t.Fatalf("ParseTime(%q) = %s", s, d)
		}
		_, n := ParseDouble(s)
		if n < 0 || n > len(s) {
			t.Fatalf("ParseDouble(%q) read %d", s, n)
		}
		ctx := Context{Mode: ModeDefault}
		for i := range fuzzTypes {
			ctx.Reset()
			if v, err := ctx.Store(NewBytes(s), nil, &fuzzTypes[i]); err == nil && fuzzTypes[i].Kind != KindJSON {
				AppendKey(AppendStored(nil, v, &fuzzTypes[i]), v, &fuzzTypes[i], false, 0)
			}
		}
	})
}

// As MySQL rounds: a date with zero parts has no next second, and one whose day its month has not becomes another.
func TestRoundFractionOfOddDates(t *testing.T) {
	for _, c := range []struct {
		d    DateTime
		want DateTime
		ok   bool
	}{
		{MakeDateTime(0, 0, 0, 0, 0, 0, 500_000), 0, false},
		{MakeDateTime(0, 0, 0, 0, 0, 0, 400_000), 0, true},
		{MakeDateTime(2024, 0, 10, 10, 0, 0, 600_000), 0, false},
		{MakeDateTime(2024, 1, 0, 23, 59, 59, 600_000), 0, false},
		{MakeDateTime(2024, 2, 31, 10, 0, 0, 600_000), MakeDateTime(2024, 3, 2, 10, 0, 1, 0), true},
		{MakeDateTime(2024, 2, 31, 10, 0, 0, 400_000), MakeDateTime(2024, 2, 31, 10, 0, 0, 0), true},
		{MakeDateTime(0, 1, 1, 10, 0, 0, 600_000), MakeDateTime(0, 1, 1, 10, 0, 1, 0), true},
	} {
		if got, ok := c.d.RoundFraction(0, 0); got != c.want || ok != c.ok {
			t.Errorf("%+v: %+v, %v; want %+v, %v", c.d, got, ok, c.want, c.ok)
		}
	}
}
