//go:build oracles

package oracle

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// maker makes statements for MySQL from a seed.
type maker struct {
	*rand.Rand
	scope    []string // what stands before the columns of the tables in FROM, "" or "a."
	only     string   // kinds of columns that may be taken; empty: all
	prepared bool     // literals become parameters
	byKind   map[string][]string
	fresh    int
}

func newMaker(seed uint64) *maker {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 2)), byKind: map[string][]string{}}
	for _, f := range forms {
		m.byKind[f[:1]] = append(m.byKind[f[:1]], f[2:])
		if f[0] == 'a' {
			for _, k := range []string{"s", "x", "d"} {
				m.byKind[k] = append(m.byKind[k], f[2:])
			}
		}
	}
	m.byKind["a"] = nil
	for _, k := range []string{"n", "x", "s", "b", "d", "t", "j", "c"} {
		m.byKind["a"] = append(m.byKind["a"], m.byKind[k]...)
	}
	m.byKind["x"] = append(m.byKind["x"], m.byKind["n"]...)
	m.byKind["i"] = m.byKind["n"]
	return m
}

func (m *maker) pick(list ...string) string { return list[m.IntN(len(list))] }

func (m *maker) one(percent int) bool { return m.IntN(100) < percent }

// any is a kind of values.
func (m *maker) any() string { return m.pick("n", "x", "x", "s", "s", "s", "b", "d", "d", "t", "j") }

func (m *maker) literal(k string) *node {
	switch {
	case k == "a":
		k = m.any()
	case k == "x" && m.one(40):
		k = m.pick("n", "i")
	case k == "n" && m.one(30):
		k = "i"
	}
	v := m.pick(literals[k]...)
	if k != "p" && k != "c" && m.one(5) {
		v = "NULL"
	}
	n := &node{parts: []any{v}, leaf: leafName(v), expr: true}
	if k == "p" || k == "r" || k == "f" || k == "l" || k == "v" {
		n.expr = false
	}
	if m.prepared && n.expr && m.one(70) {
		p := m.param(k)
		n.parts, n.leaf, n.param = []any{"?"}, "?"+p.show[:strings.IndexByte(p.show, ' ')], p
	}
	return n
}

func leafName(v string) string {
	l := strings.ToLower(v)
	switch {
	case v == "NULL":
		return "NULL"
	case strings.HasPrefix(l, "date'"):
		return "date"
	case strings.HasPrefix(l, "time'"):
		return "time"
	case strings.HasPrefix(l, "timestamp'"):
		return "datetime"
	case strings.HasPrefix(l, "x'"), strings.HasPrefix(l, "0x"), strings.HasPrefix(l, "b'"), strings.HasPrefix(l, "_binary"):
		return "bin"
	case strings.HasPrefix(l, "cast"), strings.HasPrefix(l, "json"):
		return "json"
	case strings.ContainsAny(l[:1], "0123456789-"):
		if strings.Contains(l, "e") {
			return "dbl"
		}
		if strings.Contains(l, ".") {
			return "dec"
		}
		return "int"
	}
	return "str"
}

func (m *maker) column(k string) *node {
	if len(m.scope) == 0 {
		return m.literal(k)
	}
	if k == "a" {
		k = m.any()
	}
	if k == "c" || k == "i" && m.one(50) {
		k = "n"
	}
	var fit []string
	for _, c := range mysqlColumns {
		if c.kind == k || k == "x" && (c.kind == "n" || c.kind == "i") || k == "b" && c.kind == "s" && c.name == "vl" {
			fit = append(fit, c.name)
		}
	}
	c := m.pick(fit...)
	return &node{parts: []any{m.pick(m.scope...) + c}, leaf: c, expr: true}
}

