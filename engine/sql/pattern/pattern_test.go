package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// find returns all matches of a program, as REGEXP_REPLACE goes through them.
func find(t interface{ Fatal(...any) }, m *Machine, p *Program, s []byte) (all [][]int) {
	m.Begin(p, s)
	for at := 0; at <= len(s); {
		loc, err := m.Find(at)
		if err != nil {
			t.Fatal(err)
		}
		if loc == nil {
			break
		}
		all = append(all, loc)
		if at = loc[1]; loc[0] == loc[1] {
			at += max(1, len(string([]rune(string(s[at:]) + " ")[:1])))
		}
	}
	return all
}

// generator draws patterns that both matchers do.
func generator(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0, 1:
		return rapid.SampledFrom([]string{"a", "b", "é", "ab", "(?i:A)", "\\n"}).Draw(t, "literal")
	case 2:
		return rapid.SampledFrom([]string{"[ab]", "[^a]", ".", "\\w", "\\s", "[a-z&&[^b]]", "(?i:[b])", "\\R", "\\X", "(?s:.)"}).Draw(t, "class")
	case 3:
		return rapid.SampledFrom([]string{"^", "$", "\\b", "\\B", "(?m:^)", "(?m:$)", "\\z", "\\A"}).Draw(t, "place")
	case 4, 5:
		return generator(t, depth-1) + generator(t, depth-1)
	case 6:
		return "(?:" + generator(t, depth-1) + "|" + generator(t, depth-1) + ")"
	case 7:
		return "(" + generator(t, depth-1) + ")"
	}
	return "(?:" + generator(t, depth-1) + ")" + rapid.SampledFrom([]string{"*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}?"}).Draw(t, "times")
}

// TestBothMatchersAgree: where a pattern and a subject are for package regexp, the backtracking matcher finds the same
// matches with the same groups.
func TestBothMatchersAgree(t *testing.T) {
	both := 0
	rapid.Check(t, func(t *rapid.T) {
		text := generator(t, 4)
		s := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("aaabbé\n\r A")), 0, 10, -1).Draw(t, "subject"))
		tree, err := Parse(text, Flags{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		syntax, needs, ok := tree.GoSyntax(true, true)
		if !ok || !needs.Met(s) {
			return
		}
		both++
		re := regexp.MustCompile(syntax)
		p := tree.Compile()
		got := find(t, new(Machine), p, s)
		for i, loc := range got {
			m := new(Machine)
			m.Begin(p, s)
			if i == 0 && !slices.Equal(loc, re.FindSubmatchIndex(s)) {
				t.Fatalf("%s (%s) in %q: %v, package regexp %v", text, syntax, s, loc, re.FindSubmatchIndex(s))
			}
		}
		if re.Match(s) != (len(got) > 0) {
			t.Fatalf("%s (%s) in %q: %v", text, syntax, s, got)
		}
		// Whether there is a match is the same for repetitions of nothing, too.
		if syntax, needs, ok = tree.GoSyntax(false, false); ok && needs.Met(s) && regexp.MustCompile(syntax).Match(s) != (len(got) > 0) {
			t.Fatalf("%s (%s) in %q: %v", text, syntax, s, got)
		}
	})
	if both == 0 {
		t.Error("no pattern was for both")
	}
}

var errStop = errors.New("stop")

// TestHostilePatterns: patterns that take long end by the limit of time, in little memory.
func TestHostilePatterns(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, c := range []struct{ pattern, subject, err string }{
		{"(a+)+$", long[:40] + "b", "3699"},
		{"(?:a|aa)+$", long[:60] + "b", "3699"},
		{"(a|a)*b", long, "3699"},
		{"(?:(?:a{1,1000}){1,1000})c", long, "3699"},
		{"((((a*)*)*)*)*b", long[:100], "3699"},
		{"(?:(a)(b)(c)(d)(e)(f)|a)*$b", long, "3698"},
		{"(a*)\\1c", long, "3699"},
		{"a*+b", long[:1<<18], "3699"},
		{"(?=a*+b)", long[:1<<18], "3699"},
		{"(?<=a{1,100000}b)c", long + "c", "3699"},
		{"(?<!a{1,1000})c", strings.Repeat("a", 5000) + "b", ""},
		{"(?:){1000000}a", "a", "3699"},
		{"(?:(?:){1,1000000}){1,1000000}b", "b", "3699"},
		{"(?:a?){500}a{500}b", long[:500], "3699"},
		{strings.Repeat("(", 400) + "a" + strings.Repeat(")*", 400) + "b", long[:1000], "369"},
		{"(a)?" + strings.Repeat("(b)?", 2000) + "$c", long, "369"},
	} {
		tree, err := Parse(c.pattern, Flags{})
		if err != nil {
			t.Errorf("%.40s: %v", c.pattern, err)
			continue
		}
		grown := 0
		m := Machine{Limits: Limits{Time: 32, Stack: 8_000_000}, Grow: func(n int) error { grown += n; return nil }}
		m.Begin(tree.Compile(), []byte(c.subject))
		_, err = m.Find(0) // which the limit of time ends, in steps
		if grown > 48_000_000 {
			t.Errorf("%.40s: %d bytes", c.pattern, grown)
		}
		if text := fmt.Sprint(err); c.err == "" && err != nil || c.err != "" && !strings.Contains(text, c.err) {
			t.Errorf("%.40s: %v, want %q", c.pattern, err, c.err)
		}
		// Without limits it ends when its caller says so.
		m = Machine{Worked: func(int) error { return errStop }}
		m.Begin(tree.Compile(), []byte(c.subject))
		if _, err := m.Find(0); c.err != "" && c.err != "3698" && !errors.Is(err, errStop) {
			t.Errorf("%.40s goes on: %v", c.pattern, err)
		}
	}
}

// TestLargeSets: a pattern with very many members in its sets is refused before they take much memory.
func TestLargeSets(t *testing.T) {
	for _, text := range []string{strings.Repeat(`[\w]`, 16000), "[" + strings.Repeat(`\w`, 32000) + "]", strings.Repeat(`[[:alpha:]]`, 5900)} {
		if _, err := Parse(text, Flags{Fold: true}); err == nil || !strings.Contains(err.Error(), "3700") {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}

// FuzzParse: no pattern makes the parser or the matcher fail.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`(?<n>a)\k<n>`, `[a-z&&[^b]--c]`, `(?<=a{1,3})b`, `\Qa\E*`, `(?x) a # b`, `\x{`, `[[:`, `[a-\`, `(?i-`, `\p{`} {
		f.Add(text, "aab")
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		tree, err := Parse(strings.ToValidUTF8(pattern, ""), Flags{Fold: len(s)%2 == 0})
		if err != nil {
			return
		}
		if text, _, ok := tree.GoSyntax(true, true); ok {
			if _, err := regexp.Compile(text); err != nil && len(text) < 1000 {
				t.Fatalf("%q: %q: %v", pattern, text, err)
			}
		}
		m := Machine{Limits: Limits{Time: 1, Stack: 1 << 16}}
		m.Begin(tree.Compile(), []byte(strings.ToValidUTF8(s, "")))
		_, _ = m.Find(0)
	})
}
