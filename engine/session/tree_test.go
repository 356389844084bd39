package session_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// TestTreesAreShared: sessions prepare and plan from one tree at the same time, so nothing
// may write to it. Every statement of the scripts leaves its tree as it was parsed.
func TestTreesAreShared(t *testing.T) {
	compared := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		sim := simenv.New(1)
		sim.Run(func() {
			r := sessiontest.Start(t, sessiontest.Options{Env: sim})
			defer r.Close()
			r.CreateSchema("test")
			s := r.Open(session.ConnectionInfo{Schema: "test", MultiStatements: true})
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "sql" && !d.HasArg("s") {
					for _, text := range strings.Split(d.Input, ";\n") {
						used, err := session.TreeAfterPlanning(s, text)
						if used != nil {
							fresh, again := ast.Parse(text, ast.ModeAllowInvalidDates)
							if err != nil || again != nil || !sameTree(reflect.ValueOf(used), reflect.ValueOf(fresh[0])) {
								t.Errorf("%s: planning writes to the tree of %s (%v)", d.Pos, text, err)
							}
							compared++
						}
						r.Formatted(s, text, sessiontest.Format{})
					}
				}
				return d.Expected
			})
		})
	})
	if compared < 400 {
		t.Errorf("only %d trees compared", compared)
	}
}

// sameTree compares two trees by what they hold.
func sameTree(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameTree(a.Elem(), b.Elem())
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[types.Value]() {
			return sameValue(a.Interface().(types.Value), b.Interface().(types.Value))
		}
		for i := range a.NumField() {
			if !sameTree(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameTree(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

func sameValue(a, b types.Value) bool {
	if a.Class() == types.ClassBytes && b.Class() == types.ClassBytes {
		return string(a.Bytes()) == string(b.Bytes())
	}
	return a == b
}
