package session

import (
	"reflect"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// inspect calls fn for a node and the nodes below it until it returns false for one,
// whose own are left out. It serves the compilation of statements, not their running.
func inspect(n ast.Node, fn func(ast.Node) bool) {
	walk(reflect.ValueOf(n), func(v reflect.Value) bool {
		return v.Kind() != reflect.Pointer || !v.Type().Implements(nodeType) || !v.CanInterface() || fn(v.Interface().(ast.Node))
	}, 0)
}

var nodeType = reflect.TypeFor[ast.Node]()

// each calls fn for all values of a type, a struct, in a tree.
func each[T any](n ast.Node, fn func(T)) {
	walk(reflect.ValueOf(n), func(v reflect.Value) bool {
		if v.Kind() == reflect.Struct && v.CanInterface() {
			if x, ok := v.Interface().(T); ok {
				fn(x)
				return false
			}
		}
		return true
	}, 0)
}

// maxWalk bounds the recursion; trees are not deeper, see ast.MaxDepth.
const maxWalk = 8 * ast.MaxDepth

// walk calls fn for the pointers to structs and the structs in a value until it returns false for one, whose own are left out.
func walk(v reflect.Value, fn func(reflect.Value) bool, depth int) {
	if depth > maxWalk {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), fn, depth+1)
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct && fn(v) {
			walk(v.Elem(), fn, depth+1)
		}
	case reflect.Struct:
		if !fn(v) {
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() && mayHoldNodes(f.Kind()) {
				walk(f, fn, depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if e := v.Index(i); mayHoldNodes(e.Kind()) {
				walk(e, fn, depth+1)
			}
		}
	}
}

func mayHoldNodes(k reflect.Kind) bool {
	return k == reflect.Interface || k == reflect.Pointer || k == reflect.Struct || k == reflect.Slice
}
