package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/trace"
)

// transactionState is where the session stands with its transaction.
type transactionState struct {
	active   bool // there is a transaction
	multi    bool // that goes on after the statement: BEGIN, or autocommit is off
	unused   bool // only SAVEPOINT has needed it yet: for the client it has not begun
	begun    bool // the transaction's present statement is over: the next one begins one
	readOnly bool
	wrote    bool // it has changed something
	pointed  bool // the read point of its snapshot has been asked for
	level    trx.Isolation
	tables   lockedTables // of LOCK TABLES

	// SET TRANSACTION, for the next one only: 0 is not set, else the value plus one.
	nextIsolation, nextAccess uint8

	lastGTID uint64 // of the last transaction that this session has committed
}

// end forgets the transaction.
func (t *transactionState) end() {
	t.active, t.multi, t.unused, t.begun, t.readOnly, t.wrote, t.pointed = false, false, false, false, false, false, false
}

// shown reports whether the client is told that it is in a transaction.
func (t *transactionState) shown() bool { return t.multi && !t.unused }

// snapshot reports whether all further plain reads are of the snapshot that has been asked for.
func (t *transactionState) snapshot() bool {
	return t.pointed && !t.readsCommitted()
}

// readsCommitted reports whether the transaction is at READ COMMITTED or below.
func (t *transactionState) readsCommitted() bool {
	return t.level == trx.ReadCommitted || t.level == trx.ReadUncommitted
}

var isolations = [...]trx.Isolation{isoReadUncommitted: trx.ReadUncommitted, isoReadCommitted: trx.ReadCommitted,
	isoRepeatableRead: trx.RepeatableRead, isoSerializable: trx.Serializable}

// begin starts a transaction. access is that of START TRANSACTION.
func (s *Session) begin(access ast.Access) error {
	if err := s.connect(); err != nil {
		return err
	}
	t := &s.trx
	level, readOnly := s.opt.isolation, s.opt.readOnly
	if t.nextIsolation != 0 {
		level = t.nextIsolation - 1
	}
	if t.nextAccess != 0 {
		readOnly = ast.Access(t.nextAccess-1) == ast.AccessReadOnly
	}
	if access != ast.AccessUnspecified {
		readOnly = access == ast.AccessReadOnly
	}
	t.nextIsolation, t.nextAccess = 0, 0
	o := txn.BeginOptions{MetadataWait: s.seconds(varLockWait), Client: s.id, Ended: s.stops}
	o.Isolation, o.ReadOnly, o.LockWait, o.Until = isolations[level], readOnly, s.seconds(varRowLockWait), s.until
	if o.Isolation == trx.Serializable && (s.info.ReadOnly || s.work.reads && s.opt.autocommit) {
		// One snapshot is serializable, be it of the past. Where writers are refused nobody may lock, and a query
		// that is the whole transaction need not.
		o.Isolation = trx.RepeatableRead
	}
	o.Token, o.HasToken = s.takeToken()
	s.published.Store(publishedTrx(o.Isolation, readOnly))
	if err := s.txn.Begin(o); err != nil {
		return err
	}
	t.end()
	t.active, t.readOnly, t.level = true, readOnly, o.Isolation
	return nil
}

// keepNext lets what was said of the next transaction hold for the one behind what is done before
// the returned function is called.
func (s *Session) keepNext() func() {
	t, token := &s.trx, s.token
	isolation, access := t.nextIsolation, t.nextAccess
	return func() { s.token, t.nextIsolation, t.nextAccess = token, isolation, access }
}

func (s *Session) seconds(v *variable) time.Duration {
	return time.Duration(s.value(v).n) * time.Second
}

