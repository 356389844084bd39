package sqlapi

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// sess is a session of a stream.
type sess struct {
	runner
	st       *stream
	id       uint64
	readOnly bool
	out      results
	failed   bool  // the request before did; of the worker
	packet   int64 // max_allowed_packet, the same

	// Guarded by q; runner.mu is taken under it.
	q         sync.Mutex
	queue     []request
	queued    int64 // bytes
	gap       bool  // the request before the next one was refused
	scheduled bool  // a worker has the session
	current   uint64
	last      uint64 // the greatest number of a request
	ending    error  // why the session is to end
	closing   uint64 // the request of SqlClose
	window    int64
	inFlight  int64
	over      bool

	// Seconds of the door's clock for the sweep; 0: not so.
	idleSince, waitSince atomic.Int64
	idleMax, waitMax     atomic.Int64
}

// request is one that waits.
type request struct {
	m       *pb.SqlSessionsRequest
	size    int64         // about that of its message
	memory  int64         // what it takes, about
	until   time.Time     // of its timeout; zero: none
	gap     bool          // the request before it was refused
	stopped *sqlerr.Error // it is not to run
}

func errPending(what string) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.OutOfResources, "%s", what)
}

// enqueue takes a request that has come.
func (s *sess) enqueue(m *pb.SqlSessionsRequest) error {
	r := request{m: m, size: sizeOf(m)}
	r.memory = r.size + paramBytes*int64(len(m.GetExecute().GetStatement().GetParams()))
	if t := m.GetExecute().GetStatement().GetTimeoutMs(); t != 0 {
		r.until = time.Now().Add(time.Duration(t) * time.Millisecond)
	}
	s.q.Lock()
	defer s.q.Unlock()
	switch {
	case s.ending != nil && s.ending != errGone && s.closing == 0:
		return &endedError{s.ending}
	case s.over || s.ending != nil || s.closing != 0:
		return unknownSession(s.id)
	case m.Request <= s.last:
		return wrongArgument(fmt.Sprintf("request %d comes after request %d of the session: their numbers must rise", m.Request, s.last))
	}
	s.last = m.Request
	if err := s.mayWait(&r); err != nil {
		s.gap = true
		return err
	}
	r.gap, s.gap = s.gap, false
	s.queued += r.size
	s.queue = append(s.queue, r)
	s.schedule()
	return nil
}

// mayWait says whether a request may wait, and takes its memory. REQUIRES: q.
func (s *sess) mayWait(r *request) error {
	limit := s.st.d.opt.Backend.MaxPacket()
	switch {
	case r.size > limit:
		return sqlerr.Newf(sqlerr.NetPacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes: the "+
			"request has %d bytes, %d are allowed", r.size, limit)
	case len(s.queue) >= maxPending:
		return errPending(fmt.Sprintf("%d requests of the session wait for their answers: take some first", maxPending))
	case s.queued+r.size > limit && len(s.queue) > 0:
		return errPending("The requests of the session that wait have more than max_allowed_packet bytes: take some answers first")
	}
	if !s.st.d.memory.take(s.st.in.conn, r.memory) {
		return errPending("Too many bytes of requests of this connection, or of this node, wait: take some answers first, try again later, or give " +
			"the statements of the node more (temptable_max_ram)")
	}
	return nil
}

// endedError is the answer to a request that comes when its session is ending, for a reason that the
// client is about to hear.
type endedError struct{ why error }

func (e *endedError) Error() string { return e.why.Error() }
func (e *endedError) Unwrap() error { return e.why }

// schedule gives the session to a worker if none has it.
func (s *sess) schedule() {
	if !s.scheduled && !s.over {
		s.scheduled = true
		s.idleSince.Store(0)
		s.st.d.workers.run(s)
	}
}

// dropQueue forgets the requests that wait.
func (s *sess) dropQueue() {
	n := int64(0)
	for i := range s.queue {
		n += s.queue[i].memory
	}
	s.st.d.memory.take(s.st.in.conn, -n)
	s.queue, s.queued = nil, 0
}

