package expr

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
	"pgregory.net/rapid"
)

// Inverse functions: whatever one makes, the other brings back.
func TestInverses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "s")
		same := func(what string, got []byte, ok bool) {
			if !ok || !bytes.Equal(got, s) {
				t.Fatalf("%s of %x gives back %x, %v", what, s, got, ok)
			}
		}
		got, ok := appendUnhex(nil, appendHex(nil, s))
		same("UNHEX", got, ok)
		got, ok = appendUnbase64(nil, appendBase64(nil, s))
		same("FROM_BASE64", got, ok)
		same("REVERSE", appendReversed(nil, types.CharsetBinary, appendReversed(nil, types.CharsetBinary, s)), true)
		if len(s) > 0 {
			compressed, err := appendCompressed(new(Context), nil, s)
			if err != nil || len(compressed) > compressedBound(len(s)) {
				t.Fatalf("COMPRESS of %d bytes gives %d, %v", len(s), len(compressed), err)
			}
			got, ok = appendUncompressed(nil, compressed)
			same("UNCOMPRESS", got, ok)
		}
		key := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")
		iv := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "iv")
		for _, bits := range []int{128, 192, 256} {
			for _, mode := range []string{"ecb", "cbc", "cfb128", "ofb"} {
				m, _ := parseAESMode(fmt.Sprintf("aes-%d-%s", bits, mode))
				got, ok = m.decrypt(nil, m.encrypt(nil, s, key, iv), key, iv)
				same("AES_DECRYPT "+mode, got, ok)
			}
		}
	})
}

func TestUUIDInverses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := uuid(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "u"))
		if got, ok := parseUUID(u.appendText(nil)); !ok || got != u {
			t.Fatalf("%x: %x %v", u, got, ok)
		}
		if got := u.swapped().unswapped(); got != u {
			t.Fatalf("%x: %x", u, got)
		}
	})
}

// TestCalendar: days, weeks and periods of all dates from year 1 to 9999 fit together.
func TestCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.IntRange(366, maxDayCount).Draw(t, "days")
		d, ok := types.DateOfDays(days)
		year, month, day := d.Date()
		if !ok || dayNumber(year, month, day) != days || d.Days() != days {
			t.Fatalf("%d: %s is day %d", days, d, dayNumber(year, month, day))
		}
		week, weekYear := weekOf(d, weekRuleOf(3))
		rest := []byte(fmt.Sprintf("%04d %02d %d", weekYear, week, (weekday(days, false)+1)%7))
		if weekYear > 0 && weekYear < 10000 {
			if back, _, ok := parseByFormat(rest, []byte("%x %v %w")); !ok || back != d {
				t.Fatalf("%s is %s, which is %s", d, rest, back)
			}
		}
		n := rapid.Int64Range(-3000, 3000).Draw(t, "months")
		if moved, ok := addInterval(d, interval{months: n}, unitMonth); ok {
			if got := monthsBetween(d, moved); day <= 28 && got != n {
				t.Fatalf("%s and %d months are %s, %d months away", d, n, moved, got)
			}
		}
	})
}

// TestDateFormatInverse: STR_TO_DATE reads what DATE_FORMAT writes.
func TestDateFormatInverse(t *testing.T) {
	formats := []string{
		"%Y-%m-%d %H:%i:%s.%f", "%d/%c/%Y %T.%f", "%W %M %D %Y %r %f", "%j %Y %k %i %S %f", "%a %b %e %Y, %l:%i:%s.%f %p",
	}
	rapid.Check(t, func(t *rapid.T) {
		d, ok := dateTimeOfMicros(rapid.Int64Range(366*secsADay*microsASec, maxDayCount*secsADay*microsASec).Draw(t, "micros"))
		if !ok {
			t.Fatal("no date")
		}
		format := []byte(rapid.SampledFrom(formats).Draw(t, "format"))
		text, ok := appendDateFormat(nil, d, format)
		if !ok {
			t.Fatalf("%s cannot be written by %s", d, format)
		}
		if got, rest, ok := parseByFormat(text, format); !ok || got != d || len(rest) > 0 {
			t.Fatalf("%s by %s is %s, read as %s, %v", d, format, text, got, ok)
		}
	})
}

