//go:build oracles

package oracle

import (
	"fmt"
	"strings"
)

// a sample is a statement to be compared, with what comes before and after it.
type sample struct {
	kind     string
	before   []string
	root     *node
	after    []string // compared too
	ordered  bool     // rows come in one order
	prepared bool
	loose    bool // errors of values depend on the plan
}

var kinds2 = map[string]func(*maker) *sample{
	"expr": (*maker).exprs, "where": (*maker).where, "prepared": (*maker).parameters, "group": (*maker).groups, "window": (*maker).overs,
	"query": (*maker).joins, "set": (*maker).sets, "change": (*maker).changes, "create": (*maker).creates, "self": (*maker).selfCheck,
}

// weights of the kinds.
var weights = []string{"expr", "expr", "expr", "expr", "expr", "expr", "where", "where", "where", "prepared", "prepared", "group", "group", "window", "query", "query", "query", "set", "change", "change", "change", "create", "self", "self"}

func (m *maker) exprs() *sample {
	m.scope = nil
	if m.one(70) {
		m.scope = []string{""}
	}
	e := m.expr("a", m.deep())
	root := text2("SELECT ", e)
	if m.scope != nil {
		root.parts = append(root.parts, " FROM t1")
		if m.one(30) {
			root.parts = append(root.parts, &node{parts: []any{fmt.Sprintf(" WHERE id = %d", 1+m.IntN(30))}, drop: true})
		}
	}
	return &sample{kind: "expr", root: root, ordered: true}
}

func (m *maker) parameters() *sample {
	m.prepared = true
	defer func() { m.prepared = false }()
	s := m.exprs()
	s.kind, s.prepared = "prepared", true
	return s
}

func (m *maker) condition(depth int) *node {
	c := func() *node { return m.form(m.byKind["c"][m.IntN(len(m.byKind["c"]))], depth) }
	switch m.IntN(6) {
	case 0:
		return &node{parts: []any{"(", c(), m.pick(" AND ", " OR "), c(), ")"}, expr: true}
	case 1:
		return &node{parts: []any{"NOT ", c()}, expr: true}
	case 2: // a column and a value, for the indexes
		k := m.pick("n", "x", "s", "d", "t", "b")
		return &node{parts: []any{m.column(k), m.pick(" = ", " < ", " >= ", " <> ", " <=> "), m.literal(m.pick(k, k, "a"))}, expr: true}
	}
	return c()
}

func (m *maker) where() *sample {
	m.scope = []string{""}
	root := text2("SELECT id FROM ", m.pick("t1", "t1", "t0"), " WHERE ", m.condition(m.deep()-1))
	return &sample{kind: "where", root: root, loose: true}
}

// plainKey is a column of which equal values are the same.
func (m *maker) plainKey() *node {
	c := m.pick("ti", "i", "bu", "d0", "d1", "dt", "tm", "dm3", "ts", "bn", "vb", "en", "y", "b10", "nn", "st")
	return &node{parts: []any{m.pick(m.scope...) + c}, leaf: c, expr: true}
}

func (m *maker) aggregate() *node {
	n := &node{}
	e := func(k string) *node { return m.expr(k, m.IntN(2)) }
	switch m.IntN(12) {
	case 0:
		n.parts = []any{"COUNT(*)"}
	case 1:
		n.parts = []any{"COUNT(", m.pick("", "DISTINCT "), e("a"), ")"}
	case 2, 3:
		n.parts = []any{m.pick("SUM", "AVG"), "(", m.pick("", "", "DISTINCT "), e(m.pick("x", "x", "x", "a")), ")"}
	case 4:
		n.parts = []any{m.pick("BIT_AND", "BIT_OR", "BIT_XOR"), "(", e(m.pick("n", "n", "a")), ")"}
	case 5:
		n.parts = []any{m.pick("STD", "VARIANCE", "VAR_SAMP", "STDDEV_SAMP"), "(", e(m.pick("n", "x")), ")"}
	case 6, 7:
		k := m.pick("a", "s", "d")
		n.parts = []any{"GROUP_CONCAT(", m.pick("", ""), e(k), " ORDER BY ", m.pick(m.scope...) + "id", m.pick("", " DESC"), m.pick("", " SEPARATOR '-'"), ")"}
	case 8:
		n.parts = []any{"JSON_OBJECTAGG(", m.pick(m.scope...) + "id", ", ", e("a"), ")"}
	default:
		n.parts = []any{m.pick("MIN", "MAX"), "(", m.expr(m.pick("x", "d", "t", "n", "b"), m.IntN(2)), ")"}
	}
	return n
}

