package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// How ALTER TABLE runs:
//
//	in place   another definition, no row is touched: one transaction
//	indexes    added alone they are built beside running changes: one transaction adds them
//	           as being built, a second one fills and publishes them. With other changes
//	           all is one transaction that has the table for itself, if that is small;
//	           else it is rebuilt
//	constraints of a large table, alone or with indexes, are in force for who writes from a
//	           first transaction on; then the rows are read beside running changes (ddlconstraint.go)
//	rebuild    the rows are copied into a new table, which takes the old one's place: beside
//	           running changes (ddlonline.go), or, where rows have no key by which their
//	           copies are found, with the table for itself (ddlcopy.go)

// alterTable is ALTER TABLE, CREATE INDEX and DROP INDEX.
func (s *Session) alterTable(ctx context.Context, st ast.Statement, table ast.TableName, specs []ast.AlterSpec, algorithm, locking string) (out Outcome, err error) {
	schema, name, err := s.tableName(table)
	if err != nil {
		return out, err
	}
	specs = s.renamesHere(specs)
	if err := s.mayAlter(schema, name, st, specs); err != nil {
		return out, err
	}
	if err := s.dropLeftBefore(ctx, schema, name); err != nil {
		return out, err
	}
	for {
		out, err = s.alterOnce(ctx, st, schema, name, specs, algorithm, locking)
		if !errors.Is(err, errMoved) {
			break
		}
		s.diag.reset()
	}
	if errorNumber(err) == sqlerr.TableExistsError && table.Name != "" {
		err = sqlerr.Newf(sqlerr.TableExistsError, "%s", errorText(err))
	}
	return out, err
}

// renamesHere gives names without a schema in RENAME TO the current one, as MySQL does, whatever schema the table is in.
func (s *Session) renamesHere(specs []ast.AlterSpec) []ast.AlterSpec {
	for i, spec := range specs {
		if to, ok := spec.(*ast.RenameTo); ok && to.Table.Schema == "" && s.schema != "" {
			here := *to
			here.Table.Schema = s.schema
			specs = slices.Clone(specs)
			specs[i] = &here
		}
	}
	return specs
}

// alterOnce is a try of it. Error besides: errMoved, nothing was done.
func (s *Session) alterOnce(ctx context.Context, st ast.Statement, schema, name string, specs []ast.AlterSpec, algorithm, locking string) (out Outcome, err error) {
	var change *catalog.Change
	var added []uint64 // indexes that are being built
	var tag string     // of constraints that rows may not satisfy
	var copied *onlineRebuild
	// A copy can take long: the transaction locks no gaps of the dictionary, in which others make tables.
	err = s.inTransactionAt(ctx, uint8(isoReadCommitted)+1, func() error {
		if err := s.txn.AwaitUnwatched(txn.Name{Schema: schema, Table: name}); err != nil {
			return err
		}
		old, err := s.baseTable(schema, name)
		if err != nil {
			return err
		}
		env, err := s.definitionEnv(schema)
		if err != nil {
			return err
		}
		told := s.diag.total
		ch, err := catalog.Alter(env, old, specs)
		if err != nil {
			return err
		}
		copies, constrains := strings.EqualFold(algorithm, "COPY"), false
		if !copies {
			if constrains, err = s.constrainsBeside(ch, locking); err != nil {
				return err
			}
		}
		if !constrains && (algorithm == "" || strings.EqualFold(algorithm, "DEFAULT")) {
			if copies, err = s.betterCopied(ch, schema, name); err != nil {
				return err
			}
		}
		if copies && !ch.Rebuild {
			s.diag.cut(told) // it says the same once more
			if ch, err = catalog.Alter(env, old, append(specs, &ast.Force{})); err != nil {
				return err
			}
		}
		if err := checkAlgorithm(ch, algorithm, locking); err != nil {
			return err
		}
		names := []txn.Name{{Schema: schema, Table: name}}
		if constrains && len(ch.Add) == 0 {
			names = constrained(ch)
		}
		err = s.txn.LockDefinitions(names...)
		if s.beginsAgain(err) { // another one looks at the definition to change it
			err = errors.Join(errMoved, err)
		}
		if err != nil {
			return err
		}
		if err := s.checkChildren(ch); err != nil {
			return err
		}
		if ch.Rebuild && onlineCopy(ch) && !strings.EqualFold(locking, "EXCLUSIVE") {
			copied, err = s.watchTable(ch, s.textOf(st).Text)
			return err
		}
		if ch.Rebuild {
			out.AffectedRows, err = s.rebuild(ctx, ch, s.textOf(st).Text)
			return err
		}
		change = ch
		switch {
		case constrains:
			tag = s.newTag()
			if len(ch.Add) == 0 {
				return s.constrain(ch, old, tag)
			}
			added, err = s.addIndexes(ch, nil)
			return err
		case indexesAlone(ch):
			added, err = s.addIndexes(ch, s.textOf(st))
			return err
		}
		return s.alterInPlace(ctx, ch, s.textOf(st).Text)
	})
	switch {
	case err != nil:
		if copied != nil {
			copied.watch.Stop()
		}
	case copied != nil:
		out.AffectedRows, err = copied.run(ctx)
	case tag != "":
		err = s.finishConstraints(ctx, change, added, tag, s.textOf(st))
	case added != nil:
		err = s.finishIndexes(ctx, change, added, nil)
	}
	return out, err
}

