package ast

import (
	past "github.com/pingcap/tidb/pkg/parser/ast"
)

// statement converts a whole statement. What is not listed MySQL does not know.
func (c *converter) statement(n past.StmtNode) Statement {
	switch n := n.(type) {
	case *past.SelectStmt:
		return c.selectStmt(n)
	case *past.SetOprStmt:
		return c.setOpr(n)
	case *past.InsertStmt:
		return c.insert(n)
	case *past.UpdateStmt:
		return c.update(n)
	case *past.DeleteStmt:
		return c.delete(n)
	case *past.LoadDataStmt:
		return c.loadData(n)
	case *past.DoStmt:
		return &Do{Exprs: c.exprs(n.Exprs)}
	case *past.CallStmt:
		return c.callStmt(n)
	}
	if s := c.ddl(n); s != nil {
		return s
	}
	c.refuse()
	return &Do{}
}
