package ast

import (
	past "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// single returns the table of a statement that has one.
func (c *converter) single(n *past.TableRefsClause) TableName {
	if t, ok := c.from(n).(*TableRef); ok {
		return t.TableName
	}
	c.refuse()
	return TableName{}
}

func (c *converter) insert(n *past.InsertStmt) Statement {
	out := &Insert{
		Replace:     n.IsReplace,
		Ignore:      n.IgnoreErr,
		LowPriority: n.Priority == mysql.LowPriority,
		Delayed:     n.Priority == mysql.DelayedPriority,
		Table:       c.single(n.Table),
		Partitions:  names(n.PartitionNames),
	}
	if n.Columns != nil {
		out.Columns = columnNames(n.Columns)
	}
	if n.Select != nil {
		out.Query = c.query(n.Select)
	} else {
		out.Rows = make([][]Expr, len(n.Lists))
		for i, row := range n.Lists {
			out.Rows[i] = c.exprs(row)
		}
	}
	out.OnDuplicate = c.assignments(n.OnDuplicate)
	return out
}

func (c *converter) assignments(list []*past.Assignment) []Assignment {
	if len(list) == 0 {
		return nil
	}
	out := make([]Assignment, len(list))
	for i, a := range list {
		out[i] = Assignment{Column: column(a.Column), Value: c.expr(a.Expr)}
	}
	return out
}

func (c *converter) update(n *past.UpdateStmt) Statement {
	return &Update{
		With:        c.with(n.With),
		Ignore:      n.IgnoreErr,
		LowPriority: n.Priority == mysql.LowPriority,
		Table:       c.from(n.TableRefs),
		Set:         c.assignments(n.List),
		Where:       c.opt(n.Where),
		OrderBy:     c.orderBy(n.Order),
		Limit:       c.limit(n.Limit),
	}
}

func (c *converter) delete(n *past.DeleteStmt) Statement {
	out := &Delete{
		With:        c.with(n.With),
		Ignore:      n.IgnoreErr,
		LowPriority: n.Priority == mysql.LowPriority,
		Quick:       n.Quick,
		From:        c.from(n.TableRefs),
		Where:       c.opt(n.Where),
		OrderBy:     c.orderBy(n.Order),
		Limit:       c.limit(n.Limit),
	}
	if n.IsMultiTable {
		out.Targets = c.tableNames(n.Tables.Tables)
	}
	return out
}

func (c *converter) loadData(n *past.LoadDataStmt) Statement {
	if n.Format != nil || len(n.Options) > 0 {
		c.refuse()
	}
	out := &LoadData{
		Local:   n.FileLocRef == past.FileLocClient,
		File:    n.Path,
		Replace: n.OnDuplicate == past.OnDuplicateKeyHandlingReplace,
		Ignore:  n.OnDuplicate == past.OnDuplicateKeyHandlingIgnore,
		Table:   c.tableName(n.Table),
		Fields:  LoadFields{Terminated: "\t", Escaped: "\\"},
		Lines:   LoadLines{Terminated: "\n"},
		Set:     c.assignments(n.ColumnAssignments),
	}
	assign(&out.Charset, n.Charset)
	if f := n.FieldsInfo; f != nil {
		if f.DefinedNullBy != nil {
			c.refuse()
		}
		assign(&out.Fields.Terminated, f.Terminated)
		assign(&out.Fields.Enclosed, f.Enclosed)
		assign(&out.Fields.Escaped, f.Escaped)
		out.Fields.OptionallyEnclosed = f.OptEnclosed
	}
	if l := n.LinesInfo; l != nil {
		assign(&out.Lines.Starting, l.Starting)
		assign(&out.Lines.Terminated, l.Terminated)
	}
	if n.IgnoreLines != nil {
		out.Skip = *n.IgnoreLines
	}
	for _, col := range n.ColumnsAndUserVars {
		if col.UserVar != nil {
			out.Columns = append(out.Columns, &Variable{Name: col.UserVar.Name, User: true})
		} else {
			out.Columns = append(out.Columns, column(col.ColumnName))
		}
	}
	return out
}

func assign(to *string, from *string) {
	if from != nil {
		*to = *from
	}
}

func (c *converter) callStmt(n *past.CallStmt) Statement {
	p := n.Procedure
	return &Call{Schema: p.Schema.O, Name: p.FnName.O, Args: c.exprs(p.Args)}
}