// TestIntervals: moving there and back gives the same, and TIMESTAMPDIFF counts what was moved.
func TestIntervals(t *testing.T) {
	units := []intervalUnit{unitMicrosecond, unitSecond, unitMinute, unitHour, unitDay, unitWeek}
	rapid.Check(t, func(t *rapid.T) {
		d, _ := dateTimeOfMicros(rapid.Int64Range(400*secsADay*microsASec, 3_000_000*secsADay*microsASec).Draw(t, "micros"))
		u := rapid.SampledFrom(units).Draw(t, "unit")
		n := rapid.Int64Range(-50_000, 50_000).Draw(t, "n")
		v := intervalOfInt(n, u)
		moved, ok := addInterval(d, v, u)
		if !ok {
			return
		}
		if back, ok := addInterval(moved, v.negate(), u); !ok || back != d {
			t.Fatalf("%s by %d of unit %d and back is %s", d, n, u, back)
		}
		if got := timestampDiff(u, d, moved); got != n {
			t.Fatalf("%s to %s are %d of unit %d, want %d", d, moved, got, u, n)
		}
	})
}

// TestGTIDSets: subtracting is what it is for sets of numbers.
func TestGTIDSets(t *testing.T) {
	const id = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SliceOfN(rapid.IntRange(1, 30), 0, 12).Draw(t, "l")
		r := rapid.SliceOfN(rapid.IntRange(1, 30), 0, 12).Draw(t, "r")
		set := func(list []int) gtidSet {
			text := ""
			for _, n := range list {
				text += fmt.Sprintf("%s:%d,", id, n)
			}
			s, err := parseGTIDSet(&holding{x: new(Context)}, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		want := map[int]bool{}
		for _, n := range l {
			want[n] = true
		}
		for _, n := range r {
			delete(want, n)
		}
		left := set(l).subtract(set(r))
		again, err := parseGTIDSet(&holding{x: new(Context)}, left.appendText(nil))
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 30; n++ {
			in := len(set([]int{n}).subtract(again)) == 0
			if in != want[n] {
				t.Fatalf("%v minus %v: %d is %v in %s", l, r, n, in, left.appendText(nil))
			}
		}
	})
}

// TestLocateAgrees: the short cuts for ASCII find what comparing by the collation finds.
func TestLocateAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("aAbB ")), 0, 12, -1).Draw(t, "s")
		part := rapid.StringOfN(rapid.SampledFrom([]rune("aAbB ")), 1, 3, -1).Draw(t, "part")
		for _, id := range []types.CollationID{types.CollationUTF8MB40900AI, types.CollationUTF8MB4Gen, types.CollationUTF8MB4Bin, types.CollationLatin1Swedish} {
			c := types.CollationByID(id)
			x := new(Context)
			fast, _ := locateText(x, c, []byte(s), []byte(part), 1)
			slow, _ := locateByCollation(x, c, []byte(s), []byte(part), 1)
			if fast != slow {
				t.Fatalf("%s: %q in %q is at %d, by comparing at %d", c.Name(), part, s, fast, slow)
			}
		}
	})
}

