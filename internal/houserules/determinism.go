package houserules

import (
	"go/ast"
	"go/token"
	"strings"
)

// clockCalls are the functions of package time that read the clock or wait.
var clockCalls = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true,
	"AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true,
}

// determinism: the engine starts no goroutine, reads no clock, draws no random
// number and waits on nothing but by way of its env.Env. Package env is the border
// to the runtime; packages for tests are free.
func determinism(s *source) []string {
	dir := s.dir()
	if s.test || s.program() || !within(dir, "engine") || within(dir, "engine/env") || isTestOnly(dir) {
		return nil
	}
	var findings []string
	for name, spec := range s.imports() {
		switch name {
		case "math/rand", "math/rand/v2", "crypto/rand":
			findings = append(findings, s.at(spec, "random numbers come from env.Env"))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			findings = append(findings, s.at(n, "tasks are started by env.Env"))
		case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			findings = append(findings, s.at(n, "tasks wait by env.Parker, not on channels"))
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				findings = append(findings, s.at(n, "tasks wait by env.Parker, not on channels"))
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			switch {
			case !ok:
			case x.Name == "time" && clockCalls[n.Sel.Name]:
				findings = append(findings, s.at(n, "time comes from env.Env"))
			case x.Name == "sync" && (n.Sel.Name == "Cond" || n.Sel.Name == "NewCond" || n.Sel.Name == "WaitGroup"):
				findings = append(findings, s.at(n, "tasks wait by env.Parker, not by sync.%s", n.Sel.Name))
			}
		}
		return true
	})
	return findings
}

// within reports whether dir is parent or lies in it.
func within(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
}
