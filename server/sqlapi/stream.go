package sqlapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// link is the stream as gRPC has it.
type link interface {
	Context() context.Context
	RecvMsg(m any) error
	SendMsg(m any) error
}

// stream is one call of Sessions.
type stream struct {
	d    *Door
	link link
	in   *intake
	// prove finds out who the stream is from, by the accounts as they are now.
	prove func() (*caller, error)
	tasks sync.WaitGroup // a count for each session

	sending   sync.Mutex
	ended     atomic.Bool   // nothing may be sent any more
	sendSince atomic.Int64  // seconds of the door's clock; 0: nothing waits to be sent
	stalled   chan struct{} // closed when the client has not read for too long
	stall     sync.Once

	mu        sync.Mutex
	sessions  map[uint64]*sess
	closed    bool
	finishing chan struct{}
	finished  bool
	aborted   chan struct{}
}

// serveStream is Sessions. The caller that was let in may open no session by that: each begins with a proof of its own.
func (d *Door) serveStream(_ *caller, g grpc.ServerStream) error {
	return d.carry(func() (*caller, error) { return d.identify(g.Context()) }, g)
}

// carry serves a stream to its end.
func (d *Door) carry(prove func() (*caller, error), l link) error {
	st := &stream{d: d, prove: prove, link: l, in: d.intake(l, d.longest), sessions: make(map[uint64]*sess), finishing: make(chan struct{}),
		stalled: make(chan struct{}), aborted: make(chan struct{})}
	d.mu.Lock()
	if d.stopping {
		d.mu.Unlock()
		return moved(stoppedText)
	}
	d.streams[st] = struct{}{}
	d.active.Add(1)
	d.mu.Unlock()
	defer d.active.Done()
	defer func() {
		d.mu.Lock()
		delete(d.streams, st)
		d.mu.Unlock()
	}()
	return st.serve()
}

func (st *stream) serve() error {
	received := make(chan error, 1)
	go func() { received <- st.receive() }()
	var err error
	select {
	case err = <-received:
	case <-st.stalled:
		err = errNotTaken
	case <-st.finishing: // sessions end by themselves, and need what is received for that
		err = moved(stoppedText)
		select {
		case <-st.drained():
		case <-received:
		case <-st.aborted:
		}
	}
	st.abort()
	select {
	case <-st.drained():
	case <-time.After(lastWords): // one of them waits for the client to read: the stream's end ends that
	}
	st.ended.Store(true)
	return err
}

// drained is closed when all sessions have ended.
func (st *stream) drained() <-chan struct{} {
	drained := make(chan struct{})
	st.d.tasks.Go(func() {
		st.tasks.Wait()
		close(drained)
	})
	return drained
}

// finish makes the stream end when its sessions have.
func (st *stream) finish() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.finished {
		st.finished = true
		close(st.finishing)
	}
}

// abort ends the sessions, and what they run.
func (st *stream) abort() {
	st.mu.Lock()
	if !st.closed {
		st.closed = true
		close(st.aborted)
	}
	st.mu.Unlock()
	for _, s := range st.all() {
		s.end(errGone, true)
		s.cancel()
	}
}

func (st *stream) all() []*sess {
	st.mu.Lock()
	defer st.mu.Unlock()
	list := make([]*sess, 0, len(st.sessions))
	for _, s := range st.sessions {
		list = append(list, s)
	}
	return list
}

// send sends a message, which may be changed afterwards. One that cannot be sent is nobody's
// any more.
func (st *stream) send(m *pb.SqlSessionsResponse) error { return st.sendAny(m) }

// sendLong is send for a message that may be long.
func (st *stream) sendLong(m *pb.SqlSessionsResponse, n int) error {
	if n >= longAnswer && st.in.pipe != nil {
		return st.sendAny(&outgoing{m, st.in.conn})
	}
	return st.sendAny(m)
}

func (st *stream) sendAny(m any) error {
	st.sending.Lock()
	defer st.sending.Unlock()
	if st.ended.Load() {
		return errGone
	}
	st.sendSince.Store(st.d.clock.Load())
	err := st.link.SendMsg(m)
	st.sendSince.Store(0)
	if err != nil {
		return errGone
	}
	return nil
}

