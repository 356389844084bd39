package session

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// compiled is a statement that reads or changes rows, ready to run with parameters. It
// is immutable and shared by sessions.
type compiled struct {
	kind    ast.Statement // the tree, to compile it again
	tables  []compiledTable
	columns []ResultColumn
	asks    []ask // what is asked before the tables are opened
	uses    []plan.Use
	types   []*types.Type // of parameters
	query   *plan.Query   // of SELECT and what gives INSERT its rows
	insert  *insertPlan
	change  *changePlan
	// snapshots says of insert and change that at READ COMMITTED they lock nothing of what they only read: as in
	// InnoDB an UPDATE of one table, and INSERT or REPLACE .. SELECT.
	snapshots bool
	cached    bool          // may be kept in the plan cache
	temporary bool          // uses temporary tables of the session
	limit     time.Duration // of a query's hint
	// kept are warnings, each time that it runs, about what it says to no effect.
	kept []*sqlerr.Error
	// scans caches hasScan: 0 is not known.
	scans atomic.Uint32
	// digest is where its statement is counted.
	digest atomic.Pointer[digest]
	// size is about how many bytes it takes, with the tree.
	size int64
	held heldPlan
}

// heldPlan is how many prepared statements have a plan, of which all of them together are counted once.
type heldPlan struct {
	mu   sync.Mutex
	refs int
}

// hold counts a plan that a prepared statement keeps. It reports whether there was room for it.
func (c *compiled) hold(b *temptable.Budget) bool {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	if c.held.refs == 0 && !b.Hold(c.size) {
		return false
	}
	c.held.refs++
	return true
}

// drop is the opposite of hold.
func (c *compiled) drop(b *temptable.Budget) {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	if c.held.refs--; c.held.refs == 0 {
		b.Hold(-c.size)
	}
}

// planSize is about how many bytes a compiled statement takes, in bytes: what was bound of it without a query's plan takes as much again
// as its tree.
func (c *compiled) planSize() int64 {
	n := smallPlan + c.kind.Size()
	if c.query != nil {
		n += c.query.Size
	}
	switch {
	case c.insert != nil:
		n += c.kind.Size()
	case c.change != nil:
		n += c.change.plan.Size
	}
	return n
}

// smallPlan is what each compiled statement takes, in bytes.
const smallPlan = 1 << 10

// compiledTable is a table or view that the statement was compiled with. It has to be
// compiled again when the definition is another one.
type compiledTable struct {
	schema, name string
	keys         *record.Schema
	view         bool
	shared       bool  // it is everybody's whatever temporary tables the session has
	rows         int64 // that the table had
}

// schemaCatalog gives planning the definitions, as the transaction sees them, and notes
// which they are.
type schemaCatalog struct {
	s *Session
	c *compiled
	// volatile is set when something was asked for that differs from session to session.
	volatile bool
	// temporary is a temporary table of the session that was asked for; empty: none was.
	temporary string
	// making is the temporary table that the statement makes: what it reads by that name is everybody's.
	making txn.Name
}

// Lookup finds what a name stands for.
func (l *schemaCatalog) Lookup(schema, name string) (plan.Source, error) {
	return l.lookup(schema, name, false)
}

// LookupShared is Lookup without the session's temporary tables.
func (l *schemaCatalog) LookupShared(schema, name string) (plan.Source, error) {
	return l.lookup(schema, name, true)
}

func (l *schemaCatalog) lookup(schema, name string, shared bool) (plan.Source, error) {
	s := l.s
	if src, found, err := s.virtualSource(schema, name); found || err != nil {
		l.volatile = true
		if err == nil && src.Virtual != nil && ofGroup[src.Virtual] {
			s.startLimit()
			err = s.pointDefinitions()
		}
		return src, err
	}
	if err := s.pointQuery(); err != nil {
		return plan.Source{}, err
	}
	// Locks, and the memory of transactions, have the names for longer than there is a text of them.
	schema, name = strings.Clone(schema), strings.Clone(name)
	shared = shared || l.making == txn.Name{Schema: schema, Table: name}
	t, err := s.openTable(schema, name, shared)
	if schema == sysSchema && errorNumber(err) == sqlerr.BadDBError {
		err = sqlerr.New(sqlerr.NoSuchTable, schema, name)
	}
	if err != nil {
		return plan.Source{}, err
	}
	if t.Temporary() {
		l.volatile, l.temporary = true, name
	}
	keys := t.Table().Schema
	v, isView := catalog.ViewOf(keys.Table)
	if !isView {
		l.c.note(compiledTable{schema, name, keys, false, shared, t.Table().Rows()})
		return plan.Source{Table: &plan.TableSource{Keys: keys, Stats: tableStats{t.Table()}}}, nil
	}
	l.c.note(compiledTable{schema, name, keys, true, shared, 0})
	return s.viewSource(keys.Table, v)
}

