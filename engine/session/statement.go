package session

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Query runs the statements of a text, one after the other, until one fails; several
// are allowed if the client said so. Each ends with ResultWriter.Done, or the error is
// returned. ctx ends waits for the group, not for locks: that is Interrupt.
func (s *Session) Query(ctx context.Context, sql string, w ResultWriter) error {
	s.enter("Query", sql)
	if s.m.opt.Trace != nil {
		s.beginSpan()
	}
	return s.ended(s.runText(ctx, sql, w))
}

// ended ends a text, or the execution of a prepared statement. It returns what the client is told.
func (s *Session) ended(err error) error {
	now := s.leaveCounted(true, err != nil)
	if err != nil {
		err = s.failed(err)
	}
	s.record(now, err)
	s.caller = callerTrace{}
	return err
}

// failed gives an error its number and puts it into the diagnostics.
func (s *Session) failed(err error) error {
	err = s.clientError(err)
	if e, ok := err.(*sqlerr.Error); ok && e.Number != sqlerr.GetStackedDAWithoutActiveHandler {
		s.diag.fail(e)
	}
	s.rowCount = -1
	return err
}

// runText runs the statements of a text.
func (s *Session) runText(ctx context.Context, sql string, w ResultWriter) (err error) {
	defer s.survive(&err)
	sql, err = s.clientText(sql)
	if err != nil {
		s.beginUnread(ctx, w)
		return err
	}
	if done, err := s.runBulk(ctx, sql, w); done {
		return err
	}
	if done, err := s.runNormalized(ctx, sql, w); done {
		return err
	}
	began := s.tick()
	s.limit = 0 // of the statement before: memory may have to be waited for
	statements, err := ast.ParseWithin(sql, s.mode, s.holdsText)
	s.part("parse", began, 0, err)
	if errorNumber(err) == sqlerr.EmptyQuery && ast.OnlyComments(sql, s.mode) {
		statements, err = []ast.Statement{&ast.Do{}}, nil
	}
	if err != nil && (len(statements) == 0 || !s.info.MultiStatements) {
		s.beginUnread(ctx, w)
		return err
	}
	if len(statements) > 1 && !s.info.MultiStatements {
		s.beginStatement(ctx, w)
		s.diag.reset()
		return sqlerr.Syntax(statements[1].Text(), 1)
	}
	for i, st := range statements {
		if i > 0 { // of a long list of short statements none may ask
			s.limit = 0 // it was the last one's
			if err := s.interrupted(); err != nil {
				return err
			}
		}
		if st.Params() > 0 {
			s.beginStatement(ctx, w)
			s.diag.reset()
			return sqlerr.Syntax("?", 1)
		}
		more := i+1 < len(statements) || err != nil
		if err := s.runStatement(ctx, st, w, more); err != nil {
			return err
		}
		if more {
			now := s.env.Monotonic()
			s.txnMu(func() { s.counts.add(&s.meter, now-s.meter.start, s.sentRows(), s.examined(), false) })
			s.record(now, nil)
			if s.m.opt.Trace != nil {
				s.beginSpan()
			}
		}
	}
	if err != nil { // those before the one that makes no sense have run, as in MySQL
		s.beginUnread(ctx, w)
	}
	return err
}

// beginUnread is beginStatement for a text that could not be read to its end: it has no digest, since
// a secret might stand anywhere in it.
func (s *Session) beginUnread(ctx context.Context, w ResultWriter) {
	s.beginStatement(ctx, w)
	s.diag.reset()
	s.meter.text = ""
}

// clientText turns a text of the client's character set into UTF-8.
func (s *Session) clientText(sql string) (string, error) {
	if s.opt.client.IsUTF8() || s.opt.client == types.CharsetBinary {
		return sql, nil
	}
	b, bad := types.Convert(nil, []byte(sql), s.opt.client, types.CharsetUTF8MB4)
	if bad >= 0 {
		return "", sqlerr.New(sqlerr.InvalidCharacterString, s.opt.client, sql[bad:])
	}
	return string(b), nil
}

// beginStatement prepares the session for a statement.
func (s *Session) beginStatement(ctx context.Context, w ResultWriter) {
	s.out.begin(ctx, w)
	s.meter.begin(s.process.Info)
	s.meter.filter = s.m.audit.filter.Load()
	s.work.run.Examined = 0
	s.x.ResetStatement()
	s.x.Now = s.now()
	s.x.DataChange, s.x.Ignore = false, false
	s.x.Params = nil
	s.x.Row, s.x.Column = 0, ""
	s.memory.Begin(s.opt.memoryMax, &s.share)
	s.limit, s.overslept = 0, 0
	s.x.Memory = s.memoryHook // operators have their own
	s.work.begin()
	s.setToday()
}

// setToday gives conversions the statement's date.
func (s *Session) setToday() {
	now := s.x.Now
	if s.x.Location != nil {
		now = now.In(s.x.Location)
	} else {
		now = now.UTC()
	}
	year, month, day := now.Date()
	s.x.Today = types.MakeDateTime(year, int(month), day, 0, 0, 0, 0)
}