// sweep ends the stream if its client does not read it: all sessions would stand still, and hold what
// they have locked.
func (st *stream) sweep(now int64) {
	if since := st.sendSince.Load(); since != 0 && now-since > stallMax {
		st.stall.Do(func() { close(st.stalled) })
	}
	for _, s := range st.all() {
		s.sweep(now)
	}
}

// receive takes messages until the client sends no more.
func (st *stream) receive() error {
	for {
		m := new(pb.SqlSessionsRequest)
		err := st.in.receive(m)
		var passed *refused
		switch {
		case err == nil:
			err = st.take(m)
		case err == io.EOF:
			return nil
		case errors.As(err, &passed) && passed.session != 0:
			m.Session, m.Request = passed.session, passed.request
			st.missed(m)
		default:
			return err
		}
		if err != nil && !errors.Is(err, errGone) {
			var ended *endedError
			e := st.d.tell(st.d.known(err))
			e.SessionEnded = errors.As(err, &ended)
			_ = st.send(&pb.SqlSessionsResponse{Session: m.Session, Request: m.Request, Kind: &pb.SqlSessionsResponse_Error{Error: e}})
		}
	}
}

// missed notes that a request could not be received.
func (st *stream) missed(m *pb.SqlSessionsRequest) {
	st.mu.Lock()
	s := st.sessions[m.Session]
	st.mu.Unlock()
	if s == nil {
		return
	}
	s.q.Lock()
	s.last, s.gap = max(s.last, m.Request), true
	s.q.Unlock()
}

// take passes a message on.
func (st *stream) take(m *pb.SqlSessionsRequest) error {
	if m.Session == 0 {
		return wrongArgument("session is 0: choose another number")
	}
	st.mu.Lock()
	s := st.sessions[m.Session]
	st.mu.Unlock()
	switch k := m.Kind.(type) {
	case *pb.SqlSessionsRequest_Open:
		return st.open(m)
	case *pb.SqlSessionsRequest_Cancel:
		if s != nil {
			s.cancelRequest(k.Cancel.GetRequest())
		}
		return nil
	case *pb.SqlSessionsRequest_Credit:
		if s != nil {
			s.credit(k.Credit)
		}
		return nil
	case *pb.SqlSessionsRequest_Close:
		if s == nil {
			return unknownSession(m.Session)
		}
		s.closeAsked(m.Request)
		return nil
	}
	switch {
	case s == nil:
		return unknownSession(m.Session)
	case m.Request == 0:
		return wrongArgument("request is 0: number the requests of a session from 1 on")
	}
	return s.enqueue(m)
}

// open makes a session, which its worker opens.
func (st *stream) open(m *pb.SqlSessionsRequest) error {
	if m.Request == 0 {
		return wrongArgument("request is 0: number the requests of a session from 1 on")
	}
	s := &sess{st: st, id: m.Session, readOnly: m.GetOpen().GetReadOnly()}
	s.runner.init(st.d, context.Background())
	st.mu.Lock()
	var err error
	switch {
	case st.closed || st.finished:
		err = moved(stoppedText)
	case st.sessions[m.Session] != nil:
		err = wrongArgument(fmt.Sprintf("session %d is open on this stream: choose another number", m.Session))
	case len(st.sessions) >= maxSessions:
		err = &sqlerr.Error{Number: errTooMany.Number, State: errTooMany.State,
			Message: fmt.Sprintf("Too many connections: a stream carries %d sessions at most, open another stream", maxSessions)}
	}
	if err != nil {
		st.mu.Unlock()
		s.cancel()
		return err
	}
	st.sessions[m.Session] = s
	st.tasks.Add(1)
	st.mu.Unlock()
	if err := s.enqueue(m); err != nil {
		s.end(errGone, false)
		return err
	}
	return nil
}

func (st *stream) remove(s *sess) {
	st.mu.Lock()
	delete(st.sessions, s.id)
	st.mu.Unlock()
}
