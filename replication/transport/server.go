package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/env"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// serverKeepalive asks a caller seldom: the signs of life that this node sends tell the kernel, by
// socket.Limit, of a host that is gone.
func serverKeepalive(silence time.Duration) keepalive.ServerParameters {
	return keepalive.ServerParameters{
		MaxConnectionIdle: 30 * time.Second,
		Time:              max(10*silence, time.Second),
		Timeout:           silence,
	}
}

// peerServer is what other nodes call.
type peerServer struct {
	pb.UnimplementedPeerServer
	p *Peers
}

// connOf returns the connection of a call.
func connOf(ctx context.Context) *serverConn {
	if peer, ok := grpcpeer.FromContext(ctx); ok {
		if a, ok := peer.Addr.(connAddr); ok {
			return a.conn
		}
	}
	return nil
}

// hear reads a hello and holds it to the caller's certificate.
func (s *peerServer) hear(conn *serverConn, wire *pb.PeerHello) (Hello, *Rejection) {
	h, r := helloFromWire(wire)
	if r != nil || s.p.certs == nil {
		return h, r
	}
	t, ok := conn.Conn.(*tls.Conn)
	if !ok {
		return h, rejectf(ReasonIdentity, "the connection has no certificate")
	}
	cert, who := t.ConnectionState().PeerCertificates[0], "node "+h.Addr
	if r := s.p.certs.checkIdentity(cert, h.Identity, who); r != nil {
		return h, r
	}
	addr := h.Addr
	if q := s.p.peer(h.Member); q != nil && h.Member != 0 {
		addr, who = q.Addr, fmt.Sprintf("%s, which says that it is member %d,", who, h.Member)
	}
	return h, s.p.certs.checkHost(cert, addr, who)
}

// refuse logs a refused hello and returns how it ends the call.
func (s *peerServer) refuse(conn *serverConn, purpose Purpose, r *Rejection) error {
	s.p.lis.log.warn("a node was refused", "from", conn.raw.RemoteAddr().String(), "wants", purpose.String(),
		"reason", r.Reason.String(), "error", r.Text)
	return toStatus(r)
}

// Control implements the contract.
func (s *peerServer) Control(stream grpc.BidiStreamingServer[pb.PeerControlRequest, pb.PeerControlResponse]) error {
	return s.messages(stream, ForControl, maxControlFrame, func(w *pb.PeerWelcome, r *pb.PeerReceived) error {
		return stream.Send(&pb.PeerControlResponse{Welcome: w, Received: r})
	})
}

// Entries implements the contract.
func (s *peerServer) Entries(stream grpc.BidiStreamingServer[pb.PeerEntriesRequest, pb.PeerEntriesResponse]) error {
	return s.messages(stream, ForEntries, MaxFrame, func(w *pb.PeerWelcome, r *pb.PeerReceived) error {
		return stream.Send(&pb.PeerEntriesResponse{Welcome: w, Received: r})
	})
}

// messages lets a peer's stream in and hands its messages to the handler.
func (s *peerServer) messages(stream grpc.ServerStream, purpose Purpose, limit int, send func(*pb.PeerWelcome, *pb.PeerReceived) error) error {
	conn := connOf(stream.Context())
	late := time.AfterFunc(s.p.opts.HandshakeTimeout, func() { conn.Close() })
	var in inFrame
	err := stream.RecvMsg(&in)
	late.Stop()
	if err != nil {
		return err
	}
	h, r := s.hear(conn, in.hello)
	if r != nil {
		return s.refuse(conn, purpose, r)
	}
	w, leave, r := s.p.door.Enter(h, purpose, func() { conn.Close() })
	if r != nil {
		return s.refuse(conn, purpose, r)
	}
	defer leave()
	conn.admit(h)
	got := &receipts{conn: conn}
	if err := send(welcomeToWire(&w), got.news()); err != nil {
		return err
	}
	if q := s.p.peer(h.Member); q != nil {
		q.see(h.Incarnation, h.Process)
		q.kick() // it is there: no need to wait before dialing it
	}
	if purpose == ForControl {
		s.p.handler.ReportReached(h.Member)
	}
	stop := s.signsOfLife(conn, func() error { return send(nil, got.news()) })
	defer stop()
	return s.receive(stream, h, limit, got)
}

