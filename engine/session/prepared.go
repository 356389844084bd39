package session

import (
	"context"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/types"
)

// Prepared is a prepared statement. It belongs to its session.
type Prepared struct {
	// Params is the number of parameters.
	Params int
	// Columns describes the row set, nil if the statement has none. It may differ from
	// what an execution gives, after tables have changed or where a parameter decides.
	Columns []ResultColumn
	// ID is the door's own.
	ID uint32

	s       *Session
	sql     string
	st      ast.Statement
	mode    ast.Mode
	schema  string    // the current one when it was prepared, in which names stand
	plan    *compiled // of the last execution
	key     []byte    // what it depends on: settings and types
	text    []byte    // normalised, for the plan cache; nil if its plans are not shared
	scratch []byte
	types   []*types.Type
	values  []types.Value
	closed  bool
	digest  *digest // where it is counted
	memory  preparedMemory

	prev, next *Prepared // of the session
}

// preparedMemory is what a prepared statement keeps. Trees and plans that it shares with the plan cache are counted once for all prepared
// statements that have them: the cache may forget them sooner.
type preparedMemory struct {
	own  int64     // bytes: its text, and a tree of its own
	tree *compiled // whose tree it has
	plan *compiled // the plan that is counted
}

// Close forgets the statement.
func (p *Prepared) Close() {
	if p.closed {
		return
	}
	p.closed = true
	s := p.s
	s.count--
	s.m.prepared.Add(-1)
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		s.prepared = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	m := &p.memory
	s.share.Hold(-m.own)
	for _, c := range [...]*compiled{m.tree, m.plan} {
		if c != nil {
			c.drop(&s.m.memory)
		}
	}
	p.prev, p.next, p.st, p.plan, *m = nil, nil, nil, nil, preparedMemory{}
}

// keep counts what a new statement takes, whose plan, if it has one, is c. Errors: as of Hold.
func (p *Prepared) keep(c *compiled) error {
	s, m := p.s, preparedMemory{own: int64(len(p.sql)+2*len(p.text)) + smallPlan}
	if c != nil && c.kind == p.st && c.cached && p.text != nil && c.size <= maxCachedPlan && c.hold(&s.m.memory) {
		m.tree = c
	} else {
		m.own += p.st.Size()
	}
	if err := s.holdFor(m.own, "a prepared statement", 0); err != nil {
		if m.tree != nil {
			m.tree.drop(&s.m.memory)
		}
		return err
	}
	p.memory = m
	s.count++
	s.m.prepared.Add(1)
	if p.next = s.prepared; p.next != nil {
		p.next.prev = p
	}
	s.prepared = p
	return nil
}

// keepPlan counts the plan that the last execution has left. If there is no room for it, it is made again next time.
func (p *Prepared) keepPlan() {
	b := &p.s.m.memory
	if p.memory.plan != nil {
		p.memory.plan.drop(b)
		p.memory.plan = nil
	}
	if p.plan == nil {
		return
	}
	if !p.plan.hold(b) {
		p.plan = nil
		return
	}
	p.memory.plan = p.plan
}

// forgetPrepared forgets all prepared statements: what the door still has of them is of
// no use.
func (s *Session) forgetPrepared() {
	for s.prepared != nil {
		s.prepared.Close()
	}
	s.named = nil
}

// Arg is the value of a parameter. Strings are in the client's character set unless
// Type says that they are bytes.
type Arg struct {
	Value types.Value
	Type  *types.Type // as the client declared it
}

// Prepare prepares a statement. It stays valid until the session's end or Reset, also
// when the tables it names change.
func (s *Session) Prepare(ctx context.Context, sql string) (*Prepared, error) {
	s.enter("Prepare", sql)
	if s.m.opt.Trace != nil {
		s.beginSpan()
	}
	s.beginStatement(ctx, nil)
	s.diag.reset()
	p, err := s.prepare(ctx, sql)
	now := s.leave()
	if err != nil {
		p, err = nil, s.failed(err)
		s.audit(now-s.meter.start, "", 0, err)
	}
	if s.span != nil {
		s.span.prepares = true
		s.endSpan(now, "", 0, 0, err)
	}
	s.caller = callerTrace{}
	return p, err
}

