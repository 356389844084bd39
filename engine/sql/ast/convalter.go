package ast

import (
	"strings"

	past "github.com/pingcap/tidb/pkg/parser/ast"
)

// tableOptionNames are the options of tables that MySQL knows.
var tableOptionNames = map[past.TableOptionType]string{
	past.TableOptionEngine:                   "ENGINE",
	past.TableOptionCharset:                  "CHARSET",
	past.TableOptionCollate:                  "COLLATE",
	past.TableOptionAutoIncrement:            "AUTO_INCREMENT",
	past.TableOptionComment:                  "COMMENT",
	past.TableOptionAvgRowLength:             "AVG_ROW_LENGTH",
	past.TableOptionCheckSum:                 "CHECKSUM",
	past.TableOptionTableCheckSum:            "CHECKSUM",
	past.TableOptionCompression:              "COMPRESSION",
	past.TableOptionConnection:               "CONNECTION",
	past.TableOptionPassword:                 "PASSWORD",
	past.TableOptionKeyBlockSize:             "KEY_BLOCK_SIZE",
	past.TableOptionMaxRows:                  "MAX_ROWS",
	past.TableOptionMinRows:                  "MIN_ROWS",
	past.TableOptionDelayKeyWrite:            "DELAY_KEY_WRITE",
	past.TableOptionRowFormat:                "ROW_FORMAT",
	past.TableOptionStatsPersistent:          "STATS_PERSISTENT",
	past.TableOptionStatsAutoRecalc:          "STATS_AUTO_RECALC",
	past.TableOptionStatsSamplePages:         "STATS_SAMPLE_PAGES",
	past.TableOptionPackKeys:                 "PACK_KEYS",
	past.TableOptionTablespace:               "TABLESPACE",
	past.TableOptionDataDirectory:            "DATA DIRECTORY",
	past.TableOptionIndexDirectory:           "INDEX DIRECTORY",
	past.TableOptionStorageMedia:             "STORAGE",
	past.TableOptionSecondaryEngine:          "SECONDARY_ENGINE",
	past.TableOptionInsertMethod:             "INSERT_METHOD",
	past.TableOptionUnion:                    "UNION",
	past.TableOptionEncryption:               "ENCRYPTION",
	past.TableOptionEngineAttribute:          "ENGINE_ATTRIBUTE",
	past.TableOptionSecondaryEngineAttribute: "SECONDARY_ENGINE_ATTRIBUTE",
	past.TableOptionAutoextendSize:           "AUTOEXTEND_SIZE",
}

var rowFormats = map[uint64]string{
	past.RowFormatDefault: "DEFAULT", past.RowFormatDynamic: "DYNAMIC", past.RowFormatFixed: "FIXED",
	past.RowFormatCompressed: "COMPRESSED", past.RowFormatRedundant: "REDUNDANT", past.RowFormatCompact: "COMPACT",
}

func (c *converter) tableOptions(list []*past.TableOption) []TableOption {
	var out []TableOption
	for _, o := range list {
		if o.Tp == past.TableOptionNone || o.Tp == past.TableOptionSecondaryEngineNull {
			continue
		}
		name, ok := tableOptionNames[o.Tp]
		if !ok {
			c.refuse()
		}
		t := TableOption{Name: name, Value: o.StrValue, Number: o.UintValue}
		switch o.Tp {
		case past.TableOptionCharset, past.TableOptionCollate:
			t.Value, t.Number = strings.ToLower(t.Value), 0
		case past.TableOptionRowFormat:
			t.Value, t.Number = rowFormats[o.UintValue], 0
			if t.Value == "" {
				c.refuse()
			}
		}
		if o.Default {
			t.Value = "DEFAULT"
		}
		out = append(out, t)
	}
	return out
}

func (c *converter) alterTable(n *past.AlterTableStmt) Statement {
	s := &AlterTable{Table: c.tableName(n.Table)}
	for _, spec := range n.Specs {
		switch spec.Tp {
		case past.AlterTableAlgorithm:
			s.Algorithm = spec.Algorithm.String()
		case past.AlterTableLock:
			s.Lock = spec.LockType.String()
		case past.AlterTableWithValidation:
			s.Validation = "WITH"
		case past.AlterTableWithoutValidation:
			s.Validation = "WITHOUT"
		default:
			if a := c.alterSpec(spec); a != nil {
				s.Specs = append(s.Specs, a)
			}
		}
	}
	return s
}

