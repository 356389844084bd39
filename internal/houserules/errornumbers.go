package houserules

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// errorNumbers: MySQL's error numbers are written in engine/sqlerr and nowhere else that ships, so that each has one
// name and one SQLSTATE. A literal is neither given to what makes an error, nor compared with the number of one, nor
// named anew. The texts of the table get the arguments that they take, which the compiler does not see. Tests say
// which numbers they want, and other modules and the client, which know of no engine, have their own.
func errorNumbers(s *source) []string {
	dir := s.dir()
	top, _, _ := strings.Cut(dir, "/")
	if s.test || dir == "engine/sqlerr" || top != "engine" && top != "server" && top != "replication" && top != "cmd" {
		return nil
	}
	var findings []string
	refuse := func(n ast.Node) {
		findings = append(findings, s.at(n, "error numbers are those of engine/sqlerr"))
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			pkg, name := called(n)
			if pkg != "sqlerr" || len(n.Args) == 0 {
				return true
			}
			if name == "New" {
				findings = append(findings, arguments(s, n)...)
			}
			if name == "New" || name == "Newf" || name == "Code" {
				if isErrorNumber(n.Args[0]) {
					refuse(n)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && namesErrorNumber(key) && isErrorNumber(n.Value) {
				refuse(n)
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				if namesErrorNumber(n.X) && isErrorNumber(n.Y) || namesErrorNumber(n.Y) && isErrorNumber(n.X) {
					refuse(n)
				}
			}
		case *ast.SwitchStmt:
			if n.Tag == nil || !namesErrorNumber(n.Tag) {
				return true
			}
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					if isErrorNumber(e) {
						refuse(e)
					}
				}
			}
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && n.Tok == token.CONST {
					for _, name := range v.Names {
						if strings.HasPrefix(strings.ToLower(name.Name), "errno") {
							refuse(name)
						}
					}
				}
			}
		}
		return true
	})
	return findings
}

// isErrorNumber reports whether an expression is a literal that may be a number of MySQL's: they have four digits
// or more.
func isErrorNumber(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.INT && len(l.Value) >= 4
}

// namesErrorNumber reports whether an expression looks like the number of an error: its field, a variable that is
// called so, or what a function of that name finds.
func namesErrorNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name == "Number" || e.Sel.Name == "Code"
	case *ast.Ident:
		return e.Name == "Number" || e.Name == "Code" || e.Name == "number"
	case *ast.CallExpr:
		_, name := called(e)
		return name == "errorNumber"
	}
	return false
}

// templates are the texts of the numbers, by the names of the constants without regard to case.
var templates = func() map[string]string {
	m := map[string]string{}
	for c := range sqlerr.All() {
		name := strings.ReplaceAll(strings.TrimPrefix(c.Symbol(), "ER_"), "_", "")
		m[strings.ToLower(name)] = c.Text()
	}
	return m
}()

// arguments compares those of sqlerr.New with the verbs of the number's text.
func arguments(s *source, call *ast.CallExpr) []string {
	code, ok := call.Args[0].(*ast.SelectorExpr)
	if !ok || call.Ellipsis.IsValid() {
		return nil
	}
	text, known := templates[strings.ToLower(code.Sel.Name)]
	if want := strings.Count(text, "%"); known && len(call.Args)-1 != want {
		return []string{s.at(call, "the text of sqlerr.%s takes %d arguments: %s", code.Sel.Name, want, text)}
	}
	return nil
}