// beginWork starts a statement that uses tables: in the transaction that goes on, or in
// one of its own. endWork follows if trx.begun is set, also after an error: that the statement
// was killed.
func (s *Session) beginWork() error {
	t := &s.trx
	t.unused = false
	if !t.active {
		if err := s.begin(ast.AccessUnspecified); err != nil {
			return err
		}
		if t.multi = !s.opt.autocommit; t.multi {
			s.published.Or(publishedGoesOn)
		}
		t.begun = true
		return s.interrupted() // the transaction knows nothing of a KILL before it
	}
	if t.begun {
		// Begin has started the first statement.
		return nil
	}
	if err := s.txn.BeginStatement(); err != nil {
		return s.lost(err)
	}
	t.begun = true
	return s.interrupted()
}

// lost is called with every error of the transaction: it notices that the error has
// ended it. It returns the error.
func (s *Session) lost(err error) error {
	if s.trx.active && !s.txn.InTransaction() {
		_ = s.txn.Rollback() // forgets the error
		s.trx.end()
		s.trackTransaction()
	}
	return err
}

// endWork ends a statement that beginWork began: well, or by the error, which it
// returns after the statement was rolled back. settle says that the answer tells of rows
// whose locks may have been released early.
func (s *Session) endWork(ctx context.Context, err error, settle bool) error {
	t := &s.trx
	if err != nil {
		return s.failWork(ctx, err)
	}
	t.begun = false
	if !t.multi {
		return s.commit(ctx)
	}
	if err = s.txn.EndStatement(); err == nil && settle {
		err = s.txn.Settle(ctx)
	}
	if err != nil {
		return s.lost(err)
	}
	return nil
}

// failWork rolls a statement back because of an error, which it returns, or what kept
// it from doing so. What the error tells of others' rows is committed then, and this node leads.
func (s *Session) failWork(ctx context.Context, cause error) error {
	t := &s.trx
	if t.active && !s.txn.InTransaction() {
		// What has ended the transaction counts, not an error that may tell of rows which
		// fail with it: the client must not take its transaction for one that goes on.
		if reason := s.txn.EndStatement(); reason != nil && !errors.Is(cause, reason) {
			cause = reason
		}
		return s.lost(cause)
	}
	t.begun = false
	if err := s.txn.RollbackStatement(); err != nil {
		if s.lost(err); !t.active {
			return err
		}
		// The client must not take the transaction for one that goes on, which the statement's own error would say.
		s.gone.Store(true)
		return s.abandon(err)
	}
	if err := s.stand(ctx, cause); err != nil {
		if s.lost(err); !t.active {
			return err
		}
		cause = err
	}
	if !t.multi {
		return s.abandon(cause)
	}
	if err := s.txn.EndStatement(); err != nil {
		if s.lost(err); !t.active {
			return err
		}
	}
	return cause
}

// stand makes sure that an error may be told: that what it depends on is committed, and, if it may tell of
// rows or definitions, that this node leads. It returns what kept it from that.
func (s *Session) stand(ctx context.Context, cause error) error {
	if wasEnded(cause) {
		return nil
	}
	if err := s.txn.Settle(ctx); err != nil {
		return err
	}
	switch errorNumber(cause) {
	case 0, sqlerr.LockWaitTimeout, sqlerr.LockDeadlock, sqlerr.ServerShutdown,
		sqlerr.OptionPreventsStatement: // which tell of no data
		return nil
	}
	return s.confirm()
}

// wasEnded reports whether an error says no more than that KILL or a time limit has ended the statement:
// nobody waits for anything before it is told.
func wasEnded(err error) bool {
	switch errorNumber(err) {
	case sqlerr.QueryInterrupted, sqlerr.QueryTimeout:
		return true
	}
	return errors.Is(err, lock.ErrInterrupted)
}

// abandon rolls the transaction back because of an error, which it returns.
func (s *Session) abandon(cause error) error {
	if err := s.txn.Rollback(); err != nil && !errors.Is(err, txn.ErrNoTransaction) {
		cause = s.stuck(errors.Join(cause, err))
	}
	s.trx.end()
	return cause
}