// runStatement runs one statement and ends it with Done.
func (s *Session) runStatement(ctx context.Context, st ast.Statement, w ResultWriter, more bool) error {
	s.beginStatement(ctx, w)
	s.meter.text = st.Text()
	if !keepsDiagnostics(st) {
		s.diag.reset()
	}
	if _, executes := st.(*ast.Execute); !executes { // which counts as what it executes
		if err := s.countUse(st); err != nil {
			s.meter.kind, s.meter.tree = statementKindOf(st), st // what is refused is audited, too
			return err
		}
	}
	trees := s.work.held
	out, err := s.dispatch(ctx, st)
	s.releaseStatement(trees)
	s.x.Shed()
	if err != nil {
		return err
	}
	s.work.ofConditions = keepsDiagnostics(st)
	return s.done(out, more)
}

// done ends a statement well.
func (s *Session) done(out Outcome, more bool) error {
	if !s.work.keepsCount {
		s.rowCount = int64(out.AffectedRows)
	}
	if s.out.sent {
		s.rowCount = -1
	}
	if s.work.setInsertID && out.LastInsertID == 0 {
		out.LastInsertID = s.lastInsertID
	}
	if !s.work.ofConditions {
		out.Warnings = s.diag.warnings()
	}
	out.More = more
	s.meter.out = out
	if err := s.out.w.Done(out); err != nil {
		return &writerError{err}
	}
	return nil
}

// keepsDiagnostics reports whether a statement is about the conditions of the one
// before.
func keepsDiagnostics(st ast.Statement) bool {
	switch st := st.(type) {
	case *ast.Show:
		return st.Kind == ast.ShowWarnings || st.Kind == ast.ShowErrors
	case *ast.GetDiagnostics:
		return true
	case *ast.Signal:
		return st.Resignal
	}
	return false
}

// dispatch runs a statement.
func (s *Session) dispatch(ctx context.Context, st ast.Statement) (Outcome, error) {
	var out Outcome
	s.meter.kind, s.meter.tree = statementKindOf(st), st
	if s.gone.Load() && !s.info.ReadOnly {
		return out, s.notLeader()
	}
	switch st := st.(type) {
	case *ast.Select, *ast.SetOp, *ast.Values, *ast.Insert, *ast.Update, *ast.Delete:
		return s.runPlanned(ctx, st, nil)
	}
	if len(st.HintsElsewhere()) > 0 {
		s.warnAll(keptClauses(st))
	}
	switch st := st.(type) {
	case *ast.Begin:
		return out, s.runBegin(ctx, st)
	case *ast.Commit:
		return out, s.runCommit(ctx, st.Completion)
	case *ast.Rollback:
		return out, s.runRollback(ctx, st)
	case *ast.Savepoint:
		return out, s.runSavepoint(st.Name)
	case *ast.Release:
		return out, s.runRelease(st.Name)
	case *ast.Set:
		return out, s.runSet(st)
	case *ast.SetTransaction:
		return out, s.runSetTransaction(st)
	case *ast.Use:
		return out, s.use(st.Schema)
	case *ast.Do:
		return out, s.runDo(ctx, st)
	case *ast.Prepare:
		return out, s.runPrepare(ctx, st)
	case *ast.Execute:
		return s.runExecute(ctx, st)
	case *ast.Deallocate:
		return out, s.runDeallocate(st)
	case *ast.GetDiagnostics:
		return s.runGetDiagnostics(st)
	case *ast.Signal:
		return out, s.runSignal(st)
	}
	return s.dispatchRare(ctx, st)
}

// dispatchRare runs the statements that do not matter for speed.
func (s *Session) dispatchRare(ctx context.Context, st ast.Statement) (Outcome, error) {
	var out Outcome
	switch st := st.(type) {
	case *ast.Kill:
		return out, s.runKill(st)
	case *ast.Explain:
		return s.runExplain(ctx, st)
	case *ast.KeyCache:
		return s.runKeyCache(ctx, st)
	case *ast.Handler:
		return s.runHandler(ctx, st)
	case *ast.LockTables:
		return out, s.runLockTables(ctx, st)
	case *ast.UnlockTables:
		return out, s.runUnlockTables(ctx)
	case *ast.InstanceLock:
		return out, s.runInstanceLock(st)
	case *ast.LoadData:
		return s.runLoadData(ctx, st)
	case *ast.Call:
		return out, sqlerr.New(sqlerr.SPDoesNotExist, "PROCEDURE", st.Name)
	case *ast.ReloadTLS:
		return out, s.runReloadTLS()
	case *ast.Show, *ast.Maintain, *ast.Flush, *ast.Help:
		return s.runShow(st)
	case *ast.CreateUser, *ast.AlterUser, *ast.DropUser, *ast.Component, *ast.RenameUser, *ast.SetPassword, *ast.Grant, *ast.RevokeAll,
		*ast.GrantRole, *ast.SetRole, *ast.SetDefaultRole:
		return s.runAccount(st)
	case *ast.CreateSchema, *ast.AlterSchema, *ast.DropSchema, *ast.CreateTable, *ast.AlterTable, *ast.DropTable, *ast.Truncate,
		*ast.RenameTables, *ast.CreateIndex, *ast.DropIndex, *ast.CreateView, *ast.DropView:
		return s.runDDL(st)
	}
	s.meter.unknown = true
	return out, unknownStatement(st)
}

