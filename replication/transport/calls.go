package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Ask implements [Transport]. A question to a member goes over its control
// connection, one to an address over a connection of its own.
func (p *Peers) Ask(ctx context.Context, c Call) ([]byte, error) {
	if len(c.Payload) > MaxAsk {
		return nil, fmt.Errorf("%w: a question of %d bytes, at most %d are allowed", ErrTooLarge, len(c.Payload), MaxAsk)
	}
	ctx, cancel := context.WithTimeout(ctx, or(c.Timeout, p.opts.AskTimeout))
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	if c.Addr != "" {
		conn, err := p.dial(ctx, c.Addr)
		if err != nil {
			return nil, fmt.Errorf("%w to %s: %w", ErrUnreachable, &c, err)
		}
		cc, err := p.overConn(conn, 64<<10)
		if err != nil {
			return nil, err
		}
		defer cc.Close()
		answer, err := p.askOver(ctx, cc.ClientConn, &c)
		if errors.Is(err, ErrUnreachable) {
			err = fmt.Errorf("%w to %s: %w", ErrUnreachable, &c, conn.reason(err))
		}
		return answer, err
	}
	cc, err := p.toMember(c.To)
	if err != nil {
		return nil, err
	}
	over := cc.signs.ask(len(c.Payload))
	answer, err := p.askOver(ctx, cc.ClientConn, &c)
	var f *Failure
	over(err == nil || errors.As(err, &f))
	return answer, err
}

// toMember returns the connection for questions to a member.
func (p *Peers) toMember(id uint64) (*callsOver, error) {
	q := p.peer(id)
	if q == nil {
		return nil, fmt.Errorf("%w to member %d: it is not known", ErrUnreachable, id)
	}
	if cc := q.links[ForControl].calls.Load(); cc != nil {
		return cc, nil
	}
	q.mu.Lock()
	err := q.err
	q.mu.Unlock()
	return nil, fmt.Errorf("%w to member %d: %w", ErrUnreachable, id, err)
}

func (p *Peers) askOver(ctx context.Context, cc *grpc.ClientConn, c *Call) ([]byte, error) {
	hello := p.door.Hello(c.To)
	resp, err := pb.NewPeerClient(cc).Ask(ctx, &pb.PeerAskRequest{Hello: helloToWire(&hello), Kind: c.Kind, Payload: c.Payload})
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	w, r := welcomeFromWire(resp.GetWelcome())
	if r == nil {
		r = CheckWelcome(&hello, &w)
	}
	if r != nil {
		return nil, r
	}
	if f := resp.GetFailure(); f != nil {
		return nil, &Failure{Code: f.GetCode(), Text: f.GetText()}
	}
	return resp.GetPayload(), nil
}

// explain says why a call failed.
func (p *Peers) explain(ctx context.Context, err error) error {
	switch {
	case p.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ErrTimeout
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fromStatus(err)
}

// bulkWindow is how much bulk may be under way to a reader.
const bulkWindow = 4 << 20

// OpenBulk implements [Transport]. Every stream has a connection of its own, so that
// streams do not wait for each other, and nothing stays behind.
func (p *Peers) OpenBulk(ctx context.Context, c Call) (BulkReader, error) {
	if len(c.Payload) > MaxAsk {
		return nil, fmt.Errorf("%w: a request of %d bytes, at most %d are allowed", ErrTooLarge, len(c.Payload), MaxAsk)
	}
	addr := c.Addr
	if addr == "" {
		q := p.peer(c.To)
		if q == nil {
			return nil, fmt.Errorf("%w to member %d: it is not known", ErrUnreachable, c.To)
		}
		addr = q.Addr
	}
	conn, err := p.dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("%w to %s: %w", ErrUnreachable, &c, err)
	}
	cc, err := p.overConn(conn, bulkWindow)
	if err != nil {
		return nil, err
	}
	r := &bulkReader{p: p, conn: conn, cc: cc}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.unhook = context.AfterFunc(p.ctx, func() { r.cancel(ErrClosed) })
	if err := r.open(&c); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

type bulkReader struct {
	p      *Peers
	conn   *clientConn
	cc     *calling
	ctx    context.Context
	cancel context.CancelCauseFunc
	unhook func() bool
	stream grpc.ServerStreamingClient[pb.PeerBulkResponse]
	watch  *time.Timer
	err    error
}

// open asks for the stream and waits for the welcome.
func (r *bulkReader) open(c *Call) error {
	hello := r.p.door.Hello(c.To)
	r.watch = time.AfterFunc(r.p.opts.HandshakeTimeout, func() { r.cancel(errSilent) })
	var err error
	r.stream, err = pb.NewPeerClient(r.cc).Bulk(r.ctx, &pb.PeerBulkRequest{Hello: helloToWire(&hello), Kind: c.Kind, Payload: c.Payload})
	if err != nil {
		return r.why(err)
	}
	first, err := r.stream.Recv()
	r.watch.Stop() // the time until the first Next is the reader's own
	if err != nil {
		return r.why(err)
	}
	w, rej := welcomeFromWire(first.GetWelcome())
	if rej == nil {
		rej = CheckWelcome(&hello, &w)
	}
	if rej != nil {
		return rej
	}
	return nil
}

// Next implements [BulkReader].
func (r *bulkReader) Next() ([]byte, error) {
	for r.err == nil {
		r.watch.Reset(r.p.opts.LinkTimeout)
		m, err := r.stream.Recv()
		r.watch.Stop() // the time between two calls is the reader's own
		switch {
		case err == io.EOF:
			r.err = io.EOF
		case err != nil:
			r.err = r.why(err)
		case len(m.GetChunk()) > 0:
			return m.GetChunk(), nil
		}
	}
	return nil, r.err
}

func (r *bulkReader) why(err error) error {
	if cause := context.Cause(r.ctx); cause != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, cause)
	}
	err = fromStatus(err)
	if errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrUnreachable, r.conn.reason(err))
	}
	return err
}