// alterSpec converts one change.
func (c *converter) alterSpec(n *past.AlterTableSpec) AlterSpec {
	switch n.Tp {
	case past.AlterTableOption:
		return c.alterOptions(n)
	case past.AlterTableAddColumns:
		a := &AddColumns{IfNotExists: n.IfNotExists, Position: position(n.Position)}
		for _, d := range n.NewColumns {
			a.Columns = append(a.Columns, c.columnDef(d))
		}
		for _, k := range n.NewConstraints {
			c.constraint(k, &a.Indexes, &a.ForeignKeys, &a.Checks)
		}
		return a
	case past.AlterTableAddConstraint:
		return c.addConstraint(n)
	case past.AlterTableDropColumn:
		return &DropColumn{Name: n.OldColumnName.Name.O, IfExists: n.IfExists}
	case past.AlterTableModifyColumn:
		d := c.columnDef(n.NewColumns[0])
		return &ChangeColumn{Old: d.Name, Column: d, Position: position(n.Position), IfExists: n.IfExists}
	case past.AlterTableChangeColumn:
		return &ChangeColumn{Old: n.OldColumnName.Name.O, Column: c.columnDef(n.NewColumns[0]),
			Position: position(n.Position), IfExists: n.IfExists}
	case past.AlterTableRenameColumn:
		return &RenameColumn{Old: n.OldColumnName.Name.O, New: n.NewColumnName.Name.O}
	case past.AlterTableAlterColumn:
		d := n.NewColumns[0]
		c.alters++
		if c.subst != nil {
			if invisible, ok := c.subst.altered[c.alters]; ok {
				return &SetColumnVisible{Column: d.Name.Name.O, Invisible: invisible}
			}
		}
		a := &SetDefault{Column: d.Name.Name.O}
		if len(d.Options) > 0 {
			a.Default, a.DefaultExpr = c.defaultValue(d.Options[0].Expr)
		}
		return a
	case past.AlterTableDropPrimaryKey:
		return &DropIndexSpec{Name: "PRIMARY"}
	case past.AlterTableDropIndex:
		return &DropIndexSpec{Name: n.Name, IfExists: n.IfExists}
	case past.AlterTableDropForeignKey:
		return &DropForeignKey{Name: n.Name, IfExists: n.IfExists}
	}
	return c.rareSpec(n)
}

func (c *converter) rareSpec(n *past.AlterTableSpec) AlterSpec {
	switch n.Tp {
	case past.AlterTableRenameTable:
		return &RenameTo{Table: c.tableName(n.NewTable)}
	case past.AlterTableRenameIndex:
		return &RenameIndex{Old: n.FromKey.O, New: n.ToKey.O}
	case past.AlterTableForce:
		return &Force{}
	case past.AlterTableEnableKeys:
		return &SetKeys{}
	case past.AlterTableDisableKeys:
		return &SetKeys{Disable: true}
	case past.AlterTableAlterCheck:
		return &SetCheckEnforced{Name: n.Constraint.Name, NotEnforced: !n.Constraint.Enforced}
	case past.AlterTableDropCheck:
		// The grammar does not tell CHECK from CONSTRAINT.
		return &DropConstraint{Name: n.Constraint.Name, Any: true}
	case past.AlterTableIndexInvisible:
		return &SetIndexVisible{Name: n.IndexName.O, Invisible: n.Visibility == past.IndexVisibilityInvisible}
	case past.AlterTableOrderByColumns:
		a := &OrderRows{}
		for _, item := range n.OrderByList {
			a.By = append(a.By, OrderItem{Expr: column(item.Column), Desc: item.Desc})
		}
		return a
	case past.AlterTableAddPartitions, past.AlterTableCoalescePartitions, past.AlterTableDropPartition,
		past.AlterTableTruncatePartition, past.AlterTablePartition, past.AlterTableRemovePartitioning,
		past.AlterTableRebuildPartition, past.AlterTableReorganizePartition, past.AlterTableCheckPartitions,
		past.AlterTableExchangePartition, past.AlterTableOptimizePartition, past.AlterTableRepairPartition,
		past.AlterTableImportPartitionTablespace, past.AlterTableDiscardPartitionTablespace:
		c.fail(unsupported("PARTITION"))
	case past.AlterTableImportTablespace, past.AlterTableDiscardTablespace:
		c.fail(unsupported("TABLESPACE"))
	case past.AlterTableSecondaryLoad, past.AlterTableSecondaryUnload:
		c.fail(unsupported("SECONDARY_LOAD"))
	default:
		c.refuse()
	}
	return nil
}

func (c *converter) addConstraint(n *past.AlterTableSpec) AlterSpec {
	var indexes []IndexDef
	var keys []ForeignKey
	var checks []Check
	c.constraint(n.Constraint, &indexes, &keys, &checks)
	switch {
	case keys != nil:
		return &AddForeignKey{ForeignKey: keys[0]}
	case checks != nil:
		return &AddCheck{Check: checks[0]}
	case indexes != nil:
		return &AddIndex{Index: indexes[0]}
	}
	return nil
}

// alterOptions converts table options; CONVERT TO is among them.
func (c *converter) alterOptions(n *past.AlterTableSpec) AlterSpec {
	if len(n.Options) > 0 && n.Options[0].Tp == past.TableOptionCharset &&
		n.Options[0].UintValue == past.TableOptionCharsetWithConvertTo {
		a := &ConvertCharset{Charset: strings.ToLower(n.Options[0].StrValue)}
		if len(n.Options) > 1 {
			a.Collate = strings.ToLower(n.Options[1].StrValue)
		}
		return a
	}
	return &SetOptions{Options: c.tableOptions(n.Options)}
}

func position(p *past.ColumnPosition) Position {
	if p == nil {
		return Position{}
	}
	switch p.Tp {
	case past.ColumnPositionFirst:
		return Position{First: true}
	case past.ColumnPositionAfter:
		return Position{After: p.RelativeColumn.Name.O}
	}
	return Position{}
}
