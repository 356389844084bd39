package session

import (
	"reflect"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// inspect calls fn for a node and the nodes below it until it returns false for one,
// whose own are left out. It serves the compilation of statements, not their running.
func inspect(n ast.Node, fn func(ast.Node) bool) {
	walkValue(reflect.ValueOf(n), fn, 0)
}

var nodeType = reflect.TypeFor[ast.Node]()

// maxWalk bounds the recursion; trees are not deeper, see ast.MaxDepth.
const maxWalk = 8 * ast.MaxDepth

func walkValue(v reflect.Value, fn func(ast.Node) bool, depth int) {
	if depth > maxWalk {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			walkValue(v.Elem(), fn, depth+1)
		}
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return
		}
		if v.Type().Implements(nodeType) && v.CanInterface() && !fn(v.Interface().(ast.Node)) {
			return
		}
		walkValue(v.Elem(), fn, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() && mayHoldNodes(f.Kind()) {
				walkValue(f, fn, depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if e := v.Index(i); mayHoldNodes(e.Kind()) {
				walkValue(e, fn, depth+1)
			}
		}
	}
}

func mayHoldNodes(k reflect.Kind) bool {
	return k == reflect.Interface || k == reflect.Pointer || k == reflect.Struct || k == reflect.Slice
}