// Close implements [BulkReader].
func (r *bulkReader) Close() error {
	r.unhook()
	if r.watch != nil {
		r.watch.Stop()
	}
	r.cancel(ErrClosed)
	r.cc.Close()
	return nil
}

// Bulk implements the contract.
func (s *peerServer) Bulk(req *pb.PeerBulkRequest, stream grpc.ServerStreamingServer[pb.PeerBulkResponse]) error {
	conn := connOf(stream.Context())
	h, r := s.hear(conn, req.GetHello())
	if r != nil {
		return s.refuse(conn, ForBulk, r)
	}
	w, leave, r := s.p.door.Enter(h, ForBulk, func() { conn.Close() })
	if r != nil {
		return s.refuse(conn, ForBulk, r)
	}
	defer leave()
	conn.admit(h)
	select {
	case s.p.bulks <- struct{}{}:
		defer func() { <-s.p.bulks }()
	default:
		return s.refuse(conn, ForBulk, rejectf(ReasonTooMany, "node %s serves %d bulk streams already", s.p.Addr(), s.p.opts.MaxBulks))
	}
	out := &bulkWriter{stream: stream, conn: conn, stall: s.p.opts.BulkStall}
	if err := stream.Send(&pb.PeerBulkResponse{Welcome: welcomeToWire(&w)}); err != nil {
		return err
	}
	stop := s.signsOfLife(conn, out.pulse)
	ctx := WithCaller(stream.Context(), Caller{h.Identity, h.Addr, h.Build})
	err := s.p.handler.Bulk(ctx, req.GetKind(), req.GetPayload(), out)
	stop()
	if err != nil {
		return toStatus(failure(err))
	}
	return nil
}

// bulkWriter sends chunks. The mutex keeps signs of life apart from them.
type bulkWriter struct {
	mu     sync.Mutex
	stream grpc.ServerStreamingServer[pb.PeerBulkResponse]
	conn   *serverConn // of this stream alone
	stall  time.Duration
}

// Abort implements [BulkWriter].
func (w *bulkWriter) Abort() { w.conn.Close() }

// Send implements [BulkWriter].
func (w *bulkWriter) Send(chunk []byte) error {
	switch {
	case len(chunk) == 0:
		return nil
	case len(chunk) > MaxChunk:
		return fmt.Errorf("%w: a chunk of %d bytes, at most %d are allowed", ErrTooLarge, len(chunk), MaxChunk)
	}
	late := time.AfterFunc(w.stall, w.Abort)
	w.mu.Lock() // there may be no room for a sign of life either
	defer w.mu.Unlock()
	err := w.stream.Send(&pb.PeerBulkResponse{Chunk: chunk})
	if !late.Stop() {
		return fmt.Errorf("%w: it has taken nothing for %v", errGone, w.stall)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return nil
}

// pulse gives a sign of life unless a chunk is being sent, which is one.
func (w *bulkWriter) pulse() error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	return w.stream.Send(&pb.PeerBulkResponse{})
}
