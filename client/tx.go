package client

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Isolation is how much a transaction sees of others.
type Isolation uint8

// Levels of isolation. The default is the server's.
const (
	DefaultIsolation Isolation = iota
	ReadUncommitted
	ReadCommitted
	RepeatableRead
	Serializable
)

// TxOptions say what kind of transaction is begun.
type TxOptions struct {
	Isolation Isolation
	ReadOnly  bool
	// Read lets a transaction that only reads be served by any node, as Reader.
	Read Read
	// Token is the transaction's commit token; zero: one is made.
	Token Token
	again bool
}

// Tx is a transaction. One task uses it at a time.
type Tx struct {
	db     *DB
	s      *session
	token  Token
	over   bool
	bound  bool  // the session is not given back
	broken error // why it was rolled back
	rows   *Rows
	result Result

	// Of RunTx: its span, and the context that it was called with, instead of which statements are
	// part of the span.
	span  trace.Span
	outer trace.SpanContext
}

// part begins the span of a call of the transaction.
func (tx *Tx) part(ctx context.Context, operation string) (context.Context, span) {
	if tx.span != nil && trace.SpanContextFromContext(ctx).Equal(tx.outer) {
		ctx = trace.ContextWithSpan(ctx, tx.span)
	}
	return tx.db.begin(ctx, operation)
}

// errRepeated: a transaction with the same token was committed before.
var errRepeated = errors.New("client: the transaction was committed before")

// Begin begins a transaction. It ends with Commit or Rollback.
func (db *DB) Begin(ctx context.Context, o *TxOptions) (*Tx, error) {
	if o == nil {
		o = &TxOptions{}
	}
	tx := &Tx{db: db, token: o.Token}
	if tx.token == (Token{}) {
		tx.token = NewToken()
	}
	behind := 0
	err := db.patiently(ctx, func() error {
		open := db.writer
		if o.ReadOnly && o.Read.proto() != nil {
			open = db.reader
		}
		var err error
		if tx.s, err = open(ctx); err != nil {
			return err
		}
		done, err := tx.begin(ctx, o)
		if err == nil && done.Repeated {
			tx.result = resultOf(done)
			err = errRepeated
		}
		if err != nil {
			err = db.passOver(tx.s, err, &behind)
			db.put(tx.s)
		}
		return elsewhere(err) // nothing has been done yet
	})
	if err != nil {
		return tx, err
	}
	return tx, nil
}

func (tx *Tx) begin(ctx context.Context, o *TxOptions) (_ *pb.SqlDone, err error) {
	ctx, sp := tx.part(ctx, "BEGIN")
	defer func() { sp.end(err) }()
	at(ctx, tx.s.st.n.addr, false)
	b := &pb.SqlBegin{Isolation: pb.SqlIsolation(o.Isolation), ReadOnly: o.ReadOnly, Read: o.Read.proto(), Again: o.again,
		Traceparent: traceparent(ctx)}
	if !o.ReadOnly {
		b.CommitToken = tx.token[:]
	}
	c, err := tx.s.send(false, func(m *pb.SqlSessionsRequest) { m.Kind = &pb.SqlSessionsRequest_Begin{Begin: b} })
	if err != nil {
		return nil, err
	}
	return tx.s.finish(ctx, c)
}

// Token is the transaction's commit token.
func (tx *Tx) Token() Token { return tx.token }

// ready ends the rows of the statement before.
func (tx *Tx) ready() error {
	if tx.over {
		return ErrClosed
	}
	if tx.rows != nil {
		_ = tx.rows.Close()
		if err := tx.rows.Err(); err != nil {
			_ = tx.failed(err)
		} else if tx.rows.outside {
			tx.ended()
		}
		tx.rows = nil
	}
	return tx.broken
}

// failed keeps an error after which the transaction is rolled back, or its session gone: what comes
// behind it must not be committed by itself, though the session may go on.
func (tx *Tx) failed(err error) error {
	switch r := retryable(err); {
	case err == nil:
	case tx.s.ended() != nil:
		if r == SameToken {
			err = elsewhere(err) // what is not committed has no effect
		}
		tx.broken = err
	case r == Transaction || r == Elsewhere:
		tx.broken = err
	}
	return err
}

// errEnded says that a statement has ended the transaction.
var errEnded = errors.New("client: a statement has ended the transaction, such as one that changes tables, or COMMIT as text: use Tx.Commit and Tx.Rollback")

// errBegun says that a statement would have ended the transaction and begun another one, of which nobody
// could tell.
var errBegun = errors.New("client: a transaction is open: BEGIN, START TRANSACTION and AND CHAIN as text would commit it and begin another one, " +
	"which Tx.Commit and Tx.Rollback would then end; use Tx.Commit, and DB.Begin for the next one")

// refuse refuses statements that begin a transaction.
func refuse(text string) error {
	switch firstWord(text) {
	case "BEGIN", "START":
		return errBegun
	case "COMMIT", "ROLLBACK":
		if strings.Contains(strings.ToUpper(text), "CHAIN") {
			return errBegun
		}
	}
	return nil
}

// ended notes that a statement has ended the transaction: what comes behind it must not be
// committed by itself.
func (tx *Tx) ended() {
	if tx.broken == nil {
		tx.broken = errEnded
	}
}

// Exec runs a statement. BEGIN and START TRANSACTION as text are refused: the transaction goes on without them.
func (tx *Tx) Exec(ctx context.Context, text string, args ...any) (Result, error) {
	return tx.exec(ctx, text, args, len(args) > 0)
}