// end ends the session when its request, if it runs one, is over; now: that is interrupted. err
// is told to the client, if it is a *sqlerr.Error.
func (s *sess) end(err error, now bool) {
	s.q.Lock()
	defer s.q.Unlock()
	s.endLocked(err, now)
}

func (s *sess) endLocked(err error, now bool) {
	if s.over {
		return
	}
	if s.ending == nil {
		s.ending = err
	}
	if now {
		why := errInterrupted
		errors.As(s.ending, &why) // the first reason, not what came of it: who is told of a shutdown goes elsewhere
		s.stop(why)
	}
	s.schedule()
}

// close is SqlClose.
func (s *sess) closeAsked(request uint64) {
	s.q.Lock()
	defer s.q.Unlock()
	if s.over || s.closing != 0 {
		return
	}
	s.closing = max(request, 1)
	s.dropQueue()
	s.stop(errInterrupted)
	s.schedule()
}

// cancelRequest is SqlCancel.
func (s *sess) cancelRequest(n uint64) {
	s.q.Lock()
	defer s.q.Unlock()
	for i := range s.queue {
		if n == 0 || s.queue[i].m.Request == n {
			s.queue[i].stopped = errInterrupted
		}
	}
	if s.current != 0 && (n == 0 || n == s.current) {
		s.stop(errInterrupted)
	}
}

// credit is SqlCredit.
func (s *sess) credit(c *pb.SqlCredit) {
	s.q.Lock()
	defer s.q.Unlock()
	if c.Request == s.current && s.current != 0 {
		s.inFlight -= int64(min(c.Bytes, uint64(s.inFlight)))
		s.signal()
	}
}

// takeWindow waits until n bytes more may be under way.
func (s *sess) takeWindow(n int64) error {
	for {
		s.q.Lock()
		if s.inFlight == 0 || s.inFlight+n <= s.window {
			s.inFlight += n
			s.q.Unlock()
			s.waitSince.Store(0)
			return nil
		}
		s.q.Unlock()
		if why := s.isStopped(); why != nil {
			return why
		}
		if s.waitSince.Load() == 0 {
			s.waitSince.Store(s.st.d.clock.Load())
		}
		select {
		case <-s.wake:
		case <-s.ctx.Done():
			return errGone
		}
	}
}

// sweep ends the session if its client has left it alone, or takes nothing, for too long.
func (s *sess) sweep(now int64) {
	if since, most := s.idleSince.Load(), s.idleMax.Load(); since != 0 && most > 0 && now-since > most {
		s.end(errIdle, false)
	}
	if since, most := s.waitSince.Load(), s.waitMax.Load(); since != 0 && most > 0 && now-since > most {
		s.end(errNotTaken, true)
	}
}

// work runs requests until there are no more.
func (s *sess) work() {
	for {
		r, more := s.next()
		if !more {
			return
		}
		s.perform(&r)
	}
}

// next takes a request. There is none if the queue is empty, or the session over.
func (s *sess) next() (r request, more bool) {
	s.q.Lock()
	s.current, s.inFlight = 0, 0
	if s.ending != nil || s.closing != 0 {
		s.over = true
		s.dropQueue()
		s.q.Unlock()
		s.finish()
		return r, false
	}
	if len(s.queue) == 0 {
		s.queue = s.queue[:0:0]
		s.scheduled = false
		s.idleSince.Store(s.st.d.clock.Load())
		s.q.Unlock()
		return r, false
	}
	defer s.q.Unlock()
	r = s.queue[0]
	s.queue[0] = request{}
	s.queue = s.queue[1:]
	s.queued -= r.size
	s.current = r.m.Request
	s.window = window(r.m.GetExecute().GetWindowBytes())
	s.begin()
	return r, true
}

// window is how many bytes of a result may be under way.
func window(asked uint32) int64 {
	if asked == 0 {
		return defaultWindow
	}
	return int64(min(max(asked, minWindow), maxWindow))
}

