package exec

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs plans on small tables:
//
//	tables          CREATE TABLE and INSERT statements, one a line
//	sub name=n      a subquery for later plans
//	plan [memory=n] [depth=n] [analyze] [sorted]
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r := newRig(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return r.command(d)
		})
	})
}

func (r *rig) command(d *datadriven.TestData) string {
	switch d.Cmd {
	case "tables":
		for _, sql := range strings.Split(d.Input, "\n") {
			f := r.insert
			if strings.HasPrefix(strings.ToLower(sql), "create") {
				f = r.create
			}
			if err := f(sql); err != nil {
				return errorText(err)
			}
		}
		return "ok"
	case "sub":
		var name string
		for _, a := range d.CmdArgs {
			name = a.Vals[0]
		}
		r.subs[name] = d.Input
		return "ok"
	case "plan":
		r.x.MemoryLimit, r.x.MaxRecursion, r.opt, r.x.SemiConsistent = 0, 0, Options{}, false
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "memory":
				n, _ := strconv.Atoi(a.Vals[0])
				r.x.MemoryLimit = int64(n)
			case "depth":
				n, _ := strconv.Atoi(a.Vals[0])
				r.x.MaxRecursion = uint64(n)
			case "analyze":
				r.opt.Analyze = true
			case "semiconsistent":
				r.x.SemiConsistent = true
			}
		}
		r.store.locked, r.x.FoundRows = 0, 0
		out, err := r.run(d.Input)
		if err != nil {
			out += errorText(err)
		}
		if r.store.locked > 0 {
			out += fmt.Sprintf("locked: %d\n", r.store.locked/2)
		}
		if r.x.FoundRows > 0 {
			out += fmt.Sprintf("found: %d\n", r.x.FoundRows)
		}
		if out == "" {
			out = "(no rows)\n"
		}
		return out
	}
	return "unknown command " + d.Cmd
}
