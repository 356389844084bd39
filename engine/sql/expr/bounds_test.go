package expr

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/internal/race"
)

// errNoRoom is what a budget says when it is used up, and errStop what an interrupted statement does.
var (
	errNoRoom = errors.New("no room")
	errStop   = errors.New("interrupted")
)

// budget counts memory up to a limit.
type budget struct{ used, limit, most int64 }

func (b *budget) take(delta int64) error {
	if delta > 0 && b.used+delta > b.limit {
		return errNoRoom
	}
	b.used += delta
	b.most = max(b.most, b.used)
	return nil
}

// bounded runs an expression that nothing bounds but what the statement may take, and returns how many bytes that has
// allocated.
func (r *rig) bounded(n Node, limit int64) (allocated uint64, b budget, err error) {
	b.limit = limit
	r.x.Memory, r.x.Hold = b.take, b.take
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = n.Value(r.x, r.rows, 0)
	runtime.ReadMemStats(&after)
	r.x.ResetStatement()
	r.x.Memory, r.x.Hold = nil, nil
	return after.TotalAlloc - before.TotalAlloc, b, err
}

// TestLargeResultsAreBounded: what makes much of little stops at the packet's limit, or at what the statement may take,
// before it has taken that.
func TestLargeResultsAreBounded(t *testing.T) {
	r := newRig(t)
	const (
		mib    = 1 << 20
		source = "'3e11fa47-71ca-11e1-9e33-c80aa9429562"
	)
	for _, c := range []struct {
		text   string
		packet uint64 // 0: it stops at the statement's limit
	}{
		{"REGEXP_REPLACE(REPEAT('a', 10000), '.*', REPEAT('$0', 30000))", mib},
		{"REGEXP_REPLACE(REPEAT('a', 10000), '.*', REPEAT('$0', 20000))", 0},
		{"REGEXP_REPLACE('a', 'b', REPEAT('$0', 2000000))", 0},
		{"REGEXP_REPLACE('a', 'b', REPEAT('\\x$0', 1000000))", 0},
		{`JSON_SEARCH(CONCAT('{"', REPEAT('k', 60000), '": [', REPEAT('"a",', 5000), '"a"]}'), 'all', 'a')`, 0},
		{"JSON_PRETTY(CONCAT(REPEAT('[', 90), REPEAT('1,', 100000), '1', REPEAT(']', 90)))", mib},
		{"JSON_PRETTY(CONCAT(REPEAT('[', 90), REPEAT('1,', 180000), '1', REPEAT(']', 90)))", 0},
		{"JSON_QUOTE(REPEAT(CHAR(1 USING utf8mb4), 9000000))", 0},
		{"JSON_UNQUOTE(JSON_ARRAY(REPEAT(CHAR(1 USING utf8mb4), 4000000)))", 0},
		{"CAST(JSON_ARRAY(REPEAT(CHAR(1 USING utf8mb4), 4000000)) AS CHAR)", 0},
		{"GTID_SUBSET(CONCAT(" + source + "', REPEAT(':1', 1000000)), '')", 0},
		{"WEIGHT_STRING(REPEAT('ﷺ', 900000))", 0},
		{"CONCAT_WS(REPEAT(',', 1000000)" + strings.Repeat(", 'a'", 50) + ")", 0},
		{"CONCAT_WS(REPEAT(',', 1000000)" + strings.Repeat(", 'a'", 50) + ")", mib},
		{"HEX(REPEAT('a', 9000000))", 0},
		{"DATE_FORMAT('2024-09-04', REPEAT('%W', 2000000))", 0},
	} {
		r.x.MaxAllowedPacket = 64 << 20
		n, err := r.bind(c.text)
		if err != nil {
			t.Fatalf("%.60s: %v", c.text, err)
		}
		if c.packet > 0 {
			r.x.MaxAllowedPacket = c.packet
		}
		const limit = 20 << 20
		r.warnings = nil
		allocated, b, err := r.bounded(n, limit)
		switch told := len(r.warnings) > 0 && strings.HasPrefix(r.warnings[0], "1301 "); {
		case c.packet > 0 && (err != nil || !told), c.packet == 0 && !errors.Is(err, errNoRoom):
			t.Errorf("%.60s: %v, warnings %.80q", c.text, err, r.warnings)
		}
		if allocated > 4*limit && !race.Enabled {
			t.Errorf("%.60s has taken %d bytes", c.text, allocated)
		}
		if b.used != 0 {
			t.Errorf("%.60s leaves %d bytes counted", c.text, b.used)
		}
	}
}

