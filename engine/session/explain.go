package session

import (
	"context"
	"fmt"
	"math"
	"strconv"
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
	if st.Format == "JSON" {
		return out, notSupported("EXPLAIN FORMAT=JSON")
	}
	s.startLimit()
	if err := s.pointDefinitions(); err != nil {
		return out, err
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
		err = s.explain(ctx, c, st)
	}
	return out, s.finishWork(ctx, c, &out, err)
}

// mayExplain asks for the privileges that the statement itself needs.
func (s *Session) mayExplain(c *compiled) error {
	kind := "SELECT"
	switch {
	case c.insert != nil && c.insert.replace:
		kind = "REPLACE"
	case c.insert != nil:
		kind = "INSERT"
	case c.change != nil && c.change.update:
		kind = "UPDATE"
	case c.change != nil:
		kind = "DELETE"
	}
	return s.mayRun(c.uses, kind, c.kind)
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
func (s *Session) explain(ctx context.Context, c *compiled, st *ast.Explain) error {
	q := c.query
	if c.change != nil {
		q = &c.change.plan.Query
	}
	tree := st.Analyze || st.Format == "TREE"
	switch {
	case st.Analyze && (c.change != nil || c.insert != nil):
		return notSupported("EXPLAIN ANALYZE of a statement that changes rows")
	case st.Analyze:
		text, err := s.analyze(c)
		if err != nil {
			return err
		}
		return s.sendText("EXPLAIN", text)
	case q == nil && tree:
		return s.sendText("EXPLAIN", fmt.Sprintf("-> Insert into %s\n", c.insert.info.keys.Name))
	case tree:
		return s.sendText("EXPLAIN", plan.Tree(q.Root, nil))
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

// sendText sends one row with one text.
func (s *Session) sendText(name, text string) error {
	col := ResultColumn{Name: name, Type: &types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}}
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

// analyze runs a query, drops its rows, and writes the plan with what was measured.
func (s *Session) analyze(c *compiled) (string, error) {
	if len(c.tables) > 0 {
		if err := s.beforeRead(c); err != nil {
			return "", err
		}
	}
	tree, err := exec.Build(c.query, exec.Options{Analyze: true})
	if err != nil {
		return "", err
	}
	x, err := s.runContext(c)
	if err != nil {
		return "", err
	}
	s.startLimit()
	if err := tree.Open(x); err != nil {
		return "", err
	}
	for {
		b, _, err := tree.Pull()
		if err != nil {
			_ = tree.Close() // the first error counts
			return "", err
		}
		if b == nil {
			break
		}
	}
	text := plan.Tree(c.query.Root, func(n plan.Node) string {
		m, ok := tree.Meter(n)
		if !ok {
			return " (never executed)"
		}
		loops := float64(m.Loops)
		return fmt.Sprintf(" (actual time=%s..%s rows=%s loops=%d)", millis(m.First, loops), millis(m.Total, loops),
			strconv.FormatFloat(float64(m.Rows)/loops, 'f', -1, 64), m.Loops)
	})
	return text, tree.Close()
}

// millis is a time per loop as MySQL writes it.
func millis(d time.Duration, loops float64) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000/loops, 'f', 3, 64)
}