func (tx *Tx) exec(ctx context.Context, text string, args []any, prepare bool) (_ Result, err error) {
	if err := cmp.Or(tx.ready(), refuse(text)); err != nil {
		return Result{}, err
	}
	ctx, sp := tx.part(ctx, firstWord(text))
	defer func() { sp.end(err) }()
	st, err := tx.db.statement(text, args)
	if err != nil {
		return Result{}, err
	}
	timeout(ctx, st)
	done, err := tx.s.run(ctx, st, prepare)
	if err != nil {
		return Result{}, tx.failed(err)
	}
	if !done.InTransaction {
		tx.ended()
	}
	return resultOf(done), nil
}

// Query runs a statement and returns its rows. The next statement of the transaction closes them.
func (tx *Tx) Query(ctx context.Context, text string, args ...any) (_ *Rows, err error) {
	if err := cmp.Or(tx.ready(), refuse(text)); err != nil {
		return nil, err
	}
	outer := ctx
	ctx, sp := tx.part(ctx, firstWord(text))
	defer func() { sp.end(err) }()
	st, err := tx.db.statement(text, args)
	if err != nil {
		return nil, err
	}
	timeout(ctx, st)
	rows, err := tx.s.rows(ctx, st, len(args) > 0, func(*session) {})
	if err != nil {
		return nil, tx.failed(err)
	}
	rows.ctx = outer // the span ends before them
	tx.rows = rows
	return rows, nil
}

// QueryRow runs a statement of which one row is wanted.
func (tx *Tx) QueryRow(ctx context.Context, text string, args ...any) *Row {
	rows, err := tx.Query(ctx, text, args...)
	return &Row{rows, err}
}

// Commit commits the transaction. If the answer is lost, the leader is asked what became of it. An
// error whose Retry is SameToken says that nobody could be asked; one whose Retry is Transaction or
// Elsewhere, that it is not committed: whoever tries it again gives the same Token, as RunTx does.
func (tx *Tx) Commit(ctx context.Context) (_ Result, err error) {
	if err := tx.ready(); err != nil {
		if !tx.over {
			_ = tx.Rollback(ctx)
		}
		return Result{}, err
	}
	defer tx.end()
	ctx, sp := tx.part(ctx, "COMMIT")
	defer func() { sp.end(err) }()
	at(ctx, tx.s.st.n.addr, false)
	c, err := tx.s.send(false, func(m *pb.SqlSessionsRequest) {
		m.Kind = &pb.SqlSessionsRequest_Commit{Commit: &pb.SqlCommit{Traceparent: traceparent(ctx)}}
	})
	var done *pb.SqlDone
	if err == nil {
		done, err = tx.s.finish(ctx, c)
	}
	switch {
	case err == nil:
		return resultOf(done), nil
	case retryable(err) != SameToken:
		return Result{}, err
	}
	gtid, committed, asked := tx.db.outcome(ctx, tx.token)
	switch {
	case asked != nil:
		return Result{}, errors.Join(err, asked)
	case committed:
		return Result{GTID: gtid, Repeated: true}, nil
	}
	return Result{}, elsewhere(err)
}

// Rollback ends the transaction without effect. After Commit it does nothing.
func (tx *Tx) Rollback(ctx context.Context) error {
	if tx.over {
		return nil
	}
	defer tx.end()
	if tx.ready() != nil && tx.s.ended() != nil {
		return nil
	}
	ctx, sp := tx.part(ctx, "ROLLBACK")
	c, err := tx.s.send(false, func(m *pb.SqlSessionsRequest) {
		m.Kind = &pb.SqlSessionsRequest_Rollback{Rollback: &pb.SqlRollback{Traceparent: traceparent(ctx)}}
	})
	if err == nil {
		_, err = tx.s.finish(ctx, c)
	}
	sp.end(err)
	if err != nil {
		tx.s.close() // which rolls back as well
	}
	return nil
}

// end gives the session back.
func (tx *Tx) end() {
	tx.over = true
	if !tx.bound {
		tx.db.put(tx.s)
	}
}

// RunTx runs fn in a transaction and commits it. While that fails for reasons that pass, such as a
// deadlock or a leader that is gone, fn is called again, which must have no other effects. Of all
// these transactions one is committed: they have one commit token.
func (db *DB) RunTx(ctx context.Context, o *TxOptions, fn func(tx *Tx) error) (_ Result, err error) {
	outer := ctx
	ctx, sp := db.begin(ctx, "transaction")
	defer func() { sp.end(err) }()
	var opt TxOptions
	if o != nil {
		opt = *o
	}
	if opt.Token == (Token{}) {
		opt.Token = NewToken()
	}
	until := time.Now().Add(db.opt.Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		result, err := db.once(ctx, outer, &opt, fn)
		if err == nil {
			return result, nil
		}
		if r := retryable(err); r == Never || r == Statement || time.Now().After(until) {
			return Result{}, err
		}
		opt.again = true
		select {
		case <-ctx.Done():
			return Result{}, errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
		again(ctx, err)
	}
}

// once runs fn in a transaction. Its statements are part of the span of ctx if their contexts name that of
// outer, as they do if fn uses the context that RunTx was called with.
func (db *DB) once(ctx, outer context.Context, o *TxOptions, fn func(tx *Tx) error) (Result, error) {
	tx, err := db.Begin(ctx, o)
	tx.span, tx.outer = trace.SpanFromContext(ctx), trace.SpanContextFromContext(outer)
	if err != nil {
		if err == errRepeated {
			return tx.result, nil
		}
		return Result{}, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := fn(tx); err != nil {
		if tx.broken != nil && retryable(tx.broken) != Never {
			return Result{}, tx.broken // what fn makes of it may say less
		}
		return Result{}, err
	}
	return tx.Commit(ctx)
}
