package expr

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/types"
)

// TestScripts runs testdata: blocks of expressions, one a line, each with its value,
// type and warnings. Every expression runs by row and by vector, which must agree.
//
//	eval             expressions for each row of the table
//	table columns    sets columns and, a line each, rows
//	mode             words: strict-dml, no-unsigned-subtraction, no-error-for-division, none
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Dir(path) != "testdata" {
			return
		}
		r := newRig(t)
		r.x.Session = testSession{r}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			r.t = t
			switch d.Cmd {
			case "table":
				columns, rows, _ := strings.Cut(d.Input, "\n")
				var list [][]string
				for _, line := range strings.Split(rows, "\n") {
					if line != "" {
						list = append(list, strings.Split(line, "|"))
					}
				}
				r.table(columns, list)
				return ""
			case "mode":
				r.mode(d.Input)
				return ""
			case "aggregate":
				return r.aggregates(d.Input)
			}
			var out strings.Builder
			for _, line := range strings.Split(d.Input, "\n") {
				out.WriteString(line + "  =>  " + r.eval(line) + "\n")
				r.x.ResetStatement()
			}
			return out.String()
		})
	})
}

func (r *rig) mode(words string) {
	r.x.DataChange = false
	r.Opt.SQLMode, r.Opt.Mode = ModeErrorForDivisionByZero, types.ModeDefault
	for _, w := range strings.Fields(words) {
		switch w {
		case "strict-dml":
			r.x.DataChange = true
		case "no-unsigned-subtraction":
			r.Opt.SQLMode |= ModeNoUnsignedSubtraction
		case "no-error-for-division":
			r.Opt.SQLMode &^= ModeErrorForDivisionByZero
		}
	}
	r.x.SQLMode, r.x.Mode = r.Opt.SQLMode, r.Opt.Mode
}
