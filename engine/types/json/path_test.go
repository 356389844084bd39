package json

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// matches returns the texts of all values that a path matches, separated by spaces.
func matches(p *Path, doc []byte) string {
	var all []string
	_ = p.Each(Open(doc), nil, func(v Value) bool {
		all = append(all, string(v.AppendText(nil)))
		return true
	})
	return strings.Join(all, " ")
}

func TestPaths(t *testing.T) {
	const doc = `{"a": [1, 2, {"b": 3}], "b": {"c": [4, 5]}, "one two": 6, "é": 7, "": 8}`
	for _, c := range []struct{ path, want string }{
		{`$`, ``}, {`$.a[0]`, `1`}, {`$.a[2].b`, `3`}, {` $ . a [ last ] . b `, `3`}, {`$.a[last-2]`, `1`}, {`$.a[3]`, ``}, {`$.a[last-3]`, ``},
		{`$."one two"`, `6`}, {`$.é`, `7`}, {`$."\u00e9"`, `7`}, {`$.\u0061[0]`, `1`}, {`$.""`, `8`}, {`$.a[*]`, `1 2 {"b": 3}`},
		{`$.a[1 to 2]`, `2 {"b": 3}`}, {`$.a[last-1 to last]`, `2 {"b": 3}`}, {`$.a[1 to 99]`, `2 {"b": 3}`}, {`$.a[5 to 9]`, ``},
		{`$.b.*`, `[4, 5]`}, {`$.a.*`, ``}, {`$**.b`, `{"c": [4, 5]} 3`}, {`$.b**[0]`, `{"c": [4, 5]} 4 5`}, {`$.a**.b`, `3`},
		{`$.b[0].c`, `[4, 5]`}, {`$.b[last]`, `{"c": [4, 5]}`}, {`$.b[1]`, ``}, {`$.b[0 to 3].c[1]`, `5`}, {`$.b.c[0][0]`, `4`}, {`$.b[*]`, ``},
		{`$.a.b`, ``}, {`$**.c**[last]`, `5 4`}, {`$.none`, ``}, {`$.none.more[0]`, ``},
	} {
		p, err := ParsePath([]byte(c.path))
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		want := c.want
		if c.path == "$" {
			want = textOf(mustParse(t, doc))
		}
		if got := matches(p, mustParse(t, doc)); got != want {
			t.Errorf("%s matches %s, expected %s", c.path, got, want)
		}
	}
}

func TestPathErrors(t *testing.T) {
	for _, s := range []string{"", "a", "$a", "$.", "$.1a", "$.a b", "$[", "$[]", "$[a]", "$[1", "$[-1]", "$[1 to]", "$[2 to 1]", "$[last to last-1]",
		"$[1to 2]", "$**", "$.a**", "$***.a", "$*", `$."a`, `$."a\q"`, "$.a-b", "$[4294967296]", "$[last-]", "$.a\xff", "$[1 2]", "$.a\"b", "$ $"} {
		_, err := ParsePath([]byte(s))
		var sql *sqlerr.Error
		if !errors.As(err, &sql) || sql.Number != 3143 || sql.State != "42000" {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestPathText(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{` $ . a [ 1 ] `, `$.a[1]`}, {`$."a"."b c"."1"`, `$.a."b c"."1"`}, {`$**.*[*]`, `$**.*[*]`}, {`$[last - 2]`, `$[last-2]`}, {`$[last]`, `$[last]`},
		{`$[ 1  to  last ]`, `$[1 to last]`}, {`$."\"\\"`, `$."\"\\"`}, {`$.$._x1`, `$.$._x1`},
	} {
		if got := MustPath(c.in).String(); got != c.out {
			t.Errorf("%s is printed as %s, expected %s", c.in, got, c.out)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPath(t, true)
		again, err := ParsePath([]byte(p.String()))
		if err != nil || again.String() != p.String() {
			t.Fatalf("%s: %v", p, err)
		}
	})
}

// TestGetIsFirstOfEach also says that Each gives no place twice and that paths of one place match one at most.
func TestGetIsFirstOfEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, p := drawDocument(t), drawPath(t, true)
		var all []Value
		_ = p.Each(Open(doc), nil, func(v Value) bool {
			all = append(all, v)
			return true
		})
		v, ok := p.Get(Open(doc))
		if ok != (len(all) > 0) || ok && Compare(v, all[0]) != 0 {
			t.Fatalf("%s in %s: Get %s, Each %s", p, textOf(doc), v.AppendText(nil), matches(p, doc))
		}
		if !p.MultiMatch() && len(all) > 1 {
			t.Fatalf("%s in %s: %s", p, textOf(doc), matches(p, doc))
		}
	})
}

// TestDeepPathsStayCheap: many ** in one path lead to the same places in very many ways.
func TestDeepPathsStayCheap(t *testing.T) {
	doc := mustParse(t, strings.Repeat("[", 90)+strings.Repeat("]", 90))
	p := MustPath("$" + strings.Repeat("**[0]", 20))
	n := 0
	_ = p.Each(Open(doc), nil, func(Value) bool {
		n++
		return true
	})
	if n == 0 || n > 90 {
		t.Errorf("%d matches", n)
	}
}