func (s *Session) prepare(ctx context.Context, sql string) (p *Prepared, err error) {
	defer s.survive(&err)
	sql, err = s.clientText(sql)
	if err != nil {
		s.meter.text = ""
		return nil, err
	}
	if limit := int64(s.m.global(variables["max_prepared_stmt_count"]).n); s.m.prepared.Load() >= limit {
		return nil, sqlerr.New(sqlerr.MaxPreparedStmtCountReached, limit)
	}
	p = &Prepared{s: s, sql: sql, mode: s.mode, schema: s.schema}
	refused := p
	defer func() {
		if err != nil { // it is audited as the statement that it would have been
			s.meter.tree, s.meter.source = refused.st, refused
		}
	}()
	var known *compiled
	if ast.NormalizePrepared(sql, s.mode, &s.buf) {
		p.text = append(p.text, s.buf.Key...)
		known, _ = s.m.plans.get(s.describedKey(p))
	}
	if known != nil {
		p.st = known.kind // the tree of the same text, but for its spaces
	} else if p.st, err = s.parsePrepared(sql); err != nil {
		return nil, err
	}
	if s.info.Expired {
		if err := s.mayBegin(p.st); err != nil {
			return nil, err
		}
	}
	if p.Params = p.st.Params(); p.Params > maxParams {
		return nil, sqlerr.New(sqlerr.PSManyParam)
	}
	switch p.st.(type) {
	case *ast.Prepare, *ast.Execute, *ast.Deallocate, *ast.LoadData, *ast.LockTables, *ast.UnlockTables,
		*ast.GetDiagnostics, *ast.Signal, *ast.Handler:
		return nil, sqlerr.New(sqlerr.UnsupportedPS)
	case *ast.Select, *ast.SetOp, *ast.Values, *ast.Insert, *ast.Update, *ast.Delete:
		if p.text == nil && len(sql) <= maxSharedText {
			p.text = append([]byte{0xff, byte(p.mode)}, sql...) // the session's mode may be another when it is executed
			known, _ = s.m.plans.get(s.describedKey(p))
		}
		if known, err = s.describe(ctx, p, known); err != nil {
			return nil, err
		}
	}
	if err := p.keep(known); err != nil {
		return nil, err
	}
	return p, nil
}

const (
	maxParams = 65535
	// maxSharedText is how long a text may be whose plans are in the plan cache, which is
	// bounded by their number.
	maxSharedText = 64 << 10
)

// parsePrepared parses a text that is one statement.
func (s *Session) parsePrepared(sql string) (ast.Statement, error) {
	began := s.tick()
	statements, err := ast.ParseWithin(sql, s.mode, s.holdsText)
	s.part("parse", began, 0, err)
	if err != nil {
		s.meter.text = "" // as in beginUnread
		return nil, err
	}
	if len(statements) != 1 {
		return nil, sqlerr.Syntax(statements[1].Text(), 1)
	}
	return statements[0], nil
}

// describedKey is the key of the plan that tells a prepared statement's columns.
func (s *Session) describedKey(p *Prepared) []byte {
	key := append(s.appendPlanKey(s.work.key[:0]), '\xfe')
	s.work.key = append(key, p.text...)
	return s.work.key
}

// describe learns a statement's columns from c, a plan that was made for that before by any
// session, or from a new one if that is nil or its tables have changed. Many drivers prepare
// each statement anew. It begins no transaction: one that goes on would hold the tables' definitions for a
// client that has done nothing yet. It returns the plan.
func (s *Session) describe(ctx context.Context, p *Prepared, c *compiled) (*compiled, error) {
	defer s.keepNext()()
	before := s.trx.active
	changed, err := c == nil, error(nil)
	if c != nil {
		changed, err = s.openTables(c)
	}
	if err == nil && changed {
		if c, err = s.compile(p.st, make([]*types.Type, p.Params)); err == nil && c.cached && p.text != nil {
			s.m.plans.put(string(s.describedKey(p)), c)
		}
	}
	if err == nil {
		err = s.mayExplain(c)
	}
	if err == nil {
		p.Columns = c.columns
	}
	s.work.release()
	if s.trx.begun {
		err = s.endWork(ctx, err, false)
	}
	if s.trx.active && !before {
		err = s.abandon(err)
	}
	return c, err
}