// stuck is called with the error of a rollback that failed, which it returns with what follows: the
// session cannot begin another transaction. Its door closes it, and it is rolled back when that can be done.
func (s *Session) stuck(err error) error {
	s.gone.Store(true)
	return fmt.Errorf("%w; the transaction keeps its locks until it can be rolled back, which is tried again; connect again", err)
}

// commit commits the transaction.
func (s *Session) commit(ctx context.Context) error {
	t := &s.trx
	if !t.active {
		return nil
	}
	wrote := t.wrote
	t.end()
	var began time.Duration
	if wrote {
		began = s.env.Monotonic()
	}
	var own trace.Context
	if wrote {
		own = s.traceCommit()
	}
	s.turn.Pause()
	number, err := s.txn.Commit(ctx)
	if own.Valid() {
		s.recordPart(own, "commit", began, s.env.Monotonic(), err, s.aboutCommit(number)...)
	}
	if err != nil {
		if s.txn.InTransaction() {
			err = s.stuck(err)
		}
		return err
	}
	if wrote {
		s.m.commits.observe(s.id, s.env.Monotonic()-began)
		t.lastGTID = number
		if s.opt.trackGTIDs {
			s.change(ChangeGTIDs, "", s.gtid(number))
		}
	}
	return nil
}

// endTransaction rolls back what is there: at Reset, and before a session ends.
func (s *Session) endTransaction() error {
	t := &s.trx
	t.nextIsolation, t.nextAccess = 0, 0
	if !t.active {
		return nil
	}
	t.end()
	err := s.txn.Rollback()
	if errors.Is(err, txn.ErrNoTransaction) {
		err = nil
	}
	if err != nil {
		err = s.stuck(err)
	}
	return err
}

// implicitCommit commits before a statement that cannot be part of a transaction.
func (s *Session) implicitCommit(ctx context.Context) error {
	err := s.commit(ctx)
	s.trackTransaction()
	return err
}

// inTransaction runs fn in a transaction of its own, for statements that change the
// catalogue: the one before is committed. It commits what fn has done, or rolls it back.
func (s *Session) inTransaction(ctx context.Context, fn func() error) error {
	return s.inTransactionAt(ctx, 0, fn)
}

// inTransactionAt is inTransaction at an isolation level, of those of the variable plus one; 0: the
// session's.
func (s *Session) inTransactionAt(ctx context.Context, level uint8, fn func() error) error {
	if s.token.set {
		return notSupported("a commit token with a statement that changes definitions or accounts")
	}
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	s.defines.Store(true)
	defer s.defines.Store(false)
	s.trx.nextIsolation, s.trx.nextAccess = level, 0
	if err := s.begin(ast.AccessReadWrite); err != nil {
		return err
	}
	err := s.interrupted()
	if err == nil && s.foresees && !s.trx.tables.held { // nobody waits for it yet
		err = s.expect(definitionTime)
	}
	s.foresees = false
	if err == nil {
		err = fn()
	}
	if err == nil && !s.txn.Changed() {
		err = s.unchanged(ctx)
	}
	if err != nil {
		return s.failTransaction(ctx, err)
	}
	s.trx.wrote = true
	return s.commit(ctx)
}

// unchanged makes sure that a statement may say that there was nothing to change: no commit will find out whether
// this node leads.
func (s *Session) unchanged(ctx context.Context) error {
	if err := s.txn.Settle(ctx); err != nil {
		return err
	}
	return s.confirm()
}

// mayDefine is asked before a statement that changes definitions, accounts or what lies under tables. It commits what
// is under way, so that what counts is whether the session's transactions are read-only, not what the one before was or SET
// TRANSACTION has said of the next. Errors: 1223, 1792.
func (s *Session) mayDefine(ctx context.Context) error {
	if err := s.mayChangeRows(); err != nil {
		return err
	}
	if !s.opt.readOnly {
		return nil
	}
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	s.trx.nextIsolation, s.trx.nextAccess = 0, 0
	return txn.ErrReadOnly
}