// runDo is DO: its expressions are evaluated, and that is all.
func (s *Session) runDo(ctx context.Context, st *ast.Do) error {
	for _, e := range st.Exprs {
		if _, _, err := s.evaluate(e); err != nil {
			return err
		}
	}
	return nil
}

// runKill is KILL.
func (s *Session) runKill(st *ast.Kill) error {
	v, _, err := s.evaluate(st.ID)
	if err != nil {
		return err
	}
	neg, id, ok := integerOf(v)
	if !ok || neg {
		return sqlerr.Newf(sqlerr.NoSuchThread, "Unknown thread id: %s", valueText(v))
	}
	s.meter.killed = strconv.FormatUint(id, 10)
	if err := s.mayKill(id); err != nil {
		return err
	}
	if err := s.m.Kill(id, !st.Query); err != nil {
		return err
	}
	if id == s.id {
		return s.interrupted()
	}
	return nil
}

// evaluate works out an expression that stands outside of queries.
func (s *Session) evaluate(e ast.Expr) (types.Value, *types.Type, error) {
	if hasSubquery(e) {
		return s.evaluateQuery(e)
	}
	n, err := expr.Bind(s.scope(), e)
	if err != nil {
		return types.Null, nil, err
	}
	v, err := n.Value(&s.x, nil, 0)
	return v, n.Type(), err
}

// hasSubquery reports whether an expression contains a query.
func hasSubquery(e ast.Expr) bool {
	found := false
	inspect(e, func(n ast.Node) bool {
		if _, ok := n.(ast.Query); ok {
			found = true
		}
		return !found
	})
	return found
}

// evaluateQuery works out an expression with subqueries: as SELECT of it.
func (s *Session) evaluateQuery(e ast.Expr) (types.Value, *types.Type, error) {
	row, cols, err := s.firstRow(&ast.Select{Items: []ast.SelectItem{{Expr: e, Text: "x"}}})
	if err != nil || row == nil {
		return types.Null, nil, err
	}
	return row[0], cols[0].Type, nil
}

// firstRow runs a query and returns its first row, nil if there is none, with memory of
// its own. Error 1172 for more than one.
func (s *Session) firstRow(q ast.Query) (row []types.Value, cols []ResultColumn, err error) {
	keep := &rowKeeper{limit: 2}
	outer := s.out
	s.out.begin(outer.ctx, keep)
	s.limit = unlimited
	_, err = s.runPlanned(outer.ctx, q, nil)
	s.out = outer
	if err != nil {
		return nil, nil, err
	}
	if len(keep.rows) > 1 {
		return nil, nil, sqlerr.New(sqlerr.TooManyRows)
	}
	if len(keep.rows) == 0 {
		return nil, keep.cols, nil
	}
	return keep.rows[0], keep.cols, nil
}

// rowKeeper is a ResultWriter that keeps rows.
type rowKeeper struct {
	cols  []ResultColumn
	rows  [][]types.Value
	limit int
}

func (k *rowKeeper) Columns(cols []ResultColumn) error {
	k.cols = append([]ResultColumn(nil), cols...)
	return nil
}

func (k *rowKeeper) Rows(b *types.Batch) error {
	for i := 0; i < b.Len() && len(k.rows) < k.limit; i++ {
		row := b.Row(nil, i)
		for c := range row {
			row[c] = row[c].Clone()
		}
		k.rows = append(k.rows, row)
	}
	return nil
}

func (k *rowKeeper) Done(Outcome) error { return nil }

// unlimited is the time limit of statements that have none though they contain queries.
const unlimited = time.Duration(math.MaxInt64)

// startLimit begins max_execution_time, unless a wait before it has begun it: that of a statement that is a
// query, or explains one. It ends waits for locks as well.
func (s *Session) startLimit() {
	if !s.work.reads {
		return
	}
	limit := s.work.hinted
	if limit == 0 {
		limit = time.Duration(s.value(varMaxExecution).n) * time.Millisecond
	}
	if limit != 0 && s.limit == 0 {
		s.limit = s.env.Monotonic() + limit
	}
}

const maxExecutionHint = "MAX_EXECUTION_TIME"

// hintedLimit is what a query says with the hint MAX_EXECUTION_TIME(n), which counts instead of the variable; 0: nothing.
func hintedLimit(st ast.Statement) time.Duration {
	q, _ := st.(ast.Query)
	first := ast.FirstSelect(q)
	if first == nil {
		return 0
	}
	for i := range first.Hints {
		if h := &first.Hints[i]; h.Name == maxExecutionHint {
			ms, _ := strconv.ParseUint(h.Args, 10, 32) // what is no number ends the hints
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 0
}
