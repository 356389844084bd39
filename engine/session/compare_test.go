package session_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

var compareSeed = flag.Uint64("seed", 0, "seed of random tests; 0: another one each time")

// compareColumn is a column of the tables that are compared and its values.
type compareColumn struct {
	name, decl string
	key        string // of an index on it
	values     []string
}

// compareColumns have values near to each other across types: what is equal as one type
// differs as another.
var compareColumns = []compareColumn{
	{"i", "INT", "i", []string{"0", "1", "2", "-1", "5", "20240101", "2147483647", "-2147483648"}},
	{"b", "BIGINT", "b", []string{"0", "1", "-1", "9007199254740992", "9007199254740993", "9007199254740994", "1000000000000000000", "1000000000000000001", "9223372036854775807", "-9223372036854775808", "20241027023000"}},
	{"u", "BIGINT UNSIGNED", "u", []string{"0", "1", "9007199254740992", "9007199254740993", "9223372036854775808", "18446744073709551615", "18446744073709551614", "20240101"}},
	{"n", "TINYINT UNSIGNED", "n", []string{"0", "1", "2", "3", "255"}},
	{"d", "DOUBLE", "d", []string{"0", "-0e0", "0.5", "1", "1.5", "9007199254740992", "9007199254740994", "1e18", "1.8446744073709552e19", "0.1", "20240101", "1e300"}},
	{"f", "FLOAT", "f", []string{"0", "0.1", "1.5", "1", "16777216", "9.007199254740992e15", "3e38"}},
	{"m", "DECIMAL(10,2)", "m", []string{"0", "1", "1.5", "0.1", "-1", "99999999.99", "20240101"}},
	{"w", "DECIMAL(30,10)", "w", []string{"0", "1.5", "9007199254740993", "9007199254740992.5", "18446744073709551615", "18446744073709551616", "0.1"}},
	{"e", "ENUM('a','B','1','','2024-01-01')", "e", []string{"'a'", "'B'", "'1'", "''", "'2024-01-01'", "0"}},
	{"s", "SET('a','b','1')", "s", []string{"'a'", "'a,b'", "'1'", "''"}},
	{"t", "BIT(64)", "t", []string{"0", "1", "b'1100001'", "18446744073709551615", "9007199254740993"}},
	{"y", "YEAR", "y", []string{"1999", "2024", "2000", "0", "2001"}},
	{"da", "DATE", "da", []string{"'2024-01-01'", "'2024-10-27'", "'1000-01-01'", "'9999-12-31'", "'2024-03-31'"}},
	{"dt", "DATETIME(6)", "dt", []string{"'2024-01-01'", "'2024-10-27 02:30:00'", "'2024-10-27 02:30:00.5'", "'2024-03-31 02:30:00'", "'2024-01-01 00:00:00.000001'", "'2024-03-31 03:00:00'"}},
	{"ts", "TIMESTAMP NULL", "ts", []string{"'2024-01-01'", "'2024-10-27 02:30:00'", "'2024-10-27 03:30:00'", "'2024-10-27 01:30:00'", "'2024-03-31 03:00:00'", "FROM_UNIXTIME(1729989000)", "FROM_UNIXTIME(1729992600)"}},
	{"ti", "TIME(3)", "ti", []string{"'00:00:00'", "'02:30:00'", "'-10:00:00.5'", "'838:59:59'", "'00:00:01'"}},
	{"v", "VARCHAR(30)", "v", []string{"''", "'a'", "'A'", "'b'", "'a '", "'1'", "' 1'", "'1.0'", "'9007199254740993'", "'1e18'", "'2024-01-01'", "'2024-10-27 02:30:00'", "'ß'", "'ss'", "'0x'"}},
	{"vb", "VARCHAR(30) COLLATE utf8mb4_bin", "vb", []string{"''", "'a'", "'A'", "'a '", "'1'", "'01'", "'9007199254740993'", "'2024-01-01'", "'02:30:00'"}},
	{"vl", "CHAR(20) CHARSET latin1", "vl", []string{"''", "'a'", "'A'", "'ä'", "'1'", "'1.50'", "'9007199254740992'", "'a,b'"}},
	{"x", "VARBINARY(20)", "x", []string{"''", "'a'", "'A'", "'a '", "0x6100", "'1'", "'9007199254740993'", "'2024-01-01'"}},
	{"xb", "BINARY(3)", "xb", []string{"'a'", "'A'", "'1'", "''", "'abc'"}},
	{"p", "TEXT", "p(2)", []string{"''", "'a'", "'abc'", "'ABd'", "'a '", "'1'", "'12'", "'9007199254740993'"}},
}

