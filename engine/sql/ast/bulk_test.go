package ast

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// checkBulk compares what a Bulk gives with the tree of the same text.
func checkBulk(sql string, mode Mode) (found bool, err error) {
	var b Bulk
	if !b.Find(sql, mode) {
		return false, nil
	}
	list, err := Parse(sql, mode)
	if err != nil || len(list) != 1 {
		return true, nil // the head or the tail is wrong: so is the statement of them
	}
	st, ok := list[0].(*Insert)
	if !ok {
		return true, fmt.Errorf("is a %T", list[0])
	}
	if b.Rows != len(st.Rows) {
		return true, fmt.Errorf("%d rows, not %d", len(st.Rows), b.Rows)
	}
	short, err := Parse(b.Statement(), mode)
	if err != nil || len(short) != 1 || short[0].Params() != b.Width {
		return true, fmt.Errorf("its statement %q: %v", b.Statement(), err)
	}
	var row []types.Value
	null := make([]bool, b.Width)
	for i := range null {
		null[i] = true
	}
	for i, want := range st.Rows {
		if row = b.Next(row[:0]); len(row) != len(want) {
			return true, fmt.Errorf("row %d: %d values, not %d", i, len(row), len(want))
		}
		for j := range want {
			if err := sameLiteral(row[j], want[j]); err != nil {
				return true, fmt.Errorf("row %d, value %d: %w", i, j, err)
			}
			null[j] = null[j] && row[j].IsNull()
		}
	}
	for j, all := range null {
		if b.AllNull(j) != all {
			return true, fmt.Errorf("column %d is NULL in all rows: %v", j, all)
		}
	}
	return true, nil
}

func sameLiteral(got types.Value, want Expr) error {
	negative := false
	if u, ok := want.(*Unary); ok && u.Op == OpNeg {
		want, negative = u.Operand, true
	}
	l, ok := want.(*Literal)
	if !ok {
		return fmt.Errorf("a %T", want)
	}
	if got.Class() != l.Value.Class() {
		return fmt.Errorf("class %v, not %v", got.Class(), l.Value.Class())
	}
	g, w := string(types.AppendText(nil, got, l.Type, nil)), string(types.AppendText(nil, l.Value, l.Type, nil))
	if zero := strings.Trim(w, "0.") == ""; negative && !zero {
		w = "-" + w
	} else if negative {
		g = strings.TrimPrefix(g, "-")
	}
	if g != w {
		return fmt.Errorf("%q, not %q", g, w)
	}
	return nil
}

func TestBulk(t *testing.T) {
	for sql, want := range map[string]bool{
		"INSERT INTO t VALUES (1),(2)": true,
		"insert into `a b`.t (x, `y`) value (1, NULL) , (-2.50, 'it''s'),\n(3e5,\"\\n\")": true,
		"REPLACE t(a) VALUES(18446744073709551615),(-9223372036854775807)":                true,
		"INSERT INTO t VALUES (1),(2) ; /* so it is */":                                   true,
		"INSERT INTO t VALUES (1),(2) /* so it is */":                                     true,
		"INSERT IGNORE INTO t VALUES (1),(2) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1":   true,
		"INSERT INTO t VALUES (1),(2) AS n(x) ON DUPLICATE KEY UPDATE a = x":              true,
		"INSERT INTO value VALUES (1),(2)":                                                true,
		"INSERT INTO t VALUES (1)":                                                        false, // one row has a plan of its own
		"INSERT INTO t VALUES (1),(2,3)":                                                  false,
		"INSERT INTO t VALUES (),()":                                                      false,
		"INSERT INTO t VALUES (1),(2),":                                                   false,
		"INSERT INTO t VALUES (1),(DEFAULT)":                                              false,
		"INSERT INTO t VALUES (1),(1+1)":                                                  false,
		"INSERT INTO t VALUES (1),(NOW())":                                                false,
		"INSERT INTO t VALUES (1),(?)":                                                    false,
		"INSERT INTO t VALUES (1),(?) ":                                                   false,
		"INSERT INTO t VALUES ('a' 'b'),('c')":                                            false,
		"INSERT INTO t VALUES (_latin1'a'),('c')":                                         false,
		"INSERT INTO t VALUES (0x61),('c')":                                               false,
		"INSERT INTO t VALUES (-18446744073709551615),(1)":                                false,
		"INSERT INTO t VALUES (1e999),(1)":                                                false,
		"INSERT INTO t VALUES (1),(2); SELECT 1":                                          false,
		"INSERT INTO t VALUES (1),(2) ON DUPLICATE KEY UPDATE a = ?":                      false,
		"INSERT INTO t VALUES (1),(2) ON DUPLICATE KEY UPDATE /* why */ a = 1":            false,
		"INSERT INTO t VALUES (1) /* why */,(2)":                                          false,
		"INSERT /*+ hint */ INTO t VALUES (1),(2)":                                        false,
		"INSERT INTO t SELECT * FROM v":                                                   false,
		"INSERT INTO t SET a = 1":                                                         false,
		"UPDATE t SET a = 1":                                                              false,
		"INSERT INTO t VALUES ('a),('b')":                                                 false,
		"INSERT INTO t VALUES (1),('b":                                                    false,
		"":                                                                                false,
	} {
		found, err := checkBulk(sql, 0)
		if found != want || err != nil {
			t.Errorf("%s: %v %v", sql, found, err)
		}
	}
}

