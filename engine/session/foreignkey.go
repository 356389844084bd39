package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// maxCascade is how deep actions of foreign keys follow each other, as in InnoDB.
const maxCascade = 15

// foreignKey is a reference from the rows of a table.
type foreignKey struct {
	*record.ForeignKey
	columns []int // positions
}

// foreignKeys are those of a table.
func foreignKeys(keys *record.Schema) []foreignKey {
	var list []foreignKey
	for i := range keys.ForeignKeys {
		k := foreignKey{ForeignKey: &keys.ForeignKeys[i]}
		for _, id := range k.Columns {
			k.columns = append(k.columns, keys.Position(id))
		}
		list = append(list, k)
	}
	return list
}

// describe writes the constraint as MySQL's messages do.
func (k *foreignKey) describe(child *record.Schema) string {
	quote := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	var from []string
	for _, p := range k.columns {
		from = append(from, child.Columns[p].Name)
	}
	ref := "`" + k.RefTable + "`"
	if k.RefSchema != child.Schema {
		ref = "`" + k.RefSchema + "`." + ref
	}
	text := fmt.Sprintf("`%s`.`%s`, CONSTRAINT `%s` FOREIGN KEY (%s) REFERENCES %s (%s)", child.Schema, child.Name, k.Name,
		quote(from), ref, quote(k.RefColumns))
	for _, a := range []struct {
		on     string
		action ast.Action
	}{{" ON DELETE ", catalog.OnDelete(k.ForeignKey)}, {" ON UPDATE ", catalog.OnUpdate(k.ForeignKey)}} {
		switch a.action {
		case ast.ActionRestrict:
			text += a.on + "RESTRICT"
		case ast.ActionCascade:
			text += a.on + "CASCADE"
		case ast.ActionSetNull:
			text += a.on + "SET NULL"
		}
	}
	return text
}

// checkParents makes sure that the rows exist that a row refers to, and locks them. changes
// are those of an update, nil for an insert. Error: 1452.
func (s *Session) checkParents(t *target, row []types.Value, changes []record.Change) error {
next:
	for n := range t.info.parents {
		k := &t.info.parents[n]
		if changes != nil && !touched(k.columns, changes) {
			continue
		}
		values := s.work.values[:0]
		for _, p := range k.columns {
			if row[p].IsNull() {
				continue next
			}
			values = append(values, row[p])
		}
		s.work.values = values
		found, err := s.parentExists(t, k, row, values)
		if err != nil {
			return err
		}
		if !found {
			return sqlerr.New(sqlerr.NoReferencedRow2, k.describe(t.info.keys))
		}
	}
	return nil
}

func touched(columns []int, changes []record.Change) bool {
	for _, p := range columns {
		for i := range changes {
			if changes[i].Column == p {
				return true
			}
		}
	}
	return false
}

// parentExists looks for the row that the values refer to.
func (s *Session) parentExists(t *target, k *foreignKey, row, values []types.Value) (bool, error) {
	if k.RefSchema == t.info.keys.Schema && k.RefTable == t.info.keys.Name && refersToItself(t.info.keys, k, row) {
		return true, nil
	}
	parent, err := s.openLinked(k.RefSchema, k.RefTable)
	if err != nil || parent == nil {
		return false, err
	}
	keys := parent.Table().Schema
	positions := namedPositions(keys, k.RefColumns)
	found := false
	err = s.eachMatch(parent, positions, values, lock.RecordS, nil, func([]byte, []types.Value) (bool, error) {
		found = true
		return false, nil
	})
	return found, err
}

// refersToItself reports whether a row is its own parent.
func refersToItself(keys *record.Schema, k *foreignKey, row []types.Value) bool {
	for i, p := range namedPositions(keys, k.RefColumns) {
		if p < 0 || row[p].IsNull() || types.Compare(row[p], row[k.columns[i]], &keys.Columns[p].Type) != 0 {
			return false
		}
	}
	return true
}

// namedPositions are the positions of columns; -1 for one that is not there.
func namedPositions(keys *record.Schema, names []string) []int {
	var list []int
	for _, name := range names {
		p := -1
		if c := dict.FindColumn(keys.Table, name); c != nil {
			p = keys.Position(c.ID)
		}
		list = append(list, p)
	}
	return list
}

