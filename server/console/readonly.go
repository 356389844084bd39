package console

import (
	"cmp"
	"regexp"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// refusable are the words without which a text has nothing that onlyReads refuses.
var refusable = regexp.MustCompile(`(?i)set|kill|prepare|instance|flush|analyze|optimize|repair`)

// onlyReads refuses a text of a run that may not write for what its session would let pass, as
// that of an operator at the port for reads: what changes settings for others, and what ends
// others.
func onlyReads(text string) (err error) {
	eachStatement(text, func(st ast.Statement) {
		what := refused(st)
		if p, ok := st.(*ast.Prepare); ok && what == "" {
			// EXECUTE runs what is in it; a PREPARE in a PREPARE is none.
			eachStatement(p.SQL, func(inner ast.Statement) { what = cmp.Or(what, refused(inner)) })
		}
		if what != "" && err == nil {
			err = sqlerr.Newf(sqlerr.OptionPreventsStatement, "a run that may not write cannot execute %s", what)
		}
	})
	return err
}

// eachStatement calls fn with the statements of a text. sql_mode decides where one ends and which
// make sense, and may change on the way: they are read in all ways.
func eachStatement(text string, fn func(ast.Statement)) {
	if !refusable.MatchString(text) {
		return
	}
	const ways = ast.ModeANSIQuotes | ast.ModeNoBackslashEscapes | ast.ModeIgnoreSpace
	for mode := range ways + 1 {
		if mode&^ways == 0 {
			statements, _ := ast.Parse(text, mode) // those before an error are run
			for _, st := range statements {
				fn(st)
			}
		}
	}
}

// refused is what a statement is called that a run that may not write does not execute, by itself.
func refused(st ast.Statement) string {
	scope := ast.ScopeNone
	switch st := st.(type) {
	case *ast.Kill:
		return "KILL"
	case *ast.Flush:
		return "FLUSH"
	case *ast.Maintain:
		if st.Kind != ast.CheckTable && st.Kind != ast.Checksum {
			return "ANALYZE, OPTIMIZE and REPAIR TABLE"
		}
	case *ast.ReloadTLS:
		return "ALTER INSTANCE"
	case *ast.Prepare:
		if st.Var != "" {
			return "PREPARE of a variable's text" // which is not known before
		}
	case *ast.SetTransaction:
		scope = st.Scope
	case *ast.Set:
		for _, item := range st.Items {
			if item.Kind == ast.SetSystem {
				scope = max(scope, item.Scope)
			}
		}
	}
	switch scope {
	case ast.ScopeGlobal:
		return "SET GLOBAL"
	case ast.ScopePersist, ast.ScopePersistOnly:
		return "SET PERSIST"
	}
	return ""
}
