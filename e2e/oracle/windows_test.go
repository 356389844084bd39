//go:build oracles

package oracle

import (
	"fmt"
	"strings"
)

// Window functions. What MariaDB lacks is left out: LAG's and LEAD's default, intervals as
// distances, JSON aggregates over windows, COUNT of several. Rows that are equal in a
// window's order come in any, so functions that tell them apart get an order without any.

// windows is a query with window functions.
func (g *generator) windows() string {
	switch g.IntN(8) {
	case 0:
		return g.ranked()
	case 1:
		return g.groupedWindow()
	}
	return g.windowed()
}

// windowed is a SELECT with window functions.
func (g *generator) windowed() string {
	g.depth = 2
	from := g.from()
	var items, named []string
	for _, a := range g.scope {
		items = append(items, a+".id")
	}
	for range 1 + g.IntN(3) {
		f, spec := g.window()
		tail := ""
		if strings.HasPrefix(f, "PERCENT_RANK") || strings.HasPrefix(f, "CUME_DIST") {
			f, tail = "ROUND("+f, ", 6)" // MariaDB gives ten digits behind the point
		}
		if name := fmt.Sprintf("w%d", len(named)); g.IntN(4) == 0 {
			named = append(named, name+" AS ("+spec+")")
			items = append(items, f+" OVER "+name+tail)
		} else {
			items = append(items, f+" OVER ("+spec+")"+tail)
		}
	}
	text := "SELECT " + g.pick("", "", "", "DISTINCT ") + strings.Join(items, ", ") + " FROM " + from
	if g.IntN(3) == 0 {
		text += " WHERE " + g.expr(truth)
	}
	if len(named) > 0 {
		text += " WINDOW " + strings.Join(named, ", ")
	}
	return text
}

// ranked reads some rows of each partition from a derived table.
func (g *generator) ranked() string {
	g.depth = 1
	g.scope = []string{"a"}
	part := g.column([]kind{number, day, moment}[g.IntN(3)])
	text := "SELECT x.k, x.r, x.p FROM (SELECT a.id k, " + part + " p, " + g.pick("ROW_NUMBER()", "RANK()", "COUNT(*)", "SUM(a.n)") + " OVER (PARTITION BY " + part + " ORDER BY " + g.key(number) + ", a.id) r FROM " +
		g.tables[g.IntN(len(g.tables))] + " a) x WHERE x.r " + g.pick("= 1", "<= 3", "> 2")
	return text + g.pick("", " AND x.p IS NOT NULL", " AND x.k > 5", " AND x.p > '2019-06-01'")
}

// groupedWindow has windows over groups.
func (g *generator) groupedWindow() string {
	g.depth = 1
	from := g.from()
	key := g.column([]kind{number, day}[g.IntN(2)])
	inner := g.pick("SUM(", "MIN(", "MAX(", "COUNT(") + g.column(number) + ")"
	spec := g.pick("", "ORDER BY "+key, "ORDER BY "+key+" DESC", "ORDER BY COUNT(*), "+key+" ROWS 1 PRECEDING")
	return "SELECT " + key + ", " + inner + ", " + g.pick("SUM(", "MAX(", "COUNT(") + inner + ") OVER (" + spec + "), RANK() OVER (ORDER BY " + inner + ") FROM " + from +
		" GROUP BY " + key + g.pick("", " HAVING COUNT(*) > 1")
}