// openLinked opens a table that a foreign key leads to; nil if it is missing, which
// foreign_key_checks=0 allows.
func (s *Session) openLinked(schema, name string) (*txn.Table, error) {
	t, err := s.txn.Open(schema, name)
	var e *sqlerr.Error
	if errors.Is(err, table.ErrNoTable) || errors.As(err, &e) && (e.Number == sqlerr.NoSuchTable ||
		e.Number == sqlerr.BadDBError) {
		return nil, nil
	}
	return t, err
}

// eachMatch calls fn with the rows of a table whose columns at the positions have the
// values, under locks, until it returns false. key and row are valid during the call; row
// has the wanted columns by position. It uses an index that begins with the columns, in
// any order, or reads the whole table if there is none.
func (s *Session) eachMatch(o *txn.Table, positions []int, values []types.Value, mode lock.Mode, wanted []int, fn func(key []byte, row []types.Value) (bool, error)) error {
	keys := o.Table().Schema
	r := table.Range{Lock: mode, Locking: true, Keys: true, Columns: wanted}
	var low []byte
	filter := true
	for _, k := range keys.Keys {
		if k.Building {
			continue
		}
		if ordered := matchIndex(k, positions, values); ordered != nil {
			low = k.AppendKey(nil, ordered...)
			r.Index, r.Low, r.High = k.Position, low, low
			filter = false
			break
		}
	}
	if filter {
		r.Columns = append(append([]int(nil), wanted...), positions...)
	}
	list := make([]*types.Type, len(r.Columns))
	for i, p := range r.Columns {
		list[i] = &keys.Columns[p].Type
	}
	scan, batch := s.scan(), types.NewBatch(list)
	defer s.giveScan(scan)
	if err := scan.Start(o, r); err != nil {
		return err
	}
	row := make([]types.Value, len(keys.Columns))
	for more := true; more; {
		batch.Reset()
		var err error
		if more, err = scan.Next(batch); err != nil {
			return err
		}
		for i := range batch.Len() {
			for c, p := range r.Columns {
				row[p] = batch.Vecs[c].Value(i)
			}
			if filter && !matches(keys, row, positions, values) {
				continue
			}
			if on, err := fn(scan.Key(i), row); err != nil || !on {
				return err
			}
		}
		if err := s.interrupted(); err != nil {
			return err
		}
	}
	return nil
}

// matchIndex returns the values in the order of the index's first parts, or nil if these
// are other columns.
func matchIndex(k *record.KeySchema, positions []int, values []types.Value) []types.Value {
	if len(k.Parts) < len(positions) {
		return nil
	}
	var ordered []types.Value
	for n := range positions {
		part := &k.Parts[n]
		if part.Prefix != 0 {
			return nil
		}
		for i, p := range positions {
			if p == part.Column {
				ordered = append(ordered, values[i])
			}
		}
		if len(ordered) != n+1 {
			return nil
		}
	}
	return ordered
}

func matches(keys *record.Schema, row []types.Value, positions []int, values []types.Value) bool {
	for i, p := range positions {
		if p < 0 || row[p].IsNull() || types.Compare(row[p], values[i], &keys.Columns[p].Type) != 0 {
			return false
		}
	}
	return true
}

// childLink is a foreign key of another table, or of the same one, that refers to a table.
type childLink struct {
	schema, table string
	id            uint64 // of the foreign key
	parent        []int  // positions of the columns referred to
}

// childLinks are all of a table, as of a count of changes of definitions.
type childLinks struct {
	changes uint64
	list    []childLink
	// rewrites says that a row's deletion may change other rows of the table.
	rewrites bool
}

// loadLinks finds out which foreign keys refer to a target. It is called for each row, once that is
// changed and so locked: a statement may run while another session makes a table that refers
// to this one, but nobody refers to the row from then on.
func (s *Session) loadLinks(t *target) error {
	if t.open.Temporary() {
		return nil // nothing refers to it
	}
	keys, c := t.info.keys, &s.m.tables
	changes := s.eng.Catalog.Changes()
	if t.linked && t.linkedAt == changes {
		return nil
	}
	c.mu.RLock()
	l := c.links[keys]
	c.mu.RUnlock()
	if l == nil || l.changes != changes {
		var err error
		if l, err = s.findLinks(keys, changes); err != nil {
			return err
		}
		c.mu.Lock()
		if c.links == nil || len(c.links) >= tablesKept {
			c.links = map[*record.Schema]*childLinks{}
		}
		c.links[keys] = l
		c.mu.Unlock()
	}
	t.links, t.rewrites, t.linked, t.linkedAt = l.list, l.rewrites, true, changes
	return nil
}

