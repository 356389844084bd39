package ast

import (
	"strings"

	past "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// ddl converts definitions, or returns nil.
func (c *converter) ddl(n past.StmtNode) Statement {
	switch n := n.(type) {
	case *past.CreateDatabaseStmt:
		s := &CreateSchema{Name: n.Name.O, IfNotExists: n.IfNotExists}
		for _, o := range n.Options {
			c.schemaOption(o, &s.Charset, &s.Collate, &s.Encryption)
		}
		return s
	case *past.AlterDatabaseStmt:
		s := &AlterSchema{Name: n.Name.O}
		if s.Name == "" && !n.AlterDefaultDatabase {
			c.fail(sqlerr.New(sqlerr.WrongDBName, ""))
		}
		for _, o := range n.Options {
			c.schemaOption(o, &s.Charset, &s.Collate, &s.Encryption)
		}
		return s
	case *past.DropDatabaseStmt:
		return &DropSchema{Name: n.Name.O, IfExists: n.IfExists}
	case *past.CreateTableStmt:
		return c.createTable(n)
	case *past.AlterTableStmt:
		return c.alterTable(n)
	case *past.DropTableStmt:
		if n.IsView {
			return &DropView{Views: c.tableNames(n.Tables), IfExists: n.IfExists}
		}
		c.temporary(n.TemporaryKeyword)
		return &DropTable{Tables: c.tableNames(n.Tables), IfExists: n.IfExists,
			Temporary: n.TemporaryKeyword == past.TemporaryLocal}
	case *past.TruncateTableStmt:
		return &Truncate{Table: c.tableName(n.Table)}
	case *past.RenameTableStmt:
		s := &RenameTables{}
		for _, r := range n.TableToTables {
			s.Renames = append(s.Renames, Rename{Old: c.tableName(r.OldTable), New: c.tableName(r.NewTable)})
		}
		return s
	case *past.CreateIndexStmt:
		return c.createIndex(n)
	case *past.DropIndexStmt:
		return c.dropIndex(n)
	}
	return nil
}

func (c *converter) schemaOption(o *past.DatabaseOption, charset, collate, encryption *string) {
	switch o.Tp {
	case past.DatabaseOptionCharset:
		*charset = strings.ToLower(o.Value)
	case past.DatabaseOptionCollate:
		*collate = strings.ToLower(o.Value)
	case past.DatabaseOptionEncryption:
		*encryption = strings.ToUpper(o.Value)
	default:
		c.refuse()
	}
}

func (c *converter) temporary(k past.TemporaryKeyword) {
	if k == past.TemporaryGlobal {
		c.refuse()
	}
}

func (c *converter) createTable(n *past.CreateTableStmt) Statement {
	if n.Partition != nil {
		c.fail(unsupported("PARTITION BY"))
	}
	if len(n.SplitIndex) > 0 || n.OnCommitDelete {
		c.refuse()
	}
	c.temporary(n.TemporaryKeyword)
	s := &CreateTable{
		Table:       c.tableName(n.Table),
		Temporary:   n.TemporaryKeyword == past.TemporaryLocal,
		IfNotExists: n.IfNotExists,
		Options:     c.tableOptions(n.Options),
		Ignore:      n.OnDuplicate == past.OnDuplicateKeyHandlingIgnore,
		Replace:     n.OnDuplicate == past.OnDuplicateKeyHandlingReplace,
	}
	if n.ReferTable != nil {
		like := c.tableName(n.ReferTable)
		s.Like = &like
	}
	for _, col := range n.Cols {
		s.Columns = append(s.Columns, c.columnDef(col))
	}
	for _, k := range n.Constraints {
		c.constraint(k, &s.Indexes, &s.ForeignKeys, &s.Checks)
	}
	if n.Select != nil {
		s.Query = c.query(n.Select)
	}
	return s
}

func (c *converter) columnDef(n *past.ColumnDef) ColumnDef {
	d := ColumnDef{Name: n.Name.Name.O, Type: c.columnType(n.Tp)}
	for _, o := range n.Options {
		c.columnOption(&d, o)
	}
	if c.subst != nil {
		d.Invisible = c.subst.visible[strings.ToLower(d.Name)]
	}
	return d
}

func (c *converter) columnOption(d *ColumnDef, o *past.ColumnOption) {
	if o.PrimaryKeyTp != past.PrimaryKeyTypeDefault || strings.EqualFold(o.StrValue, "global") {
		c.refuse()
	}
	switch o.Tp {
	case past.ColumnOptionPrimaryKey:
		d.PrimaryKey = true
	case past.ColumnOptionNotNull:
		d.Null = NotNull
	case past.ColumnOptionNull:
		d.Null = NullAllowed
	case past.ColumnOptionAutoIncrement:
		d.AutoIncrement = true
	case past.ColumnOptionDefaultValue:
		d.Default, d.DefaultExpr = c.defaultValue(o.Expr)
	case past.ColumnOptionUniqKey:
		d.Unique = true
	case past.ColumnOptionOnUpdate:
		d.OnUpdate = c.expr(o.Expr)
	case past.ColumnOptionComment:
		d.Comment = o.Expr.(*valueNode).GetString()
	case past.ColumnOptionGenerated:
		d.Generated, d.Stored = c.expr(o.Expr), o.Stored
	case past.ColumnOptionReference:
		r := c.reference(o.Refer)
		d.References = &r
	case past.ColumnOptionCollate:
		d.Type.Collate = strings.ToLower(o.StrValue)
	case past.ColumnOptionCheck:
		d.Checks = append(d.Checks, Check{Name: o.ConstraintName, Expr: c.expr(o.Expr), NotEnforced: !o.Enforced})
	case past.ColumnOptionColumnFormat, past.ColumnOptionStorage:
		if !strings.EqualFold(o.StrValue, "DEFAULT") {
			d.Kept = append(d.Kept, map[past.ColumnOptionType]string{past.ColumnOptionColumnFormat: "COLUMN_FORMAT", past.ColumnOptionStorage: "STORAGE"}[o.Tp])
		}
	case past.ColumnOptionSecondaryEngineAttribute:
		d.Kept = append(d.Kept, "SECONDARY_ENGINE_ATTRIBUTE")
	default:
		c.refuse()
	}
}

// defaultValue converts the value of DEFAULT and tells expressions in brackets from
// constants and CURRENT_TIMESTAMP.
func (c *converter) defaultValue(n past.ExprNode) (e Expr, brackets bool) {
	e = c.expr(n)
	if d := c.defaultFor(e); d != nil {
		l, ok := d.(*Literal) // Format may have put a number into brackets
		return d, !ok || l.Kind != LiteralDecimal
	}
	switch v := e.(type) {
	case *Literal:
		return e, false
	case *Unary:
		if _, ok := v.Operand.(*Literal); ok {
			return e, false
		}
	case *Func:
		if v.Name == "now" {
			return e, false
		}
	}
	c.refuse()
	return e, false
}

// constraint converts a key or constraint into one of the lists.
func (c *converter) constraint(n *past.Constraint, indexes *[]IndexDef, keys *[]ForeignKey, checks *[]Check) {
	switch n.Tp {
	case past.ConstraintForeignKey:
		*keys = append(*keys, c.foreignKey(n))
		return
	case past.ConstraintCheck:
		*checks = append(*checks, Check{Name: n.Name, Expr: c.expr(n.Expr), NotEnforced: !n.Enforced})
		return
	}
	d := IndexDef{Name: n.Name, IfNotExists: n.IfNotExists, Parts: c.indexParts(n.Keys)}
	switch n.Tp {
	case past.ConstraintPrimaryKey:
		d.Kind, d.Name = IndexPrimary, ""
	case past.ConstraintKey, past.ConstraintIndex:
	case past.ConstraintUniq, past.ConstraintUniqKey, past.ConstraintUniqIndex:
		d.Kind = IndexUnique
	case past.ConstraintFulltext:
		d.Kind = IndexFullText
	default:
		c.refuse()
	}
	c.indexOption(&d, n.Option)
	if d.Parser != "" && d.Kind != IndexFullText {
		c.fail(syntaxError(c.sql, max(0, strings.Index(upper(c.sql), "PARSER")), 0))
	}
	*indexes = append(*indexes, d)
}

func (c *converter) indexParts(list []*past.IndexPartSpecification) []IndexPart {
	out := make([]IndexPart, len(list))
	for i, k := range list {
		out[i] = IndexPart{Desc: k.Desc}
		if k.Expr != nil {
			out[i].Expr = c.expr(k.Expr)
			continue
		}
		out[i].Column = k.Column.Name.O
		if k.Length > 0 {
			out[i].Length = k.Length
		} else if k.Length == 0 {
			c.fail(sqlerr.New(sqlerr.KeyPart0, k.Column.Name.O))
		}
	}
	return out
}

func (c *converter) indexOption(d *IndexDef, o *past.IndexOption) {
	if o == nil {
		return
	}
	if o.Global || o.SplitOpt != nil || o.Condition != nil || o.PrimaryKeyTp != past.PrimaryKeyTypeDefault ||
		o.AddColumnarReplicaOnDemand != 0 {
		c.refuse()
	}
	d.KeyBlockSize = o.KeyBlockSize
	d.Comment = o.Comment
	d.Parser = o.ParserName.O
	d.Invisible = o.Visibility == past.IndexVisibilityInvisible
	switch o.Tp {
	case past.IndexTypeInvalid:
	case past.IndexTypeBtree, past.IndexTypeHash:
		d.Using = o.Tp.String()
	default:
		c.refuse()
	}
}

func (c *converter) foreignKey(n *past.Constraint) ForeignKey {
	k := ForeignKey{Name: n.Name, Reference: c.reference(n.Refer)}
	for _, p := range n.Keys {
		k.Columns = append(k.Columns, p.Column.Name.O)
	}
	return k
}

func (c *converter) reference(n *past.ReferenceDef) Reference {
	r := Reference{Table: c.tableName(n.Table)}
	for _, p := range n.IndexPartSpecifications {
		if p.Column == nil {
			c.refuse()
			continue
		}
		r.Columns = append(r.Columns, p.Column.Name.O)
	}
	switch n.Match {
	case past.MatchFull:
		r.Match = "FULL"
	case past.MatchPartial:
		r.Match = "PARTIAL"
	case past.MatchSimple:
		r.Match = "SIMPLE"
	}
	if n.OnDelete != nil {
		r.OnDelete = action(n.OnDelete.ReferOpt)
	}
	if n.OnUpdate != nil {
		r.OnUpdate = action(n.OnUpdate.ReferOpt)
	}
	return r
}

func action(o past.ReferOptionType) Action {
	switch o {
	case past.ReferOptionRestrict:
		return ActionRestrict
	case past.ReferOptionCascade:
		return ActionCascade
	case past.ReferOptionSetNull:
		return ActionSetNull
	case past.ReferOptionNoAction:
		return ActionNoAction
	case past.ReferOptionSetDefault:
		return ActionSetDefault
	}
	return ActionDefault
}

func (c *converter) createIndex(n *past.CreateIndexStmt) Statement {
	s := &CreateIndex{Table: c.tableName(n.Table)}
	s.Index = IndexDef{Name: n.IndexName, IfNotExists: n.IfNotExists, Parts: c.indexParts(n.IndexPartSpecifications)}
	switch n.KeyType {
	case past.IndexKeyTypeNone:
	case past.IndexKeyTypeUnique:
		s.Index.Kind = IndexUnique
	case past.IndexKeyTypeFulltext:
		s.Index.Kind = IndexFullText
	case past.IndexKeyTypeSpatial:
		s.Index.Kind = IndexSpatial
	default:
		c.refuse()
	}
	c.indexOption(&s.Index, n.IndexOption)
	s.Algorithm, s.Lock = lockAlgorithm(n.LockAlg)
	return s
}

func (c *converter) dropIndex(n *past.DropIndexStmt) Statement {
	if n.IsHypo {
		c.refuse()
	}
	s := &DropIndex{Table: c.tableName(n.Table), Name: n.IndexName, IfExists: n.IfExists}
	s.Algorithm, s.Lock = lockAlgorithm(n.LockAlg)
	return s
}

// lockAlgorithm converts ALGORITHM and LOCK. The grammar does not tell DEFAULT from
// nothing; they mean the same.
func lockAlgorithm(n *past.IndexLockAndAlgorithm) (algorithm, lock string) {
	if n == nil {
		return "", ""
	}
	if n.AlgorithmTp != past.AlgorithmTypeDefault {
		algorithm = n.AlgorithmTp.String()
	}
	if n.LockTp != past.LockTypeDefault {
		lock = n.LockTp.String()
	}
	return algorithm, lock
}