// TestRandomArguments calls every function with arguments of all types, by row and by batch: no panic, errors with a state, and
// values of the type that was promised.
func TestRandomArguments(t *testing.T) {
	values := []string{
		"NULL", "0", "1", "-1", "18446744073709551615", "-9223372036854775808", "1.5", "-99999999999999999999.99", "1e300", "-0e0",
		"''", "'a'", "'ÄÖ😀'", "'12abc'", "x''", "x'FF00'", "'2024-02-29'", "'10:11:12.5'", "'$.a'", "'{\"a\": [1, 2]}'", "'%Y %q %'",
		"DATE'2024-02-29'", "TIME'-10:11:12'", "TIMESTAMP'2024-02-29 10:11:12.123456'", "CAST('[1]' AS JSON)", "TRUE", "'[a-'", "_latin1 x'E4'",
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	e := newFnEnv(t)
	for _, name := range FuncNames() {
		if !isWord(name) || name == "member of" || name == "benchmark" || name == "sleep" {
			continue
		}
		for range 60 {
			args := make([]string, r.IntN(6))
			for i := range args {
				args[i] = values[r.IntN(len(values))]
			}
			text := name + "(" + strings.Join(args, ", ") + ")"
			if got := e.eval(text); strings.HasPrefix(got, "bad error") || strings.Contains(got, "as vector") ||
				strings.HasPrefix(got, "value of class") || strings.HasPrefix(got, "NULL of a type") {
				t.Errorf("seed %d: %s gives %s", seed, text, got)
			}
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"a", "^[a-z]+$", `\d{2,3}|(x)`, `[[:alpha:]\-]`, `(?i)a(?s:.)`, `\p{Greek}\x{61}`, "[^]a]", `\Qa.b\E`} {
		f.Add(s, "abc", uint8(0))
	}
	f.Fuzz(func(t *testing.T, pattern, text string, options uint8) {
		flags := patternFlags{fold: options&1 != 0, multiline: options&2 != 0, dotAll: options&4 != 0, search: options&8 != 0}
		m, err := compilePattern(new(Context), pattern, flags)
		if err != nil {
			if _, ok := err.(*sqlerr.Error); !ok {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		last := -1
		if err := m.find(new(Context), []byte(text), 0, func(loc []int) bool {
			if loc[0] < last || loc[1] > len(text) {
				t.Fatalf("%q in %q: match at %v after %d", pattern, text, loc, last)
			}
			last = loc[1]
			return true
		}); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDateFormat(f *testing.F) {
	f.Add("2024-02-29 10:11:12", "%Y-%m-%d %T")
	f.Add("Thursday Feb 29th", "%W %b %D")
	f.Add("200442 Monday", "%X%V %W")
	f.Fuzz(func(t *testing.T, s, format string) {
		d, _, ok := parseByFormat([]byte(s), []byte(format))
		if !ok {
			return
		}
		if _, month, day := d.Date(); month > 12 || day > 31 {
			t.Fatalf("%q by %q is %s", s, format, d)
		}
		appendDateFormat(nil, d, []byte(format))
		appendTimeFormat(nil, d.Duration(), []byte(format))
	})
}

func FuzzJSONSearch(f *testing.F) {
	f.Add(`{"a": ["x", {"b c": "xy"}]}`, "x%", "$.a")
	f.Add(`["", "_"]`, `\_`, "$[*]")
	f.Fuzz(func(t *testing.T, text, pattern, path string) {
		doc, err := json.Parse(nil, []byte(text))
		if err != nil || !utf8.ValidString(pattern) {
			return
		}
		v := json.Open(doc)
		x := new(Context)
		var found [][]byte
		s := jsonSearcher{x: x, path: []byte{'$'}, match: func(b []byte) (bool, error) {
			return likeSearch(x, b, []byte(pattern), '\\')
		}, found: func(path []byte) error {
			found = append(found, bytes.Clone(path))
			return nil
		}, starts: map[json.Place]struct{}{}}
		if p, err := json.ParsePath([]byte(path)); err == nil {
			p.Each(v, nil, func(m json.Value) bool {
				s.starts[m.Place()] = struct{}{}
				return true
			})
		}
		s.search(v, true)
		for _, at := range found {
			p, err := json.ParsePath(at)
			if err != nil {
				t.Fatalf("found path %s: %v", at, err)
			}
			m, ok := p.Get(v)
			if is, err := s.match(m.Str()); !ok || m.Type() != json.TypeString || !is || err != nil {
				t.Fatalf("%s of %s is not what was searched", at, text)
			}
		}
		pretty, _, err := x.appendPretty(nil, v, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.Parse(nil, pretty); err != nil || json.Compare(json.Open(again), v) != 0 {
			t.Fatalf("%s: %v", pretty, err)
		}
	})
}

func FuzzIntervals(f *testing.F) {
	f.Add("1 2:3:4.5", uint8(unitDayMicrosecond))
	f.Fuzz(func(t *testing.T, s string, u uint8) {
		unit := intervalUnit(u % uint8(unitSecondMicrosecond+1))
		v, ok := parseInterval([]byte(s), unit)
		if !ok {
			return
		}
		d := types.MakeDateTime(2024, 2, 29, 10, 11, 12, 5)
		if r, ok := addInterval(d, v, unit); ok && !r.Check(types.ModeNoZeroInDate) {
			t.Fatalf("%q: %s", s, r)
		}
	})
}
