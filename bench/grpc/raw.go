package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// ahead is how many requests of a session are under way at a time where there is more than one.
const ahead = 8

// raw is a stream of sessions without the SDK.
type raw struct {
	conn     *grpc.ClientConn
	call     pb.Sql_SessionsClient
	cancel   context.CancelFunc
	sending  sync.Mutex
	sessions []*rawSession // session n is at n-1
	received sync.WaitGroup
	err      error // why it has ended; for who finds answers closed
}

type rawSession struct {
	st      *raw
	id      uint64
	last    uint64 // request
	answers chan *pb.SqlSessionsResponse
}

// connect opens a stream on a connection of its own, and sessions.
func (b *bench) connect(sessions int) (*raw, error) {
	conn, err := dial(b.address())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(asRoot(context.Background()))
	st := &raw{conn: conn, cancel: cancel}
	if st.call, err = pb.NewSqlClient(conn).Sessions(ctx); err != nil {
		st.close()
		return nil, err
	}
	for i := range sessions {
		st.sessions = append(st.sessions, &rawSession{st: st, id: uint64(i + 1), answers: make(chan *pb.SqlSessionsResponse, 2*ahead)})
	}
	st.received.Go(st.receive)
	for _, s := range st.sessions {
		if _, err := s.ask(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{Schema: schema}}}); err != nil {
			st.close()
			return nil, err
		}
	}
	return st, nil
}

func (st *raw) close() {
	st.cancel()
	_ = st.conn.Close()
	st.received.Wait()
}

// receive passes answers on until the stream ends.
func (st *raw) receive() {
	for {
		m := new(pb.SqlSessionsResponse)
		if err := st.call.RecvMsg(m); err != nil {
			st.err = err
			break
		}
		st.sessions[m.Session-1].answers <- m
	}
	for _, s := range st.sessions {
		close(s.answers)
	}
}

// send sends a request with the next number.
func (s *rawSession) send(m *pb.SqlSessionsRequest) error {
	s.last++
	m.Session, m.Request = s.id, s.last
	s.st.sending.Lock()
	defer s.st.sending.Unlock()
	return s.st.call.Send(m)
}

// answer waits for the next answer.
func (s *rawSession) answer() (*pb.SqlSessionsResponse, error) {
	m, ok := <-s.answers
	if !ok {
		return nil, s.st.err
	}
	if e := m.GetError(); e != nil {
		return nil, fmt.Errorf("error %d: %s", e.Number, e.Message)
	}
	return m, nil
}

func (s *rawSession) ask(m *pb.SqlSessionsRequest) (*pb.SqlSessionsResponse, error) {
	if err := s.send(m); err != nil {
		return nil, err
	}
	return s.answer()
}

// byStream reads on sessions of one stream, each with so many requests under way.
func (b *bench) byStream(callers, depth int) (call func(int, *meter) error, end func(), err error) {
	st, err := b.connect(callers)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range st.sessions {
		if _, err := s.ask(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Prepare{Prepare: &pb.SqlPrepare{Handle: 1, Text: pointRead}}}); err != nil {
			return nil, st.close, err
		}
	}
	return func(caller int, m *meter) error { return st.sessions[caller].read(m, depth) }, st.close, nil
}

// read reads rows until the turn is over.
func (s *rawSession) read(m *meter, depth int) error {
	type asked struct {
		id    int
		begin time.Time
	}
	var under []asked
	for {
		for len(under) < depth && !m.over.Load() {
			a := asked{m.id(), time.Now()}
			under = append(under, a)
			if err := s.send(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{
				Statement: &pb.SqlStatement{Handle: 1, Params: []*pb.SqlValue{integer(a.id)}}}}}); err != nil {
				return err
			}
		}
		if len(under) == 0 {
			return nil
		}
		r, err := s.answer()
		if err != nil {
			return err
		}
		if err := checkBatch(under[0].id, r.GetResult().GetBatch()); err != nil {
			return err
		}
		m.took = append(m.took, time.Since(under[0].begin))
		under = under[1:]
	}
}