// failTransaction is failWork for inTransaction. The error may tell of rows, or of
// definitions: what it depends on is committed and this node leads, or that is the error.
func (s *Session) failTransaction(ctx context.Context, cause error) error {
	s.trx.multi = false
	if s.txn.InTransaction() {
		if err := s.stand(ctx, cause); err != nil {
			cause = err
		}
	}
	if s.txn.InTransaction() {
		return s.abandon(cause)
	}
	return s.failWork(ctx, cause)
}

// runBegin is BEGIN and START TRANSACTION.
func (s *Session) runBegin(ctx context.Context, st *ast.Begin) error {
	stays := s.trx.active && s.trx.multi && s.trx.readOnly // as MySQL has it, until COMMIT or ROLLBACK
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	s.unlockTables()
	access := ast.AccessUnspecified
	switch {
	case stays && !st.ReadWrite:
		access = ast.AccessReadOnly
	case st.ReadOnly:
		access = ast.AccessReadOnly
	case st.ReadWrite:
		access = ast.AccessReadWrite
	}
	if err := s.begin(access); err != nil {
		return err
	}
	s.trx.multi = true
	s.published.Or(publishedGoesOn)
	s.trackTransaction()
	if st.ConsistentSnapshot && s.trx.level != trx.ReadCommitted {
		if err := s.readPoint(); err != nil {
			return err
		}
		if _, err := s.txn.Snapshot(); err != nil {
			return s.lost(err)
		}
	}
	return nil
}

// runCommit is COMMIT.
func (s *Session) runCommit(ctx context.Context, c ast.Completion) error {
	before := s.trx
	if err := s.commit(ctx); err != nil {
		s.trackTransaction()
		return err
	}
	return s.complete(c, &before)
}

// runRollback is ROLLBACK.
func (s *Session) runRollback(ctx context.Context, st *ast.Rollback) error {
	if st.Savepoint != "" {
		if !s.trx.active {
			return noSavepoint(st.Savepoint)
		}
		return s.atSavepoint(func() error { return s.txn.RollbackTo(st.Savepoint) })
	}
	before := s.trx
	err := s.endTransaction()
	if !before.active {
		s.trx.nextIsolation, s.trx.nextAccess = before.nextIsolation, before.nextAccess
	}
	if err != nil {
		return err
	}
	return s.complete(st.Completion, &before)
}

// complete does what follows a COMMIT or ROLLBACK: a transaction that is chained is of the kind
// of the one before. Without one it is of the kind that SET TRANSACTION has asked for.
func (s *Session) complete(c ast.Completion, before *transactionState) error {
	if c == ast.CompletionDefault {
		c = [...]ast.Completion{ast.CompletionNone, ast.CompletionChain, ast.CompletionRelease}[s.opt.completion]
	}
	switch c {
	case ast.CompletionChain:
		access := ast.AccessUnspecified
		if before.active {
			for i, l := range isolations {
				if l == before.level {
					s.trx.nextIsolation = uint8(i) + 1
				}
			}
			if access = ast.AccessReadWrite; before.readOnly {
				access = ast.AccessReadOnly
			}
		}
		if err := s.begin(access); err != nil {
			return err
		}
		s.trx.multi = true
		s.published.Or(publishedGoesOn)
	case ast.CompletionRelease:
		s.gone.Store(true)
	}
	s.trackTransaction()
	return nil
}

// runSavepoint is SAVEPOINT. Without a transaction that goes on it means nothing, as
// in MySQL.
func (s *Session) runSavepoint(name string) error {
	if !s.trx.active {
		if s.opt.autocommit {
			return nil
		}
		if err := s.beginWork(); err != nil {
			if s.trx.begun {
				err = s.endWork(s.out.ctx, err, false)
			}
			return err
		}
		s.trx.unused = true
	}
	if err := s.holdKept(txn.SavepointBytes + int64(len(name))); err != nil {
		return err
	}
	err := s.atSavepoint(func() error { return s.txn.Savepoint(name) })
	s.settleKept() // one of the same name is there no more
	return err
}