// window is a function and what stands in its OVER.
func (g *generator) window() (f, spec string) {
	var parts []string
	if g.IntN(3) > 0 {
		keys := []string{g.key(kind(g.IntN(int(truth))))}
		if g.IntN(4) == 0 {
			keys = append(keys, g.column(kind(g.IntN(int(truth)))))
		}
		parts = append(parts, "PARTITION BY "+strings.Join(keys, ", "))
	}
	switch g.IntN(3) {
	case 0: // every row has its place
		order := []string{g.key(kind(g.IntN(int(truth)))) + g.pick("", " DESC")}
		for _, a := range g.scope {
			order = append(order, a+".id"+g.pick("", "", " DESC"))
		}
		parts = append(parts, "ORDER BY "+strings.Join(order, ", "))
		switch g.IntN(3) {
		case 0:
			f = g.pick("ROW_NUMBER()", "NTILE("+g.pick("1", "2", "3", "7", "100")+")", "RANK()")
		case 1:
			k := kind(g.IntN(int(truth)))
			f = g.pick("LAG(", "LEAD(") + g.expr(k) + g.pick(")", ", 0)", ", 2)", ", 5)")
		default:
			k := kind(g.IntN(int(truth)))
			f = g.pick("FIRST_VALUE("+g.expr(k)+")", "LAST_VALUE("+g.expr(k)+")", "NTH_VALUE("+g.expr(k)+", "+g.pick("1", "2", "3")+")", g.sum(), g.sum(), g.sum())
			parts = append(parts, g.pick("", g.frame("ROWS"), g.frame("ROWS")))
		}
	case 1: // peers
		f = g.pick("RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", g.total(), g.total(), g.total())
		// MariaDB wants an order for ranks, and beside a window with neither order nor
		// partition it computes others in a wrong order.
		if strings.HasSuffix(f, "()") || parts == nil || g.IntN(5) > 0 {
			parts = append(parts, "ORDER BY "+g.key(kind(g.IntN(int(truth))))+g.pick("", " DESC"))
		}
		if !strings.HasSuffix(f, "()") && !strings.HasPrefix(f, "BIT") {
			parts = append(parts, g.pick("", "RANGE UNBOUNDED PRECEDING", "RANGE CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"))
		}
	default: // distances
		parts = append(parts, "ORDER BY "+g.column(g.numberKind())+g.pick("", " DESC"), g.frame("RANGE"))
		f = g.sum()
	}
	return f, strings.Join(parts, " ")
}

// key is a key of a window. It has a column: a number alone is refused here, as by MySQL,
// and with a constant MariaDB takes another window's order.
func (g *generator) key(k kind) string {
	e := g.expr(k)
	for _, a := range g.scope {
		if strings.Contains(e, a+".") {
			return e
		}
	}
	return g.column(k)
}

func (g *generator) numberKind() kind { return []kind{number, number, float}[g.IntN(3)] }

// total is an aggregate that does not ask in which order rows come. MariaDB does not take
// back bits that leave a frame.
func (g *generator) total() string {
	if g.IntN(8) == 0 {
		return g.pick("BIT_AND(", "BIT_OR(", "BIT_XOR(") + g.scope[0] + ".id)" // its results are signed
	}
	return g.sum()
}

// sum is an aggregate for any frame.
func (g *generator) sum() string {
	switch g.IntN(7) {
	case 0:
		return "COUNT(*)"
	case 1:
		return "COUNT(" + g.expr(kind(g.IntN(int(truth)))) + ")"
	case 2, 3:
		return g.pick("SUM(", "AVG(") + g.column(g.numberKind()) + ")"
	case 4:
		return g.pick("STD(", "VAR_POP(", "VAR_SAMP(", "STDDEV_SAMP(") + g.scope[0] + ".f)" // MariaDB cuts those of exact numbers to four digits
	}
	return g.pick("MIN(", "MAX(") + g.expr([]kind{number, float, moment, day}[g.IntN(4)]) + ")"
}

// frame is a frame with distances.
func (g *generator) frame(unit string) string {
	n := func() string { return g.pick("0", "1", "2", "3", "10") }
	// What MariaDB makes of frames whose end is before their beginning is not what it says.
	low, high := g.IntN(4), 4+g.IntN(4)
	start := g.pick("UNBOUNDED PRECEDING", "CURRENT ROW", n()+" PRECEDING", n()+" PRECEDING")
	end := g.pick("UNBOUNDED FOLLOWING", "CURRENT ROW", n()+" FOLLOWING", n()+" FOLLOWING")
	switch g.IntN(6) {
	case 0:
		start, end = g.pick("UNBOUNDED PRECEDING", fmt.Sprint(high)+" PRECEDING"), fmt.Sprint(low)+" PRECEDING"
	case 1:
		start, end = fmt.Sprint(low)+" FOLLOWING", g.pick("UNBOUNDED FOLLOWING", fmt.Sprint(high)+" FOLLOWING")
	case 2:
		return unit + " " + g.pick("UNBOUNDED PRECEDING", "CURRENT ROW", n()+" PRECEDING")
	}
	return unit + " BETWEEN " + start + " AND " + end
}
