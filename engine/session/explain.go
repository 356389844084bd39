package session

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/exec"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// runExplain is EXPLAIN.
func (s *Session) runExplain(ctx context.Context, st *ast.Explain) (Outcome, error) {
	var out Outcome
	if st.Statement == nil {
		return out, notSupported("EXPLAIN FOR CONNECTION")
	}
	format, err := s.explainFormat(st)
	if err != nil {
		return out, err
	}
	s.startLimit()
	if err := s.pointDefinitions(); err != nil {
		return out, err
	}
	if st.Schema != "" {
		name, _, err := s.usable(st.Schema)
		if err != nil {
			return out, err
		}
		defer func(current string) { s.schema = current }(s.schema)
		s.schema = name
	}
	c, err := s.compile(st.Statement, s.work.params)
	if err == nil {
		_, err = s.openTables(c)
	}
	if err == nil && s.trx.active && s.trx.readOnly && (c.insert != nil || c.change != nil) && !s.changesOwn(c) {
		err = txn.ErrReadOnly
	}
	if err == nil {
		err = s.mayExplainViews(c)
	}
	if err == nil {
		err = s.mayExplain(c)
	}
	if err == nil {
		s.warnAll(c.kept)
		err = s.explain(c, st, format)
	}
	return out, s.finishWork(ctx, c, &out, err)
}

// explainFormats are the values of explain_format.
var explainFormats = []string{"TRADITIONAL", "JSON", "TREE"}

// explainFormat is the format that an EXPLAIN writes. Errors: 1235, 6006, 6007, 6412.
func (s *Session) explainFormat(st *ast.Explain) (string, error) {
	format := st.Format
	switch {
	case st.Into != "" && format == "":
		return "", sqlerr.New(sqlerr.ExplainIntoImplicitFormatNotSupported)
	case st.Into != "" && format != "JSON":
		return "", sqlerr.New(sqlerr.ExplainIntoFormatNotSupported, format)
	case st.Analyze && format == "TRADITIONAL":
		return "", notSupported("EXPLAIN ANALYZE with TRADITIONAL format")
	case format == "":
		format = explainFormats[s.opt.explainFormat]
	}
	if st.Analyze && format == "TRADITIONAL" {
		format = "TREE"
	}
	if st.Analyze && format == "JSON" && s.opt.explainJSON == 1 {
		return "", sqlerr.New(sqlerr.ExplainAnalyzeJSONFormatVersionNotSupported)
	}
	return format, nil
}

// mayExplain asks for the privileges that the statement itself needs.
func (s *Session) mayExplain(c *compiled) error {
	return s.mayRun(c.uses, c.verb(), c.kind)
}

// verb is the word that the statement begins with.
func (c *compiled) verb() string {
	switch {
	case c.insert != nil && c.insert.replace:
		return "REPLACE"
	case c.insert != nil:
		return "INSERT"
	case c.change != nil && c.change.update:
		return "UPDATE"
	case c.change != nil:
		return "DELETE"
	}
	return "SELECT"
}

// mayExplainViews checks that who asks may see what the views of a statement read: with SHOW VIEW on each, and SELECT on the
// tables below. Error: 1345.
func (s *Session) mayExplainViews(c *compiled) error {
	a := s.privileges()
	for i := range c.tables {
		if t := &c.tables[i]; t.view && a.TableMask(t.schema, t.name)&(priv.ShowView|priv.Select) != priv.ShowView|priv.Select {
			return errExplain()
		}
	}
	for i := range c.uses {
		if u := &c.uses[i]; u.View != "" && a.Columns(u.Schema, u.Table, u.Columns, priv.Select, "SELECT") != nil {
			return errExplain()
		}
	}
	return nil
}

func errExplain() error {
	return sqlerr.New(sqlerr.ViewNoExplain)
}

// explain writes the plan of a compiled statement.
func (s *Session) explain(c *compiled, st *ast.Explain, format string) error {
	q := c.query
	if c.change != nil {
		q = &c.change.plan.Query
	}
	var ran *exec.Tree
	if st.Analyze {
		if c.change != nil || c.insert != nil {
			return notSupported("EXPLAIN ANALYZE of a statement that changes rows")
		}
		var err error
		if ran, err = s.analyze(c); err != nil {
			return err
		}
		defer ran.Close()
	}
	switch {
	case format == "JSON":
		text := s.explainJSON(c, q, ran)
		if st.Into != "" {
			return s.setUserVariable(st.Into, types.NewString(text), explainText)
		}
		return s.sendText("EXPLAIN", text)
	case format == "TREE" && q == nil:
		return s.sendText("EXPLAIN", fmt.Sprintf("-> Insert into %s\n", c.insert.info.keys.Name))
	case format == "TREE":
		return s.sendText("EXPLAIN", plan.Tree(q.Root, measuredText(ran)))
	}
	var list []plan.ExplainRow
	if c.insert != nil {
		list = append(list, plan.ExplainRow{ID: 1, SelectType: "INSERT", Table: c.insert.info.keys.Name, Type: "ALL", Rows: -1})
	}
	if q != nil {
		list = append(list, plan.Rows(q)...)
	}
	return s.sendExplainTable(list)
}

