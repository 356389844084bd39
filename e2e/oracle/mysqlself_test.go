//go:build oracles

package oracle

import (
	"fmt"
	"strings"
)

// Checks that need no other database: a condition, its negation and its being NULL part the
// rows of a table; a condition finds as many rows as it is true for; and as many without
// indexes, in t0.

// selfCheck makes a condition to be checked.
func (m *maker) selfCheck() *sample {
	m.scope = []string{""}
	return &sample{kind: "self", root: m.condition(m.deep() - 1)}
}

// self says how ours disagrees with itself about a condition; errors of values, which plans
// may meet or not, are none.
func (p *pair) self(x *sample) (kind, detail string, err error) {
	c := x.root.String()
	if strings.Contains(c, "dmn IS") || strings.Contains(c, "ISNULL(dmn") || strings.Contains(c, "RAND(") {
		return "", "", nil // the zero date is NULL in WHERE alone
	}
	var n [6]int
	for i, s := range []string{
		"SELECT COUNT(*) FROM t1", "SELECT COUNT(*) FROM t1 WHERE " + c, "SELECT COUNT(*) FROM t1 WHERE NOT (" + c + ")",
		"SELECT COUNT(*) FROM t1 WHERE (" + c + ") IS NULL", "SELECT COALESCE(SUM((" + c + ") IS TRUE), 0) FROM t1",
		"SELECT COUNT(*) FROM t0 WHERE " + c,
	} {
		a, err := p.ours.query(s)
		if err != nil {
			return "", "", err
		}
		if a.number != 0 {
			return "", "", nil
		}
		if _, err := fmt.Sscan(string(a.rows[0][0].text), &n[i]); err != nil {
			return "", "", err
		}
	}
	switch {
	case n[1]+n[2]+n[3] != n[0]:
		return "self partition", fmt.Sprint(n), nil
	case n[1] != n[4]:
		return "self sum", fmt.Sprint(n), nil
	case n[1] != n[5]:
		return "self index", fmt.Sprint(n), nil
	}
	return "", "", nil
}
