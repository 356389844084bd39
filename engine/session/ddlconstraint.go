package session

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
)

// New constraints of a large table, beside running changes:
//
//	indexes    that come with them are built first (finishIndexes)
//	constrain  who uses the table, or one that it refers to, ends; from then on nobody writes a
//	           row that does not satisfy them
//	verify     the rows are read, as a snapshot from after that has them
//	end        the marks go, or, if a row does not satisfy them, all that the statement has made

// constrainsBeside reports whether a change is made so: if it is only about constraints, and the table is
// large or LOCK asks that others may use it.
func (s *Session) constrainsBeside(ch *catalog.Change, locking string) (bool, error) {
	if strings.EqualFold(locking, "EXCLUSIVE") || !ch.OnlyConstrains() || len(ch.Checks) == 0 && !s.opt.foreignKeys {
		return false, nil
	}
	if strings.EqualFold(locking, "NONE") || strings.EqualFold(locking, "SHARED") {
		return true, nil
	}
	o, err := s.txn.Open(ch.Old.Schema, ch.Old.Name)
	if err != nil {
		return false, err
	}
	return o.Table().Rows() > inPlaceRows, nil
}

// constrained are the names that constrain needs: of the table and of those to which new
// foreign keys refer.
func constrained(ch *catalog.Change) []txn.Name {
	names := []txn.Name{{Schema: ch.Old.Schema, Table: ch.Old.Name}}
	for i := range ch.Table.ForeignKeys {
		k := &ch.Table.ForeignKeys[i]
		if name := (txn.Name{Schema: k.RefSchema, Table: k.RefTable}); slices.Contains(ch.ForeignKeys, k.Name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// newTag is a name for marks that no other statement has.
func (s *Session) newTag() string {
	return strconv.FormatUint(s.id, 36) + "-" + strconv.FormatUint(s.env.Uint64(), 36)
}

// constrain puts the constraints in force. REQUIRES: the transaction has the tables of constrained for
// itself, so that whoever writes one of them later knows of the constraints.
func (s *Session) constrain(ch *catalog.Change, now *record.Table, tag string) error {
	next := ch.Constrained(now, tag)
	catalog.SetTimes(next, 0, s.x.Now.UnixMicro())
	_, err := s.txn.ReplaceTable(next, nil) // unmark logs the statement, if all goes well
	return err
}

func errChanged() error {
	return sqlerr.New(sqlerr.TableDefChanged)
}

// finishConstraints fills indexes that are being built, reads the rows, and takes the marks away, or what the
// statement has made.
func (s *Session) finishConstraints(ctx context.Context, ch *catalog.Change, building []uint64, tag string, query *event.Query) error {
	if len(building) > 0 {
		err := s.finishIndexes(ctx, ch, building, func() error { return s.constrainIndexed(ch, tag) })
		if err != nil {
			return err
		}
	}
	err := s.verify(ctx, ch, tag)
	if err == nil {
		err = s.unmark(ctx, ch, tag, query)
	}
	if err == nil || errors.Is(err, s.m.opt.Backend.NotLeader()) {
		return err // who leads now takes back what is left (Manager.CleanUp)
	}
	s.takeBack(ctx, []leftover{{table: ch.Old.ID, tag: tag}})
	return err
}

// constrainIndexed is constrain in the transaction that has just published the indexes.
func (s *Session) constrainIndexed(ch *catalog.Change, tag string) error {
	if err := s.txn.LockDefinitions(constrained(ch)...); err != nil {
		return err
	}
	now, err := s.definition(ch.Old.Schema, ch.Old.Name)
	if err != nil {
		return err
	}
	if now == nil || !ch.Follows(now) {
		return errChanged()
	}
	if err := s.checkReferred(ch, now); err != nil {
		return err
	}
	return s.constrain(ch, now, tag)
}

// checkReferred checks again, once indexes are built, that the tables fit to which new foreign keys refer.
func (s *Session) checkReferred(ch *catalog.Change, now *record.Table) error {
	for i := range ch.Table.ForeignKeys {
		k := &ch.Table.ForeignKeys[i]
		if !s.opt.foreignKeys || !slices.Contains(ch.ForeignKeys, k.Name) {
			continue
		}
		parent, err := s.definition(k.RefSchema, k.RefTable)
		if err != nil {
			return err
		}
		if parent == nil {
			return sqlerr.New(sqlerr.FKCannotOpenParent, k.RefTable)
		}
		if err := catalog.CheckReference(now, k, parent); err != nil {
			return err
		}
	}
	return nil
}

// verify reads the rows, in a snapshot from after the constraints came into force. It locks none.
func (s *Session) verify(ctx context.Context, ch *catalog.Change, tag string) error {
	s.setState("altering table")
	defer s.setState("")
	var err error
	for again := true; again; again = s.beginsAgain(err) { // with who has changed a table that a new key refers to, and wants the key to follow
		err = s.inTransactionAt(ctx, uint8(isoRepeatableRead)+1, func() error {
			now, err := s.definition(ch.Old.Schema, ch.Old.Name)
			if err != nil {
				return err
			}
			if now == nil || catalog.Verify(now.Clone(), tag) != ch.Marks() {
				return errChanged()
			}
			for i := range now.ForeignKeys { // so that the queries have to wait for none
				k := &now.ForeignKeys[i]
				if !s.opt.foreignKeys || !slices.Contains(ch.ForeignKeys, k.Name) {
					continue
				}
				if _, err := s.txn.Open(k.RefSchema, k.RefTable); err != nil {
					return missingTable(err, k.RefSchema, k.RefTable)
				}
			}
			return s.checkRows(ctx, ch, now, true)
		})
	}
	return err
}

// unmark takes the marks away, and logs the statement, for those who follow the log: only now it has not been refused.
func (s *Session) unmark(ctx context.Context, ch *catalog.Change, tag string, query *event.Query) error {
	name := txn.Name{Schema: ch.Old.Schema, Table: ch.Old.Name}
	var err error
	for again := true; again; again = s.beginsAgain(err) { // with who looks at the definition to change it
		err = s.inTransaction(ctx, func() error {
			if err := s.txn.AwaitUnwatched(name); err != nil {
				return err
			}
			if err := s.txn.LockDefinitions(name); err != nil {
				return err
			}
			now, err := s.definition(name.Schema, name.Table)
			if err != nil {
				return err
			}
			if now == nil {
				return errChanged()
			}
			next := now.Clone()
			if catalog.Verify(next, tag) != ch.Marks() || !ch.SameNames(now) { // somebody has dropped one, or the text means something else
				return errChanged()
			}
			ch.Count(next)
			_, err = s.txn.ReplaceTable(next, query)
			return err
		})
	}
	return err
}

// checkRows checks that the rows satisfy new constraints, which are in force for others already or
// will be at the transaction's end. Errors: 3819, 1452.
func (s *Session) checkRows(ctx context.Context, ch *catalog.Change, next *record.Table, inForce bool) error {
	table := catalog.QuoteName(next.Schema) + "." + catalog.QuoteName(next.Name)
	for _, c := range ch.Checks {
		found, err := s.exists(ctx, "SELECT 1 FROM "+table+" WHERE NOT ("+c.Expr+") LIMIT 1")
		if err != nil {
			return err
		}
		if found {
			return sqlerr.New(sqlerr.CheckConstraintViolated, c.Name)
		}
	}
	if !s.opt.foreignKeys {
		return nil
	}
	for _, name := range ch.ForeignKeys {
		for i := range next.ForeignKeys {
			if k := &next.ForeignKeys[i]; k.Name == name {
				if err := s.checkForeignKey(ctx, next, k, inForce); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkForeignKey checks that every row has its parent. Unless the key is in force already, the parent's
// rows are locked, so that it stays so until it is; and what was deleted before has gone for good, and
// from what the check sees.
func (s *Session) checkForeignKey(ctx context.Context, t *record.Table, k *record.ForeignKey, inForce bool) error {
	if !inForce && (k.RefSchema != t.Schema || k.RefTable != t.Name) {
		o, err := s.txn.Open(k.RefSchema, k.RefTable)
		if err != nil {
			return missingTable(err, k.RefSchema, k.RefTable)
		}
		if err := s.txn.LockTable(o, lock.TableS); err != nil {
			return err
		}
		if err := s.txn.Settle(ctx); err != nil { // the snapshot is to have what was waited for
			return err
		}
	}
	if err := s.txn.ForgetSnapshot(); err != nil {
		return err
	}
	var notNull, same []string
	for i, id := range k.Columns {
		child, parent := catalog.QuoteName(t.Column(id).Name), catalog.QuoteName(k.RefColumns[i])
		notNull = append(notNull, "c."+child+" IS NOT NULL")
		same = append(same, "p."+parent+" = c."+child)
	}
	from := func(schema, name string) string { return catalog.QuoteName(schema) + "." + catalog.QuoteName(name) }
	found, err := s.exists(ctx, "SELECT 1 FROM "+from(t.Schema, t.Name)+" c WHERE "+strings.Join(notNull, " AND ")+
		" AND NOT EXISTS (SELECT 1 FROM "+from(k.RefSchema, k.RefTable)+" p WHERE "+strings.Join(same, " AND ")+") LIMIT 1")
	if err != nil || !found {
		return err
	}
	return sqlerr.New(sqlerr.NoReferencedRow2, describeForeignKey(t, k))
}

// describeForeignKey writes a constraint as messages do.
func describeForeignKey(t *record.Table, k *record.ForeignKey) string {
	f := foreignKey{ForeignKey: k}
	for _, id := range k.Columns {
		for p := range t.Columns {
			if t.Columns[p].ID == id {
				f.columns = append(f.columns, p)
			}
		}
	}
	return f.describe(&record.Schema{Table: t})
}
