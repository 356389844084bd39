package client

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// stream carries sessions to one node.
type stream struct {
	n      *node
	call   pb.Sql_SessionsClient
	cancel context.CancelFunc

	sending sync.Mutex

	mu       sync.Mutex
	sessions map[uint64]*session
	next     uint64
	err      error // why it has ended
}

// sessionsPerStream is how many a stream carries before another is opened.
const sessionsPerStream = 250

func (n *node) openStream() (*stream, error) {
	ctx, cancel := context.WithCancel(n.db.outgoing(n.over))
	n.wait()
	defer n.waited()
	call, err := pb.NewSqlClient(n.conn).Sessions(ctx)
	if err != nil {
		cancel()
		return nil, n.ofStatus(err)
	}
	st := &stream{n: n, call: call, cancel: cancel, sessions: make(map[uint64]*session)}
	n.mu.Lock()
	n.streams = append(n.streams, st)
	n.mu.Unlock()
	go st.receive()
	return st, nil
}

// receive passes answers on until the stream ends.
func (st *stream) receive() {
	var err error
	for {
		m := new(pb.SqlSessionsResponse)
		if err = st.call.RecvMsg(m); err != nil {
			break
		}
		st.mu.Lock()
		s := st.sessions[m.Session]
		st.mu.Unlock()
		if s != nil {
			s.take(m)
		}
	}
	st.end(ofStream(err))
}

// ofStream is the error of the sessions of a stream that has ended.
func ofStream(err error) error {
	if e, ok := ofStatus(err).(*Error); ok {
		e.ended = true
		if e.Retry == Elsewhere {
			e.Retry = SameToken // a request may have been on its way
		}
		return e
	}
	return lost(err)
}

func (st *stream) end(err error) {
	st.mu.Lock()
	if st.err == nil {
		st.err = err
	}
	all := st.sessions
	st.sessions = nil
	st.mu.Unlock()
	st.cancel() // receive ends it once more by that: why it ends is known by then
	for _, s := range all {
		s.end(err)
	}
	st.n.drop(st)
}

// ended is why the stream takes no sessions any more; nil: it does.
func (st *stream) ended() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return unsent(st.err)
}

// send sends a request. Afterwards it may be changed.
func (st *stream) send(m *pb.SqlSessionsRequest) error {
	st.n.wait()
	st.sending.Lock()
	err := st.call.SendMsg(m)
	st.sending.Unlock()
	st.n.waited()
	if err != nil {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.err != nil {
			return st.err
		}
		return lost(err) // receive learns why
	}
	return nil
}

// add gives the stream a session; false: it is full, or has ended.
func (st *stream) add(s *session) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err != nil || len(st.sessions) >= sessionsPerStream {
		return false
	}
	st.next++
	s.st, s.id = st, st.next
	st.sessions[s.id] = s
	return true
}

func (st *stream) remove(s *session) {
	st.mu.Lock()
	delete(st.sessions, s.id)
	st.mu.Unlock()
}

// node is a node of the group.
type node struct {
	db   *DB
	addr string
	conn *grpc.ClientConn
	// refused is why the last handshake will not do better the next time; nil: it may.
	refused atomic.Pointer[Error]
	life
	over context.Context // ends when the node is given up, or forgotten
	end  context.CancelFunc

	reads  atomic.Int64 // under way
	behind atomic.Int64 // until when it is passed over by reads, nanoseconds since 1970

	mu      sync.Mutex
	streams []*stream
	opening sync.Mutex
}

// away says how unlikely it is that the node answers at once. One that nobody has called yet is
// nil.
func (n *node) away() int {
	if n == nil {
		return 1
	}
	switch n.conn.GetState() {
	case connectivity.Ready:
		return 0
	case connectivity.Connecting:
		return 2
	case connectivity.TransientFailure:
		return 3
	}
	return 1
}

// ofStatus is the error of a call at the node. One that has left the group meanwhile has been
// forgotten, and its connection closed, as that of one that was given up: that says nothing of the others.
func (n *node) ofStatus(err error) error {
	if err != nil && (n.over.Err() != nil || n.conn.GetState() == connectivity.Shutdown) {
		return lost(err)
	}
	return ofStatus(err)
}

func (n *node) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.streams) == 0
}

// newSession opens a session at the node.
func (n *node) newSession(ctx context.Context, readOnly bool) (*session, error) {
	s := &session{db: n.db, readOnly: readOnly, calls: make(map[uint64]*call)}
	if !n.place(s) {
		n.opening.Lock()
		defer n.opening.Unlock()
		for !n.place(s) { // somebody may have opened one meanwhile
			st, err := n.openStream()
			if err == nil {
				err = st.ended()
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if err := s.open(ctx); err != nil {
		s.st.remove(s)
		return nil, err
	}
	return s, nil
}

func (n *node) place(s *session) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, st := range n.streams {
		if st.add(s) {
			return true
		}
	}
	return false
}

func (n *node) drop(gone *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, st := range n.streams {
		if st == gone {
			n.streams = append(n.streams[:i:i], n.streams[i+1:]...)
			return
		}
	}
}