// indexesAlone reports whether a change adds indexes and does nothing else.
func indexesAlone(ch *catalog.Change) bool {
	return ch.Same && len(ch.Add) > 0 && len(ch.Checks) == 0 && len(ch.ForeignKeys) == 0 && len(ch.Renamed) == 0
}

// inPlaceRows is up to how many rows of a table indexes that come with other changes are
// built with the table for oneself.
const inPlaceRows = 20_000

// betterCopied reports whether a change that could be made in place would keep others from
// the table for long, which a copy of its rows beside them does not.
func (s *Session) betterCopied(ch *catalog.Change, schema, name string) (bool, error) {
	if ch.Rebuild || len(ch.Add) == 0 || indexesAlone(ch) || !onlineCopy(ch) {
		return false, nil
	}
	o, err := s.txn.Open(schema, name)
	if err != nil {
		return false, err
	}
	return o.Table().Rows() > inPlaceRows, nil
}

func errorText(err error) string {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// mayAlter checks privileges. CREATE INDEX and DROP INDEX need INDEX only.
func (s *Session) mayAlter(schema, name string, st ast.Statement, specs []ast.AlterSpec) error {
	a := s.privileges()
	switch st.(type) {
	case *ast.CreateIndex, *ast.DropIndex:
		return a.Table(schema, name, priv.Index, "INDEX")
	}
	if err := a.Table(schema, name, priv.Alter, "ALTER"); err != nil {
		return err
	}
	for _, spec := range specs {
		if to, ok := spec.(*ast.RenameTo); ok {
			toSchema, toName, err := s.tableName(to.Table)
			if err == nil {
				err = s.mayRename(schema, name, toSchema, toName)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAlgorithm refuses what ALGORITHM and LOCK ask for and is not to be had.
func checkAlgorithm(ch *catalog.Change, algorithm, locking string) error {
	algorithm, locking = strings.ToUpper(algorithm), strings.ToUpper(locking)
	switch {
	case algorithm == "INSTANT" && (ch.Rebuild || len(ch.Add) > 0):
		return sqlerr.New(sqlerr.AlterOperationNotSupported, "ALGORITHM=INSTANT",
			"ALGORITHM="+map[bool]string{true: "COPY", false: "INPLACE"}[ch.Rebuild])
	case algorithm == "INPLACE" && ch.Rebuild:
		return sqlerr.New(sqlerr.AlterOperationNotSupportedReason, "ALGORITHM=INPLACE", ch.Reason, "ALGORITHM=COPY")
	case (locking == "NONE" || locking == "SHARED") && ch.Rebuild && !onlineCopy(ch):
		return sqlerr.New(sqlerr.AlterOperationNotSupportedReason, "LOCK="+locking,
			"COPY algorithm requires a lock", "LOCK=EXCLUSIVE")
	}
	return nil
}

// checkChildren refuses changes that foreign keys of other tables forbid. Errors: 1553,
// 1829, 3780.
//
// REQUIRES: the table's definition is locked.
func (s *Session) checkChildren(ch *catalog.Change) error {
	after := ch.Table.Clone()
	after.Indexes = append(after.Indexes, ch.Add...)
	return s.eachChild(ch.Old.Schema, ch.Old.Name, func(child *record.Table, k *record.ForeignKey) error {
		if child.ID == ch.Old.ID {
			return nil
		}
		for _, c := range k.RefColumns {
			for _, d := range ch.Dropped {
				if dict.Fold(c) == dict.Fold(d) {
					return sqlerr.New(sqlerr.FKColumnCannotDropChild, d, k.Name, child.Name)
				}
			}
		}
		key := *k
		child = child.Clone()
		key.RefColumns = append([]string(nil), k.RefColumns...)
		for i, c := range key.RefColumns {
			for from, to := range ch.Renamed {
				if dict.Fold(from) == dict.Fold(c) {
					key.RefColumns[i] = to
				}
			}
		}
		err := catalog.CheckReference(child, &key, after)
		if errorNumber(err) == sqlerr.FKNoIndexParent {
			return sqlerr.New(sqlerr.DropIndexFK, k.Name)
		}
		return err
	})
}

// alterInPlace gives the table its new definition, checks what rows must satisfy, and builds
// the indexes that come with it.
func (s *Session) alterInPlace(ctx context.Context, ch *catalog.Change, text []byte) error {
	next := ch.Table
	if ch.Same && len(ch.Add) == 0 {
		return nil
	}
	if err := s.followChildren(ch, next); err != nil {
		return err
	}
	if !ch.Same {
		catalog.SetTimes(next, 0, s.x.Now.UnixMicro())
		if _, err := s.txn.ReplaceTable(next, s.logged(string(text))); err != nil {
			return err
		}
	}
	for _, ix := range ch.Add {
		if err := s.buildAlone(next, ix); err != nil {
			return err
		}
	}
	return s.checkRows(ctx, ch, next, false)
}

// followChildren lets foreign keys of other tables follow the names of table and
// columns.
func (s *Session) followChildren(ch *catalog.Change, next *record.Table) error {
	children, err := s.followers(ch, next)
	if err != nil {
		return err
	}
	for _, c := range children {
		err := s.edit(c.ID, func(t *record.Table) { retarget(t, ch.Old.Schema, ch.Old.Name, next.Schema, next.Name, ch.Renamed) })
		if err != nil {
			return err
		}
	}
	return nil
}

// followers are the tables that followChildren changes.
func (s *Session) followers(ch *catalog.Change, next *record.Table) (children []*record.Table, err error) {
	if next.Schema == ch.Old.Schema && next.Name == ch.Old.Name && len(ch.Renamed) == 0 {
		return nil, nil
	}
	err = s.eachChild(ch.Old.Schema, ch.Old.Name, func(child *record.Table, _ *record.ForeignKey) error {
		if child.ID != ch.Old.ID && !slices.ContainsFunc(children, func(c *record.Table) bool { return c.ID == child.ID }) {
			children = append(children, child)
		}
		return nil
	})
	return children, err
}

// follows are the names that a change of a table needs besides the table's.
func (s *Session) follows(ch *catalog.Change) ([]txn.Name, error) {
	children, err := s.followers(ch, ch.Table)
	if err != nil {
		return nil, err
	}
	var names []txn.Name
	for _, c := range children {
		names = append(names, txn.Name{Schema: c.Schema, Table: c.Name})
	}
	if to := ch.Table; to.Schema != ch.Old.Schema || to.Name != ch.Old.Name {
		names = append(names, txn.Name{Schema: to.Schema, Table: to.Name})
	}
	return names, nil
}

// buildAlone adds an index to a table that is this transaction's alone.
func (s *Session) buildAlone(t *record.Table, ix record.Index) error {
	made, err := s.txn.AddIndex(t.ID, ix, nil)
	if err != nil {
		return err
	}
	id := made.Indexes[dict.FindIndex(made, ix.Name)].ID
	if err := s.fill(made.Schema, made.Name, id); err != nil {
		return err
	}
	_, err = s.txn.PublishIndex(t.ID, id, nil)
	return err
}

// fill fills an index, so that KILL ends it.
func (s *Session) fill(schema, name string, id uint64) error {
	s.setState("altering table")
	defer s.setState("")
	o, err := s.txn.Open(schema, name)
	if err != nil {
		return err
	}
	if building(o.Definition(), id) < 0 {
		return errChanged() // by who has emptied it, say
	}
	_, err = s.txn.FillIndex(o, id, s.interrupted)
	return s.duplicateIn(o.Definition(), err)
}

// duplicateIn gives the duplicate that an index's build has found MySQL's text.
func (s *Session) duplicateIn(t *record.Table, err error) error {
	d := duplicateOf(err)
	if d == nil {
		return err
	}
	return &rowError{sqlerr.New(sqlerr.DupEntry, duplicateText(t, d), t.Name+"."+d.Index), d}
}

// addIndexes is the first step of indexes that are built beside running changes. It returns
// their numbers.
func (s *Session) addIndexes(ch *catalog.Change, query *event.Query) (ids []uint64, err error) {
	for _, ix := range ch.Add {
		made, err := s.txn.AddIndex(ch.Old.ID, ix, query)
		if err != nil {
			return nil, err
		}
		ids = append(ids, made.Indexes[len(made.Indexes)-1].ID)
		query = nil
	}
	return ids, nil
}

// finishIndexes is the second: they are filled and published, and what then does is done, or dropped because of the
// error.
func (s *Session) finishIndexes(ctx context.Context, ch *catalog.Change, ids []uint64, then func() error) error {
	var err error
	watched := (*txn.WatchedError)(nil)
	name := txn.Name{Schema: ch.Old.Schema, Table: ch.Old.Name}
	for again := true; again; { // what is filled stays
		err = s.inTransaction(ctx, func() error {
			for _, n := range constrained(ch) {
				if err := s.txn.AwaitUnwatched(n); err != nil {
					return err
				}
			}
			return s.publishIndexes(ch, ids, then)
		})
		// With who looks at the definition to change it, or who has begun to rebuild a table that a new key refers to.
		again = s.beginsAgain(err) || errors.As(err, &watched) && watched.Name != name
	}
	if err == nil || errors.Is(err, s.m.opt.Backend.NotLeader()) {
		return err // who leads now drops what is left (Manager.CleanUp)
	}
	if errors.As(err, &watched) { // by who came between the two steps
		err = errChanged()
	}
	var left []leftover
	for _, id := range ids {
		left = append(left, leftover{table: ch.Old.ID, index: id})
	}
	s.takeBack(ctx, left)
	return err
}

// takeBack drops what a statement has made that cannot be finished, now or later.
func (s *Session) takeBack(ctx context.Context, left []leftover) {
	var drop error
	if s.killed.Load() == killNothing {
		drop = s.inTransaction(ctx, func() error {
			for _, l := range left {
				if err := dropLeftover(ctx, s.eng, s.txn, l); err != nil {
					return err
				}
			}
			return nil
		})
		if drop == nil {
			return
		}
	}
	for _, l := range left {
		s.m.leave(l)
	}
	if remain, later := s.m.DropLeft(context.WithoutCancel(ctx)); drop != nil && remain > 0 {
		s.diag.warn(sqlerr.Newf(sqlerr.UnknownError, "what was made of the indexes and constraints is dropped later: "+
			"%v", errors.Join(drop, later)))
	}
}

// publishIndexes fills what was added, publishes it, and does what then does.
func (s *Session) publishIndexes(ch *catalog.Change, ids []uint64, then func() error) error {
	h, err := s.eng.Catalog.OpenTableByID(s.txn.Trx(), ch.Old.ID)
	if err != nil {
		if then == nil && s.rebuiltWith(ch) {
			return nil
		}
		return sqlerr.New(sqlerr.NoSuchTable, ch.Old.Schema, ch.Old.Name) // dropped meanwhile
	}
	def := h.Table().Schema.Table
	h.Release()
	for _, id := range ids {
		if err := s.fill(def.Schema, def.Name, id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if _, err := s.txn.PublishIndex(def.ID, id, nil); err != nil {
			return err
		}
	}
	if then != nil {
		return then()
	}
	return nil
}

// rebuiltWith reports whether a rebuild that came between the two steps has made the indexes.
func (s *Session) rebuiltWith(ch *catalog.Change) bool {
	def, err := s.definition(ch.Old.Schema, ch.Old.Name)
	if err != nil || def == nil {
		return false
	}
	for _, ix := range ch.Add {
		if i := dict.FindIndex(def, ix.Name); i < 0 || def.Indexes[i].Building {
			return false
		}
	}
	return true
}

// exists runs a query of the server's own within the transaction, and reports whether it
// gives a row.
func (s *Session) exists(ctx context.Context, text string) (bool, error) {
	rows, err := s.internal(ctx, text, 1)
	return len(rows) > 0, err
}

// internal runs a query of the server's own within the transaction and returns its first
// rows. No privileges are needed for it.
func (s *Session) internal(ctx context.Context, text string, limit int) ([][]types.Value, error) {
	statements, err := ast.Parse(text, 0)
	if err != nil {
		return nil, err
	}
	keep := &rowKeeper{limit: limit}
	outer, multi, system := s.out, s.trx.multi, s.acl.system
	s.out.begin(ctx, keep)
	s.trx.multi, s.acl.system = true, true
	_, err = s.runPlanned(ctx, statements[0], nil)
	s.out, s.trx.multi, s.acl.system = outer, multi, system
	return keep.rows, err
}