func (c *compiled) note(t compiledTable) {
	for _, o := range c.tables {
		if o.schema == t.schema && o.name == t.name && o.keys == t.keys {
			return
		}
	}
	c.tables = append(c.tables, t)
}

// openTable opens a table for the statement, which begins its work with the first one: the session's temporary one of the name, if
// there is one and not everybody's is asked for. Error 1146 has the table's name in it.
func (s *Session) openTable(schema, name string, shared bool) (*txn.Table, error) {
	if !s.trx.begun {
		if err := s.beginWork(); err != nil {
			return nil, err
		}
	}
	if !shared {
		if t, err := s.txn.OpenTemporary(schema, name); t != nil || err != nil {
			return t, err
		}
	}
	if s.trx.tables.held {
		if err := s.trx.tables.check(schema, name); err != nil {
			return nil, err
		}
	}
	t, err := s.txn.Open(schema, name)
	for s.info.ReadOnly && errors.Is(err, s.m.opt.Backend.NotLeader()) && s.txn.InTransaction() && s.interrupted() == nil {
		// Who writes is being sent away, and nobody waits for a definition meanwhile. Plain reads go on.
		env.Sleep(s.env, suspensionPause)
		t, err = s.txn.Open(schema, name)
	}
	if err != nil {
		return nil, missingTable(err, schema, name)
	}
	return t, nil
}

// suspensionPause is how long a plain read waits before it asks again for a table while a node gives up the lead.
const suspensionPause = 10 * time.Millisecond

// env is what a statement is planned in.
func (s *Session) planEnv(l *schemaCatalog, params []*types.Type) *plan.Env {
	e := &plan.Env{Catalog: l, Schema: s.schema, Options: s.bindOptions(params), Variables: volatileVariables{sessionVariables{s}, l},
		Switches: plan.DefaultSwitches, Context: &s.x, Hold: s.holdsText}
	if s.opt.sqlMode&modeOnlyFullGroupBy != 0 {
		e.Mode |= plan.ModeOnlyFullGroupBy
	}
	return e
}

// volatileVariables notes that a plan depends on the type of a user variable.
type volatileVariables struct {
	sessionVariables
	l *schemaCatalog
}

func (v volatileVariables) UserVariable(name string) *types.Type {
	v.l.volatile = true
	return v.sessionVariables.UserVariable(name)
}

// compile plans a statement for parameters of the types.
func (s *Session) compile(st ast.Statement, params []*types.Type) (*compiled, error) {
	began := s.tick()
	c, err := s.planned(st, params)
	if err != nil {
		err = s.hideColumns(c, err)
	}
	if s.span != nil {
		s.part("plan", began, 0, err)
		s.span.about(c)
	}
	return c, err
}

func (s *Session) planned(st ast.Statement, params []*types.Type) (*compiled, error) {
	c := &compiled{kind: st, types: params, limit: hintedLimit(st), kept: keptClauses(st), asks: asksOf(st, s.schema)}
	if err := s.mayOpen(c.asks); err != nil {
		return c, err
	}
	_, s.work.reads = st.(ast.Query)
	s.work.hinted = c.limit
	l := &schemaCatalog{s: s, c: c}
	env := s.planEnv(l, params)
	var err error
	switch st := st.(type) {
	case ast.Query:
		if c.query, err = plan.Select(env, st); err == nil {
			c.columns, c.uses = resultColumns(c.query.Columns), c.query.Uses
			l.volatile = l.volatile || c.query.Volatile
		}
	case *ast.Insert:
		err = s.compileInsert(c, env, l, st)
	case *ast.Update, *ast.Delete:
		err = s.compileChange(c, env, l, st)
	default:
		err = unknownStatement(st)
	}
	c.temporary = l.temporary != ""
	if c.cached = !l.volatile; err == nil {
		c.size = c.planSize()
	}
	return c, err
}

