package collation

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// testLines calls f with every line of a file in testdata that is not a comment.
func testLines(t *testing.T, name string, f func(line string) error) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for sc := bufio.NewScanner(file); sc.Scan(); {
		if line := sc.Text(); !strings.HasPrefix(line, "#") {
			if err := f(line); err != nil {
				t.Fatalf("%s: %q: %v", name, line, err)
			}
		}
	}
}

// A ranked string is a line of uca900_order.txt.
type ranked struct {
	s              []byte
	three, primary int
}

func readRanked(t *testing.T) []ranked {
	var all []ranked
	testLines(t, "uca900_order.txt", func(line string) error {
		var r ranked
		var digits string
		if _, err := fmt.Sscan(line, &r.three, &r.primary, &digits); err != nil {
			return err
		}
		var err error
		r.s, err = hex.DecodeString(digits)
		all = append(all, r)
		return err
	})
	return all
}

// TestUCAOrder compares with an independent implementation of the algorithm.
func TestUCAOrder(t *testing.T) {
	ai, cs := byName(t, "utf8mb4_0900_ai_ci"), byName(t, "utf8mb4_0900_as_cs")
	all := readRanked(t)
	if len(all) < 3000 {
		t.Fatalf("only %d strings", len(all))
	}
	check := func(a, b ranked) {
		if got, want := cs.Compare(a.s, b.s), cmp.Compare(a.three, b.three); got != want {
			t.Errorf("as_cs: %q (%+q) and %q (%+q) compare %d, expected %d", a.s, a.s, b.s, b.s, got, want)
		}
		if got, want := ai.Compare(a.s, b.s), cmp.Compare(a.primary, b.primary); got != want {
			t.Errorf("ai_ci: %q (%+q) and %q (%+q) compare %d, expected %d", a.s, a.s, b.s, b.s, got, want)
		}
	}
	for i := range all {
		for _, distance := range []int{1, 2, 3, 7, 50, 1000} {
			if i+distance < len(all) {
				check(all[i], all[i+distance])
			}
		}
	}
}

func TestGeneralWeights(t *testing.T) {
	want := map[rune]uint16{}
	testLines(t, "general_ci.txt", func(line string) error {
		var cp rune
		var w uint16
		_, err := fmt.Sscanf(line, "%X %X", &cp, &w)
		want[cp] = w
		return err
	})
	for r := rune(0); r < 0x11000; r++ {
		w, ok := want[r]
		switch {
		case !utf8.ValidRune(r):
			continue
		case r > 0xFFFF:
			w = 0xFFFD
		case !ok:
			w = uint16(r)
		}
		if got, size := generalWeight(generalWeights.load(), utf8.AppendRune(nil, r)); got != w || size != utf8.RuneLen(r) {
			t.Errorf("U+%04X weighs %04X, expected %04X", r, got, w)
		}
		if w == ' ' && r != ' ' {
			t.Errorf("U+%04X weighs as much as a space", r)
		}
	}
}

func TestLatin1SwedishWeights(t *testing.T) {
	testLines(t, "latin1_swedish_ci.txt", func(line string) error {
		var b, w uint8
		_, err := fmt.Sscanf(line, "%X %X", &b, &w)
		if latin1Swedish[b] != w {
			t.Errorf("byte %02X weighs %02X, expected %02X", b, latin1Swedish[b], w)
		}
		return err
	})
}

// TestEarlierWeights takes the lists of MySQL's weights of the earlier versions of the UCA, and of their languages.
func TestEarlierWeights(t *testing.T) {
	var table *earlierTable
	var joins, expected int
	end := func() {
		if table != nil && (joins != expected || len(table.joins) != joins) {
			t.Errorf("%d sequences, the table has %d, of the list are %d", expected, len(table.joins), joins)
		}
		joins, expected = 0, 0
	}
	testLines(t, "uca_earlier.txt", func(line string) error {
		f := strings.Fields(line)
		if len(f) > 1 && (f[0] == "version" || f[0] == "language") {
			end()
			name := map[string]string{"400": "unicode", "520": "unicode_520"}[f[1]]
			if name == "" {
				name = f[1]
			}
			source := earlierSourceOf(name)
			table = source.load()
			if source.joins != (table.joins != nil) {
				t.Errorf("%s: joins is %v", name, source.joins)
			}
			expected = len(table.joins)
			return nil
		}
		var text []byte
		var r rune
		for _, s := range strings.Split(f[0], "+") {
			if _, err := fmt.Sscanf(s, "%X", &r); err != nil {
				return err
			}
			text = utf8.AppendRune(text, r)
		}
		if utf8.RuneCount(text) > 1 {
			joins++
		}
		for i, want := range f[1:] {
			if i > 0 {
				r++
				text = utf8.AppendRune(nil, r)
			}
			sc := earlierScanner{s: text, t: table}
			var got []string
			for w := sc.next(); w != 0; w = sc.next() {
				got = append(got, fmt.Sprintf("%04X", w))
			}
			if g := strings.Join(got, "."); g != want && !(g == "" && want == "-") {
				t.Errorf("%+q weighs %s, expected %s", text, g, want)
			}
		}
		return nil
	})
	end()
}
