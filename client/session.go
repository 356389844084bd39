package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// session is one of a stream. One task uses it at a time.
type session struct {
	db       *DB
	st       *stream
	id       uint64
	readOnly bool
	last     uint64 // request
	handle   uint32
	own      bool // it has state that others must not meet
	prepared map[string]*prepared
	message  pb.SqlSessionsRequest // used again for each request

	mu    sync.Mutex
	calls map[uint64]*call
	err   error // why it has ended
	// counted: it is one of its node's reads under way.
	counted bool
}

// prepared is a statement that was prepared in the session.
type prepared struct {
	handle  uint32
	columns []*pb.SqlColumn // as the server gave them last
}

// call is a request whose answer comes.
type call struct {
	n        *node
	request  uint64
	prepared *prepared
	taken    uint64 // bytes of the window that the server has not been told of

	mu    sync.Mutex
	parts []*pb.SqlSessionsResponse
	err   error
	wake  chan struct{}
}

func (c *call) add(m *pb.SqlSessionsResponse, err error) {
	c.mu.Lock()
	if m != nil {
		c.parts = append(c.parts, m)
	} else if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// part waits for the next part of the answer.
func (c *call) part(ctx context.Context) (*pb.SqlSessionsResponse, error) {
	m, err := c.next()
	if m == nil && err == nil {
		c.n.wait()
		heard := c.n.heard.Load()
		for m == nil && err == nil {
			select {
			case <-c.wake:
				m, err = c.next()
			case <-ctx.Done():
				if err = ctx.Err(); c.n.heard.Load() == heard {
					c.n.probe() // for the next call
				}
			}
		}
		c.n.waited()
	}
	if e := m.GetError(); e != nil {
		return nil, told(e)
	}
	return m, err
}

// next takes the next part if it has come.
func (c *call) next() (*pb.SqlSessionsResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parts) == 0 {
		return nil, c.err
	}
	m := c.parts[0]
	c.parts = c.parts[1:]
	return m, nil
}

// take passes an answer on.
func (s *session) take(m *pb.SqlSessionsResponse) {
	if m.Request == 0 {
		err := told(m.GetError())
		err.ended = true
		s.st.remove(s)
		s.end(err)
		return
	}
	s.mu.Lock()
	c := s.calls[m.Request]
	if r := m.GetResult(); r == nil || r.Done != nil {
		delete(s.calls, m.Request)
	}
	if e := m.GetError(); e != nil && e.SessionEnded && s.err == nil {
		s.err = told(e)
	}
	s.mu.Unlock()
	if c != nil {
		c.add(m, nil)
	}
}

// end fails what waits for answers.
func (s *session) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	all := s.calls
	s.calls = map[uint64]*call{}
	s.mu.Unlock()
	for _, c := range all {
		c.add(nil, err)
	}
}

// ended says why the session is of no more use.
func (s *session) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// send sends a request; fill sets its kind.
func (s *session) send(ifOK bool, fill func(m *pb.SqlSessionsRequest)) (*call, error) {
	s.last++
	c := &call{n: s.st.n, request: s.last, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, unsent(s.err)
	}
	s.calls[c.request] = c
	s.mu.Unlock()
	m := &s.message
	m.Session, m.Request, m.IfOk = s.id, c.request, ifOK
	fill(m)
	err := s.st.send(m)
	m.Kind = nil
	if err != nil {
		s.mu.Lock()
		delete(s.calls, c.request)
		s.mu.Unlock()
		s.st.cancel()
		return nil, err
	}
	return c, nil
}

// unsent is the error of a request that was not sent, since the session was over before.
func unsent(err error) error {
	if e, ok := err.(*Error); ok && e.Retry == SameToken {
		clone := *e
		clone.Retry = Elsewhere
		return &clone
	}
	return err
}

// signal sends something that has no answer.
func (s *session) signal(m *pb.SqlSessionsRequest) {
	m.Session = s.id
	_ = s.st.send(m)
}

// finish waits for the end of an answer without rows.
func (s *session) finish(ctx context.Context, c *call) (*pb.SqlDone, error) {
	for {
		m, err := c.part(ctx)
		if err != nil {
			if ctx.Err() != nil {
				s.abandon(c)
			}
			return nil, err
		}
		if r := m.GetResult(); r != nil {
			s.credit(c, r.Batch)
			if r.Done == nil {
				continue
			}
			return r.Done, nil
		}
		return &pb.SqlDone{}, nil
	}
}

