// Package catalog is what SQL knows of tables beyond what the storage keeps: how a
// definition comes from the text of CREATE TABLE (Define), how it changes by ALTER TABLE
// (Alter), how it is written back byte for byte as MySQL does (ShowCreateTable), and what
// virtual tables are.
//
// # What definitions carry
//
// A record.Table has fields for most of a definition. The rest is text:
//
//	Column.Default     SQL text of an expression; see Default
//	Column.OnUpdate    CURRENT_TIMESTAMP(n), or empty
//	Column.Generated   text of the expression, computed on each write; see IsVirtual
//	Table.Options      attributes under the names of attr.go: checks, the text of a view,
//	                   the options of CREATE TABLE
//
// A view is a table without rows whose options hold its text (ViewOf): so its name is
// taken, it can be locked, renamed and dropped, and its columns have types. A functional
// key part is a hidden generated column.
//
// Text of expressions is that of ast.Format, with columns named without their table.
//
// # What it does not do
//
// It changes no catalogue and opens no table: the session does, with what this package
// computes. It binds no expressions, since that is done above it; types of functional key
// parts come through an interface (Typer).
package catalog