// appendPlanKey appends what a compiled statement depends on besides its text: the current
// schema, and settings.
func (s *Session) appendPlanKey(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, s.opt.sqlMode)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(s.x.Collation))
	dst = append(dst, byte(s.x.DivPrecisionIncrement), byte(s.opt.client))
	dst = append(dst, s.schema...)
	return append(dst, 0)
}

// openTables opens the tables of a compiled statement. changed says that a definition is not
// what it was compiled with.
func (s *Session) openTables(c *compiled) (changed bool, err error) {
	s.work.open = s.work.open[:0]
	s.work.reads, s.work.hinted = c.insert == nil && c.change == nil, c.limit
	if err := s.mayOpen(c.asks); err != nil {
		return false, err
	}
	if len(c.tables) > 0 {
		if err := s.pointQuery(); err != nil {
			return false, err
		}
	}
	for i := range c.tables {
		t := &c.tables[i]
		o, err := s.openTable(t.schema, t.name, t.shared)
		if err != nil {
			return false, err
		}
		if o.Table().Schema != t.keys {
			return true, nil
		}
		s.work.open = append(s.work.open, o)
	}
	return false, nil
}

// opened is the open table of a plan's one.
func (s *Session) opened(c *compiled, t *plan.Table) *txn.Table {
	for i := range c.tables {
		if c.tables[i].keys == t.Keys {
			return s.work.open[i]
		}
	}
	return nil
}

// runPlanned compiles and runs a statement that is in no cache.
func (s *Session) runPlanned(ctx context.Context, st ast.Statement, params []*types.Type) (Outcome, error) {
	c, err := s.compile(st, params)
	var out Outcome
	if err == nil {
		_, err = s.openTables(c) // what was looked up for the plan is open
	}
	if err == nil {
		out, err = s.execute(ctx, c)
	}
	err = s.finishWork(ctx, c, &out, err)
	s.work.forget(c)
	return out, err
}

// finishWork ends the work of a statement, if it has begun one.
func (s *Session) finishWork(ctx context.Context, c *compiled, out *Outcome, err error) error {
	s.work.release()
	if c != nil && c.size > keptPlan {
		s.work.forget(c)
	}
	s.x.Shed()
	if !s.trx.begun {
		return err
	}
	return s.endWork(ctx, err, s.out.locked && out.AffectedRows == 0)
}

// runCompiled runs a compiled statement, which is compiled again if a table's definition
// has changed; at is then the new one.
func (s *Session) runCompiled(ctx context.Context, at **compiled, key []byte) (Outcome, error) {
	c := *at
	if s.span != nil {
		s.span.about(c)
	}
	var out Outcome
	changed, err := s.openTables(c)
	if err == nil && (changed || s.outgrown(c)) {
		if c, err = s.compile(c.kind, c.types); err == nil {
			if *at = c; c.cached && key != nil {
				s.m.plans.put(string(key), c)
			}
			_, err = s.openTables(c)
		}
	}
	if err == nil {
		out, err = s.execute(ctx, c)
	}
	return out, s.finishWork(ctx, c, &out, err)
}

// outgrown reports whether a table has many more or fewer rows now than when the statement
// was compiled, so that another plan may be better.
func (s *Session) outgrown(c *compiled) bool {
	for i := range c.tables {
		then, now := c.tables[i].rows, s.work.open[i].Table().Rows()
		if most := max(then, now); !c.tables[i].view && most > 1000 && min(then, now) < most/5 {
			return true
		}
	}
	return false
}

// execute runs a compiled statement on its open tables.
func (s *Session) execute(ctx context.Context, c *compiled) (Outcome, error) {
	s.meter.ran = c
	s.warnAll(c.kept)
	switch {
	case c.insert != nil:
		return s.runInsert(ctx, c)
	case c.change != nil:
		return s.runChange(ctx, c)
	}
	return s.runQuery(ctx, c)
}