// finish is the end of the session.
func (s *sess) finish() {
	s.runner.close()
	answer := &pb.SqlSessionsResponse{Session: s.id}
	var told *sqlerr.Error
	switch {
	case s.closing != 0:
		answer.Request = s.closing
		answer.Kind = &pb.SqlSessionsResponse_Result{Result: &pb.SqlResult{Done: &pb.SqlDone{}}}
		_ = s.st.send(answer)
	case errors.As(s.ending, &told):
		e := s.st.d.tell(told)
		e.SessionEnded = true
		answer.Kind = &pb.SqlSessionsResponse_Error{Error: e}
		_ = s.st.send(answer)
	}
	s.st.remove(s) // after the client was told: no request finds the session gone without a reason
	s.st.tasks.Done()
}

// perform runs a request and answers it.
func (s *sess) perform(r *request) {
	s.out.begin(s, r.m.Request)
	err := s.try(r)
	s.st.d.memory.take(s.st.in.conn, -r.memory)
	why := s.runner.end()
	s.waitSince.Store(0)
	s.failed = err != nil
	gone := s.s == nil || s.s.Gone()
	if err != nil {
		s.out.drop()
		if !errors.Is(err, errGone) {
			told := s.st.d.known(err)
			if why != nil && told.Number == errInterrupted.Number {
				told = why
			}
			s.answerError(r.m.Request, told, gone)
		}
	} else if !s.out.rows {
		s.obeyLimits() // it may have been a SET
	}
	switch {
	case gone && s.s != nil && s.s.Killed(): // and Disconnect has not come yet
		s.end(errInterrupted, false)
	case gone:
		s.end(moved(movedText), false)
	}
}

func (s *sess) answerError(request uint64, told *sqlerr.Error, ended bool) {
	e := s.st.d.tell(told)
	e.SessionEnded = ended
	_ = s.st.send(&pb.SqlSessionsResponse{Session: s.id, Request: request, Kind: &pb.SqlSessionsResponse_Error{Error: e}})
}

func (s *sess) obeyLimits() {
	l := s.s.Limits()
	s.idleMax.Store(int64(l.Idle / time.Second))
	s.waitMax.Store(int64(l.NetWrite / time.Second))
	s.packet = l.MaxPacket
}

// try is perform without the errors' answers.
func (s *sess) try(r *request) error {
	m := r.m
	switch {
	case r.stopped != nil:
		return r.stopped
	case m.IfOk && (s.failed || r.gap):
		return errSkipped
	}
	var repeated uint64
	var err error
	switch k := m.Kind.(type) {
	case *pb.SqlSessionsRequest_Execute:
		st := k.Execute.GetStatement()
		if st == nil {
			return wrongArgument("execute has no statement")
		}
		if !r.until.IsZero() {
			left := time.Until(r.until)
			if left <= 0 {
				return errExpired
			}
			st.TimeoutMs = uint32(max(left/time.Millisecond, 1))
		}
		repeated, err = s.statement(st, &s.out)
	case *pb.SqlSessionsRequest_Open:
		return s.openAs(k.Open, m.Request)
	case *pb.SqlSessionsRequest_Prepare:
		p, err := s.prepare(k.Prepare)
		if err != nil {
			return err
		}
		return s.st.send(&pb.SqlSessionsResponse{Session: s.id, Request: m.Request, Kind: &pb.SqlSessionsResponse_Prepared{Prepared: p}})
	case *pb.SqlSessionsRequest_Begin:
		repeated, err = s.transaction(k.Begin, &s.out)
	case *pb.SqlSessionsRequest_Commit:
		repeated, err = s.commit(k.Commit.GetTraceparent(), &s.out)
	case *pb.SqlSessionsRequest_Rollback:
		return s.rollback(k.Rollback.GetTraceparent(), &s.out)
	case *pb.SqlSessionsRequest_ClosePrepared:
		if err = s.closePrepared(k.ClosePrepared.GetHandle()); err == nil {
			err = s.out.empty()
		}
	case *pb.SqlSessionsRequest_Reset_:
		if err = s.reset(); err == nil {
			err = s.out.empty()
		}
	case *pb.SqlSessionsRequest_Ping:
		return s.out.empty()
	default:
		return wrongArgument("the request's kind is not known to this version")
	}
	if err == nil && repeated != 0 {
		return s.out.repeated(repeated)
	}
	return err
}

