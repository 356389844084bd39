package session

import (
	"errors"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
)

// virtualSource is what a name stands for that the server makes up, if it does. Error: 1109, the schema has no such table.
func (s *Session) virtualSource(schema, name string) (src plan.Source, found bool, err error) {
	if known, ok := virtualSchema(schema); ok {
		if v := virtualTable(known, name); v != nil {
			return plan.Source{Virtual: v}, true, nil
		}
		if view := sysViews[name]; view != nil && known == sysSchema {
			q, err := catalog.ParseQuery(view.query, s.holdsText)
			return plan.Source{View: &plan.ViewSource{Schema: sysSchema, Name: name, Query: q, QuerySchema: sysSchema, Columns: view.columns}}, true, err
		}
		if known != sysSchema { // a schema sys of before may have tables of its own
			return src, false, sqlerr.New(sqlerr.UnknownTable, name, known)
		}
	}
	if v := madeOf(schema, name); v != nil {
		return plan.Source{Virtual: v}, true, nil
	}
	return src, false, nil
}

// viewSource is a stored view as planning takes it.
func (s *Session) viewSource(def *record.Table, v catalog.View) (plan.Source, error) {
	q, err := catalog.ParseQuery(v.Query, s.holdsText)
	if err != nil {
		return plan.Source{}, err
	}
	view := &plan.ViewSource{Schema: def.Schema, Name: def.Name, Query: q, QuerySchema: v.Schema, CheckOption: v.CheckOption}
	for _, c := range catalog.Columns(def) {
		view.Columns = append(view.Columns, c.Name)
	}
	switch v.Algorithm {
	case "MERGE":
		view.Algorithm = plan.ViewMerge
	case "TEMPTABLE":
		view.Algorithm = plan.ViewTempTable
	}
	return plan.Source{View: view}, nil
}

// storedCatalog gives planning the newest definitions, without the locks that keep them as they are: it serves a question about a
// definition, and what was planned with it is not run.
type storedCatalog struct {
	s    *Session
	open []*dict.Handle
}

func (c *storedCatalog) Lookup(schema, name string) (plan.Source, error) {
	if src, found, err := c.s.virtualSource(schema, name); found || err != nil {
		return src, err
	}
	h, err := c.s.eng.Catalog.OpenTable(nil, schema, name)
	if err != nil {
		return plan.Source{}, missingTable(err, schema, name)
	}
	c.open = append(c.open, h)
	keys := h.Table().Schema
	if v, ok := catalog.ViewOf(keys.Table); ok {
		return c.s.viewSource(keys.Table, v)
	}
	return plan.Source{Table: &plan.TableSource{Keys: keys}}, nil
}

func (c *storedCatalog) LookupShared(schema, name string) (plan.Source, error) {
	return c.Lookup(schema, name)
}

// brokenView is why a view cannot be read (1356): its text names tables, columns or functions that are not there; nil: it can. Other
// errors are those of planning.
func (s *Session) brokenView(def *record.Table, v catalog.View) (broken *sqlerr.Error, err error) {
	stored := &storedCatalog{s: s}
	defer func() {
		for _, h := range stored.open {
			h.Release()
		}
	}()
	env := s.planEnv(&schemaCatalog{s: s}, nil)
	env.Catalog, env.Schema, env.Mode = stored, v.Schema, 0
	q, err := catalog.ParseQuery(v.Query, s.holdsText)
	if err == nil {
		_, err = plan.Select(env, q)
	}
	err = plan.ViewError(err, def.Schema, def.Name)
	if errors.As(err, &broken) && broken.Number == sqlerr.ViewInvalid {
		return broken, nil
	}
	return nil, err
}