// runNormalized runs a text by way of the plan cache. done is false if the text is none
// for it.
func (s *Session) runNormalized(ctx context.Context, sql string, w ResultWriter) (done bool, err error) {
	if !ast.Normalize(sql, s.mode, &s.buf) {
		return false, nil
	}
	key := append(s.appendPlanKey(s.work.key[:0]), s.buf.Key...)
	s.work.key = key
	c, known := s.m.plans.get(key)
	if known && c == nil {
		return false, nil
	}
	if !known {
		began := s.tick()
		st, err := ast.ParseParameterized(sql, s.mode)
		s.part("parse", began, 0, nil) // if it makes no sense so, it is parsed as it is
		if err != nil || !worthCaching(st) {
			if err == nil {
				s.m.plans.put(string(key), nil)
			}
			return false, nil
		}
		params := make([]*types.Type, len(s.buf.Literals))
		for i := range s.buf.Literals {
			params[i] = s.literalType(s.buf.Literals[i].Type)
		}
		err = s.runFirst(ctx, st, params, string(key), w)
		return err != errRecompile, err
	}
	return true, s.runKnown(ctx, c, key, w)
}

// runKnown runs a statement of the plan cache with the literals of s.buf.
func (s *Session) runKnown(ctx context.Context, c *compiled, key []byte, w ResultWriter) error {
	s.beginStatement(ctx, w)
	s.meter.plan, s.meter.kind, s.meter.tree = c, statementKindOf(c.kind), c.kind
	s.diag.reset()
	if s.gone.Load() && !s.info.ReadOnly {
		return s.notLeader()
	}
	if err := s.countUse(c.kind); err != nil {
		return err
	}
	s.x.Params = s.literals()
	out, err := s.runCompiled(ctx, &c, key)
	if err != nil {
		return err
	}
	return s.done(out, false)
}

// runFirst compiles a statement for the plan cache and runs it with the literals of s.buf,
// which have the types of params.
func (s *Session) runFirst(ctx context.Context, st ast.Statement, params []*types.Type, key string, w ResultWriter) error {
	s.beginStatement(ctx, w)
	s.meter.kind, s.meter.tree = statementKindOf(st), st
	s.diag.reset()
	if s.gone.Load() && !s.info.ReadOnly {
		return s.notLeader()
	}
	s.x.Params = s.literals()
	before := s.trx.active
	c, err := s.compile(st, params)
	if s.lost(err); err != nil && before && !s.trx.active {
		return err // the statement is not to run by itself now
	}
	if err != nil && !saysNothingOfText(err) && s.work.unread == nil {
		// Perhaps it makes sense with its literals in place only.
		return errRecompile
	}
	var out Outcome
	if err == nil {
		switch {
		case c.cached:
			s.m.plans.put(key, c)
		case !c.temporary: // else the text may be worth keeping for other sessions
			s.m.plans.put(key, nil)
		}
		if err = s.countUse(st); err == nil {
			_, err = s.openTables(c)
		}
	}
	if err == nil {
		out, err = s.execute(ctx, c)
	}
	if err = s.finishWork(ctx, c, &out, err); err != nil {
		return err
	}
	return s.done(out, false)
}

// saysNothingOfText reports whether compiling has failed by a wait that was given up: a text that is compiled
// again would wait again. Who was chosen to end a deadlock, and had no transaction before, may try again.
func saysNothingOfText(err error) bool {
	var locked *lock.Error
	return wasEnded(err) || errorNumber(err) == sqlerr.LockDeadlock || errors.As(err, &locked) && !errors.Is(err,
		lock.ErrDeadlock)
}

// worthCaching reports whether a statement is one that has a plan.
func worthCaching(st ast.Statement) bool {
	switch st.(type) {
	case ast.Query, *ast.Insert, *ast.Update, *ast.Delete:
		return true
	}
	return false
}

// literals are the values that Normalize has taken out of a text.
func (s *Session) literals() []types.Value {
	list := s.work.literals[:0]
	for i := range s.buf.Literals {
		list = append(list, s.buf.Literals[i].Value)
	}
	s.work.literals = list
	return list
}

// literalType is the type that a plan is made for, of those with one code in the key.
func (s *Session) literalType(t *types.Type) *types.Type {
	switch t.Class() {
	case types.ClassInt:
		return paramInt
	case types.ClassUint:
		return paramUint
	case types.ClassDouble:
		return paramDouble
	case types.ClassBytes:
		if t.IsText() {
			return s.textParam()
		}
	}
	clone := *t
	return &clone
}

// errRecompile says that a statement has to be compiled with its literals in place.
var errRecompile = errors.New("session: to be compiled as it is")