// ExecutePrepared runs a prepared statement. Error 1210 if args are not as many as its
// parameters.
func (s *Session) ExecutePrepared(ctx context.Context, p *Prepared, args []Arg, w ResultWriter) error {
	s.enter("Execute", p.sql)
	if s.m.opt.Trace != nil {
		s.beginSpan()
	}
	s.beginStatement(ctx, w)
	s.meter.prepared, s.meter.mode, s.meter.kind = p, p.mode, statementKindOf(p.st)
	if !keepsDiagnostics(p.st) {
		s.diag.reset()
	}
	out, err := s.executePrepared(ctx, p, args)
	if err == nil {
		s.work.ofConditions = keepsDiagnostics(p.st)
		err = s.done(out, false)
	}
	return s.ended(err)
}

func (s *Session) executePrepared(ctx context.Context, p *Prepared, args []Arg) (out Outcome, err error) {
	defer s.survive(&err)
	s.meter.tree = p.st
	if p.closed || p.s != s {
		return out, sqlerr.Newf(sqlerr.UnknownStmtHandler, "Unknown prepared statement handler given to EXECUTE")
	}
	if len(args) != p.Params {
		return out, sqlerr.New(sqlerr.WrongArguments, "EXECUTE")
	}
	if err := s.countUse(p.st); err != nil {
		return out, err
	}
	if err := s.setParams(p, args); err != nil {
		return out, err
	}
	if s.schema != p.schema {
		switch p.st.(type) {
		case *ast.Use, *ast.DropSchema: // they change the session's
		default:
			current := s.schema
			s.schema = p.schema
			defer func() { s.schema = current }()
		}
	}
	switch p.st.(type) {
	case *ast.Select, *ast.SetOp, *ast.Values, *ast.Insert, *ast.Update, *ast.Delete:
		out, err = s.runPrepared(ctx, p)
	default:
		s.work.params = p.types
		out, err = s.dispatch(ctx, p.st)
	}
	clear(p.values) // they are the packet's, or a variable's, which is not counted any more once that is gone
	s.x.Params = nil
	return out, err
}

// runPrepared runs a statement and keeps its plan.
func (s *Session) runPrepared(ctx context.Context, p *Prepared) (Outcome, error) {
	out, err := s.runByPlan(ctx, p)
	if p.plan != p.memory.plan {
		p.keepPlan()
	}
	return out, err
}

// runByPlan runs a statement by its plan: the one of the last time, one of another
// session's, or a new one.
func (s *Session) runByPlan(ctx context.Context, p *Prepared) (Outcome, error) {
	if s.gone.Load() && !s.info.ReadOnly {
		return Outcome{}, s.notLeader()
	}
	key := s.appendPlanKey(p.scratch[:0])
	for _, t := range p.types {
		key = ast.AppendTypeCode(key, t)
	}
	p.scratch = key
	if p.plan != nil && string(key) == string(p.key) {
		return s.runCompiled(ctx, &p.plan, nil)
	}
	p.key = append(p.key[:0], key...)
	var full []byte
	if p.text != nil {
		full = append(s.appendPlanKey(key[:0]), p.text...)
		for _, t := range p.types {
			full = ast.AppendTypeCode(full, t)
		}
		p.scratch = full
		if c, _ := s.m.plans.get(full); c != nil {
			p.plan = c
			return s.runCompiled(ctx, &p.plan, full)
		}
	}
	params := make([]*types.Type, len(p.types))
	for i, t := range p.types {
		clone := *t
		params[i] = &clone
	}
	c, err := s.compile(p.st, params)
	var out Outcome
	if err == nil {
		if p.plan = nil; c.cached {
			if p.plan = c; full != nil {
				s.m.plans.put(string(full), c)
			}
		}
		_, err = s.openTables(c)
	}
	if err == nil {
		out, err = s.execute(ctx, c)
	}
	return out, s.finishWork(ctx, c, &out, err)
}

// The types that parameters are bound with, by what a client may send.
var (
	paramInt    = &types.Type{Kind: types.KindBigInt}
	paramUint   = &types.Type{Kind: types.KindBigInt, Unsigned: true}
	paramDouble = &types.Type{Kind: types.KindDouble}
	paramBytes  = &types.Type{Kind: types.KindVarBinary, Length: types.MaxVarLength, Collation: types.CollationBinary}
	paramNull   = &types.Type{Kind: types.KindNull}
	paramDate   = &types.Type{Kind: types.KindDate}
	paramTime   = &types.Type{Kind: types.KindTime, FSP: 6}
	paramStamp  = &types.Type{Kind: types.KindDateTime, FSP: 6}
)

