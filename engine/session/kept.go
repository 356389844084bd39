package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// keptClauses are the warnings about words of a statement that do nothing. Where InnoDB's tables are used, LOW_PRIORITY,
// HIGH_PRIORITY and QUICK do nothing in MySQL either, and it does not say so.
func keptClauses(st ast.Statement) []*sqlerr.Error {
	var list []*sqlerr.Error
	var hints []ast.Hint
	switch st := st.(type) {
	case *ast.Insert:
		hints = st.Hints
		if verb := "INSERT"; st.Delayed {
			if st.Replace {
				verb = "REPLACE"
			}
			list = append(list, sqlerr.New(sqlerr.WarnLegacySyntaxConverted, verb+" DELAYED", verb))
		}
	case *ast.Update:
		hints = st.Hints
	case *ast.Delete:
		hints = st.Hints
	case ast.Query:
		q := ast.FirstSelect(st)
		if q == nil {
			break
		}
		hints = q.Hints
		if q.Options&ast.SelectNoCache != 0 {
			list = append(list, sqlerr.New(sqlerr.WarnDeprecatedSyntaxNoReplacement, "SQL_NO_CACHE"))
		}
		for _, o := range [...]struct {
			option ast.SelectOptions
			name   string
		}{{ast.SelectBigResult, "SQL_BIG_RESULT"}, {ast.SelectSmallResult, "SQL_SMALL_RESULT"}, {ast.SelectBufferResult, "SQL_BUFFER_RESULT"}} {
			if q.Options&o.option != 0 {
				list = append(list, catalog.KeptOnly(o.name))
			}
		}
	}
	_, query := st.(ast.Query)
	own, limited, unread := len(hints), false, false
	for i, h := range append(slices.Clip(hints), st.HintsElsewhere()...) {
		limits := h.Name == maxExecutionHint
		switch {
		case unread && i < own: // behind an error nothing is read
		case h.Bad, limits && !isNumber(h.Args):
			near := strings.ToValidUTF8(h.Args[:min(len(h.Args), 80)], "?")
			list = append(list, sqlerr.New(sqlerr.ParseError, "Optimizer hint syntax error", near, 1))
			unread = true
		case !limits:
			list = append(list, catalog.KeptOnly("Optimizer hint "+h.Name))
		case i >= own || !query:
			list = append(list, sqlerr.New(sqlerr.WarnUnsupportedMaxExecutionTime))
		case limited:
			list = append(list, sqlerr.New(sqlerr.WarnConflictingHint, h.Name+"("+h.Args+")"))
		default:
			limited = true
		}
	}
	return list
}

func (s *Session) warnAll(list []*sqlerr.Error) {
	for _, e := range list {
		s.diag.warn(e)
	}
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}
