package sqlapi

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// runner runs statements in a session. It belongs to one task, but for stop, cancel and
// interrupts.
type runner struct {
	d      *Door
	ctx    context.Context
	cancel context.CancelFunc

	s        Session
	prepared map[uint32]*handle
	texts    map[string]*handle // of statements with parameters that came as text
	args     []session.Arg
	txnRead  *pb.SqlRead // of the transaction that goes on
	txnToken commitToken // and its token

	mu      sync.Mutex
	busy    uint64        // rises with each request; odd while one runs
	stopped *sqlerr.Error // why the present one is to end
	wake    chan struct{}
}

type commitToken struct {
	token entry.Token
	set   bool
}

// handle is a prepared statement.
type handle struct {
	prepared *session.Prepared
	text     string
	columns  []*pb.SqlColumn // as its client knows them
	held     int64           // bytes of columns that the session has accounted for
}

// columnBytes is about what a described column takes.
const columnBytes = 384

// close closes the statement.
func (h *handle) close(s Session) {
	h.prepared.Close()
	if h.held > 0 {
		_ = s.Hold(-h.held) // what is given back is never refused
		h.held = 0
	}
}

// keptTexts is how many statements with parameters that came as text stay prepared.
const keptTexts = 16

func (r *runner) init(d *Door, ctx context.Context) {
	r.d, r.wake = d, make(chan struct{}, 1)
	inner, cancel := context.WithCancelCause(ctx)
	r.ctx, r.cancel = inner, func() { cancel(errInterrupted) }
}

// begin notes that a request runs.
func (r *runner) begin() {
	r.mu.Lock()
	r.busy++
	r.stopped = nil
	r.mu.Unlock()
}

// end notes that it does no more, and says by whom it was stopped.
func (r *runner) end() *sqlerr.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
	why := r.stopped
	r.stopped = nil
	return why
}

// stop ends the request that runs. An interrupt that comes before the statement has begun, or
// between its parts, has no effect, so that it is made again.
func (r *runner) stop(why *sqlerr.Error) { r.stopOf(0, why) }

const interruptEvery = 5 * time.Millisecond

// stopOf is stop if the request is a certain one, by busy; 0: any.
func (r *runner) stopOf(busy uint64, why *sqlerr.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy%2 == 0 || r.stopped != nil || busy != 0 && r.busy != busy {
		return
	}
	r.stopped = why
	r.signal()
	r.interruptLocked(r.busy)
}

func (r *runner) interruptLocked(busy uint64) {
	if r.busy != busy {
		return
	}
	if r.s != nil {
		r.s.Interrupt()
	}
	time.AfterFunc(interruptEvery, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.interruptLocked(busy)
	})
}

// signal wakes the task if it waits for its client.
func (r *runner) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// isStopped says why the request is to end.
func (r *runner) isStopped() *sqlerr.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// open opens the session.
func (r *runner) open(info session.ConnectionInfo) error {
	s, err := r.d.opt.Backend.Open(info)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.s = s
	r.mu.Unlock()
	return nil
}

// close ends the session.
func (r *runner) close() {
	r.cancel()
	r.mu.Lock()
	s := r.s
	r.s = nil
	r.mu.Unlock()
	if s == nil {
		return
	}
	r.forget(s)
	if err := s.Close(); err != nil {
		r.d.opt.Log.Warn("closing a session", "id", s.ID(), "error", err)
	}
}

// forget closes the prepared statements.
func (r *runner) forget(s Session) {
	for _, h := range r.prepared {
		h.close(s)
	}
	for _, h := range r.texts {
		h.close(s)
	}
	r.prepared, r.texts = nil, nil
}

// writer is where a runner's results go.
type writer interface {
	session.ResultWriter
	// start is told of whose columns the client knows; nil: of none.
	start(h *handle)
}

