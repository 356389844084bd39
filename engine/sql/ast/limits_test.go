package ast

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/internal/race"
)

// nested returns texts nested n deep in every way the grammar recurses.
func nested(n int) map[string]string {
	r := strings.Repeat
	return map[string]string{
		"brackets":         "select " + r("(", n) + "1" + r(")", n),
		"functions":        "select " + r("abs(", n) + "1" + r(")", n),
		"minus":            "select " + r("- ", n) + "1",
		"not":              "select " + r("not ", n) + "1",
		"bang":             "select " + r("!", n) + "1",
		"tilde":            "select " + r("~", n) + "1",
		"binary":           "select " + r("binary ", n) + "1",
		"plus chain":       "select 1" + r(" + 1", n),
		"equals chain":     "select 1" + r(" = 1", n),
		"and chain":        "select 1" + r(" and 1", n),
		"or chain":         "select 1" + r(" or 1", n),
		"between":          "select 1" + r(" between 1 and 1", n),
		"case":             "select " + r("case when 1 then ", n) + "1" + r(" end", n),
		"subqueries":       "select " + r("(select ", n) + "1" + r(")", n),
		"derived":          "select 1 from " + r("(select 1 from ", n) + "t" + r(") d", n),
		"joins":            "select 1 from " + r("(a join ", n) + "t" + r(" on 1)", n),
		"unions":           "select 1" + r(" union select 1", n),
		"bracketed unions": "select 1" + r(" union (select 1", n) + r(")", n),
		"assignments":      "select " + r("@a := ", n) + "1",
		"collate":          "select 'a'" + r(" collate utf8mb4_bin", n),
		"intervals":        "select " + r("interval ", n) + "1" + r(" day + 1", n),
		"braces":           "select " + r("{d ", n) + "'2020-01-01'" + r("}", n),
		"ctes":             r("with a as (", n) + "select 1" + r(") select 1", n),
		"in":               "select 1" + r(" in (1", n) + r(")", n),
		"explain":          r("explain ", n) + "select 1",
		"comments":         "select " + r("/* */", n) + "1",
		"live comments":    "select " + r("/*! ", n) + "1" + r("*/", n),
		"joins flat":       "select 1 from t" + r(" join t", n),
		"joins then on":    "select 1 from t" + r(" join t", n) + r(" on 1", n),
		"rows":             "select " + r("row(1,", n) + "1" + r(")", n),
		"quantified":       "select 1" + r(" = any (select 1", n) + r(")", n),
		"like":             "select 1" + r(" like 1", n),
		"is":               "select 1" + r(" is null", n),
		"exists":           "select " + r("exists (select ", n) + "1" + r(")", n),
		"statements":       r("select 1;", n),
		"set":              "set a = " + r("(", n) + "1" + r(")", n),
		"default":          "create table t (a int default " + r("(", n) + "1" + r(")", n) + ")",
		"grant":            "grant " + r("a,", n) + "a to b",
		"escapes":          "select 'a" + r(`\\`, n) + "'",
		"columns":          "select 1 from (select 1) d" + r("(a)", n),
		"many columns":     "create table t (a int" + r(", a int", n) + ")",
		"select into":      "select 1" + r(" into @a", n),
		"views":            r("create view v as ", n) + "select 1",
		"as new":           "insert into t values (1)" + r(" as n", n),
	}
}

func isSQLError(err error) bool {
	var e *sqlerr.Error
	return errors.As(err, &e) && len(e.State) == 5
}

// TestNesting: 1,000 deep must work where the language has it; deeper must not crash.
func TestNesting(t *testing.T) {
	refused := map[string]bool{
		"braces": true, "explain": true, "joins then on": false, "live comments": true, "columns": true,
		"select into": true, "views": true, "as new": true, "like": true, "is": false, "intervals": true,
	}
	for name, sql := range nested(1000) {
		list, err := Parse(sql, 0)
		if err != nil && !refused[name] {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range list {
			if text := Format(s); name != "statements" {
				if again, err := Parse(text, 0); err != nil {
					t.Errorf("%s: canonical text: %v", name, err)
				} else if Format(again[0]) != text {
					t.Errorf("%s: canonical text is not stable", name)
				}
			}
		}
	}
	for _, n := range []int{MaxDepth + 10, race.Fewer(100_000, 20_000)} {
		for name, sql := range nested(n) {

			list, err := Parse(sql, 0)
			if err != nil && !isSQLError(err) {
				t.Errorf("%s: %v", name, err)
			}
			for _, s := range list[:min(len(list), 1)] {
				Format(s)
			}
			var b Buffers
			Normalize(sql, 0, &b)
		}
	}
}

// TestLongTexts: megabytes of anything give statements or a clean error.
func TestLongTexts(t *testing.T) {
	size := race.Fewer(2<<20, 1<<18)
	for _, piece := range []string{
		"(", "a", "'", " ", "-", "+1", ",1", ";", "/*", "/**/", "`", "\\", "select ", "\x00", "\xff", "?", "@", ".", "1", "e",
	} {
		for _, prefix := range []string{"select ", ""} {
			sql := prefix + strings.Repeat(piece, (size-len(prefix))/len(piece))

			if _, err := Parse(sql, 0); err != nil && !isSQLError(err) {
				t.Errorf("%q: %v", piece, err)
			}
		}
	}
}

func TestBalanced(t *testing.T) {
	var sb strings.Builder
	sb.WriteString("select 1 from t where a = 0")
	for i := 1; i < 20_000; i++ {
		fmt.Fprintf(&sb, " or a = %d", i)
	}
	list, err := Parse(sb.String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	var walk func(e Expr, depth int)
	walk = func(e Expr, depth int) {
		if depth > 20 {
			t.Fatal("too deep")
		}
		b := e.(*Binary)
		if b.Op == OpOr {
			walk(b.Left, depth+1)
			walk(b.Right, depth+1)
			return
		}
		if got := b.Right.(*Literal).Value.Int(); got != next {
			t.Fatalf("operand %d is %d", next, got)
		}
		next++
	}
	walk(list[0].(*Select).Where, 0)
	if next != 20_000 {
		t.Errorf("%d operands", next)
	}
}