// expr is an expression of a kind, depth forms deep at most.
func (m *maker) expr(k string, depth int) *node {
	if strings.Contains("prflv", k) {
		return m.literal(k)
	}
	if k == "N" || k == "S" || k == "D" {
		k = map[string]string{"N": "x", "S": "s", "D": "d"}[k]
		if len(m.scope) > 0 && m.one(60) {
			return m.column(k)
		}
		prepared := m.prepared
		m.prepared = false
		n := m.literal(k)
		for k == "d" && n.leaf != "date" && n.leaf != "datetime" && n.leaf != "NULL" {
			n = m.literal(k)
		}
		m.prepared = prepared
		return n
	}
	if m.one(8) && k != "c" {
		k = "a"
	}
	if k == "a" && m.one(90) {
		k = m.any()
	}
	if depth <= 0 || m.one(10) {
		if len(m.scope) > 0 && m.one(60) && k != "c" {
			return m.column(k)
		}
		return m.literal(k)
	}
	list := m.byKind[k]
	f := list[m.IntN(len(list))]
	for strings.Contains(f, "js->") && (len(m.scope) != 1 || m.scope[0] != "") {
		f = list[m.IntN(len(list))]
	}
	return m.form(f, depth-1)
}

// form fills a form.
func (m *maker) form(f string, depth int) *node {
	n := &node{expr: true}
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		switch {
		case f[i] == '{' && strings.IndexByte(f[i:], '}') > 0:
			end := i + strings.IndexByte(f[i:], '}')
			b.WriteString(m.pick(strings.Split(f[i+1:end], "|")...))
			i = end
		case f[i] == '@' && i+1 < len(f):
			if b.Len() > 0 {
				n.parts = append(n.parts, b.String())
				b.Reset()
			}
			n.parts = append(n.parts, m.expr(f[i+1:i+2], depth))
			i++
		default:
			b.WriteByte(f[i])
		}
	}
	if b.Len() > 0 {
		n.parts = append(n.parts, b.String())
	}
	return n
}

// deep is how deep the next expression goes; differences of single functions show best in small ones.
func (m *maker) deep() int { return []int{1, 1, 1, 2, 2, 3}[m.IntN(6)] }

func (m *maker) param(k string) *param {
	if k == "a" || k == "c" {
		k = m.any()
	}
	if m.one(8) {
		return &param{kind: 6, null: true, show: "null NULL"}
	}
	if m.one(15) {
		k = m.any()
	}
	str := func(kind byte, name, v string) *param {
		return &param{kind: kind, data: append(lenencText(len(v)), v...), show: fmt.Sprintf("%s %q", name, v)}
	}
	switch k {
	case "n", "i":
		v := m.pick("0", "1", "-1", "2", "10", "127", "255", "-128", "2147483647", "-9223372036854775808", "9223372036854775807", "20200229", "101112")
		var x int64
		_, _ = fmt.Sscan(v, &x)
		if k == "i" {
			x = int64(m.IntN(12) - 3)
		}
		if x >= 0 && m.one(20) {
			u := uint64(x)
			if m.one(30) {
				u = math.MaxUint64
			}
			return &param{kind: 8, unsigned: true, data: binary.LittleEndian.AppendUint64(nil, u), show: fmt.Sprint("ubigint ", u)}
		}
		if x == int64(int32(x)) && m.one(40) {
			return &param{kind: 3, data: binary.LittleEndian.AppendUint32(nil, uint32(x)), show: fmt.Sprint("int ", x)}
		}
		return &param{kind: 8, data: binary.LittleEndian.AppendUint64(nil, uint64(x)), show: fmt.Sprint("bigint ", x)}
	case "x":
		if m.one(50) {
			return str(246, "decimal", m.pick("1.5", "-0.5", "2.50", "0", "12345678901234567890.123456789", "20200229.5", "1e3"))
		}
		v := []float64{0, 1.5, -2.5, 1e20, 1e-7, 0.1, 9.2233720368547758e18, 123456789.125, 3}[m.IntN(9)]
		if m.one(20) {
			return &param{kind: 4, data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))), show: fmt.Sprint("float ", float32(v))}
		}
		return &param{kind: 5, data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), show: fmt.Sprint("double ", v)}
	case "b":
		return str(252, "blob", m.pick("", "a", "\xff", "1", "\x00", "AB"))
	case "d":
		if m.one(30) {
			return str(253, "str", strings.Trim(m.pick("2020-02-29", "2020-02-29 10:11:12.5", "20200229", "0000-00-00", "x"), "'"))
		}
		y := []int{2020, 1999, 9999, 1}[m.IntN(4)]
		d := []byte{byte(y), byte(y >> 8), byte(1 + m.IntN(12)), byte(1 + m.IntN(28))}
		name, kind := "date", byte(10)
		if m.one(60) {
			d = append(d, byte(m.IntN(24)), byte(m.IntN(60)), byte(m.IntN(60)))
			name, kind = "datetime", 12
			if m.one(50) {
				d = binary.LittleEndian.AppendUint32(d, uint32(m.IntN(1000000)))
			}
		}
		return &param{kind: kind, data: append([]byte{byte(len(d))}, d...), show: fmt.Sprintf("%s %v", name, d)}
	case "t":
		d := []byte{byte(m.IntN(2)), byte(m.IntN(3)), 0, 0, 0, byte(m.IntN(24)), byte(m.IntN(60)), byte(m.IntN(60))}
		if m.one(50) {
			d = binary.LittleEndian.AppendUint32(d, uint32(m.IntN(1000000)))
		}
		return &param{kind: 11, data: append([]byte{byte(len(d))}, d...), show: fmt.Sprintf("time %v", d)}
	case "j":
		return str(253, "str", m.pick(`[1, 2]`, `{"a": 1}`, `1`, `"a"`, `x`))
	}
	return str(253, "str", m.pick("", "a", "A", "á", "abc", "1", "1.5", "-1", "1e2", "12abc", " 7", "2020-02-29", "10:11:12", "b", "a,b"))
}

