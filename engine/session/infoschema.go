package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// The schemas that are made up. Of that of the system tables only some tables are: see madeOf.
const (
	infoSchema = "information_schema"
	perfSchema = "performance_schema"
	sysSchema  = "sys"
)

// virtualSchema finds a schema that is made up, whose name has any case.
func virtualSchema(name string) (string, bool) {
	switch {
	case strings.EqualFold(name, infoSchema):
		return infoSchema, true
	case strings.EqualFold(name, perfSchema):
		return perfSchema, true
	case name == sysSchema:
		return sysSchema, true
	}
	return "", false
}

// madeOf finds a table that is made up, whether all of its schema are or not; nil: it is none, or a view of sys.
func madeOf(schema, name string) *catalog.Virtual {
	if known, ok := virtualSchema(schema); ok {
		return virtualTable(known, name)
	}
	if schema != priv.Schema {
		return nil
	}
	if v := virtualTable(priv.Schema, name); v != nil && v.Def.Name == name {
		return v
	}
	return nil
}

// virtualTable finds a table of such a schema, nil if there is none.
func virtualTable(schema, name string) *catalog.Virtual {
	loadVirtuals()
	return virtuals[schema][strings.ToUpper(name)]
}

// madeDefinition is the definition of a table or view that is made up; nil: it is none.
func madeDefinition(schema, name string) *record.Table {
	if v := madeOf(schema, name); v != nil {
		return v.Def
	}
	if schema != sysSchema {
		return nil
	}
	if view := sysViews[name]; view != nil { // madeOf has loaded them
		return view.def
	}
	return nil
}

// made is a virtual table as it is declared: its columns as in CREATE TABLE, and what
// gives its rows; without, it has none.
type made struct {
	schema, name, columns string
	rows                  func(q *virtualRows) error
}

// declared are the declarations. They refer to what uses the tables made of them: hence
// the init function.
var declared [][]made

func init() {
	declared = [][]made{infoTables, infoConstraints, infoAccounts, infoEmpty, infoServer, perfTables}
}

// declaredOfGroup is how many lists of declared, the first ones, are about what is in the
// group's log.
const declaredOfGroup = 3

var (
	virtualsOnce sync.Once
	virtuals     map[string]map[string]*catalog.Virtual
	virtualNames map[string][]string // in order of declaration
	// ofGroup are those that show what is in the group's log: definitions and accounts.
	ofGroup map[*catalog.Virtual]bool
)

// loadVirtuals makes the tables of their declarations, once.
func loadVirtuals() {
	virtualsOnce.Do(func() {
		virtuals = map[string]map[string]*catalog.Virtual{infoSchema: {}, perfSchema: {}, sysSchema: {}, priv.Schema: {}}
		virtualNames = map[string][]string{}
		ofGroup = map[*catalog.Virtual]bool{}
		for n, list := range declared {
			for i := range list {
				d := &list[i]
				def, err := virtualDefinition(d)
				if err != nil {
					panic(fmt.Sprintf("session: the definition of %s.%s is wrong: %v", d.schema, d.name, err)) // a constant of this package
				}
				ofGroup[addVirtual(def, d.rows)] = n < declaredOfGroup
			}
		}
		loadShapes()
	})
}

// addVirtual adds a table; rows gives its rows, nil if it has none.
func addVirtual(def *record.Table, rows func(q *virtualRows) error) *catalog.Virtual {
	v := &catalog.Virtual{Def: def}
	v.Open = func(source any, p catalog.Predicate) (catalog.VirtualReader, error) {
		q := &virtualRows{s: source.(*Session), def: def, pred: p}
		r := &virtualReader{q: q}
		if rows != nil {
			err := rows(q)
			if err == nil {
				err = q.s.acl.unread // it shows what the session may see, and nobody knows what that is
			}
			if err == nil {
				err = q.err
			}
			if err != nil {
				r.Close()
				return nil, err
			}
		}
		r.VirtualReader = catalog.NewRowsReader(q.list)
		return r, nil
	}
	virtuals[def.Schema][strings.ToUpper(def.Name)] = v
	virtualNames[def.Schema] = append(virtualNames[def.Schema], def.Name)
	return v
}

