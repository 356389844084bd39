//go:build oracles

package oracle

import "strings"

// node is a part of a generated statement: texts and nodes in turn. Statements that differ
// are made smaller by leaving nodes out or by putting others in their places.
type node struct {
	parts []any  // string or *node
	leaf  string // what a literal or a column is in the name of a class
	drop  bool   // the statement stands without it
	expr  bool   // it may be replaced by an expression within it
	param *param // a "?"
}

func text2(parts ...any) *node { return &node{parts: parts} }

func (n *node) write(b *strings.Builder, classes bool) {
	if classes && n.leaf != "" {
		b.WriteString(n.leaf)
		return
	}
	for _, p := range n.parts {
		switch p := p.(type) {
		case string:
			b.WriteString(p)
		case *node:
			p.write(b, classes)
		}
	}
}

func (n *node) String() string {
	var b strings.Builder
	n.write(&b, false)
	return b.String()
}

// class is the statement without its values.
func (n *node) class() string {
	var b strings.Builder
	n.write(&b, true)
	return b.String()
}

// exprs lists the expressions right below n.
func (n *node) exprs() (list []*node) {
	for _, p := range n.parts {
		if p, ok := p.(*node); ok {
			if p.expr {
				list = append(list, p)
			} else {
				list = append(list, p.exprs()...)
			}
		}
	}
	return list
}

func (n *node) walk(f func(*node)) {
	f(n)
	for _, p := range n.parts {
		if p, ok := p.(*node); ok {
			p.walk(f)
		}
	}
}

// reduce makes a statement smaller for as long as it differs.
func reduce(root *node, differs func() bool, budget int) {
	for again := true; again && budget > 0; {
		again = false
		var all []*node
		root.walk(func(n *node) { all = append(all, n) })
		for _, n := range all {
			for _, c := range smaller(n) {
				if budget == 0 {
					return
				}
				budget--
				was := *n
				*n = c
				if differs() {
					again = true
					break
				}
				*n = was
			}
			if again {
				break
			}
		}
	}
}

var simple = []node{
	{parts: []any{"NULL"}, leaf: "NULL", expr: true},
	{parts: []any{"1"}, leaf: "int", expr: true},
	{parts: []any{"'a'"}, leaf: "str", expr: true},
}

func smaller(n *node) (list []node) {
	if n.drop && len(n.parts) > 0 {
		list = append(list, node{})
	}
	if !n.expr || n.leaf != "" {
		return list
	}
	for _, e := range n.exprs() {
		list = append(list, *e)
	}
	return append(list, simple...)
}