func (m *maker) groups() *sample {
	m.scope = []string{""}
	root := text2("SELECT ")
	var keys []*node
	for range m.IntN(3) {
		keys = append(keys, m.plainKey())
	}
	for _, k := range keys {
		root.parts = append(root.parts, k, ", ")
	}
	rollup := len(keys) > 0 && m.one(35)
	if rollup && m.one(60) {
		root.parts = append(root.parts, "GROUPING(", keys[m.IntN(len(keys))].String(), "), ")
	}
	for i := range 1 + m.IntN(2) {
		if i > 0 {
			root.parts = append(root.parts, ", ")
		}
		root.parts = append(root.parts, m.aggregate())
	}
	root.parts = append(root.parts, " FROM t1")
	if m.one(40) {
		root.parts = append(root.parts, &node{parts: []any{" WHERE ", m.condition(1)}, drop: true})
	}
	for i, k := range keys {
		root.parts = append(root.parts, map[bool]string{true: " GROUP BY ", false: ", "}[i == 0], k.String())
	}
	if rollup {
		root.parts = append(root.parts, " WITH ROLLUP")
	}
	if len(keys) > 0 && m.one(25) {
		root.parts = append(root.parts, &node{parts: []any{" HAVING ", m.aggregate(), m.pick(" > ", " = ", " IS NOT NULL OR 1 = "), m.literal("a")}, drop: true})
	}
	return &sample{kind: "group", root: root, loose: true}
}

func (m *maker) overs() *sample {
	m.scope = []string{""}
	f := text2()
	order := " ORDER BY " + m.plainKey().String() + m.pick("", " DESC") + ", id"
	frame := ""
	bound := func(way string) string { return m.pick("0", "1", "2", "5") + way }
	switch m.IntN(6) {
	case 0:
		frame = m.pick(" ROWS", " RANGE") + " UNBOUNDED PRECEDING"
	case 1:
		frame = " ROWS BETWEEN " + m.pick("UNBOUNDED PRECEDING", "CURRENT ROW", bound(" PRECEDING")) + " AND " + m.pick("UNBOUNDED FOLLOWING", "CURRENT ROW", bound(" FOLLOWING"))
	case 2:
		frame = " ROWS BETWEEN " + bound(" FOLLOWING") + " AND " + bound(" FOLLOWING")
	case 3:
		frame = " RANGE BETWEEN " + bound(" PRECEDING") + " AND " + bound(" FOLLOWING")
		order = " ORDER BY " + m.pick("i", "d1", "db", "nn", "d2") + m.pick("", " DESC") // below 0 an unsigned bound is error 1690 in MySQL
	case 4:
		frame = " RANGE BETWEEN INTERVAL " + bound(m.pick(" DAY", " YEAR", " HOUR")) + " PRECEDING AND CURRENT ROW"
		order = " ORDER BY " + m.pick("dt", "dm", "dm6", "tm", "dmn", "ts") + m.pick("", " DESC")
	}
	ranged := strings.Contains(frame, "RANGE BETWEEN")
	switch {
	case m.one(30) && !ranged:
		f.parts = []any{m.pick("ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(3)")}
	case m.one(50) && !ranged:
		f.parts = []any{m.pick("LAG", "LEAD"), "(", m.expr("a", m.IntN(2)), m.pick("", ", 2", ", 1, 0", ", 0", ", 1, 'x'"), ")"}
	case m.one(50) && !ranged:
		f.parts = []any{m.pick("FIRST_VALUE(", "LAST_VALUE("), m.expr("a", m.IntN(2)), ")"}
		if m.one(20) {
			f.parts = []any{"NTH_VALUE(", m.expr("a", m.IntN(2)), ", 2)"}
		}
	default:
		k := m.pick("n", "x", "d")
		f.parts = []any{m.pick("SUM(", "AVG(", "MIN(", "MAX(", "COUNT(", "BIT_OR(", "STD("), m.expr(k, m.IntN(2)), ")"}
	}
	part := &node{}
	if m.one(50) {
		part = &node{parts: []any{"PARTITION BY " + m.plainKey().String()}, drop: true}
	}
	root := text2("SELECT id, ", f, " OVER (", part, order, &node{parts: []any{frame}, drop: true}, ") FROM t1")
	return &sample{kind: "window", root: root}
}

func (m *maker) alias() string { m.fresh++; return fmt.Sprintf("q%d", m.fresh%100) }