// statement runs one. done is filled if it was known by its token to have been committed, or else
// by w.
func (r *runner) statement(st *pb.SqlStatement, w writer) (repeated uint64, err error) {
	token, hasToken, err := parseToken(st.CommitToken)
	if err != nil {
		return 0, err
	}
	var content uint64
	if hasToken {
		content = r.contentOf(st)
		if repeated, err = r.lookUp(token, content, st.Again); err != nil || repeated != 0 {
			return repeated, err
		}
		defer r.s.DropToken()
	}
	read := st.Read
	if read == nil && r.txnRead != nil && r.s.Status()&session.StatusInTransaction != 0 {
		read = r.txnRead
	}
	if read != nil {
		o, err := readOptions(read)
		if err != nil {
			return 0, err
		}
		if o != nil {
			r.s.ReadAs(o)
			defer r.s.ReadAs(nil)
		}
	}
	ctx := r.ctx
	if st.TimeoutMs > 0 {
		var end func()
		ctx, end = r.limit(time.Duration(st.TimeoutMs) * time.Millisecond)
		defer end()
	}
	err = r.run(ctx, st, commitToken{token, hasToken}, w)
	if err == nil && sets(r.textOf(st)) { // globally, for all that we know
		r.d.visits.drop(func(*visit) bool { return true })
	}
	if hasToken {
		if repeated, err = r.afterToken(token, content, err); repeated != 0 {
			return repeated, nil
		}
	}
	return 0, err
}

// run executes a statement as it came: prepared, with parameters, or plain.
func (r *runner) run(ctx context.Context, st *pb.SqlStatement, token commitToken, w writer) error {
	switch {
	case st.Handle != 0 && st.Text != "":
		return wrongArgument("a statement has a text or a handle, not both")
	case st.Handle == 0 && st.Text == "":
		return sqlerr.New(sqlerr.EmptyQuery)
	case st.Handle == 0 && len(st.Params) == 0:
		w.start(nil)
		r.give(token)
		r.traced(st.Traceparent)
		return r.s.Query(ctx, st.Text, w)
	}
	h := r.prepared[st.Handle]
	shown := h
	if st.Handle == 0 {
		var err error
		if h, err = r.textHandle(ctx, st.Text, st.Traceparent); err != nil {
			return err
		}
		shown = nil
	}
	if h == nil {
		return unknownHandle(st.Handle)
	}
	if len(st.Params) != h.prepared.Params {
		return wrongArgument(counts(h.prepared.Params, len(st.Params)))
	}
	var err error
	r.args, err = arguments(r.args[:0], st.Params)
	if err == nil {
		w.start(shown)
		r.give(token)
		r.traced(st.Traceparent)
		err = r.s.ExecutePrepared(ctx, h.prepared, r.args, w)
	}
	clear(r.args) // so that what they point to can go
	if cap(r.args) > 1024 {
		r.args = nil
	}
	return err
}

// textHandle prepares a text, or finds it among those that were.
func (r *runner) textHandle(ctx context.Context, text, traceparent string) (*handle, error) {
	if h := r.texts[text]; h != nil {
		return h, nil
	}
	if len(r.texts) >= keptTexts {
		for known, h := range r.texts { // any one
			h.close(r.s)
			delete(r.texts, known)
			break
		}
	}
	r.traced(traceparent)
	p, err := r.s.Prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	if r.texts == nil {
		r.texts = make(map[string]*handle)
	}
	h := &handle{prepared: p, text: text}
	r.texts[text] = h
	return h, nil
}

// prepare is SqlPrepare.
func (r *runner) prepare(p *pb.SqlPrepare) (*pb.SqlPrepared, error) {
	switch {
	case p.Handle == 0:
		return nil, wrongArgument("handle is 0: choose another number")
	case r.prepared[p.Handle] != nil:
		return nil, wrongArgument("handle is in use in this session: choose another number, or close it first")
	}
	st, err := r.s.Prepare(r.ctx, p.Text)
	if err != nil {
		return nil, err
	}
	if r.prepared == nil {
		r.prepared = make(map[uint32]*handle)
	}
	n := columnBytes * int64(len(st.Columns))
	if err := r.s.Hold(n); err != nil {
		st.Close()
		return nil, err
	}
	h := &handle{prepared: st, text: p.Text, columns: describe(st.Columns), held: n}
	r.prepared[p.Handle] = h
	return &pb.SqlPrepared{Handle: p.Handle, Params: uint32(st.Params), Columns: h.columns}, nil
}

