package collation

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/types"
)

func byName(t testing.TB, name string) types.Collation {
	t.Helper()
	c := types.CollationByName(name)
	if c == nil {
		t.Fatalf("collation %s is not registered", name)
	}
	return c
}

func TestRegistered(t *testing.T) {
	for _, c := range All() {
		if got := types.CollationByID(c.ID()); got != c {
			t.Errorf("%s: id %d gives %v", c.Name(), c.ID(), got)
		}
	}
}

// TestFacts holds comparisons whose result MySQL's manual or users know well. The operator is what MySQL answers.
func TestFacts(t *testing.T) {
	const ai, cs, gen, swe = "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci", "latin1_swedish_ci"
	for _, f := range []struct {
		collation, a, op, b string
	}{
		{ai, "ß", "=", "ss"}, {gen, "ß", "=", "s"}, {gen, "ß", "<", "ss"}, {cs, "ß", ">", "ss"},
		{ai, "é", "=", "e"}, {gen, "é", "=", "E"}, {cs, "é", ">", "e"}, {cs, "é", "=", "e\u0301"}, {gen, "é", "<", "e\u0301"},
		{ai, "e\u0301", "=", "é"}, {ai, "a b", "<", "ab"}, {ai, "a-b", "<", "ab"}, {ai, "æ", "=", "ae"}, {gen, "æ", ">", "ae"},
		{ai, "a", "<", "a "}, {gen, "a", "=", "a "}, {gen, "a", ">", "a\t"}, {gen, "a ", ">", "a\t"}, {ai, "a", "=", "a\x00"},
		{cs, "a", "<", "A"}, {cs, "A", "<", "b"}, {cs, "ab", "<", "Ab"}, {cs, "Ab", "<", "ac"}, {cs, "cote", "<", "côte"},
		{cs, "coté", "<", "côte"}, // accents decide from left to right
		{ai, "Ａ", "=", "a"}, {ai, "①", "=", "1"}, {ai, "ﬃ", "=", "ffi"}, {ai, "は", "=", "パ"}, {ai, "あ", "=", "ア"},
		{ai, "가", "=", "\u1100\u1161"}, {ai, "각", ">", "가"}, {ai, "😀", "<", "😁"}, {gen, "😀", "=", "😁"}, {ai, "丁", ">", "一"},
		{ai, "Ł", "=", "L"}, {ai, "й", ">", "и\u0306"} /* no contractions */, {ai, "ø", "=", "o"}, {gen, "ø", ">", "o"}, {ai, "İ", "=", "i"}, {ai, "", "<", "a"}, {ai, "", "=", "\u200d"},
		{ai, "10", "<", "9"}, {ai, "z", "<", "α"}, {ai, "α", "<", "я"}, {ai, "A", "=", "a"},
		{swe, "\xE9", "=", "E"}, {swe, "z", "<", "\xE5"}, {swe, "\xE5", "<", "\xE4"}, {swe, "\xE4", "<", "\xF6"},
		{swe, "\xFC", "=", "y"}, {swe, "\xDF", ">", "s"}, {swe, "a", "=", "A  "},
		{"latin1_bin", "a", ">", "A"}, {"latin1_bin", "a", "=", "a "}, {"ascii_general_ci", "a", "=", "A"}, {"ascii_bin", "a", ">", "A"},
		{"utf8mb4_bin", "a", "=", "a "}, {"utf8mb4_bin", "a", ">", "a\n"}, {"utf8mb4_bin", "a", "<", "é"},
		{"utf8mb4_unicode_ci", "a", "=", "Á  "}, {"utf8mb4_unicode_ci", "ß", "=", "ss "}, {"utf8mb3_general_ci", "é", "=", "E "}, {"utf8mb3_bin", "a", ">", "A"},
		{"utf8mb4_0900_bin", "a", "<", "a "}, {"utf8mb4_0900_bin", "a", ">", "A"},
	} {
		c := byName(t, f.collation)
		want := strings.Index("<=>", f.op) - 1
		if got := c.Compare([]byte(f.a), []byte(f.b)); got != want {
			t.Errorf("%s: %q %s %q expected, Compare gives %d", f.collation, f.a, f.op, f.b, got)
		}
		checkPair(t, c, []byte(f.a), []byte(f.b))
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkPair verifies what the interface promises of any two strings.
func checkPair(t failer, c types.Collation, a, b []byte) int {
	t.Helper()
	ka, kb := c.AppendSortKey(nil, a), c.AppendSortKey(nil, b)
	r := c.Compare(a, b)
	if want := bytes.Compare(ka, kb); r != want {
		t.Fatalf("%s: Compare(%q, %q) = %d, but their sort keys %x, %x compare %d", c.Name(), a, b, r, ka, kb, want)
	}
	if back := c.Compare(b, a); back != -r {
		t.Fatalf("%s: Compare(%q, %q) = %d, reversed %d", c.Name(), a, b, r, back)
	}
	if r == 0 && c.Hash(7, a) != c.Hash(7, b) {
		t.Fatalf("%s: %q and %q are equal but hash differently", c.Name(), a, b)
	}
	if r != 0 && c.Hash(7, a) == c.Hash(7, b) {
		t.Fatalf("%s: %q and %q differ but hash alike", c.Name(), a, b)
	}
	if most := c.MaxKeyLen(len(a)); len(ka) > most {
		t.Fatalf("%s: sort key of %q has %d bytes, more than MaxKeyLen = %d", c.Name(), a, len(ka), most)
	}
	if c.Lossless() && !bytes.Equal(ka, a) {
		t.Fatalf("%s: lossless, but the sort key of %q is %x", c.Name(), a, ka)
	}
	if h, ok := c.(interface {
		AppendSortKeyHead(dst, s []byte, n int) []byte
	}); ok {
		for n := range 20 {
			head := h.AppendSortKeyHead([]byte("x"), a, n)[1:]
			if !bytes.HasPrefix(ka, head) || len(head) > n+1 {
				t.Fatalf("%s: the first %d bytes of the sort key %x of %q are %x", c.Name(), n, ka, a, head)
			}
		}
	}
	// In Thai, tone marks stand behind the spaces.
	cs := c.Charset()
	spaces := append(cs.Space(), cs.Space()...)
	if c.PadSpace() && c.Name() != "tis620_thai_ci" && !(cs.IsWide() && cs.InvalidAt(a) >= 0) && c.Compare(a, append(bytes.Clone(a), spaces...)) != 0 {
		t.Fatalf("%s: trailing spaces of %q are significant", c.Name(), a)
	}
	return r
}

// pieces makes it likely that generated strings share prefixes, weights and boundaries.
var pieces = []string{
	"a", "A", "b", "á", "a\u0301", "\u0301", "\u0327", "ß", "ss", "s", "æ", "ae", " ", "  ", "\t", "\x00", "-", "ﬃ", "가", "각", "\u1100",
	"\u1161", "\u11A8", "丁", "一", "\u4E01", "\U00017000", "\U00010FFD", "\uFFFD", "\uFFFE", "\uFFFF", "😀", "か", "が", "\u3099", "\uFDFA", "㋉",
	"\x80", "\xBF", "\xC3", "\xE4\xB8", "\xF0\x9F\x98", "\xED\xA0\x80", "\xFF", "\xC0\x80", "z", "Z", "é",
}

func drawString(t *rapid.T, label string) []byte {
	if rapid.IntRange(0, 9).Draw(t, label+" kind") == 0 {
		return rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, label)
	}
	parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, label)
	return []byte(strings.Join(parts, ""))
}