// credit says that batches were taken, once they are a good part of the window.
func (s *session) credit(c *call, b *pb.SqlBatch) {
	if b == nil {
		return
	}
	if c.taken += b.WindowBytes; c.taken >= uint64(s.db.opt.Window)/4 {
		s.signal(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Credit{Credit: &pb.SqlCredit{Request: c.request, Bytes: c.taken}}})
		c.taken = 0
	}
}

// abandon interrupts a request whose answer nobody waits for. The session is of no more use to its
// owner: it ends.
func (s *session) abandon(c *call) {
	s.signal(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Cancel{Cancel: &pb.SqlCancel{Request: c.request}}})
	s.close()
}

// close ends the session without waiting for the server's answer.
func (s *session) close() {
	s.reading(false)
	s.mu.Lock()
	over := s.err != nil
	if !over {
		s.err = ErrClosed
	}
	s.mu.Unlock()
	if !over {
		s.last++
		s.signal(&pb.SqlSessionsRequest{Request: s.last, Kind: &pb.SqlSessionsRequest_Close{Close: &pb.SqlClose{}}})
	}
	s.st.remove(s)
}

// open is the session's first request.
func (s *session) open(ctx context.Context) error {
	o := s.db.opt
	c, err := s.send(false, func(m *pb.SqlSessionsRequest) {
		m.Kind = &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{Schema: o.Schema, ReadOnly: s.readOnly,
			Attributes: map[string]string{"_client_name": "trireme-go", "program_name": o.Program}}}
	})
	if err != nil {
		return err
	}
	var zoned *call
	if zone := zoneOf(o.Location); err == nil && zone != "" {
		if zoned, err = s.execute(&pb.SqlStatement{Text: "SET time_zone = '" + zone + "'"}, true); err != nil {
			return err
		}
	}
	if _, err = s.finish(ctx, c); err != nil {
		return err
	}
	if zoned != nil {
		_, err = s.finish(ctx, zoned)
	}
	return err
}

func zoneOf(l *time.Location) string {
	if l == nil || l == time.UTC {
		return "+00:00"
	}
	return l.String()
}

// execute sends a statement.
func (s *session) execute(st *pb.SqlStatement, ifOK bool) (*call, error) {
	return s.send(ifOK, func(m *pb.SqlSessionsRequest) {
		m.Kind = &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: st, WindowBytes: s.db.opt.Window}}
	})
}

// maxPrepared is how many statements a session keeps prepared.
const maxPrepared = 200

// executePrepared sends a statement that is prepared in the session, at the latest now.
func (s *session) executePrepared(st *pb.SqlStatement) (c, preparing *call, err error) {
	p := s.prepared[st.Text]
	if p == nil {
		s.makeRoom()
		s.handle++
		p = &prepared{handle: s.handle}
		preparing, err = s.send(false, func(m *pb.SqlSessionsRequest) {
			m.Kind = &pb.SqlSessionsRequest_Prepare{Prepare: &pb.SqlPrepare{Handle: p.handle, Text: st.Text}}
		})
		if err != nil {
			return nil, nil, err
		}
		if s.prepared == nil {
			s.prepared = make(map[string]*prepared)
		}
		s.prepared[st.Text] = p
	}
	text := st.Text
	st.Text, st.Handle = "", p.handle
	c, err = s.execute(st, preparing != nil)
	st.Text, st.Handle = text, 0
	if c != nil {
		c.prepared = p
	}
	return c, preparing, err
}

// makeRoom forgets a statement if there are many.
func (s *session) makeRoom() {
	if len(s.prepared) < maxPrepared {
		return
	}
	for text, p := range s.prepared { // any one
		delete(s.prepared, text)
		_, _ = s.send(false, func(m *pb.SqlSessionsRequest) {
			m.Kind = &pb.SqlSessionsRequest_ClosePrepared{ClosePrepared: &pb.SqlClosePrepared{Handle: p.handle}}
		})
		return
	}
}

// awaitPrepared takes the answer to a statement's preparation.
func (s *session) awaitPrepared(ctx context.Context, text string, preparing *call) error {
	m, err := preparing.part(ctx)
	if err != nil {
		delete(s.prepared, text)
		if ctx.Err() != nil {
			s.abandon(preparing)
		}
		return err
	}
	p := m.GetPrepared()
	if p == nil {
		return fmt.Errorf("client: the server has not answered what it was asked")
	}
	if known := s.prepared[text]; known != nil {
		known.columns = p.Columns
	}
	return nil
}