// subquery is a condition with a query in it; outer columns may be used.
func (m *maker) subquery() *node {
	outer := m.scope
	a := m.alias()
	k := m.pick("n", "x", "s", "d", "t", "b", "a")
	left := m.expr(k, m.IntN(2))
	m.scope = []string{a + "."}
	inner := m.expr(m.pick(k, k, k, "a"), m.IntN(2))
	agg := m.pick("MAX", "MIN", "SUM", "COUNT")
	where := m.condition(0)
	m.scope = append([]string{a + "."}, outer...)
	if m.one(40) {
		where = &node{parts: []any{where, " AND ", m.condition(0)}, expr: true}
	}
	m.scope = outer
	from := &node{parts: []any{" FROM ", m.pick("t1", "t2", "t3"), " ", a, &node{parts: []any{" WHERE ", where}, drop: true}}}
	switch m.IntN(6) {
	case 0:
		return &node{parts: []any{m.pick("", "NOT "), "EXISTS (SELECT 1", from, ")"}}
	case 1:
		return &node{parts: []any{left, m.pick(" > ", " = ", " <= ", " <=> "), "(SELECT ", agg, "(", inner, ")", from, ")"}}
	case 2:
		return &node{parts: []any{left, m.pick(" > ALL", " = ANY", " <> ALL", " <= ANY", " = ALL", " >= SOME"), " (SELECT ", inner, from, ")"}}
	case 3:
		return &node{parts: []any{"(", left, ", 1)", m.pick(" IN", " NOT IN"), " (SELECT ", inner, ", ", m.pick("1", a+".ti", a+".nn"), from, ")"}}
	}
	return &node{parts: []any{left, m.pick(" IN", " NOT IN"), " (SELECT ", inner, from, ")"}}
}

func (m *maker) table() string { return m.pick("t1", "t2", "t2", "t3", "t3") }

func (m *maker) joins() *sample {
	root := text2()
	m.scope = []string{"a."}
	from := text2(m.table(), " a")
	switch m.IntN(10) {
	case 0:
		from = text2("(SELECT * FROM ", m.table(), " WHERE ", func() *node {
			m.scope = []string{""}
			defer func() { m.scope = []string{"a."} }()
			return m.condition(0)
		}(), ") a")
	case 1:
		m.scope = []string{""}
		e := m.expr("a", 1)
		m.scope = []string{"a."}
		return &sample{kind: "query", root: text2("SELECT a.c, COUNT(*) FROM (SELECT ", e, " c FROM t1 ", m.pick("", "LIMIT 100"), ") a GROUP BY a.c HAVING a.c IS NULL OR a.c IS NOT NULL"), loose: true}
	case 2:
		start, step := m.pick("1", "0.5", "'a'", "1e0", "CAST(1 AS SIGNED)"), m.pick("c + 1", "c * 2", "c + 0.5", "c + n")
		if start == "'a'" {
			start, step = "CAST('a' AS CHAR(50))", m.pick("CONCAT(c, n)", "CONCAT(c, 'b')", "LEFT(CONCAT('x', c), 3)")
		}
		return &sample{kind: "query", root: text2("WITH RECURSIVE r (n, c) AS (SELECT 1, ", start, m.pick(" UNION ALL ", " UNION "), "SELECT n + 1, ", step, " FROM r WHERE n < ", m.pick("3", "5", "8"), ") SELECT * FROM r")}
	}
	for i := range []int{0, 1, 1, 1, 2}[m.IntN(5)] {
		b := string(rune('b' + i))
		before := m.scope
		switch m.IntN(8) {
		case 0:
			m.scope = []string{b + "."}
			from.parts = append(from.parts, m.pick(" JOIN ", " LEFT JOIN ", " RIGHT JOIN "), m.table(), " ", b, " USING (id)")
		case 1:
			m.scope = []string{b + "."}
			inner := m.expr("a", 0)
			m.scope = append([]string{b + "."}, before...)
			w := m.condition(0)
			alias := "l" + b
			from.parts = append(from.parts, m.pick(", ", " JOIN "), "LATERAL (SELECT ", inner, " v FROM ", m.pick("t2", "t3"), " ", b, " WHERE ", w, ") ", alias)
			if strings.Contains(from.String(), " JOIN LATERAL") {
				from.parts = append(from.parts, " ON TRUE")
			}
			m.scope = before
			continue
		default:
			k := m.pick("n", "x", "s", "d", "t", "b", "a")
			l := m.column(k)
			m.scope = []string{b + "."}
			r := m.column(m.pick(k, k, k, "a"))
			m.scope = append(before, b+".")
			on := &node{parts: []any{l, m.pick(" = ", " = ", " = ", " <=> ", " < "), r}, expr: true}
			from.parts = append(from.parts, m.pick(" JOIN ", " LEFT JOIN ", " RIGHT JOIN "), m.table(), " ", b, " ON ", on)
			if m.one(30) {
				from.parts = append(from.parts, &node{parts: []any{" AND ", m.condition(0)}, drop: true})
			}
		}
		m.scope = append(before, b+".")
	}
	var items []any
	for _, s := range m.scope {
		items = append(items, s+"id, ")
	}
	items = append(items, &node{parts: []any{m.expr("a", m.IntN(2))}})
	root.parts = append([]any{"SELECT "}, items...)
	root.parts = append(root.parts, " FROM ", from)
	switch {
	case m.one(50):
		root.parts = append(root.parts, &node{parts: []any{" WHERE ", m.subquery()}, drop: true})
	case m.one(60):
		root.parts = append(root.parts, &node{parts: []any{" WHERE ", m.condition(1)}, drop: true})
	}
	return &sample{kind: "query", root: root, loose: true}
}