// signsOfLife sends one now and then until stop is called.
func (s *peerServer) signsOfLife(conn *serverConn, send func() error) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := s.p.opts.LinkTimeout / signsMissed
		t := env.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-t.C:
				if send() != nil {
					return
				}
				t.Next()
			}
		}
	}()
	return func() {
		close(end)
		select {
		case <-ended:
		case <-time.After(time.Second): // it waits for a caller that does not read
			conn.Close()
			<-ended
		}
	}
}

// receive reads frames until the stream ends or sends something it may not.
func (s *peerServer) receive(stream grpc.ServerStream, h Hello, limit int, got *receipts) error {
	self := s.p.door.Hello(0).Member
	a := assembler{limit: limit}
	for {
		in := inFrame{must: h.Protocol.Max >= protocolSums}
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		got.requests.Add(1)
		frame, err := a.add(&in)
		if err == nil && frame != nil {
			got.busy.Store(true)
			err = s.deliver(frame, &h, self)
			got.busy.Store(false)
		}
		if err != nil {
			s.p.lis.log.warn("a peer's connection was closed", "peer", h.Member, "address", h.Addr, "error", err)
			return toStatus(err)
		}
	}
}

// deliver hands the messages of a frame to the handler.
func (s *peerServer) deliver(frame []byte, h *Hello, self uint64) error {
	from := h.Member
	msgs, err := decodeFrame(frame)
	if err != nil {
		return fmt.Errorf("member %d: %w", from, err)
	}
	for _, m := range msgs {
		if m.GetFrom() != from || m.GetTo() != self {
			return malformed("member %d sent member %d a message from %d to %d", from, self, m.GetFrom(), m.GetTo())
		}
	}
	if q := s.p.peer(from); q != nil {
		q.received.Add(uint64(len(frame)))
	}
	s.p.handler.Receive(from, h.Incarnation, msgs)
	return nil
}

// Ask implements the contract.
func (s *peerServer) Ask(ctx context.Context, req *pb.PeerAskRequest) (*pb.PeerAskResponse, error) {
	conn := connOf(ctx)
	h, r := s.hear(conn, req.GetHello())
	var w Welcome
	if r == nil {
		w, r = s.p.door.Admit(h, ForAsk)
	}
	if r != nil {
		return nil, s.refuse(conn, ForAsk, r)
	}
	conn.admit(h)
	select {
	case s.p.asks <- struct{}{}:
		defer func() { <-s.p.asks }()
	default:
		return nil, toStatus(rejectf(ReasonTooMany, "node %s answers %d questions already", s.p.Addr(), s.p.opts.MaxAsks))
	}
	ctx = WithCaller(ctx, Caller{h.Identity, h.Addr, h.Build})
	resp := &pb.PeerAskResponse{Welcome: welcomeToWire(&w)}
	answer, err := s.p.handler.Answer(ctx, req.GetKind(), req.GetPayload())
	if err == nil && len(answer) > MaxAsk {
		err = fmt.Errorf("%w: an answer of %d bytes to %q, at most %d are allowed", ErrTooLarge, len(answer), req.GetKind(), MaxAsk)
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// The asker's time is over. It may hear of this before its own clock tells it.
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		f := failure(err)
		resp.Result = &pb.PeerAskResponse_Failure{Failure: &pb.PeerFailure{Code: f.Code, Text: clip(f.Text)}}
		return resp, nil
	}
	resp.Result = &pb.PeerAskResponse_Payload{Payload: answer}
	return resp, nil
}

// errGone says that whom bulk was for is not there any more.
var errGone = errors.New("transport: the reader is gone")