// compareConstants are what columns are compared with besides values of other columns.
var compareConstants = []string{
	"NULL", "TRUE", "1", "1.0", "1e0", "'1'", "'1.0'", "' 1 '", "'x'", "''", "-1", "1.5", "1.5e0", "0.1", "0.1e0", "-0.5", "1e18", "1e19", "'1e18'", "1e30", "-1e30",
	"9007199254740992e0", "9007199254740993", "'9007199254740993'", "9007199254740993.0", "9007199254740992.5", "18446744073709551615", "18446744073709551615e0", "18446744073709551616",
	"-9223372036854775808", "9223372036854775807e0", "20240101", "20240101000000", "5", "2024", "24", "99", "'24'",
	"'2024-01-01'", "'2024-01-01 00:00:00.0000005'", "DATE'2024-10-27'", "TIMESTAMP'2024-10-27 02:30:00'", "TIMESTAMP'2024-10-27 02:30:00.5'", "TIMESTAMP'2024-03-31 02:30:00'", "'2024-10-27 02:30:00'", "'2024-03-31 02:30:00'",
	"TIME'02:30:00'", "'02:30:00'", "'2:30'", "'a'", "'A'", "'a' COLLATE utf8mb4_bin", "BINARY 'a'", "_latin1'a'", "'a '", "0x61", "X'6100'", "b'1'", "'ä'", "'ab'", "'abc'", "'B'", "'a,b'", "0",
	"CAST('2024-10-27 02:30:00' AS DATETIME)", "CAST(1 AS UNSIGNED)", "CAST('1' AS JSON)",
}

// compareRig has the tables l and r, with an index on each column, and for each column a
// table with a unique index on it.
type compareRig struct {
	t   *testing.T
	r   *sessiontest.Rig
	s   *session.Session
	rnd *rand.Rand
}

func newCompareRig(t *testing.T) *compareRig {
	seed := uint64(time.Now().UnixNano())
	if *compareSeed != 0 {
		seed = *compareSeed
	}
	t.Logf("repeat with: go test ./engine/session -run %s -seed %d", t.Name(), seed)
	c := &compareRig{t: t, r: sessiontest.New(t, sessiontest.Options{Discard: true}), rnd: rand.New(rand.NewPCG(seed, 1))}
	c.r.CreateSchema("test")
	c.s = c.r.Open(session.ConnectionInfo{Schema: "test"})
	c.r.Exec(c.s, "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = 'Europe/Berlin'")
	for _, table := range []string{"l", "r"} {
		var cols, keys []string
		for _, col := range compareColumns {
			cols = append(cols, col.name+" "+col.decl)
			keys = append(keys, fmt.Sprintf("KEY (%s)", col.key))
		}
		c.r.Exec(c.s, fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, %s, %s)", table, strings.Join(cols, ", "), strings.Join(keys, ", ")))
		for id := range 24 {
			values := []string{fmt.Sprint(id)}
			for _, col := range compareColumns {
				values = append(values, c.value(&col))
			}
			c.r.Exec(c.s, fmt.Sprintf("INSERT INTO %s VALUES (%s)", table, strings.Join(values, ", ")))
		}
	}
	for _, col := range compareColumns {
		c.r.Exec(c.s, fmt.Sprintf("CREATE TABLE u_%s (id INT PRIMARY KEY, %s %s, UNIQUE KEY (%s))", col.name, col.name, col.decl, col.key))
		for id, v := range col.values {
			c.r.Exec(c.s, fmt.Sprintf("INSERT IGNORE INTO u_%s VALUES (%d, %s)", col.name, id, v))
		}
		c.r.Exec(c.s, fmt.Sprintf("INSERT INTO u_%s VALUES (99, NULL)", col.name))
	}
	return c
}

func (c *compareRig) value(col *compareColumn) string {
	if c.rnd.IntN(8) == 0 {
		return "NULL"
	}
	return pick(c.rnd, col.values)
}

func pick[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }

// lines runs a query and returns its rows, sorted; ok is false if it failed.
func (c *compareRig) lines(sql string) (list []string, ok bool) {
	text := c.r.Text(c.s, sql)
	list = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if strings.HasPrefix(list[0], "error ") {
		if strings.HasPrefix(list[0], "error 1105") || strings.HasPrefix(list[0], "error without") {
			c.t.Fatalf("%s\n%s", sql, text)
		}
		return list, false
	}
	list = list[1:]
	if n := len(list); n > 0 && strings.HasSuffix(list[n-1], "warnings)") {
		list = list[:n-1]
	}
	slices.Sort(list)
	return list, true
}

// truths returns the rows that a query without access paths finds true: its last column is
// the condition.
func (c *compareRig) truths(sql string) (list []string, ok bool) {
	all, ok := c.lines(sql)
	for _, line := range all {
		if row, is := strings.CutSuffix(line, " | 1"); is {
			list = append(list, row)
		}
	}
	return list, ok
}