func lenencText(n int) []byte {
	if n < 251 {
		return []byte{byte(n)}
	}
	return []byte{0xfc, byte(n), byte(n >> 8)}
}

// create makes a table with columns of all types.
func (m *maker) create(name string, indexes bool) string {
	parts := []string{"id INT NOT NULL PRIMARY KEY"}
	for _, c := range mysqlColumns {
		parts = append(parts, c.name+" "+c.decl)
	}
	if indexes {
		for _, i := range mysqlIndexes {
			if m.one(60) {
				parts = append(parts, i)
			}
		}
	}
	return "CREATE TABLE " + name + " (" + strings.Join(parts, ", ") + ")"
}

// row makes the values of a row; they are stored with sql_mode ” and INSERT IGNORE, so that
// all borders of conversions are in the tables.
func (m *maker) row(id int) string {
	list := []string{fmt.Sprint(id)}
	for _, c := range mysqlColumns {
		k := c.kind
		if k == "b" && m.one(50) {
			k = "i"
		}
		if c.name == "bn" || c.name == "vb" || c.name == "bl" {
			k = m.pick("s", "b")
		}
		if k == "n" && m.one(50) {
			k = "i"
		}
		if k == "x" && m.one(30) {
			k = m.pick("i", "n")
		}
		v := m.pick(literals[k]...)
		if k == "j" {
			for v == "'[1'" || v == "'x'" {
				v = m.pick(literals[k]...)
			}
		}
		if c.name == "y" { // not 0, see the forms
			v = m.pick("1901", "1999", "2000", "2020", "2155", "5", "70")
		}
		if c.name == "en" && m.one(80) {
			v = m.pick("'a'", "'B'", "'x y'", "'10'", "'é'", "''", "1", "5", "0")
		}
		if c.name == "st" && m.one(80) {
			v = m.pick("'a'", "'b,a'", "'10,c'", "''", "3", "15")
		}
		if m.one(12) && !strings.Contains(c.decl, "NOT NULL") {
			v = "NULL"
		}
		list = append(list, v)
	}
	return "(" + strings.Join(list, ",") + ")"
}

func (m *maker) rows(from, to int) string {
	var list []string
	for id := from; id <= to; id++ {
		list = append(list, m.row(id))
	}
	return strings.Join(list, ",")
}
