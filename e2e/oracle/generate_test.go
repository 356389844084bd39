//go:build oracles

package oracle

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is what an expression gives.
type kind int

const (
	number kind = iota // exact: integers and decimals
	float
	str
	moment // DATETIME
	day    // DATE
	truth
	kinds
)

// column of a generated table.
type column struct {
	name string
	kind kind
	decl string
}

// All tables have these columns. Comparisons of text use collations that both databases
// have and that order alike.
var columns = []column{
	{"id", number, "INT NOT NULL"},
	{"i", number, "INT"},
	{"n", number, "SMALLINT NOT NULL"},
	{"u", number, "BIGINT UNSIGNED"},
	{"d", number, "DECIMAL(10,3)"},
	{"f", float, "DOUBLE"},
	{"s", str, "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"},
	{"b", str, "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"},
	{"m", moment, "DATETIME"},
	{"y", day, "DATE"},
}

var indexes = []string{"KEY (i)", "KEY (s)", "KEY (d, i)", "UNIQUE KEY (u, id)", "KEY (m)", "KEY (y, s)", "KEY (b(3))", "KEY (n, s)", "KEY (f)"}

// generator makes statements from a seed.
type generator struct {
	*rand.Rand
	tables []string
	scope  []string // aliases in FROM
	depth  int
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) create(name string) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, c.name+" "+c.decl)
	}
	parts = append(parts, "PRIMARY KEY (id)")
	for _, i := range indexes {
		if g.IntN(2) == 0 {
			parts = append(parts, i)
		}
	}
	return "CREATE TABLE " + name + " (" + strings.Join(parts, ", ") + ")"
}

var words = []string{"", "a", "A", "b", "ab", "aB", "abc", "b c", "x", "ä", "Ä", "z%", "_x", "10", "2", "-3.5", "0", "1e1", "2020-02-29", "abcabc", "\u65e5\u672c"}

func (g *generator) word() string { return "'" + words[g.IntN(len(words))] + "'" }

func (g *generator) dateText() string {
	return fmt.Sprintf("%04d-%02d-%02d", 2019+g.IntN(3), 1+g.IntN(12), 1+g.IntN(28))
}

// value is a literal of a kind, from a small domain so that joins and groups meet.
func (g *generator) value(k kind) string {
	switch k {
	case number:
		// No fractions: MariaDB rounds them where an index of whole numbers is searched.
		if g.IntN(8) == 0 {
			return g.pick("0", "-1", "2147483647", "1000000")
		}
		return fmt.Sprint(g.IntN(12) - 2)
	case float:
		return g.pick("0e0", "1.5e0", "-2.25e0", "1e10", "3e0", "0.125e0")
	case str:
		return g.word()
	case moment:
		return fmt.Sprintf("TIMESTAMP'%s %02d:%02d:%02d'", g.dateText(), g.IntN(24), g.IntN(60), g.IntN(60))
	case day:
		return "DATE'" + g.dateText() + "'"
	}
	return g.pick("TRUE", "FALSE", "NULL")
}

func (g *generator) insert(name string, rows int) string {
	var list []string
	for id := range rows {
		row := []string{fmt.Sprint(id + 1)}
		for _, c := range columns[1:] {
			switch {
			case g.IntN(7) == 0 && c.name != "n":
				row = append(row, "NULL")
			case c.name == "u":
				row = append(row, fmt.Sprint(g.IntN(10)))
			case c.name == "n" || c.name == "i":
				row = append(row, fmt.Sprint(g.IntN(12)-2))
			case c.name == "d":
				row = append(row, fmt.Sprintf("%d.%03d", g.IntN(9)-2, g.IntN(4)*250))
			case c.kind == moment:
				row = append(row, fmt.Sprintf("'%s %02d:00:00'", g.dateText(), g.IntN(24)))
			case c.kind == day:
				row = append(row, "'"+g.dateText()+"'")
			default:
				row = append(row, g.value(c.kind))
			}
		}
		list = append(list, "("+strings.Join(row, ",")+")")
	}
	return "INSERT INTO " + name + " VALUES " + strings.Join(list, ",")
}

func (g *generator) column(k kind) string {
	var fit []string
	for _, c := range columns {
		if c.kind == k {
			fit = append(fit, c.name)
		}
	}
	return g.scope[g.IntN(len(g.scope))] + "." + fit[g.IntN(len(fit))]
}

