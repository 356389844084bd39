package session

import (
	"context"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// runKeyCache is CACHE INDEX and LOAD INDEX INTO CACHE, which InnoDB's tables answer with a note: their indexes have no cache of their own.
// Error: 1284, another cache than the default is named.
func (s *Session) runKeyCache(ctx context.Context, st *ast.KeyCache) (Outcome, error) {
	op := "assign_to_keycache"
	if st.Load {
		op = "preload_keys"
	}
	if err := s.implicitCommit(ctx); err != nil {
		return Outcome{}, err
	}
	if err := s.pointDefinitions(); err != nil {
		return Outcome{}, err
	}
	if err := s.connect(); err != nil {
		return Outcome{}, err
	}
	var rows [][]any
	for i := range st.Tables {
		schema, name, err := s.tableName(st.Tables[i].Table)
		if err != nil {
			return Outcome{}, err
		}
		if err := s.mayCacheKeys(schema, name); err != nil {
			return Outcome{}, err
		}
		if !st.Load && !strings.EqualFold(st.Cache, "default") {
			return Outcome{}, sqlerr.New(sqlerr.UnknownKeyCache, st.Cache)
		}
		full := schema + "." + name
		wrong, err := s.noBaseTable(schema, name)
		if err != nil {
			return Outcome{}, err
		}
		if wrong != nil {
			rows = append(rows, []any{full, op, "Error", errorText(wrong)}, []any{full, op, "status", "Operation failed"})
			continue
		}
		rows = append(rows, []any{full, op, "note", "The storage engine for the table doesn't support " + op})
	}
	return Outcome{}, s.give([]column{{"Table", shortText}, {"Op", shortText}, {"Msg_type", shortText}, {"Msg_text", longText}}, rows...)
}

// mayCacheKeys asks for any privilege on a table, as MySQL does. Error: 1142.
func (s *Session) mayCacheKeys(schema, name string) error {
	if s.isTemporary(schema, name) {
		return nil
	}
	a := s.privileges()
	if a.MayDescribe(schema, name) == nil {
		return nil
	}
	return a.Table(schema, name, priv.Index, "INDEX")
}

// noBaseTable tells why a name stands for no table: 1146, 1347. nil: it does.
func (s *Session) noBaseTable(schema, name string) (wrong, err error) {
	if s.isTemporary(schema, name) {
		return nil, nil
	}
	h, err := s.eng.Catalog.OpenTable(nil, schema, name)
	if err != nil {
		if err = missingTable(err, schema, name); errorNumber(err) == sqlerr.NoSuchTable {
			return err, nil
		}
		return nil, err
	}
	defer h.Release()
	if _, view := catalog.ViewOf(h.Table().Schema.Table); view {
		return sqlerr.New(sqlerr.WrongObject, schema, name, "BASE TABLE"), nil
	}
	return nil, nil
}
