package expr

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"github.com/triremedb/trireme/internal/race"
)

// likeByDefinition matches by the definition of LIKE, one character after the other.
func likeByDefinition(coll types.Collation, escape rune, pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	c, n := utf8.DecodeRuneInString(pattern)
	rest := pattern[n:]
	if c == '%' {
		for ; ; s = s[runeLength(s):] {
			if likeByDefinition(coll, escape, rest, s) {
				return true
			}
			if s == "" {
				return false
			}
		}
	}
	if s == "" {
		return false
	}
	wild := c == '_'
	if escape != 0 && c == escape && rest != "" {
		c, n = utf8.DecodeRuneInString(rest)
		rest, wild = rest[n:], false
	}
	k := runeLength(s)
	return (wild || coll.Compare([]byte(s[:k]), []byte(string(c))) == 0) && likeByDefinition(coll, escape, rest, s[k:])
}

func runeLength(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func TestLikeByDefinition(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	letters := []string{"a", "b", "A", "%", "_", "\\", "é", "e", "日", "|"}
	text := func(n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	matched := 0
	for range 200_000 {
		coll := types.CollationByID([]types.CollationID{types.CollationUTF8MB40900AI, types.CollationUTF8MB4Bin}[r.IntN(2)])
		escape := []rune{0, '\\', '|', 'é'}[r.IntN(4)]
		pattern, s := text(8), text(8)
		got, err := compileLike([]byte(pattern), escape, coll).match(&Context{}, []byte(s))
		if want := likeByDefinition(coll, escape, pattern, s); err != nil || got != want {
			t.Fatalf("seed %d: %q LIKE %q ESCAPE %q: %v, %v", seed, s, pattern, escape, got, err)
		}
		if got {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("seed %d: only %d have matched", seed, matched)
	}
}

// TestLongPatterns: what is made of a pattern takes a few times its memory.
func TestLongPatterns(t *testing.T) {
	n := race.Fewer(8<<20, 1<<20)
	coll := types.CollationByID(types.CollationUTF8MB40900AI)
	for _, unit := range []string{"a", "%", "_", "%a", "_%", "%a_b", "\\%", "日%"} {
		text := []byte(strings.Repeat(unit, n/len(unit)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := compileLike(text, '\\', coll)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4*uint64(n) {
			t.Errorf("%q: %d bytes for a pattern of %d", unit, took, len(text))
		}
		runtime.KeepAlive(p)
	}
}

// TestManyArgumentsTakeLittle: what a call with very many arguments takes grows with their number, and is
// little for each.
func TestManyArgumentsTakeLittle(t *testing.T) {
	r := newRig(t)
	r.table("s1 VARCHAR(9)", [][]string{{"x"}})
	took := func(item string, n int) (bytes uint64) {
		text := "LENGTH(CONCAT(" + strings.Repeat(item+",", n-1) + item + "))"
		e, err := r.parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		node, err := Bind(r, e)
		if err != nil {
			t.Fatal(err)
		}
		v, err := node.Value(r.x, r.rows, 0)
		runtime.ReadMemStats(&after)
		if err != nil || v.Int() != int64(n) {
			t.Fatalf("%d times %s: %v, %v", n, item, v, err)
		}
		r.x.ResetStatement()
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, item := range []string{"1", "'a'", "s1"} {
		took(item, 1000)
		few, many := took(item, 10_000), took(item, 100_000)
		if many > 15*few {
			t.Errorf("%s: %d bytes for 10,000, %d for 100,000", item, few, many)
		}
		if many > 100_000*1200 {
			t.Errorf("%s: %d bytes for each argument", item, many/100_000)
		}
	}
}