// What has the same head, tail and width has one key, and nothing else has.
func TestBulkKey(t *testing.T) {
	key := func(sql string, mode Mode) string {
		var b Bulk
		if !b.Find(sql, mode) {
			t.Fatalf("%s: is none", sql)
		}
		return string(b.AppendKey(nil))
	}
	first := key("INSERT INTO t VALUES (1,2),(3,4)", 0)
	if key("INSERT INTO t VALUES ('a',NULL),(3,4),(5,6) ; -- so it is", 0) != first {
		t.Error("other rows, another key")
	}
	for _, other := range []string{"INSERT INTO u VALUES (1,2),(3,4)", "INSERT INTO t VALUES (1),(3)", "REPLACE INTO t VALUES (1,2),(3,4)",
		"INSERT INTO t VALUES (1,2),(3,4) ON DUPLICATE KEY UPDATE a = 1"} {
		if key(other, 0) == first {
			t.Errorf("%s: the same key", other)
		}
	}
	if key("INSERT INTO t VALUES (1,2),(3,4)", ModeANSIQuotes) == first {
		t.Error("another mode, the same key")
	}
}

// bulkText makes a text with rows of literals, now and then with something else.
func bulkText(rng *rand.Rand) string {
	var b bytes.Buffer
	b.WriteString([]string{"INSERT INTO t VALUES", "insert t(a,b) values ", "REPLACE INTO `x`.`t` VALUE", "INSERT IGNORE t VALUES\n"}[rng.IntN(4)])
	width := 1 + rng.IntN(4)
	for i := range 2 + rng.IntN(5) {
		if i > 0 {
			b.WriteString([]string{",", ", ", "\n,"}[rng.IntN(3)])
		}
		b.WriteString("(")
		for j := range width {
			if j > 0 {
				b.WriteString([]string{",", " , "}[rng.IntN(2)])
			}
			b.WriteString([]string{"0", "-1", "- 7", "NULL", "null", "1.5", "-0.00", ".5", "12345678901234567890", "9223372036854775807", "1e3", "-2E-2", "''", "'a,b)(c'",
				"'it''s'", `'a\'b\n\0'`, `"q"`, `'\\'`, "'é\U0001F600'", "1234567890123456789012345678901234567890.123", "00012", "5.", "1.2.3", "123456789012345678", "-1234567890123456789", "99999999.9999999999", "'eight by eight, and more'",
				"'then a quote''after eight'", `'then a backslash \n after'`, "'ends with eight.'"}[rng.IntN(30)])
			if rng.IntN(200) == 0 {
				b.WriteString([]string{"+1", " 'x'", ")", "/**/", "\x00"}[rng.IntN(5)])
			}
		}
		b.WriteString(")")
	}
	b.WriteString([]string{"", ";", " ; ", " /* end */", " ON DUPLICATE KEY UPDATE a = 1", "-- end"}[rng.IntN(6)])
	return b.String()
}

func TestBulkRandom(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range 5000 {
		sql := bulkText(rng)
		mode := []Mode{0, ModeANSIQuotes, ModeNoBackslashEscapes}[rng.IntN(3)]
		ok, err := checkBulk(sql, mode)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, sql, err)
		}
		if ok {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("%d of 5000 are such", found)
	}
}

func FuzzBulk(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		f.Add(bulkText(rng), uint8(0))
	}
	f.Fuzz(func(t *testing.T, sql string, mode uint8) {
		if _, err := checkBulk(sql, Mode(mode)); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	})
}

// Memory does not grow with the rows.
func TestBulkMemory(t *testing.T) {
	rows := strings.Repeat(",(1,'two',3.00,NULL,'it''s',-6e7)", 10000)
	sql := "INSERT INTO t VALUES " + rows[1:]
	var b Bulk
	var row []types.Value
	read := func() {
		if !b.Find(sql, 0) {
			t.Fatal("is none")
		}
		for range b.Rows {
			b.Reuse()
			row = b.Next(row[:0])
		}
	}
	read()
	if n := testing.AllocsPerRun(3, read); n > 1 {
		t.Errorf("%v allocations for %d rows", n, b.Rows)
	}
	if b.Release(); b.head != "" || b.rows.s != "" || row[0].Int() != 1 {
		t.Error("the text is kept")
	}
	for _, tail := range []string{",(1,2)", ",(DEFAULT,'two',3.00,NULL,'it''s',-6e7)", "; SELECT 1"} {
		if b.Find(sql+tail, 0) || b.head != "" || b.rows.s != "" {
			t.Errorf("a text with %s behind it is found, or kept", tail)
		}
	}
}

// TestManyHints: as many hints as anybody wants are read, and no more of a long comment.
func TestManyHints(t *testing.T) {
	many := "/*+ " + strings.Repeat("a() ", 1000) + "*/"
	list, err := Parse("SELECT "+many+" (SELECT "+many+" 1), (SELECT "+many+" 2)", 0)
	if err != nil {
		t.Fatal(err)
	}
	own, others := list[0].(*Select).Hints, list[0].HintsElsewhere()
	if len(own) != maxHints || !own[maxHints-1].Bad || len(others) != maxHints || !others[maxHints-1].Bad {
		t.Errorf("%d and %d hints", len(own), len(others))
	}
}