// expr is an expression of a kind.
func (g *generator) expr(k kind) string {
	if g.depth <= 0 || g.IntN(3) == 0 {
		if k != truth && len(g.scope) > 0 && g.IntN(4) > 0 {
			return g.column(k)
		}
		if k == truth {
			return g.comparison()
		}
		if g.IntN(12) == 0 && k != number { // the type of NULL in arithmetic differs
			return "NULL"
		}
		return g.value(k)
	}
	g.depth--
	defer func() { g.depth++ }()
	if g.IntN(6) == 0 {
		return g.choice(k)
	}
	switch k {
	case number:
		return g.numeric()
	case float:
		return g.pick(
			"("+g.expr(float)+g.pick(" + ", " - ", " * ")+g.expr(number)+")",
			"ABS("+g.expr(float)+")", "FLOOR("+g.expr(float)+")", "SQRT(ABS("+g.expr(number)+"))")
	case str:
		return g.textual()
	case moment:
		return g.pick("DATE_ADD("+g.column(moment)+", INTERVAL "+fmt.Sprint(g.IntN(40)-20)+" "+g.pick("DAY", "HOUR", "MINUTE", "MONTH", "YEAR", "WEEK", "QUARTER")+")",
			"CAST("+g.expr(day)+" AS DATETIME)", "TIMESTAMP("+g.expr(day)+")")
	case day:
		return g.pick("DATE("+g.expr(moment)+")", "LAST_DAY("+g.expr(day)+")", "DATE_SUB("+g.expr(day)+", INTERVAL "+fmt.Sprint(g.IntN(40))+" "+g.pick("DAY", "MONTH", "YEAR")+")",
			"CAST("+g.expr(moment)+" AS DATE)")
	}
	return g.predicate()
}

func (g *generator) choice(k kind) string {
	switch g.IntN(4) {
	case 0:
		return "IF(" + g.expr(truth) + ", " + g.expr(k) + ", " + g.expr(k) + ")"
	case 1:
		return "COALESCE(" + g.expr(k) + ", " + g.expr(k) + ")"
	case 2:
		return "CASE WHEN " + g.expr(truth) + " THEN " + g.expr(k) + " WHEN " + g.expr(truth) + " THEN " + g.expr(k) + " ELSE " + g.expr(k) + " END"
	}
	return "NULLIF(" + g.expr(k) + ", " + g.expr(k) + ")"
}

func (g *generator) numeric() string {
	a := g.expr(number)
	switch g.IntN(16) {
	case 0, 1, 2:
		return "(" + a + g.pick(" + ", " - ", " * ") + "CAST(" + g.expr(number) + " AS SIGNED))"
	case 3:
		// How many digits of a quotient count in what is made of it differs.
		return "CAST(CAST(" + a + " AS SIGNED) / NULLIF(CAST(" + g.expr(number) + " AS SIGNED), 100) AS DECIMAL(20,4))"
	case 4:
		return "(" + a + g.pick(" DIV ", " % ") + g.pick("2", "3", "7", "-4") + ")"
	case 5:
		return "ABS(CAST(" + a + " AS SIGNED))"
	case 6:
		return g.pick("LENGTH", "CHAR_LENGTH", "ASCII") + "(" + g.expr(str) + ")"
	case 7:
		return g.pick("YEAR", "MONTH", "DAY", "DAYOFWEEK", "DAYOFYEAR", "QUARTER", "WEEKDAY") + "(" + g.expr(g.dateKind()) + ")"
	case 8:
		return g.pick("HOUR", "MINUTE", "SECOND") + "(" + g.expr(moment) + ")"
	case 9:
		return "DATEDIFF(" + g.expr(day) + ", " + g.expr(moment) + ")"
	case 10:
		// The scale of the result is MySQL's own where the argument has fewer digits.
		return g.pick("ROUND", "TRUNCATE") + "(CAST(" + a + " AS DECIMAL(20,5)), " + g.pick("0", "1", "2", "-1") + ")"
	case 11:
		return g.pick("FLOOR", "CEIL", "SIGN") + "(" + a + ")"
	case 12:
		return g.pick("GREATEST", "LEAST") + "(" + a + ", " + g.expr(number) + ")"
	case 13:
		return "CAST(" + a + " AS " + g.pick("SIGNED", "DECIMAL(12,2)", "DECIMAL(20,5)") + ")"
	case 14:
		// MariaDB since 10.11.19 does not find a text in one that is equal under its
		// collation but takes other bytes: 'ä' in 'ab'. MySQL does.
		return "LOCATE(" + g.expr(str) + " COLLATE utf8mb4_bin, " + g.expr(str) + ")"
	}
	return "-CAST(" + a + " AS SIGNED)"
}