var explainText = &types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}

// explainJSON is the plan of a compiled statement as JSON, in the version that the session has set; q is nil for rows that are given.
func (s *Session) explainJSON(c *compiled, q *plan.Query, ran *exec.Tree) string {
	e := plan.Explained{Kind: strings.ToLower(c.verb()), Text: ast.Format(c.kind)}
	var root plan.Node
	if q != nil {
		root = q.Root
	}
	if c.insert != nil {
		e.Into = c.insert.info.keys.Name
	}
	if s.opt.explainJSON == 1 {
		return plan.JSONBlock(root, e)
	}
	if ran != nil {
		e.Measured = func(n plan.Node) plan.Measured { return measured(ran, n) }
	}
	return plan.JSONTree(root, e)
}

// measured is what a run has measured of an operator: no loops if it was not run.
func measured(ran *exec.Tree, n plan.Node) (r plan.Measured) {
	m, ok := ran.Meter(n)
	if !ok {
		return r
	}
	loops := float64(m.Loops)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / loops }
	return plan.Measured{Loops: int64(m.Loops), Rows: float64(m.Rows) / loops, First: ms(m.First), Last: ms(m.Total)}
}

// measuredText writes that in a line of a tree; nil: nothing was run.
func measuredText(ran *exec.Tree) func(plan.Node) string {
	if ran == nil {
		return nil
	}
	return func(n plan.Node) string {
		m := measured(ran, n)
		if m.Loops == 0 {
			return " (never executed)"
		}
		return fmt.Sprintf(" (actual time=%.3f..%.3f rows=%s loops=%d)", m.First, m.Last, strconv.FormatFloat(m.Rows, 'f', -1, 64), m.Loops)
	}
}

// sendText sends one row with one text.
func (s *Session) sendText(name, text string) error {
	col := ResultColumn{Name: name, Type: explainText}
	b := types.NewBatch([]*types.Type{col.Type})
	b.AppendRow([]types.Value{types.NewString(text)})
	return s.sendRows([]ResultColumn{col}, b)
}

// sendExplainTable sends the traditional form.
func (s *Session) sendExplainTable(list []plan.ExplainRow) error {
	bigint := &types.Type{Kind: types.KindBigInt, Unsigned: true}
	double := &types.Type{Kind: types.KindDouble}
	cols := []ResultColumn{{Name: "id", Type: bigint}, textColumn("select_type", 19), textColumn("table", 64), textColumn("partitions", 64),
		textColumn("type", 10), textColumn("possible_keys", 4096), textColumn("key", 64), textColumn("key_len", 64), textColumn("ref", 1024),
		{Name: "rows", Type: bigint}, {Name: "filtered", Type: double}, textColumn("Extra", 1024)}
	b := types.NewBatch(columnTypes(cols))
	text := func(v string) types.Value {
		if v == "" {
			return types.Null
		}
		return types.NewString(v)
	}
	for i := range list {
		r := &list[i]
		id, rows, filtered := types.NewUint(uint64(r.ID)), types.NewUint(uint64(max(r.Rows, 0))), types.NewDouble(math.Round(r.Filtered*100)/100)
		if r.ID == 0 {
			id = types.Null
		}
		if r.Rows < 0 {
			rows, filtered = types.Null, types.Null
		}
		b.AppendRow([]types.Value{id, text(r.SelectType), text(r.Table), text(r.Partitions), text(r.Type), text(r.PossibleKeys),
			text(r.Key), text(r.KeyLen), text(r.Ref), rows, filtered, text(r.Extra)})
	}
	return s.sendRows(cols, b)
}

// analyze runs a query and drops its rows. The caller closes the tree, which has what was measured.
func (s *Session) analyze(c *compiled) (*exec.Tree, error) {
	if len(c.tables) > 0 {
		if err := s.beforeRead(c); err != nil {
			return nil, err
		}
	}
	tree, err := exec.Build(c.query, exec.Options{Analyze: true})
	if err != nil {
		return nil, err
	}
	x, err := s.runContext(c)
	if err != nil {
		return nil, err
	}
	s.startLimit()
	if err := tree.Open(x); err != nil {
		return nil, err
	}
	for {
		b, _, err := tree.Pull()
		if err != nil {
			_ = tree.Close() // the first error counts
			return nil, err
		}
		if b == nil {
			return tree, nil
		}
	}
}