func (s *Session) runRelease(name string) error {
	if !s.trx.active {
		return noSavepoint(name)
	}
	return s.atSavepoint(func() error { return s.txn.Release(name) })
}

// atSavepoint runs a call that stands between two statements.
func (s *Session) atSavepoint(fn func() error) error {
	s.trx.begun = false
	if err := fn(); err != nil {
		return s.lost(err)
	}
	return nil
}

func noSavepoint(name string) error {
	return sqlerr.New(sqlerr.SPDoesNotExist, "SAVEPOINT", name)
}

// runSetTransaction is SET [SESSION|GLOBAL] TRANSACTION.
func (s *Session) runSetTransaction(st *ast.SetTransaction) error {
	var level, access *varValue
	if st.Isolation != ast.IsolationUnspecified {
		level = &varValue{n: uint64(st.Isolation - ast.ReadUncommitted)}
	}
	if st.Access != ast.AccessUnspecified {
		access = &varValue{}
		if st.Access == ast.AccessReadOnly {
			access.n = 1
		}
	}
	if st.Scope == ast.ScopeNone {
		return s.setNext(level, access)
	}
	for name, v := range map[string]*varValue{"transaction_isolation": level, "transaction_read_only": access} {
		if v == nil {
			continue
		}
		if err := s.setSystem(variables[name], st.Scope, *v); err != nil {
			return err
		}
	}
	return nil
}

// setNext sets what the next transaction is begun with. Error: 1568.
func (s *Session) setNext(level, access *varValue) error {
	if s.trx.multi {
		return sqlerr.New(sqlerr.CantChangeTxCharacteristics)
	}
	if level != nil {
		s.trx.nextIsolation = uint8(level.n) + 1
	}
	if access != nil {
		s.trx.nextAccess = uint8(ast.AccessReadWrite) + 1
		if access.n != 0 {
			s.trx.nextAccess = uint8(ast.AccessReadOnly) + 1
		}
	}
	return nil
}

// readPoint makes sure that the transaction's next plain read sees what the session's
// consistency asks for.
func (s *Session) readPoint() error {
	t := &s.trx
	if t.snapshot() {
		return nil
	}
	if err := s.ask(); err != nil {
		return err // the next read asks again
	}
	t.pointed = true
	return nil
}

// ask waits until this node has what the session's consistency asks for: once in a statement.
func (s *Session) ask() error {
	if s.work.asked || s.work.unread != nil {
		return s.work.unread
	}
	o, err := s.readOptions()
	if err != nil {
		return err
	}
	s.work.unread = s.readAt(o)
	return s.work.unread
}

// readAt waits until this node has what a read asks for; the process list says so. KILL, the
// statement's time limit and the node's giving up the lead end the wait.
func (s *Session) readAt(o ReadOptions) error {
	began := s.tick()
	s.pointing.Store(true)
	o.Ended = s.ends
	_, err := s.m.opt.Backend.ReadPoint(o)
	s.pointing.Store(false)
	if errors.Is(err, s.m.opt.Backend.ReadEnded()) {
		err = s.whyReadEnded()
	}
	s.part("read point", began, shortest, err)
	return err
}

// pointFirst asks before a statement of the read-only port looks up tables or other
// definitions: they may be among what this node has still to apply, and who holds one while
// waiting would keep the log from changing it. A transaction that has its snapshot does not
// ask again.
func (s *Session) pointFirst() error {
	if !s.info.ReadOnly {
		return nil
	}
	return s.pointDefinitions()
}

// pointQuery is pointFirst within the time limit of a query, which goes on when it runs.
func (s *Session) pointQuery() error {
	s.startLimit()
	return s.pointFirst()
}

