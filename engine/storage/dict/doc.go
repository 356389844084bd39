// Package dict is the catalogue: schemas, tables, columns, indexes and foreign
// keys, kept in tables of its own, and the cache of open tables.
//
// # Tables of its own
//
// The catalogue's tables lie in the system tablespace. Their definitions are fixed
// (system.go), their root pages are in the slots of the system page. They are read
// and changed through package table in ordinary transactions, so that a change of
// the catalogue commits, rolls back and has versions like any row.
//
//	sys_schemas, sys_tables, sys_columns, sys_indexes, sys_foreign_keys
//	               definitions: logical, the same on all members
//	sys_state      keys and values of the layers above, the same on all members
//	sys_local      keys and values of this node alone
//	sys_physical   where tables and indexes lie on this node
//
// # Logical and physical
//
// What exists is what the logical rows say. sys_physical only tells where: its
// rows are written by small transactions of the node's own (without a number),
// before the logical rows that need them commit, and removed after those are gone.
//
// Invariant: a table or index that a committed logical row names has its physical
// row; a physical row without a logical one is garbage, whatever moment a crash
// chose, and [Catalog.Sweep] finds it. So neither rollback nor recovery needs to
// know about files.
//
// Numbers of tables and indexes are never used again: a truncated or rebuilt table
// is a new one under the old name. Undo of the old one finds no table, and a
// snapshot from before the table had that name is told so ([Catalog.CheckSnapshot]).
//
// # Pending changes
//
// A transaction sees its own changes of the catalogue, others see committed ones
// only. What a change means outside the tables (cache, files) is kept per
// transaction until [Catalog.Committed] or [Catalog.RolledBack] is called.
//
// # Open tables
//
// [Catalog.OpenTable] gives a [Handle], shared by all that use the table in that
// definition. The files of a dropped table and the trees of a dropped index are
// deleted when no handle and no snapshot from before is left, in the background. A
// snapshot of the past that can still be opened counts as one.
//
// # What it does not do
//
// It takes no metadata locks: the layer above makes sure that nobody changes rows
// of a table while another transaction changes its definition. It does not check
// foreign keys or defaults, and does not build indexes.
package dict