func (s *Session) findLinks(keys *record.Schema, changes uint64) (*childLinks, error) {
	l := &childLinks{changes: changes}
	err := s.eachReference(keys.Schema, keys.Name, func(def *record.Table, k *record.ForeignKey) error {
		l.list = append(l.list, childLink{def.Schema, def.Name, k.ID, namedPositions(keys, k.RefColumns)})
		return nil
	})
	if err == nil && len(l.list) > 0 {
		l.rewrites, err = s.rewritesItself(keys)
	}
	return l, err
}

// eachReference calls fn with the foreign keys that refer to a table, and their tables.
func (s *Session) eachReference(schema, name string, fn func(def *record.Table, k *record.ForeignKey) error) error {
	refs, err := s.eng.Catalog.References(nil, schema, name)
	if err != nil {
		return err
	}
	for _, r := range refs {
		def, err := s.eng.Catalog.Definition(nil, r.Table)
		if errors.Is(err, table.ErrNoTable) {
			continue // dropped meanwhile
		}
		if err != nil {
			return err
		}
		for i := range def.ForeignKeys {
			if k := &def.ForeignKeys[i]; k.ID == r.Key {
				if err := fn(def, k); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rewritesItself follows the actions of a deletion: whether one of them changes rows of the
// table that it began with.
func (s *Session) rewritesItself(keys *record.Schema) (bool, error) {
	type change struct {
		schema, table string
		update        bool
	}
	seen := map[change]bool{}
	var follow func(c change) error
	follow = func(c change) error {
		if seen[c] {
			return nil
		}
		seen[c] = true
		return s.eachReference(c.schema, c.table, func(def *record.Table, k *record.ForeignKey) error {
			action := catalog.OnDelete(k)
			if c.update {
				action = catalog.OnUpdate(k)
			}
			if action != ast.ActionCascade && action != ast.ActionSetNull {
				return nil
			}
			return follow(change{def.Schema, def.Name, c.update || action == ast.ActionSetNull})
		})
	}
	err := follow(change{keys.Schema, keys.Name, false})
	return seen[change{keys.Schema, keys.Name, true}], err
}

// inCircle reports whether changes of a row may lead, by actions, to a change of another table
// that the row refers to: what it lacks before may be there after. InnoDB looks for it after.
func (s *Session) inCircle(t *target, changes []record.Change) (bool, error) {
	if !slices.ContainsFunc(t.links, func(l childLink) bool { return touched(l.parent, changes) }) {
		return false, nil
	}
	type name struct{ schema, table string }
	self := name{t.info.keys.Schema, t.info.keys.Name}
	seen := map[name]bool{}
	var follow func(n name) error
	follow = func(n name) error {
		return s.eachReference(n.schema, n.table, func(def *record.Table, k *record.ForeignKey) error {
			next := name{def.Schema, def.Name}
			if catalog.OnUpdate(k) != ast.ActionCascade || seen[next] || next == self {
				return nil
			}
			seen[next] = true
			return follow(next)
		})
	}
	if err := follow(self); err != nil {
		return false, err
	}
	for i := range t.info.parents {
		if k := &t.info.parents[i]; seen[name{k.RefSchema, k.RefTable}] {
			return true, nil
		}
	}
	return false, nil
}

// action is a change that an action of a foreign key follows, and those before it.
type action struct {
	before *action
	table  *record.Schema
	update bool
	depth  int
}

// updates reports whether the change, or one that it follows, is an update of the table.
func (a *action) updates(table *record.Schema) bool {
	for ; a != nil; a = a.before {
		if a.update && a.table == table {
			return true
		}
	}
	return false
}

// parentChanged does what the foreign keys say that refer to a row which was deleted
// (after is nil) or changed, by the statement or by an action. Errors: 1451, 3008.
func (s *Session) parentChanged(t *target, before, after []types.Value, by *action) error {
	a := &action{before: by, table: t.info.keys, update: after != nil}
	if by != nil {
		a.depth = by.depth + 1
	}
next:
	for i := range t.links {
		l := &t.links[i]
		var old []types.Value
		changed := after == nil
		for _, p := range l.parent {
			if p < 0 || before[p].IsNull() {
				continue next
			}
			old = append(old, before[p])
			if after != nil && types.Compare(before[p], after[p], &t.info.keys.Columns[p].Type) != 0 {
				changed = true
			}
		}
		if !changed {
			continue
		}
		if err := s.actOn(a, l, old, after); err != nil {
			return err
		}
	}
	return nil
}

// actOn runs the action of one foreign key for the rows that referred to the old values.
func (s *Session) actOn(a *action, l *childLink, old, after []types.Value) error {
	o, err := s.openLinked(l.schema, l.table)
	if err != nil || o == nil {
		return err
	}
	info, err := s.m.tableInfo(o.Table().Schema)
	if err != nil {
		return err
	}
	child := &target{}
	child.set(o, info)
	var k *foreignKey
	for i := range child.info.parents {
		if child.info.parents[i].ID == l.id {
			k = &child.info.parents[i]
		}
	}
	if k == nil {
		return nil
	}
	do := catalog.OnDelete(k.ForeignKey)
	if after != nil {
		do = catalog.OnUpdate(k.ForeignKey)
	}
	switch {
	case do != ast.ActionCascade && do != ast.ActionSetNull:
	case (after != nil || do == ast.ActionSetNull) && a.updates(child.info.keys):
		// A table that is being updated is not updated once more by what follows from it: it
		// might go round for ever. InnoDB takes it for RESTRICT, too.
	default:
		return s.cascade(a, child, k, l, do, old, after)
	}
	found := false
	err = s.eachMatch(o, k.columns, old, lock.RecordS, nil, func([]byte, []types.Value) (bool, error) {
		found = true
		return false, nil
	})
	if err != nil || !found {
		return err
	}
	return sqlerr.New(sqlerr.RowIsReferenced2, k.describe(child.info.keys))
}

// cascade deletes or changes the rows that referred to the old values. They are collected
// before the first is changed, since the change moves them in the index.
func (s *Session) cascade(a *action, child *target, k *foreignKey, l *childLink, do ast.Action, old, after []types.Value) error {
	if a.depth >= maxCascade {
		return sqlerr.New(sqlerr.FKDepthExceeded, maxCascade)
	}
	all := make([]int, 0, len(child.info.columns))
	for p := range child.info.columns {
		if child.info.columns[p].DroppedIn == 0 {
			all = append(all, p)
		}
	}
	type found struct {
		key []byte
		row []types.Value
	}
	var rows []found
	err := s.eachMatch(child.open, k.columns, old, lock.RecordX, all, func(key []byte, row []types.Value) (bool, error) {
		f := found{append([]byte(nil), key...), make([]types.Value, len(row))}
		for i := range row {
			f.row[i] = row[i].Clone()
		}
		rows = append(rows, f)
		return true, s.account(int64(len(key) + 64*len(row)))
	})
	if err != nil {
		return err
	}
	for _, f := range rows {
		if do == ast.ActionCascade && after == nil {
			err = s.deleteRow(child, f.key, f.row, a)
		} else {
			s.work.rewrote(child.info.keys)
			next := append([]types.Value(nil), f.row...)
			for i, p := range k.columns {
				next[p] = types.Null
				if do == ast.ActionCascade {
					next[p] = after[l.parent[i]]
				}
			}
			_, err = s.updateChild(child, f.key, f.row, next, a)
		}
		if errors.Is(err, table.ErrNotFound) {
			err = nil // an action that came first has deleted it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updateChild is updateRow for an action: the parent's row is known to be there.
func (s *Session) updateChild(t *target, key []byte, before, after []types.Value, by *action) (bool, error) {
	assigned := make([]bool, len(after))
	for i := range assigned {
		assigned[i] = true // actions do not touch ON UPDATE CURRENT_TIMESTAMP
	}
	return s.updateRow(t, key, before, after, assigned, by)
}
