package ast

import "github.com/triremedb/trireme/engine/types"

// ddl writes definitions.
func (f *formatter) ddl(s Statement) bool {
	switch s := s.(type) {
	case *CreateSchema:
		f.s("create database ")
		f.opt(s.IfNotExists, "if not exists ")
		f.name(s.Name)
		f.schemaOptions(s.Charset, s.Collate, s.Encryption)
	case *AlterSchema:
		f.s("alter database")
		if s.Name != "" {
			f.s(" ")
			f.name(s.Name)
		}
		f.schemaOptions(s.Charset, s.Collate, s.Encryption)
	case *DropSchema:
		f.s("drop database ")
		f.opt(s.IfExists, "if exists ")
		f.name(s.Name)
	case *CreateTable:
		f.createTable(s)
	case *AlterTable:
		f.alterTable(s)
	case *DropTable:
		f.s("drop ")
		f.opt(s.Temporary, "temporary ")
		f.s("table ")
		f.opt(s.IfExists, "if exists ")
		f.tables(s.Tables)
	case *Truncate:
		f.s("truncate table ")
		f.table(s.Table)
	case *RenameTables:
		f.s("rename table ")
		f.list(len(s.Renames), func(i int) {
			f.table(s.Renames[i].Old)
			f.s(" to ")
			f.table(s.Renames[i].New)
		})
	case *CreateIndex:
		f.createIndex(s)
	case *DropIndex:
		f.s("drop index ")
		f.opt(s.IfExists, "if exists ")
		f.name(s.Name)
		f.s(" on ")
		f.table(s.Table)
		f.lockAlgorithm(" ", s.Algorithm, s.Lock)
	case *CreateView:
		f.createView(s)
	case *DropView:
		f.s("drop view ")
		f.opt(s.IfExists, "if exists ")
		f.tables(s.Views)
	default:
		return false
	}
	return true
}

func (f *formatter) schemaOptions(charset, collate, encryption string) {
	f.charset(charset, collate)
	if encryption != "" {
		f.s(" default encryption ") // without DEFAULT the grammar wants a schema's name
		f.quote(encryption)
	}
}

func (f *formatter) charset(charset, collate string) {
	if charset != "" {
		f.s(" character set ", charset)
	}
	if collate != "" {
		f.s(" collate ", collate)
	}
}

func (f *formatter) createTable(s *CreateTable) {
	f.s("create ")
	f.opt(s.Temporary, "temporary ")
	f.s("table ")
	f.opt(s.IfNotExists, "if not exists ")
	f.table(s.Table)
	if s.Like != nil {
		f.s(" like ")
		f.table(*s.Like)
		return
	}
	if len(s.Columns)+len(s.Indexes)+len(s.ForeignKeys)+len(s.Checks) > 0 {
		f.s(" (")
		f.elements(s.Columns, s.Indexes, s.ForeignKeys, s.Checks)
		f.s(")")
	}
	for i := range s.Options {
		f.s(" ")
		f.option(&s.Options[i])
	}
	f.opt(s.Ignore, " ignore")
	f.opt(s.Replace, " replace")
	if s.Query != nil {
		f.s(" as ")
		f.query(s.Query)
	}
}

// elements writes what stands between the brackets of CREATE TABLE.
func (f *formatter) elements(columns []ColumnDef, indexes []IndexDef, keys []ForeignKey, checks []Check) {
	n := 0
	sep := func() { f.opt(n > 0, ","); n++ }
	for i := range columns {
		sep()
		f.columnDef(&columns[i])
	}
	for i := range indexes {
		sep()
		f.index(&indexes[i])
	}
	for i := range keys {
		sep()
		f.foreignKey(&keys[i])
	}
	for i := range checks {
		sep()
		f.check(&checks[i])
	}
}

func (f *formatter) columnType(t *ColumnType) {
	f.s(t.Kind.String())
	if t.Kind == types.KindEnum || t.Kind == types.KindSet {
		f.s("(")
		f.list(len(t.Members), func(i int) { f.quote(t.Members[i]) })
		f.s(")")
	} else {
		f.lengths(t)
	}
	if t.Unsigned {
		f.s(" unsigned")
	}
	f.opt(t.ZeroFill, " zerofill")
	f.opt(t.Binary, " binary")
	f.charset(t.Charset, t.Collate)
}

func (f *formatter) columnDef(d *ColumnDef) {
	f.name(d.Name)
	f.s(" ")
	f.columnType(&d.Type)
	if d.Generated != nil {
		f.s(" generated always as (")
		f.expr(d.Generated)
		f.s(")")
		if d.Stored {
			f.s(" stored")
		} else {
			f.s(" virtual")
		}
	}
	f.s([...]string{"", " null", " not null"}[d.Null])
	if d.Default != nil {
		f.s(" default ")
		f.defaultValue(d.Default, d.DefaultExpr)
	}
	if d.OnUpdate != nil {
		f.s(" on update ")
		f.expr(d.OnUpdate)
	}
	f.opt(d.AutoIncrement, " auto_increment")
	f.opt(d.PrimaryKey, " primary key")
	f.opt(d.Unique, " unique")
	f.opt(d.Invisible, " invisible")
	f.comment(d.Comment)
	for i := range d.Checks {
		f.s(" ")
		f.check(&d.Checks[i])
	}
	if d.References != nil {
		f.reference(d.References)
	}
}

func (f *formatter) defaultValue(e Expr, brackets bool) {
	f.opt(brackets, "(")
	f.expr(e)
	f.opt(brackets, ")")
}

func (f *formatter) comment(text string) {
	if text != "" {
		f.s(" comment ")
		f.quote(text)
	}
}