func (g *generator) dateKind() kind {
	if g.IntN(2) == 0 {
		return day
	}
	return moment
}

func (g *generator) textual() string {
	a := g.expr(str)
	switch g.IntN(11) {
	case 0:
		return "CONCAT(" + a + ", " + g.expr(str) + ")"
	case 1:
		return g.pick("UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM", "REVERSE") + "(" + a + ")"
	case 2:
		return "SUBSTRING(" + a + ", " + fmt.Sprint(g.IntN(5)-1) + ", " + fmt.Sprint(g.IntN(4)) + ")"
	case 3:
		return g.pick("LEFT", "RIGHT") + "(" + a + ", " + fmt.Sprint(g.IntN(4)) + ")"
	case 4:
		return "REPLACE(" + a + ", " + g.word() + ", " + g.word() + ")"
	case 5:
		return g.pick("LPAD", "RPAD") + "(" + a + ", " + fmt.Sprint(g.IntN(8)) + ", 'xy')"
	case 6:
		return "CONCAT_WS('-', " + a + ", " + g.expr(str) + ")"
	case 7:
		return "DATE_FORMAT(" + g.expr(g.dateKind()) + ", '" + g.pick("%Y-%m-%d", "%d.%m.%y", "%H:%i", "%j %a", "%M %D") + "')"
	case 8:
		return "SUBSTRING_INDEX(" + a + ", 'b', " + g.pick("1", "-1", "2") + ")"
	case 9:
		return "HEX(" + a + ")"
	}
	return "REPEAT(" + a + ", " + fmt.Sprint(g.IntN(3)) + ")"
}

func (g *generator) comparison() string {
	if len(g.scope) == 0 {
		return g.pick("TRUE", "FALSE", "1 = 1")
	}
	k := kind(g.IntN(int(truth)))
	c := g.column(k)
	switch g.IntN(9) {
	case 0:
		return c + g.pick(" IS NULL", " IS NOT NULL")
	case 1:
		return c + g.pick("", " NOT") + " BETWEEN " + g.value(k) + " AND " + g.value(k)
	case 2:
		return c + g.pick("", " NOT") + " IN (" + g.value(k) + ", " + g.value(k) + ", " + g.value(k) + ")"
	case 3:
		if k == str {
			return c + g.pick("", " NOT") + " LIKE " + g.pick("'a%'", "'%b%'", "'_'", "'A_c'", "''", "'%'", "'ä%'")
		}
	case 4:
		return c + " <=> " + g.expr(k)
	}
	return c + g.pick(" = ", " < ", " <= ", " > ", " >= ", " <> ") + g.expr(k)
}

func (g *generator) predicate() string {
	switch g.IntN(9) {
	case 0, 1:
		return "(" + g.expr(truth) + " AND " + g.expr(truth) + ")"
	case 2, 3:
		return "(" + g.expr(truth) + " OR " + g.expr(truth) + ")"
	case 4:
		return "NOT (" + g.expr(truth) + ")"
	case 5:
		return "(" + g.expr(truth) + ") IS " + g.pick("", "NOT ") + g.pick("TRUE", "FALSE", "UNKNOWN")
	case 6:
		return g.subquery()
	}
	k := kind(g.IntN(int(truth)))
	return g.expr(k) + g.pick(" = ", " < ", " <= ", " > ", " >= ", " <> ") + g.expr(k)
}

// subquery is a predicate with a subquery, correlated or not.
func (g *generator) subquery() string {
	if len(g.scope) == 0 || g.depth < 1 {
		return g.comparison()
	}
	outer := g.scope
	alias := fmt.Sprintf("q%d", len(outer)+g.depth*10+g.IntN(5)*100)
	table := g.tables[g.IntN(len(g.tables))]
	k := kind(g.IntN(int(truth)))
	left := g.column(k)
	correlate := ""
	g.scope = []string{alias}
	inner := alias + left[strings.IndexByte(left, '.'):] // of two collations that differ MariaDB does not always take the binary one
	where := g.expr(truth)
	if g.IntN(2) == 0 {
		g.scope = outer
		o := g.column(k)
		g.scope = []string{alias}
		correlate = " AND " + alias + o[strings.IndexByte(o, '.'):] + g.pick(" = ", " <= ", " > ") + o
	}
	g.scope = outer
	from := " FROM " + table + " " + alias + " WHERE " + where + correlate
	switch g.IntN(5) {
	case 0:
		return g.pick("", "NOT ") + "EXISTS (SELECT 1" + from + ")"
	case 1:
		return left + g.pick(" > ", " = ", " <= ") + "(SELECT " + g.pick("MAX", "MIN") + "(" + inner + ")" + from + ")"
	case 2:
		return left + g.pick(" > ALL", " = ANY", " <> ALL", " <= ANY") + " (SELECT " + inner + from + ")"
	}
	return left + g.pick("", " NOT") + " IN (SELECT " + inner + from + ")"
}