// TestLargeFoldsAreBounded: to bind constant expressions takes no more memory than reading them would, however many
// they are, and what is kept of them is no longer than a few times their text.
func TestLargeFoldsAreBounded(t *testing.T) {
	r := newRig(t)
	wide := ", HEX(WEIGHT_STRING('" + strings.Repeat("ﷺ", 900) + "'))"
	for _, text := range []string{
		"REGEXP_REPLACE(REPEAT('a', 10000), '.*', REPEAT('$0', 20000))",
		"REGEXP_REPLACE('" + strings.Repeat("a", 10000) + "', '.*', '" + strings.Repeat("$0", 20000) + "')",
		"NULLIF(1, LENGTH(CONCAT(RAND()" + strings.Repeat(", REPEAT('a', 1000000)", 1000) + ")))",
		"NULLIF(1, LENGTH(CONCAT(RAND()" + strings.Repeat(wide, 1000) + ")))",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := r.bind(text)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if _, isConst := n.(*Const); err != nil || isConst {
			t.Errorf("%.60s: %T, %v", text, n, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 2*foldBytes && !race.Enabled {
			t.Errorf("%.60s has taken %d bytes", text, took)
		}
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2*foldedTimes*int64(len(text))+8<<20 {
			t.Errorf("%.60s keeps %d bytes", text, kept)
		}
		runtime.KeepAlive(n)
	}
	for text, folds := range map[string]bool{
		"REPEAT('ab', 500)": true, "REPEAT('ab', 5000)": false, "CAST('[" + strings.Repeat("1,", 9999) + "1]' AS JSON)": true,
		"CONCAT('" + strings.Repeat("a", 9999) + "', 'b')": true, "HEX('" + strings.Repeat("a", 9999) + "')": true,
	} {
		n, err := r.bind(text)
		if _, isConst := n.(*Const); err != nil || isConst != folds {
			t.Errorf("%.40s: %T, %v", text, n, err)
		}
	}
}

// TestManyFoldsEnd: constants that take long are not folded any number of times.
func TestManyFoldsEnd(t *testing.T) {
	r := newRig(t)
	slow := ", REGEXP_LIKE('" + strings.Repeat("a", 2000) + "', '(a|b|ab)*(a|ba){50}c')"
	n, err := r.bind("GREATEST(0.5 * RAND()" + strings.Repeat(slow, 5000) + ")")
	if err != nil {
		t.Fatal(err)
	}
	folded := 0
	for _, c := range n.Children() {
		if _, ok := c.Children()[0].(*Const); ok {
			folded++
		}
	}
	if folded == 0 || folded > 500 {
		t.Errorf("%d of 5000 are folded", folded)
	}
}

// TestCapturesAreBounded: an automaton has a place for each group in each of its threads only if the places are asked
// for, and then not for any number of them: where there are too many the backtracking matcher does it.
func TestCapturesAreBounded(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		text string
		want error
	}{
		{"REGEXP_INSTR(REPEAT(IF(RAND() < 2, 'a', ''), 52), REPEAT('(a*)', 2000))", nil},
		{"REGEXP_LIKE(REPEAT(IF(RAND() < 2, 'a', ''), 52), REPEAT('(a*)', 2000))", nil},
		{"REGEXP_REPLACE(REPEAT(IF(RAND() < 2, 'a', ''), 52), REPEAT('(a*)', 2000), '$0')", nil},
		{"REGEXP_REPLACE(REPEAT(IF(RAND() < 2, 'a', ''), 52), REPEAT('(a*)', 2000), '$1')", nil},
		{"REGEXP_REPLACE(REPEAT(IF(RAND() < 2, 'a', ''), 52), REPEAT('(a*)', 200), '$199')", nil},
	} {
		n, err := r.bind(c.text)
		if err != nil {
			t.Fatal(err)
		}
		allocated, b, err := r.bounded(n, 1<<30)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
		if allocated > 32<<20 && !race.Enabled {
			t.Errorf("%s has taken %d bytes", c.text, allocated)
		}
		if b.used != 0 {
			t.Errorf("%s leaves %d bytes counted", c.text, b.used)
		}
	}
}

// TestPatternsAreBounded: to read a pattern takes no longer and no more memory than its automaton may.
func TestPatternsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		want          error
	}{
		{"classes in a set", "[" + strings.Repeat(`\w`, 10_000) + "]", errPatternTooBig},
		{"sets of classes", strings.Repeat(`[\w]`, 10_000), errPatternTooBig},
		{"classes", strings.Repeat(`\w`, 10_000), nil},
		{"ranges without regard to case", "(?i)[" + strings.Repeat("ā-\U0001e000", 1000) + "]", nil},
		{"one of them by its flags", "[" + strings.Repeat(`\u0100-\U0001e000`, 1000) + "]", nil},
		{"repetitions of repetitions", "(?:(?:(?:a{1000}){1000}){1000}){1000}", nil},
		{"groups", strings.Repeat("(", 501) + strings.Repeat(")", 501), sqlerr.New(sqlerr.RegexpInternalError)},
	} {
		begun := time.Now()
		var err error
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = compilePattern(new(Context), c.pattern, patternFlags{fold: true})
		runtime.ReadMemStats(&after)
		if took := time.Since(begun); fmt.Sprint(err) != fmt.Sprint(c.want) || took > 20*time.Second {
			t.Errorf("%s: %v after %v", c.name, err, took)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 128<<20 && !race.Enabled {
			t.Errorf("%s has taken %d bytes", c.name, allocated)
		}
	}
	for _, pattern := range []string{
		"[a-z]+", "[a-zA-Z0-9_-]{1,20}", `[一-龥]+`, strings.Repeat("[a-z]-[0-9]", 100), `[\w\d\s-]+`,
	} {
		for _, flags := range []patternFlags{{fold: true}, {}} {
			if _, err := compilePattern(new(Context), pattern, flags); err != nil {
				t.Errorf("%.40s: %v", pattern, err)
			}
		}
	}
}