func (m *maker) sets() *sample {
	m.scope = []string{""}
	k := m.pick("a", "n", "x", "d", "t", "b", "j")
	item := func() *node {
		if m.one(50) {
			return m.column(m.pick(k, k, "a"))
		}
		return m.expr(m.pick(k, k, "a"), m.IntN(2))
	}
	root := text2("SELECT ", item(), " AS c FROM ", m.table())
	for range 1 + m.IntN(2) {
		op := m.pick(" UNION ALL ", " UNION ALL ", " UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT ", " EXCEPT ALL ")
		part := text2(op, "SELECT ", item(), " FROM ", m.table())
		root.parts = append(root.parts, part)
	}
	return &sample{kind: "set", root: root, loose: true}
}

// changes are statements that change w, a table with the rows of t2.
func (m *maker) changes() *sample {
	c := mysqlColumns[m.IntN(len(mysqlColumns))]
	k := m.pick(c.kind, c.kind, "a")
	m.scope = nil
	root := text2()
	ignore := m.pick("", "", "", "", "IGNORE ")
	switch m.IntN(9) {
	case 0, 1:
		root.parts = []any{"INSERT ", ignore, "INTO w (id, ", c.name, ") VALUES (100, ", m.expr(k, m.IntN(2)), ")", &node{parts: []any{", (101, ", m.expr(k, 0), ")"}, drop: true}}
	case 2, 3:
		m.scope = []string{""}
		root.parts = []any{"INSERT ", ignore, "INTO w (id, ", c.name, ") SELECT id + 100, ", m.expr(k, m.IntN(3)), " FROM t1"}
	case 4:
		m.scope = []string{""}
		e := m.expr(k, m.IntN(2))
		root.parts = []any{"INSERT ", ignore, "INTO w (id, ", c.name, ") VALUES (1, ", m.literal(k), ") ON DUPLICATE KEY UPDATE ", c.name, " = ", e}
		if m.one(30) {
			root.parts[len(root.parts)-1] = "VALUES(" + c.name + ")"
		}
	case 5:
		root.parts = []any{"REPLACE INTO w (id, ", c.name, ") VALUES (1, ", m.expr(k, m.IntN(2)), ")"}
	case 6:
		m.scope = []string{"w.", "b."}
		root.parts = []any{"UPDATE ", ignore, "w JOIN t3 b ON ", m.condition(0), " SET w.", c.name, " = ", m.expr(k, m.IntN(2))}
		root.parts[3] = &node{parts: []any{m.pick("w.id = b.id", "w.nn = b.nn", "w.id = b.id AND w.i = b.i")}}
	case 7:
		m.scope = []string{"w.", "b."}
		root.parts = []any{"DELETE w", m.pick("", ""), " FROM w ", m.pick("JOIN", "LEFT JOIN"), " t3 b ON w.id = b.id WHERE ", m.condition(0)}
	default:
		m.scope = []string{""}
		root.parts = []any{"UPDATE ", ignore, "w SET ", c.name, " = ", m.expr(k, m.IntN(3)), &node{parts: []any{" WHERE ", m.condition(0)}, drop: true}}
	}
	return &sample{kind: "change", before: []string{"BEGIN"}, root: root, after: []string{"SELECT id, " + c.name + ", nn, vn FROM w ORDER BY id", "ROLLBACK"}, ordered: true}
}

func (m *maker) creates() *sample {
	m.scope = []string{""}
	e := m.expr("a", m.deep())
	root := text2("CREATE TEMPORARY TABLE ct SELECT ", e, " AS c FROM t1 LIMIT 5")
	if m.one(30) {
		root.parts = []any{"CREATE TEMPORARY TABLE ct SELECT ", m.column("a"), " AS c FROM t3 UNION ALL SELECT ", m.column("a"), " FROM t3"}
	}
	if m.one(15) {
		root.parts = []any{"CREATE TEMPORARY TABLE ct SELECT ", m.aggregate(), " AS c FROM t1"}
	}
	return &sample{kind: "create", root: root, after: []string{"SHOW CREATE TABLE ct", "SELECT * FROM ct", "DROP TEMPORARY TABLE IF EXISTS ct"}, ordered: true, loose: true}
}
