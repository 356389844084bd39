package client

import (
	"context"
	"errors"
	"time"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Result is how a statement ended that has changed something.
type Result struct {
	AffectedRows uint64
	LastInsertID uint64
	Warnings     int
	Info         string
	// GTID is the number of the transaction that was committed; 0: none, or not yet. A read with
	// AtLeast and this number sees it, on any node.
	GTID uint64
	// Repeated: the statement was found to have been committed when it was sent again, since its
	// answer had been lost. AffectedRows and LastInsertID are not known then.
	Repeated bool
}

func resultOf(d *pb.SqlDone) Result {
	return Result{d.AffectedRows, d.LastInsertId, int(d.Warnings), d.Info, d.Gtid, d.Repeated}
}

// statement makes a statement for the contract.
func (db *DB) statement(text string, args []any) (*pb.SqlStatement, error) {
	st := &pb.SqlStatement{Text: text}
	if len(args) == 0 {
		return st, nil
	}
	all := make([]pb.SqlValue, len(args))
	st.Params = make([]*pb.SqlValue, len(args))
	for i, a := range args {
		if err := db.setValue(&all[i], a); err != nil {
			return nil, &Error{Number: 1210, State: "HY000", Message: "argument " + itoa(i+1) + ": " + err.Error()}
		}
		st.Params[i] = &all[i]
	}
	return st, nil
}

// timeout tells the server how long the caller waits.
func timeout(ctx context.Context, st *pb.SqlStatement) {
	if until, ok := ctx.Deadline(); ok {
		st.TimeoutMs = uint32(min(max(time.Until(until)/time.Millisecond, 1), 1<<31))
	}
}

// Exec runs a statement in autocommit at the leader. A statement that changes rows is committed
// once, though it may be sent again.
func (db *DB) Exec(ctx context.Context, text string, args ...any) (Result, error) {
	return db.exec(ctx, text, args, false)
}

func (db *DB) exec(ctx context.Context, text string, args []any, prepare bool) (_ Result, err error) {
	ctx, sp := db.begin(ctx, firstWord(text))
	defer func() { sp.end(err) }()
	st, err := db.statement(text, args)
	if err != nil {
		return Result{}, err
	}
	if changes(text) {
		token := NewToken()
		st.CommitToken = token[:]
	}
	var done *pb.SqlDone
	err = db.patiently(ctx, func() error {
		timeout(ctx, st)
		s, err := db.writer(ctx)
		if err != nil {
			return err
		}
		done, err = s.run(ctx, st, prepare)
		db.put(s)
		if err != nil && st.CommitToken == nil && retryable(err) == SameToken {
			return final(err)
		}
		st.Again = st.Again || retryable(err) == SameToken || retryable(err) == Elsewhere
		return err
	})
	if err != nil {
		return Result{}, err
	}
	return resultOf(done), nil
}

// final makes an error one after which nothing is tried again.
func final(err error) error {
	var e *Error
	if errors.As(err, &e) {
		clone := *e
		clone.Retry = Never
		return &clone
	}
	return err
}

// call sends a statement, and with it, if it is to be and is not yet, its preparation, whose
// answer it takes.
func (s *session) call(ctx context.Context, st *pb.SqlStatement, prepare bool) (*call, error) {
	st.Traceparent = traceparent(ctx)
	at(ctx, s.st.n.addr, false)
	c, preparing, err := s.start(st, prepare)
	if err == nil && preparing != nil {
		err = s.awaitPrepared(ctx, st.Text, preparing)
	}
	return c, err
}

// run runs a statement whose rows nobody wants.
func (s *session) run(ctx context.Context, st *pb.SqlStatement, prepare bool) (*pb.SqlDone, error) {
	c, err := s.call(ctx, st, prepare)
	if err != nil {
		return nil, err
	}
	return s.finish(ctx, c)
}

func (s *session) start(st *pb.SqlStatement, prepare bool) (c, preparing *call, err error) {
	s.own = s.own || stateful(st.Text)
	if prepare {
		return s.executePrepared(st)
	}
	c, err = s.execute(st, false)
	return c, nil, err
}

// Query runs a statement at the leader and returns its rows, which have to be closed. Reads see
// everything that was acknowledged before.
func (db *DB) Query(ctx context.Context, text string, args ...any) (*Rows, error) {
	return db.query(ctx, db.writer, nil, text, args, false)
}

// query runs a statement in a session of its own until its rows are closed.
func (db *DB) query(ctx context.Context, session func(context.Context) (*session, error), read *Read, text string, args []any, prepare bool) (_ *Rows, err error) {
	outer := ctx
	ctx, sp := db.begin(ctx, firstWord(text))
	defer func() { sp.end(err) }()
	st, err := db.statement(text, args)
	if err != nil {
		return nil, err
	}
	st.Read = read.proto()
	if changes(text) {
		token := NewToken()
		st.CommitToken = token[:]
	}
	var rows *Rows
	behind := 0
	err = db.patiently(ctx, func() error {
		timeout(ctx, st)
		s, err := session(ctx)
		if err != nil {
			return err
		}
		rows, err = s.rows(ctx, st, prepare, db.put)
		if err == nil {
			rows.ctx = outer // the span ends before them
			return nil
		}
		err = db.passOver(s, err, &behind)
		db.put(s)
		switch r := retryable(err); {
		case r == SameToken && reads(text):
			return elsewhere(err)
		case r == SameToken && st.CommitToken == nil:
			return final(err)
		case r == SameToken || r == Elsewhere:
			st.Again = st.CommitToken != nil
		}
		return err
	})
	return rows, err
}

// rows runs a statement up to its columns. done is given the session when the rows are closed.
func (s *session) rows(ctx context.Context, st *pb.SqlStatement, prepare bool, done func(*session)) (*Rows, error) {
	c, err := s.call(ctx, st, prepare)
	if err != nil {
		return nil, err
	}
	r := &Rows{ctx: ctx, s: s, c: c, done: done}
	if err := r.part(); err != nil {
		return nil, err
	}
	return r, nil
}

// QueryRow runs a statement at the leader of which one row is wanted.
func (db *DB) QueryRow(ctx context.Context, text string, args ...any) *Row {
	rows, err := db.Query(ctx, text, args...)
	return &Row{rows, err}
}

// Read says what a read may miss.
type Read struct {
	kind  pb.SqlConsistency
	gtid  uint64
	bound time.Duration
}

// Strong reads see everything that was acknowledged before they began, on any node.
func Strong() Read { return Read{kind: pb.SqlConsistency_SQL_CONSISTENCY_STRONG} }

// AtLeast reads see everything up to a transaction, such as Result.GTID.
func AtLeast(gtid uint64) Read {
	return Read{kind: pb.SqlConsistency_SQL_CONSISTENCY_AT_LEAST, gtid: gtid}
}

// Bounded reads miss at most what was committed within d, which is counted in milliseconds.
func Bounded(d time.Duration) Read {
	return Read{kind: pb.SqlConsistency_SQL_CONSISTENCY_BOUNDED, bound: d}
}

// Local reads see what the node has.
func Local() Read { return Read{kind: pb.SqlConsistency_SQL_CONSISTENCY_LOCAL} }

func (r *Read) proto() *pb.SqlRead {
	if r == nil || r.kind == pb.SqlConsistency_SQL_CONSISTENCY_UNSPECIFIED {
		return nil
	}
	return &pb.SqlRead{Consistency: r.kind, AtLeast: r.gtid, BoundMs: uint32(min(r.bound/time.Millisecond, 1<<31))}
}

// Reader reads from any node. Each of its calls goes to the member that has the fewest reads of this DB under
// way, in turns; to one that was too far behind for a read the next ones do not go for 5 seconds.
type Reader struct {
	db   *DB
	read Read
}

// Reader returns what reads from any node. It sees what r asks for, whichever node it is: a read that is AtLeast a
// write's GTID sees it everywhere.
func (db *DB) Reader(r Read) *Reader { return &Reader{db, r} }

// Query is DB.Query at any node.
func (r *Reader) Query(ctx context.Context, text string, args ...any) (*Rows, error) {
	return r.db.query(ctx, r.db.reader, &r.read, text, args, false)
}

// QueryRow is DB.QueryRow at any node.
func (r *Reader) QueryRow(ctx context.Context, text string, args ...any) *Row {
	rows, err := r.Query(ctx, text, args...)
	return &Row{rows, err}
}

// Stmt is a statement that sessions keep prepared. It is safe for concurrent use.
type Stmt struct {
	db   *DB
	text string
}

// Prepare returns a statement that every session prepares when it first runs it.
func (db *DB) Prepare(text string) *Stmt { return &Stmt{db, text} }

// Exec is DB.Exec.
func (st *Stmt) Exec(ctx context.Context, args ...any) (Result, error) {
	return st.db.exec(ctx, st.text, args, true)
}

// Query is DB.Query.
func (st *Stmt) Query(ctx context.Context, args ...any) (*Rows, error) {
	return st.db.query(ctx, st.db.writer, nil, st.text, args, true)
}

// QueryRow is DB.QueryRow.
func (st *Stmt) QueryRow(ctx context.Context, args ...any) *Row {
	rows, err := st.Query(ctx, args...)
	return &Row{rows, err}
}

// Ping asks the leader for an answer.
func (db *DB) Ping(ctx context.Context) error {
	return db.patiently(ctx, func() error {
		s, err := db.writer(ctx)
		if err != nil {
			return err
		}
		defer db.put(s)
		c, err := s.send(false, func(m *pb.SqlSessionsRequest) { m.Kind = &pb.SqlSessionsRequest_Ping{Ping: &pb.SqlPing{}} })
		if err == nil {
			_, err = s.finish(ctx, c)
		}
		return elsewhere(err)
	})
}