// pointDefinitions is pointFirst for what shows definitions or accounts, and what is refused because of them, on every
// port: no read of rows follows that would ask.
func (s *Session) pointDefinitions() error {
	if s.trx.snapshot() {
		return nil
	}
	if err := s.ask(); err != nil {
		return err
	}
	s.work.asked = true
	return nil
}

// confirm makes sure that this node led the group when what was read under locks was
// read: for answers that come of locks alone and no commit confirms. A node that has stopped leading may find the
// read point by way of the new leader, behind what it has read before.
func (s *Session) confirm() error {
	if s.opt.consistency == Local && s.info.ReadOnly {
		return nil
	}
	err := s.readAt(ReadOptions{Consistency: Strong, Wait: s.opt.readWait})
	if err == nil && s.trx.active && !s.info.ReadOnly {
		err = s.txn.Wrote()
	}
	return err
}

// errNamedLocks is what GET_LOCK() and its like say on the port for reads: a member that does not lead knows of none.
var errNamedLocks = sqlerr.Newf(sqlerr.OptionPreventsStatement, "The MySQL server is running with the --read-only "+
	"option so it cannot execute this statement: locks of GET_LOCK() are the leader's, on the main port")

// leads makes sure that this node leads the group now, for who has got what only one may have: a lock of GET_LOCK(), or of LOCK
// TABLES. Error besides: 1290, on the port for reads.
func (s *Session) leads() error {
	if s.info.ReadOnly {
		return errNamedLocks
	}
	if err := s.readAt(ReadOptions{Consistency: Strong, Wait: s.opt.readWait}); err != nil {
		return err
	}
	if s.gone.Load() || !s.m.opt.Backend.Writable() { // it may have found the read point by way of the new leader
		return s.notLeader()
	}
	return nil
}

// gtid is the GTID of a transaction.
func (s *Session) gtid(number uint64) string {
	return fmt.Sprintf("%s:%d", uuidText(s.m.opt.Backend.Group()), number)
}

// gtidExecuted is the set of transactions that this node has.
func (s *Session) gtidExecuted() string {
	eng, err := s.m.opt.Backend.Engine()
	if err != nil {
		return ""
	}
	switch n := eng.Trx.LastCommitted(); n {
	case 0:
		return ""
	case 1:
		return s.gtid(1)
	default:
		return fmt.Sprintf("%s:1-%d", uuidText(s.m.opt.Backend.Group()), n)
	}
}

// gtidNumber reads a set of GTIDs of the group, and returns the greatest number in it, or a bare number. Errors: 1772, 1105.
func (s *Session) gtidNumber(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		return n, nil
	}
	group := s.m.opt.Backend.Group()
	n, others, err := expr.GreatestGTID(text, group)
	if err != nil {
		return 0, err
	}
	if others {
		// Nobody executes them here, ever: MySQL would wait until the time is up, if there is a limit.
		return 0, sqlerr.Newf(sqlerr.UnknownError, "The GTIDs '%.200s' are of another group, whose transactions are "+
			"never executed here: those of this group have the UUID %s", text, uuidText(group))
	}
	return n, nil
}

// uuidText writes 16 bytes as a UUID.
func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// trackTransaction tells of the transaction's state, if the client wants to know.
func (s *Session) trackTransaction() {
	if s.opt.trackTransaction == 0 {
		return
	}
	state := []byte("________")
	if s.trx.shown() {
		state[0] = 'T'
		if s.trx.wrote {
			state[4] = 'W'
		}
	}
	s.change(ChangeTransaction, "", string(state))
	if s.opt.trackTransaction == 2 {
		text := ""
		if s.trx.shown() {
			text = "START TRANSACTION READ WRITE;"
			if s.trx.readOnly {
				text = "START TRANSACTION READ ONLY;"
			}
		}
		s.change(ChangeCharacteristics, "", text)
	}
}