func (r *runner) closePrepared(n uint32) error {
	h := r.prepared[n]
	if h == nil {
		return unknownHandle(n)
	}
	h.close(r.s)
	delete(r.prepared, n)
	return nil
}

func (r *runner) reset() error {
	r.forget(r.s)
	r.txnRead, r.txnToken.set = nil, false
	return r.s.Reset()
}

// transaction is SqlBegin.
func (r *runner) transaction(b *pb.SqlBegin, w writer) (repeated uint64, err error) {
	isolation, ok := isolations[b.Isolation]
	if !ok {
		return 0, wrongArgument("isolation has no such value")
	}
	token, hasToken, err := parseToken(b.CommitToken)
	if err != nil {
		return 0, err
	}
	if _, err := readOptions(b.Read); err != nil {
		return 0, err
	}
	if r.s.Status()&session.StatusInTransaction != 0 {
		if repeated, err := r.commit(b.Traceparent, discard{}); err != nil || repeated != 0 {
			return repeated, err
		}
	}
	if hasToken {
		if repeated, err = r.lookUp(token, transactionContent, b.Again); err != nil || repeated != 0 {
			return repeated, err
		}
		defer r.s.DropToken()
	}
	if isolation != "" {
		r.traced(b.Traceparent)
		if err := r.s.Query(r.ctx, "SET TRANSACTION ISOLATION LEVEL "+isolation, discard{}); err != nil {
			return 0, err
		}
	}
	text := "START TRANSACTION"
	if b.ReadOnly {
		text = "START TRANSACTION READ ONLY"
	}
	w.start(nil)
	given := commitToken{token, hasToken}
	r.give(given)
	r.traced(b.Traceparent)
	if err := r.s.Query(r.ctx, text, w); err != nil {
		return 0, err
	}
	r.txnRead, r.txnToken = b.Read, given
	return 0, nil
}

var isolations = map[pb.SqlIsolation]string{pb.SqlIsolation_SQL_ISOLATION_UNSPECIFIED: "",
	pb.SqlIsolation_SQL_ISOLATION_READ_UNCOMMITTED: "READ UNCOMMITTED", pb.SqlIsolation_SQL_ISOLATION_READ_COMMITTED: "READ COMMITTED",
	pb.SqlIsolation_SQL_ISOLATION_REPEATABLE_READ: "REPEATABLE READ", pb.SqlIsolation_SQL_ISOLATION_SERIALIZABLE: "SERIALIZABLE"}

// commit is SqlCommit.
func (r *runner) commit(traceparent string, w writer) (repeated uint64, err error) {
	token := r.txnToken
	r.txnRead, r.txnToken.set = nil, false
	w.start(nil)
	r.traced(traceparent)
	err = r.s.Query(r.ctx, "COMMIT", w)
	if token.set {
		return r.afterToken(token.token, transactionContent, err)
	}
	return 0, err
}

func (r *runner) rollback(traceparent string, w writer) error {
	r.txnRead, r.txnToken.set = nil, false
	w.start(nil)
	r.traced(traceparent)
	return r.s.Query(r.ctx, "ROLLBACK", w)
}

// give gives a token to the transaction that begins next. Preparing a statement may begin one, too,
// and end it: it is for the execution alone.
func (r *runner) give(t commitToken) {
	if t.set {
		r.s.UseToken(t.token)
	}
}