// from makes a FROM clause and puts its aliases into the scope.
func (g *generator) from() string {
	g.scope = []string{"a"}
	text := g.tables[g.IntN(len(g.tables))] + " a"
	for i := range []int{0, 0, 1, 1, 2}[g.IntN(5)] {
		alias := string(rune('b' + i))
		join := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN", "LEFT JOIN")
		table := g.tables[g.IntN(len(g.tables))]
		if g.IntN(6) == 0 {
			table = "(SELECT * FROM " + table + " WHERE id <= " + fmt.Sprint(g.IntN(30)) + ")"
		}
		before := g.scope
		k := kind(g.IntN(int(truth)))
		l := g.column(k)
		g.scope = []string{alias}
		on := l + " = " + g.column(k)
		g.scope = append(before, alias)
		if g.IntN(3) == 0 {
			depth := g.depth
			g.depth = 1
			on += " AND " + g.expr(truth)
			g.depth = depth
		}
		text += " " + join + " " + table + " " + alias + " ON " + on
	}
	return text
}

// query is a SELECT; ordered says that its rows come in one possible order.
func (g *generator) query() (text string, ordered bool) {
	switch g.IntN(8) {
	case 0, 1, 2:
		return g.grouped(), false
	case 3:
		a, b := g.plain(2), g.plain(2)
		return "(" + a + ") " + g.pick("UNION", "UNION ALL", "UNION") + " (" + b + ")", false
	}
	return g.plain(0), false
}

// plain is a SELECT of expressions; with kinds > 0 of exactly two columns of text and
// number, to be combined.
func (g *generator) plain(fixed int) string {
	g.depth = 3
	from := g.from()
	var items []string
	if fixed > 0 {
		items = []string{g.expr(str), "CAST(" + g.expr(number) + " AS DECIMAL(20,5))"}
	} else {
		for range 1 + g.IntN(4) {
			items = append(items, g.expr(kind(g.IntN(int(kinds)))))
		}
	}
	text := "SELECT " + g.pick("", "", "DISTINCT ") + strings.Join(items, ", ") + " FROM " + from
	if g.IntN(4) > 0 {
		text += " WHERE " + g.expr(truth)
	}
	return text
}

func (g *generator) grouped() string {
	g.depth = 2
	from := g.from()
	var items, groups []string
	for range g.IntN(3) {
		c := g.column(kind([]kind{number, str, day}[g.IntN(3)]))
		if c[2:] == "s" {
			c = "CHAR_LENGTH(" + c + ")" // which of two equal texts stands for the group is not defined
		}
		groups = append(groups, c)
	}
	items = append(items, groups...)
	for range 1 + g.IntN(3) {
		g.depth = 1
		switch g.IntN(8) {
		case 0:
			items = append(items, "COUNT(*)")
		case 1:
			items = append(items, "COUNT("+g.pick("", "DISTINCT ")+g.expr(kind(g.IntN(int(truth))))+")")
		case 2, 3:
			items = append(items, "SUM("+g.pick("", "", "DISTINCT ")+g.expr(number)+")")
		case 4:
			items = append(items, "AVG("+g.column(number)+")")
		case 5:
			items = append(items, "BIT_"+g.pick("AND", "OR", "XOR")+"("+g.column(number)[:1]+".n)")
		default:
			items = append(items, g.pick("MIN", "MAX")+"("+g.expr(kind([]kind{number, float, moment, day}[g.IntN(4)]))+")")
		}
	}
	text := "SELECT " + strings.Join(items, ", ") + " FROM " + from
	if g.IntN(3) > 0 {
		text += " WHERE " + g.expr(truth)
	}
	if len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
		if g.IntN(3) == 0 {
			text += " HAVING COUNT(*) " + g.pick("> 1", "< 3", "= 2")
		}
	}
	return text
}