func TestOrderProperties(t *testing.T) {
	for _, c := range All() {
		t.Run(c.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := [][]byte{drawString(t, "a"), drawString(t, "b"), drawString(t, "c")}
				prefix := drawString(t, "prefix")
				checkPair(t, c, s[0], s[1])
				checkPair(t, c, append(bytes.Clone(prefix), s[0]...), append(bytes.Clone(prefix), s[1]...))
				slices.SortFunc(s, c.Compare)
				if c.Compare(s[0], s[1]) > 0 || c.Compare(s[1], s[2]) > 0 || c.Compare(s[0], s[2]) > 0 {
					t.Fatalf("not transitive: %q", s)
				}
			})
		})
	}
}

// TestSpellings compares texts with spellings of theirs that most collations take for
// equal, so that the short ways for ASCII are held against the long ones.
func TestSpellings(t *testing.T) {
	letters := []string{"a", "B", "c", "x", "7", " ", "-", "é"}
	other := map[string][]string{"a": {"A", "á", "a\x00", "\x01a"}, "B": {"b", "B\x7f"}, "c": {"C"}, "é": {"e", "E", "e\u0301"}, " ": {" \u0327"}}
	for _, c := range All() {
		t.Run(c.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var a, b []byte
				for _, l := range rapid.SliceOfN(rapid.SampledFrom(letters), 0, 20).Draw(t, "text") {
					a = append(a, l...)
					if o := other[l]; o != nil && rapid.IntRange(0, 3).Draw(t, "other") == 0 {
						l = rapid.SampledFrom(o).Draw(t, "spelling")
					}
					b = append(b, l...)
				}
				checkPair(t, c, a, b)
			})
		})
	}
}

// TestLongSpaces takes runs of spaces through every form of their marks.
func TestLongSpaces(t *testing.T) {
	var all [][]byte
	for _, n := range []int{0, 1, 2, 124, 125, 126, 127, 300} {
		for _, end := range []string{"", "\t", "b", "\t\t", "!"} {
			all = append(all, []byte("a"+strings.Repeat(" ", n)+end))
		}
	}
	for _, c := range All() {
		for _, a := range all {
			for _, b := range all {
				checkPair(t, c, a, b)
			}
		}
	}
}

func TestCodePoints(t *testing.T) {
	for _, name := range []string{"utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_general_ci"} {
		c := byName(t, name)
		var previous []byte
		for r := rune(0); r <= utf8.MaxRune; r++ {
			if r > 0x3000 && r%7 != 0 || r > 0x30000 && r < 0x10FF00 {
				continue
			}
			s := utf8.AppendRune(nil, r)
			checkPair(t, c, s, previous)
			previous = s
		}
	}
}

func TestNoAllocations(t *testing.T) {
	a, b := []byte("The quick brown fox, Straße und Œuvre 각 丁 \xFF"), []byte("The quick brown fox, Strasse und œuvre 각 丁 \xFE")
	dst := make([]byte, 0, 1024)
	for _, c := range All() {
		n := testing.AllocsPerRun(10, func() {
			c.Compare(a, b)
			c.Hash(1, a)
			dst = c.AppendSortKey(dst[:0], a)
		})
		if n != 0 {
			t.Errorf("%s allocates %v times", c.Name(), n)
		}
	}
}

func FuzzPair(f *testing.F) {
	f.Add([]byte("Straße"), []byte("STRASSE"))
	f.Add([]byte("a \t"), []byte("a"))
	f.Add([]byte("\xE4\xB8\x80"), []byte("\xE4\xB8"))
	all := All()
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, c := range all {
			checkPair(t, c, a, b)
		}
	})
}
