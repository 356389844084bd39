package console

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Bounds of a run of the SQL box; a page may ask for less, or for the most.
const (
	runUsual      = 30 * time.Second
	runMost       = 10 * time.Minute
	rowsUsual     = 1000
	rowsMost      = 10_000
	resultBytes   = 4 << 20 // of JSON, in all
	resultsMost   = 64      // of a text of several statements
	cellBytes     = 64 << 10
	warningsMost  = 64
	namesMost     = 256 // bytes
	interruptTime = 5 * time.Millisecond
)

// runRequest is a text to be run.
type runRequest struct {
	ID      string `json:"id"` // by which it can be canceled: the page's choice
	Text    string `json:"text"`
	Schema  string `json:"schema"`
	Write   bool   `json:"write"` // it may change something
	Rows    int    `json:"rows"`
	LimitMS int64  `json:"limit_ms"`
}

// run is one that is running.
type run struct {
	mu      sync.Mutex
	s       Session
	cancel  context.CancelFunc
	stopped *sqlerr.Error // why it is to end
	over    bool
}

// stop ends the run. An interrupt that comes before a statement has begun, or between two, has
// no effect, so that it is made again.
func (r *run) stop(why *sqlerr.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = why
		r.interrupt()
	}
}

func (r *run) interrupt() {
	if r.over {
		return
	}
	r.cancel()
	if r.s != nil {
		r.s.Interrupt()
	}
	time.AfterFunc(interruptTime, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.interrupt()
	})
}

// end notes that the run does no more, and says by whom it was stopped.
func (r *run) end() *sqlerr.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.stopped
}

// serveRun answers POST sql/run: statements in a session of their own, as the user.
func (c *Console) serveRun(w http.ResponseWriter, r *http.Request, s *signIn) error {
	var ask runRequest
	if err := read(w, r, requestMax, &ask); err != nil {
		return err
	}
	limit := time.Duration(ask.LimitMS) * time.Millisecond
	switch {
	case len(ask.Schema) > namesMost || len(ask.ID) > namesMost:
		return badRequest("a name is too long")
	case ask.Rows < 0 || ask.Rows > rowsMost:
		return badRequest("rows are 1 to 10000")
	case ask.LimitMS < 0 || limit > runMost:
		return badRequest("limit_ms is 1 to 600000")
	}
	if ask.Rows == 0 {
		ask.Rows = rowsUsual
	}
	if limit == 0 {
		limit = runUsual
	}
	out, done, err := c.execute(r.Context(), s, &ask, limit, nil)
	if err != nil {
		return err
	}
	defer done()
	write(w, http.StatusOK, out.encode())
	return nil
}

// execute runs a text and gathers its results, whose error is part of them. done gives the place
// back that they take. key are columns whose values of the last row are kept, if all of them are there.
func (c *Console) execute(ctx context.Context, s *signIn, ask *runRequest, limit time.Duration, key []string) (out *results, done func(), err error) {
	leave := c.runs.EnterFrom(s.caller.id().Text())
	if leave == nil {
		return nil, nil, errRuns
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{cancel: cancel}
	info := session.ConnectionInfo{ID: c.opt.Sessions.NextID(), User: s.caller.User, Host: s.caller.Host, AccountUser: s.caller.AccountUser,
		AccountHost: s.caller.AccountHost, Schema: ask.Schema, Collation: types.CollationUTF8MB40900AI, MultiStatements: true,
		ReadOnly: !ask.Write, Admin: s.admin, Attributes: map[string]string{"program_name": "trireme-console"}, Door: "console",
		Disconnect: func() { go r.stop(errInterrupted) }}
	q, err := c.opt.Sessions.Open(info)
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	r.s = q
	r.mu.Unlock()
	if err := s.begin(ask.ID, r); err != nil {
		_ = r.end() // somebody may be ending it
		_ = q.Close()
		return nil, nil, err
	}
	defer s.forget(r)
	timer := time.AfterFunc(limit, func() { r.stop(errExpired) })
	defer timer.Stop()
	// The page's end, and the node's, end the statement.
	defer context.AfterFunc(ctx, func() { r.stop(errInterrupted) })()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-c.stop:
			r.stop(errInterrupted)
		case <-ended:
		}
	}()
	out = &results{most: ask.Rows, location: q.Location(), before: q.LastGTID(), session: q, keyNames: key, began: time.Now()}
	failed := runText(ctx, q, ask, out)
	why := r.end()
	out.finish(failed, why)
	if err := q.Close(); err != nil {
		c.opt.Log.Warn("closing a session of the console", "error", err)
	}
	return out, leave, nil
}

// runText runs the text. Where it may not write, that is the session's from the outset (it came as
// by the port for reads), and its transactions' besides.
func runText(ctx context.Context, q Session, ask *runRequest, out *results) error {
	if !ask.Write {
		if err := onlyReads(ask.Text); err != nil {
			return err
		}
		if err := q.Query(ctx, "SET SESSION TRANSACTION READ ONLY", nothing{}); err != nil {
			return err
		}
	}
	return q.Query(ctx, ask.Text, out)
}

// begin notes a run, so that it can be canceled.
func (s *signIn) begin(id string, r *run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return errSignedOut
	case len(s.runs) >= runsOfOne:
		return errRuns
	}
	if id == "" || s.runs[id] != nil {
		id = secret()
	}
	s.runs[id] = r
	return nil
}

func (s *signIn) forget(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.runs {
		if one == r {
			delete(s.runs, name)
		}
	}
}

// serveCancel answers POST sql/cancel.
func (c *Console) serveCancel(w http.ResponseWriter, r *http.Request, s *signIn) error {
	var ask struct {
		ID string `json:"id"`
	}
	if err := read(w, r, smallRequest, &ask); err != nil {
		return err
	}
	s.mu.Lock()
	one := s.runs[ask.ID]
	s.mu.Unlock()
	if one != nil {
		one.stop(errInterrupted)
	}
	answer(w, http.StatusOK, map[string]bool{"found": one != nil})
	return nil
}

// nothing drops a result.
type nothing struct{}

func (nothing) Columns([]session.ResultColumn) error { return nil }
func (nothing) Rows(*types.Batch) error              { return nil }
func (nothing) Done(session.Outcome) error           { return nil }
