package txn

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
)

// logSchema adds the events of a change of the catalogue.
func (t *Txn) logSchema(op *SchemaOp, query *event.Query) error {
	b := event.AppendSchema(nil, t.began, op.Append(nil))
	if query != nil {
		b = event.AppendQuery(b, t.began, query)
	}
	_, err := t.events.Write(b)
	return err
}

// ErrSchemaDiffers says that a logged change of the catalogue led to another
// definition here than on the leader.
var ErrSchemaDiffers = errors.New("txn: a logged schema change does not fit the catalogue")

// ApplySchema makes a logged change of the catalogue in the worker's transaction.
// Errors: those of package dict, and ErrSchemaDiffers.
//
// REQUIRES: worker.Applying; nobody else changes rows or the catalogue meanwhile; an index
// that is published is complete (CompleteIndex).
func ApplySchema(w *table.Worker, c *dict.Catalog, op *SchemaOp) error {
	switch op.Kind {
	case OpCreateSchema:
		_, err := c.CreateSchema(w, op.Schema)
		return err
	case OpAlterSchema, OpDropSchema:
		return applySchemaChange(w, c, op)
	case OpCreateTable:
		def, err := c.CreateTable(w, op.Table)
		return same(op, def, err)
	}
	if err := checkOld(w, c, op); err != nil {
		return err
	}
	var def *record.Table
	var err error
	switch op.Kind {
	case OpDropTable:
		_, err := c.DropTable(w, op.Old.Schema, op.Old.Table)
		return err
	case OpTruncateTable:
		def, err = c.TruncateTable(w, op.Old.Schema, op.Old.Table, op.Table)
	case OpRenameTable:
		def, err = c.RenameTable(w, op.Old.Schema, op.Old.Table, op.Table.Schema, op.Table.Name)
	case OpReplaceTable, OpAddIndex, OpPublishIndex, OpDropIndex:
		def, err = c.ReplaceTable(w, op.Table)
	default:
		return fmt.Errorf("%w: %v", ErrSchemaOp, op.Kind)
	}
	return same(op, def, err)
}

func applySchemaChange(w *table.Worker, c *dict.Catalog, op *SchemaOp) error {
	old, err := c.FindSchema(w.Trx(), op.Schema.Name)
	if err != nil {
		return err
	}
	if old.ID != op.Schema.ID {
		return fmt.Errorf("%w: %v %s: its number is %d, not %d", ErrSchemaDiffers, op.Kind, old.Name, old.ID, op.Schema.ID)
	}
	if op.Kind == OpAlterSchema {
		return c.AlterSchema(w, op.Schema)
	}
	return c.DropSchema(w, op.Schema.Name)
}

// checkOld checks that the table that a change is of is the one meant.
func checkOld(w *table.Worker, c *dict.Catalog, op *SchemaOp) error {
	h, err := c.OpenTableByID(w.Trx(), op.OldID)
	if err != nil {
		return err
	}
	defer h.Release()
	def := h.Table().Schema.Table
	if n := (Name{def.Schema, def.Name}); n != op.Old {
		return fmt.Errorf("%w: %v %v: table %d is %v here", ErrSchemaDiffers, op.Kind, op.Old, op.OldID, n)
	}
	return nil
}

// same checks that a change has led to the definition of the log.
func same(op *SchemaOp, def *record.Table, err error) error {
	if err != nil {
		return err
	}
	if !bytes.Equal(appendTable(nil, def), appendTable(nil, op.Table)) {
		return fmt.Errorf("%w: %v %s.%s leads to another definition", ErrSchemaDiffers, op.Kind, def.Schema, def.Name)
	}
	return nil
}

func (n Name) compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Schema, o.Schema), cmp.Compare(n.Table, o.Table))
}

// String writes the name as people do.
func (n Name) String() string {
	if n.Table == "" {
		return n.Schema
	}
	return n.Schema + "." + n.Table
}