func (f *formatter) index(d *IndexDef) {
	f.s([...]string{"key", "primary key", "unique key", "fulltext key", "spatial key"}[d.Kind])
	f.opt(d.IfNotExists, " if not exists")
	if d.Name != "" {
		f.s(" ")
		f.name(d.Name)
	}
	f.s(" ")
	f.indexBody(d)
}

func (f *formatter) indexBody(d *IndexDef) {
	f.s("(")
	f.list(len(d.Parts), func(i int) {
		p := &d.Parts[i]
		if p.Expr != nil {
			f.s("(")
			f.expr(p.Expr)
			f.s(")")
		} else {
			f.name(p.Column)
			if p.Length > 0 {
				f.s("(")
				f.number(uint64(p.Length))
				f.s(")")
			}
		}
		f.opt(p.Desc, " desc")
	})
	f.s(")")
	if d.Using != "" {
		f.s(" using ", d.Using)
	}
	if d.KeyBlockSize != 0 {
		f.s(" key_block_size = ")
		f.number(d.KeyBlockSize)
	}
	f.comment(d.Comment)
	if d.Parser != "" {
		f.s(" with parser ")
		f.name(d.Parser)
	}
	f.opt(d.Invisible, " invisible")
}

func (f *formatter) foreignKey(k *ForeignKey) {
	if k.Name != "" {
		f.s("constraint ")
		f.name(k.Name)
		f.s(" ")
	}
	f.s("foreign key ")
	f.names(k.Columns)
	f.reference(&k.Reference)
}

var actionWords = [...]string{
	ActionDefault: "", ActionRestrict: "restrict", ActionCascade: "cascade", ActionSetNull: "set null",
	ActionNoAction: "no action", ActionSetDefault: "set default",
}

func (f *formatter) reference(r *Reference) {
	f.s(" references ")
	f.table(r.Table)
	if r.Columns != nil {
		f.s(" ")
		f.names(r.Columns)
	}
	if r.Match != "" {
		f.s(" match ", r.Match)
	}
	if r.OnDelete != ActionDefault {
		f.s(" on delete ", actionWords[r.OnDelete])
	}
	if r.OnUpdate != ActionDefault {
		f.s(" on update ", actionWords[r.OnUpdate])
	}
}

func (f *formatter) check(c *Check) {
	if c.Name != "" {
		f.s("constraint ")
		f.name(c.Name)
		f.s(" ")
	}
	f.s("check (")
	f.expr(c.Expr)
	f.s(")")
	f.opt(c.NotEnforced, " not enforced")
}

// numbered are the options of tables whose value is a number.
var numbered = map[string]bool{
	"AUTO_INCREMENT": true, "AVG_ROW_LENGTH": true, "CHECKSUM": true, "KEY_BLOCK_SIZE": true, "MAX_ROWS": true,
	"MIN_ROWS": true, "DELAY_KEY_WRITE": true, "STATS_PERSISTENT": true, "STATS_AUTO_RECALC": true,
	"STATS_SAMPLE_PAGES": true, "PACK_KEYS": true,
}

func (f *formatter) option(o *TableOption) {
	f.s(o.Name)
	if o.Name != "STORAGE" {
		f.s("=")
	} else {
		f.s(" ")
	}
	switch {
	case o.Name == "UNION":
		f.s("()") // the tables mean nothing
	case numbered[o.Name] && o.Value == "":
		f.number(o.Number)
	case o.Value == "DEFAULT", o.Name == "ROW_FORMAT", o.Name == "STORAGE", o.Name == "INSERT_METHOD":
		f.s(o.Value)
	case o.Name == "TABLESPACE":
		f.name(o.Value)
	default:
		f.quote(o.Value)
	}
}

func (f *formatter) createIndex(s *CreateIndex) {
	f.s("create ", [...]string{"", "", "unique ", "fulltext ", "spatial "}[s.Index.Kind], "index ")
	f.opt(s.Index.IfNotExists, "if not exists ")
	f.name(s.Index.Name)
	f.s(" on ")
	f.table(s.Table)
	f.s(" ")
	f.indexBody(&s.Index)
	f.lockAlgorithm(" ", s.Algorithm, s.Lock)
}

func (f *formatter) lockAlgorithm(sep, algorithm, lock string) {
	if algorithm != "" {
		f.s(sep, "algorithm = ", algorithm)
	}
	if lock != "" {
		f.s(sep, "lock = ", lock)
	}
}

func (f *formatter) createView(s *CreateView) {
	if s.Alter {
		f.s("alter ")
	} else {
		f.s("create ")
	}
	f.opt(s.OrReplace, "or replace ")
	f.s("algorithm=", s.Algorithm, " ")
	if s.Definer != nil {
		f.s("definer=")
		f.user(s.Definer)
		f.s(" ")
	}
	if s.Invoker {
		f.s("sql security invoker ")
	} else {
		f.s("sql security definer ")
	}
	f.s("view ")
	f.table(s.View)
	if s.Columns != nil {
		f.s(" ")
		f.names(s.Columns)
	}
	f.s(" as ")
	f.query(s.Query)
	if s.CheckOption != "" {
		f.s(" with ", s.CheckOption, " check option")
	}
}

func (f *formatter) alterTable(s *AlterTable) {
	f.s("alter table ")
	f.table(s.Table)
	sep := " "
	if s.Algorithm != "" {
		f.s(sep, "algorithm = ", s.Algorithm)
		sep = ", "
	}
	if s.Lock != "" {
		f.s(sep, "lock = ", s.Lock)
		sep = ", "
	}
	for _, a := range s.Specs { // ORDER BY takes what follows for columns
		f.s(sep)
		f.alterSpec(a)
		sep = ", "
	}
}