// same demands that a query gives these rows.
func (c *compareRig) same(sql string, want []string) {
	c.t.Helper()
	got, ok := c.lines(sql)
	if !ok {
		c.t.Errorf("%s: %s, want %v", sql, got[0], want)
		return
	}
	want = slices.Clone(want)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: rows %v, want %v", sql, got, want)
	}
}

func (c *compareRig) constant() string {
	if c.rnd.IntN(3) == 0 {
		return pick(c.rnd, pick(c.rnd, compareColumns).values)
	}
	return pick(c.rnd, compareConstants)
}

// condition is a random condition on a column.
func (c *compareRig) condition(col *compareColumn) string {
	constant := func() string {
		if c.rnd.IntN(3) == 0 {
			return c.value(col)
		}
		return c.constant()
	}
	switch k := c.rnd.IntN(10); {
	case k < 5:
		op := pick(c.rnd, []string{"=", "=", "<", "<=", ">", ">=", "<=>"})
		return fmt.Sprintf("%s %s %s", col.name, op, constant())
	case k < 8:
		list := make([]string, 1+c.rnd.IntN(4))
		for i := range list {
			list[i] = constant()
		}
		return fmt.Sprintf("%s IN (%s)", col.name, strings.Join(list, ", "))
	case k == 8:
		return fmt.Sprintf("%s BETWEEN %s AND %s", col.name, constant(), constant())
	}
	return fmt.Sprintf("%s LIKE %s", col.name, pick(c.rnd, []string{"'a%'", "'A_'", "'1'", "'%'", "'2024%'", "'ß'", "'s%'"}))
}

// TestCompareConstants: what an index finds is what the condition says of every row.
func TestCompareConstants(t *testing.T) {
	c := newCompareRig(t)
	for range compareRounds {
		col := pick(c.rnd, compareColumns)
		table := pick(c.rnd, []string{"l", "u_" + col.name})
		cond := c.condition(&col)
		want, ok := c.truths(fmt.Sprintf("SELECT id, (%s) FROM %s", cond, table))
		if !ok {
			continue
		}
		c.same(fmt.Sprintf("SELECT id FROM %s WHERE %s", table, cond), want)
		c.same(fmt.Sprintf("SELECT id FROM %s FORCE INDEX (%s) WHERE %s", table, col.name, cond), want)
		c.same(fmt.Sprintf("SELECT id FROM %s FORCE INDEX (%s) WHERE %s ORDER BY %s, id", table, col.name, cond, col.name), want)
		if t.Failed() {
			break
		}
	}
}

const compareRounds = 800

// joinForms are queries that pair rows of l with rows of r: {on} is the condition, pairs what
// the pairs for which it is true give.
var joinForms = []struct {
	sql   string
	pairs func(m *truthTable) []string
}{
	{"SELECT l.id, r.id FROM l STRAIGHT_JOIN r FORCE INDEX ({r}) ON {on}", (*truthTable).inner},
	{"SELECT l.id, r.id FROM r STRAIGHT_JOIN l FORCE INDEX ({l}) ON {on}", (*truthTable).inner},
	{"SELECT l.id, r.id FROM l JOIN r ON {on}", (*truthTable).inner},
	{"SELECT l.id, r.id FROM l IGNORE INDEX ({l}) JOIN r IGNORE INDEX ({r}) ON {on}", (*truthTable).inner},
	{"SELECT l.id, r.id FROM l LEFT JOIN r FORCE INDEX ({r}) ON {on}", (*truthTable).outer},
	{"SELECT l.id, r.id FROM l LEFT JOIN r IGNORE INDEX ({r}) ON {on}", (*truthTable).outer},
	{"SELECT l.id FROM l WHERE EXISTS (SELECT 1 FROM r FORCE INDEX ({r}) WHERE {on})", (*truthTable).semi},
	{"SELECT l.id FROM l WHERE EXISTS (SELECT 1 FROM r IGNORE INDEX ({r}) WHERE {on})", (*truthTable).semi},
	{"SELECT l.id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE {on} LIMIT 1) OR l.id = -1", (*truthTable).semi},
	{"SELECT l.id FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE {on})", (*truthTable).anti},
	{"SELECT l.id FROM l WHERE NOT EXISTS (SELECT 1 FROM r IGNORE INDEX ({r}) WHERE {on})", (*truthTable).anti},
	{"SELECT l.id FROM l LEFT JOIN r ON {on} WHERE r.id IS NULL", (*truthTable).anti},
}