// virtualDefinition parses a declaration. "name" stands for the type of a name, "text"
// for that of a longer text.
func virtualDefinition(d *made) (*record.Table, error) {
	var columns []string
	for _, c := range strings.Split(d.columns, ", ") {
		name, kind, _ := strings.Cut(c, " ")
		switch kind {
		case "name": // of schemas and tables: every byte counts
			kind = "varchar(64) collate utf8mb4_bin"
		case "":
			kind = "varchar(64)"
		case "long":
			kind = "varchar(512)"
		}
		kind = strings.ReplaceAll(kind, ";", ",") // within a type
		columns = append(columns, "`"+name+"` "+kind)
	}
	statements, err := ast.Parse("CREATE TABLE t ("+strings.Join(columns, ", ")+")", 0)
	if err != nil {
		return nil, err
	}
	env := &catalog.Env{Collation: types.CollationUTF8MB4Gen}
	def, err := catalog.Define(env, d.schema, statements[0].(*ast.CreateTable), nil)
	if err != nil {
		return nil, err
	}
	def.Name = d.name
	return def, nil
}

// virtualRows collects the rows of a virtual table for a session.
type virtualRows struct {
	s    *Session
	def  *record.Table
	pred catalog.Predicate
	list [][]types.Value
	err  error
	size int
	// counted is how much of size is in the statement's account.
	counted int
}

// virtualGrain is how many bytes of rows are counted at a time.
const virtualGrain = 64 << 10

// virtualReader gives the memory of its rows back when it is closed.
type virtualReader struct {
	catalog.VirtualReader
	q *virtualRows
}

func (r *virtualReader) Close() {
	r.q.s.memory.Add(int64(-r.q.counted))
	r.q.counted, r.q.list = 0, nil
}

// virtualBytes bounds the rows of a virtual table that a statement holds.
const virtualBytes = 256 << 20

// equal returns what a column must be equal to; ok is false if it may be anything.
func (q *virtualRows) equal(column int) (text string, ok bool) {
	text, ok = q.pred.Equal[column]
	return text, ok
}

// row adds a row: strings, integers, times, nil for NULL, by column.
func (q *virtualRows) row(values ...any) {
	if q.err != nil {
		return
	}
	row := make([]types.Value, len(q.def.Columns))
	for i := range row {
		if i >= len(values) {
			break
		}
		v, err := virtualValue(values[i], &q.def.Columns[i].Type)
		if err != nil {
			q.err = err
			return
		}
		row[i] = v
		q.size += 24 + len(v.Bytes())
	}
	if more := q.size - q.counted; more >= virtualGrain {
		if q.err = q.s.account(int64(more)); q.err != nil {
			return
		}
		q.counted = q.size
	}
	if q.size > virtualBytes {
		q.err = sqlerr.Newf(sqlerr.CapacityExceeded, "Memory capacity of %d bytes for '%s' exceeded.", virtualBytes,
			q.def.Name)
		return
	}
	q.list = append(q.list, row)
}

// virtualValue converts a value to a column's type.
func virtualValue(v any, t *types.Type) (types.Value, error) {
	var from types.Value
	switch v := v.(type) {
	case nil:
		return types.Null, nil
	case types.Value:
		from = v
	case string:
		if t.Class() == types.ClassBytes {
			return types.NewString(v), nil // none is longer than its column can hold
		}
		from = types.NewString(v)
	case int:
		from = types.NewInt(int64(v))
	case int64:
		from = types.NewInt(v)
	case uint64:
		from = types.NewUint(v)
	case float64:
		from = types.NewDouble(v)
	case types.Timestamp:
		if v == 0 {
			return types.Null, nil
		}
		from = types.NewTimestamp(v)
	default:
		return types.Null, fmt.Errorf("session: a virtual table has a %T", v)
	}
	var x types.Context
	out, err := x.Store(from, nil, t)
	return out.Clone(), err
}