// TestShortMatchesAreWork: a pattern that takes long for short texts, and compiling one pattern after the other, ends
// within a few rows.
func TestShortMatchesAreWork(t *testing.T) {
	r := newRig(t)
	for _, text := range []string{
		"REGEXP_LIKE(REPEAT(IF(RAND() < 2, 'a', ''), 200), '(a|b|ab)*(a|ba){500}c')",
		"REGEXP_LIKE('b', CONCAT(REPEAT('x{1000}', 30), RAND()))",
	} {
		if rows, err := r.rowsUntilStop(text); !errors.Is(err, errStop) || rows > 10 {
			t.Errorf("%s ends after %d rows with %v", text, rows, err)
		}
	}
}

// TestMatchersKept: patterns that make large automata are not kept by their number.
func TestMatchersKept(t *testing.T) {
	var c matcherCache
	for i := range 3 * matcherCacheCount {
		c.put(matcherKey{pattern: strings.Repeat("x", i)}, &matcher{bytes: 1 << 20})
	}
	if n := len(c.young) + len(c.old); n > 2*matcherCacheBytes>>20 {
		t.Errorf("%d matchers of 1 MiB are kept", n)
	}
	m, err := compilePattern(new(Context), strings.Repeat("x{1000}", 33), patternFlags{})
	if err != nil || m.bytes < 2<<20 {
		t.Fatalf("%+v, %v", m, err)
	}
	if e, ok := error(errPatternTooBig).(*sqlerr.Error); !ok || !isPatternError(e) || isPatternError(errStop) {
		t.Error("errors of patterns")
	}
}

// TestLinearCalls: what goes through lists takes one way through them, and asks on it whether to go on.
func TestLinearCalls(t *testing.T) {
	r := newRig(t)
	r.x.MaxAllowedPacket = 64 << 20
	const source = "'3e11fa47-71ca-11e1-9e33-c80aa9429562"
	var odd, even strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&odd, ":%d", 2*i+1)
		fmt.Fprintf(&even, ":%d", 2*i+2)
	}
	for _, c := range []struct{ text, want string }{
		{"LENGTH(GTID_SUBTRACT(" + source + odd.String() + "', " + source + even.String() + "'))",
			strconv.Itoa(36 + odd.Len())},
		{"GTID_SUBSET(" + source + odd.String() + "', " + source + ":1-500000')", "1"},
		{fmt.Sprintf("GTID_SUBSET(REPEAT(',', %d), '')", race.Fewer(10_000_000, 1_000_000)), "1"},
		{"FIND_IN_SET(CONCAT('b', SPACE(1000000)), REPEAT('a,', 1000000))", "0"},
	} {
		n, err := r.bind(c.text)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		v, err := n.Value(r.x, r.rows, 0)
		if err != nil || fmt.Sprint(v.Int()) != c.want {
			t.Errorf("%.60s gives %v, %v", c.text, v, err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%.60s takes %v", c.text, took)
		}
		r.x.ResetStatement()
	}
	for _, text := range []string{
		"COMPRESS(REPEAT('abcdefghij ', 500000))", "BENCHMARK(100000, LENGTH('a'))",
		"BENCHMARK(100, CONCAT(RAND()" + strings.Repeat(", RAND()", 1000) + "))",
		"WEIGHT_STRING(REPEAT('abcdefghij ', 2000000))",
		"GTID_SUBSET(CONCAT(" + source + "', REPEAT(':1', 200000)), '')",
	} {
		if err := r.endsAfter(text, 8); !errors.Is(err, errStop) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