// setParams puts the parameters' values where expressions read them. A NULL keeps the type
// of the value before it, so that it needs no plan of its own.
func (s *Session) setParams(p *Prepared, args []Arg) error {
	if p.types == nil {
		p.types, p.values = make([]*types.Type, len(args)), make([]types.Value, len(args))
		for i := range p.types {
			p.types[i] = paramNull
		}
	}
	for i := range args {
		v := args[i].Value
		t := args[i].Type
		switch v.Class() {
		case types.ClassNull:
			t = p.types[i]
		case types.ClassInt:
			t = paramInt
		case types.ClassUint:
			t = paramUint
		case types.ClassDouble:
			t = paramDouble
		case types.ClassFloat:
			t, v = paramDouble, types.NewDouble(float64(v.Float()))
		case types.ClassDate:
			t = paramDate
		case types.ClassTime:
			t = paramTime
		case types.ClassDateTime:
			t = paramStamp
		case types.ClassBytes:
			if t != nil && t.IsBlob() {
				t = paramBytes
				break
			}
			t = s.textParam()
			if cs := s.opt.client; !cs.IsUTF8() && cs != types.CharsetBinary {
				b, _ := types.Convert(nil, v.Bytes(), s.opt.client, types.CharsetUTF8MB4)
				v = types.NewBytes(b)
			}
		default:
			if t == nil {
				t = typeOfClass(v.Class())
			}
		}
		p.types[i], p.values[i] = t, v
	}
	s.x.Params = p.values
	return nil
}

// textParam is the type of a text parameter: it has the connection's collation.
func (s *Session) textParam() *types.Type {
	w := &s.work
	if w.textParam == nil || w.textParam.Collation != s.x.Collation {
		w.textParam = &types.Type{Kind: types.KindVarChar, Length: types.MaxVarLength / 4, Collation: s.x.Collation}
		if c := types.CollationByID(s.x.Collation); c == nil || c.Charset() != types.CharsetUTF8MB4 {
			w.textParam.Collation = types.CollationUTF8MB40900AI
		}
	}
	return w.textParam
}

// runPrepare is PREPARE.
func (s *Session) runPrepare(ctx context.Context, st *ast.Prepare) error {
	text := st.SQL
	if st.Var != "" {
		v, t := (*sessionInfo)(s).UserVariable(st.Var)
		if t == nil || v.IsNull() {
			text = "NULL"
		} else {
			text = string(types.AppendText(nil, v, t, s.x.Location))
		}
	}
	name := dict.Fold(st.Name)
	s.forgetNamed(name) // also if the new one is no statement
	p, err := s.prepare(ctx, text)
	if err != nil {
		return err
	}
	if s.named == nil {
		s.named = map[string]*Prepared{}
	}
	s.named[strings.Clone(name)] = p // it is part of the statement's text
	return nil
}

func (s *Session) forgetNamed(name string) bool {
	p := s.named[name]
	if p == nil {
		return false
	}
	p.Close()
	delete(s.named, name)
	return true
}

// runExecute is EXECUTE.
func (s *Session) runExecute(ctx context.Context, st *ast.Execute) (Outcome, error) {
	p := s.named[dict.Fold(st.Name)]
	if p == nil {
		return Outcome{}, sqlerr.New(sqlerr.UnknownStmtHandler, st.Name, "EXECUTE")
	}
	s.meter.source = p
	args := make([]Arg, len(st.Using))
	for i, name := range st.Using {
		args[i].Value, args[i].Type = (*sessionInfo)(s).UserVariable(name)
	}
	return s.executePrepared(ctx, p, args)
}

// runDeallocate is DEALLOCATE PREPARE.
func (s *Session) runDeallocate(st *ast.Deallocate) error {
	if !s.forgetNamed(dict.Fold(st.Name)) {
		return sqlerr.New(sqlerr.UnknownStmtHandler, st.Name, "DEALLOCATE PREPARE")
	}
	return nil
}