// eachSchema calls fn with the schemas that the session sees and that the predicate on a
// column allows.
func (q *virtualRows) eachSchema(column int, fn func(of dict.Schema) error) error {
	want, only := q.equal(column)
	a := q.s.privileges()
	schemas, err := q.s.eng.Catalog.Schemas(nil)
	if err != nil {
		return err
	}
	schemas = slices.DeleteFunc(schemas, func(of dict.Schema) bool { return of.Name == sysSchema }) // one of before
	for _, name := range []string{infoSchema, perfSchema, sysSchema} {
		schemas = append(schemas, dict.Schema{Name: name, Collation: types.CollationUTF8MB40900AI})
	}
	for _, of := range schemas {
		if only && of.Name != want || !a.SeesSchema(of.Name) {
			continue
		}
		if err := q.s.interrupted(); err != nil {
			return err
		}
		if err := fn(of); err != nil {
			return err
		}
	}
	return nil
}

// listed is a table as information_schema sees it.
type listed struct {
	def     *record.Table
	open    *table.Table // nil for a virtual table
	virtual bool
}

// eachTable calls fn with the tables and views that the session sees, by the predicates on
// the columns of schema and name. Tables that are being made are left out.
func (q *virtualRows) eachTable(schemaColumn, nameColumn int, fn func(t *listed) error) error {
	if t := q.s.work.described; t != nil {
		return fn(&listed{def: t.Schema.Table, open: t})
	}
	want, only := q.equal(nameColumn)
	a := q.s.privileges()
	return q.eachSchema(schemaColumn, func(of dict.Schema) error {
		if err := q.eachMade(of.Name, want, only, fn); err != nil {
			return err
		}
		if _, ok := virtualSchema(of.Name); ok {
			return nil
		}
		names, err := q.s.eng.Catalog.TableNames(nil, of.Name)
		if err != nil {
			if errorNumber(err) == sqlerr.BadDBError {
				return nil // dropped meanwhile
			}
			return err
		}
		for _, n := range names {
			if only && n.Name != want || strings.HasPrefix(n.Name, tempPrefix) || !a.SeesTable(of.Name, n.Name) {
				continue
			}
			if err := q.openListed(n.ID, fn); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachMade calls fn with the tables and views of a schema that are made up, and that the session sees.
func (q *virtualRows) eachMade(schema, want string, only bool, fn func(t *listed) error) error {
	loadVirtuals()
	a := q.s.privileges()
	for _, name := range virtualNames[schema] {
		if only && name != want || !a.SeesTable(schema, name) {
			continue
		}
		t := &listed{virtual: true}
		if v := virtuals[schema][strings.ToUpper(name)]; v != nil {
			t.def = v.Def
		} else {
			t.def = sysViews[name].def
		}
		if err := fn(t); err != nil {
			return err
		}
	}
	return nil
}

func (q *virtualRows) openListed(id uint64, fn func(t *listed) error) error {
	if err := q.s.interrupted(); err != nil {
		return err
	}
	h, err := q.s.eng.Catalog.OpenTableByID(nil, id)
	if err != nil {
		if errorNumber(err) == sqlerr.NoSuchTable || err == table.ErrNoTable {
			return nil // dropped meanwhile
		}
		return err
	}
	defer h.Release()
	return fn(&listed{def: h.Table().Schema.Table, open: h.Table()})
}

// columnPrivileges is the column PRIVILEGES of COLUMNS.
func columnPrivileges(a *priv.Active, schema, table, column string) string {
	var names []string
	m := a.ColumnMask(schema, table, column)
	for _, p := range []struct {
		mask priv.Mask
		name string
	}{{priv.Select, "select"}, {priv.Insert, "insert"}, {priv.Update, "update"}, {priv.References, "references"}} {
		if m&p.mask != 0 {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ",")
}

func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}