// traced tells the session what the statement that comes now is part of, if its caller has said so.
func (r *runner) traced(traceparent string) {
	if !r.d.opt.Traced || traceparent == "" {
		return
	}
	if c, sampled, ok := trace.Parse(traceparent); ok {
		r.s.UseTrace(c, sampled)
	}
}

// lookUp looks a token up, if it may have been used before.
func (r *runner) lookUp(t entry.Token, content uint64, again bool) (repeated uint64, err error) {
	status := r.s.Status()
	if status&session.StatusInTransaction != 0 || content != transactionContent && status&session.StatusAutocommit == 0 {
		return 0, wrongArgument("commit_token is for a transaction as a whole: give it to begin")
	}
	if r.d.tokens.differs(t, content) {
		return 0, wrongArgument("commit_token was used with another statement: make a new one for each")
	}
	if again {
		number, found, err := r.d.opt.Backend.Used(t)
		if err != nil {
			return 0, err
		}
		if found {
			return number, nil
		}
	}
	return 0, nil
}

// afterToken notes what became of a transaction with a token.
func (r *runner) afterToken(t entry.Token, content uint64, err error) (repeated uint64, _ error) {
	var used *session.TokenUsedError
	if errors.As(err, &used) {
		return used.Number, nil
	}
	var e *sqlerr.Error
	if err == nil || errors.As(err, &e) && e.Number == sqlerr.ErrorDuringCommit {
		r.d.tokens.remember(t, content)
	}
	return 0, err
}

// limit ends the request that runs after a time: it is interrupted, and if it is waiting for the
// group, it waits no longer.
func (r *runner) limit(d time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	busy := r.busy // which only this task changes
	timer := time.AfterFunc(d, func() {
		r.stopOf(busy, errExpired)
		cancel(errExpired)
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// readOptions are those of a read; nil: the session's own.
func readOptions(r *pb.SqlRead) (*session.ReadOptions, error) {
	o := session.ReadOptions{Wait: time.Duration(r.GetWaitMs()) * time.Millisecond}
	switch r.GetConsistency() {
	case pb.SqlConsistency_SQL_CONSISTENCY_UNSPECIFIED:
		return nil, nil
	case pb.SqlConsistency_SQL_CONSISTENCY_STRONG:
		o.Consistency = session.Strong
	case pb.SqlConsistency_SQL_CONSISTENCY_AT_LEAST:
		o.Consistency, o.Number = session.AtLeast, r.AtLeast
		if r.AtLeast > math.MaxInt64 {
			return nil, wrongArgument("at_least is no number of a transaction")
		}
	case pb.SqlConsistency_SQL_CONSISTENCY_BOUNDED:
		o.Consistency, o.Bound = session.Bounded, time.Duration(r.BoundMs)*time.Millisecond
	case pb.SqlConsistency_SQL_CONSISTENCY_LOCAL:
		o.Consistency = session.Local
	default:
		return nil, wrongArgument("consistency has no such value")
	}
	return &o, nil
}

var contentSeed = maphash.MakeSeed()

// transactionContent stands for a transaction of several statements, of which a token says nothing.
const transactionContent = 0

// textOf is a statement's text, also if it has come by its handle.
func (r *runner) textOf(st *pb.SqlStatement) string {
	if known := r.prepared[st.Handle]; known != nil {
		return known.text
	}
	return st.Text
}

// contentOf tells statements with their parameters apart.
func (r *runner) contentOf(st *pb.SqlStatement) uint64 {
	var h maphash.Hash
	h.SetSeed(contentSeed)
	_, _ = h.WriteString(r.textOf(st))
	var b []byte
	for _, p := range st.Params {
		b = appendValue(append(b[:0], 0), p)
		_, _ = h.Write(b)
	}
	return h.Sum64() | 1 // not transactionContent
}

// discard drops a result.
type discard struct{}

func (discard) start(*handle)                        {}
func (discard) Columns([]session.ResultColumn) error { return nil }
func (discard) Rows(*types.Batch) error              { return nil }
func (discard) Done(session.Outcome) error           { return nil }