// inForms are those of IN and its like: of = alone.
var inForms = []struct {
	sql   string
	pairs func(m *truthTable) []string
}{
	{"SELECT l.id FROM l WHERE l.{l} IN (SELECT r.{r} FROM r)", (*truthTable).semi},
	{"SELECT l.id FROM l WHERE l.{l} IN (SELECT r.{r} FROM r IGNORE INDEX ({r}))", (*truthTable).semi},
	{"SELECT l.id FROM l WHERE (l.{l} IN (SELECT r.{r} FROM r)) = 1", (*truthTable).semi},
	{"SELECT l.id FROM l FORCE INDEX ({l}) WHERE l.{l} = ANY (SELECT DISTINCT r.{r} FROM r)", (*truthTable).semi},
	{"SELECT l.id FROM l WHERE l.{l} NOT IN (SELECT r.{r} FROM r)", (*truthTable).notIn},
	{"SELECT l.id FROM l WHERE (l.{l} NOT IN (SELECT r.{r} FROM r IGNORE INDEX ({r}))) = 1", (*truthTable).notIn},
	{"SELECT l.id FROM l WHERE l.{l} <> ALL (SELECT r.{r} FROM r)", (*truthTable).notIn},
	{"SELECT l.id FROM l WHERE l.{l} NOT IN (SELECT r.{r} FROM r WHERE r.{r} IS NOT NULL)", (*truthTable).notInValues},
	{"SELECT l.id FROM l WHERE l.{l} NOT IN (SELECT r.{r} FROM r WHERE r.id <> l.id)", (*truthTable).notInOthers},
}

// truthTable says of each pair of rows what a condition is: "1", "0", "NULL".
type truthTable struct {
	ids   []string
	truth map[[2]string]string
	null  map[string]bool // ids of r whose column is NULL
}

func (m *truthTable) inner() (list []string) {
	for pair, truth := range m.truth {
		if truth == "1" {
			list = append(list, pair[0]+" | "+pair[1])
		}
	}
	return list
}

func (m *truthTable) semi() (list []string) {
	for _, l := range m.ids {
		if slices.ContainsFunc(m.ids, func(r string) bool { return m.truth[[2]string{l, r}] == "1" }) {
			list = append(list, l)
		}
	}
	return list
}

func (m *truthTable) anti() (list []string) {
	semi := m.semi()
	for _, l := range m.ids {
		if !slices.Contains(semi, l) {
			list = append(list, l)
		}
	}
	return list
}

func (m *truthTable) outer() []string {
	list := m.inner()
	for _, l := range m.anti() {
		list = append(list, l+" | NULL")
	}
	return list
}

// none lists the rows of l that are unequal to all rows of r which among lets through.
func (m *truthTable) none(among func(l, r string) bool) (list []string) {
	for _, l := range m.ids {
		if !slices.ContainsFunc(m.ids, func(r string) bool { return among(l, r) && m.truth[[2]string{l, r}] != "0" }) {
			list = append(list, l)
		}
	}
	return list
}

func (m *truthTable) notIn() []string { return m.none(func(_, _ string) bool { return true }) }

func (m *truthTable) notInValues() []string {
	return m.none(func(_, r string) bool { return !m.null[r] })
}

func (m *truthTable) notInOthers() []string { return m.none(func(l, r string) bool { return l != r }) }

// table works out a condition for all pairs, without a join.
func (c *compareRig) table(on string, r *compareColumn) (*truthTable, bool) {
	m := &truthTable{truth: map[[2]string]string{}, null: map[string]bool{}}
	all, ok := c.lines(fmt.Sprintf("SELECT l.id, r.id, (%s), r.%s IS NULL FROM l CROSS JOIN r", on, r.name))
	for _, line := range all {
		f := strings.Split(line, " | ")
		if f[0] == f[1] {
			m.ids = append(m.ids, f[0])
		}
		m.truth[[2]string{f[0], f[1]}] = f[2]
		m.null[f[1]] = f[3] == "1"
	}
	return m, ok
}

// TestCompareJoins: columns of all types join as their comparison says, whatever the method.
func TestCompareJoins(t *testing.T) {
	c := newCompareRig(t)
	for range joinRounds {
		l, r := pick(c.rnd, compareColumns), pick(c.rnd, compareColumns)
		op := pick(c.rnd, []string{"=", "=", "=", "<=>", "<", ">="})
		on := fmt.Sprintf("l.%s %s r.%s", l.name, op, r.name)
		m, ok := c.table(on, &r)
		if !ok {
			continue
		}
		fill := strings.NewReplacer("{l}", l.name, "{r}", r.name, "{on}", on)
		for _, f := range joinForms {
			c.same(fill.Replace(f.sql), f.pairs(m))
		}
		if op == "=" {
			for _, f := range inForms {
				c.same(fill.Replace(f.sql), f.pairs(m))
			}
		}
		if t.Failed() {
			break
		}
	}
}

const joinRounds = 40
