package expr

import "testing"

// TestGeneratedFunctions checks which functions generated columns may use, as in MySQL:
// those that depend on their arguments alone.
func TestGeneratedFunctions(t *testing.T) {
	r := newRig(t)
	r.table("d DATE, dt DATETIME, t TIME, ts TIMESTAMP, s VARCHAR(20)", nil)
	for text, want := range map[string]Volatility{
		"CONVERT_TZ(dt, '+00:00', '+01:00')": Pure,
		"STR_TO_DATE(s, '%Y')":               Pure,
		"DATE_FORMAT(d, '%a')":               Pure,
		"DAYNAME(d)":                         Pure,
		"MONTHNAME(d)":                       Pure,
		"TIMESTAMP(d)":                       Pure,
		"TIMESTAMP(d, t)":                    Pure,
		"TIMEDIFF(t, t)":                     Pure,
		"ADDTIME(t, t)":                      Pure,
		"SUBTIME(dt, t)":                     Pure,
		"EXTRACT(DAY FROM dt)":               Pure,
		"WEEK(d, 1)":                         Pure,
		"TIMESTAMPDIFF(DAY, d, dt)":          Pure,
		"WEEK(d)":                            Stable, // default_week_format
		"EXTRACT(WEEK FROM d)":               Stable,
		"TIMEDIFF(ts, dt)":                   Stable, // the session's zone
		"ADDTIME(ts, t)":                     Stable,
		"CONVERT_TZ(ts, 'SYSTEM', '+01:00')": Stable,
		"EXTRACT(DAY FROM ts)":               Stable,
		"FROM_UNIXTIME(1)":                   Stable,
		"TIMESTAMP(t)":                       Stable, // today
		"CAST(t AS YEAR)":                    Stable,
	} {
		n, err := r.bind(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := besidesColumns(n); got != want {
			t.Errorf("%s: volatility %d, want %d", text, got, want)
		}
	}
}

// besidesColumns is the volatility of all nodes but columns.
func besidesColumns(n Node) Volatility {
	worst := Pure
	if _, column := n.(*Column); column {
		return worst
	}
	if v, ok := n.(volatile); ok {
		worst = v.Volatility()
	}
	for _, c := range n.Children() {
		worst = max(worst, besidesColumns(c))
	}
	return worst
}

// TestFoldedOffsets: text with an offset from UTC means a time of the session's clock,
// which is not known where constants are folded.
func TestFoldedOffsets(t *testing.T) {
	r := newRig(t)
	n, err := r.bind("CAST('2024-01-01 00:00:00+02:00' AS DATETIME)")
	if err != nil {
		t.Fatal(err)
	}
	if _, folded := n.(*Const); folded {
		t.Errorf("%s was folded", Text(n))
	}
}