// openAs is SqlOpen. It is a login: the account may have been locked since the stream began, have another password, or
// be another one by the same name.
func (s *sess) openAs(o *pb.SqlOpen, request uint64) error {
	d := s.st.d
	if err := checkAttributes(o.GetAttributes()); err != nil {
		return s.refuse(err)
	}
	if !o.GetReadOnly() && !d.opt.Backend.Serves() {
		return s.refuse(moved(movedText))
	}
	who, err := s.st.prove()
	if err != nil {
		return s.refuse(err)
	}
	info := who.info
	info.ID, info.Schema, info.ReadOnly, info.Attributes = d.opt.Backend.NextID(), o.GetSchema(), o.GetReadOnly(), o.GetAttributes()
	info.Disconnect = func() {
		// KILL: the session has been interrupted already, and its locks may be held by the caller.
		go s.end(errInterrupted, true)
		time.AfterFunc(killTime, s.killedLate)
	}
	if err := s.open(info); err != nil {
		return s.refuse(err)
	}
	s.obeyLimits()
	if !info.ReadOnly && !d.opt.Backend.Serves() { // it came between the loss of the lead and DropWriters
		return s.refuse(moved(movedText))
	}
	group := d.opt.Backend.Group()
	return s.st.send(&pb.SqlSessionsResponse{Session: s.id, Request: request, Kind: &pb.SqlSessionsResponse_Opened{
		Opened: &pb.SqlOpened{ConnectionId: info.ID, Group: group[:], MaxPending: maxPending, MaxMessageBytes: uint64(s.s.Limits().MaxPacket)}}})
}

// killTime is how long a client may take to read what is on its way to it when one of its sessions is killed.
const killTime = 2 * time.Second

// killedLate ends the stream of a session that was killed and still waits for its client to read: others would go on waiting for what it
// has locked.
func (s *sess) killedLate() {
	s.q.Lock()
	over := s.over
	s.q.Unlock()
	if since := s.st.sendSince.Load(); !over && since != 0 && s.st.d.clock.Load()-since >= 1 {
		s.st.stall.Do(func() { close(s.st.stalled) })
	}
}

// refuse ends a session that was not opened: its error is the answer, and nothing follows.
func (s *sess) refuse(err error) error {
	s.end(errGone, false)
	return err
}

func checkAttributes(all map[string]string) error {
	n := 0
	for name, value := range all {
		n += len(name) + len(value)
	}
	if len(all) > maxAttributes || n > maxAttributed {
		return wrongArgument(fmt.Sprintf("attributes are more than %d, or have more than %d bytes", maxAttributes, maxAttributed))
	}
	return nil
}

// paramBytes is about what a parameter takes beyond its message.
const paramBytes = 48

// sizeOf is how much memory a request takes, about.
func sizeOf(m *pb.SqlSessionsRequest) int64 {
	n := 256
	switch k := m.Kind.(type) {
	case *pb.SqlSessionsRequest_Execute:
		n += statementSize(k.Execute.GetStatement())
	case *pb.SqlSessionsRequest_Prepare:
		n += len(k.Prepare.GetText())
	case *pb.SqlSessionsRequest_Open:
		for name, value := range k.Open.GetAttributes() {
			n += len(name) + len(value)
		}
	}
	return int64(n)
}

func statementSize(st *pb.SqlStatement) int {
	n := len(st.GetText()) + len(st.GetTraceparent()) + len(st.GetCommitToken())
	for _, p := range st.GetParams() {
		n += 48
		switch v := p.GetKind().(type) {
		case *pb.SqlValue_Text:
			n += len(v.Text)
		case *pb.SqlValue_Blob:
			n += len(v.Blob)
		case *pb.SqlValue_Decimal:
			n += len(v.Decimal)
		case *pb.SqlValue_Date:
			n += len(v.Date)
		case *pb.SqlValue_Datetime:
			n += len(v.Datetime)
		case *pb.SqlValue_Time:
			n += len(v.Time)
		}
	}
	return n
}

func unknownSession(id uint64) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.NoSuchThread, "Unknown session %d on this stream: open it first; it may have ended", id)
}
